"""A fact while it is reckoned: what a relation says, and what must be remembered of its sources to judge it again.

The latter stands in the relation's attributes under a key of our own, which nobody is shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from commonplace.graph.contradicting import Standing
from commonplace.graph.evidence import Evidence
from commonplace.graph.kinds import is_added, topic_of
from commonplace.types.graph import Relation

OWN: Final = "_"
"""The key of attributes that are ours."""


@dataclass(slots=True)
class Fact:
    """A relation that can change, and what is remembered of its sources.

    Attributes:
        is_dated: a source says since when it holds.
        still, told: see `contradicting.Standing`.
        rivals: ids of facts that cannot be true beside it, where nobody knows which is.
        is_doubted: somebody said that it has ended, who is not believed.
        is_denied: nothing is known of it but that it has ended, or was so once.
        is_added: it is said to hold beside others.
        topic: what it is about where that counts, in normal form.
        sentence: what the first source says it in.
        order, born: of the last and of the first thing that was said of it.
    """

    id: str
    source: str
    target: str
    type: str
    text: str
    created_at: float
    valid_from: float | None = None
    valid_to: float | None = None
    stated_to: float | None = None
    expired_at: float | None = None
    is_retracted: bool = False
    dispute: str = ""
    disputed_at: float | None = None
    confidence: float = 1.0
    trust: float = 1.0
    group: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    is_dated: bool = False
    still: float | None = None
    told: float | None = None
    rivals: set[str] = field(default_factory=set)
    is_doubted: bool = False
    is_denied: bool = False
    is_added: bool = False
    topic: str = ""
    sentence: str = ""
    order: int = 0
    born: int = 0

    @property
    def standing(self) -> Standing:
        """What counts of it when it meets another."""
        return Standing(
            self.valid_from, self.valid_to, self.is_dated, self.still, self.told, self.trust, self.confidence
        )

    def end(self, at: float, known: float) -> None:
        """Let it hold up to a time, as we learn now; what was stated before stays to be seen."""
        if self.expired_at is None:
            self.stated_to = self.valid_to
            self.expired_at = known
        self.valid_to = at

    def retract(self, known: float) -> None:
        """Say that it was never true, as we learn now."""
        if self.expired_at is None:
            self.stated_to = self.valid_to
            self.expired_at = known
        self.is_retracted = True


def first_said(evidence: Evidence, id_: str, type_: str, meant: tuple[str, str]) -> Fact:
    """Return the fact that something makes which is said for the first time, of the entities that are meant now."""
    begins, ends = evidence.begins, evidence.valid_to
    if ends is not None and begins is not None and ends <= begins:
        ends = None
    is_denied = evidence.saying in ("denied", "once")
    if is_denied:
        begins, ends = evidence.valid_from, evidence.told if evidence.valid_to is None else evidence.valid_to
        begins = None if begins is not None and begins >= ends else begins
    return Fact(
        id=id_,
        source=meant[0],
        target=meant[1],
        type=type_,
        text=evidence.text,
        created_at=evidence.at,
        valid_from=begins,
        valid_to=ends,
        stated_to=ends,
        confidence=evidence.confidence,
        trust=evidence.trust,
        group=evidence.group,
        attributes=json.loads(evidence.attributes),
        is_dated=evidence.valid_from is not None,
        still=evidence.told if evidence.valid_from is None and ends is None else None,
        told=evidence.told if ends is None else None,
        is_denied=is_denied,
        is_added=is_added(evidence.text),
        topic=topic_of(evidence.text),
        sentence=evidence.sentence,
        order=evidence.order,
        born=evidence.order,
    )


def fact_of(relation: Relation) -> Fact:
    """Return a stored relation as a fact."""
    attributes = json.loads(relation.attributes)
    own = attributes.pop(OWN, {})
    return Fact(
        id=relation.id,
        source=relation.source,
        target=relation.target,
        type=relation.type,
        text=relation.fact,
        created_at=relation.created_at,
        valid_from=relation.valid_from,
        valid_to=relation.valid_to,
        stated_to=relation.stated_to,
        expired_at=relation.expired_at,
        is_retracted=relation.is_retracted,
        dispute=relation.dispute,
        disputed_at=relation.disputed_at,
        confidence=relation.confidence,
        trust=relation.trust,
        group=relation.group,
        attributes=attributes,
        is_dated=own.get("is_dated", False),
        still=own.get("still"),
        told=own.get("told"),
        rivals=set(own.get("rivals", ())),
        is_doubted=own.get("is_doubted", False),
        is_denied=own.get("is_denied", False),
        is_added=own.get("is_added", False),
        topic=own.get("topic", ""),
        sentence=own.get("sentence", ""),
        order=own.get("order", 0),
        born=own.get("born", 0),
    )


def relation_of(fact: Fact) -> Relation:
    """Return a fact as it is stored."""
    own = {
        "is_dated": fact.is_dated,
        "still": fact.still,
        "told": fact.told,
        "rivals": sorted(fact.rivals),
        "is_doubted": fact.is_doubted,
        "is_denied": fact.is_denied,
        "is_added": fact.is_added,
        "topic": fact.topic,
        "sentence": fact.sentence,
        "order": fact.order,
        "born": fact.born,
    }
    said = {name: value for name, value in own.items() if value or (value == 0.0 and value is not False)}
    return Relation(
        id=fact.id,
        source=fact.source,
        target=fact.target,
        type=fact.type,
        fact=fact.text,
        created_at=fact.created_at,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        stated_to=fact.stated_to,
        expired_at=fact.expired_at,
        is_retracted=fact.is_retracted,
        dispute=fact.dispute,
        disputed_at=fact.disputed_at,
        confidence=fact.confidence,
        trust=fact.trust,
        group=fact.group,
        attributes=json.dumps({**fact.attributes, OWN: said}, sort_keys=True),
    )


def shown_attributes(attributes: str) -> dict[str, Any]:
    """Return the attributes of an entity or a relation without what is ours."""
    if attributes == "{}":
        return {}  # most have none, and hundreds are shown
    return {name: value for name, value in json.loads(attributes).items() if name != OWN}
