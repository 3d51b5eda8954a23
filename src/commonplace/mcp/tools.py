"""The tools: each makes one call of the engine and renders its result as JSON and text.

A model reads their schemas and descriptions (`tools.json`) in every session, so these are short.
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
from commonplace.formats.escaping import unescape, visible
from commonplace.mcp.protocol import CallContext, Offer, ToolResult
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
"""Maximum length of a client's name, which becomes the source of the memories that it stores."""
REVIEW: Final = "review"
"""Given to `memory_graph` instead of an id: return the questions that wait for a person."""
SETTLES: Final = "settles"
"""The type of a link from an open question to its answer."""
_OF_ENTITY: Final = ("uuid", "name", "entity_type", "score")
_OF_FACT: Final = "uuid fact source_name relation_type target_name valid_from valid_to disputed score".split()
_DEPTH, _LIMIT = 2, 10
_QUERY_CHARACTERS: Final = 1_000


def link(engine: Engine, arguments: Arguments) -> ToolResult:
    """Link two memories, or store a fact about two names."""
    if "fact" in arguments:
        return _add_fact(engine, arguments)
    if arguments.get("type") == SETTLES:
        answer = engine.answer(arguments["source"], arguments["target"], by_agent=True)
        structured = {"source": answer["id"], "target": answer["answer"], "type": SETTLES}
        return ToolResult(structured, f"settled: {answer['answer']}")
    try:
        options = arguments.get("type", "related"), arguments.get("strength", 1.0)
        created = engine.link(arguments["source"], arguments["target"], *options, by_agent=True)
    except NotFoundError as error:
        error.advise("give the ids of two memories, or two names and a fact")
        raise
    return ToolResult(_plain_link(created), f"linked: {created.source} —{created.type}→ {created.target}")


def _add_fact(engine: Engine, args: Arguments) -> ToolResult:
    from commonplace.graph.text import RELATED, statement, when

    if "strength" in args:
        raise UsageError("a fact has no strength", remedy="leave it out")
    type_ = args.get("type", RELATED)
    stated = statement(args["source"], args["target"], args["fact"], relation_type=type_)
    added = engine.graph.add_episode(stated, source="json", source_description="memory_link")
    notices = [
        *added.notices,
        *(f"ended: {relation.fact} ({when(relation)})" for relation in added.ended),
        *(f"disputed: {relation.fact} ({when(relation)})" for relation in added.disputed),
    ]
    source, target, text = stated["source"], stated["target"], "stored, but it states no fact"
    if added.relations:
        # Return the resolved names, and the type that the sentence states: they may differ from the arguments.
        fact = added.relations[0]
        source, target, type_ = fact.source_name, fact.target_name, fact.relation_type
        text = f"stored: {source} —{type_}→ {target}"
    structured = {"source": source, "target": target, "type": type_, "notices": notices}
    return ToolResult(structured, "\n".join([text, *notices]))


def graph(engine: Engine, arguments: Arguments) -> ToolResult:
    """Return the facts, entities and memories around a memory or an entity, or those that answer a query."""
    if arguments.get("id") == REVIEW:
        return _review(engine, arguments)
    if ("id" in arguments) == ("query" in arguments):
        raise UsageError("memory_graph needs something to start at", remedy="give either id or query")
    from commonplace.graph.text import entity_item, fact_item

    knowledge = _about(engine, arguments) if "id" in arguments else _answers(engine, arguments)
    facts = []
    for fact in knowledge.facts:
        plain = fact.to_dict()
        named = [(name.removesuffix("_name"), plain[name]) for name in _OF_FACT]
        facts.append(("facts", {name: value for name, value in named if value or name == "score"}, fact_item(fact)))
    memories = []
    for memory in knowledge.memories:
        text = engine.snippet(memory.content, arguments.get("query", ""), SNIPPET_CHARACTERS)
        memories.append(("memories", {"id": memory.id, "snippet": text}, (memory.id, text, "memory")))
    entities = []
    for entity in knowledge.entities:
        plain = entity.to_dict()
        entities.append(("entities", {name: plain[name] for name in _OF_ENTITY}, entity_item(entity)))
    items = [entry for pair in zip_longest(facts, memories) for entry in pair if entry is not None] + entities

    def render(size: int) -> tuple[dict[str, Any], str]:
        structured: dict[str, list[dict[str, Any]]] = {"facts": [], "entities": [], "memories": []}
        fenced: dict[str, list[Any]] = {kind: [] for kind in structured}
        for kind, form, item in items[:size]:
            structured[kind].append(form)
            fenced[kind].append(item)
        ids = {memory_form["id"] for memory_form in structured["memories"]}
        links = [_plain_link(edge) for edge in knowledge.links if {edge.source, edge.target} <= ids]
        lines = [f"{link_form['source']} —{link_form['type']}→ {link_form['target']}" for link_form in links]
        return {**structured, "links": links}, "\n".join(filter(None, [_fenced(chain(*fenced.values())), *lines]))

    structured, text, notices = _cut(engine, len(items), render)
    return ToolResult(structured, "\n".join([text or "Nothing relevant is known.", *knowledge.notices, *notices]))


def _review(engine: Engine, args: Arguments) -> ToolResult:
    """Return the open questions. An agent may settle those in which no side comes from a user or untrusted source."""
    from commonplace.engine.review import is_for_agents, trusts_of

    shown = []
    for question in engine.questions()[: args.get("limit", _LIMIT)]:
        answers = [answer for answer in question.answers if answer != "edit"]  # needs a text, which no link has
        shown.append((question, answers, is_for_agents(trusts_of(engine, question))))

    def render(size: int) -> tuple[dict[str, Any], str]:
        structured: dict[str, list[dict[str, Any]]] = {"facts": [], "memories": []}
        items = []
        for question, answers, is_open in shown[:size]:
            form = {"question": question.id, "asks": question.question, "answers": answers, "userOnly": not is_open}
            label = f"{question.kind}: {', '.join(answers)}" + ("" if is_open else "; only the user may answer")
            items.append((question.id, question.question, label))
            for index, side in enumerate(question.sides):
                kind = "facts" if question.kind in ("contradiction", "ending") else "memories"
                structured[kind].append({**form, **side.to_dict()})
                text = engine.snippet(side.text, "", SNIPPET_CHARACTERS)
                place = ("left", "right", "side")[min(index, 2)]
                items.append((side.id or question.id, text, f"{place} of {question.id}"))
        openness = {is_open for _, _, is_open in shown[:size]}
        how = f'Ask the user, then memory_link: source question, target answer, type "{SETTLES}".'
        lines = [how] * (True in openness)
        if False in openness:
            lines.append(
                "What only the user may answer they settle by `commonplace review`; tell them what you propose."
            )
        return structured, "\n".join([_fenced(items), *lines])

    structured, text, _ = _cut(engine, len(shown), render)
    return ToolResult(structured, text if shown else "Nothing waits for the user.")


@dataclass(frozen=True, slots=True)
class _Knowledge:
    facts: Sequence[RelationView] = ()
    entities: Sequence[EntityView] = ()
    memories: Sequence[Memory] = ()
    links: Sequence[Link] = ()
    notices: Sequence[str] = ()


def _about(engine: Engine, args: Arguments) -> _Knowledge:
    id_, depth, limit, times = args["id"], args.get("depth", _DEPTH), args.get("limit", _LIMIT), _times(args)
    try:
        memory = engine.get(id_, touch=False)
    except NotFoundError:
        try:
            nearby = engine.graph.neighbourhood(id_, depth, limit, **times)
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no memory {id_!r:.80}, and {error.args[0]}", remedy="name one by its id, or ask by a query"
            ) from error
        return _Knowledge(nearby.relations, nearby.entities, notices=["there is more"] if nearby.is_capped else ())
    neighbours = engine.neighbourhood(memory.id, depth=depth, limit=limit)
    content = memory.content[:_QUERY_CHARACTERS]
    context = engine.graph.build_context(memory.entities, limit, query=content, **times)
    return _Knowledge(context.facts, context.entities, neighbours.memories, neighbours.links, context.notices)


def _answers(engine: Engine, args: Arguments) -> _Knowledge:
    query, limit, times = args["query"], args.get("limit", _LIMIT), _times(args)
    facts = engine.graph.search_edges(query, limit, **times)
    entities = engine.graph.search_entities(query, limit, **times)
    hits = engine.search(query, 1, ("memory",), as_of=times.get("as_of"))
    # A notice that there are no memories is of no use beside facts.
    hit_notices = hits.notices if hits.hits or not (facts or entities) else ()
    notices = list(dict.fromkeys(chain(facts.notices, entities.notices, hit_notices)))
    if not hits.hits:
        return _Knowledge(facts, entities, notices=notices)
    neighbours = engine.neighbourhood(hits.hits[0].owner_id, depth=args.get("depth", _DEPTH), limit=limit)
    return _Knowledge(facts, entities, neighbours.memories, neighbours.links, notices)


def _times(args: Arguments) -> dict[str, Any]:
    return {name: args[key] for name, key in (("as_of", "asOf"), ("valid_at", "validAt")) if key in args}


def _plain_link(link: Link) -> dict[str, Any]:
    return {"source": link.source, "target": link.target, "type": link.type, "strength": link.strength}


def _fenced(items: Iterable[Any]) -> str:
    """Return a fenced block of recalled texts, each a `FenceItem` or (reference, text, label)."""
    from commonplace.formats.fence import FenceItem, fence  # not needed to list the tools

    return fence(FenceItem(*item) if isinstance(item, tuple) else item for item in items)


def _cut(
    engine: Engine, count: int, render: Callable[[int], tuple[dict[str, Any], str]], items: str = ""
) -> tuple[dict[str, Any], str, Sequence[str]]:
    """Return the JSON and text of an answer with as many of `count` items as fit, and a notice if some do not."""

    def fits(size: int) -> bool:
        structured, text = render(size)
        return has_room(json.dumps(structured), engine.count_tokens) and has_room(text, engine.count_tokens)

    size = largest(count, fits)
    notice = f"Showing {size} of {count}{items} (token limit)."
    return *render(size), [notice] if size < count else []


_LIMITS: Final = dict.fromkeys(("num_results", "max_facts"), "limit")
_CALLED: Final = {"as_of": "asOf", "valid_at": "validAt", "relation_type": "type", **_LIMITS}
"""The tools' names of parameters, by the library's names where these differ."""
_NAMES: Final = frozenset({"id", "ids", "path", "source", "target", "tag", "session"})
"""Parameters that identify something stored."""


def _bound(
    handler: Callable[[Engine, Arguments], ToolResult], open_engine: EngineOpener
) -> Callable[[Arguments, CallContext], ToolResult]:
    def run(arguments: Arguments, context: CallContext) -> ToolResult:
        try:
            if handler is _store and context.terms.client:
                arguments = with_source(arguments, visible(context.terms.client)[:_MAX_NAME])
            return handler(open_engine(context), arguments)
        except UsageError as error:
            error.rename(_CALLED)
            raise
        except NotFoundError as error:
            # Answers show invisible characters escaped, so a model may send them so: retry with the stored names.
            unescaped = dict(arguments)
            for name in _NAMES.intersection(unescaped):
                value = unescaped[name]
                unescaped[name] = [unescape(text) for text in value] if isinstance(value, list) else unescape(value)
            if unescaped != arguments:
                return run(unescaped, context)
            error.advise("memory_search and memory_graph show what there is")
            raise

    return run


def with_source(arguments: Arguments, source: str) -> Arguments:
    """Add a source to a new memory without one. A memory updated by its id is left alone: it may have a source."""
    return arguments if "id" in arguments or arguments.get("source") else {**arguments, "source": source}


def _search(engine: Engine, args: Arguments) -> ToolResult:
    from commonplace.search.result import label

    limit, kinds, times = args.get("maxResults", DEFAULT_RESULTS), args.get("kinds") or None, _times(args)
    options: dict[str, Any] = {"min_score": args.get("minScore"), "also": args.get("also"), **times}
    result = engine.search(args["query"], limit, kinds, **options)
    engine.log_retrieval(result)
    if not times:
        engine.count_use(result.hits)
    places = engine.places(hit.owner_id for hit in result.hits if hit.kind == "memory")
    results = [_result(engine, hit, args["query"], places.get(hit.owner_id)) for hit in result.hits]
    labels = [f"id {hit.owner_id}, {label(hit)}" if hit.kind == "memory" else label(hit) for hit in result.hits]

    def render(size: int) -> tuple[dict[str, Any], str]:
        return {"results": results[:size]}, _fenced(
            (f"{entry['path']}:{entry['startLine']}-{entry['endLine']}", entry["snippet"], fence_label)
            for entry, fence_label in zip(results[:size], labels, strict=False)
        )

    structured, text, notices = _cut(engine, len(results), render, " results")
    notes = [*result.notices, *notices]
    if result.best_held_back is not None and not result.hits:
        notes.insert(0, f"{result.held_back} lie below the minimum score, the best at {result.best_held_back:.2f}.")
    text = text or "Nothing relevant is known. Other words may help; minScore 0 shows the nearest."
    return ToolResult(structured, "\n".join([text, *notes]))


def _result(engine: Engine, hit: Hit, query: str, location: PagePlace | None) -> dict[str, Any]:
    from commonplace.dates.time import moment_of
    from commonplace.engine.memory_api import MAX_LINES

    path = _path(hit, location)
    if location is not None:
        first, last = location.first_line, location.last_line
    elif hit.lines is not None:
        first, last = hit.lines
    else:
        # Lines count within the whole memory. In a document that is not a file they count from the passage itself:
        # finding its text means a look at every owner, which is too slow for each hit.
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


def _path(hit: Hit, location: PagePlace | None) -> str:
    from commonplace.engine.memory_api import ARTIFACT_PREFIX, MEMORY_PREFIX
    from commonplace.settings.paths import is_page_name

    if location is not None:
        return location.path
    if not hit.path:
        return f"{MEMORY_PREFIX}{hit.owner_id}"
    return f"{ARTIFACT_PREFIX}{hit.path}" if is_page_name(hit.path.rpartition("/")[2]) else hit.path


def _get(engine: Engine, args: Arguments) -> ToolResult:
    from commonplace.engine.memory_api import ARTIFACT_PREFIX, MEMORY_PREFIX

    first = args.get("from", 1)
    excerpt = engine.read(args["path"], first, args.get("lines", DEFAULT_LINES), touch=True)
    path = excerpt.path
    # Log the read as a use of a search's hit; on a page, as a use of the memory at the first line.
    if path.startswith(MEMORY_PREFIX):
        engine.log_use(path.removeprefix(MEMORY_PREFIX))
    elif path not in engine.pages():
        engine.log_use(path.removeprefix(ARTIFACT_PREFIX), "artifact")
    elif (id_ := engine.memory_at(path, excerpt.first_line)) is not None:
        engine.log_use(id_)
    # Count the text as it is sent, escaped: escapes take more room.
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


def _context(engine: Engine, args: Arguments) -> ToolResult:
    budget = args.get("maxTokens", min(CONTEXT_TOKENS, engine.settings.context.max_tokens))
    result = engine.context(args.get("task", ""), budget, agent=args.get("agent"))
    engine.log_retrieval(result, "context")
    structured = {"text": result.text, "references": [f"@{ref}" for ref in result.references], "tokens": result.tokens}
    fallback = "Nothing relevant is known yet."
    if result.left_out:
        fallback = f"Nothing relevant fits in {budget} tokens; raise the budget."
    return ToolResult(structured, "\n".join([result.text or fallback, *result.notices]))


def _store(engine: Engine, args: Arguments) -> ToolResult:
    fields = {name: value for name, value in args.items() if name != "id"}
    if "id" not in args:
        memory = engine.remember(**fields)
    elif "origin" in args:
        raise UsageError("the origin of a memory cannot be changed", remedy="leave it out, or store a new memory")
    else:
        # A correction: omitted fields are unchanged.
        memory = engine.update(args["id"], **fields)
    structured = {"id": memory.id, "outcome": memory.outcome, "tier": memory.tier, "notices": list(memory.notices)}
    return ToolResult(structured, "\n".join([f"{memory.outcome}: {memory.id} ({memory.tier})", *memory.notices]))


def _forget(engine: Engine, args: Arguments) -> ToolResult:
    selector = {name: args[name] for name in ("ids", "tag", "source", "session") if name in args}
    if len(selector) != 1:
        raise UsageError(
            f"memory_forget takes one selector, got {len(selector)}", remedy="give one of ids, tag, source, session"
        )
    is_confirmed = bool(args.get("confirm"))
    receipt = engine.forget(selector.pop("ids", None), dry_run=not is_confirmed, **selector)
    counts = {name: number for name, number in receipt.counts.items() if number}
    notices = [*(f"waiting: {entry}" for entry in receipt.waiting), *(f"outside: {entry}" for entry in receipt.outside)]
    if len(receipt.ids) > _MAX_IDS:
        notices.insert(0, f"{len(receipt.ids)} ids in all, {_MAX_IDS} are shown")
    notices += [*(f"still in {file}: {content}" for file, content in receipt.found), *receipt.notices]
    shown_notices = [beginning(notice, 100, engine.count_tokens) for notice in notices[:_MAX_IDS]]
    structured = {
        "forgotten": is_confirmed,
        "verified": receipt.verified,
        "ids": list(receipt.ids[:_MAX_IDS]),
        "counts": counts,
        "notices": shown_notices,
    }
    deleted = ", ".join(f"{name} {number}" for name, number in counts.items())
    if not is_confirmed:
        return ToolResult(structured, f"Would delete: {deleted}. Nothing was changed; pass confirm=true to delete.")
    proof = "verified, nothing is left in the store" if receipt.verified else "not verified yet, see the notices"
    return ToolResult(structured, "\n".join([f"Deleted: {deleted}; {proof}.", *shown_notices]))


def _why(engine: Engine, args: Arguments) -> ToolResult:
    result = engine.search(args["query"], MAX_RESULTS, min_score=0.0)
    reference = args["id"]
    places = engine.places(hit.owner_id for hit in result.hits if hit.kind == "memory")
    names = ((hit, {hit.id, hit.owner_id, hit.path, _path(hit, places.get(hit.owner_id))}) for hit in result.hits)
    match = next((hit for hit, aliases in names if reference and reference in aliases), None)
    if match is None:
        raise NotFoundError(
            f"{reference!r:.80} is not among the {len(result.hits)} nearest to that query",
            remedy="give an id or path that memory_search returned for it",
        )
    receipt = engine.why(result, match.id)
    signals = {signal.name: round(signal.value, 4) for signal in receipt.signals}
    rejected = [f"{hit.reference} ({hit.score:.2f}): {hit.reason}" for hit in receipt.rejected[:_MAX_REJECTED]]
    structured: dict[str, Any] = {
        "rank": receipt.rank,
        "score": round(receipt.score, 4),
        "signals": {**signals, "probability": round(receipt.probability or 0.0, 4)},
        "matched": [term[:60] for term in receipt.matched_terms[:_MAX_IDS]],
        "missing": [term[:60] for term in receipt.missing_terms[:_MAX_IDS]],
        "rejected": [beginning(line, 60, engine.count_tokens) for line in rejected],
    }
    words = ", ".join(structured["matched"]) or "none"
    values = ", ".join(f"{name} {value:.2f}" for name, value in signals.items())
    moved = f" Ranked above {receipt.stands_before}." if receipt.stands_before else ""
    head = f"Rank {receipt.rank}, score {receipt.score:.2f}, {receipt.confidence}.{moved}"
    return ToolResult(structured, f"{head} {values}. Matching words: {words}.")


CountTokens = Callable[[str], int]


def beginning(text: str, tokens: int, count: CountTokens) -> str:
    """Return the escaped text, cut to a number of tokens and marked with an ellipsis."""
    text = visible(text)
    if len(text) <= tokens or count(text) <= tokens:  # a token has at least one character
        return text
    most = min(len(text), tokens * 16)
    size = bisect_right(range(1, most), tokens - 1, key=lambda end: count(text[:end]))
    return text[:size].rstrip() + "…"


def ending(lines: Sequence[str], tokens: int, count: CountTokens) -> list[str]:
    """Return as many of the last lines as fit in a number of tokens."""
    size = largest(len(lines), lambda size: count("\n".join(lines[len(lines) - size :])) <= tokens)
    return list(lines[len(lines) - size :])


EngineOpener = Callable[[CallContext], "Engine"]
"""Returns the engine, opening it on the first call, and sends its progress to the request."""


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


# Cached because over HTTP every request builds its own registry.
@cache
def tool_forms() -> Sequence[Mapping[str, Any]]:
    """Return the tools in the protocol's form, as listed in `tools.json`."""
    with open(__file__.removesuffix("py") + "json", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not loaded
        forms: Sequence[Mapping[str, Any]] = json.load(file)
    return forms


def tools_of(open_engine: EngineOpener) -> tuple[Offer, ...]:
    """Return the tools, bound to the engine that `open_engine` returns."""
    return tuple(Offer(form, _bound(_HANDLERS[form["name"]], open_engine)) for form in tool_forms())
