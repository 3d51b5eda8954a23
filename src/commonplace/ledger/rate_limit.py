"""The rate limit on operations of agents, shared by all processes on a store.

An operation is one write or one issue that is filed.
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
    """Writes into one namespace as fast as the rate limit lets it.

    Attributes:
        now: seconds since the epoch.
        sleep: waits for so many seconds.
        limit: operations a minute; 0 is without limit.
    """

    store: MemoryStore
    namespace: str
    now: Callable[[], float]
    sleep: Callable[[float], None]
    limit: int

    @contextmanager
    def change(self, count: int = 1, made_by: Embedding | None = None) -> Iterator[MemoryChange]:
        """Open a transaction that counts as so many operations, as soon as they fit into the rate limit.

        Others may write during the wait: look inside whether what is to be done is still due.

        Args:
            made_by: the embedder of vectors that are written.
        """
        while True:
            with self.store.change_memories(self.namespace, made_by=made_by) as change:
                wait = take(change.ledger, self.now(), count, self.limit)
                if not wait:
                    yield change
                    return
            self.sleep(wait)


def take(ledger: LedgerChange, now: float, count: int, limit: int) -> float:
    """Take operations out of the window, and return 0; or take none, and return after how many seconds to try again.

    More operations at once than the limit allows go when there were none within the window.

    Args:
        now: seconds since the epoch.
        count: how many, at least 1.
        limit: how many fit into the window; 0 is without limit, and they are counted all the same.
    """
    counted = _counted(ledger, now) if limit else []
    free = limit - sum(known for _, known in counted)
    for at, known in counted:
        if free >= min(count, limit):
            break
        free += known
        if free >= min(count, limit):
            # Never 0, which would say that they were taken: computed in floats, a wait can come to nothing.
            return max(at + WINDOW_S - now, _MIN_WAIT_S)
    ledger.add_operations(now, count, keep_since=now - WINDOW_S)
    return 0.0


def remaining(ledger: LedgerReading, now: float, limit: int) -> int | None:
    """Return how many operations still fit into the window, None where there is no limit."""
    return max(0, limit - sum(count for _, count in _counted(ledger, now))) if limit else None


def _counted(ledger: LedgerReading, now: float) -> list[tuple[float, int]]:
    """Return what is inside the window; of what a clock that went ahead wrote far in the future, nothing."""
    return [
        (at, count) for at, count in ledger.operations_since(now - WINDOW_S) if now - WINDOW_S < at <= now + WINDOW_S
    ]
