"""Embed stored passages that lack vectors, at once or in a background thread, and re-embed a store."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from commonplace.errors import CommonplaceError, EmbedderMismatchError, ProviderError
from commonplace.models.contract import Embedder, TokenizedText
from commonplace.models.registry import by_space
from commonplace.ranking.arrays import quantise
from commonplace.store.store import Store
from commonplace.types import IndexEntry, Progress

BATCH: Final = 256
"""Passages embedded between two transactions; a killed process loses no more than these."""


def reembed(store: Store, embedder: Embedder, progress: Progress | None = None) -> tuple[int, int]:
    """Give every passage that lacks one a vector of the next embedder, until none does at that moment.

    Returns:
        How many passages got their vector now, and how many had it from a run before.

    Raises:
        ModelError: the data of the embedder are missing or damaged.
        ProviderError: a remote embedder did not answer; what was made is kept.
        StoreError: the store cannot be written, or another process changes it to another embedder.
    """
    store.begin_reembedding(embedder.stamp)
    begun, made = store.reembedding(), 0
    while entries := store.unembedded(BATCH):
        held = store.embedding()
        vectors: dict[int, bytes] = {}
        wanted = []
        for entry in entries:
            # A kind that keeps its embedder keeps its vectors. What the old embedder gave zeros has zeros again, and is
            # found by words alone.
            own = embedder.stamp.of(entry.kind)
            stays = held is not None and held.of(entry.kind) == own
            vectors[entry.number] = entry.vector if stays else bytes(own.dimensions)
            if not entry.vector or (not stays and any(entry.vector)):
                wanted.append(entry)
        vectors |= made_vectors(wanted, embedder)
        store.put_reembedded(embedder.stamp, [(entry.number, vectors[entry.number]) for entry in entries])
        made += len(entries)
        if progress is not None and (now := store.reembedding()) is not None:
            progress("embedding passages", now.done, now.total)
    return made, begun.done if begun else 0


def made_vectors(entries: Sequence[IndexEntry], embedder: Embedder) -> dict[int, bytes]:
    """Return a new vector for each passage, by number; those of one embedder are made at once.

    Raises:
        ProviderError: an embedder returned something else.
    """
    from commonplace.ingest.passages import passage_text

    made: dict[int, bytes] = {}
    for own in by_space(embedder):
        some = [entry for entry in entries if embedder.stamp.of(entry.kind) == own.stamp]
        texts = [
            TokenizedText(passage_text(each.title, each.heading, each.text), np.frombuffer(each.token_ids, "<u2"))
            for each in some
        ]
        if not texts:
            continue
        found = np.asarray(own.embed(texts))
        if found.shape != (len(texts), own.stamp.dimensions) or not np.isfinite(found).all():
            raise ProviderError(
                f"the embedder {own.stamp} returned something other than a vector for each of {len(texts)} texts"
            )
        made |= zip((entry.number for entry in some), (row.tobytes() for row in quantise(found)), strict=True)
    return made


_log = logging.getLogger(__name__)
_WAITING: Final = "passages wait for their vectors, and are found by their words: %s"

SLICE: Final = 32
"""Passages embedded between two transactions; a killed process repeats no more than these."""
LEASE_WAIT_S, YIELD_S = 60.0, 0.002
"""How long a slice waits for that of another process, which ends with it, and for other threads after each slice."""
LEFT_AT_CLOSE, CLOSING_S = 64, 2.0
"""Maximum number of passages, and seconds, of embedding when an engine closes; the next one continues."""


def embed_pending(store: Store, embedder: Embedder) -> int:
    """Give the next slice of passages without a vector theirs, and return how many were tried.

    Raises:
        EmbedderMismatchError: the store's vectors are another embedder's by now.
        ModelError, ProviderError: the embedder failed; what was stored is found by its words.
    """
    made = made_vectors(store.pending_vectors(SLICE), embedder)
    if made:
        store.fill_vectors(embedder.stamp, list(made.items()))
    return len(made)


class EmbeddingBacklog:
    """The passages of a store that wait for their vectors. Safe for threads; one slice at a time, in all processes.

    Args:
        lock: names the lock that a slice takes; see `Store.lock`.
        embedder: returns the store's current embedder.
        after: called after every slice that was written, and before the thread ends.

    Attributes:
        may_wait: False if nothing waited when `start` looked last.
    """

    def __init__(self, store: Store, lock: Path, embedder: Callable[[], Embedder], after: Callable[[], None]) -> None:
        self._store = store
        self._lock = lock
        self._embedder = embedder
        self._after = after
        self._starting = threading.Lock()
        self.may_wait = True
        self._is_due = False
        self._thread: threading.Thread | None = None
        self.stopped = threading.Event()

    def catch_up(self) -> None:
        """Embed pending passages if they are one slice and no thread embeds already; else leave them to the thread."""
        if not self._store.is_read_only and 0 < self._store.count_pending() <= SLICE:
            with suppress(CommonplaceError):
                self._slice(wait_s=0.0)

    def drain(self, progress: Progress | None = None) -> None:
        """Embed all that waits, and return when nothing does.

        Where the embedder fails the rest stays as it is, and is found by its words.
        """
        total = self._store.count_pending()
        if not total or self._store.is_read_only:
            return
        try:
            while self._slice():
                if progress is not None:
                    left = self._store.count_pending()
                    total = max(total, left)
                    progress("embedding passages", total - left, total)
        except CommonplaceError as error:
            _log.warning(_WAITING, error)

    def start(self, *, is_due: bool = False) -> None:
        """Embed in a thread what waits; it ends when nothing does. With `is_due` it begins even if nothing waits."""
        with self._starting:
            self._is_due |= is_due
            if self.stopped.is_set() or self._thread is not None:
                return
            self.may_wait = not self._store.is_read_only and (is_due or self._store.count_pending() > 0)
            if self.may_wait:
                self._thread = threading.Thread(target=self._work, name="embedding", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread; what it can finish soon it finishes, a longer backlog stays for the next engine."""
        if (thread := self._thread) is not None:
            if self._store.count_pending() <= LEFT_AT_CLOSE:
                thread.join(CLOSING_S)
            self.stopped.set()
            thread.join()
        self.stopped.set()

    def _work(self) -> None:
        while True:
            try:
                self._is_due = is_faulty = False
                while not self.stopped.is_set() and self._slice():
                    time.sleep(YIELD_S)
                self._after()
            except CommonplaceError as error:
                _log.warning(_WAITING, error)
                is_faulty = True
            with self._starting:
                # A writer that stored something since the last check saw this thread running, and started none.
                if is_faulty or self.stopped.is_set() or not (self._is_due or self._store.count_pending()):
                    self._thread = None
                    return

    def _slice(self, wait_s: float = LEASE_WAIT_S) -> int:
        lease = self._store.lock(self._lock)
        if not lease.acquire(wait_s):
            return 0
        try:
            try:
                done = embed_pending(self._store, self._embedder())
            except EmbedderMismatchError:
                # The store's embedder was changed meanwhile; by now it is known which one that is.
                done = embed_pending(self._store, self._embedder())
        finally:
            lease.release()
        if done:
            self._after()
        return done
