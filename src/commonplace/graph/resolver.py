"""Resolve assertions into facts with validity intervals; a pure function of the assertions and their order.

The same assertions in the same order give the same facts. After a deletion, merge or split the remaining assertions are
resolved again from scratch.

A key may have thousands of facts, of which a new assertion overlaps few: cost depends on those few, except where noted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field
from commonplace.extract.model import SENSITIVE, UNSURE
from commonplace.graph.facts import (
    MIN_CONFIDENCE,
    Assertion,
    Fact,
    fact_of,
    first_said,
    judge,
    overlap,
    relation_of,
)
from commonplace.graph.kinds import PER_TOPIC, SYMMETRIC, topic_of
from commonplace.types.graph import Relation

DISPUTES: Final = uuid.UUID("5b0e2f57-6b0e-5d0c-8a39-2a3f6c0b9d11")
"""Namespace of the UUIDv5 of disputes, named by their oldest fact."""
MAX_OVERLAPPING: Final = 512
"""A fact meets so many that end, that begin and that have no end: the nearest in time, the last that came."""


class KeyFacts:
    """Facts in the order in which they came. Whoever changes when one holds tells it by `note`."""

    def __init__(self, facts: Iterable[Fact], *, has_topics: bool = False) -> None:
        """Take over facts.

        Args:
            has_topics: only those about the same meet each other.
        """
        self._has_topics = has_topics
        self._facts: list[Fact] = []
        self._places: dict[str, int] = {}
        self._pairs: dict[frozenset[str], list[Fact]] = {}
        self._topics: dict[str, int] = {}
        self._times = np.full((3, 16), nan)  # by places: beginnings, ends, numbers of topics
        for fact in facts:
            self.add(fact)
        for fact in self._facts:
            fact.rivals &= self._places.keys()

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    def __getitem__(self, id_: str) -> Fact:
        return self._facts[self._places[id_]]

    def add(self, fact: Fact) -> None:
        place = self._places[fact.id] = len(self._facts)
        self._facts.append(fact)
        self._pairs.setdefault(frozenset((fact.source, fact.target)), []).append(fact)
        if place == self._times.shape[1]:
            self._times = np.concatenate((self._times, np.full_like(self._times, nan)), axis=1)
        self.note(fact)

    def note(self, fact: Fact) -> None:
        """Take note of when a fact holds now; what meets no others has times that compare with none."""
        begins = -inf if fact.valid_from is None else fact.valid_from
        topic = self._topics.setdefault(self._key(fact), len(self._topics))
        times = (begins, inf if fact.valid_to is None else fact.valid_to, topic)
        self._times[:, self._places[fact.id]] = times if self._meets_others(fact) else nan

    def between(self, one: str, other: str, begins: float | None = None) -> list[Fact]:
        """Return the facts of two entities, whichever is the source, that are not retracted and end after a time."""
        at = -inf if begins is None else begins
        some = self._pairs.get(frozenset((one, other)), ())
        return [each for each in some if not each.is_retracted and (each.valid_to is None or each.valid_to > at)]

    def met(self, fact: Fact) -> list[Fact]:
        """Return the others that may hold when a fact does; what is retracted, denied or added meets none.

        Those that hold when it begins come first, in order; then those that begin while it holds, the first first.
        """
        if not self._meets_others(fact):
            return []
        at = -inf if fact.valid_from is None else fact.valid_from
        until = inf if fact.valid_to is None else fact.valid_to
        begins, ends, topics = self._times[:, : len(self._facts)]
        is_same = topics == self._topics.get(self._key(fact), -1)
        endless = np.flatnonzero(is_same & (ends == inf))[-MAX_OVERLAPPING:]
        ending = _first(ends, is_same & (ends > at) & (ends < inf))
        later = _first(begins, is_same & (begins >= at))
        places = sorted({*endless, *ending, *later} - {self._places.get(fact.id, -1)})
        earlier = [place for place in places if begins[place] < at]
        inside = sorted((place for place in places if at <= begins[place] < until), key=begins.__getitem__)
        return [self._facts[place] for place in (*earlier, *inside)]

    def name_disputes(self, of: Iterable[Fact]) -> list[Fact]:
        """Give these facts and those that they are in dispute with one id, that of the oldest; "" to undisputed ones.

        Returns:
            The facts whose id has changed.
        """
        changed: list[Fact] = []
        named = set[str]()
        for fact in of:
            if fact.id in named:
                continue
            some = self._disputing(fact)
            named.update(each.id for each in some)
            is_disputed = bool(fact.rivals) or fact.is_doubted
            oldest = min((each.created_at, each.id) for each in some)[1]
            name = str(uuid.uuid5(DISPUTES, oldest)) if is_disputed else ""
            changed += [each for each in some if each.dispute != name]
            for each in some:
                each.dispute, each.disputed_at = name, each.disputed_at if is_disputed else None
        return changed

    def _key(self, fact: Fact) -> str:
        return fact.topic if self._has_topics else ""

    def _meets_others(self, fact: Fact) -> bool:
        is_alone = fact.is_retracted or fact.is_denied or fact.is_added
        return not is_alone and (bool(fact.topic) or not self._has_topics)

    def _disputing(self, fact: Fact) -> list[Fact]:
        """Return the facts that are related to one by what disputes what."""
        found = {fact.id: fact}
        waiting = [fact]
        while waiting:
            new = [self[id_] for id_ in waiting.pop().rivals if id_ not in found]
            found.update((each.id, each) for each in new)
            waiting += new
        return list(found.values())


def _first(times: NDArray[np.float64], are_meant: NDArray[np.bool_]) -> NDArray[np.intp]:
    places = np.flatnonzero(are_meant)
    return places[np.argsort(times[places], kind="stable")][:MAX_OVERLAPPING]


MAX_DISPUTED: Final = 16
"""A fact that comes disputes no more of those that it meets: they are related without it, and share one dispute."""
_FAR_REACHING: Final = frozenset({"settled", "beside"})
"""Sayings that may change any fact of a slot."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How facts of one type and source are computed.

    Attributes:
        is_single: one of them holds at a time.
        compare: of two targets: "within" where one lies in the other, so that both hold; "unknown" where it may.
        now: what entities are now that were merged into others.
        is_topic: the source is what its decisions are about; else each says what it is about, or stands alone.
    """

    type: str
    is_single: bool = False
    compare: Callable[[str, str], str] = lambda _one, _other: "apart"
    now: Mapping[str, str] = field(default_factory=dict)
    is_topic: bool = False

    def is_same_topic(self, one: str, other: str) -> bool:
        """Return whether two facts are about the same, where that counts."""
        if self.type not in PER_TOPIC or (one == other and one):
            return True
        return self.is_topic and not (one and other)

    def ends(self, evidence: Assertion) -> tuple[str, str]:
        """Return the entities that something is said of, as they are now."""
        return self.now.get(evidence.source, evidence.source), self.now.get(evidence.target, evidence.target)


@dataclass(frozen=True, slots=True)
class Effect:
    """What became of a fact.

    Attributes:
        evidence: what brought it about.
        is_own: it was said of this very fact.
    """

    relation: str
    what: str
    reason: str
    evidence: Assertion
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedFacts:
    relations: tuple[Relation, ...]
    effects: tuple[Effect, ...]


def resolve_facts(known: Iterable[Relation], evidence: Sequence[Assertion], rule: Rule) -> ResolvedFacts:
    """Return what facts become when more is said of them.

    Args:
        known: all facts of one slot (see `FactKey`), as they were resolved before.
        evidence: in order.
    """
    run = FactResolver(rule, map(fact_of, known))
    effects = [effect for each in evidence for effect in run.take(each)]
    run.changed()
    return ResolvedFacts(tuple(map(relation_of, run.facts)), tuple(effects))


class FactResolver:
    """The facts of one slot, to which saying after saying is added; what one costs does not grow with the facts.

    Attributes:
        facts: in the order in which they came.
        order: the place of what is said last among all that was said of them.
    """

    def __init__(self, rule: Rule, facts: Iterable[Fact]) -> None:
        """Take over all facts of a slot, as they were resolved before."""
        self.rule = rule
        self.facts = KeyFacts(facts, has_topics=rule.type in PER_TOPIC and not rule.is_topic)
        self.order = max((each.order for each in self.facts), default=0)
        self.effects: list[Effect] = []
        self._changed: dict[str, None] = {}
        self._disputed: dict[str, None] = {}

    def take(self, evidence: Assertion) -> tuple[Effect, ...]:
        """Take in one saying, and return what became of facts by it."""
        self.effects = []
        is_far_reaching = evidence.saying in _FAR_REACHING
        if is_far_reaching:
            self._name_disputes()
        self._take(evidence)
        self.order = max(self.order, evidence.order)
        told = list(self.facts)
        if is_far_reaching:
            self.facts.name_disputes(told)
        else:
            told = [self.facts[id_] for id_ in dict.fromkeys(each.relation for each in self.effects)]
            self._disputed.update((each.relation, None) for each in self.effects if each.what == "disputed")
        for each in told:
            self.facts.note(each)
        self._changed.update((each.id, None) for each in told)
        return tuple(self.effects)

    def changed(self) -> list[Relation]:
        """Return the facts that may have changed since this was asked last, in the order in which they did."""
        self._name_disputes()
        changed = [relation_of(self.facts[id_]) for id_ in self._changed]
        self._changed.clear()
        return changed

    def _name_disputes(self) -> None:
        """Name what came to be disputed: to follow a dispute costs more than to add to it, so it is done at the end."""
        changed = self.facts.name_disputes(self.facts[id_] for id_ in self._disputed)
        self._changed.update((each.id, None) for each in changed)
        self._disputed.clear()

    def _take(self, evidence: Assertion) -> None:
        if evidence.saying in ("settled", "beside"):
            if evidence.home in self.facts and not (fact := self.facts[evidence.home]).is_retracted:
                (self._settle if evidence.saying == "settled" else self._keep_beside)(fact, evidence)
            return
        begins = evidence.begins if evidence.saying == "said" else None
        meant = self.rule.ends(evidence)
        ways = (meant, meant[::-1]) if self.rule.type in SYMMETRIC else (meant,)
        same = [each for each in self.facts.between(*meant, begins) if (each.source, each.target) in ways]
        handle = {"denied": self._deny, "once": self._recall}.get(evidence.saying)
        if handle is not None:
            handle(evidence, same)
            return
        known = next((each for each in same if self._is_said(each, evidence)), None)
        if known is not None:
            self._confirm(known, evidence)
        self._judge(known or self._begin(evidence), evidence)

    def _is_said(self, fact: Fact, evidence: Assertion) -> bool:
        """Return whether a source speaks of a known fact, and not of a time when the same was true once more."""
        begins = evidence.begins
        ends = evidence.valid_to
        said = begins, None if ends is not None and begins is not None and ends <= begins else ends
        if not overlap(said, fact.span):
            return False
        topic = topic_of(evidence.text)
        if topic != fact.topic and not self.rule.is_same_topic(topic, fact.topic):
            return False
        if fact.valid_from is None or begins is None or begins >= fact.valid_from or not self.rule.is_single:
            return True
        # It would begin earlier than known: not where something else held in between.
        gap = begins, fact.valid_from
        return not any(self._excludes(each, fact) for each in self.facts if overlap(gap, each.span))

    def _begin(self, evidence: Assertion) -> Fact:
        id_ = evidence.home
        while id_ in self.facts:
            id_ = str(uuid.uuid5(DISPUTES, f"{id_} {evidence.order}"))
        fact = first_said(evidence, id_, self.rule.type, self.rule.ends(evidence))
        self.facts.add(fact)
        self._tell(fact, "created", evidence.reason, evidence, is_own=True)
        return fact

    def _confirm(self, fact: Fact, evidence: Assertion) -> None:
        if evidence.confidence < MIN_CONFIDENCE <= fact.confidence:
            # What is hardly said adds a source to what is surely said, and moves neither its beginning nor its end.
            self._tell(fact, "confirmed", evidence.reason, evidence, is_own=True)
            return
        begins = evidence.begins
        if fact.valid_from is None or (begins is not None and begins < fact.valid_from):
            if begins is not None and (fact.valid_to is None or begins < fact.valid_to):
                fact.valid_from = begins
                fact.is_dated = evidence.valid_from is not None
        elif evidence.valid_from is not None and evidence.valid_from == fact.valid_from:
            fact.is_dated = True
        fact.trust = max(fact.trust, evidence.trust)
        fact.confidence = max(fact.confidence, evidence.confidence)
        fact.is_denied = False
        is_sensitive = SENSITIVE in (fact.doubt, evidence.doubt)
        fact.doubt = SENSITIVE if is_sensitive else fact.doubt and evidence.doubt
        if evidence.valid_to is None:
            fact.told = _latest(fact.told, evidence.told)
            if evidence.valid_from is None:
                fact.still = _latest(fact.still, evidence.told)
        self._tell(fact, "confirmed", evidence.reason, evidence, is_own=True)
        ends = evidence.valid_to
        if ends is None or fact.valid_to is not None or (fact.valid_from is not None and ends <= fact.valid_from):
            return
        if ends > evidence.told:
            fact.valid_to = fact.stated_to = ends
        else:
            self._end(fact, ends, evidence)

    def _deny(self, evidence: Assertion, same: Sequence[Fact]) -> None:
        """Take in that a fact holds no longer."""
        at = evidence.told if evidence.valid_to is None else evidence.valid_to
        held = [each for each in same if each.valid_to is None or each.valid_to > at]
        if not same:
            self._begin(evidence)
            return
        if not held:
            last = max(same, key=lambda each: (each.valid_to or 0.0, each.id))
            self._tell(last, "confirmed", evidence.reason, evidence, is_own=True)
            return
        fact = max(held, key=lambda each: (each.valid_from or 0.0, each.id))
        self._end(fact, at, evidence, is_own=True)

    def _recall(self, evidence: Assertion, same: Sequence[Fact]) -> None:
        """Take in that a fact held once, which says nothing of what holds now."""
        said = evidence.valid_from, evidence.told if evidence.valid_to is None else evidence.valid_to
        fact = next((each for each in same if overlap(said, each.span)), None)
        if fact is None:
            self._begin(evidence)
            return
        self._tell(fact, "confirmed", evidence.reason, evidence, is_own=True)

    def _end(self, fact: Fact, at: float, evidence: Assertion, *, is_own: bool = False) -> None:
        """End a fact because a source says so, or doubt both where it is not believed."""
        doubt = ""
        if fact.valid_from is not None and at <= fact.valid_from:
            doubt = "it is said to have ended before it began"
        elif fact.still is not None and fact.still > at:
            doubt = "it was still stated after it is said to have ended"
        elif evidence.trust < fact.trust:
            doubt = "the source that says it has ended is trusted less"
        elif evidence.confidence < MIN_CONFIDENCE:
            doubt = "its end is only hinted at"
        elif evidence.doubt in (SENSITIVE, UNSURE):
            doubt = evidence.doubt
        elif fact.doubt == SENSITIVE and evidence.episode:
            doubt = fact.doubt
        if doubt:
            fact.is_doubted = True
            fact.disputed_at = evidence.at if fact.disputed_at is None else fact.disputed_at
            self._tell(fact, "disputed", doubt, evidence, is_own=is_own)
        else:
            fact.end(at, evidence.at)
            fact.is_doubted = False
            if not fact.rivals:
                fact.dispute, fact.disputed_at = "", None
            self._tell(fact, "ended", evidence.reason or "it was said to have ended", evidence, is_own=is_own)

    def _judge(self, fact: Fact, evidence: Assertion) -> None:
        """Bring a fact together with those that cannot hold beside it."""
        if not self.rule.is_single:
            return
        unclear = []
        for other in self.facts.met(fact):
            if fact.valid_to is not None and other.valid_from is not None and other.valid_from >= fact.valid_to:
                break  # what comes behind begins later still
            verdict = judge(fact, other)
            if verdict is None:
                continue
            if verdict.ends is None:
                unclear.append((other, verdict.reason))
            elif other.id not in fact.rivals and self._excludes(other, fact):
                # To compare two places costs more than to compare two times.
                if self.rule.compare(fact.target, other.target) == "unknown":
                    unclear.append((other, "one of the two may lie in the other"))
                else:
                    verdict.ends.end(verdict.at, evidence.at)
                    self._tell(verdict.ends, "ended", verdict.reason, evidence)
        self._dispute(fact, unclear, evidence)

    def _dispute(self, fact: Fact, unclear: Sequence[tuple[Fact, str]], evidence: Assertion) -> None:
        """Dispute what still holds when a fact does: of many the nearest, so that none is disputed by many."""
        chosen: list[tuple[int, Fact, str]] = []
        for place in sorted(range(len(unclear)), key=lambda place: (_apart(unclear[place][0], fact), -place)):
            other, reason = unclear[place]
            if len(fact.rivals) + len(chosen) >= MAX_DISPUTED:
                break
            if judge(fact, other) is not None and other.id not in fact.rivals and self._excludes(other, fact):
                chosen.append((place, other, reason))
        for _, other, reason in sorted(chosen, key=lambda each: each[0]):
            fact.rivals.add(other.id)
            other.rivals.add(fact.id)
            for each in (fact, other):
                each.disputed_at = evidence.at if each.disputed_at is None else each.disputed_at
                self._tell(each, "disputed", reason, evidence)

    def _excludes(self, other: Fact, fact: Fact) -> bool:
        """Return whether two facts cannot hold at once, whenever they hold."""
        if other.target == fact.target or other.source != fact.source or other.is_retracted or fact.is_retracted:
            return False
        if other.is_denied or fact.is_denied or other.is_added or fact.is_added:
            return False
        if other.sentence and other.sentence == fact.sentence:
            return False  # whoever says both in one sentence says that both hold
        if not self.rule.is_same_topic(fact.topic, other.topic):
            return False
        return self.rule.compare(fact.target, other.target) != "within"

    def _settle(self, fact: Fact, evidence: Assertion) -> None:
        """Take in that a person says which fact of a dispute is right."""
        fact.is_doubted = False
        self._tell(fact, "settled", evidence.reason, evidence, is_own=True)
        began = fact.valid_from
        for other in self._disputed_by(fact):
            if other.valid_from is not None and began is not None and other.valid_from < began:
                other.end(min(began, other.valid_to or began), evidence.at)
                self._tell(other, "ended", evidence.reason, evidence)
                other.rivals.discard(fact.id)
            else:
                other.end(None, evidence.at)
                self._tell(other, "retracted", evidence.reason, evidence)
                for id_ in other.rivals:
                    self.facts[id_].rivals.discard(other.id)
                other.rivals = set()
        fact.rivals = set()

    def _keep_beside(self, fact: Fact, evidence: Assertion) -> None:
        """Take in that a person says that the facts of a dispute all hold, which excludes none of them any more."""
        together = [each for each in self.facts if each.dispute and each.dispute == fact.dispute]
        for each in together:
            each.rivals = set()
            each.is_doubted, each.is_added = False, True
            self._tell(each, "settled", evidence.reason or "both hold", evidence, is_own=each is fact)

    def _disputed_by(self, fact: Fact) -> list[Fact]:
        """Return the facts that cannot be true beside one, in order: also those that are too many to be remembered."""
        is_full = len(fact.rivals) >= MAX_DISPUTED
        return [
            each
            for each in self.facts
            if each.id in fact.rivals
            or (
                is_full
                and each.dispute == fact.dispute
                and overlap(fact.span, each.span)
                and self._excludes(each, fact)
            )
        ]

    def _tell(self, fact: Fact, what: str, reason: str, evidence: Assertion, *, is_own: bool = False) -> None:
        if is_own:
            fact.order = max(fact.order, evidence.order)
        self.effects.append(Effect(fact.id, what, reason, evidence, is_own))


def _apart(one: Fact, other: Fact) -> float:
    """Return how long before or after another a fact began, 0 where nobody knows."""
    return 0.0 if one.valid_from is None or other.valid_from is None else abs(one.valid_from - other.valid_from)


def _latest(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)
