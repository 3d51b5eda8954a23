"""The tools: each makes one call of the engine and renders its result as JSON and text.

A model reads their schemas and descriptions (`tools.json`) in every session, so they are short.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.escaping import meant, visible
from commonplace.mcp.protocol import Context, Offer, ToolResult
from commonplace.text.budget import MAX_TOKENS, has_room, largest

if TYPE_CHECKING:
    from commonplace import Memory
    from commonplace.engine import Engine
    from commonplace.graph.views import EntityView, RelationView
    from commonplace.journal.pages import PagePlace
    from commonplace.types import Hit, Link

Arguments = Mapping[str, Any]

MAX_RESULTS: Final = 50
DEFAULT_RESULTS: Final = 6
DEFAULT_LINES: Final = 120
CONTEXT_TOKENS: Final = 2_000
SNIPPET_CHARACTERS: Final = 200
MEMORY_SNIPPET_CHARACTERS: Final = 400
_MAX_IDS: Final = 20
_MAX_REJECTED: Final = 5
_MAX_NAME: Final = 100
"""Characters of a client's name, as the source of what it stores."""
REVIEW: Final = "review"
"""In place of an id: what waits for a person."""
SETTLES: Final = "settles"
"""The type of a link from a question that waits to its answer."""
_OF_ENTITY: Final = ("uuid", "name", "entity_type", "score")
_OF_FACT: Final = "uuid fact source_name relation_type target_name valid_from valid_to disputed score".split()
_DEPTH, _LIMIT = 2, 10
_QUERY_CHARACTERS: Final = 1_000


def link(engine: Engine, given: Arguments) -> ToolResult:
    """Link two memories, or keep a fact about two names."""
    if "fact" in given:
        return _keep_fact(engine, given)
    if given.get("type") == SETTLES:
        done = engine.answer(given["source"], given["target"], by_agent=True)
        structured = {"source": done["id"], "target": done["answer"], "type": SETTLES}
        return ToolResult(structured, f"settled: {done['answer']}")
    try:
        how = given.get("type", "related"), given.get("strength", 1.0)
        made = engine.link(given["source"], given["target"], *how, by_agent=True)
    except NotFoundError as error:
        error.advise("give the ids of two memories, or two names and a fact")
        raise
    return ToolResult(_plain_link(made), f"linked: {made.source} —{made.type}→ {made.target}")


def _keep_fact(engine: Engine, given: Arguments) -> ToolResult:
    from commonplace.graph.text import RELATED, statement, when

    if "strength" in given:
        raise UsageError("a fact has no strength", remedy="leave it out")
    type_ = given.get("type", RELATED)
    stated = statement(given["source"], given["target"], given["fact"], relation_type=type_)
    added = engine.graph.add_episode(stated, source="json", source_description="memory_link")
    notices = [
        *added.notices,
        *(f"ended: {each.fact} ({when(each)})" for each in added.ended),
        *(f"disputed: {each.fact} ({when(each)})" for each in added.disputed),
    ]
    source, target, text = stated["source"], stated["target"], "stored, but it states no fact"
    if added.relations:
        # The names as they are known, and the type that the sentence states: perhaps more than was given.
        fact = added.relations[0]
        source, target, type_ = fact.source_name, fact.target_name, fact.relation_type
        text = f"stored: {source} —{type_}→ {target}"
    structured = {"source": source, "target": target, "type": type_, "notices": notices}
    return ToolResult(structured, "\n".join([text, *notices]))


def graph(engine: Engine, given: Arguments) -> ToolResult:
    """Return what is known about a memory or an entity, or what answers a query."""
    if given.get("id") == REVIEW:
        return _waiting(engine, given)
    if ("id" in given) == ("query" in given):
        raise UsageError("memory_graph needs something to start at", remedy="give either id or query")
    from commonplace.graph.text import entity_item, fact_item

    known = _about(engine, given) if "id" in given else _answers(engine, given)
    facts = []
    for fact in known.facts:
        plain = fact.to_dict()
        named = [(name.removesuffix("_name"), plain[name]) for name in _OF_FACT]
        facts.append(("facts", {name: value for name, value in named if value or name == "score"}, fact_item(fact)))
    memories = []
    for each in known.memories:
        text = engine.snippet(each.content, given.get("query", ""), SNIPPET_CHARACTERS)
        memories.append(("memories", {"id": each.id, "snippet": text}, (each.id, text, "memory")))
    entities = []
    for entity in known.entities:
        plain = entity.to_dict()
        entities.append(("entities", {name: plain[name] for name in _OF_ENTITY}, entity_item(entity)))
    items = [each for pair in zip_longest(facts, memories) for each in pair if each is not None] + entities

    def rendered(size: int) -> tuple[dict[str, Any], str]:
        structured: dict[str, list[dict[str, Any]]] = {"facts": [], "entities": [], "memories": []}
        fenced: dict[str, list[Any]] = {kind: [] for kind in structured}
        for kind, form, item in items[:size]:
            structured[kind].append(form)
            fenced[kind].append(item)
        ids = {each["id"] for each in structured["memories"]}
        links = [_plain_link(each) for each in known.links if {each.source, each.target} <= ids]
        lines = [f"{each['source']} —{each['type']}→ {each['target']}" for each in links]
        return {**structured, "links": links}, "\n".join(filter(None, [_fenced(chain(*fenced.values())), *lines]))

    structured, text, notices = _cut(engine, len(items), rendered)
    return ToolResult(structured, "\n".join([text or "Nothing relevant is known.", *known.notices, *notices]))


def _waiting(engine: Engine, given: Arguments) -> ToolResult:
    """Return the open questions; an agent may settle those that no user or untrusted source is a side of."""
    waiting = engine.questions()

    def rendered(size: int) -> tuple[dict[str, Any], str]:
        structured: dict[str, list[dict[str, Any]]] = {"facts": [], "memories": []}
        items = []
        for each in waiting[:size]:
            kind = "facts" if each.kind in ("contradiction", "ending") else "memories"
            for side in each.sides:
                structured[kind].append({"question": each.id, "answers": list(each.answers), **side.to_dict()})
                text = engine.snippet(side.text, "", SNIPPET_CHARACTERS)
                items.append((side.id or each.id, text, f"{each.kind} {each.id}"))
        how = f'Ask the user, then memory_link: source question, target answer, type "{SETTLES}".'
        return structured, "\n".join([_fenced(items), how])

    structured, text, _ = _cut(engine, min(len(waiting), given.get("limit", _LIMIT)), rendered)
    return ToolResult(structured, text if waiting else "Nothing waits for the user.")


@dataclass(frozen=True, slots=True)
class _Known:
    facts: Sequence[RelationView] = ()
    entities: Sequence[EntityView] = ()
    memories: Sequence[Memory] = ()
    links: Sequence[Link] = ()
    notices: Sequence[str] = ()


def _about(engine: Engine, given: Arguments) -> _Known:
    id_, depth, limit, times = given["id"], given.get("depth", _DEPTH), given.get("limit", _LIMIT), _times(given)
    try:
        memory = engine.get(id_, touch=False)
    except NotFoundError:
        try:
            near = engine.graph.neighbourhood(id_, depth, limit, **times)
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no memory {id_!r:.80}, and {error.args[0]}", remedy="name one by its id, or ask by a query"
            ) from error
        return _Known(near.relations, near.entities, notices=["there is more"] if near.is_capped else ())
    around = engine.neighbourhood(memory.id, depth=depth, limit=limit)
    said = memory.content[:_QUERY_CHARACTERS]
    made = engine.graph.build_context(memory.entities, limit, query=said, **times)
    return _Known(made.facts, made.entities, around.memories, around.links, made.notices)


def _answers(engine: Engine, given: Arguments) -> _Known:
    query, limit, times = given["query"], given.get("limit", _LIMIT), _times(given)
    facts = engine.graph.search_edges(query, limit, **times)
    entities = engine.graph.search_entities(query, limit, **times)
    hits = engine.search(query, 1, ("memory",), as_of=times.get("as_of"))
    # That there are no memories is no news to who is shown facts.
    of_memories = hits.notices if hits.hits or not (facts or entities) else ()
    notices = list(dict.fromkeys(chain(facts.notices, entities.notices, of_memories)))
    if not hits.hits:
        return _Known(facts, entities, notices=notices)
    around = engine.neighbourhood(hits.hits[0].owner_id, depth=given.get("depth", _DEPTH), limit=limit)
    return _Known(facts, entities, around.memories, around.links, notices)


def _times(given: Arguments) -> dict[str, Any]:
    return {name: given[key] for name, key in (("as_of", "asOf"), ("valid_at", "validAt")) if key in given}


def _plain_link(link: Link) -> dict[str, Any]:
    return {"source": link.source, "target": link.target, "type": link.type, "strength": link.strength}


def _fenced(items: Iterable[Any]) -> str:
    """Return a block of recalled texts, each an item of a fence or (reference, text, label)."""
    from commonplace.formats.fence import FenceItem, fence  # none is needed to list the tools

    return fence(FenceItem(*each) if isinstance(each, tuple) else each for each in items)


def _cut(
    engine: Engine, count: int, rendered: Callable[[int], tuple[dict[str, Any], str]], items: str = ""
) -> tuple[dict[str, Any], str, Sequence[str]]:
    """Return both forms of an answer with as many of `count` items as fit, and a notice where these are not all."""

    def fits(size: int) -> bool:
        structured, text = rendered(size)
        return has_room(json.dumps(structured), engine.count_tokens) and has_room(text, engine.count_tokens)

    size = largest(count, fits)
    notice = f"Showing {size} of {count}{items} (token limit)."
    return *rendered(size), [notice] if size < count else []


_LIMITS: Final = dict.fromkeys(("num_results", "max_facts"), "limit")
_CALLED: Final = {"as_of": "asOf", "valid_at": "validAt", "relation_type": "type", **_LIMITS}
"""What the tools call parameters that the library calls otherwise."""
_NAMES: Final = frozenset({"id", "ids", "path", "source", "target", "tag", "session"})
"""Parameters that name something stored."""


def _bound(
    handler: Callable[[Engine, Arguments], ToolResult], opened: Opened
) -> Callable[[Arguments, Context], ToolResult]:
    def run(arguments: Arguments, context: Context) -> ToolResult:
        try:
            if handler is _store and context.terms.client:
                arguments = signed(arguments, visible(context.terms.client)[:_MAX_NAME])
            return handler(opened(context), arguments)
        except UsageError as error:
            error.rename(_CALLED)
            raise
        except NotFoundError as error:
            # Answers show models invisible characters escaped: look for the names as they are stored.
            named = dict(arguments)
            for name in _NAMES.intersection(named):
                value = named[name]
                named[name] = [meant(each) for each in value] if isinstance(value, list) else meant(value)
            if named != arguments:
                return run(named, context)
            error.advise("memory_search and memory_graph show what there is")
            raise

    return run


def signed(arguments: Arguments, source: str) -> Arguments:
    """Add a source to a new memory without one; a memory that is updated by its id may have one already."""
    return arguments if "id" in arguments or arguments.get("source") else {**arguments, "source": source}


def _search(engine: Engine, given: Arguments) -> ToolResult:
    from commonplace.search.result import label

    limit, kinds, times = given.get("maxResults", DEFAULT_RESULTS), given.get("kinds") or None, _times(given)
    options: dict[str, Any] = {"min_score": given.get("minScore"), "also": given.get("also"), **times}
    found = engine.search(given["query"], limit, kinds, **options)
    engine.log_retrieval(found)
    if not times:
        engine.count_use(found.hits)
    places = engine.places(hit.owner_id for hit in found.hits if hit.kind == "memory")
    results = [_result(engine, hit, given["query"], places.get(hit.owner_id)) for hit in found.hits]
    labels = [f"id {hit.owner_id}, {label(hit)}" if hit.kind == "memory" else label(hit) for hit in found.hits]

    def rendered(size: int) -> tuple[dict[str, Any], str]:
        return {"results": results[:size]}, _fenced(
            (f"{each['path']}:{each['startLine']}-{each['endLine']}", each["snippet"], label)
            for each, label in zip(results[:size], labels, strict=False)
        )

    structured, text, notices = _cut(engine, len(results), rendered, " results")
    notes = [*found.notices, *notices]
    if found.best_held_back is not None and not found.hits:
        notes.insert(0, f"{found.held_back} lie below the minimum score, the best at {found.best_held_back:.2f}.")
    text = text or "Nothing relevant is known. Other words may help; minScore 0 shows the nearest."
    return ToolResult(structured, "\n".join([text, *notes]))


def _result(engine: Engine, hit: Hit, query: str, place: PagePlace | None) -> dict[str, Any]:
    from commonplace.dates.time import moment_of
    from commonplace.engine.memory_api import MAX_LINES

    path = _path(hit, place)
    if place is not None:
        first, last = place.first_line, place.last_line
    elif hit.lines is not None:
        first, last = hit.lines
    else:
        # The lines count in the whole memory. In a document that is no file they count from the passage itself: to
        # find its text every owner has to be looked at, too much for each hit.
        size = hit.text.count("\n") + 1
        whole = engine.read(path, 1, MAX_LINES).text if hit.kind == "memory" and size < MAX_LINES else hit.text
        first = whole[: max(0, whole.find(hit.text))].count("\n") + 1
        last = first + size - 1
    return {
        "id": hit.owner_id,
        "path": path,
        "startLine": first,
        "endLine": last,
        "score": round(hit.score, 4),
        "confidence": hit.confidence,
        "snippet": engine.snippet(hit.text, query, MEMORY_SNIPPET_CHARACTERS),
        "source": hit.kind,
        **({} if hit.at is None else {"at": moment_of(hit.at).date().isoformat()}),
        **({} if hit.superseded_by is None else {"supersededBy": hit.superseded_by}),
    }


def _path(hit: Hit, place: PagePlace | None) -> str:
    from commonplace.engine.memory_api import ARTIFACT_PREFIX, MEMORY_PREFIX
    from commonplace.settings.paths import is_page_name

    if place is not None:
        return place.path
    if not hit.path:
        return f"{MEMORY_PREFIX}{hit.owner_id}"
    return f"{ARTIFACT_PREFIX}{hit.path}" if is_page_name(hit.path.rpartition("/")[2]) else hit.path


def _get(engine: Engine, given: Arguments) -> ToolResult:
    from commonplace.engine.memory_api import ARTIFACT_PREFIX, MEMORY_PREFIX

    first = given.get("from", 1)
    excerpt = engine.read(given["path"], first, given.get("lines", DEFAULT_LINES), touch=True)
    path = excerpt.path
    # A use of what a search may have found is logged; of a page, that of the memory at the first line.
    if path.startswith(MEMORY_PREFIX):
        engine.log_use(path.removeprefix(MEMORY_PREFIX))
    elif path not in engine.pages():
        engine.log_use(path.removeprefix(ARTIFACT_PREFIX), "artifact")
    elif (id_ := engine.memory_at(path, excerpt.first_line)) is not None:
        engine.log_use(id_)
    # Escaped, as it is sent: escapes take more room.
    lines = visible(excerpt.text).split("\n")
    room = MAX_TOKENS - 2 * engine.count_tokens(path) - 100

    def fits(size: int) -> bool:
        return engine.count_tokens(json.dumps("\n".join(lines[:size]))) <= room

    size = largest(len(lines), fits) or 1
    text = "\n".join(lines[:size]) if fits(size) else beginning(lines[0], room // 2, engine.count_tokens)
    structured: dict[str, Any] = {"path": path, "text": text}
    after = first + size
    shown = _fenced([(f"{path}:{first}-{after - 1}", text, f"of {excerpt.total_lines} lines")])
    if len(text) < len("\n".join(lines[:size])):
        structured["cut"] = True
        shown += f"\nLine {first} was cut at the token limit."
    if after <= excerpt.total_lines:
        structured["nextFrom"] = after
        shown += f"\nContinue from line {after}."
    return ToolResult(structured, shown)


def _context(engine: Engine, given: Arguments) -> ToolResult:
    budget = given.get("maxTokens", min(CONTEXT_TOKENS, engine.settings.context.max_tokens))
    made = engine.context(given.get("task", ""), budget, agent=given.get("agent"))
    engine.log_retrieval(made, "context")
    structured = {"text": made.text, "references": [f"@{each}" for each in made.references], "tokens": made.tokens}
    nothing = "Nothing relevant is known yet."
    if made.left_out:
        nothing = f"Nothing relevant fits in {budget} tokens; raise the budget."
    return ToolResult(structured, "\n".join([made.text or nothing, *made.notices]))


def _store(engine: Engine, given: Arguments) -> ToolResult:
    named = {name: value for name, value in given.items() if name != "id"}
    if "id" not in given:
        memory = engine.remember(**named)
    elif "origin" in given:
        raise UsageError("the origin of a memory cannot be changed", remedy="leave it out, or store a new memory")
    else:
        # A correction: fields that are not given stay as they are.
        memory = engine.update(given["id"], **named)
    structured = {"id": memory.id, "outcome": memory.outcome, "tier": memory.tier, "notices": list(memory.notices)}
    return ToolResult(structured, "\n".join([f"{memory.outcome}: {memory.id} ({memory.tier})", *memory.notices]))


def _forget(engine: Engine, given: Arguments) -> ToolResult:
    named = {name: given[name] for name in ("ids", "tag", "source", "session") if name in given}
    if len(named) != 1:
        raise UsageError(
            f"memory_forget takes one selector, got {len(named)}", remedy="give one of ids, tag, source, session"
        )
    is_meant = bool(given.get("confirm"))
    receipt = engine.forget(named.pop("ids", None), dry_run=not is_meant, **named)
    counts = {name: number for name, number in receipt.counts.items() if number}
    notices = [*(f"waiting: {each}" for each in receipt.waiting), *(f"outside: {each}" for each in receipt.outside)]
    if len(receipt.ids) > _MAX_IDS:
        notices.insert(0, f"{len(receipt.ids)} ids in all, {_MAX_IDS} are shown")
    notices += [*(f"still in {file}: {what}" for file, what in receipt.found), *receipt.notices]
    shown_notices = [beginning(each, 100, engine.count_tokens) for each in notices[:_MAX_IDS]]
    structured = {
        "forgotten": is_meant,
        "verified": receipt.verified,
        "ids": list(receipt.ids[:_MAX_IDS]),
        "counts": counts,
        "notices": shown_notices,
    }
    deleted = ", ".join(f"{name} {number}" for name, number in counts.items())
    if not is_meant:
        return ToolResult(structured, f"Would delete: {deleted}. Nothing was changed; pass confirm=true to delete.")
    proof = "verified, nothing is left in the store" if receipt.verified else "not verified yet, see the notices"
    return ToolResult(structured, "\n".join([f"Deleted: {deleted}; {proof}.", *shown_notices]))


def _why(engine: Engine, given: Arguments) -> ToolResult:
    found = engine.search(given["query"], MAX_RESULTS, min_score=0.0)
    wanted = given["id"]
    places = engine.places(each.owner_id for each in found.hits if each.kind == "memory")
    names = ((each, {each.id, each.owner_id, each.path, _path(each, places.get(each.owner_id))}) for each in found.hits)
    hit = next((each for each, known in names if wanted and wanted in known), None)
    if hit is None:
        raise NotFoundError(
            f"{wanted!r:.80} is not among the {len(found.hits)} nearest to that query",
            remedy="give an id or path that memory_search returned for it",
        )
    receipt = engine.why(found, hit.id)
    signals = {each.name: round(each.value, 4) for each in receipt.signals}
    rejected = [f"{each.reference} ({each.score:.2f}): {each.reason}" for each in receipt.rejected[:_MAX_REJECTED]]
    structured: dict[str, Any] = {
        "rank": receipt.rank,
        "score": round(receipt.score, 4),
        "signals": {**signals, "probability": round(receipt.probability or 0.0, 4)},
        "matched": [term[:60] for term in receipt.matched_terms[:_MAX_IDS]],
        "missing": [term[:60] for term in receipt.missing_terms[:_MAX_IDS]],
        "rejected": [beginning(each, 60, engine.count_tokens) for each in rejected],
    }
    words = ", ".join(structured["matched"]) or "none"
    values = ", ".join(f"{name} {value:.2f}" for name, value in signals.items())
    moved = f" Ranked above {receipt.stands_before}, which is older." if receipt.stands_before else ""
    head = f"Rank {receipt.rank}, score {receipt.score:.2f}, {receipt.confidence}.{moved}"
    return ToolResult(structured, f"{head} {values}. Matching words: {words}.")


CountTokens = Callable[[str], int]


def beginning(text: str, tokens: int, count: CountTokens) -> str:
    """Return a text as it is shown, cut to a number of tokens with a mark at the end."""
    text = visible(text)
    if len(text) <= tokens or count(text) <= tokens:  # a token has a character at least
        return text
    most = min(len(text), tokens * 16)
    size = bisect_right(range(1, most), tokens - 1, key=lambda end: count(text[:end]))
    return text[:size].rstrip() + "…"


def ending(lines: Sequence[str], tokens: int, count: CountTokens) -> list[str]:
    """Return as many of the last lines as fit into a number of tokens."""
    size = largest(len(lines), lambda size: count("\n".join(lines[len(lines) - size :])) <= tokens)
    return list(lines[len(lines) - size :])


Opened = Callable[[Context], "Engine"]
"""Returns the engine, opened by the first call of a tool, and directs its progress to that request."""


_HANDLERS: Final[Mapping[str, Callable[[Engine, Arguments], ToolResult]]] = {
    "memory_search": _search,
    "memory_get": _get,
    "memory_context": _context,
    "memory_store": _store,
    "memory_link": link,
    "memory_graph": graph,
    "memory_why": _why,
    "memory_forget": _forget,
}


# Over HTTP every request makes a registry of its own.
@cache
def tool_forms() -> Sequence[Mapping[str, Any]]:
    """Return the tools as they are listed."""
    with open(__file__.removesuffix("py") + "json", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not loaded
        forms: Sequence[Mapping[str, Any]] = json.load(file)
    return forms


def tools_of(opened: Opened) -> tuple[Offer, ...]:
    """Return the tools over an engine."""
    return tuple(Offer(form, _bound(_HANDLERS[form["name"]], opened)) for form in tool_forms())
