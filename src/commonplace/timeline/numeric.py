"""Dates and times written in digits: ISO 8601, day.month.year where it cannot be another, and the time of day."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from commonplace.timeline.periods import Cycle, Period, Scene, day, hours, mapped, minute, months, wall, weekly
from commonplace.timeline.stream import Words
from commonplace.timeline.vocabulary import COUNTED, DAYPARTS, MEASURES, NOT_COUNTED


class Read(NamedTuple):
    """What was read: its value, the number of the word behind it, and what must stand before it to be believed.

    Attributes:
        doubt: "" when it is a date anywhere, else the kind that a preposition or `last`, `this`, `next` must vouch for.
    """

    value: Period | Cycle
    end: int
    doubt: str = ""


ISO = re.compile(
    r"(\d{4})-(\d{2})(?:-(\d{2})(?:(?:T|[ ])(\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?"
    r"(Z|[+-]\d{2}:?\d{2})?)?)?(?![\w-]|[.:/]\w)",
    re.ASCII,
)
ISO_WEEK = re.compile(r"(\d{4})-W(\d{2})(?![\w-])", re.ASCII)
YEAR_FIRST = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?![\w-]|[./:]\w)", re.ASCII)
DAY_MONTH_YEAR = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\w-]|[./:]\w)", re.ASCII)
TIME = re.compile(
    r"(\d{1,2})(?:[:.](\d{2})(?::\d{2})?)?[ ]?(am|pm|a\.m\.|p\.m\.)(?!\w)|(\d{1,2}):(\d{2})(?::\d{2})?(?![\w:]|[.-]\w)",
    re.IGNORECASE | re.ASCII,
)
OPENING = frozenset("([\"'“‘*_;|~<>")
"""Marks that a number may follow without a space and still begin there."""
MONTH_YEARS = range(1900, 2200)
"""Years for which 2026-05 is a month; with other digits it is a number of something."""


def read_numeric(words: Words, at: int, scene: Scene) -> Read | None:
    """Read a date in digits that begins with a word; it never begins within a longer number or path."""
    start = words[at].start
    for pattern, make in ((ISO, _iso), (YEAR_FIRST, _year_first), (DAY_MONTH_YEAR, _day_first), (ISO_WEEK, _iso_week)):
        match = pattern.match(words.text, start)
        if match is None:
            continue
        period = make(match, scene.zone)
        return Read(period, words.after(match.end(), at)) if period is not None else None
    return None


def _iso(match: re.Match[str], zone: tzinfo) -> Period | None:
    year, month = int(match[1]), int(match[2])
    if match[3] is None:
        return months(year, month, 1, "month") if year in MONTH_YEARS else None
    if match[4] is None:
        return day(year, month, int(match[3]))
    moment = datetime(year, month, int(match[3]), int(match[4]), int(match[5]))  # noqa: DTZ001
    if match[7] is None:
        return minute(day(year, month, moment.day), moment.hour * 60 + moment.minute)
    offset = timedelta(0)
    if match[7] != "Z":
        digits = match[7][1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if match[7][0] == "-" else 1)
    seconds = (moment - datetime(1970, 1, 1) - offset).total_seconds()  # noqa: DTZ001
    return Period(wall(seconds, zone), wall(seconds + 60, zone), "minute")


def _iso_week(match: re.Match[str], _zone: tzinfo) -> Period | None:
    monday = datetime.fromisocalendar(int(match[1]), int(match[2]), 1)
    return weekly(0, 7, "week").make((monday.toordinal() - 1) // 7)


def _year_first(match: re.Match[str], _zone: tzinfo) -> Period | None:
    return day(int(match[1]), int(match[2]), int(match[3]))


def _day_first(match: re.Match[str], _zone: tzinfo) -> Period | None:
    """Read 13/5/2024 either way round, 3.4.2024 as Europe writes it, and 3/4/2024 not at all."""
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if match[2] == "." or first > 12 or first == second:
        return day(year, second, first)
    return day(year, first, second) if second > 12 else None


class Clock(NamedTuple):
    """A time of day: what it makes of a day, and the number of the word behind it."""

    apply: Callable[[Period], Period | None]
    end: int

    def of(self, value: Period | Cycle) -> Period | Cycle | None:
        """Return that time on a day."""
        return mapped(value, self.apply, "part")


def read_time(words: Words, at: int) -> Clock | None:
    """Read 5 pm (an hour), 5:30 pm or 17:30 (a minute), noon."""
    word = words[at]
    if word.lower in ("noon", "midday"):
        return Clock(lambda period: hours(period, 12, 13, "hour"), at + 1)
    match = TIME.match(words.text, word.start) if word.text[:1].isdigit() else None
    if match is None:
        return None
    end = words.after(match.end(), at)
    hour, minutes = int(match[1] or match[4]), int(match[2] or match[5] or 0)
    if match[3] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[3][0] in "pP" else 0)
    if hour > 23 or minutes > 59:
        return None
    if match[2] is None and match[5] is None:
        return Clock(lambda period: hours(period, hour, hour + 1, "hour"), end)
    return Clock(lambda period: minute(period, hour * 60 + minutes), end)


def read_clock(words: Words, at: int) -> Clock | None:
    """Read what may follow a day: `, at 5 pm`, `10:30`, `evening`, `in the morning`."""
    if words[at].lower == ",":
        at += 1
    part_at = at + 2 if words[at].lower == "in" and words[at + 1].lower == "the" else at
    part = DAYPARTS.get(words[part_at].lower)
    if part is not None:
        first, last = part
        return Clock(lambda period: hours(period, first, last, "part"), part_at + 1)
    if words[at].lower in ("at", "around", "@"):
        at += 1
    return read_time(words, at)


def is_loose(words: Words, at: int) -> bool:
    """Tell whether a number stands alone to its left: no decimal, path, price or identifier goes on in it."""
    before = words[at - 1].lower
    if before == ",":
        return not words[at].glued or not words[at - 2].text[-1:].isdigit()
    return not words[at].glued or before in OPENING


def goes_on(words: Words, at: int, marks: str) -> bool:
    """Tell whether a number goes on behind one of some marks: a decimal, a time, a path."""
    mark, behind = words[at], words[at + 1]
    return mark.glued and mark.lower in marks and behind.glued and behind.text[:1].isdigit()


def is_count_of(words: Words, at: int) -> bool:
    """Tell whether the word at a place makes the number before it a count: `files`, `ms`, `%`."""
    word = words[at]
    if word.lower in MEASURES or word.lower in COUNTED or goes_on(words, at, ".,:/-"):
        return True
    return word.text.isalpha() and word.text.islower() and word.lower.endswith("s") and word.lower not in NOT_COUNTED
