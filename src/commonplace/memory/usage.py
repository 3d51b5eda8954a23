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
"""Of an answer, so many hits at most count as used."""
ONCE_IN_S: Final = 3_600.0
"""Recalled again within the hour, a memory was used once: asking thrice must not carry it up a tier."""
WRITE_AFTER_S: Final = 0.25
"""So long a use waits for others to be written with, which is all that a process that is killed loses."""
MAX_FAILED: Final = 1_000
"""So many uses are kept where they cannot be written, as while another process holds the store; the oldest go first."""
_log = logging.getLogger(__name__)


class Use(NamedTuple):
    """A memory was used: its id, and when, in seconds since the epoch."""

    id: str
    at: float


def used_hits(hits: Sequence[Hit]) -> list[str]:
    """Return the ids of the memories of an answer that count as used: among the first three hits, and likely or sure.

    What a newer memory may have overtaken stands there to be told apart from it, and is not used.
    """
    return [
        hit.owner_id
        for hit in hits[:COUNTED_HITS]
        if hit.kind == "memory" and hit.confidence in ("likely", "sure") and hit.superseded_by is None
    ]


def injected_hits(hits: Iterable[Hit]) -> list[str]:
    """Return the ids of the memories that count as used since they were given to a model: all that are not weak."""
    return [
        hit.owner_id for hit in hits if hit.kind == "memory" and hit.confidence != "weak" and hit.superseded_by is None
    ]


def write_uses(store: Store, namespace: str, policy: RetentionPolicy, uses: Iterable[Use]) -> bool:
    """Count uses in one transaction, each memory once an hour whichever process asks; what is gone is passed over.

    A use before the last one does not count: another process wrote that meanwhile, or the clock was set back.

    Returns:
        Whether a page is to be written again: a memory changed its tier, or is a long one, whose place use decides.
    """
    is_due = False
    with store.change_memories(namespace) as change:
        for id_, at in uses:
            known = change.find(id_)
            if known is None or known.expired_at is not None:
                continue
            if known.record.use_count == 0 or at - known.record.last_used >= ONCE_IN_S:
                record = policy.used(known.record, at)
                is_shown = record.tier != known.record.tier or record.tier == "long"
                change.revise(known.number, record, is_shown=is_shown)
                is_due |= is_shown
    return is_due


class UseCounter:
    """Collects uses and writes them together, a moment later in a thread of its own. Safe for threads.

    The interpreter waits for the thread at its end, so that only a process that is killed loses what is pending.

    Args:
        write: writes uses, and raises a `CommonplaceError` where it cannot.
    """

    def __init__(self, write: Callable[[Sequence[Use]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._writing = threading.RLock()  # what is written may lead to a call that writes what is pending
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
            except CommonplaceError as error:  # the question was answered all the same
                _log.warning("the use of %d memories could not be counted: %s", len(pending), error)
                with self._lock:
                    self._pending = [*pending, *self._pending][-MAX_FAILED:]
                return
            latest = max(use.at for use in pending)
            with self._lock:
                self._counted = {id_: at for id_, at in self._counted.items() if abs(latest - at) < ONCE_IN_S}

    def close(self) -> None:
        """Write pending uses, and accept no more."""
        with self._lock:
            self._is_closed = True
        self.write()
