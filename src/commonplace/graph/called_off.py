"""Find in a graph the fact that is meant where a move or a job is said to be called off. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commonplace.graph.cancelling import is_move
from commonplace.graph.contradicting import LEAST_SURE
from commonplace.graph.facts import fact_of
from commonplace.graph.slots import Slot, facts_of
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.extract.result import Cancellation
    from commonplace.store.graph_contract import GraphReading
    from commonplace.types.graph import Entity, Episode, Relation

_UNSURE: Final = LEAST_SURE / 2
"""So sure is it which move is meant where nobody says whose: enough to doubt one, not to take it back."""
_LOOKED_AT: Final = 50


@dataclass(frozen=True, slots=True)
class Meant:
    """The fact that most likely is called off, and how sure that is."""

    relation: Relation
    confidence: float


class TakenBack:
    """Finds in a graph what is called off."""

    def __init__(self, graph: GraphReading) -> None:
        self._graph = graph

    def find(
        self, called_off: Cancellation, entities: Sequence[Entity], said: Sequence[str], episode: Episode
    ) -> Meant | None:
        """Return the fact that is meant: the newest that still holds, of whom and where to it is said.

        Args:
            entities: those of the episode, by their places in its extraction.
            said: the ids of the facts that the episode has spoken of before.
        """
        if called_off.source is not None:
            source = entities[called_off.source].id
            some = [each for type_ in called_off.types for each in facts_of(self._graph, Slot(source, type_))]
            found = _newest(some, called_off, entities, episode.reference_time)
            return None if found is None else self._sure_as_said(found, called_off)
        own = list(self._graph.relations(said).values())
        found = _newest(
            [each for each in own if each.type in called_off.types], called_off, entities, episode.reference_time
        )
        if found is not None and is_move(found.fact):
            return Meant(found, called_off.confidence)
        groups = (episode.group,) if episode.group else ()
        wanted = GraphFilter(types=called_off.types, groups=groups)
        recent = [each for each in self._graph.list_relations(wanted, limit=_LOOKED_AT) if is_move(each.fact)]
        found = _newest(recent, called_off, entities, episode.reference_time)
        return None if found is None else Meant(found, min(_UNSURE, called_off.confidence))

    def _sure_as_said(self, found: Relation, called_off: Cancellation) -> Meant | None:
        """Return a fact as what is meant; not what goes on since something was called off, unless it is named."""
        if not any(each.what == "reopened" for each in self._graph.happenings("relation", found.id)):
            return Meant(found, called_off.confidence)
        return None if called_off.target is None else Meant(found, min(_UNSURE, called_off.confidence))


def _newest(
    facts: Sequence[Relation], called_off: Cancellation, entities: Sequence[Entity], told: float
) -> Relation | None:
    """Return the fact that began last of those that can be meant; one that was a move goes before others."""
    target, kept = (None if place is None else entities[place].id for place in (called_off.target, called_off.kept))
    able = [
        each
        for each in facts
        if not (each.is_retracted or fact_of(each).is_denied)
        and (each.valid_to is None or each.valid_to > told)
        and target in (None, each.target)
        and kept != each.target
        and (target is not None or is_move(each.fact))
    ]
    return max(
        able, key=lambda each: (is_move(each.fact), each.valid_from or 0.0, each.created_at, each.id), default=None
    )
