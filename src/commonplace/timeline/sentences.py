"""Dates with the prepositions before them: since, until, between … and …, from … to …, in, on; and what is no date."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from commonplace.timeline.numeric import Read
from commonplace.timeline.periods import Cycle, Period, Scene, chosen, joined
from commonplace.timeline.phrases import read_date
from commonplace.timeline.relative import read_ahead
from commonplace.timeline.stream import Words
from commonplace.timeline.vocabulary import ALL, BOUNDS, EVERY, PREPOSITIONS, THROUGH, UNITS, WEEKDAYS


class Found(NamedTuple):
    """What begins at a word: a period, or None for words that only look like one; and the word behind."""

    period: Period | None
    end: int


def read(words: Words, at: int, scene: Scene) -> Found | None:
    """Read the date expression that begins at a word, with its preposition."""
    try:
        for reader in (_every, _between, _bound, _preposition):
            found = reader(words, at, scene)
            if found is not None:
                return found
        return _range_or_date(words, at, scene, frozenset())
    except (OverflowError, ValueError):  # The words name a date that the calendar does not have.
        return None


def _settled(value: Period | Cycle, end: int, scene: Scene) -> Found:
    """Return which occurrence is meant; a day that the calendar never has is passed over."""
    return Found(chosen(value, scene), end)


def _every(words: Words, at: int, scene: Scene) -> Found | None:
    """Pass over `every Monday`, `each year`, `every two weeks`: they name no one date."""
    if words[at].lower not in EVERY:
        return None
    inner = at + 2 if words[at + 1].lower in ("other", "single", "second", "last", "first") else at + 1
    if words[inner].lower in UNITS:
        return Found(None, inner + 1)
    found = read_date(words, inner, scene, ALL)
    return Found(None, found.end) if found is not None else None


def _between(words: Words, at: int, scene: Scene) -> Found | None:
    """Read `between March and May 2024`, `from 3 to 5 May`, `from Monday on`."""
    opening = words[at].lower
    if opening not in ("between", "from"):
        return None
    first = read_date(words, at + 1, scene, ALL)
    if first is None:
        return None
    joints = ("and", "&") if opening == "between" else THROUGH
    if words[first.end].lower in joints:
        last = read_date(words, first.end + 1, scene, ALL)
        value = joined(first.value, last.value) if last is not None else None
        if last is not None and value is not None:
            return _settled(value, last.end, scene)
    if opening == "between":
        return _settled(first.value, first.end, scene) if first.value.unit == "span" else None
    if words[first.end].lower in ("on", "onward", "onwards"):
        return _opened(first, first.end + 1, scene, "since")
    return None


def _bound(words: Words, at: int, scene: Scene) -> Found | None:
    """Read `since Tuesday`, `until the end of May`, `before 2024`, `up to 2024`."""
    word, inner = words[at].lower, at + 1
    if word == "up" and words[inner].lower in ("to", "until", "till"):
        word, inner = "until", inner + 1
    if word == "prior" and words[inner].lower == "to":
        word, inner = "before", inner + 1
    if word == "ever" and words[inner].lower == "since":
        word, inner = "since", inner + 1
    which = BOUNDS.get(word)
    if which is None:
        return None
    found = read_date(words, inner, scene, ALL)
    return _opened(found, found.end, scene, which) if found is not None else None


def _opened(found: Read, end: int, scene: Scene, which: str) -> Found | None:
    """Return what lies since, before, after or until a date; its own time is within `since` and `until`."""
    opened: dict[str, Callable[[Period], Period]] = {
        "since": lambda period: Period(period.since, None, "span"),
        "before": lambda period: Period(None, period.since, "span"),
        "after": lambda period: Period(period.until, None, "span"),
        "until": lambda period: Period(None, period.until, "span"),
    }
    period = chosen(found.value, scene)
    return Found(opened[which](period), end) if period is not None else None


def _preposition(words: Words, at: int, scene: Scene) -> Found | None:
    """Read `in May`, `on the 3rd of May`, `in two weeks`, `over the past month`."""
    if words[at].lower == "as" and words[at + 1].lower == "of":
        return _range_or_date(words, at + 2, scene, ALL)
    vouched = PREPOSITIONS.get(words[at].lower)
    if vouched is None:
        return None
    if words[at].lower == "in":
        ahead = read_ahead(words, at + 1, scene)
        if ahead is not None:
            return _settled(ahead.value, ahead.end, scene)
    return _range_or_date(words, at + 1, scene, vouched)


def _range_or_date(words: Words, at: int, scene: Scene, vouched: frozenset[str]) -> Found | None:
    """Read a date, or two with `to` or a dash where the second has its year or both are days."""
    loose = read_date(words, at, scene, ALL)
    first = loose if loose is not None and (not loose.doubt or loose.doubt in vouched) else None
    if loose is not None and words[loose.end].lower in THROUGH:
        last = read_date(words, loose.end + 1, scene, ALL)
        if last is not None and _is_range(loose, last, certain=first is not None):
            value = joined(loose.value, last.value)
            if value is not None:
                return _settled(value, last.end, scene)
        if last is not None and words[at].lower in WEEKDAYS and words[loose.end + 1].lower in WEEKDAYS:
            return Found(None, last.end)
    if first is None:
        return None
    if words[first.end].lower in ("onward", "onwards"):
        return _opened(first, first.end + 1, scene, "since")
    return _settled(first.value, first.end, scene)


def _is_range(first: Read, last: Read, *, certain: bool) -> bool:
    if isinstance(last.value, Period):
        return certain or last.value.unit in ("month", "day", "span", "quarter", "season")
    both_yearly = isinstance(first.value, Cycle) and first.value.every == last.value.every == "year"
    return certain and both_yearly and first.value.unit == last.value.unit
