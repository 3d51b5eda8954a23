"""A clock that stands still until it is moved."""

from __future__ import annotations

from datetime import UTC, datetime

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = START.timestamp()

    def __call__(self) -> float:
        return self.now

    def move(self, days: float) -> None:
        self.now += days * DAY
