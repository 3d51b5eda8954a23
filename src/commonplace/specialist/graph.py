"""The verb query_graph: which entities hang together, told by the graph, and by memories and their links beside it.

What the graph and the memories lead to is one ranking. The graph begins with the entities that the query names and goes
two facts far; memories tell which entities they name together, and one link on. All of it is bounded, however much
there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commonplace.formats.csp_response import Reference, Relation, Response
from commonplace.specialist.asked import ENTITY
from commonplace.specialist.facts import disputed, facts_of, relation_of
from commonplace.specialist.fitting import largest
from commonplace.specialist.recalling import LONGEST_TOPIC, MIN_RELEVANCE, MOST_TOPICS, memory_of, rationale_of
from commonplace.specialist.relations import MOST_LINKS, about, ends, relations
from commonplace.text.analysis import analyse

if TYPE_CHECKING:
    from commonplace.graph.views import EntityView
    from commonplace.memories.memory import Memory
    from commonplace.search.result import SearchResult
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book

MAX_RESULTS: Final = 10

_MEMORIES = 20
"""So many the search may bring."""
_LINKS_FOLLOWED = 5
"""From each memory."""
_DEPTH, _AROUND = 2, 30
"""How far from an entity that the query names facts are told, and of how many entities."""
_STEP = 0.8
"""What is left of the relevance with each fact between; a round guess."""

_ENDING: Final = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,4}$")


@dataclass(frozen=True, slots=True)
class _Told:
    """A relation, and how relevant what tells it is."""

    relation: Relation
    relevance: float
    is_disputed: bool = False


def query_graph(book: Book, asked: Asked) -> Response:
    """Find entities and how they hang together."""
    query = asked.topic()
    limit = asked.most_results(MAX_RESULTS)
    floor = asked.share("min_relevance", MIN_RELEVANCE)
    asked.finish()
    wanted = frozenset(analyse(query))
    result = book.search(query, _MEMORIES, ("memory",), min_score=0.0)
    memories = list(_first(book, result, wanted, floor))
    facts = facts_of(book, query, max(limit, MOST_LINKS), floor)
    entities = _entities(book, query, limit, wanted, floor)
    told = [
        *(_Told(relation_of(fact), fact.score, fact.disputed) for fact in facts),
        *_around(book, entities, wanted),
        *_first_step(memories),
        *_along_links(book, memories),
    ]
    best = _best(told)[: min(limit, MOST_LINKS)]
    named = _named(memories, entities, wanted)[:limit]
    size = largest(book, lambda size: _response(named[:size], best), len(named))
    response = _response(named[: max(1, size)], best)
    if not (result.degraded or facts.degraded):
        return response
    return replace(response, status="PARTIAL", rationale=rationale_of((*result.notices, *facts.notices)))


def _entities(book: Book, query: str, limit: int, wanted: frozenset[str], floor: float) -> list[EntityView]:
    """Return the entities of the graph that the query names, or that are relevant, best first."""
    found = book.graph.search_entities(query, limit)
    return [each for each in found if each.score >= floor or _named_by(each, wanted)]


def _around(book: Book, entities: Sequence[EntityView], wanted: frozenset[str]) -> Iterator[_Told]:
    """Yield the facts about the entity that the query names best, the less relevant the farther they are."""
    named = [each for each in entities if _named_by(each, wanted)]
    if not named:
        return
    centre = max(named, key=lambda each: (_named_by(each, wanted), each.score))
    near = book.graph.neighbourhood(centre.uuid, _DEPTH, _AROUND)
    distances = {each.uuid: each.distance or 0 for each in near.entities}
    for fact in near.relations:
        steps = min(distances.get(end, _DEPTH) for end in (fact.source_node_uuid, fact.target_node_uuid))
        yield _Told(relation_of(fact), centre.score * _STEP**steps, fact.disputed)


def _named_by(entity: EntityView, wanted: frozenset[str]) -> float:
    return max(_share(name, wanted) for name in (entity.name, *entity.aliases))


def _first(book: Book, result: SearchResult, wanted: frozenset[str], floor: float) -> Iterator[tuple[Memory, float]]:
    """Yield the memories that are relevant, or about an entity that the query names, with their relevance."""
    for hit in result.hits:
        memory = memory_of(book, hit.owner_id)
        is_relevant = hit.score >= floor and hit.confidence != "weak"
        if memory is not None and (is_relevant or any(_share(name, wanted) for name in memory.entities)):
            yield memory, hit.score


def _first_step(memories: Sequence[tuple[Memory, float]]) -> Iterator[_Told]:
    for memory, relevance in memories:
        for relation in relations(memory):
            yield _Told(relation, relevance)


def _along_links(book: Book, memories: Sequence[tuple[Memory, float]]) -> Iterator[_Told]:
    """Yield the links of the memories, and what the memories at their other ends tell."""
    for memory, relevance in memories:
        for link in book.links(memory.id)[:_LINKS_FOLLOWED]:
            other = memory_of(book, link.target if link.source == memory.id else link.source)
            if other is None or other.status == "archived":
                continue
            source, target = (memory, other) if link.source == memory.id else (other, memory)
            if about(source) != about(target):
                yield _Told(Relation(about(source), about(target), is_directed=True), relevance * link.strength)
            for relation in relations(other):
                yield _Told(relation, relevance * link.strength)


def _best(told: Sequence[_Told]) -> list[_Told]:
    """Return each relation once, the most relevant first; one that states a direction goes before one that does not."""
    ranked = sorted(
        told,
        key=lambda each: (
            -each.relevance,
            not each.relation.is_directed,
            each.relation.source,
            each.relation.target,
        ),
    )
    directed = {ends(each.relation) for each in ranked if each.relation.is_directed}
    chosen: dict[tuple[str, str] | frozenset[str], _Told] = {}
    for each in ranked:
        between = ends(each.relation)
        if each.relation.is_directed:
            chosen.setdefault((each.relation.source, each.relation.target), each)
        elif between not in directed:
            chosen.setdefault(between, each)
    return list(chosen.values())


def _named(
    memories: Sequence[tuple[Memory, float]], entities: Sequence[EntityView], wanted: frozenset[str]
) -> list[tuple[str, float]]:
    """Return the entities that the query names with their relevance, or all where it names none; the best first."""
    found: dict[str, float] = {}
    shares: dict[str, float] = {}
    for entity in entities:
        found[entity.name] = max(entity.score, found.get(entity.name, 0.0))
        shares[entity.name] = max(_named_by(entity, wanted), shares.get(entity.name, 0.0))
    for memory, relevance in memories:
        for name in memory.entities:
            found[name] = max(relevance, found.get(name, 0.0))
            shares[name] = max(_share(name, wanted), shares.get(name, 0.0))
    chosen = [name for name in found if shares[name]] or list(found)
    return [(name, found[name]) for name in sorted(chosen, key=lambda name: (-shares[name], -found[name], name))]


def _share(name: str, wanted: frozenset[str]) -> float:
    """Return which share of a name's words the query has; the ending of a file's name, which many share, is none."""
    terms = frozenset(analyse(_ENDING.sub("", name)))
    return len(terms & wanted) / len(terms) if terms else 0.0


def _response(named: Sequence[tuple[str, float]], told: Sequence[_Told]) -> Response:
    names = [name for name, _ in named]
    linked = [name for each in told for name in (each.relation.source, each.relation.target)]
    entities = [name for name in dict.fromkeys((*names, *linked)) if len(name) <= LONGEST_TOPIC]
    return Response(
        scope=tuple(entities[:MOST_TOPICS]),
        data=tuple(Reference(ENTITY, name) for name in names),
        relevance=None if told else tuple(relevance for _, relevance in named),
        links=tuple(each.relation for each in told) or None,
        link_relevance=tuple(each.relevance for each in told) or None,
        facts=disputed(each.relation for each in told if each.is_disputed),
    )
