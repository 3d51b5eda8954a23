"""The facts of one slot while they are reckoned: found by their ends, by when they hold, by what they dispute.

A slot may have thousands of facts, of which one that is said meets few: nothing here costs what all of them do, but for
what says so. It knows no rule of what ends what.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Final

from commonplace.graph.facts import Fact

DISPUTES: Final = uuid.UUID("5b0e2f57-6b0e-5d0c-8a39-2a3f6c0b9d11")
"""Namespace of the UUIDv5 of disputes, named by their oldest fact."""
MOST_MET: Final = 512
"""A fact meets so many that end, that begin and that have no end: the nearest in time, the last that came."""


@dataclass(slots=True)
class _Times:
    """The places of facts: those without an end in order, (end, place) of the others, and (begin, place) of all."""

    endless: dict[int, None] = field(default_factory=dict)
    ending: list[tuple[float, int]] = field(default_factory=list)
    beginning: list[tuple[float, int]] = field(default_factory=list)

    def put(self, place: int, begins: float | None, ends: float | None) -> None:
        insort(self.beginning, (-inf if begins is None else begins, place))
        if ends is None:
            self.endless[place] = None
        else:
            insort(self.ending, (ends, place))

    def drop(self, place: int, begins: float | None, ends: float | None) -> None:
        del self.beginning[bisect_left(self.beginning, (-inf if begins is None else begins, place))]
        if ends is None:
            del self.endless[place]
        else:
            del self.ending[bisect_left(self.ending, (ends, place))]

    def ending_after(self, at: float, most: int | None = None) -> list[int]:
        """Return the places of those that end after a time, in order; of many the first to end and the last to come."""
        first = bisect_right(self.ending, (at, inf))
        ending = islice(self.ending, first, None if most is None else first + most)
        return sorted([*islice(reversed(self.endless), most), *(place for _, place in ending)])

    def beginning_from(self, at: float, most: int) -> list[int]:
        """Return the places of those that begin at a time or later, the first first."""
        first = bisect_left(self.beginning, (at, -1))
        return [place for _, place in self.beginning[first : first + most]]


class SlotFacts:
    """Facts in the order in which they came. Whoever changes when one holds tells it by `note`."""

    def __init__(self, facts: Iterable[Fact], *, has_topics: bool = False) -> None:
        """Take over facts.

        Args:
            has_topics: only those about the same meet each other.
        """
        self._has_topics = has_topics
        self._facts: list[Fact] = []
        self._places: dict[str, int] = {}
        self._times: dict[frozenset[str] | str, _Times] = {}
        self._noted: dict[int, list[tuple[_Times, float | None, float | None]]] = {}
        self._oldest: dict[str, tuple[float, str]] = {}
        for fact in facts:
            self.add(fact)
        for fact in self._facts:
            fact.rivals &= self._places.keys()
            if fact.dispute:
                self._oldest[fact.dispute] = min(self._oldest.get(fact.dispute, _age(fact)), _age(fact))

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    def __getitem__(self, id_: str) -> Fact:
        return self._facts[self._places[id_]]

    def add(self, fact: Fact) -> None:
        """Add a fact behind all others."""
        self._places[fact.id] = len(self._facts)
        self._facts.append(fact)
        self.note(fact)

    def note(self, fact: Fact) -> None:
        """Take note of when a fact holds now, and whether it can meet others at all."""
        place = self._places[fact.id]
        for times, begins, ends in self._noted.pop(place, ()):
            times.drop(place, begins, ends)
        if fact.is_retracted:
            return
        keys: list[frozenset[str] | str] = [frozenset((fact.source, fact.target))]
        if self._meets_others(fact):
            keys.append(self._key(fact))
        for key in keys:
            self._times.setdefault(key, _Times()).put(place, fact.valid_from, fact.valid_to)
        self._noted[place] = [(self._times[key], fact.valid_from, fact.valid_to) for key in keys]

    def between(self, one: str, other: str, begins: float | None = None) -> list[Fact]:
        """Return the facts of two entities, whichever is the source, that are not retracted and end after a time."""
        times = self._times.get(frozenset((one, other)))
        places = [] if times is None else times.ending_after(-inf if begins is None else begins)
        return [self._facts[place] for place in places]

    def met(self, fact: Fact) -> list[Fact]:
        """Return the others that may hold when a fact does; what is retracted, denied or added meets none.

        Those that hold when it begins come first, in order; then those that begin while it holds, the first first.
        """
        times = self._times.get(self._key(fact))
        if times is None or not self._meets_others(fact):
            return []
        begins = -inf if fact.valid_from is None else fact.valid_from
        ends = inf if fact.valid_to is None else fact.valid_to
        places = {*times.ending_after(begins, MOST_MET), *times.beginning_from(begins, MOST_MET)}
        found = [each for each in (self._facts[place] for place in sorted(places)) if each is not fact]
        later = [each for each in found if each.valid_from is not None and begins <= each.valid_from < ends]
        return [
            *(each for each in found if each.valid_from is None or each.valid_from < begins),
            *sorted(later, key=lambda each: each.valid_from or 0.0),
        ]

    def name_disputes(self, of: Iterable[Fact]) -> list[Fact]:
        """Give facts that dispute others one id with these, that of the oldest, where more came to dispute each other.

        Returns:
            The facts whose id has changed.
        """
        changed: dict[str, Fact] = {}
        for fact in of:
            names = {self[id_].dispute for id_ in fact.rivals}
            if len(names) == 1 and (name := names.pop()) and fact.dispute in ("", name) and self._is_old(name, fact):
                named = [fact]
            else:
                named = self._disputing(fact)
                name = self._name(named)
            for each in named:
                if each.dispute != name:
                    each.dispute = name
                    changed[each.id] = each
        return list(changed.values())

    def name_all_disputes(self) -> None:
        """Give facts that dispute each other one id, none to those that no longer do; it looks at each."""
        named: set[str] = set()
        for fact in self._facts:
            if not (fact.rivals or fact.is_doubted):
                fact.dispute, fact.disputed_at = "", None
            elif fact.id not in named:
                some = self._disputing(fact)
                name = self._name(some)
                named.update(each.id for each in some)
                for each in some:
                    each.dispute = name

    def _key(self, fact: Fact) -> str:
        return fact.topic if self._has_topics else ""

    def _meets_others(self, fact: Fact) -> bool:
        is_alone = fact.is_retracted or fact.is_denied or fact.is_added
        return not is_alone and (bool(fact.topic) or not self._has_topics)

    def _is_old(self, dispute: str, fact: Fact) -> bool:
        return self._oldest[dispute] <= _age(fact)

    def _disputing(self, fact: Fact) -> list[Fact]:
        """Return the facts that hang together with one by what disputes what."""
        found = {fact.id: fact}
        waiting = [fact]
        while waiting:
            new = [self[id_] for id_ in waiting.pop().rivals if id_ not in found]
            found.update((each.id, each) for each in new)
            waiting += new
        return list(found.values())

    def _name(self, facts: Iterable[Fact]) -> str:
        oldest = min(map(_age, facts))
        name = str(uuid.uuid5(DISPUTES, oldest[1]))
        self._oldest[name] = oldest
        return name


def _age(fact: Fact) -> tuple[float, str]:
    return fact.created_at, fact.id
