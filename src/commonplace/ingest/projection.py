"""Bring the index up to date with the store's change sequence."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commonplace.errors import IndexFaultError
from commonplace.types import Progress

if TYPE_CHECKING:
    from commonplace.index.generations import Generation, Index
    from commonplace.store.store import Store


@dataclass(frozen=True, slots=True)
class ProjectionReport:
    """What was done to the index.

    Attributes:
        before, after: the change numbers it held and holds.
        added, deleted: numbers of passages.
        rebuilt: it was made anew from a store that held something.
        fault: why it was rebuilt, a clause that continues "the index …", or "".
    """

    before: int
    after: int
    added: int
    deleted: int
    rebuilt: bool
    fault: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Goal:
    """The change to be reached, its token, and whether to begin with nothing."""

    upto: int
    token: str
    rebuild: bool


def bring_up_to_date(
    store: Store, index: Index, *, rebuild: bool = False, timeout_s: float = 0.0, progress: Progress | None = None
) -> ProjectionReport | None:
    """Write to the index what the store holds and it does not; rebuild it if it is unusable or mostly deleted.

    Args:
        rebuild: make it anew in any case; forgetting needs this, for deleted terms linger in an updated index.
        timeout_s: how long to wait for another process that writes.

    Returns:
        What was done, or None if another process holds the index.

    Raises:
        StoreError: the store cannot be read or the index cannot be written.
    """
    if not index.claim(timeout_s):
        return None
    try:
        return _project(store, index, rebuild, progress)
    finally:
        index.release()


def _project(store: Store, index: Index, rebuild: bool, progress: Progress | None) -> ProjectionReport:
    started = time.monotonic()
    embedding = store.embedding()
    if embedding is not None:
        index.follow(embedding)
    generation = index.reader()
    with store.snapshot():
        before, upto = generation.change, store.change()
        token = store.token(upto)
        fault = generation.fault or _disagreement(store, generation)
    # What follows reads outside the snapshot, which would keep SQLite's write-ahead log growing for minutes. Nothing is
    # ever added to changes up to `upto`: a passage that is deleted meanwhile is absent, and its deletion comes later.
    goal = _Goal(upto, token, rebuild or bool(fault) or generation.is_wasteful)
    added = deleted = 0
    if goal.rebuild or before < upto:
        try:
            added, deleted = _write(store, index, before, goal, progress)
        except IndexFaultError as error:
            if goal.rebuild:
                raise
            goal, fault = replace(goal, rebuild=True), str(error)
            added, deleted = _write(store, index, before, goal, progress)
        _give_back_memory()
    seconds = time.monotonic() - started
    return ProjectionReport(before, upto, added, deleted, goal.rebuild and upto > 0, fault, seconds)


def _disagreement(store: Store, generation: Generation) -> str:
    """Return why the generation was not made from what the store says of its past, or ""."""
    if generation.change > store.change():
        return "is ahead of its store"
    if generation.token != store.token(generation.change):
        return "belongs to another history of its store"
    return ""


def _write(store: Store, index: Index, base: int, goal: _Goal, progress: Progress | None) -> tuple[int, int]:
    return index.update(
        store.entries_since(0 if goal.rebuild else base, goal.upto),
        [] if goal.rebuild else store.deleted_since(base, goal.upto),
        upto=goal.upto,
        token=goal.token,
        rebuild=goal.rebuild,
        progress=_tell(store, goal.rebuild, progress),
    )


def _tell(store: Store, rebuild: bool, progress: Progress | None) -> Callable[[int], None]:
    if progress is None:
        return lambda _done: None
    total = store.counts()["passages"] if rebuild else 0
    return lambda done: progress("indexing passages", done, total)


def _give_back_memory() -> None:
    """Have the C library return what writing took: it keeps pages between such as are in use, 15 MB after a rebuild."""
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc has this function, and only it keeps so much
        ctypes.CDLL(None).malloc_trim(0)
