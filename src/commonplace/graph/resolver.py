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

from commonplace.dataclasses import dataclass, field
from commonplace.extract.model import SENSITIVE, UNSURE
from commonplace.graph.facts import MIN_CONFIDENCE, Assertion, Fact, fact_of, first_said, judge, overlap, relation_of
from commonplace.graph.kinds import SYMMETRIC
from commonplace.types.graph import Relation

DISPUTES: Final = uuid.UUID("5b0e2f57-6b0e-5d0c-8a39-2a3f6c0b9d11")
"""Namespace of the UUIDv5 of disputes, named by their oldest fact."""
MAX_MET: Final = 512
"""A fact meets so many that hold when it begins, that begin next, and that hold still."""


class KeyFacts:
    """Facts in the order in which they came. Whoever changes when one holds calls `note`."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: list[Fact] = []
        self._places: dict[str, int] = {}
        self._pairs: dict[frozenset[str], list[Fact]] = {}
        self._times = np.full((2, 16), nan)  # by places: beginnings, ends
        for fact in facts:
            self.add(fact)
        for fact in self:
            fact.rivals &= self._places.keys()

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    def __getitem__(self, id_: str) -> Fact:
        return self._facts[self._places[id_]]

    def add(self, fact: Fact) -> None:
        self._places[fact.id] = len(self._facts)
        self._facts.append(fact)
        if len(self._facts) > self._times.shape[1]:
            self._times = np.concatenate((self._times, np.full_like(self._times, nan)), axis=1)
        self._pairs.setdefault(frozenset((fact.source, fact.target)), []).append(fact)
        self.note(fact)

    def note(self, fact: Fact) -> None:
        """Take note of when a fact holds now; what is retracted, denied or added meets no others."""
        self._times[:, self._places[fact.id]] = _bounds(fact)

    def between(self, one: str, other: str, begins: float | None = None) -> list[Fact]:
        """Return the facts of two entities, whichever is the source, that are not retracted and end after a time."""
        at = -inf if begins is None else begins
        some = self._pairs.get(frozenset((one, other)), ())
        return [each for each in some if not each.is_retracted and (each.valid_to is None or each.valid_to > at)]

    def met(self, fact: Fact) -> list[Fact]:
        """Return the others that may hold when a fact does; what is retracted, denied or added meets none.

        Those that hold when it begins come first, in order; then those that begin while it holds, the first first.
        """
        begins, ends = self._times[:, : len(self._facts)]
        at, until = _bounds(fact)
        earlier = np.flatnonzero((begins < at) & (at < ends))
        inside = np.flatnonzero((at <= begins) & (begins < until))
        inside = inside[inside != self._places.get(fact.id, -1)]
        inside = inside[np.argsort(begins[inside], kind="stable")]
        # However many begin in between, it meets those that hold still.
        far = inside[MAX_MET:][ends[inside[MAX_MET:]] == inf]
        met = (earlier[-MAX_MET:], inside[:MAX_MET], far[-MAX_MET:])
        return [self._facts[place] for place in np.concatenate(met).tolist()]

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
            # All that are related to it by what disputes what.
            found, waiting = {fact.id: fact}, [fact]
            while waiting:
                new = [self[id_] for id_ in waiting.pop().rivals if id_ not in found]
                found.update((each.id, each) for each in new)
                waiting += new
            named |= found.keys()
            is_disputed = bool(fact.rivals) or fact.is_doubted
            oldest = min((each.created_at, each.id) for each in found.values())[1]
            name = str(uuid.uuid5(DISPUTES, oldest)) if is_disputed else ""
            changed += [each for each in found.values() if each.dispute != name]
            for each in found.values():
                each.dispute, each.disputed_at = name, each.disputed_at if is_disputed else None
        return changed


def _bounds(fact: Fact) -> tuple[float, float]:
    """Return when a fact holds; what meets no others has times that compare with none."""
    if fact.is_retracted or fact.is_denied or fact.is_added:
        return nan, nan
    return -inf if fact.valid_from is None else fact.valid_from, inf if fact.valid_to is None else fact.valid_to


MAX_DISPUTED: Final = 16
"""A fact that comes disputes no more of those that it meets: they are related without it, and share one dispute."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How facts of one type and source are computed.

    Attributes:
        is_single: one of them holds at a time.
        compare: of two targets: "within" if one contains the other, so that both hold; "unknown" if it may.
        now: what entities are now that were merged into others.
    """

    type: str
    is_single: bool = False
    compare: Callable[[str, str], str] = lambda _one, _other: "apart"
    now: Mapping[str, str] = field(default_factory=dict)

    def ends(self, said: Assertion) -> tuple[str, str]:
        """Return the entities that something is said of, as they are now."""
        return self.now.get(said.source, said.source), self.now.get(said.target, said.target)


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


def resolve_facts(known: Iterable[Relation], assertions: Sequence[Assertion], rule: Rule) -> ResolvedFacts:
    """Return what facts become when more is said of them.

    Args:
        known: all facts of one key (see `FactKey`), as they were resolved before.
        assertions: in order.
    """
    run = FactResolver(rule, map(fact_of, known))
    effects = [effect for each in assertions for effect in run.take(each)]
    run.changed()
    return ResolvedFacts(tuple(map(relation_of, run.facts)), tuple(effects))


class FactResolver:
    """The facts of one key, to which assertion after assertion is added; only those are compared that may hold at once.

    Attributes:
        facts: in the order in which they came.
        order: the place of what is said last among all that was said of them.
    """

    def __init__(self, rule: Rule, facts: Iterable[Fact]) -> None:
        """Take over all facts of a key, as they were resolved before."""
        self.rule = rule
        self.facts = KeyFacts(facts)
        self.order = max((each.order for each in self.facts), default=0)
        self.effects: list[Effect] = []
        self._changed: dict[str, None] = {}
        self._disputed: dict[str, None] = {}

    def take(self, said: Assertion) -> tuple[Effect, ...]:
        """Add one assertion, and return what became of facts by it."""
        self.effects = []
        if said.saying in ("settled", "beside"):
            # What a person decides may change any fact of the key.
            self._name_disputes()
            if said.home in self.facts and not self.facts[said.home].is_retracted:
                self._settle(self.facts[said.home], said)
            touched = list(self.facts)
            self.facts.name_disputes(touched)
        else:
            self._apply(said)
            touched = [self.facts[id_] for id_ in dict.fromkeys(each.relation for each in self.effects)]
            self._disputed.update((each.relation, None) for each in self.effects if each.what == "disputed")
        self.order = max(self.order, said.order)
        for each in touched:
            self.facts.note(each)
        self._changed.update((each.id, None) for each in touched)
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

    def _apply(self, said: Assertion) -> None:
        """Begin, confirm or end the fact that a source speaks of, and bring it together with those that it excludes."""
        begins = said.begins if said.saying == "said" else None
        meant = self.rule.ends(said)
        ways = (meant, meant[::-1]) if self.rule.type in SYMMETRIC else (meant,)
        same = [each for each in self.facts.between(*meant, begins) if (each.source, each.target) in ways]
        if said.saying == "said":
            fact = next((each for each in same if self._is_said(each, said)), None)
            if fact is None:
                fact = self._begin(said)
            else:
                self._confirm(fact, said)
            self._judge(fact, said)
            return
        at = said.told if said.valid_to is None else said.valid_to
        if said.saying == "denied":
            held = [each for each in same if each.valid_to is None or each.valid_to > at]
            if held:
                self._end(max(held, key=lambda each: (each.valid_from or 0.0, each.id)), at, said, is_own=True)
                return
            known = max(same, key=lambda each: (each.valid_to or 0.0, each.id), default=None)
        else:
            # That it held once says nothing of what holds now.
            known = next((each for each in same if overlap((said.valid_from, at), each.span)), None)
        if known is None:
            self._begin(said)
        else:
            self._tell(known, "confirmed", said.reason, said, is_own=True)

    def _is_said(self, fact: Fact, said: Assertion) -> bool:
        """Return whether a source speaks of a known fact, and not of a time when the same was true once more."""
        begins, ends = said.begins, said.valid_to
        if ends is not None and begins is not None and ends <= begins:
            ends = None
        if not overlap((begins, ends), fact.span):
            return False
        if fact.valid_from is None or begins is None or begins >= fact.valid_from or not self.rule.is_single:
            return True
        # It would begin earlier than known: not where something else held in between.
        gap = begins, fact.valid_from
        return not any(self._excludes(each, fact) for each in self.facts if overlap(gap, each.span))

    def _begin(self, said: Assertion) -> Fact:
        id_ = said.home
        while id_ in self.facts:
            id_ = str(uuid.uuid5(DISPUTES, f"{id_} {said.order}"))
        fact = first_said(said, id_, self.rule.type, self.rule.ends(said))
        self.facts.add(fact)
        self._tell(fact, "created", said.reason, said, is_own=True)
        return fact

    def _confirm(self, fact: Fact, said: Assertion) -> None:
        if said.confidence < MIN_CONFIDENCE <= fact.confidence:
            # What is hardly said adds a source to what is surely said, and moves neither its beginning nor its end.
            self._tell(fact, "confirmed", said.reason, said, is_own=True)
            return
        begins, ends = said.begins, said.valid_to
        if fact.valid_from is None or (begins is not None and begins < fact.valid_from):
            if begins is not None and (fact.valid_to is None or begins < fact.valid_to):
                fact.valid_from = begins
                fact.is_dated = said.valid_from is not None
        elif said.valid_from is not None and said.valid_from == fact.valid_from:
            fact.is_dated = True
        fact.trust = max(fact.trust, said.trust)
        fact.confidence = max(fact.confidence, said.confidence)
        fact.is_denied = False
        is_sensitive = SENSITIVE in (fact.doubt, said.doubt)
        fact.doubt = SENSITIVE if is_sensitive else fact.doubt and said.doubt
        if ends is None:
            fact.told = said.told if fact.told is None else max(fact.told, said.told)
            if said.valid_from is None:
                fact.still = said.told if fact.still is None else max(fact.still, said.told)
        self._tell(fact, "confirmed", said.reason, said, is_own=True)
        if ends is None or fact.valid_to is not None or (fact.valid_from is not None and ends <= fact.valid_from):
            return
        if ends > said.told and said.doubt != UNSURE:
            fact.valid_to = fact.stated_to = ends
        else:
            self._end(fact, ends, said)

    def _end(self, fact: Fact, at: float, said: Assertion, *, is_own: bool = False) -> None:
        """End a fact because a source says so, or doubt both where it is not believed."""
        doubt = ""
        if fact.valid_from is not None and at <= fact.valid_from:
            doubt = "it is said to have ended before it began"
        elif fact.still is not None and fact.still > at:
            doubt = "it was still stated after it is said to have ended"
        elif said.trust < fact.trust:
            doubt = "the source that says it has ended is trusted less"
        elif said.confidence < MIN_CONFIDENCE:
            doubt = "its end is only hinted at"
        elif said.doubt in (SENSITIVE, UNSURE):
            doubt = said.doubt
        elif fact.doubt == SENSITIVE and said.episode:
            doubt = fact.doubt
        if doubt:
            fact.is_doubted = True
            fact.disputed_at = said.at if fact.disputed_at is None else fact.disputed_at
            self._tell(fact, "disputed", doubt, said, is_own=is_own)
        else:
            fact.end(at, said.at)
            fact.is_doubted = False
            if not fact.rivals:
                fact.dispute, fact.disputed_at = "", None
            self._tell(fact, "ended", said.reason or "it was said to have ended", said, is_own=is_own)

    def _judge(self, fact: Fact, said: Assertion) -> None:
        """Bring a fact together with those that cannot hold beside it: end those that it ends, dispute the others."""
        if not self.rule.is_single:
            return
        unclear: list[tuple[Fact, str]] = []
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
                    verdict.ends.end(verdict.at, said.at)
                    self._tell(verdict.ends, "ended", verdict.reason, said)

        def distance(place: int) -> float:
            """Return how long before or after it another began, 0 where nobody knows."""
            began = unclear[place][0].valid_from
            return 0.0 if began is None or fact.valid_from is None else abs(began - fact.valid_from)

        # Of many only the nearest are disputed, so that none is disputed by many.
        chosen: list[int] = []
        for place in sorted(range(len(unclear)), key=lambda place: (distance(place), -place)):
            other = unclear[place][0]
            if len(fact.rivals) + len(chosen) >= MAX_DISPUTED:
                break
            # An older fact may have ended since it was found to be unclear.
            if judge(fact, other) is not None and other.id not in fact.rivals and self._excludes(other, fact):
                chosen.append(place)
        for other, reason in (unclear[place] for place in sorted(chosen)):
            for one, rival in ((fact, other), (other, fact)):
                one.rivals.add(rival.id)
                one.disputed_at = said.at if one.disputed_at is None else one.disputed_at
                self._tell(one, "disputed", reason, said)

    def _excludes(self, other: Fact, fact: Fact) -> bool:
        """Return whether two facts cannot hold at once, whenever they hold."""
        if other.target == fact.target or other.source != fact.source or other.is_retracted or fact.is_retracted:
            return False
        if other.is_denied or fact.is_denied or other.is_added or fact.is_added:
            return False
        if other.sentence and other.sentence == fact.sentence:
            return False  # whoever says both in one sentence says that both hold
        return self.rule.compare(fact.target, other.target) != "within"

    def _settle(self, fact: Fact, said: Assertion) -> None:
        """Take in that a person says which fact of a dispute is right, or that all of them hold beside each other."""
        if said.saying == "beside":
            for each in self.facts:
                if each.dispute and each.dispute == fact.dispute:
                    each.rivals = set()
                    each.is_doubted, each.is_added = False, True
                    self._tell(each, "settled", said.reason or "both hold", said, is_own=each is fact)
            return
        fact.is_doubted = False
        self._tell(fact, "settled", said.reason, said, is_own=True)
        began, is_full = fact.valid_from, len(fact.rivals) >= MAX_DISPUTED

        def is_unnamed_rival(each: Fact) -> bool:
            """Return whether a fact cannot be true beside it, though there were too many to be remembered."""
            is_met = is_full and each.dispute == fact.dispute and overlap(fact.span, each.span)
            return is_met and self._excludes(each, fact)

        for other in [each for each in self.facts if each.id in fact.rivals or is_unnamed_rival(each)]:
            if other.valid_from is not None and began is not None and other.valid_from < began:
                other.end(min(began, other.valid_to or began), said.at)
                self._tell(other, "ended", said.reason, said)
                other.rivals.discard(fact.id)
            else:
                other.end(None, said.at)
                self._tell(other, "retracted", said.reason, said)
                for id_ in other.rivals:
                    self.facts[id_].rivals.discard(other.id)
                other.rivals = set()
        fact.rivals = set()

    def _tell(self, fact: Fact, what: str, reason: str, said: Assertion, *, is_own: bool = False) -> None:
        if is_own:
            fact.order = max(fact.order, said.order)
        self.effects.append(Effect(fact.id, what, reason, said, is_own))
