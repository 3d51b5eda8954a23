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
from commonplace.extract.model import AT_TIMES, BESIDE, SENSITIVE
from commonplace.graph.kinds import SYMMETRIC, Kinds, is_added
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Happening, Relation

EVIDENCE: Final = "evidence"
"""Key of the assertion in the detail of a happening."""

Saying = Literal["said", "denied", "once", "settled", "beside"]
Span = tuple[float | None, float | None]
"""A half-open interval of time; None is open."""
MIN_CONFIDENCE: Final = 0.5
"""Confidence below which an assertion ends no fact."""
OWN: Final = "_"
"""Key of the internal attributes of entities and relations."""
_DAY: Final = 86_400.0
LATELY: Final = 31 * _DAY
"""Seconds after a change within which the old fact may still be stated before the change is reported."""
_FROM_ASSERTIONS: Final = ("text", "order", "confidence", "trust", "group", "sentence", "aspect", "doubt")


@dataclass(frozen=True, slots=True)
class Assertion:
    """What one source says about a fact. Times are seconds since the epoch.

    Attributes:
        home: the id of the fact that it was first about; a fact that it creates gets that id.
        source, target: ids of entities, as the names were first resolved; merges and splits may map them to others.
        saying: "said": it holds; "denied": it no longer holds; "once": it held once; "settled": a person decided that
            it holds and its rivals do not; "beside": a person decided that all of them hold.
        text: a sentence that states it.
        at: when the graph learnt it; `told`: when it was said.
        order: its position among the assertions of the facts of its key.
        valid_from, valid_to: as stated; None is unstated.
        episode: an id, "" for a fact added directly; `start`, `end`: its span in the episode.
        aspect, doubt: see `Claim`.
        type: the relation type; stored in the row of the relation.
        of: the episode whose fact this ends because its memory was linked as overtaken; or the fact that something
            was left or ceased ends, or whose successor this is; "" for what the source says by itself.
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
        """When the fact begins: as stated, else when it was said; None if it was past by then."""
        if self.valid_from is not None:
            return self.valid_from
        return None if self.valid_to is not None and self.valid_to <= self.told else self.told

    @property
    def sentence(self) -> str:
        """Key shared by the facts of one sentence; "" for a fact added directly."""
        return f"{self.episode} {self.start} {self.end}" if self.episode else ""


def happening(what: str, relation: str, evidence: Assertion, reason: str) -> Happening:
    """Return the happening that records a change of a relation, its reason and its evidence."""
    # Values that have a column of their own are left out of the detail.
    defaults = {**_DEFAULTS, "home": relation, "at": evidence.at, "episode": evidence.episode, "type": evidence.type}
    values = ((name, getattr(evidence, name)) for name in Assertion.__slots__)
    detail = {name: value for name, value in values if value != defaults.get(name)}
    detail_json = json.dumps({EVIDENCE: detail}, sort_keys=True)
    return Happening("relation", relation, evidence.at, what, reason, evidence.episode, detail_json)


def assertion_of(event: Happening, type_: str = "") -> Assertion | None:
    """Return the assertion that a happening of a relation records, None if it has none; `type_`: of the relation."""
    detail: Mapping[str, Any] = json.loads(event.detail).get(EVIDENCE) or {}
    columns = {"home": event.subject, "at": event.at, "episode": event.episode, "type": type_}
    return Assertion(**{**columns, **detail}) if detail else None


_DEFAULTS: Final[Mapping[str, Any]] = {item.name: item.default for item in fields(Assertion) if item.default != MISSING}


def overlap(first: Span, second: Span) -> bool:
    """Return whether two intervals share a moment; one that ends before it begins shares none."""
    starts = [-inf if start is None else start for start, _ in (first, second)]
    ends = [inf if end is None else end for _, end in (first, second)]
    return max(starts) < min(ends)


@dataclass(slots=True)
class Fact:
    """A relation under resolution, with a summary of its assertions.

    Attributes:
        is_dated: a source states since when it holds; else `valid_from` is when the first source said so.
        still: the last time at which a source said that it then held; `told`: the last time it was said at all.
        rivals: ids of facts that conflict with it, while it is open which holds.
        is_doubted: an assertion that it has ended was not believed.
        is_denied: all that is known of it is that it has ended, or held once.
        is_added: it is said to hold beside others.
        sentence: the `Assertion.sentence` of its first source.
        order, born: the `order` of its last and of its first assertion.
        last_told: the latest time at which one of its assertions was made, whatever it says.
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
    last_told: float = 0.0
    aspect: str = ""
    doubt: str = ""

    @property
    def span(self) -> Span:
        return self.valid_from, self.valid_to

    def end(self, at: float | None, learnt_at: float) -> None:
        """End the fact `at` a time, None to retract it, as learnt at `learnt_at`; `stated_to` keeps its stated end."""
        if self.expired_at is None:
            self.stated_to = self.valid_to
            self.expired_at = max(learnt_at, self.created_at)
        if at is None:
            self.is_retracted = True
        else:
            self.valid_to = at


class Verdict(NamedTuple):
    """The outcome for two facts that cannot both hold: which of them ends, and when; None if it is unclear.

    The reason is a clause for people that quotes neither fact.
    """

    reason: str
    ends: Fact | None = None
    at: float | None = None


def judge(first: Fact, second: Fact) -> Verdict | None:
    """Return the verdict on two facts of one source and a single-valued type with different targets, None if both hold.

    The order in which they entered the graph does not matter, only when they hold and what their sources said.
    """
    if not overlap(first.span, second.span):
        return None
    began_later = first if (first.valid_from or 0.0) > (second.valid_from or 0.0) else second
    if began_later.doubt == BESIDE or AT_TIMES in (first.doubt, second.doubt):
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
        # "We moved last week", said right after "we live in Boston": the speaker of the latter forgot the move.
        assert told is not None
        older, newer, began = newer, older, min(told, (newer.told or told) + _DAY)
    if doubt := _doubt(older, newer, began):
        return Verdict(doubt)
    return Verdict("a newer fact began then, and only one of them can hold", older, began)


def _doubt(older: Fact, newer: Fact, began: float) -> str:
    """Return why it is unclear that the newer fact ends the older one, "" if it is clear."""
    if newer.stated_to is not None and (older.valid_to is None or newer.stated_to < older.valid_to):
        return "the newer one ends before the older one"
    reported = newer.told if newer.is_dated and newer.told is not None else -inf
    if older.still is not None and older.still > began and not older.still < min(reported, began + LATELY):
        return "the older one was still stated after the newer one is said to begin"
    if not newer.is_dated and older.told is not None and older.told > began:
        return "the one that began earlier was stated later"
    if newer.trust < older.trust:
        return "the source of the newer one is trusted less"
    if newer.confidence < MIN_CONFIDENCE:
        return "the newer one is only hinted at"
    return SENSITIVE if older.doubt == SENSITIVE else newer.doubt


def first_said(evidence: Assertion, id_: str, type_: str, end_ids: tuple[str, str]) -> Fact:
    """Return the fact that a first assertion creates; `end_ids`: ids of its source and target after merges."""
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
        source=end_ids[0],
        target=end_ids[1],
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
        last_told=evidence.told,
    )


_SHARED: Final = tuple(name for name in Relation.__slots__ if name in Fact.__slots__ and name != "attributes")
"""Fields that `Fact` and `Relation` share."""
_REMEMBERED: Final = tuple(item.name for item in fields(Fact) if item.name not in (*_SHARED, "text", "attributes"))
"""Other fields of `Fact`, stored in the internal attributes of the relation if they are set."""


def fact_of(relation: Relation) -> Fact:
    attributes = json.loads(relation.attributes)
    internal = attributes.pop(OWN, {})
    values = {name: getattr(relation, name) for name in _SHARED}
    values |= {name: internal[name] for name in _REMEMBERED if name in internal}
    values["rivals"] = set(internal.get("rivals", ()))
    return Fact(**values, text=relation.fact, attributes=attributes)


def relation_of(fact: Fact) -> Relation:
    internal = {**{name: getattr(fact, name) for name in _REMEMBERED}, "rivals": sorted(fact.rivals)}
    stored = {name: value for name, value in internal.items() if value or (value == 0.0 and value is not False)}
    attributes = json.dumps({**fact.attributes, OWN: stored}, sort_keys=True)
    return Relation(**{name: getattr(fact, name) for name in _SHARED}, fact=fact.text, attributes=attributes)


def shown_attributes(attributes: str) -> dict[str, Any]:
    """Return the attributes of an entity or a relation without the internal ones."""
    if attributes == "{}":
        return {}  # the common case, on a hot path
    return {name: value for name, value in json.loads(attributes).items() if name != OWN}


@dataclass(frozen=True, slots=True)
class FactKey:
    """Groups facts that may affect each other. `target` is "" if any target does; `aspect` is "" without one."""

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
    """Return the facts of a key, past and retracted ones included, in the order in which they came."""
    # Filter by aspect in SQL: a source may have thousands of facts of a type, and few of one aspect.
    aspect_json = json.dumps({"aspect": key.aspect})[1:-1] if key.aspect else ""
    relations = graph.facts(key.source, key.type, key.target or None, aspect_json)
    if key.target and key.type in SYMMETRIC and key.target != key.source:
        relations += graph.facts(key.target, key.type, key.source)
    pairs = [(relation, fact_of(relation)) for relation in relations]
    if key.aspect or key.target:
        pairs = [pair for pair in pairs if pair[1].aspect == key.aspect]
    return [relation for relation, _ in sorted(pairs, key=lambda pair: (pair[0].created_at, pair[1].born, pair[0].id))]
