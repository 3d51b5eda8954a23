"""The verb query_graph: which entities hang together, told by memories and their links. It finds, and draws nothing.

It begins with the memories that a search finds for the query, and goes one step on: along the links of these memories,
and to memories that name an entity they lead to. Both steps are bounded, however many memories there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commonplace.formats.csp_response import Reference, Relation, Response
from commonplace.specialist.asked import ENTITY
from commonplace.specialist.fitting import largest
from commonplace.specialist.recalling import LONGEST_TOPIC, MIN_RELEVANCE, MOST_TOPICS, memory_of, rationale_of
from commonplace.specialist.relations import MOST_LINKS, about, ends, relations
from commonplace.text.analysis import analyse

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory
    from commonplace.search.result import SearchResult
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book

MAX_RESULTS: Final = 10

_FIRST_STEP = 20
"""Memories that the search may bring."""
_FAN_OUT = 5
"""Entities that the second step starts from, memories that each may bring, and links followed from each memory."""

_ENDING: Final = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,4}$")


@dataclass(frozen=True, slots=True)
class _Told:
    """A relation, and how relevant what tells it is."""

    relation: Relation
    relevance: float


def query_graph(book: Book, asked: Asked) -> Response:
    """Find entities and how they hang together."""
    query = asked.topic()
    limit = asked.most_results(MAX_RESULTS)
    floor = asked.share("min_relevance", MIN_RELEVANCE)
    asked.finish()
    result = book.search(query, _FIRST_STEP, ("memory",), min_score=0.0)
    wanted = frozenset(analyse(query))
    memories = list(_first(book, result, wanted, floor))
    told = _best([*_first_step(memories), *_along_links(book, memories)])
    told = _best([*told, *_second_step(book, told, wanted)])[: min(limit, MOST_LINKS)]
    named = _named(memories, wanted)[:limit]
    size = largest(book, lambda size: _response(named[:size], told), len(named))
    response = _response(named[: max(1, size)], told)
    return replace(response, status="PARTIAL", rationale=rationale_of(result)) if result.degraded else response


def _first(book: Book, result: SearchResult, wanted: frozenset[str], floor: float) -> Iterator[tuple[Memory, float]]:
    """Yield the memories that are relevant, or about an entity that the query names, with their relevance."""
    for hit in result.hits:
        memory = memory_of(book, hit.owner_id)
        if memory is not None and (hit.score >= floor or any(_share(name, wanted) for name in memory.entities)):
            yield memory, hit.score


def _first_step(memories: Sequence[tuple[Memory, float]]) -> Iterator[_Told]:
    for memory, relevance in memories:
        for relation in relations(memory):
            yield _Told(relation, relevance)


def _along_links(book: Book, memories: Sequence[tuple[Memory, float]]) -> Iterator[_Told]:
    """Yield the links of the memories, and what the memories at their other ends tell."""
    for memory, relevance in memories:
        for link in book.links(memory.id)[:_FAN_OUT]:
            other = memory_of(book, link.target if link.source == memory.id else link.source)
            if other is None or other.status == "archived":
                continue
            source, target = (memory, other) if link.source == memory.id else (other, memory)
            if about(source) != about(target):
                yield _Told(Relation(about(source), about(target), is_directed=True), relevance * link.strength)
            for relation in relations(other):
                yield _Told(relation, relevance * link.strength)


def _second_step(book: Book, told: Sequence[_Told], wanted: frozenset[str]) -> Iterator[_Told]:
    """Yield what is told of the entities that the first step led to, less relevant than what led there."""
    reached: dict[str, float] = {}
    for each in told:
        for name in (each.relation.source, each.relation.target):
            if not _share(name, wanted):
                reached.setdefault(name, each.relevance)
    for name, relevance in list(reached.items())[:_FAN_OUT]:
        for hit in book.search(name, _FAN_OUT, ("memory",), min_score=MIN_RELEVANCE).hits:
            memory = memory_of(book, hit.owner_id)
            for relation in relations(memory) if memory is not None else ():
                if name in (relation.source, relation.target):
                    yield _Told(relation, relevance * hit.score)


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


def _named(memories: Sequence[tuple[Memory, float]], wanted: frozenset[str]) -> list[tuple[str, float]]:
    """Return the entities that the query names with their relevance, or all where it names none; the best first."""
    found: dict[str, float] = {}
    for memory, relevance in memories:
        for name in memory.entities:
            found[name] = max(relevance, found.get(name, 0.0))
    shares = {name: _share(name, wanted) for name in found}
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
    )
