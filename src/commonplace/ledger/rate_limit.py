"""The rate limit on operations of agents, shared by all processes on a store.

An operation is one write or one filing of an issue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.store.ledger import LedgerChange, LedgerReading
from commonplace.store.memories import MemoryChange, MemoryStore
from commonplace.types import Embedding

WINDOW_S: Final = 60.0
_MIN_WAIT_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """Opens write transactions on one namespace within the rate limit.

    Attributes:
        now: returns seconds since the epoch.
        sleep: waits for a number of seconds.
        limit: operations per minute; 0 means no limit.
    """

    store: MemoryStore
    namespace: str
    now: Callable[[], float]
    sleep: Callable[[float], None]
    limit: int

    @contextmanager
    def change(self, count: int = 1, made_by: Embedding | None = None) -> Iterator[MemoryChange]:
        """Open a transaction that counts as `count` operations, as soon as they fit into the rate limit.

        Others may write during the wait: check inside the block whether the change is still due.

        Args:
            made_by: the embedder of the vectors to write.
        """
        while True:
            with self.store.change_memories(self.namespace, made_by=made_by) as change:
                wait = take(change.ledger, self.now(), count, self.limit)
                if not wait:
                    yield change
                    return
            self.sleep(wait)


def take(ledger: LedgerChange, now: float, count: int, limit: int) -> float:
    """Count operations in the window and return 0, or count none and return the seconds after which to try again.

    More operations at once than the limit are allowed if there were none within the window.

    Args:
        now: seconds since the epoch.
        count: number of operations, at least 1.
        limit: operations per window; 0 means no limit, but they are counted all the same.
    """
    recent = _in_window(ledger, now) if limit else []
    free = limit - sum(operations for _, operations in recent)
    for at, operations in recent:
        if free >= min(count, limit):
            break
        free += operations
        if free >= min(count, limit):
            # Never 0, which would mean that they were counted: in floating point a wait can round to 0.
            return max(at + WINDOW_S - now, _MIN_WAIT_S)
    ledger.add_operations(now, count, keep_since=now - WINDOW_S)
    return 0.0


def remaining(ledger: LedgerReading, now: float, limit: int) -> int | None:
    """Return how many operations still fit into the window, None if there is no limit."""
    return max(0, limit - sum(count for _, count in _in_window(ledger, now))) if limit else None


def _in_window(ledger: LedgerReading, now: float) -> list[tuple[float, int]]:
    """Return the operations inside the window, without those that a fast clock recorded far in the future."""
    return [
        (at, count) for at, count in ledger.operations_since(now - WINDOW_S) if now - WINDOW_S < at <= now + WINDOW_S
    ]
