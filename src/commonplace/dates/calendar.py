"""Calendar periods and arithmetic on them, in the local time of one timezone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, datetime, timedelta, tzinfo
from typing import Literal, get_args

from commonplace.dataclasses import dataclass

Unit = Literal["day", "weekend", "week", "month", "quarter", "season", "half", "year", "span"]
Prefer = Literal["past", "future"]

UNIT_NAMES: dict[str, Unit] = {unit: unit for unit in get_args(Unit)}
FIRST, LAST = datetime.min, datetime.max  # noqa: DTZ901
REACH = 9
"""Years or weeks searched to both sides for what a cycle means; leap days can be eight years apart."""


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open stretch of wall-clock time without timezone; None is an open end."""

    since: datetime | None
    until: datetime | None
    unit: Unit


@dataclass(frozen=True, slots=True)
class Cycle:
    """What comes once in every year or week, the words not saying in which.

    Attributes:
        make: returns the period of a year, or of a week counted from the first Monday of year 1; None or ValueError
            if there is none.
    """

    every: Literal["year", "week"]
    unit: Unit
    make: Callable[[int], Period | None]

    def number(self, moment: datetime) -> int:
        """Return the year or week that holds a moment."""
        return moment.year if self.every == "year" else (moment.toordinal() - 1) // 7

    def near(self, moment: datetime) -> list[Period]:
        """Return the occurrences around a moment, ascending."""
        base = self.number(moment)
        made = (self.occurrence(number) for number in range(base - REACH, base + REACH + 1))
        return [period for period in made if period is not None]

    def occurrence(self, number: int) -> Period | None:
        """Return the period of a year or week, or None if that has none."""
        try:
            return self.make(number)
        except (ValueError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class Scene:
    """What dates are resolved against: a wall-clock time without timezone, its timezone, the side to look to."""

    now: datetime
    zone: tzinfo
    prefer: Prefer

    @property
    def today(self) -> datetime:
        return floor(self.now, "day")


def mapped(value: Period | Cycle, change: Callable[[Period], Period | None], unit: Unit) -> Period | Cycle | None:
    """Return a period changed, or a cycle whose every occurrence is."""
    if isinstance(value, Period):
        return change(value)
    make = value.make

    def changed(number: int) -> Period | None:
        period = make(number)
        return change(period) if period is not None else None

    return Cycle(value.every, unit, changed)


def chosen(value: Period | Cycle, scene: Scene) -> Period | None:
    """Return the last occurrence that has begun, or the first that is not over."""
    if isinstance(value, Period):
        return value
    near = [(bounds(period), period) for period in value.near(scene.now)]
    if scene.prefer == "past":
        return next((period for (since, _), period in reversed(near) if since <= scene.now), None)
    return next((period for (_, until), period in near if until > scene.now), None)


def occurrence(cycle: Cycle, scene: Scene, side: int) -> Period | None:
    """Return the latest that is over (-1), the one of now, else of this year or week (0), or the next to begin (1)."""
    near, now = cycle.near(scene.now), scene.now
    if side < 0:
        return next((period for period in reversed(near) if bounds(period)[1] <= now), None)
    if side > 0:
        return next((period for period in near if bounds(period)[0] > now), None)
    holding = (period for period in near if bounds(period)[0] <= now < bounds(period)[1])
    return next(holding, None) or cycle.occurrence(cycle.number(now))


def bounds(period: Period) -> tuple[datetime, datetime]:
    """Return both ends, an open one as the end of the calendar."""
    return period.since or FIRST, period.until or LAST


def joined(first: Period | Cycle, last: Period | Cycle) -> Period | Cycle | None:
    """Return the time from the start of one to the end of the other; a missing year or week follows from the other."""
    if isinstance(first, Cycle) and isinstance(last, Cycle):
        return mapped(first, lambda period: _until(period, last), "span")
    if isinstance(first, Cycle) and isinstance(last, Period):
        start = bounds(last)[0]
        first = next((period for period in reversed(first.near(start)) if bounds(period)[0] <= start), last)
    assert isinstance(first, Period)
    return _until(first, last)


def _until(first: Period, last: Period | Cycle) -> Period | None:
    since = bounds(first)[0]
    if isinstance(last, Cycle):
        found = next((period for period in last.near(since) if bounds(period)[0] >= since), None)
        if found is None:
            return None
        last = found
    return Period(first.since, last.until, "span") if since < bounds(last)[0] else None


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


def stretch(since: datetime, unit: str, count: int = 1) -> datetime:
    """Return the end of a number of units, at most the end of the calendar."""
    try:
        return moved(since, unit, count)
    except OverflowError:
        return LAST


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


def of_unit(moment: datetime, unit: str) -> Period:
    since = floor(moment, unit)
    return Period(since, stretch(since, unit), UNIT_NAMES.get(unit, "span"))


def day(year: int, month: int, number: int) -> Period:
    """Return a day; ValueError if it does not exist."""
    since = datetime(year, month, number)  # noqa: DTZ001
    return Period(since, stretch(since, "day"), "day")


def months(year: int, month: int, count: int, unit: Unit) -> Period:
    """Return a number of months from the first day of one; ValueError if it does not exist."""
    since = datetime(year, month, 1)  # noqa: DTZ001
    return Period(since, stretch(since, "month", count), unit)


def years(year: int, count: int, unit: Unit) -> Period:
    """Return a number of whole years."""
    if not MINYEAR <= year <= MAXYEAR:
        raise ValueError(f"year {year} is out of range")
    return months(year, 1, 12 * count, unit)


def days(since: datetime, count: int, unit: Unit) -> Period:
    """Return a number of whole days."""
    return Period(since, stretch(since, "day", count), unit)


def weekly(weekday: int, count: int, unit: Unit) -> Cycle:
    """Return a period that begins on a weekday (Monday is 0) and lasts a number of days."""

    def make(week: int) -> Period:
        return days(datetime.fromordinal(week * 7 + weekday + 1), count, unit)

    return Cycle("week", unit, make)


def third(period: Period, which: int) -> Period | None:
    """Return the first, second or last third as people mean it, for a week or longer.

    Of a month: up to the 10th, the 20th, its end; of what is longer: whole months or years; of a week: two, two and
    three days.
    """
    since, until = bounds(period)
    if period.unit == "week":
        cuts = [since + timedelta(days=count) for count in (0, 2, 4)]
    elif period.unit == "month":
        cuts = [since + timedelta(days=count) for count in (0, 10, 20)]
    elif period.unit in ("quarter", "season", "half", "year"):
        length = {"quarter": 1, "season": 1, "half": 2, "year": 4}[period.unit]
        cuts = [moved(since, "month", length * count) for count in range(3)]
    else:
        return None
    return Period(cuts[which], (*cuts, until)[which + 1], "span")


def epoch(moment: datetime | None, zone: tzinfo, otherwise: float) -> float:
    """Return seconds since the epoch of a wall-clock time, or `otherwise` for an open end."""
    return otherwise if moment is None else moment.replace(tzinfo=zone).timestamp()
