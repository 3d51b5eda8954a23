"""The tools of the graph: what is known of something and when it was true, and how memories and names hang together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.mcp.memory.budget import has_room, largest
from commonplace.mcp.registry import ToolResult

if TYPE_CHECKING:
    from commonplace import Memory
    from commonplace.engine import Engine
    from commonplace.graph.views import EntityView, RelationView
    from commonplace.types import Link

Arguments = Mapping[str, Any]

SNIPPET_CHARACTERS: Final = 200
_DEPTH, _LIMIT = 2, 10
_QUERY_CHARACTERS: Final = 1_000


def link(book: Engine, given: Arguments) -> ToolResult:
    """Link two memories, or keep a fact about two names."""
    if "fact" in given:
        return _keep_fact(book, given)
    try:
        made = book.link(given["source"], given["target"], given.get("type", "related"), given.get("strength", 1.0))
    except NotFoundError as error:
        error.advise("give the ids of two memories, or two names and a fact")
        raise
    return ToolResult(_plain_link(made), f"linked: {made.source} —{made.type}→ {made.target}")


def graph(book: Engine, given: Arguments) -> ToolResult:
    """Tell what is known of a memory or an entity, or what answers a query."""
    if ("id" in given) == ("query" in given):
        raise UsageError("memory_graph needs something to start at", remedy="give either id or query")
    known = _about(book, given) if "id" in given else _answers(book, given)
    items = [each for pair in zip_longest(known.facts, known.memories) for each in pair if each is not None]
    items += known.entities

    def told(size: int) -> tuple[dict[str, Any], str]:
        return _told(book, known, items[:size], given.get("query", ""))

    def fits(size: int) -> bool:
        structured, text = told(size)
        return has_room(book.count_tokens, json.dumps(structured), text)

    size = largest(len(items), fits)
    structured, text = told(size)
    notes = [*known.notices, *([f"{size} of {len(items)} have room here"] if size < len(items) else [])]
    return ToolResult(structured, "\n".join([text or "Nothing relevant is known.", *notes]))


@dataclass(frozen=True, slots=True)
class _Known:
    facts: Sequence[RelationView] = ()
    entities: Sequence[EntityView] = ()
    memories: Sequence[Memory] = ()
    links: Sequence[Link] = ()
    notices: Sequence[str] = ()


def _about(book: Engine, given: Arguments) -> _Known:
    """Return what lies about a memory, or else about an entity."""
    id_, depth, limit, times = given["id"], given.get("depth", _DEPTH), given.get("limit", _LIMIT), _times(given)
    try:
        memory = book.get(id_, touch=False)
    except NotFoundError:
        try:
            near = book.graph.neighbourhood(id_, depth, limit, **times)
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no memory {id_!r:.80}, and {error.args[0]}", remedy="name one by its id, or ask by a query"
            ) from error
        return _Known(near.relations, near.entities, notices=["there is more"] if near.is_capped else ())
    around = book.neighbourhood(memory.id, depth=depth, limit=limit)
    said = memory.content[:_QUERY_CHARACTERS]
    made = book.graph.build_context(memory.entities, limit, query=said, **times)
    return _Known(made.facts, made.entities, around.memories, around.links, made.notices)


def _answers(book: Engine, given: Arguments) -> _Known:
    """Return the facts and entities that answer a query, and what is linked to the memory that answers it best."""
    query, limit, times = given["query"], given.get("limit", _LIMIT), _times(given)
    facts = book.graph.search_edges(query, limit, **times)
    entities = book.graph.search_entities(query, limit, **times)
    hits = book.search(query, 1, ("memory",), as_of=times.get("as_of"))
    # That there are no memories is no news to who is shown facts.
    of_memories = hits.notices if hits.hits or not (facts or entities) else ()
    notices = dict.fromkeys(chain(facts.notices, entities.notices, of_memories))
    if not hits.hits:
        return _Known(list(facts), list(entities), notices=list(notices))
    around = book.neighbourhood(hits.hits[0].owner_id, depth=given.get("depth", _DEPTH), limit=limit)
    return _Known(list(facts), list(entities), around.memories, around.links, list(notices))


def _told(book: Engine, known: _Known, shown: Iterable[Any], query: str) -> tuple[dict[str, Any], str]:
    """Return both forms of an answer."""
    from commonplace.formats.fence import Recalled, fence
    from commonplace.graph.describing import entity_item, fact_item

    chosen = {id(each) for each in shown}
    facts = [each for each in known.facts if id(each) in chosen]
    entities = [each for each in known.entities if id(each) in chosen]
    memories = [
        {"id": each.id, "snippet": book.snippet(each.content, query, SNIPPET_CHARACTERS)}
        for each in known.memories
        if id(each) in chosen
    ]
    ids = {each["id"] for each in memories}
    links = [_plain_link(each) for each in known.links if {each.source, each.target} <= ids]
    structured = {
        "facts": [_plain_fact(each) for each in facts],
        "entities": [_plain_entity(each) for each in entities],
        "memories": memories,
        "links": links,
    }
    items = [*map(fact_item, facts), *map(entity_item, entities)]
    items += [Recalled(each["id"], each["snippet"], "memory") for each in memories]
    lines = [f"{each['source']} —{each['type']}→ {each['target']}" for each in links]
    return structured, "\n".join(filter(None, [fence(items), *lines]))


def _keep_fact(book: Engine, given: Arguments) -> ToolResult:
    from commonplace.graph.describing import when
    from commonplace.graph.stating import RELATED, statement

    if "strength" in given:
        raise UsageError("a fact has no strength", remedy="leave it out")
    type_ = given.get("type", RELATED)
    stated = statement(given["source"], given["target"], given["fact"], relation_type=type_)
    added = book.graph.add_episode(stated, source="json", source_description="memory_link")
    notices = [
        *added.notices,
        *(f"ended: {each.fact} ({when(each)})" for each in added.ended),
        *(f"disputed: {each.fact} ({when(each)})" for each in added.disputed),
    ]
    # The names as they are known, and the type that the sentence states: perhaps more than was given.
    fact = added.relations[0] if added.relations else None
    ends = (stated["source"], stated["target"]) if fact is None else (fact.source_name, fact.target_name)
    type_ = type_ if fact is None else fact.relation_type
    structured = {"source": ends[0], "target": ends[1], "type": type_, "notices": notices}
    told = "kept, but it states no fact" if fact is None else f"kept: {ends[0]} —{type_}→ {ends[1]}"
    return ToolResult(structured, "\n".join([told, *notices]))


def _times(given: Arguments) -> dict[str, Any]:
    return {name: given[key] for name, key in (("as_of", "asOf"), ("valid_at", "validAt")) if key in given}


def _plain_fact(fact: RelationView) -> dict[str, Any]:
    plain = fact.to_dict()
    names = {"uuid": "uuid", "fact": "fact", "source": "source_name", "relation_type": "relation_type"}
    names |= {"target": "target_name", "valid_from": "valid_from", "valid_to": "valid_to"}
    names |= {"disputed": "disputed", "score": "score"}
    return {name: plain[field] for name, field in names.items() if plain[field] or name == "score"}


def _plain_entity(entity: EntityView) -> dict[str, Any]:
    plain = entity.to_dict()
    return {name: plain[name] for name in ("uuid", "name", "entity_type", "score")}


def _plain_link(link: Link) -> dict[str, Any]:
    return {"source": link.source, "target": link.target, "type": link.type, "strength": link.strength}
