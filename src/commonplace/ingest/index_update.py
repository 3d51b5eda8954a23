"""Bring the index up to date with the change sequences of the store."""

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
    """What was done to the index.

    Attributes:
        rebuilt: it was built again from a store that was not empty.
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
    """Write to the index what the store holds and it does not; rebuild it if it is unusable or mostly deleted.

    Args:
        rebuild: build it from the beginning in any case.
        purge: leave nothing of what was deleted in its files, where terms of it linger otherwise.
        timeout_s: how long to wait for another process that writes.

    Returns:
        What was done, or None if another process holds the index.
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
        # What follows reads outside the snapshot, which would keep SQLite's write-ahead log growing for minutes. No
        # passage is ever added to a change: one that is deleted meanwhile is absent, and its deletion comes later.
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
            # Have the C library return what writing took: it keeps pages between such as are in use, 15 MB after a
            # rebuild. Only glibc has this function, and only it keeps so much.
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
    held = {} if rebuild else generation.heads
    moved = [
        (namespace, known, head.change)
        for namespace, head in heads.items()
        if (known := held.get(namespace, Head()).change) < head.change
    ]
    return index.update(
        (entry for change in moved for entry in store.entries_since(*change)),
        [] if rebuild else (number for change in moved for number in store.deleted_since(*change)),
        heads=heads,
        rebuild=rebuild,
        purge=purge and not rebuild,
        again=lambda namespace, number: store.entries(namespace, [number]).values(),
        progress=lambda done: progress("indexing passages", done, total) if progress else None,
    )


def disagreement(store: Store, generation: Generation, heads: Mapping[str, Head]) -> str:
    """Return why the generation was not made from what the store says of its past, or ""; see `Store.heads`."""
    for namespace, held in generation.heads.items():
        if held.change > heads.get(namespace, Head()).change:
            return "is ahead of its store"
        if held != heads[namespace] and held.token != store.token(namespace, held.change):
            return "belongs to another history of its store"
    return ""
