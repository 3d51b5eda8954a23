"""Schedule, run and report syncs of the journal, one process at a time.

There is no thread. A call with little to sync returns at once; the time that a sync takes sets the interval to the
next one, so that a busy process spends only a small share of its time on pages.

A sync that is killed, or whose page changes in the meantime, is repeated: the baseline records only what page and store
really hold.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, NotFoundError, StoreBusyError, StoreError, UsageError
from commonplace.journal.folder import DAMAGED, NUL, Folder
from commonplace.locks import FileLock
from commonplace.settings.paths import PAGES_LOCK

if TYPE_CHECKING:
    from commonplace.memory.service import MemoryService
    from commonplace.retention import RetentionPolicy
    from commonplace.store.store import Store

LOOK_EVERY_S: Final = 1.0
FLUSH_AFTER_S: Final = 2.0
MAX_PENDING: Final = 64
QUIET_NS: Final = 200_000_000
"""Time after a save during which a page may still be being written, in nanoseconds."""
_REST_FACTOR: Final = 20
"""Rest after a run, as a multiple of the time that the run took."""

_ATTEMPTS: Final = 5
_SHOWN: Final = 5
_CLOSE_WAIT_S: Final = 5.0
_SYNC_WAIT_S: Final = 60.0

_log = logging.getLogger("commonplace.journal")


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The result of `sync`.

    Attributes:
        pages_written, pages_read: numbers of pages replaced, and of pages that somebody else had changed.
        added: number of notes that became memories.
        updated: number of memories changed by an edit; `archived`: removed from their page; `restored`: put back.
        moved: number of blocks that moved to another page, on either side.
        conflicts: files, relative to the store, with the page's version of memories where the store's version stays.
        notices: one sentence each, for people.
    """

    pages_written: int = 0
    pages_read: int = 0
    added: int = 0
    updated: int = 0
    archived: int = 0
    restored: int = 0
    moved: int = 0
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Tally:
    """Collects the values of a `SyncReport`.

    Attributes:
        counts: counts by the names of the report's number fields.
        read: the pages that somebody else had changed.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.read: set[str] = set()
        self.conflicts: dict[str, None] = {}
        self._notices: dict[str, None] = {}

    def notice(self, text: str) -> None:
        """Add a sentence for people; duplicates are dropped."""
        self._notices[text] = None

    def report(self) -> SyncReport:
        counts: dict[str, Any] = {**self.counts, "pages_read": len(self.read)}
        return SyncReport(**counts, conflicts=tuple(self.conflicts), notices=tuple(self._notices))


@dataclass(frozen=True, slots=True)
class JournalRuntime:
    """The store, services and settings of one namespace's journal.

    Attributes:
        service: returns the service that writes memories; called only when there is something to write.
        count_tokens: returns the number of tokens of a text.
        now: returns seconds since the epoch.
        max_bytes: maximum size of a memory's content.
    """

    directory: Path
    namespace: str
    store: Store
    service: Callable[[], MemoryService]
    count_tokens: Callable[[str], int]
    retention: RetentionPolicy
    now: Callable[[], float]
    max_bytes: int


class JournalSync:
    """Keeps the Markdown of one namespace in sync with the store. Thread-safe.

    Args:
        stopwatch: returns seconds since any fixed moment.
        wall_ns: returns nanoseconds since the epoch, comparable with the file system's times.
        sleep: waits that many seconds.
    """

    def __init__(
        self,
        runtime: JournalRuntime,
        *,
        stopwatch: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._runtime = runtime
        self._stopwatch = stopwatch
        self._wall_ns, self._sleep = wall_ns, sleep
        self._folder = Folder(runtime.directory, runtime.namespace)
        self._lock = FileLock(runtime.directory / PAGES_LOCK)
        self._reported: set[str] = set()
        self._pending = 0
        self._looked: float | None = None
        self._flushed = stopwatch()
        self._rests_until = self._flushed

    def import_edits(self) -> bool:
        """Import people's edits since the last look, at most once a second, and return whether there may be some.

        Called before every call.

        At the first look, wait until a page that was saved a moment ago may be read: a command looks only once.
        """
        now = self._stopwatch()
        if self._looked is not None and now - self._looked < LOOK_EVERY_S:
            return False
        # A process that was killed may have left memories due.
        store, namespace = self._runtime.store, self._runtime.namespace
        is_first = self._looked is None
        is_due = self._is_time(now) or (is_first and bool(store.due(namespace)))
        self._looked = now
        if not is_due:
            # Their stamps show whether the pages are as the store knows them.
            try:
                stored = {page.page: (page.size, page.mtime_ns) for page in store.pages(namespace)}
                stamps = self._folder.stamps()
                is_due = stored != stamps
                saved = max((stamp[1] for name, stamp in stamps.items() if stored.get(name) != stamp), default=0)
                wait_ns = saved + QUIET_NS - self._wall_ns()
                if is_first and 0 < wait_ns <= QUIET_NS:
                    self._sleep(wait_ns / 1e9)
            except OSError:
                is_due = True  # the run reports what is wrong with the folder
        if is_due:
            self._try_run(0.0)
        return is_due

    def count_write(self) -> None:
        """Count a write, and update the pages when it is time; called after every call that writes."""
        self._pending += 1
        if self._is_time(self._stopwatch()):
            self._try_run(0.0)

    def flush(self) -> None:
        """Write pending changes to the pages, waiting briefly for another process; called at the end.

        A page that was saved a moment ago may be half-saved: its memories stay due, for the next process.
        """
        if self._pending:
            self._try_run(_CLOSE_WAIT_S)

    def sync(self, accept: str | Path | None = None) -> SyncReport:
        """Synchronise every page with the store now, and return a report; see `Engine.sync`."""
        tally = Tally()
        if self._runtime.store.is_read_only:
            tally.notice("the store is read-only; pages and memories were left as they are")
            return tally.report()
        with self._lock.hold(_SYNC_WAIT_S), _store_errors():
            if accept is None:
                self._run(tally, thorough=True)
                return self._report(tally)
            folder = self._folder
            copies = {name: page for name, page in folder.copies().items() if DAMAGED in name}
            names = {folder.page_path(name): name for name in (*folder.stamps(), *copies)}
            path, query = Path(accept).expanduser().absolute(), str(accept)
            matches = [name for shown, name in names.items() if query == shown or path == folder.path(name).absolute()]
            if not matches:
                remedy = f"name one of {', '.join(sorted(names)[-_SHOWN:])}" if names else "this namespace has none"
                raise NotFoundError(f"there is no page {query!r:.200}", remedy=remedy)
            page = copies.get(matches[0], matches[0])
            if matches[0] in copies:
                # The kept copy of a damaged page is put back first.
                copy = folder.read(matches[0])
                if copy.problem or NUL in copy.text:
                    reason = copy.problem or "holds NUL characters, as a damaged file does"
                    raise UsageError(f"{folder.page_path(matches[0])} {reason}", remedy="make it a page of text before")
                self._run(tally, thorough=True)  # memories that came to the page since are kept
                if folder.replace(folder.read(page), copy.text) is None:
                    raise StoreBusyError(f"{folder.page_path(page)} keeps changing", remedy="close it, and try again")
            self._run(tally, thorough=True, accepted=(page,))
            if matches[0] in copies:
                folder.drop(matches[0])
        return self._report(tally)

    def forget(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove the blocks of memories from the pages; see `write_pages.forget`."""
        from commonplace.journal.write_pages import forget

        with self._lock.hold(_SYNC_WAIT_S), _store_errors():
            return forget(Folder(self._runtime.directory, namespace), ids)

    def drop_all(self, namespace: str) -> int:
        """Remove all pages of a namespace that is deleted; see `write_pages.drop_all`."""
        from commonplace.journal.write_pages import drop_all

        with self._lock.hold(_SYNC_WAIT_S), _store_errors():
            return drop_all(Folder(self._runtime.directory, namespace))

    def _is_time(self, now: float) -> bool:
        is_due = self._pending >= MAX_PENDING or (self._pending > 0 and now - self._flushed >= FLUSH_AFTER_S)
        return is_due and now >= self._rests_until

    def _try_run(self, wait_s: float) -> None:
        """Sync if no other process does; report any failure as a notice, so that the caller's call does not fail."""
        if self._runtime.store.is_read_only:
            return
        tally = Tally()
        try:
            if self._lock.acquire(wait_s):
                try:
                    self._run(tally, thorough=False)
                finally:
                    self._lock.release()
        except CommonplaceError as error:
            tally.notice(f"pages and memories could not be synchronized: {error}")
        self._report(tally)

    def _run(self, tally: Tally, *, thorough: bool, accepted: Collection[str] = ()) -> None:
        from commonplace.journal.write_pages import run

        began = self._stopwatch()
        pending, self._pending = self._pending, 0
        try:
            if fault := self._folder.fault():
                tally.notice(fault)
                return
            wall_ns = None if thorough else self._wall_ns()
            for _ in range(_ATTEMPTS):
                if run(self._runtime, self._folder, tally, wall_ns, accepted):
                    return
            tally.notice("the pages keep changing; they are synchronized at the next call")
            self._pending += 1
        except OSError as error:
            self._pending += pending
            tally.notice(f"pages and memories could not be synchronized: {error}")
        except BaseException:
            self._pending += pending
            raise
        finally:
            self._flushed = self._stopwatch()
            self._rests_until = self._flushed + _REST_FACTOR * (self._flushed - began)

    def _report(self, tally: Tally) -> SyncReport:
        report = tally.report()
        for notice in report.notices:
            if notice not in self._reported:
                self._reported.add(notice)
                _log.warning("%s", notice)
        return report


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"a page cannot be changed: {error}", remedy="make it writable, and try again") from error
