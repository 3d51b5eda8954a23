"""Resolve assertions into facts with validity intervals; a pure function of the assertions and their order.

After a deletion, merge or split, and when an assertion arrives late, the assertions are resolved again from scratch.

A key may have thousands of facts, of which a new assertion overlaps few; the cost depends on those few, except where
noted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Final

import numpy as np

from commonplace.dataclasses import dataclass, field, replace
from commonplace.extract.model import SENSITIVE, UNSURE
from commonplace.graph.facts import MIN_CONFIDENCE, Assertion, Fact, fact_of, first_said, judge, overlap, relation_of
from commonplace.graph.kinds import SYMMETRIC
from commonplace.types.graph import Relation

DISPUTES: Final = uuid.UUID("5b0e2f57-6b0e-5d0c-8a39-2a3f6c0b9d11")
"""Namespace of the UUIDv5 of disputes, named by their oldest fact."""
DECISIONS: Final = ("settled", "beside")
"""What a person decides about facts that are known by then."""
MAX_MET: Final = 512
"""Maximum number of facts of each kind compared with one: that hold when it begins, that begin next, without an end."""
MAX_DISPUTED: Final = 16
"""Maximum number of rivals of a new fact; further facts share its dispute through their own rivals."""


class KeyFacts:
    """The facts of a key, in the order in which they came. Call `note` after changing when a fact holds."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: list[Fact] = []
        self._indexes: dict[str, int] = {}
        self._by_ends: dict[frozenset[str], list[Fact]] = {}
        self._times = np.full((2, 16), nan)  # begin and end of each fact, by index
        for fact in facts:
            self.add(fact)
        for fact in self:
            fact.rivals &= self._indexes.keys()

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._indexes

    def __getitem__(self, id_: str) -> Fact:
        return self._facts[self._indexes[id_]]

    def add(self, fact: Fact) -> None:
        self._indexes[fact.id] = len(self._facts)
        self._facts.append(fact)
        if len(self._facts) > self._times.shape[1]:
            self._times = np.concatenate((self._times, np.full_like(self._times, nan)), axis=1)
        self._by_ends.setdefault(frozenset((fact.source, fact.target)), []).append(fact)
        self.note(fact)

    def note(self, fact: Fact) -> None:
        """Update when a fact holds; one that is retracted, denied or added overlaps no other."""
        self._times[:, self._indexes[fact.id]] = _bounds(fact)

    def between(self, left: str, right: str, begins: float | None = None) -> list[Fact]:
        """Return the facts between two entities, in either direction, that are not retracted and end after `begins`."""
        since = -inf if begins is None else begins
        facts = self._by_ends.get(frozenset((left, right)), ())
        return [fact for fact in facts if not fact.is_retracted and (fact.valid_to is None or fact.valid_to > since)]

    def list_overlapping(self, fact: Fact) -> list[Fact]:
        """Return the other facts that may overlap a fact; one that is retracted, denied or added overlaps none.

        Facts that hold when it begins come first, in order; then those that begin while it holds, by their begin.
        """
        begins, ends = self._times[:, : len(self._facts)]
        start, end = _bounds(fact)
        earlier = np.flatnonzero((begins < start) & (start < ends))
        inside = np.flatnonzero((start <= begins) & (begins < end))
        inside = inside[inside != self._indexes.get(fact.id, -1)]
        inside = inside[np.argsort(begins[inside], kind="stable")]
        # Facts without an end are always included, however many begin in between.
        far = inside[MAX_MET:][ends[inside[MAX_MET:]] == inf]
        indexes = (earlier[-MAX_MET:], inside[:MAX_MET], far[-MAX_MET:])
        return [self._facts[index] for index in np.concatenate(indexes).tolist()]

    def name_disputes(self, of: Iterable[Fact]) -> list[Fact]:
        """Set one dispute id, derived from the oldest fact, on each connected group of rivals; "" on undisputed facts.

        Return the facts whose dispute id has changed.
        """
        changed: list[Fact] = []
        seen = set[str]()
        for fact in of:
            if fact.id in seen:
                continue
            # Collect the connected component of rivals.
            cluster, queue = {fact.id: fact}, [fact]
            while queue:
                rivals = [self[id_] for id_ in queue.pop().rivals if id_ not in cluster]
                cluster.update((rival.id, rival) for rival in rivals)
                queue += rivals
            seen |= cluster.keys()
            is_disputed = bool(fact.rivals) or fact.is_doubted
            oldest = min((member.created_at, member.id) for member in cluster.values())[1]
            name = str(uuid.uuid5(DISPUTES, oldest)) if is_disputed else ""
            changed += [member for member in cluster.values() if member.dispute != name]
            for member in cluster.values():
                member.dispute, member.disputed_at = name, member.disputed_at if is_disputed else None
        return changed


def _bounds(fact: Fact) -> tuple[float, float]:
    """Return when a fact holds; NaN, which compares false, for one that overlaps no other."""
    if fact.is_retracted or fact.is_denied or fact.is_added:
        return nan, nan
    return -inf if fact.valid_from is None else fact.valid_from, inf if fact.valid_to is None else fact.valid_to


@dataclass(frozen=True, slots=True)
class Rule:
    """How the facts of one key are resolved.

    Attributes:
        is_single: only one of them holds at a time.
        compare: compares two targets: "within" if one contains the other, so both hold; "unknown" if it may; "apart".
        now: ids of the entities that merged entities stand for now, by id.
    """

    type: str
    is_single: bool = False
    compare: Callable[[str, str], str] = lambda _one, _other: "apart"
    now: Mapping[str, str] = field(default_factory=dict)

    def ends(self, assertion: Assertion) -> tuple[str, str]:
        """Return the source and target of an assertion, after merges."""
        return self.now.get(assertion.source, assertion.source), self.now.get(assertion.target, assertion.target)


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of a fact, caused by an assertion, which is its own if it is about this fact, not about another one."""

    relation: str
    what: str
    reason: str
    evidence: Assertion
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedFacts:
    relations: tuple[Relation, ...]
    effects: tuple[Effect, ...]


def resolve_facts(facts: Iterable[Relation], assertions: Sequence[Assertion], rule: Rule) -> ResolvedFacts:
    """Return all facts of a key after further assertions, in the order of `chronological`, and the effects of these."""
    resolver = FactResolver(rule, map(fact_of, facts))
    effects = [effect for assertion in assertions for effect in resolver.take(assertion)]
    resolver.changed()
    return ResolvedFacts(tuple(map(relation_of, resolver.facts)), tuple(effects))


def chronological(assertions: Iterable[Assertion]) -> list[Assertion]:
    """Return assertions in the order in which they were made, so that the order of arrival does not matter.

    The decision of a person keeps its place in the order of arrival: it is about what was known then.
    """
    decisions, placed = 0, []
    for said in sorted(assertions, key=lambda item: (item.at, item.order, item.home)):
        is_decision = said.saying in DECISIONS
        decisions += is_decision
        placed.append(((decisions, -inf if is_decision else said.told), said))
    return [said for _, said in sorted(placed, key=lambda pair: pair[0])]


class FactResolver:
    """Adds assertions one by one to all facts of a key, as resolved before; compares only those that may overlap.

    It keeps the order of the last assertion, and when the latest one was made.
    """

    def __init__(self, rule: Rule, facts: Iterable[Fact]) -> None:
        self.rule = rule
        self.facts = KeyFacts(facts)
        self.order = max((fact.order for fact in self.facts), default=0)
        self.last_told = max((fact.last_told for fact in self.facts), default=-inf)
        self.effects: list[Effect] = []
        self._changed: dict[str, None] = {}
        self._disputed: dict[str, None] = {}

    def take(self, assertion: Assertion) -> tuple[Effect, ...]:
        """Add one assertion and return its effects."""
        self.effects = []
        if assertion.saying in DECISIONS:
            # The decision of a person may change any fact of the key.
            self._name_disputes()
            if assertion.home in self.facts and not self.facts[assertion.home].is_retracted:
                self._settle(self.facts[assertion.home], assertion)
            touched = list(self.facts)
            self.facts.name_disputes(touched)
        else:
            self._apply(assertion)
            touched = [self.facts[id_] for id_ in dict.fromkeys(effect.relation for effect in self.effects)]
            self._disputed.update((effect.relation, None) for effect in self.effects if effect.what == "disputed")
        self.order, self.last_told = max(self.order, assertion.order), max(self.last_told, assertion.told)
        for fact in touched:
            self.facts.note(fact)
        self._changed.update((fact.id, None) for fact in touched)
        return tuple(self.effects)

    def changed(self) -> list[Relation]:
        """Return the facts that may have changed since the last call, in the order of their changes."""
        self._name_disputes()
        changed = [relation_of(self.facts[id_]) for id_ in self._changed]
        self._changed.clear()
        return changed

    def _name_disputes(self) -> None:
        """Set the ids of new disputes; done once at the end, since following a dispute costs more than adding to it."""
        changed = self.facts.name_disputes(self.facts[id_] for id_ in self._disputed)
        self._changed.update((fact.id, None) for fact in changed)
        self._disputed.clear()

    def _apply(self, assertion: Assertion) -> None:
        """Begin, confirm or end the fact of an assertion, and resolve it against the facts that it excludes."""
        begins = assertion.begins if assertion.saying == "said" else None
        ends = self.rule.ends(assertion)
        directions = (ends, ends[::-1]) if self.rule.type in SYMMETRIC else (ends,)
        facts = [other for other in self.facts.between(*ends, begins) if (other.source, other.target) in directions]
        facts.sort(key=lambda other: -inf if other.valid_from is None else other.valid_from)
        if assertion.saying == "said":
            fact = next((other for other in facts if self._is_said(other, assertion)), None)
            if fact is None:
                fact = self._begin(assertion)
            else:
                self._confirm(fact, assertion)
            self._judge(fact, assertion)
            return
        end = assertion.told if assertion.valid_to is None else assertion.valid_to
        if assertion.saying == "denied":
            live = [other for other in facts if other.valid_to is None or other.valid_to > end]
            if live:
                self._end(max(live, key=lambda other: (other.valid_from or 0.0, other.id)), end, assertion, is_own=True)
                return
            match = max(facts, key=lambda other: (other.valid_to or 0.0, other.id), default=None)
        else:
            # That a fact held once does not affect what holds now.
            match = next((other for other in facts if overlap((assertion.valid_from, end), other.span)), None)
        if match is None:
            self._begin(assertion)
        else:
            self._record(match, "confirmed", assertion.reason, assertion, is_own=True)

    def _is_said(self, fact: Fact, assertion: Assertion) -> bool:
        """Return whether an assertion is about this fact, and not about another interval in which the same was true."""
        begins, ends = assertion.begins, assertion.valid_to
        if ends is not None and begins is not None and ends <= begins:
            ends = None
        if not overlap((begins, ends), fact.span):
            return False
        if fact.valid_from is None or begins is None or begins >= fact.valid_from or not self.rule.is_single:
            return True
        # It would move the begin to an earlier time; not if an excluded fact held in between.
        gap = begins, fact.valid_from
        return not any(self._excludes(other, fact) for other in self.facts if overlap(gap, other.span))

    def _begin(self, assertion: Assertion) -> Fact:
        id_ = assertion.home
        while id_ in self.facts:
            id_ = str(uuid.uuid5(DISPUTES, f"{id_} {assertion.order}"))
        fact = first_said(assertion, id_, self.rule.type, self.rule.ends(assertion))
        self.facts.add(fact)
        self._record(fact, "created", assertion.reason, assertion, is_own=True)
        return fact

    def _confirm(self, fact: Fact, assertion: Assertion) -> None:
        fact.created_at = min(fact.created_at, assertion.at)
        if assertion.confidence < MIN_CONFIDENCE <= fact.confidence:
            # A hedged assertion adds a source to a confident fact, but changes neither its begin nor its end.
            self._record(fact, "confirmed", assertion.reason, assertion, is_own=True)
            return
        begins, ends = assertion.begins, assertion.valid_to
        if fact.valid_from is None or (begins is not None and begins < fact.valid_from):
            if begins is not None and (fact.valid_to is None or begins < fact.valid_to):
                fact.valid_from = begins
                fact.is_dated = assertion.valid_from is not None
        elif assertion.valid_from is not None and assertion.valid_from == fact.valid_from:
            fact.is_dated = True
        fact.trust = max(fact.trust, assertion.trust)
        fact.confidence = max(fact.confidence, assertion.confidence)
        fact.is_denied = False
        is_sensitive = SENSITIVE in (fact.doubt, assertion.doubt)
        fact.doubt = SENSITIVE if is_sensitive else fact.doubt and assertion.doubt
        if ends is None:
            fact.told = assertion.told if fact.told is None else max(fact.told, assertion.told)
            if assertion.valid_from is None:
                fact.still = assertion.told if fact.still is None else max(fact.still, assertion.told)
        self._record(fact, "confirmed", assertion.reason, assertion, is_own=True)
        if ends is None or fact.valid_to is not None or (fact.valid_from is not None and ends <= fact.valid_from):
            return
        if ends > assertion.told and assertion.doubt != UNSURE:
            fact.valid_to = fact.stated_to = ends
        else:
            self._end(fact, ends, assertion)

    def _end(self, fact: Fact, at: float, assertion: Assertion, *, is_own: bool = False) -> None:
        """End a fact because an assertion says so; mark it as doubted and disputed if the assertion is not believed."""
        doubt = ""
        if fact.valid_from is not None and at <= fact.valid_from:
            doubt = "it is said to have ended before it began"
        elif fact.still is not None and fact.still > at:
            doubt = "it was still stated after it is said to have ended"
        elif assertion.trust < fact.trust:
            doubt = "the source that says it has ended is trusted less"
        elif assertion.confidence < MIN_CONFIDENCE:
            doubt = "its end is only hinted at"
        elif assertion.doubt in (SENSITIVE, UNSURE):
            doubt = assertion.doubt
        elif fact.doubt == SENSITIVE and assertion.episode:
            doubt = fact.doubt
        if doubt:
            fact.is_doubted = True
            fact.disputed_at = max(assertion.at, fact.created_at) if fact.disputed_at is None else fact.disputed_at
            self._record(fact, "disputed", doubt, assertion, is_own=is_own)
        else:
            fact.end(at, assertion.at)
            fact.is_doubted = False
            if not fact.rivals:
                fact.dispute, fact.disputed_at = "", None
            self._record(fact, "ended", assertion.reason or "it was said to have ended", assertion, is_own=is_own)

    def _judge(self, fact: Fact, assertion: Assertion) -> None:
        """Compare a fact with those that it excludes: end the older one in clear cases, dispute the others."""
        if not self.rule.is_single:
            return
        unclear: list[tuple[Fact, str]] = []
        for other in self.facts.list_overlapping(fact):
            if fact.valid_to is not None and other.valid_from is not None and other.valid_from >= fact.valid_to:
                break  # the next ones begin later still
            verdict = judge(fact, other)
            if verdict is None:
                continue
            if verdict.ends is None:
                unclear.append((other, verdict.reason))
            elif other.id not in fact.rivals and self._excludes(other, fact):
                # Checked last: comparing two places costs more than comparing two times.
                if self.rule.compare(fact.target, other.target) == "unknown":
                    unclear.append((other, "one of the two may lie in the other"))
                else:
                    verdict.ends.end(verdict.at, max(assertion.at, other.created_at))
                    self._record(verdict.ends, "ended", verdict.reason, assertion)

        def distance(index: int) -> float:
            """Return the seconds between the begins of two facts, 0 if unknown."""
            began = unclear[index][0].valid_from
            return 0.0 if began is None or fact.valid_from is None else abs(began - fact.valid_from)

        # Dispute only the nearest ones, so that no fact has many rivals.
        chosen: list[int] = []
        for index in sorted(range(len(unclear)), key=lambda index: (distance(index), -index)):
            other = unclear[index][0]
            if len(fact.rivals) + len(chosen) >= MAX_DISPUTED:
                break
            # An older fact may have ended since it was added to `unclear`.
            if judge(fact, other) is not None and other.id not in fact.rivals and self._excludes(other, fact):
                chosen.append(index)
        for other, reason in (unclear[index] for index in sorted(chosen)):
            for side, rival in ((fact, other), (other, fact)):
                side.rivals.add(rival.id)
                known = max(assertion.at, other.created_at)
                side.disputed_at = known if side.disputed_at is None else side.disputed_at
                self._record(side, "disputed", reason, assertion)

    def _excludes(self, other: Fact, fact: Fact) -> bool:
        """Return whether two facts cannot both hold at the same time, whatever their intervals."""
        if other.target == fact.target or other.source != fact.source or other.is_retracted or fact.is_retracted:
            return False
        if other.is_denied or fact.is_denied or other.is_added or fact.is_added:
            return False
        if other.sentence and other.sentence == fact.sentence:
            return False  # a sentence that states both says that both hold
        return self.rule.compare(fact.target, other.target) != "within"

    def _settle(self, fact: Fact, assertion: Assertion) -> None:
        """Apply the decision of a person: this fact of a dispute holds, or all of them hold beside each other."""
        if assertion.saying == "beside":
            for member in self.facts:
                if member.dispute and member.dispute == fact.dispute:
                    member.rivals = set()
                    member.is_doubted, member.is_added = False, True
                    self._record(member, "settled", assertion.reason or "both hold", assertion, is_own=member is fact)
            return
        fact.is_doubted = False
        self._record(fact, "settled", assertion.reason, assertion, is_own=True)
        began, is_full = fact.valid_from, len(fact.rivals) >= MAX_DISPUTED

        def is_unnamed_rival(rival: Fact) -> bool:
            """Return whether a fact is a rival that exceeds `MAX_DISPUTED` and so is not in `rivals`."""
            is_met = is_full and rival.dispute == fact.dispute and overlap(fact.span, rival.span)
            return is_met and self._excludes(rival, fact)

        for other in [rival for rival in self.facts if rival.id in fact.rivals or is_unnamed_rival(rival)]:
            if other.valid_from is not None and began is not None and other.valid_from < began:
                other.end(min(began, other.valid_to or began), assertion.at)
                self._record(other, "ended", assertion.reason, assertion)
                other.rivals.discard(fact.id)
            else:
                other.end(None, assertion.at)
                self._record(other, "retracted", assertion.reason, assertion)
                for id_ in other.rivals:
                    self.facts[id_].rivals.discard(other.id)
                other.rivals = set()
        fact.rivals = set()

    def _record(self, fact: Fact, what: str, reason: str, assertion: Assertion, *, is_own: bool = False) -> None:
        if is_own:
            fact.order, fact.last_told = max(fact.order, assertion.order), max(fact.last_told, assertion.told)
        elif assertion.at < fact.created_at:
            assertion = replace(assertion, at=fact.created_at)
        self.effects.append(Effect(fact.id, what, reason, assertion, is_own))
