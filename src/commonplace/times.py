"""Times as seconds since the epoch, as datetimes and as text: one range, one form in JSON, one reading."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The range of `datetime`; a time outside is shown as the nearer end."""


def moment_of(at: float) -> datetime:
    """Return seconds since the epoch as an aware datetime in UTC, within the years 1 to 9999."""
    return datetime.fromtimestamp(min(max(at, EARLIEST), LATEST), UTC)


def seconds_of(moment: datetime) -> float:
    """Return a datetime as seconds since the epoch; one without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Not timestamp(): it goes through local time where the zone is odd, and fails for early years on some systems.
    return (aware - _EPOCH).total_seconds()


def parse(text: str) -> float:
    """Return an ISO 8601 text as seconds since the epoch; one without a zone is UTC.

    Raises:
        ValueError: it is none.
    """
    return seconds_of(datetime.fromisoformat(text))


@overload
def iso(at: float | datetime) -> str: ...
@overload
def iso(at: float | datetime | None) -> str | None: ...
def iso(at: float | datetime | None) -> str | None:
    """Return a time as JSON has it: 2026-03-01T09:30:00Z, with microseconds only where there are any; None for None."""
    if at is None:
        return None
    moment = at if isinstance(at, datetime) else moment_of(at)
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
