"""Count that memories were recalled, without a write for every question. It knows ids and times, no store."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.types import Hit

COUNTED_HITS = 3
"""Of one answer, at most so many hits count as used, and only those that are `sure`."""

ONCE_IN_S = 3_600.0
"""Recalled again within the hour, a memory was used once: asking thrice must not carry it up a tier."""

MOST_PENDING = 16


class UseCounter:
    """Collects the ids of memories that were recalled, until they are written. Safe for threads.

    What is pending when a process is killed is lost; nothing that was acknowledged depends on it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, None] = {}
        self._counted: dict[str, float] = {}

    def count(self, hits: Sequence[Hit], now: float) -> bool:
        """Take the memories of an answer; return whether enough are pending to be written."""
        with self._lock:
            for hit in hits[:COUNTED_HITS]:
                is_fresh = abs(now - self._counted.get(hit.owner_id, -ONCE_IN_S)) >= ONCE_IN_S
                if hit.kind == "memory" and hit.confidence == "sure" and is_fresh:
                    self._counted[hit.owner_id] = now
                    self._pending[hit.owner_id] = None
            return len(self._pending) >= MOST_PENDING

    def take(self) -> list[str]:
        """Return what is pending, which is then so no longer."""
        with self._lock:
            pending, self._pending = list(self._pending), {}
            return pending
