"""Tell when a fact held and when it was known. Times are seconds since the epoch, spans half-open, None is open.

What ends before it begins holds at no time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: from `start`, up to but without `end`."""

    start: float | None = None
    end: float | None = None

    def holds(self, at: float) -> bool:
        """Tell whether a moment lies in it."""
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)

    @property
    def is_empty(self) -> bool:
        """Tell whether no moment lies in it."""
        return self.start is not None and self.end is not None and self.end <= self.start


def holds_at(valid_from: float | None, valid_to: float | None, at: float) -> bool:
    """Tell whether a fact was true in the world at a moment."""
    return Span(valid_from, valid_to).holds(at)


def known_at(created_at: float, expired_at: float | None, at: float) -> bool:
    """Tell whether a fact was held for true at a moment, rightly or not."""
    return Span(created_at, expired_at).holds(at)


def overlap(first: Span, second: Span) -> Span | None:
    """Return the moments that two spans share, or None where they share none."""
    starts = [span.start for span in (first, second) if span.start is not None]
    ends = [span.end for span in (first, second) if span.end is not None]
    shared = Span(max(starts, default=None), min(ends, default=None))
    return None if first.is_empty or second.is_empty or shared.is_empty else shared
