"""Make one text of several that say alike, without losing a sentence. It knows texts and times, no memories.

Where every other text is contained in the longest, that is the text. Else it is the longest, and after it what each
other one says that no one before it said. Sentences that contradict each other are all kept, each with the date from
which it is, and so is one that tells a time by its own date ("yesterday") where the sources are of different days.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from itertools import combinations, product
from typing import Final, Literal

from commonplace.consolidation.conflicts import Conflict, Statement, conflict, read_statement
from commonplace.consolidation.units import Unit, units_of
from commonplace.timeline import mentions

Doubt = Conflict | Literal["length"]

MOST_COMPARED: Final = 40_000
"""Of pairs of sentences: two texts of 200 sentences each. Longer ones are documents, whose merge a person looks at."""

_BEGIN: Final = r"(?<![^\s(\[\"'])"
_END: Final = r"(?![^\s,;:.!?)\]\"'])"
"""Where words may begin and end within others: not behind a hyphen, which may be a minus, nor before a percent sign."""
_ELSEWHERE: Final = datetime.fromisoformat("1931-08-19T00:00:00+00:00")
"""What is told by its own date means something else as of another one."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that is merged, and when it was said, aware."""

    id: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Merged:
    """What was made of some texts.

    Attributes:
        conflicts: how many pairs of sentences contradict each other, by what they differ in; "length" stands for texts
            that are too long for all their sentences to be compared.
    """

    text: str
    conflicts: Counter[Doubt]


@dataclass(frozen=True, slots=True)
class _Said:
    """A unit of a source, what counts of it, and whether it is told by its own date."""

    unit: Unit
    at: datetime
    key: str
    statement: Statement
    is_relative: bool


def merge(sources: Sequence[Source]) -> Merged:
    """Return one text for several, the same in whatever order they are given."""
    ordered = sorted(sources, key=lambda source: (-len(source.text), source.at, source.id))
    said = [_read(source) for source in ordered]
    disputed, counted = _disputed(said)
    longest, *others = said
    of_one_day = len({source.at.date() for source in sources}) == 1
    is_undated = of_one_day or not any(each.is_relative for each in longest)
    known = {each.key for each in longest}
    is_contained = all(each.key in known or _is_within(each, longest) for other in others for each in other)
    if is_contained and is_undated and not disputed:
        return Merged(ordered[0].text, counted)
    return Merged(_together(said, disputed, of_one_day=of_one_day), counted)


def diff(sources: Sequence[Source], merged: str, name: str) -> str:
    """Return a unified diff from the texts of the sources, one after the other, to the merged text."""
    ordered = sorted(sources, key=lambda source: (-len(source.text), source.at, source.id))
    before = [line for source in ordered for line in source.text.splitlines()]
    named = ", ".join(source.id for source in ordered)
    return "\n".join(unified_diff(before, merged.splitlines(), named, name, lineterm=""))


def _read(source: Source) -> list[_Said]:
    return [_said(unit, source.at) for unit in units_of(source.text)]


def _said(unit: Unit, at: datetime) -> _Said:
    told = [(each.since, each.until) for each in mentions(unit.said, now=at)]
    is_relative = bool(told) and told != [(each.since, each.until) for each in mentions(unit.said, now=_ELSEWHERE)]
    # "Yesterday" of another day is another day.
    key = f"{unit.key}\n{told}" if is_relative else unit.key
    return _Said(unit, at, key, read_statement(unit.said, at), is_relative)


def _disputed(said: Sequence[Sequence[_Said]]) -> tuple[set[tuple[int, str]], Counter[Doubt]]:
    """Return the units, by source and key, that contradict one of another source, and the kinds of contradiction."""
    found: set[tuple[int, str]] = set()
    counted: Counter[Doubt] = Counter()
    compared = 0
    for (place, some), (behind, more) in combinations(enumerate(said), 2):
        ones, others = _differing(some, more), _differing(more, some)
        compared += len(ones) * len(others)
        if compared > MOST_COMPARED:
            counted["length"] += 1
            break
        for one, other in product(ones, others):
            kind = conflict(one.statement, other.statement)
            if kind is not None:
                counted[kind] += 1
                found |= {(place, one.key), (behind, other.key)}
    return found, counted


def _differing(some: Sequence[_Said], others: Sequence[_Said]) -> list[_Said]:
    """Return what only one of two sources says, without headings."""
    known = {each.key for each in others}
    return [each for each in some if each.key not in known and not each.unit.is_heading]


def _is_within(each: _Said, longest: Sequence[_Said]) -> bool:
    """Tell whether a unit stands in the same words within one of a text."""
    if not each.unit.is_prose:
        return any(each.key in other.unit.text for other in longest)
    within = re.compile(_BEGIN + re.escape(each.unit.key) + _END)
    return not each.is_relative and any(within.search(other.unit.key) for other in longest)


def _together(said: Sequence[Sequence[_Said]], disputed: set[tuple[int, str]], *, of_one_day: bool) -> str:
    known: set[str] = set()
    written: list[Unit] = []
    for place, units in enumerate(said):
        fresh = list(_fresh(units, known))
        for number, each in enumerate(fresh):
            is_dated = (place, each.key) in disputed or (each.is_relative and not of_one_day)
            unit = _dated(each) if is_dated else each.unit
            before = written[-1] if written else None
            if before is None:
                written.append(replace(unit, gap=""))
            elif number == 0:
                written.append(replace(unit, gap="\n" if before.is_item and unit.is_item else "\n\n"))
            else:
                written.append(unit)
    return "".join(unit.gap + unit.text for unit in written)


def _fresh(units: Sequence[_Said], known: set[str]) -> Iterator[_Said]:
    """Yield what is not known yet, with the widest gap of what was left out before it, and under its heading."""
    gap, heading = "", None
    for each in units:
        gap = max(gap, each.unit.gap, key=lambda space: (space.count("\n"), len(space)))
        if each.unit.is_heading:
            heading = None
            if each.key in known:
                heading, gap = replace(each, unit=replace(each.unit, gap=gap)), ""
        if each.key in known:
            continue
        known.add(each.key)
        if heading is not None:
            yield heading
            heading = None
        yield replace(each, unit=replace(each.unit, gap=gap))
        gap = ""


def _dated(each: _Said) -> Unit:
    unit, day = each.unit, each.at.date().isoformat()
    text = f"{unit.text} ({day})" if unit.is_prose else f"{unit.text}\n\n({day})"
    return replace(unit, text=text)
