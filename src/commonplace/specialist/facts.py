"""Facts of the graph as lines of a response: what a topic leads to, and how a fact is written. It finds no memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from commonplace.formats.csp_response import Passage, Relation, write_relation
from commonplace.graph.describing import when
from commonplace.graph.views import FoundRelations
from commonplace.text.snippets import snippet

if TYPE_CHECKING:
    from commonplace.graph.views import RelationView
    from commonplace.memories.times import Moment
    from commonplace.specialist.book import Book

DISPUTED: Final = "DISPUTED"


def facts_of(
    book: Book, topic: str, limit: int, floor: float, *, as_of: Moment | None = None, valid_at: Moment | None = None
) -> FoundRelations:
    """Return the facts that are relevant to a topic, best first."""
    found = book.graph.search_edges(topic, limit, as_of=as_of, valid_at=valid_at)
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
