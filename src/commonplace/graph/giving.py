"""Bring a fact that somebody gives as such into a graph under change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.adding import Added
from commonplace.graph.entities import Entities, roots
from commonplace.graph.evidence import Evidence
from commonplace.graph.naming import has_extension
from commonplace.graph.slots import Changed, Slots
from commonplace.types.graph import Entity, Episode

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground, Texts
    from commonplace.store.graph_contract import GraphChange

_ID: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENDS: Final = {
    "LIVES_IN": ("person", "place"),
    "WORKS_FOR": ("person", "organization"),
    "LOCATED_IN": ("concept", "place"),
    "DECIDED": ("concept", "decision"),
}
"""What the ends of a relation most likely are, where nobody says so."""


@dataclass(frozen=True, slots=True)
class GivenFact:
    """A fact as it was given, checked. Times are seconds since the epoch.

    Attributes:
        source, target: names, or ids of entities.
        source_type, target_type: of those that are made; "" follows from the relation.
        fact: a sentence that says it, "" makes one.
    """

    source: str
    type: str
    target: str
    source_type: str = ""
    target_type: str = ""
    fact: str = ""
    valid_from: float | None = None
    valid_to: float | None = None
    trust: float = 1.0
    group: str = ""
    reason: str = ""


def itself(name: str) -> UsageError:
    """Return the error that says that a fact is about one thing alone."""
    return UsageError(
        f"source and target both mean {name!r:.80}",
        remedy="a fact is about two things; name another one",
        parameters=("source", "target"),
    )


def add_fact(graph: GraphChange, ground: Ground, texts: Texts, given: GivenFact, now: float) -> Added:
    """Write a fact that somebody gives.

    Raises:
        NotFoundError: an id is not there.
        UsageError: its ends are one.
    """
    # No episode: it stands for whoever gives the fact, whom no deletion of an episode takes along.
    giver = Episode("", given.fact, now, now, trust=given.trust, group=given.group)
    entities = Entities(graph, ground, texts)
    likely = _ENDS.get(given.type, ("concept", "concept"))
    source = _end(graph, entities, given.source, given.source_type or _type_of(given.source, likely[0]), giver)
    target = _end(graph, entities, given.target, given.target_type or _type_of(given.target, likely[1]), giver)
    if source.id == target.id:
        raise itself(source.name)
    evidence = Evidence(
        home=ground.new_id(),
        source=source.id,
        target=target.id,
        saying="said",
        text=given.fact or f"{source.name} {given.type.replace('_', ' ').lower()} {target.name}",
        at=now,
        told=now,
        valid_from=given.valid_from,
        valid_to=given.valid_to,
        trust=given.trust,
        group=given.group,
        reason=given.reason,
    )
    changed = Changed()
    Slots(graph, ground, texts).say(evidence, given.type, changed)
    ends = (source.id, target.id)
    return Added(giver, ends, tuple(changed.said), tuple(changed.ended), tuple(changed.disputed))


def _end(graph: GraphChange, entities: Entities, name: str, type_: str, giver: Episode) -> Entity:
    root = roots(graph, [name])[name]
    known = graph.entities([root]).get(root)
    if known is not None:
        return entities.keep(known, giver)
    if _ID.fullmatch(name):
        raise NotFoundError(f"there is no entity {name!r}", remedy="see `commonplace graph entities QUERY`")
    return entities.of_name(name, type_, giver)


def _type_of(name: str, likely: str) -> str:
    return "file" if likely == "concept" and has_extension(name) else likely
