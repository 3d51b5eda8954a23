"""Times as callers give and get them: seconds, ISO texts and datetimes. It knows no clock."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from commonplace.errors import UsageError

Moment = datetime | str | float | int
"""A time: a datetime or an ISO 8601 text (UTC where it names no zone), or seconds since the epoch."""

_WORD = re.compile(r"\w")

EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def seconds(name: str, moment: Moment) -> float:
    """Return a time as seconds since the epoch.

    Args:
        name: what the value is for, for the message.

    Raises:
        UsageError: it is no time, or outside of the years 1 to 9999.
    """
    try:
        found = _parsed(moment)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not EARLIEST <= found <= LATEST:
        raise UsageError(
            f"{name} is {moment!r}",
            remedy="give an ISO 8601 time like 2026-03-01T09:30:00Z, a datetime, or seconds since the epoch, of the"
            " years 1 to 9999",
        )
    return found


def moment_in_words(name: str, moment: Moment, now: float) -> float:
    """Return a time that may also be said in words.

    "last Tuesday" is the end of it, or now where that comes first; "two hours ago" is that very moment.

    Raises:
        UsageError: no time can be read from it, or more than one.
    """
    if isinstance(moment, str):
        from commonplace.timeline import mentions, moment_ago, without

        if moment.strip().lower() == "now":
            return now
        try:
            return seconds(name, moment)
        except UsageError:
            known = moment_ago(moment, now=moment_of(now))
            if known is not None:
                return known
            found = mentions(moment, now=moment_of(now))
            if len(found) != 1 or _WORD.search(without(moment, found)):
                raise UsageError(
                    f"{name} is {moment!r:.80}",
                    remedy='give an ISO 8601 time like 2026-03-01T09:30:00Z, or words such as "last Tuesday"',
                ) from None
            return min(now, found[0].until - 0.001)
    return seconds(name, moment)


def moment_of(at: float) -> datetime:
    """Return seconds since the epoch as an aware datetime in UTC, within the years 1 to 9999."""
    return datetime.fromtimestamp(min(max(at, EARLIEST), LATEST), UTC)


def iso(at: float | None) -> str | None:
    """Return seconds since the epoch as an ISO 8601 text in UTC, None for None."""
    return None if at is None else moment_of(at).isoformat()


def _parsed(moment: object) -> float:
    if isinstance(moment, bool):
        raise TypeError
    if isinstance(moment, int | float):
        return float(moment)
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.strip())
    if not isinstance(moment, datetime):
        raise TypeError
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Not timestamp(): it goes through local time where the zone is odd, and fails for early years on some systems.
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
