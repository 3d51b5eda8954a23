"""Calendar periods and arithmetic on them, in the local time of one timezone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Literal

from commonplace.dataclasses import dataclass
from commonplace.dates.vocabulary import WEEKDAYS

Prefer = Literal["past", "future", "near"]

REACH = 9
"""Years or weeks searched on both sides for a cycle's occurrence; leap days can be eight years apart."""


@dataclass(frozen=True, slots=True)
class Period:
    """A half-open interval of wall-clock time without timezone.

    Attributes:
        unit: "day", "weekend", "week", "month", "quarter", "season", "half", "year", or "span" for all else.
        moment: the moment within it that is most likely meant, None if any is: `two weeks ago` counts to a day.
    """

    since: datetime
    until: datetime
    unit: str
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cycle:
    """A date that recurs every year or week, where the text does not say which.

    Attributes:
        make: returns the period of a year, or of a week counted from the first Monday of year 1; None or ValueError
            if there is none.
    """

    every: Literal["year", "week"]
    unit: str
    make: Callable[[int], Period | None]

    def number(self, moment: datetime) -> int:
        """Return the year or week that holds a moment."""
        return moment.year if self.every == "year" else (moment.toordinal() - 1) // 7

    def near(self, moment: datetime) -> list[Period]:
        """Return the occurrences around a moment, ascending."""
        base = self.number(moment)
        periods = (self.occurrence(number) for number in range(base - REACH, base + REACH + 1))
        return [period for period in periods if period is not None]

    def occurrence(self, number: int) -> Period | None:
        """Return the period of a year or week, or None if that has none."""
        try:
            return self.make(number)
        except (ValueError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class Scene:
    """The context of resolution: a wall-clock time without timezone, its timezone, and the preferred side."""

    now: datetime
    zone: tzinfo
    prefer: Prefer


def mapped(value: Period | Cycle, change: Callable[[Period], Period | None], unit: str) -> Period | Cycle | None:
    """Return a changed period, or a cycle whose every occurrence is changed."""
    if isinstance(value, Period):
        return change(value)
    make = value.make

    def changed(number: int) -> Period | None:
        period = make(number)
        return change(period) if period is not None else None

    return Cycle(value.every, unit, changed)


def chosen(value: Period | Cycle, scene: Scene) -> Period | None:
    """Return a period itself; of a cycle the last occurrence that has begun, or the first that is not over.

    With "near", a date without a year that began within the last three months is that one.
    """
    if isinstance(value, Period):
        return value
    near = value.near(scene.now)
    if scene.prefer == "near" and value.every == "year":
        distance = {period: max(period.since - scene.now, (scene.now - period.since) * 3) for period in near}
        return min(distance, key=distance.__getitem__, default=None)
    if scene.prefer == "past":
        return next((period for period in reversed(near) if period.since <= scene.now), None)
    return next((period for period in near if period.until > scene.now), None)


def occurrence(cycle: Cycle, scene: Scene, side: int) -> Period | None:
    """Return the latest that is over (-1), the one of now, else of this year or week (0), or the next to begin (1)."""
    near, now = cycle.near(scene.now), scene.now
    if side < 0:
        return next((period for period in reversed(near) if period.until <= now), None)
    if side > 0:
        return next((period for period in near if period.since > now), None)
    holding = (period for period in near if period.since <= now < period.until)
    return next(holding, None) or cycle.occurrence(cycle.number(now))


def joined(first: Period | Cycle, last: Period | Cycle) -> Period | Cycle | None:
    """Return the time from the start of one to the end of the other; a missing year or week follows from the other."""

    def to_last(period: Period) -> Period | None:
        until = last
        if isinstance(until, Cycle):
            near = until.near(period.since)
            until = next((candidate for candidate in near if candidate.since >= period.since), period)
        return Period(period.since, until.until, "span") if period.since < until.since else None

    if isinstance(first, Cycle):
        if isinstance(last, Cycle):
            return mapped(first, to_last, "span")
        start = last.since
        first = next((candidate for candidate in reversed(first.near(start)) if candidate.since <= start), last)
    return to_last(first)


def moved(moment: datetime, unit: str, count: int) -> datetime:
    """Return the moment a number of units later; the day is at most the last of the month.

    Raises:
        OverflowError: it is outside the years 1–9999.
    """
    from dateutil.relativedelta import relativedelta

    months = {"month": 1, "quarter": 3, "year": 12}
    try:
        if unit in months:
            return moment + relativedelta(months=months[unit] * count)
        return moment + timedelta(days=count * 7 if unit == "week" else count)
    except ValueError as error:
        raise OverflowError(str(error)) from error


def floor(moment: datetime, unit: str) -> datetime:
    """Return the start of the day, week (Monday), month, quarter or year that holds a moment."""
    midnight = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001
    if unit in ("day", "week"):
        return midnight - timedelta(days=midnight.weekday() if unit == "week" else 0)
    first = midnight.replace(day=1)
    if unit == "month":
        return first
    if unit == "quarter":
        return first.replace(month=first.month - (first.month - 1) % 3)
    return first.replace(month=1)


def stretch(since: datetime, unit: str, count: int = 1) -> datetime:
    """Return the end of a number of units, at most the end of the calendar."""
    try:
        return moved(since, unit, count)
    except OverflowError:
        return datetime.max  # noqa: DTZ901


def of_unit(moment: datetime, unit: str) -> Period:
    since = floor(moment, unit)
    return Period(since, stretch(since, unit), unit)


def day(year: int, month: int, number: int) -> Period:
    """Return a day; ValueError if it does not exist."""
    return days(datetime(year, month, number), 1, "day")  # noqa: DTZ001


def days(since: datetime, count: int, unit: str) -> Period:
    """Return a number of whole days."""
    return Period(since, stretch(since, "day", count), unit)


def months(year: int, month: int, count: int, unit: str) -> Period:
    """Return a number of months from the first day of one; ValueError if it does not exist."""
    since = datetime(year, month, 1)  # noqa: DTZ001
    return Period(since, stretch(since, "month", count), unit)


def weekly(name: str) -> Cycle:
    """Return the cycle of a weekday or `weekend`."""
    weekday, count, unit = (5, 2, "weekend") if name == "weekend" else (WEEKDAYS[name], 1, "day")
    return Cycle("week", unit, lambda week: days(datetime.fromordinal(week * 7 + weekday + 1), count, unit))


def part(period: Period, count: int, which: int) -> Period | None:
    """Return one of two, three or four parts of a period, counted from 0; None if such a part is not usual.

    The thirds of a month end on the 10th, the 20th and its last day, its halves on the 15th and its last day. Parts of
    longer periods are whole months. The thirds of a week have two, two and three days.
    """
    after = {("week", 3): (0, 2, 4), ("month", 3): (0, 10, 20), ("month", 2): (0, 15)}.get((period.unit, count))
    length = {"quarter": 3, "season": 3, "half": 6, "year": 12}.get(period.unit)
    if after is not None:
        cuts = [period.since + timedelta(days=number) for number in after]
    elif length is not None and (count == 3 or period.unit == "year"):
        cuts = [moved(period.since, "month", length // count * number) for number in range(count)]
    else:
        return None
    return Period(cuts[which], (*cuts, period.until)[which + 1], "span") if which < count else None
