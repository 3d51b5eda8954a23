"""Render memories and facts as lines of a response within a token budget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice
from typing import Final

from commonplace.dates.time import Moment
from commonplace.engine import Engine
from commonplace.formats.csp import Passage, Relation, Response, format_response, write_relation
from commonplace.graph.text import when
from commonplace.graph.views import FoundRelations, RelationView
from commonplace.memory.view import Memory
from commonplace.text.budget import MAX_TOKENS, most_tokens
from commonplace.text.snippet import snippet

DISPUTED: Final = "DISPUTED"


def facts_of(
    engine: Engine, topic: str, limit: int, floor: float, *, as_of: Moment | None = None, valid_at: Moment | None = None
) -> FoundRelations:
    """Return the facts that are relevant to a topic, best first."""
    found = engine.graph.search_edges(topic, limit, as_of=as_of, valid_at=valid_at)
    relevant = tuple(fact for fact in found if fact.score >= floor)
    return FoundRelations(topic, relevant, found.degraded, found.notices)


def relation_of(fact: RelationView, strength: float | None = None, *, is_directed: bool = True) -> Relation:
    """Return a fact as a link between the names of its ends."""
    return Relation(fact.source_name, fact.target_name, is_directed, strength)


def passage_of(fact: RelationView, topic: str, characters: int) -> Passage:
    """Return the sentence of a fact, with when it holds and whether it is disputed."""
    state = f" ({'disputed, ' if fact.disputed else ''}{when(fact)})"
    return Passage(fact.uuid, snippet(fact.fact, topic, limit=characters - len(state)).text + state)


def disputed(relations: Iterable[Relation]) -> tuple[tuple[str, str], ...]:
    """Return the line that tells which links are disputed, if any are."""
    told = dict.fromkeys(write_relation(Relation(each.source, each.target, each.is_directed)) for each in relations)
    return ((DISPUTED, ",".join(told)),) if told else ()


def fits(engine: Engine, response: Response) -> bool:
    """Return whether a response has at most 2500 tokens."""
    return _tokens(engine, response) <= MAX_TOKENS


def largest(engine: Engine, make: Callable[[int], Response], count: int) -> int:
    """Return the largest size, up to `count`, whose response fits; 0 where none does.

    Args:
        make: returns the response of a size; a larger one has more tokens.
    """
    return bisect_right(range(1, count + 1), MAX_TOKENS, key=lambda size: _tokens(engine, make(size)))


def _tokens(engine: Engine, response: Response) -> int:
    """Return how many tokens a response has, or may have at most where that is few enough."""
    text = format_response(response)
    bound = most_tokens(text)
    return bound if bound <= MAX_TOKENS else engine.count_tokens(text)


MAX_LINKS: Final = 5
"""In one response."""


def relations(memory: Memory) -> Iterator[Relation]:
    """Yield which entities a memory names together, at most as many as a response has room for."""
    yield from islice((Relation(*pair) for pair in combinations(memory.entities, 2)), MAX_LINKS)


def about(memory: Memory) -> str:
    """Return what stands for a memory at the end of a link."""
    return memory.entities[0] if len(memory.entities) == 1 else memory.id


def ends(relation: Relation) -> frozenset[str]:
    """Return the two ends, whichever comes first."""
    return frozenset((relation.source, relation.target))
