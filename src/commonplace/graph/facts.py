"""A fact while it is reckoned: what a relation says, and what must be remembered of its sources to judge it again.

The latter stands in the relation's attributes under a key of our own, which nobody is shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
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


_SHARED: Final = tuple(
    each.name for each in fields(Relation) if each.name in Fact.__dataclass_fields__ and each.name != "attributes"
)
"""What a fact has as its relation has it."""
_REMEMBERED: Final = tuple(each.name for each in fields(Fact) if each.name not in (*_SHARED, "text", "attributes"))
"""What a fact has beside, which stands in the attributes of its relation where it is not as by default."""


def fact_of(relation: Relation) -> Fact:
    """Return a stored relation as a fact."""
    attributes = json.loads(relation.attributes)
    own = attributes.pop(OWN, {})
    values = {name: getattr(relation, name) for name in _SHARED}
    values |= {name: own[name] for name in _REMEMBERED if name in own}
    values["rivals"] = set(own.get("rivals", ()))
    return Fact(**values, text=relation.fact, attributes=attributes)


def relation_of(fact: Fact) -> Relation:
    """Return a fact as it is stored."""
    own = {**{name: getattr(fact, name) for name in _REMEMBERED}, "rivals": sorted(fact.rivals)}
    said = {name: value for name, value in own.items() if value or (value == 0.0 and value is not False)}
    attributes = json.dumps({**fact.attributes, OWN: said}, sort_keys=True)
    return Relation(**{name: getattr(fact, name) for name in _SHARED}, fact=fact.text, attributes=attributes)


def shown_attributes(attributes: str) -> dict[str, Any]:
    """Return the attributes of an entity or a relation without what is ours."""
    if attributes == "{}":
        return {}  # most have none, and hundreds are shown
    return {name: value for name, value in json.loads(attributes).items() if name != OWN}
