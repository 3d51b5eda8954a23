"""The routes of the HTTP API: each is a call of the engine, described by the call's signature and docstring."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from commonplace.dataclasses import dataclass, field
from commonplace.dates.time import Moment
from commonplace.errors import UsageError
from commonplace.types import Scope

if TYPE_CHECKING:
    from commonplace import Memory
    from commonplace.engine import Engine
    from commonplace.types import Link

Verb: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]
Schema: TypeAlias = dict[str, Any]

_TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_OBJECT: Final[Schema] = {"type": "object"}
_MOMENT: Final[Schema] = {"type": ["string", "number"]}
_VERSION: Final = "if_version"
_LONG: Final = frozenset({
    "index_knowledge", "delete_knowledge", "index", "consolidate", "undo_consolidation", "process_issue", "health",
    "communities", "forget", "forget_memory", "forget_namespace", "gc", "page_doctor",
})  # fmt: skip
MAX_KEY_CHARACTERS: Final = 200
SMALL_BODY: Final = 16 * 1024
"""Size in bytes up to which the memories in a body are stored within about a second."""
MAX_PAGE: Final = 1_000
MAX_VECTOR_STORE_RESULTS: Final = 50
MAX_LINES_OF_PLACE: Final = 200
TYPES: Final[Mapping[str, Schema]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Moment": _MOMENT,
    "str | Path": {"type": "string"},
    "Sequence[str]": _TEXTS,
    "str | Sequence[str]": _TEXTS | {"type": ["string", "array"]},
    "Sequence[Kind]": _TEXTS,
    "Method": {"type": "string"},
    "RerankMode": {"type": "string"},
    "Verdict": {"type": "string"},
    "Mapping[str, Any]": _OBJECT,
    "Iterable[Mapping[str, Any]]": {"type": "array", "items": _OBJECT},
    "str | Mapping[str, Any] | Sequence[Any]": {"type": ["string", "object", "array"]},
}
"""JSON Schemas by the annotations of the calls' arguments; `| None` may follow any annotation."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation: its place in a request, its JSON Schema and its description."""

    name: str
    kind: Literal["path", "query", "body", "header"]
    schema: Schema
    is_required: bool
    description: str = ""


@dataclass(frozen=True)
class Operation:
    """A route of the API.

    Attributes:
        id: the operation's unique name.
        path: the path below `/v1`, with `{name}` for arguments in it.
        call: the dotted name of a method of the engine (`graph.add_episode`), or a function that gets the engine and
            keyword arguments.
        fixed: arguments that the server sets and a client may not.
        status: the HTTP status of success.
        member: the member of the answer that holds the result of the call; "" if the result is the answer.
        file: the argument for the file of JSON lines that is sent (POST) or returned (GET) instead of a JSON object.
    """

    id: str
    verb: Verb
    path: str
    scope: Scope
    call: str | Callable[..., Any]
    tag: str = "Memories"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    member: str = ""
    file: str = ""

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function to call, unbound: its first parameter is the engine, or a service of it."""
        if not isinstance(self.call, str):
            return self.call
        owner, _, name = self.call.rpartition(".")
        found: Callable[..., Any] = getattr(class_of(owner), name)
        return found

    @property
    def takes_key(self) -> bool:
        """Whether it takes an `Idempotency-Key`: reads, deletions and imports can be repeated without harm."""
        return self.scope != "read" and self.verb != "DELETE" and not self.file

    def is_long(self, body_bytes: int) -> bool:
        """Return whether the operation may take minutes."""
        return bool(self.file) or self.id in _LONG or (self.id == "remember_many" and body_bytes > SMALL_BODY)

    @property
    def takes_version(self) -> bool:
        """Whether `If-Match` may name the version to change."""
        return _VERSION in inspect.signature(self.function).parameters

    @property
    def has_version(self) -> bool:
        """Whether the answer is a memory, whose version is its `ETag`."""
        return str(inspect.signature(self.function).return_annotation) == "Memory"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a client may send, in the order of the signature."""
        in_path = set(re.findall(r"{(\w+)}", self.path))
        has_body = self.verb in ("POST", "PATCH") and not self.file
        kind: Literal["query", "body"] = "body" if has_body else "query"
        params = []
        for param in list(inspect.signature(self.function).parameters.values())[1:]:
            if param.name in self.fixed or param.name in (_VERSION, self.file):
                continue
            annotation, about = str(param.annotation), self.descriptions.get(param.name, "")
            schema = dict(TYPES[annotation.removesuffix(" | None")])
            if annotation.endswith(" | None"):
                kinds = schema["type"]
                schema["type"] = [*(kinds if isinstance(kinds, list) else [kinds]), "null"]
            is_required = param.default is inspect.Parameter.empty
            if not is_required and param.default is not None:
                schema["default"] = list(param.default) if isinstance(param.default, tuple) else param.default
            if param.name in in_path:
                params.append(Parameter(param.name, "path", {"type": "string"}, is_required=True, description=about))
            else:
                params.append(Parameter(param.name, kind, schema, is_required, about))
        return tuple(params)

    @cached_property
    def body_schema(self) -> Schema | None:
        """The JSON Schema of the body, or None."""
        return self._object("body") if any(parameter.kind == "body" for parameter in self.parameters) else None

    @cached_property
    def argument_schema(self) -> Schema:
        """The JSON Schema of all arguments together."""
        return self._object("path", "query", "body")

    def _object(self, *places: str) -> Schema:
        selected = [param for param in self.parameters if param.kind in places]
        return {
            "type": "object",
            "properties": {
                param.name: param.schema | ({"description": param.description} if param.description else {})
                for param in selected
            },
            "required": [param.name for param in selected if param.is_required],
            "additionalProperties": False,
        }

    def run(self, engine: Engine, arguments: Mapping[str, Any]) -> Any:
        """Call the engine with arguments that fit `argument_schema`."""
        owner = self.call.rpartition(".")[0] if isinstance(self.call, str) else ""
        result = self.function(getattr(engine, owner) if owner else engine, **arguments, **self.fixed)
        return {self.member: result} if self.member else result

    @cached_property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n\n")[0].replace("\n", " ")

    @cached_property
    def description(self) -> str:
        """The text of the docstring between its first sentence and its sections."""
        body = (inspect.getdoc(self.function) or "").partition("\n\n")[2]
        return re.split(r"(?m)^(?:Args|Raises|Returns):$", body)[0].strip()

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """The descriptions of the arguments, from the docstring."""
        return section(self.function, "Args")


def section(described: object, title: str) -> dict[str, str]:
    """Return the entries of a section of a docstring by name; an entry with several names appears under each."""
    text = re.search(rf"(?ms)^{title}:\n(.*?)(?:^\S|\Z)", inspect.getdoc(described) or "")
    entries: dict[str, str] = {}
    for names, entry in re.findall(r"(?ms)^    (\w[^\n:]*): (.*?)(?=^    \w|\Z)", text[1] if text else ""):
        entries |= dict.fromkeys(re.split(r",\s*", names), re.sub(r"\s+", " ", entry).strip())
    return entries


def class_of(service: str) -> type:
    """Return the class of a service of the engine, imported on demand; "" is the engine itself."""
    if service == "graph":
        from commonplace.engine.graph_api import Graph

        return Graph
    if service == "knowledge":
        from commonplace.knowledge.service import KnowledgeService

        return KnowledgeService
    if service == "ledger":
        from commonplace.ledger.ledger import Ledger

        return Ledger
    from commonplace.engine import Engine

    return Engine


def why(  # noqa: PLR0913, PLR0917 - the options of a search
    engine: Engine,
    query: str,
    hit_id: str,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    method: str | None = None,
    as_of: Moment | None = None,
    also: Sequence[str] | None = None,
    min_score: float | None = None,
    valid_at: Moment | None = None,
    tags: Sequence[str] | None = None,
    tiers: Sequence[str] | None = None,
    sessions: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    min_trust: float = 0.0,
) -> Any:
    """Search, and explain one hit of the result.

    Args:
        hit_id: the id of a hit of the result.
        query, limit, kinds, method, as_of, valid_at, also, min_score: as for `search`, as are the filters.
    """
    times: Mapping[str, Any] = {"as_of": as_of, "valid_at": valid_at}
    filters: Mapping[str, Any] = {"tags": tags, "tiers": tiers, "sessions": sessions, "sources": sources}
    options = {**times, **filters, "also": also, "min_score": min_score, "min_trust": min_trust}
    result = engine.search(query, limit, kinds, method, **options)  # type: ignore[arg-type]
    return engine.why(result, hit_id)


CURSOR_GOOD_FOR_S: Final = 86_400.0
_FIRST_PAGE: Final = "ask for the first page again, without a cursor"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a list of memories, newest first.

    Attributes:
        until: the page begins with memories before this time.
        skip: how many memories of the same moment, at the start of the page, were already returned.
    """

    until: Any
    skip: int

    def after(self, times: Sequence[datetime]) -> Cursor:
        """Return the cursor after a page, from the times of its memories, of which there is at least one."""
        last = times[-1]
        until = (last + timedelta(microseconds=1)).isoformat()
        same = sum(moment == last for moment in times)
        return Cursor(until, same + (self.skip if self.until == until else 0))

    def write(self, filters: Mapping[str, Any]) -> str:
        """Encode the cursor as a text, for a list with these filters."""
        value = [self.until, self.skip, _digest(filters), int(time.time())]
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, filters: Mapping[str, Any]) -> Cursor:
        """Decode a text of `write`.

        Raises:
            UsageError: the text is not a cursor, is older than a day, or belongs to a list with other filters.
        """
        try:
            until, skip, digest, issued_at = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            is_valid = isinstance(until, str) and isinstance(skip, int) and skip >= 0 and isinstance(issued_at, int)
        except (ValueError, TypeError):
            is_valid = False
        if not is_valid:
            raise UsageError(f"{text!r:.80} is no cursor of this server", remedy=_FIRST_PAGE, parameters=("cursor",))
        if not 0 <= time.time() - issued_at < CURSOR_GOOD_FOR_S:
            raise UsageError("the cursor is older than a day", remedy=_FIRST_PAGE)
        if digest != _digest(filters):
            raise UsageError("the cursor is of a list with other filters", remedy=_FIRST_PAGE)
        return cls(until, skip)


def _digest(filters: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(filters, sort_keys=True, default=list).encode()).hexdigest()[:16]


def list_memories(  # noqa: PLR0913 - the filters of a list
    engine: Engine,
    *,
    tiers: Sequence[str] = (),
    statuses: Sequence[str] = ("active", "promoted"),
    tags: Sequence[str] = (),
    sources: Sequence[str] = (),
    sessions: Sequence[str] = (),
    categories: Sequence[str] = (),
    since: Moment | None = None,
    until: Moment | None = None,
    min_trust: float = 0.0,
    order: str = "newest",
    limit: int = 50,
    offset: int = 0,
    cursor: str = "",
    counted: bool = True,
) -> dict[str, Any]:
    """Return a page of memories, newest first by their own times, and the cursor of the next page.

    A memory that is stored while the pages are read neither repeats nor hides another one.

    Args:
        statuses: "active", "promoted", "archived"; an empty list is all.
        since, until: half-open range of the memories' own times. Words, such as "yesterday", mean that period's start.
        order: "newest", or, without a cursor, "used", "idle", "stored" and "changed": the most used, the longest
            unused, the earliest stored, the latest written first; "archived" is what is archived, the last first.
        limit: 1–1,000.
        offset: skip this many memories; memories stored in the meantime shift the positions.
        cursor: `next_cursor` of the previous page, with the same filters; it is valid for a day.
        counted: also count all memories, by tier and status; with many memories this takes half of the time.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise UsageError(f"limit is {limit}", remedy=f"give 1 to {MAX_PAGE:,}", parameters=("limit",))
    filters: dict[str, Any] = {"tiers": tiers, "statuses": statuses, "tags": tags, "sources": sources, "order": order}
    filters |= {"sessions": sessions, "categories": categories, "since": since, "min_trust": min_trust}
    position = Cursor.read(cursor, {**filters, "until": until}) if cursor else Cursor(until, 0)
    if cursor and offset:
        raise UsageError("offset and cursor were both given", remedy="give one of them", parameters=("offset",))
    memories = engine.list(**filters, until=position.until, limit=limit + 1, offset=offset + position.skip)
    page = memories[:limit]
    has_next = len(memories) > limit and order == "newest" and not offset
    next_cursor = position.after([memory.at for memory in page]) if has_next else None
    return {
        "memories": page,
        "next_cursor": next_cursor.write({**filters, "until": until}) if next_cursor else None,
        "counts": engine.memory_counts() if counted else {},
    }


def links(engine: Engine, id: str) -> list[Link]:  # noqa: A002 - the name of the field
    """Return the links of a memory."""
    return engine.links(id)


def place_of_memory(engine: Engine, id: str) -> dict[str, Any]:  # noqa: A002 - the name of the field
    """Return the page and lines of a memory in Markdown; the path is empty if it is on no page."""
    location = engine.places([id]).get(id)
    if location is None:
        return {"path": "", "first_line": 0, "last_line": 0, "text": ""}
    lines = min(location.last_line - location.first_line + 1, MAX_LINES_OF_PLACE)
    text = engine.read(location.path, location.first_line, lines).text
    return {"path": location.path, "first_line": location.first_line, "last_line": location.last_line, "text": text}


def remember_many(
    engine: Engine, items: Iterable[Mapping[str, Any]], force: bool = False, wait: bool = False
) -> list[Memory]:
    """Store many memories in order, and return one for each.

    All are checked before any is stored.

    Args:
        items: objects with `content` and any of the other arguments of `remember`, or chat messages with `role`.
        force: store them even if they repeat what is stored.
        wait: answer when they can be found by meaning too; otherwise as soon as they are durable.
    """
    return engine.remember_many(items, force=force, wait=wait)


def forget(
    engine: Engine,
    *,
    ids: Sequence[str] | None = None,
    tag: str | None = None,
    source: str | None = None,
    session: str | None = None,
    path: str | None = None,
    agent: str | None = None,
    dry_run: bool = False,
) -> Any:
    """Delete what one filter selects, with every copy, and verify it.

    Args:
        ids: of memories, artifacts, documents, items of knowledge, episodes, entities or facts.
        tag, source, session: of memories, and of documents that are no files.
        path: of an indexed file.
        agent: the agent whose knowledge is deleted.
        dry_run: report what would be deleted, and change nothing.
    """
    return engine.forget(ids, tag=tag, source=source, session=session, path=path, agent=agent, dry_run=dry_run)


def search_vector_store(
    engine: Engine,
    query: str | Sequence[str],
    max_num_results: int = 10,
    ranking_options: Mapping[str, Any] | None = None,
    rewrite_query: bool = False,  # noqa: ARG001 - OpenAI's clients may send it
) -> dict[str, Any]:
    """Search, and answer like `POST /vector_stores/{id}/search` of OpenAI's API.

    Args:
        query: the query, or a list of several wordings of it.
        max_num_results: 1–50.
        ranking_options: `score_threshold` is the minimum score; other options are ignored.
        rewrite_query: ignored; misspelt words are always corrected.
    """
    queries = [query] if isinstance(query, str) else list(query)
    if not queries:
        raise UsageError("query is []", remedy="give a text, or a list of them", parameters=("query",))
    if not 1 <= max_num_results <= MAX_VECTOR_STORE_RESULTS:
        message = f"max_num_results is {max_num_results}"
        raise UsageError(message, remedy=f"give 1 to {MAX_VECTOR_STORE_RESULTS}", parameters=("max_num_results",))
    result = engine.search(
        queries[0], max_num_results, also=queries[1:] or None, min_score=(ranking_options or {}).get("score_threshold")
    )
    return {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": [
            {
                "file_id": hit.owner_id,
                "filename": hit.path or hit.owner_id,
                "score": hit.score,
                "attributes": {"kind": hit.kind, "confidence": hit.confidence},
                "content": [{"type": "text", "text": hit.text}],
            }
            for hit in result.hits
        ],
        "has_more": False,
        "next_page": None,
    }


_ONE_ID: Final = dict.fromkeys(("tag", "source", "session", "path", "agent"))
_TABLE: Final[Mapping[str, Sequence[tuple[Any, ...]]]] = {
    "Memories": (
        ("remember", "POST", "/memories", "write", "remember", {}, 201),
        ("remember_many", "POST", "/memories/bulk", "write", remember_many, {}, 201, "memories"),
        ("list_memories", "GET", "/memories", "read", list_memories),
        ("memory_facets", "GET", "/facets", "read", "memory_facets"),
        ("get_memory", "GET", "/memories/{id}", "read", "get"),
        ("update_memory", "PATCH", "/memories/{id}", "write", "update"),
        ("forget_memory", "DELETE", "/memories/{id}", "forget", "forget", _ONE_ID),
        ("memory_versions", "GET", "/memories/{id}/versions", "read", "versions", {}, 200, "versions"),
        ("memory_fading", "GET", "/memories/{id}/fading", "read", "memory_fading"),
        ("memory_uses", "GET", "/memories/{id}/uses", "read", "memory_uses"),
        ("memory_place", "GET", "/memories/{id}/place", "read", place_of_memory),
        ("memory_facts", "GET", "/memories/{id}/facts", "read", "graph.facts_of_memory"),
        ("touch_memory", "POST", "/memories/{id}/touch", "write", "touch"),
        ("review_memory", "POST", "/memories/{id}/review", "write", "review"),
        ("archive_memory", "POST", "/memories/{id}/archive", "write", "archive"),
        ("restore_memory", "POST", "/memories/{id}/restore", "write", "restore_memory"),
        ("raise_memory", "POST", "/memories/{id}/tier", "write", "raise_tier"),
        ("memory_links", "GET", "/memories/{id}/links", "read", links, {}, 200, "links"),
        ("memory_neighbourhood", "GET", "/memories/{id}/neighbourhood", "read", "neighbourhood"),
        ("link_memories", "POST", "/memories/{source}/links", "write", "link", {}, 201),
        ("unlink_memories", "DELETE", "/memories/{source}/links/{target}", "write", "unlink", {}, 200, "removed"),
        ("unmerge_memory", "POST", "/memories/{id}/unmerge", "write", "unmerge"),
    ),
    "Finding": (
        ("recall", "POST", "/recall", "read", "recall"),
        ("search", "POST", "/search", "read", "search"),
        ("context", "POST", "/context", "read", "context"),
        ("injection", "POST", "/injection", "read", "injection"),
        ("injections", "GET", "/injections", "read", "injections", {}, 200, "injections"),
        ("why", "POST", "/why", "read", why),
        ("mark", "POST", "/golden", "write", "mark"),
        ("golden_queries", "GET", "/golden", "read", "golden_queries", {}, 200, "golden"),
        ("read", "GET", "/read", "read", "read", {"touch": False}),
    ),
    "Graph": (
        ("add_episode", "POST", "/graph/episodes", "write", "graph.add_episode", {}, 201),
        ("list_episodes", "GET", "/graph/episodes", "read", "graph.episodes"),
        ("get_episode", "GET", "/graph/episodes/{uuid}", "read", "graph.episode"),
        ("delete_episode", "DELETE", "/graph/episodes/{uuid}", "write", "graph.delete_episode"),
        ("add_fact", "POST", "/graph/facts", "write", "graph.add_triplet", {}, 201),
        ("search_facts", "POST", "/graph/facts/search", "read", "graph.search_edges"),
        ("get_fact", "GET", "/graph/facts/{uuid}", "read", "graph.relation"),
        ("settle_fact", "POST", "/graph/facts/{relation_uuid}/settle", "write", "graph.settle"),
        ("search_entities", "POST", "/graph/entities/search", "read", "graph.search_entities"),
        ("get_entity", "GET", "/graph/entities/{name}", "read", "graph.entity"),
        ("entity_timeline", "GET", "/graph/entities/{entity}/timeline", "read", "graph.timeline"),
        ("entity_neighbourhood", "GET", "/graph/entities/{entity}/neighbourhood", "read", "graph.neighbourhood"),
        ("merge_entities", "POST", "/graph/entities/{keep}/merge", "write", "graph.merge"),
        ("split_entity", "POST", "/graph/entities/{entity}/split", "write", "graph.split"),
        ("graph_history", "GET", "/graph/history/{uuid}", "read", "graph.history"),
        ("graph_path", "GET", "/graph/path", "read", "graph.path"),
        ("graph_context", "POST", "/graph/context", "read", "graph.build_context"),
        ("communities", "GET", "/graph/communities", "read", "graph.communities"),
        ("disputes", "GET", "/graph/disputes", "read", "graph.disputes"),
    ),
    "Agents' knowledge": (
        ("index_knowledge", "POST", "/knowledge/{agent_name}", "write", "knowledge.index_knowledge"),
        ("retrieve_knowledge", "POST", "/knowledge/{agent_name}/retrieve", "read", "knowledge.retrieve"),
        ("delete_knowledge", "DELETE", "/knowledge/{agent_name}", "write", "knowledge.delete_agent_knowledge"),
        ("get_agent_context", "GET", "/knowledge/{name}/context", "read", "knowledge.get_context"),
        ("knowledge_status", "GET", "/knowledge", "read", "knowledge.status"),
    ),
    "Consolidation": (
        ("consolidate", "POST", "/consolidation/runs", "write", "consolidate", {"confidence": None, "golden": None}),
        ("consolidation_runs", "GET", "/consolidation/runs", "read", "consolidation_runs"),
        ("consolidation_changes", "GET", "/consolidation/runs/{run}", "read", "consolidation_changes"),
        ("consolidation_status", "GET", "/consolidation/status", "read", "consolidation_status"),
        ("undo_consolidation", "POST", "/consolidation/undo/{id}", "write", "undo_consolidation"),
        ("list_issues", "GET", "/ledger/issues", "read", "ledger.query", {}, 200, "issues"),
        ("get_issue", "GET", "/ledger/issues/{id_}", "read", "ledger.show"),
        ("issue_history", "GET", "/ledger/issues/{id_}/history", "read", "ledger.history"),
        ("rule_links", "GET", "/ledger/links", "read", "rule_links", {}, 200, "links"),
        ("process_issue", "POST", "/ledger/issues/{issue}/process", "write", "process_issue"),
        ("close_issue", "POST", "/ledger/issues/{id_}/close", "write", "ledger.close"),
        ("reopen_issue", "POST", "/ledger/issues/{id_}/reopen", "write", "ledger.reopen"),
        ("health", "GET", "/health", "read", "health", {"golden": None}),
        ("questions", "GET", "/questions", "read", "questions", {}, 200, "questions"),
        ("answer_question", "POST", "/questions/{id}/answer", "write", "answer"),
    ),
    "Store": (
        ("forget", "POST", "/forget", "forget", forget),
        ("export", "GET", "/export", "read", "export", {}, 200, "", "target"),
        ("import", "POST", "/import", "write", "import_", {}, 200, "", "path"),
        ("list_receipts", "GET", "/receipts", "read", "receipts"),
        ("gc", "POST", "/gc", "forget", "gc"),
        ("list_namespaces", "GET", "/namespaces", "read", "namespaces", {}, 200, "namespaces"),
        ("forget_namespace", "DELETE", "/namespaces/{name}", "admin", "forget_namespace"),
        ("index_status", "GET", "/index", "read", "index_status"),
        ("index", "POST", "/index", "admin", "index", {"watch": False}),
        ("retrievals", "GET", "/retrievals", "read", "retrievals"),
        ("search_vector_store", "POST", "/vector_stores/{namespace}/search", "read", search_vector_store),
    ),
}

OPERATIONS: Final[Mapping[str, Operation]] = {
    id_: Operation(id_, verb, path, scope, called, tag, *rest)
    for tag, rows in _TABLE.items()
    for id_, verb, path, scope, called, *rest in rows
}
