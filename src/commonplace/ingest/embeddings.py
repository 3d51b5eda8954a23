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
"""Passages embedded per transaction of a re-embedding; a killed process loses at most this many."""


def reembed(store: Store, embedder: Embedder, progress: Progress | None = None) -> tuple[int, int]:
    """Give every passage a vector of the next embedder, until none lacks one.

    Returns:
        How many passages this run embedded, and how many an earlier run had already embedded.

    Raises:
        ModelError: the data of the embedder are missing or damaged.
        ProviderError: a remote embedder did not answer; vectors made so far are kept.
        StoreError: the store cannot be written, or another process is changing it to another embedder.
    """
    store.begin_reembedding(embedder.stamp)
    start, count = store.reembedding(), 0
    while entries := store.unembedded(BATCH):
        current = store.embedding()
        vectors: dict[int, bytes] = {}
        missing = []
        for entry in entries:
            # A kind that keeps its embedder keeps its vectors. A passage with a zero vector gets zeros again, and only
            # its words are searched.
            stamp = embedder.stamp.of(entry.kind)
            stays = current is not None and current.of(entry.kind) == stamp
            vectors[entry.number] = entry.vector if stays else bytes(stamp.dimensions)
            if not entry.vector or (not stays and any(entry.vector)):
                missing.append(entry)
        vectors |= made_vectors(missing, embedder)
        store.put_reembedded(embedder.stamp, [(entry.number, vectors[entry.number]) for entry in entries])
        count += len(entries)
        if progress is not None and (state := store.reembedding()) is not None:
            progress("embedding passages", state.done, state.total)
    return count, start.done if start else 0


def made_vectors(entries: Sequence[IndexEntry], embedder: Embedder) -> dict[int, bytes]:
    """Return new vectors by passage number; each embedder embeds all its passages in one call.

    Raises:
        ProviderError: an embedder returned something else.
    """
    from commonplace.ingest.passages import passage_text

    by_number: dict[int, bytes] = {}
    for model in by_space(embedder):
        batch = [entry for entry in entries if embedder.stamp.of(entry.kind) == model.stamp]
        texts = [
            TokenizedText(passage_text(item.title, item.heading, item.text), np.frombuffer(item.token_ids, "<u2"))
            for item in batch
        ]
        if not texts:
            continue
        vectors = np.asarray(model.embed(texts))
        if vectors.shape != (len(texts), model.stamp.dimensions) or not np.isfinite(vectors).all():
            raise ProviderError(
                f"the embedder {model.stamp} returned something other than a vector for each of {len(texts)} texts"
            )
        by_number |= zip((entry.number for entry in batch), (row.tobytes() for row in quantise(vectors)), strict=True)
    return by_number


_log = logging.getLogger(__name__)
_WAITING: Final = "passages wait for their vectors, and are found by their words: %s"

SLICE: Final = 32
"""Passages embedded per transaction of the backlog; a killed process repeats at most this many."""
LEASE_WAIT_S, YIELD_S = 60.0, 0.002
"""Seconds that a slice waits for another process's slice, and that the thread sleeps after each slice."""
LEFT_AT_CLOSE, CLOSING_S = 64, 2.0
"""Maximum passages and seconds of embedding when an engine closes; the next engine embeds the rest."""


def embed_pending(store: Store, embedder: Embedder) -> int:
    """Embed the next slice of passages without vectors, and return how many were embedded.

    Raises:
        EmbedderMismatchError: the store has changed to another embedder.
        ModelError, ProviderError: the embedder failed; the passages are still found by their words.
    """
    vectors = made_vectors(store.pending_vectors(SLICE), embedder)
    if vectors:
        store.fill_vectors(embedder.stamp, list(vectors.items()))
    return len(vectors)


class EmbeddingBacklog:
    """Embeds the passages of a store that lack vectors. Safe for threads; one slice at a time across all processes.

    Args:
        lock: the path of the lock that a slice takes; see `Store.lock`.
        embedder: returns the store's current embedder.
        after: called after every slice that embedded something, and before the thread ends.

    Attributes:
        may_wait: False if no passage lacked a vector when `start` last checked.
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
        """Embed pending passages if they fit one slice and nobody embeds already; else leave them to the thread."""
        if not self._store.is_read_only and 0 < self._store.count_pending() <= SLICE:
            with suppress(CommonplaceError):
                self._slice(wait_s=0.0)

    def drain(self, progress: Progress | None = None) -> None:
        """Embed all pending passages.

        If the embedder fails, the remaining passages stay pending and are found by their words.
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
        """Embed pending passages in a thread, which ends when none is left; `is_due` starts it in any case."""
        with self._starting:
            self._is_due |= is_due
            if self.stopped.is_set() or self._thread is not None:
                return
            self.may_wait = not self._store.is_read_only and (is_due or self._store.count_pending() > 0)
            if self.may_wait:
                self._thread = threading.Thread(target=self._work, name="embedding", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread; it finishes a short backlog and leaves a longer one to the next engine."""
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
                # A writer that stored passages since the last check saw this thread running and started no other.
                if is_faulty or self.stopped.is_set() or not (self._is_due or self._store.count_pending()):
                    self._thread = None
                    return

    def _slice(self, wait_s: float = LEASE_WAIT_S) -> int:
        lease = self._store.lock(self._lock)
        if not lease.acquire(wait_s):
            return 0
        try:
            try:
                count = embed_pending(self._store, self._embedder())
            except EmbedderMismatchError:
                # The store's embedder changed meanwhile; the new one is known now.
                count = embed_pending(self._store, self._embedder())
        finally:
            lease.release()
        if count:
            self._after()
        return count
