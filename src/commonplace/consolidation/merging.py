"""Make one text of several that say alike, without losing what one of them adds. It knows texts and times, no memories.

Where every other text is contained in the longest, that is the text. Else it is the longest, and after it what each
other one says that none before it said, in these or in other words. Sentences that contradict each other are all kept,
each with the date from which it is, and so is one that tells a time by its own date ("yesterday") where the sources are
of different days.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final, Literal

from commonplace.consolidation.conflicts import (
    Conflict,
    Statement,
    conflict,
    contradiction,
    have_same_marks,
    read_statement,
)
from commonplace.consolidation.units import Unit, units_of
from commonplace.timeline import mentions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Likeness = Callable[[Sequence[str]], NDArray[Any]]
    """Returns the similarity of each of n texts to each, 0–1, float32, shape (n, n)."""

Doubt = Conflict | Literal["length"]

SAID_AGAIN: Final = 0.9
"""The least similarity of two sentences of which one says what the other says."""
SAID_IN_THE_SAME_WORDS: Final = 0.75
"""The same of two whose content words are the same, in whatever order."""
_MAX_UNITS: Final = 400
"""The sentences of so many texts are compared by their vectors, each of which takes milliseconds."""

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


def merge(sources: Sequence[Source], likeness: Likeness | None = None) -> Merged:
    """Return one text for several, the same in whatever order they are given.

    Args:
        likeness: by which a sentence that says in other words what another source says is told, and left out; without
            it all sentences are kept that are not the same.
    """
    ordered = sorted(sources, key=lambda source: (-len(source.text), source.at, source.id))
    said = [_read(source) for source in ordered]
    disputed, counted = _disputed(said)
    longest, *others = said
    of_one_day = len({source.at.date() for source in sources}) == 1
    is_undated = of_one_day or not any(each.is_relative for each in longest)
    known = {each.key for each in longest}
    again = _said_again(said, disputed, likeness) if likeness is not None else frozenset()
    is_contained = not any(place == 0 for place, _ in again) and all(
        each.key in known or (place, each.key) in again or _is_within(each, longest)
        for place, other in enumerate(others, 1)
        for each in other
    )
    if is_contained and is_undated and not disputed:
        return Merged(ordered[0].text, counted)
    fresh = [[each for each in some if (place, each.key) not in again] for place, some in enumerate(said)]
    return Merged(_together(fresh, disputed, of_one_day=of_one_day), counted)


def contradictions(
    sources: Sequence[Source], pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Counter[Doubt]]:
    """Return in what pairs of texts that say nearly the same contradict each other; pairs that do not are left out.

    They do where at least half of what the shorter one says contradicts the other.

    Args:
        pairs: of ids of sources.
    """
    said = {source.id: _read(source) for source in sources}
    found = ((pair, _contradiction([said[id_] for id_ in pair])) for pair in pairs)
    return {pair: counted for pair, counted in found if counted}


def _contradiction(said: Sequence[Sequence[_Said]]) -> Counter[Doubt]:
    disputed, counted = _disputed(said, contradiction)
    sizes = [sum(not each.unit.is_heading for each in some) for some in said]
    shorter = sizes.index(min(sizes))
    share = sum(place == shorter for place, _ in disputed)
    return counted if disputed and 2 * share >= sizes[shorter] else Counter()


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


def _disputed(
    said: Sequence[Sequence[_Said]], judge: Callable[[Statement, Statement], Conflict | None] = conflict
) -> tuple[set[tuple[int, str]], Counter[Doubt]]:
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
            kind = judge(one.statement, other.statement)
            if kind is not None:
                counted[kind] += 1
                found |= {(place, one.key), (behind, other.key)}
    return found, counted


def _said_again(
    said: Sequence[Sequence[_Said]], disputed: set[tuple[int, str]], likeness: Likeness
) -> frozenset[tuple[int, str]]:
    """Return the sentences, by source and key, of which another source says everything in other words."""
    units = [
        (place, each)
        for place, some in enumerate(said)
        for each in {each.key: each for each in some}.values()
        if each.unit.is_prose and not each.unit.is_heading and (place, each.key) not in disputed
    ]
    if len({place for place, _ in units}) < 2 or len(units) > _MAX_UNITS:
        return frozenset()
    alike = likeness([each.unit.said for _, each in units])
    kept: list[int] = []
    again: set[int] = set()
    for row, (place, each) in enumerate(units):
        others = [known for known in kept if units[known][0] != place and known not in again]
        if any(_adds_nothing(each, units[known][1], alike[row][known]) for known in others):
            again.add(row)
            continue
        again |= {known for known in others if _adds_nothing(units[known][1], each, alike[row][known])}
        kept.append(row)
    return frozenset((units[row][0], units[row][1].key) for row in again)


def _adds_nothing(each: _Said, other: _Said, similarity: float) -> bool:
    """Tell whether a sentence says no more than another one, and nothing else."""
    one, two = each.statement, other.statement
    if similarity < SAID_IN_THE_SAME_WORDS or not have_same_marks(one, two) or conflict(one, two) is not None:
        return False
    own, theirs = one.stems - two.stems, two.stems - one.stems
    if similarity >= SAID_AGAIN:
        return len(own) <= max(1, len(theirs))
    return not own and len(theirs) <= 1


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
