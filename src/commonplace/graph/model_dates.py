"""Read the dates that a language model gives for facts of a text, and take none that the text does not speak of."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from commonplace.timeline import Mention, Prefer, mentions
from commonplace.times import parse

_WRITTEN: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ].*)?)?)?")
_DAY_S: Final = 86_400.0
"""A model may count a day in another timezone than ours, which is UTC."""


class Dates:
    """The dates of one text.

    Attributes:
        found: those that it speaks of, in order.
    """

    def __init__(self, content: str, at: float) -> None:
        self._now = datetime.fromtimestamp(at, UTC)
        self.found = self._mentions(content, "past")
        # Which `May` is meant, the model may know better than we do.
        self._meant = (*self.found, *self._mentions(content, "future")) if self.found else ()

    def moment(self, given: str) -> float | None:
        """Return the moment that a date names, its beginning; None where it is none, or none of the text's.

        Args:
            given: ISO 8601, also a year or a month alone, or the words of the text.
        """
        at = _written(given.strip())
        if at is None:
            said = self._mentions(given, "past")
            at = said[0].since if said and isfinite(said[0].since) else None
        return at if at is not None and any(_is_of(at, each) for each in self._meant) else None

    def _mentions(self, text: str, prefer: Prefer) -> tuple[Mention, ...]:
        return mentions(text, now=self._now, prefer=prefer)


def _is_of(at: float, date: Mention) -> bool:
    """Tell whether a moment is one that a date of the text may mean; of an open stretch it is its one end alone."""
    if isfinite(date.since) and isfinite(date.until):
        return date.since - _DAY_S <= at <= date.until + _DAY_S
    end = date.since if isfinite(date.since) else date.until
    return abs(at - end) <= _DAY_S


def _written(given: str) -> float | None:
    """Return the beginning of a date in ISO 8601, None where it is no such date."""
    match = _WRITTEN.fullmatch(given)
    if match is None:
        return None
    try:
        if len(given) > len("2026-01-01"):
            return parse(given)
        return datetime(*(int(part or 1) for part in match.groups()), tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        return None
