"""Convert times between seconds, ISO 8601 and datetimes; parse times from callers."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from typing import overload

from commonplace.dates import calendar, mentions, moment_ago, without
from commonplace.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The end of the range of `datetime`, as `EARLIEST` is its start; a time outside is clamped."""


def moment_of(at: float) -> datetime:
    """Return seconds since the epoch as an aware datetime in UTC, within the years 1 to 9999."""
    return datetime.fromtimestamp(min(max(at, EARLIEST), LATEST), UTC)


def seconds_of(moment: datetime) -> float:
    """Return a datetime as seconds since the epoch; one without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Not timestamp(): it uses local time for odd zones, and fails for early years on some systems.
    return (aware - _EPOCH).total_seconds()


def parse(text: str) -> float:
    """Return an ISO 8601 text as seconds since the epoch; one without a zone is UTC.

    Raises:
        ValueError: the text is no ISO 8601 time.
    """
    return seconds_of(datetime.fromisoformat(text))


@overload
def iso(at: float | datetime) -> str: ...
@overload
def iso(at: float | datetime | None) -> str | None: ...
def iso(at: float | datetime | None) -> str | None:
    """Return a time in ISO 8601: 2026-03-01T09:30:00Z, with microseconds only if not zero; None for None."""
    if at is None:
        return None
    moment = at if isinstance(at, datetime) else moment_of(at)
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


Moment = datetime | str | float | int
"""A time: a datetime or an ISO 8601 text (UTC if it names no zone), or seconds since the epoch."""

_WORD = re.compile(r"\w")
_CLOCK = re.compile(r"(?:, *| +)(?:at +)?(?:(\d\d?):(\d\d)|(\d\d?)(?::(\d\d))? ?([ap])m)\s*", re.IGNORECASE)
"""A time of day after a day."""
_LONGEST_DAY_S = 25 * 3_600.0
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
"""An ISO 8601 year, month or day."""


def seconds(name: str, moment: Moment) -> float:
    """Return a time as seconds since the epoch; a month or year such as "2026-03" means its start.

    Raises:
        UsageError: the value is no time, or outside the years 1 to 9999.
    """
    result = math.nan
    try:
        if isinstance(moment, str):
            period = _period(moment)
            result = parse(moment.strip()) if period is None else period[0]
        elif isinstance(moment, datetime):
            result = seconds_of(moment)
        elif isinstance(moment, int | float) and not isinstance(moment, bool):
            result = float(moment)
    except (ValueError, OverflowError):
        pass
    if not EARLIEST <= result <= LATEST:
        raise UsageError(
            f"{name} is {moment!r:.80}",
            remedy="give an ISO 8601 time like 2026-03-01T09:30:00Z, a datetime, or seconds since the epoch, of the"
            " years 1 to 9999",
            parameters=(name,),
        )
    return result


def moment_in_words(
    name: str, moment: Moment, now: float, *, is_start: bool = False, zone: tzinfo | None = UTC
) -> float:
    """Return a time, which may be given in words, as seconds since the epoch.

    A period such as "last Tuesday", "2026-03" or "2026-03-01" means its end, or now if it contains it; "two hours
    ago" and "yesterday at 5 pm" mean that exact moment.

    Args:
        is_start: a period means its start.
        zone: the timezone of days, months and times that name none; None is this machine's.

    Raises:
        UsageError: the text has no time, or more than one.
    """
    if not isinstance(moment, str):
        return seconds(name, moment)
    unread = UsageError(
        f"{name} is {moment!r:.80}",
        remedy="give an ISO 8601 time like 2026-03-01T09:30:00Z, of the years 1 to 9999,"
        ' or words such as "last Tuesday"',
        parameters=(name,),
    )
    if moment.strip().lower() == "now":
        return now
    period = _period(moment, zone)
    if period is None:
        try:
            known: float | None = seconds(name, _aware(datetime.fromisoformat(moment.strip()), zone))
        except (ValueError, OverflowError, UsageError):
            known = moment_ago(moment, now=moment_of(now))
        if known is not None:
            return known
        found = mentions(moment, now=moment_of(now).astimezone(zone))
        if len(found) != 1:
            raise unread
        period = found[0].since, found[0].until
        clock = _CLOCK.fullmatch(moment, found[0].end) if not found[0].start else None
        if clock is not None and period[1] - period[0] <= _LONGEST_DAY_S:
            hour = int(clock[1]) if clock[1] else int(clock[3]) % 12 + (12 if clock[5] in "pP" else 0)
            minute = int(clock[2] or clock[4] or 0)
            if hour <= 23 and minute <= 59 and int(clock[3] or 1) in range(1, 13):
                return seconds_of(moment_of(period[0]).astimezone(zone).replace(hour=hour, minute=minute))
        if _WORD.search(without(moment, found)):
            raise unread
    since, until = period
    if is_start:
        if since < EARLIEST:
            raise unread
        return since
    return now if since <= now < until else min(until - 0.001, LATEST)


def _aware(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return a datetime with a zone: its own, else the one given, None for this machine's."""
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


def _period(text: str, zone: tzinfo | None = UTC) -> tuple[float, float] | None:
    """Return the start and end of an ISO 8601 day, month or year, None for any other text."""
    match = _PERIOD.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(number) if number else 0 for number in match.groups())
    try:
        months = 1 if month else 12
        period = calendar.day(year, month, day) if day else calendar.months(year, month or 1, months, "span")
        return seconds_of(_aware(period.since, zone)), seconds_of(_aware(period.until, zone))
    except (ValueError, OverflowError):
        return None
