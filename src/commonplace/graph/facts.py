"""Assertions and facts under resolution: intervals, evidence, and the rule by which one fact ends another.

The newer of two facts ends the older one only in the clear case: both hold at some moment, and the older one began
before the newer one. A fact that ends before it begins holds at no time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import Any, Final, Literal, NamedTuple

from commonplace.dataclasses import MISSING, dataclass, field, fields
from commonplace.extract.model import BESIDE, SENSITIVE
from commonplace.graph.kinds import SYMMETRIC, Kinds, is_added
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Happening, Relation

EVIDENCE: Final = "evidence"
"""The key of an assertion in the detail of a happening."""

Saying = Literal["said", "denied", "once", "settled", "beside"]


@dataclass(frozen=True, slots=True)
class Assertion:
    """What one source says of a fact. Times are seconds since the epoch.

    Attributes:
        home: the id of the fact that it was said of first; a fact that it makes gets that id.
        source, target: ids of entities, as the names were understood at first; they may be others' now.
        saying: it holds, it holds no longer, it held once, a person decided that it and not its rivals hold, or that
            they hold beside each other.
        text: a sentence that says it.
        at: when we learnt it; `told` is when it was said.
        order: its place among what was said of facts that it may contradict.
        valid_from, valid_to: as it was stated; None is unstated.
        episode: an id, "" where somebody gave the fact as such; `start`, `end`: its place there.
        aspect, doubt: see `Claim`.
        type: of the relation, whose row holds it.
        of: the episode whose statement has ended, as its memory was linked as overtaken; "" where the source says so.
    """

    home: str
    source: str
    target: str
    saying: Saying
    text: str
    at: float
    told: float
    order: int = 0
    valid_from: float | None = None
    valid_to: float | None = None
    trust: float = 1.0
    confidence: float = 1.0
    group: str = ""
    episode: str = ""
    start: int = 0
    end: int = 0
    reason: str = ""
    attributes: str = "{}"
    aspect: str = ""
    doubt: str = ""
    type: str = ""
    of: str = ""

    @property
    def begins(self) -> float | None:
        """Since when the fact holds by this: as stated, else when it was said; None where it was past by then."""
        if self.valid_from is not None:
            return self.valid_from
        return None if self.valid_to is not None and self.valid_to <= self.told else self.told

    @property
    def sentence(self) -> str:
        """What two facts share that one sentence says; "" for a fact that was given as such."""
        return f"{self.episode} {self.start} {self.end}" if self.episode else ""


def happening(what: str, relation: str, evidence: Assertion, reason: str) -> Happening:
    """Return what happened to a relation, and why, when something was said of it."""
    # What has a column is not repeated here.
    known = {**_DEFAULTS, "home": relation, "at": evidence.at, "episode": evidence.episode, "type": evidence.type}
    values = ((name, getattr(evidence, name)) for name in Assertion.__slots__)
    detail = {name: value for name, value in values if value != known.get(name)}
    told = json.dumps({EVIDENCE: detail}, sort_keys=True)
    return Happening("relation", relation, evidence.at, what, reason, evidence.episode, told)


def assertion_of(found: Happening, type_: str = "") -> Assertion | None:
    """Return what was said of a relation, which is of this type, if a happening records it; else None."""
    detail: Mapping[str, Any] = json.loads(found.detail).get(EVIDENCE) or {}
    columns = {"home": found.subject, "at": found.at, "episode": found.episode, "type": type_}
    return Assertion(**{**columns, **detail}) if detail else None


_DEFAULTS: Final[Mapping[str, Any]] = {each.name: each.default for each in fields(Assertion) if each.default != MISSING}


Span = tuple[float | None, float | None]
"""A stretch of time, half-open; None is open."""


def overlap(first: Span, second: Span) -> bool:
    """Return whether two stretches of time share a moment; one that ends before it begins shares none."""
    starts = [-inf if start is None else start for start, _ in (first, second)]
    ends = [inf if end is None else end for _, end in (first, second)]
    return max(starts) < min(ends)


MIN_CONFIDENCE: Final = 0.5
"""What is said with less confidence ends nothing."""

OWN: Final = "_"
"""The key of attributes that are ours."""


@dataclass(slots=True)
class Fact:
    """A relation that can change, and what is remembered of its sources.

    Attributes:
        is_dated: a source says since when it holds; else `valid_from` is when the first of them said so.
        still: the last time that a source said that it holds just then; `told`: that it said it at all.
        rivals: ids of facts that cannot be true beside it, where nobody knows which is.
        is_doubted: somebody said that it has ended, who is not believed.
        is_denied: nothing is known of it but that it has ended, or was so once.
        is_added: it is said to hold beside others.
        sentence: what the first source says it in.
        order, born: of the last and of the first thing that was said of it.
        aspect, doubt: see `Claim`.
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
    sentence: str = ""
    order: int = 0
    born: int = 0
    aspect: str = ""
    doubt: str = ""

    @property
    def span(self) -> Span:
        return self.valid_from, self.valid_to

    def end(self, at: float | None, known: float) -> None:
        """Let it hold up to a time, None for never, as we learn now; what was stated before stays to be seen."""
        if self.expired_at is None:
            self.stated_to = self.valid_to
            self.expired_at = known
        if at is None:
            self.is_retracted = True
        else:
            self.valid_to = at


class Verdict(NamedTuple):
    """What two facts mean for each other that cannot both hold.

    Attributes:
        reason: a clause for people, that says nothing of what the facts say.
        ends: the fact that ends, None where nobody knows which of them holds.
        at: when it ends.
    """

    reason: str
    ends: Fact | None = None
    at: float | None = None


LATELY: Final = 31 * 86_400.0
"""A change as recent as this, in seconds, may be told after somebody has still said what held before it."""


def judge(first: Fact, second: Fact) -> Verdict | None:
    """Return what becomes of two facts of one source and a single-valued type whose targets differ, None for nothing.

    Which of them came first into the graph does not matter, only when they hold and what their sources said.
    """
    if not overlap(first.span, second.span):
        return None
    began_later = first if (first.valid_from or 0.0) > (second.valid_from or 0.0) else second
    if began_later.doubt == BESIDE:
        return None
    if first.valid_from is None or second.valid_from is None:
        return Verdict("the beginning of one of them is unknown")
    if first.valid_from == second.valid_from:
        return Verdict("both begin at the same time")
    older, newer = (first, second) if first.valid_from < second.valid_from else (second, first)
    assert older.valid_from is not None and newer.valid_from is not None
    began, told = newer.valid_from, older.told
    is_late = told is not None and told > began and began - older.valid_from < LATELY
    if is_late and older.is_dated and not newer.is_dated:
        # "We moved last week", said right after "we live in Boston": who said that had not thought of it.
        assert told is not None
        older, newer, began = newer, older, told
    if doubt := _doubt(older, newer, began):
        return Verdict(doubt)
    return Verdict("a newer fact began then, and only one of them can hold", older, began)


def _doubt(older: Fact, newer: Fact, began: float) -> str:
    """Return why it is not clear that the newer fact ends the older one, "" where it is."""
    if newer.valid_to is not None and (older.valid_to is None or newer.valid_to < older.valid_to):
        return "the newer one ends before the older one"
    if older.still is not None and older.still > began:
        return "the older one was still stated after the newer one is said to begin"
    if not newer.is_dated and older.told is not None and older.told > began:
        return "the one that began earlier was stated later"
    if newer.trust < older.trust:
        return "the source of the newer one is trusted less"
    if newer.confidence < MIN_CONFIDENCE:
        return "the newer one is only hinted at"
    return SENSITIVE if older.doubt == SENSITIVE else newer.doubt


def first_said(evidence: Assertion, id_: str, type_: str, meant: tuple[str, str]) -> Fact:
    """Return the fact that a first assertion makes, of the entities that its names mean now."""
    begins, ends = evidence.begins, evidence.valid_to
    if ends is not None and begins is not None and ends <= begins:
        ends = None
    is_denied = evidence.saying in ("denied", "once")
    if is_denied:
        begins, ends = evidence.valid_from, evidence.told if evidence.valid_to is None else evidence.valid_to
        begins = None if begins is not None and begins >= ends else begins
    return Fact(
        **{name: getattr(evidence, name) for name in _FROM_ASSERTIONS},
        id=id_,
        source=meant[0],
        target=meant[1],
        type=type_,
        created_at=evidence.at,
        valid_from=begins,
        valid_to=ends,
        stated_to=ends,
        attributes=json.loads(evidence.attributes),
        is_dated=evidence.valid_from is not None,
        still=evidence.told if evidence.valid_from is None and ends is None else None,
        told=evidence.told if ends is None else None,
        is_denied=is_denied,
        is_added=is_added(evidence.text),
        born=evidence.order,
    )


_FROM_ASSERTIONS: Final = ("text", "order", "confidence", "trust", "group", "sentence", "aspect", "doubt")
_SHARED: Final = tuple(
    each.name for each in fields(Relation) if each.name in Fact.__dataclass_fields__ and each.name != "attributes"
)
"""What a fact has as its relation has it."""
_REMEMBERED: Final = tuple(each.name for each in fields(Fact) if each.name not in (*_SHARED, "text", "attributes"))
"""What else a fact has, kept in the attributes of its relation unless it is the default."""


def fact_of(relation: Relation) -> Fact:
    attributes = json.loads(relation.attributes)
    own = attributes.pop(OWN, {})
    values = {name: getattr(relation, name) for name in _SHARED}
    values |= {name: own[name] for name in _REMEMBERED if name in own}
    values["rivals"] = set(own.get("rivals", ()))
    return Fact(**values, text=relation.fact, attributes=attributes)


def relation_of(fact: Fact) -> Relation:
    own = {**{name: getattr(fact, name) for name in _REMEMBERED}, "rivals": sorted(fact.rivals)}
    said = {name: value for name, value in own.items() if value or (value == 0.0 and value is not False)}
    attributes = json.dumps({**fact.attributes, OWN: said}, sort_keys=True)
    return Relation(**{name: getattr(fact, name) for name in _SHARED}, fact=fact.text, attributes=attributes)


def shown_attributes(attributes: str) -> dict[str, Any]:
    """Return the attributes of an entity or a relation without what is ours."""
    if attributes == "{}":
        return {}  # most have none, and hundreds are shown
    return {name: value for name, value in json.loads(attributes).items() if name != OWN}


@dataclass(frozen=True, slots=True)
class FactKey:
    """Which facts have a say on one another. `target` is "" where all targets do, `aspect` where it does not count."""

    source: str
    type: str
    target: str = ""
    aspect: str = ""


def key_among(kinds: Kinds, source: str, type_: str, target: str, aspect: str = "") -> FactKey:
    if kinds.is_single(type_):
        return FactKey(source, type_)
    if aspect:
        return FactKey(source, type_, aspect=aspect)
    if type_ in SYMMETRIC:
        source, target = sorted((source, target))
    return FactKey(source, type_, target)


def key_of(relation: Relation, kinds: Kinds) -> FactKey:
    return key_among(kinds, relation.source, relation.type, relation.target, fact_of(relation).aspect)


def facts_of(graph: GraphReading, key: FactKey) -> list[Relation]:
    """Return the facts of a key, past and retracted ones too, in the order in which they came."""
    # One source may have thousands of facts of one type, of which few are of an aspect.
    said = json.dumps({"aspect": key.aspect})[1:-1] if key.aspect else ""
    found = graph.facts(key.source, key.type, key.target or None, said)
    if key.target and key.type in SYMMETRIC and key.target != key.source:
        found += graph.facts(key.target, key.type, key.source)
    read = [(each, fact_of(each)) for each in found]
    if key.aspect or key.target:
        read = [pair for pair in read if pair[1].aspect == key.aspect]
    return [each for each, _ in sorted(read, key=lambda pair: (pair[0].created_at, pair[1].born, pair[0].id))]
