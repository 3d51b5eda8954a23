"""Say since when and until when a fact holds, from a date in its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Final, NamedTuple

from commonplace.timeline import Mention

_SINCE: Final = frozenset({"since", "from", "starting", "after"})
UP_TO: Final = frozenset({"until", "till"})
_UNTIL: Final = UP_TO | {"before", "by"}
_BETWEEN: Final = frozenset({"from", "between", "during"})


class Validity(NamedTuple):
    """When a fact holds: seconds since the epoch, half-open, None unknown or open."""

    since: float | None = None
    until: float | None = None


def nearest(dates: Sequence[Mention], subject: int, verb: int, end: int) -> Mention | None:
    """Return the date that belongs to a verb: the first behind it in its clause, else the last before its subject."""
    behind = next((date for date in dates if verb <= date.start < end), None)
    if behind is not None:
        return behind
    return next((date for date in reversed(dates) if date.end <= subject), None)


def says_end(date: Mention | None) -> bool:
    """Tell whether a date may say until when something was: `until May`, `from 2015 to 2019`."""
    return date is not None and _first_word(date) in _UNTIL | _BETWEEN


def once(date: Mention | None, *, at: float) -> Validity:
    """Return when something was so by a verb that tells neither how it began nor how it ended: `lived`."""
    valid = validity(date, at=at, is_event=False, is_end=False, is_past=True)
    if date is None or valid.since is None or _first_word(date) in _SINCE or not isfinite(date.until):
        return valid
    return Validity(valid.since, min(date.until, at)) if valid.since < at else Validity()


def validity(date: Mention | None, *, at: float, is_event: bool, is_end: bool, is_past: bool) -> Validity:
    """Return when a fact holds.

    Args:
        at: the time of the text.
        is_event: the verb tells how the fact began, or ended: `joined`, `left`.
        is_end: the fact ends.
        is_past: the verb stands in the past.
    """
    if date is None:
        return Validity()
    since = date.since if isfinite(date.since) else None
    until = date.until if isfinite(date.until) else None
    said = _first_word(date)
    if since is not None and until is not None and said in _BETWEEN and not is_event and until > since:
        return Validity(since, until)
    if since is None:
        return Validity(None, until) if said in _UNTIL else Validity()
    if is_end:
        return Validity(None, since)
    is_now = until is not None and since <= at < until
    if said in _SINCE or is_event or (is_past and not is_now):
        return Validity(since, None)
    return Validity(since, None) if since > at else Validity()


def _first_word(date: Mention) -> str:
    return date.text.split(maxsplit=1)[0].lower()
