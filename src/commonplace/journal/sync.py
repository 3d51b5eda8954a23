"""Schedule and run syncs of the journal, one process at a time.

There is no thread. A call with little to sync returns at once; the time that writing takes sets the interval to the
next one, so that a busy process spends only a small share of its time on pages.

A sync that is killed, or finds a page changed meanwhile, is repeated: the baseline records only what page and store
really hold.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from commonplace.errors import CommonplaceError, NotFoundError, StoreBusyError, StoreError, UsageError
from commonplace.formats.journal import LONG_TERM_PAGE, PAGES_LOCK
from commonplace.journal.baseline import Baseline, encode
from commonplace.journal.folder import NUL, Folder
from commonplace.journal.import_edits import EditImport
from commonplace.journal.report import SyncReport, Tally
from commonplace.journal.snapshot import JournalRuntime, Snapshot, read_links, read_memories
from commonplace.journal.write_pages import PageWriter, drop_all, forget, within_budget
from commonplace.locks import FileLock
from commonplace.types import MirroredBlock, MirroredPage, StoredMemory

LOOK_EVERY_S: Final = 1.0
FLUSH_AFTER_S: Final = 2.0
MAX_PENDING: Final = 64
_REST: Final = 20
"""After a run, the mirror rests for so many times as long as that took."""

_ATTEMPTS: Final = 5
_SHOWN: Final = 5
_CLOSE_WAIT_S: Final = 5.0
_SYNC_WAIT_S: Final = 60.0

_log = logging.getLogger("commonplace.journal")


class JournalSync:
    """Keeps the Markdown of one namespace in step with the store. Safe for threads.

    Args:
        stopwatch: seconds since any fixed moment.
        wall_ns: nanoseconds since the epoch, as the file system has them.
    """

    def __init__(
        self,
        runtime: JournalRuntime,
        *,
        stopwatch: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._runtime = runtime
        self._stopwatch = stopwatch
        self._wall_ns = wall_ns
        self._folder = Folder(runtime.directory, runtime.namespace)
        self._lock = FileLock(runtime.directory / PAGES_LOCK)
        self._reported: set[str] = set()
        self._pending = 0
        self._looked: float | None = None
        self._flushed = stopwatch()
        self._rests_until = self._flushed

    def pick_up(self) -> None:
        """Take in what people changed since the last look, at most once a second; called before every call."""
        now = self._stopwatch()
        if self._looked is not None and now - self._looked < LOOK_EVERY_S:
            return
        # Another process may have left something due when it was killed.
        is_due = self._looked is None and bool(self._runtime.store.due(self._runtime.namespace))
        self._looked = now
        if is_due or self._is_time(now) or self._has_news():
            self._pass_by(0.0)

    def written(self) -> None:
        """Count a write, and let the pages follow when it is time; called after every call that writes."""
        self._pending += 1
        if self._is_time(self._stopwatch()):
            self._pass_by(0.0)

    def settle(self) -> None:
        """Write what is still to be written, waiting a little for another process; called at the end.

        A page that was saved a moment ago may be half saved: what belongs on it stays due, for the next process.
        """
        if self._pending:
            self._pass_by(_CLOSE_WAIT_S)

    def sync(self, accept: str | Path | None = None) -> SyncReport:
        """Bring every page and the store together now, and say what was done.

        Args:
            accept: see `Engine.sync`.

        Raises:
            NotFoundError: `accept` names neither a page nor a damaged one that was kept.
            UsageError: what it names holds NUL characters.
            StoreBusyError: another process was at it for longer than a minute.
            StoreError: the page cannot be written.
        """
        tally = Tally()
        if self._runtime.store.is_read_only:
            tally.notice("the store is read-only; pages and memories were left as they are")
            return tally.report()
        with self._lock.hold(_SYNC_WAIT_S), _store_errors():
            if accept is None:
                self._run(tally, thorough=True)
            else:
                self._accept(accept, tally)
        return self._report(tally)

    def _accept(self, path: str | Path, tally: Tally) -> None:
        """Take in a page as a person left it, however much is missing from it; one that was kept is put back first."""
        folder = self._folder
        copies = folder.damaged_copies()
        names = {folder.shown(name): name for name in (*folder.stamps(), *copies)}
        wanted = Path(path).expanduser().absolute()
        found = [name for shown, name in names.items() if str(path) == shown or wanted == folder.path(name).absolute()]
        if not found:
            raise NotFoundError(f"there is no page {str(path)!r:.200}", remedy=_pages_there(sorted(names)))
        page = copies.get(found[0], found[0])
        if found[0] in copies:
            kept = folder.read(found[0])
            if kept.problem or NUL in kept.text:
                why = kept.problem or "holds NUL characters, as a damaged file does"
                raise UsageError(f"{folder.shown(found[0])} {why}", remedy="make it a page of text before")
            self._run(tally, thorough=True)  # what came to the page since stays
            if folder.replace(folder.read(page), kept.text) is None:
                raise StoreBusyError(
                    f"{folder.shown(page)} is being changed all the time", remedy="close it, and try again"
                )
        self._run(tally, thorough=True, believed=(page,))
        if found[0] in copies:
            folder.drop(found[0])

    def forget(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove the blocks of memories and the conflict copies that name one of them; return how many went.

        What else stands on a page stays as it is, also what was not taken in yet. Nothing is written to the store.

        Raises:
            StoreBusyError: another process was writing pages for longer than a minute, or a page goes on changing.
            StoreError: a page cannot be written.
        """
        with self._lock.hold(_SYNC_WAIT_S), _store_errors():
            return forget(Folder(self._runtime.directory, namespace), ids)

    def drop_all(self, namespace: str) -> int:
        """Remove all pages and conflict copies of a namespace that is deleted; return how many files went.

        Raises:
            StoreBusyError, StoreError: as of `forget`.
        """
        with self._lock.hold(_SYNC_WAIT_S), _store_errors():
            return drop_all(Folder(self._runtime.directory, namespace))

    def _is_time(self, now: float) -> bool:
        is_due = self._pending >= MAX_PENDING or (self._pending > 0 and now - self._flushed >= FLUSH_AFTER_S)
        return is_due and now >= self._rests_until

    def _has_news(self) -> bool:
        """Return whether a page is not as the store knows it, by its stamp alone."""
        known = self._runtime.store.pages(self._runtime.namespace)
        try:
            return {page.page: (page.size, page.mtime_ns) for page in known} != self._folder.stamps()
        except OSError:
            return True  # what is wrong with the folder is told by a run

    def _pass_by(self, wait_s: float) -> None:
        """Run if nobody else does; whatever goes wrong with Markdown is no reason for a call to fail."""
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
            tally.notice(f"pages and memories could not be brought together: {error}")
        self._report(tally)

    def _run(self, tally: Tally, *, thorough: bool, believed: Collection[str] = ()) -> None:
        began = self._stopwatch()
        pending, self._pending = self._pending, 0
        try:
            fault = self._folder.fault()
            if fault:
                tally.notice(fault)
                return
            wall_ns = None if thorough else self._wall_ns()
            for _ in range(_ATTEMPTS):
                if run(self._runtime, self._folder, tally, wall_ns, believed):
                    return
            tally.notice("the pages keep changing; they are synchronised at the next call")
            self._pending += 1
        except OSError as error:
            self._pending += pending
            tally.notice(f"pages and memories could not be brought together: {error}")
        except BaseException:
            self._pending += pending
            raise
        finally:
            self._flushed = self._stopwatch()
            self._rests_until = self._flushed + _REST * (self._flushed - began)

    def _report(self, tally: Tally) -> SyncReport:
        """Log each notice once, and return the report."""
        report = tally.report()
        for notice in report.notices:
            if notice not in self._reported:
                self._reported.add(notice)
                _log.warning("%s", notice)
        return report


def _pages_there(shown: Sequence[str]) -> str:
    return f"name one of {', '.join(shown[-_SHOWN:])}" if shown else "this namespace has none"


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"a page cannot be changed: {error}", remedy="make it writable, and try again") from error


_SETTLED_AT_ONCE: Final = 1_000
"""So that other writers wait for milliseconds only."""


def run(
    runtime: JournalRuntime,
    folder: Folder,
    tally: Tally,
    wall_ns: int | None,
    believed: Collection[str],
) -> bool:
    """Bring pages and store together once; return False where a page was changed meanwhile and it is to be done again.

    Args:
        wall_ns: see `Snapshot.look`.
        believed: pages of which a person has said that what is missing was meant to go.

    Raises:
        OSError: a directory cannot be read or written; pages that cannot are told by notices instead.
    """
    at = Snapshot(runtime, folder, tally, believed)
    if at.is_quiet and wall_ns is not None:
        return True
    folder.drop_drafts()
    at.look(wall_ns)
    imported = EditImport(at)
    if not imported.take_notes():
        return False
    ids = _concerned(at) | imported.forgotten
    at.load(ids)
    imported.take_edits(ids, within_budget(at) if LONG_TERM_PAGE in at.seen else ())
    if tally.changes or imported.missing:
        # What was taken in is agreed on, whatever becomes of the pages.
        dropped: dict[str, Baseline | None] = dict.fromkeys(imported.dropped)
        # What else was new on a page is none any more: so it could not be told again who has missing what.
        missing = {
            id_: replace(at.agreed[id_], page="", standing=replace(at.agreed[id_].standing, is_seen=True))
            for id_ in imported.missing
        }
        _record(at, {**imported.agreed, **dropped, **missing}, due=imported.missing)
    writer = PageWriter(at, imported)
    writer.place(ids)
    if tally.counts["pages_written"]:
        folder.settle()
    tally.read |= at.changed_pages()
    recorded = [name for name in at.seen if name not in writer.failed | at.unsure]
    settled = [id_ for id_ in sorted({*at.due, *imported.written}) if id_ in writer.agreed]
    _record(at, writer.agreed, settled=settled[:_SETTLED_AT_ONCE], pages=recorded)
    for begin in range(_SETTLED_AT_ONCE, len(settled), _SETTLED_AT_ONCE):
        _record(at, {}, settled=settled[begin : begin + _SETTLED_AT_ONCE])
    return not writer.is_stale


def _concerned(at: Snapshot) -> set[str]:
    """Return the ids of the memories that this run is about."""
    fresh = {name for name, seen in at.seen.items() if seen.is_news or seen.is_lost}
    on_pages = {id_ for id_, found in at.blocks.items() if found.page in fresh}
    were_there = {id_ for id_, agreed in at.agreed.items() if agreed.page in fresh}
    return {*at.due, *on_pages, *were_there}


def _record(
    at: Snapshot,
    agreed: Mapping[str, Baseline | None],
    *,
    settled: Iterable[str] = (),
    pages: Iterable[str] = (),
    due: Iterable[str] = (),
) -> None:
    """Write to the store what is agreed on.

    Args:
        settled: ids whose pages are written; what somebody changed since it was read stays due.
        pages: whose state is to be known.
        due: ids whose pages are to be written.
    """
    runtime, done = at.runtime, list(settled)
    space = runtime.namespace
    states = [_state(at, name) for name in pages]
    changed = [(name, state) for name, state in states if state != at.known.get(name)]
    fresh = {id_: each for id_, each in agreed.items() if each is None or each != at.agreed.get(id_)}
    if not (done or changed or fresh) or space not in runtime.store.namespaces():
        return
    with runtime.store.change_memories(space) as change:
        # Nobody else can write now, so this is what holds when the change is committed.
        ids = [*done, *fresh]
        now, links = read_memories(runtime, ids), read_links(runtime, ids)
        for id_, each in fresh.items():
            if each is None or id_ not in now:
                change.drop_block(id_)
            else:
                change.set_block(MirroredBlock(id_, each.page, encode(each)))
        for id_ in due:
            if id_ in now:
                change.revise(now[id_].number, now[id_].record)
        for name, state in changed:
            if state is None:
                change.drop_page(name)
            else:
                change.set_page(state)
        change.settle_due(
            [
                id_
                for id_ in done
                if _shown(now.get(id_)) == _shown(at.memory(id_)) and links.get(id_, ()) == at.links(id_)
            ]
        )


def _state(at: Snapshot, name: str) -> tuple[str, MirroredPage | None]:
    file = at.seen[name].file
    return name, None if file.data is None else MirroredPage(name, *file.stamp, file.sum)


def _shown(stored: StoredMemory | None) -> tuple[object, ...]:
    """Return what of a memory a page tells."""
    if stored is None:
        return ()
    record, owner = stored.record, stored.owner
    return (stored.expired_at is None, record.tier, record.content, record.category, owner.tags, owner.at)
