"""Count uses of memories, each at most once an hour, written in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Final, NamedTuple

from commonplace.errors import CommonplaceError
from commonplace.retention import RetentionPolicy
from commonplace.store.store import Store
from commonplace.types import Hit

COUNTED_HITS: Final = 3
"""Number of first hits of an answer that may count as used."""
ONCE_IN_S: Final = 3_600.0
"""Seconds within which uses of a memory count once: asking three times must not promote it."""
WRITE_AFTER_S: Final = 0.25
"""Seconds for which a use waits to be written together with others; a killed process loses no more than these."""
MAX_FAILED: Final = 1_000
"""Maximum number of uses kept while they cannot be written (another process holds the store); the oldest go first."""
_log = logging.getLogger(__name__)


class Use(NamedTuple):
    """A memory was used: its id, and when, in seconds since the epoch."""

    id: str
    at: float


def used_hits(hits: Sequence[Hit]) -> list[str]:
    """Return the ids of the memories of an answer that count as used: among the first three hits, and likely or sure.

    A memory that a newer one may supersede does not count: it is shown only to be told apart from that one.
    """
    return [
        hit.owner_id
        for hit in hits[:COUNTED_HITS]
        if hit.kind == "memory" and hit.confidence in ("likely", "sure") and hit.superseded_by is None
    ]


def injected_hits(hits: Iterable[Hit]) -> list[str]:
    """Return the ids of the memories given to a model that count as used: all that are neither weak nor superseded."""
    return [
        hit.owner_id for hit in hits if hit.kind == "memory" and hit.confidence != "weak" and hit.superseded_by is None
    ]


def write_uses(store: Store, namespace: str, policy: RetentionPolicy, uses: Iterable[Use]) -> bool:
    """Count uses in one transaction, each memory at most once an hour over all processes; skip those that are gone.

    A use before the last one does not count: another process wrote that meanwhile, or the clock was set back.

    Returns:
        Whether a page must be written again: a memory changed its tier, or is in the tier `long`, which use orders.
    """
    is_due = False
    with store.change_memories(namespace) as change:
        for id_, time in uses:
            memory = change.find(id_)
            if memory is None or memory.expired_at is not None:
                continue
            if memory.record.use_count == 0 or time - memory.record.last_used >= ONCE_IN_S:
                record = policy.used(memory.record, time)
                is_shown = record.tier != memory.record.tier or record.tier == "long"
                change.revise(memory.number, record, is_shown=is_shown)
                is_due |= is_shown
    return is_due


class UseCounter:
    """Collects uses and writes them together a moment later, in a thread of its own. Safe for threads.

    The interpreter waits for that thread on exit, so only a killed process loses pending uses.

    Args:
        write: writes uses; raises a `CommonplaceError` if it cannot.
    """

    def __init__(self, write: Callable[[Sequence[Use]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._writing = threading.RLock()  # reentrant: `_write` may lead to another call of `write`
        self._pending: list[Use] = []
        self._counted: dict[str, float] = {}
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def count(self, ids: Iterable[str], now: float) -> None:
        """Queue uses of memories, at most one per memory and hour."""
        with self._lock:
            for id_ in ids:
                if abs(now - self._counted.get(id_, -inf)) >= ONCE_IN_S:
                    self._counted[id_] = now
                    self._pending.append(Use(id_, now))
            if self._pending and self._timer is None and not self._is_closed:
                self._timer = threading.Timer(WRITE_AFTER_S, self.write)
                self._timer.name = "uses"
                self._timer.start()

    def write(self) -> None:
        """Write pending uses now; if that fails they stay pending."""
        with self._writing:
            with self._lock:
                pending, self._pending = self._pending, []
                timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            if not pending:
                return
            try:
                self._write(pending)
            except CommonplaceError as error:  # the search itself has succeeded
                _log.warning("the use of %d memories could not be counted: %s", len(pending), error)
                with self._lock:
                    self._pending = [*pending, *self._pending][-MAX_FAILED:]
                return
            latest = max(use.at for use in pending)
            with self._lock:
                self._counted = {id_: time for id_, time in self._counted.items() if abs(latest - time) < ONCE_IN_S}

    def close(self) -> None:
        """Write pending uses, and accept no more."""
        with self._lock:
            self._is_closed = True
        self.write()
