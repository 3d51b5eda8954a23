"""Bring the index up to date with the store's change sequences."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from contextlib import suppress

from commonplace.dataclasses import dataclass
from commonplace.errors import IndexFaultError
from commonplace.index.generations import Generation, Index
from commonplace.store.store import Store
from commonplace.types import Head, Progress


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """The outcome of an index update.

    Attributes:
        rebuilt: whether it was rebuilt from a store that is not empty.
        fault: why it was rebuilt, a clause that continues "the index …", or "".
    """

    added: int
    deleted: int
    rebuilt: bool
    fault: str
    seconds: float


def bring_up_to_date(
    store: Store,
    index: Index,
    *,
    rebuild: bool = False,
    purge: bool = False,
    timeout_s: float = 0.0,
    progress: Progress | None = None,
) -> IndexUpdate | None:
    """Apply the store's changes to the index; rebuild the index if it is unusable or mostly deleted entries.

    Args:
        rebuild: always build it from scratch.
        purge: remove deleted passages from its files, where their terms otherwise linger.
        timeout_s: how long to wait for another process that is writing to the index.

    Returns:
        The outcome, or None if another process holds the index.
    """
    if not index.claim(timeout_s):
        return None
    try:
        started = time.monotonic()
        if (embedding := store.embedding()) is not None:
            index.follow(embedding)
        generation = index.reader()
        with store.snapshot():
            heads = store.heads()
            fault = generation.fault or disagreement(store, generation, heads)
        # Read outside the snapshot from here on: holding it would keep SQLite's write-ahead log growing for minutes. A
        # change never gains passages; one deleted meanwhile is absent, and its deletion is a later change.
        rebuild = rebuild or bool(fault) or generation.is_wasteful
        added = deleted = 0
        if rebuild or purge or generation.heads != heads:
            try:
                added, deleted = _write(store, index, generation, heads, rebuild, purge, progress)
            except IndexFaultError as error:
                if rebuild:
                    raise
                rebuild, fault = True, str(error)
                added, deleted = _write(store, index, generation, heads, rebuild, purge, progress)
            # Have the C library return the memory of the write: it keeps free pages between used ones, 15 MB after a
            # rebuild. Only glibc has this function, and only glibc keeps so much.
            with suppress(AttributeError, OSError):
                ctypes.CDLL(None).malloc_trim(0)
        return IndexUpdate(added, deleted, rebuild and bool(heads), fault, time.monotonic() - started)
    finally:
        index.release()


def _write(
    store: Store,
    index: Index,
    generation: Generation,
    heads: Mapping[str, Head],
    rebuild: bool,
    purge: bool,
    progress: Progress | None,
) -> tuple[int, int]:
    total = store.counts()["passages"] if rebuild and progress else 0
    indexed = {} if rebuild else generation.heads
    changed = [
        (namespace, change, head.change)
        for namespace, head in heads.items()
        if (change := indexed.get(namespace, Head()).change) < head.change
    ]
    return index.update(
        (entry for since in changed for entry in store.entries_since(*since)),
        [] if rebuild else (number for since in changed for number in store.deleted_since(*since)),
        heads=heads,
        rebuild=rebuild,
        purge=purge and not rebuild,
        again=lambda namespace, number: store.entries(namespace, [number]).values(),
        progress=lambda done: progress("indexing passages", done, total) if progress else None,
    )


def disagreement(store: Store, generation: Generation, heads: Mapping[str, Head]) -> str:
    """Return how the generation contradicts the store's history, or "" if it does not; see `Store.heads`."""
    for namespace, indexed in generation.heads.items():
        if indexed.change > heads.get(namespace, Head()).change:
            return "is ahead of its store"
        if indexed != heads[namespace] and indexed.token != store.token(namespace, indexed.change):
            return "belongs to another history of its store"
    return ""
