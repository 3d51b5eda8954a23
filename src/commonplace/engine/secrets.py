"""Find secrets in what is stored already, and put placeholders in their place so that no file holds them any more.

It tells where a secret is, of which kind, and how often; never the secret, nor what stands around it. A run that was
killed is known by its note in the store, and the next one does what it left.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from commonplace.engine.maintenance import Problem
from commonplace.erasure.receipt import BACKUP, STORE_SPACE, ForgetReceipt
from commonplace.erasure.scan import Needles, files_below, scan
from commonplace.erasure.secret_records import NOTHING, Cleaner, Known, needles_of
from commonplace.erasure.secrets import Found, Holder, Stored
from commonplace.erasure.steps import (
    DATABASE,
    DRAFTS,
    FORGETTING,
    GENERATIONS,
    INDEX,
    LOGS,
    ErasureRuntime,
    Pending,
    Waiting,
    pending_of,
    take,
)
from commonplace.erasure.still_stored import still_stored
from commonplace.erasure.verify import LOCK, settle
from commonplace.errors import CommonplaceError, StoreBusyError, StoreError
from commonplace.files import sync
from commonplace.index.files import write_file
from commonplace.ingest.passages import Destination
from commonplace.journal.folder import DRAFT
from commonplace.journal.sync import LOCK as PAGES_LOCK
from commonplace.locks import FileLock
from commonplace.logs import blank_lines
from commonplace.store.contract import Store

PAGE = ".md"
"""How the name of a page ends."""

_ATTEMPTS = 5


class Files:
    """The Markdown and the logs below a store's directory; links are not followed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def look(self, found: Found, known: Known) -> None:
        """Add what holds secrets, but for ids, which are a memory's name there too; nothing is written."""
        kept = frozenset(found.named)
        for name in self._pages():
            cleaner = Cleaner(known, kept)
            cleaner.text(_text(_read(self._directory / name)))
            found.add(cleaner, Holder(f"the page {Cleaner(known).text(name)}", {}))
        for name in self._logs():
            cleaner = Cleaner(known, kept)
            for line in _read(self._directory / name).splitlines():
                cleaner.text(_text(line))
            found.add(cleaner, Holder(f"the log {Cleaner(known).text(name)}", {}))

    def clean_pages(self, known: Known, kept: frozenset[str]) -> list[StoreError]:
        """Put placeholders into every page that holds a secret; return what went wrong with single pages.

        What a process left that was killed while it wrote a page goes too; the caller holds the lock of the pages.

        Args:
            kept: secrets that are a part of an id.
        """
        for name in files_below(self._directory):
            if name.endswith(PAGE + DRAFT):
                with suppress(OSError):
                    (self._directory / name).unlink()
        problems = []
        for name in self._pages():
            try:
                _clean(self._directory / name, known, kept)
            except StoreError as error:
                problems.append(error)
        return problems

    def clear_logs(self, needles: Needles) -> None:
        """Blank the lines of logs that hold a secret, one of these or any other.

        Raises:
            StoreError: a log cannot be read or written.
        """

        def places(data: bytes) -> Iterator[int]:
            yield from (offset for offset, _ in needles.places(data))
            offset = 0
            for line in data.splitlines(keepends=True):
                cleaner = Cleaner()
                cleaner.text(_text(line))
                if cleaner.kinds:
                    yield offset
                offset += len(line)

        try:
            blank_lines(self._directory / LOGS, places)
        except OSError as error:
            raise _unwritten(self._directory / LOGS, error) from error

    def _pages(self) -> list[str]:
        return [name for name in files_below(self._directory) if name.endswith(PAGE)]

    def _logs(self) -> list[str]:
        return [name for name in files_below(self._directory) if name.startswith(f"{LOGS}/") and ".jsonl" in name]


def _clean(path: Path, known: Known, kept: frozenset[str]) -> None:
    """Write a page anew, whole or not at all, and only if it is still what was read."""
    draft = path.with_name(path.name + DRAFT)
    for _ in range(_ATTEMPTS):
        data = _read(path)
        text = _text(data)
        clean = Cleaner(known, kept).text(text)
        if clean == text:
            return
        try:
            write_file(draft, clean.encode("utf-8", "surrogateescape"))
            shutil.copymode(path, draft)
            if path.read_bytes() == data:
                draft.replace(path)
                sync(path.parent)
                return
        except OSError as error:
            raise _unwritten(path, error) from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
    raise StoreBusyError(f"{path} is being changed all the time", remedy="close it, and try again")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", remedy="make it readable, or remove it") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unwritten(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written: {error.strerror}", remedy="make it writable, or edit it")


PART = "secrets"
"""What the findings of a report are filed under."""

_LOCK_WAIT_S = 60.0
_CHANGE = "change the secret where it is used; backups made before now still hold it"
_FILE = f"take it out of the file, which was left as it is, and {_CHANGE}"
_MEND = "run `commonplace doctor --secrets` where the store can be written, and change the secret where it is used"
_NAMED = "a name is never replaced: forget it, or give it another one; and change the secret where it is used"


def was_cut_short(store: Store) -> bool:
    """Return whether a run was ended before it had replaced what it found."""
    return _begun(store) is not None


class Secrets:
    """Looks through all namespaces, pages and logs of one store.

    Args:
        destination: what makes passages; asked for when something is written anew.
        sync: brings the Markdown of a namespace and its memories together, where it has any.
    """

    def __init__(
        self,
        place: ErasureRuntime,
        destination: Callable[[], Destination],
        sync: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._place = place
        self._store = place.store
        self._stored = Stored(place.store, destination, place.clock)
        self._files = Files(place.directory)
        self._sync = sync

    def examine(self, *, mend: bool) -> list[Problem]:
        """Tell what holds secrets; with `mend`, write it anew without them, and let every copy go.

        What cannot be read or mended is a finding too, not an error.
        """
        found = Found()
        try:
            if not mend or self._store.is_read_only:
                found, _ = self._look()
                return list(_findings(found, mended=False))
            with FileLock(self._place.directory / LOCK).hold(_LOCK_WAIT_S):
                found, known = self._look()
                begun = _begun(self._store)
                if begun is None and all(holder.is_name for holder in found.holders):
                    return list(_findings(found, mended=False))
                damage = self._store.check()
                if damage:
                    told = Problem(PART, f"nothing was replaced in a damaged store: {damage[0]}", "restore a backup")
                    return [*_findings(found, mended=False), told]
                return self._mend(found, known, begun)
        except CommonplaceError as error:
            return [*_findings(found, mended=False), _told(error)]

    def _look(self) -> tuple[Found, Known]:
        """Return what holds secrets, also those that are only known from elsewhere."""
        found, known = self._look_for(NOTHING), NOTHING
        if found.secrets:
            known = Known(found.secrets)
            found = self._look_for(known)
        return found, known

    def _look_for(self, known: Known) -> Found:
        found = Found()
        self._stored.look(found, known)
        self._files.look(found, known)
        return found

    def _mend(self, found: Found, known: Known, begun: Pending | None) -> list[Problem]:
        place, needles = self._place, needles_of({*found.secrets, *found.parts})
        # Before anything is replaced: a run that is killed later cannot know any more what to look for.
        self._files.clear_logs(needles)
        pending = begun or Pending(str(uuid4()), place.clock(), STORE_SPACE, (INDEX, GENERATIONS, DATABASE, DRAFTS))
        receipt = ForgetReceipt(STORE_SPACE, pending.at, pending.id, counts={"secrets": len(found.secrets)})
        with self._store.change_memories(STORE_SPACE) as change:
            change.put_note(receipt.note())
            change.put_note(pending.note())
        problems = self._replace(found, known)
        waiting = take(place, pending, {}, thorough=True)
        place.forget_caches()
        self._files.clear_logs(needles)
        still = Found(named=found.named)
        self._files.look(still, known)
        left = list(self._left(found, needles, waiting))
        settle(place, receipt, replace(pending, is_proved=True, is_clean=not left), waiting)
        if begun is not None:
            problems.append(Problem(PART, "an earlier run was ended before it had replaced all", _CHANGE, mended=True))
        return [*_findings(found, mended=True, but={holder.where for holder in still.holders}), *problems, *left]

    def _replace(self, found: Found, known: Known) -> list[Problem]:
        """Write anew what is stored, let the pages follow, and clean what nobody but people wrote there."""
        spaces = {holder.namespace for holder in found.holders if holder.namespace}
        # Edits that were not taken in yet come first: afterwards both sides would have changed.
        problems = self._brought_together(sorted(spaces))
        for holder in found.holders:
            if holder.mend is not None:
                holder.mend()
        due = {namespace for namespace in self._store.namespaces() if self._store.due(namespace)}
        problems += self._brought_together(sorted(spaces | due))
        with FileLock(self._place.directory / PAGES_LOCK).hold(_LOCK_WAIT_S):
            return [*problems, *map(_told, self._files.clean_pages(known, frozenset(found.named)))]

    def _brought_together(self, namespaces: Iterable[str]) -> list[Problem]:
        problems = []
        for namespace in namespaces:
            try:
                self._sync(namespace)
            except CommonplaceError as error:
                problems.append(_told(error))
        return problems

    def _left(self, found: Found, needles: Needles, waiting: Sequence[Waiting]) -> Iterator[Problem]:
        """Yield what holds one of the secrets still; what waits is told of as what was forgotten and waits."""
        directory = self._place.directory
        scanned = scan(directory, files_below(directory), needles)
        hits = scanned.all_hits()
        stored = still_stored(self._store, needles.only(hits)) if hits else set()
        passed = {directory / note.id for note in self._store.notes(None, BACKUP)}
        waits = tuple(each.files for each in waiting)
        for name, held in sorted(scanned.hits.items()):
            is_passed = directory / name in passed or name.endswith(PAGE) or (waits and name.startswith(waits))
            if held - stored and not is_passed:
                yield Problem(PART, f"the file {name} still holds a secret", _remedy_of_file(name))
        for name, why in scanned.unread:
            yield Problem(PART, f"the file {name} may hold a secret: {why}", "make it readable, or remove it")
        told = sum(secret.encode("utf-8", "surrogatepass") in stored for secret in found.secrets.keys() - found.named)
        if told:
            also = "one of these secrets also stands" if told == 1 else f"{told} of these secrets also stand"
            yield Problem(
                PART,
                f"{also} in texts that do not call it one, and was left there",
                "find these texts with `commonplace search`, and update or forget them",
            )


def _begun(store: Store) -> Pending | None:
    runs = [run for run in pending_of(store.notes(STORE_SPACE, FORGETTING)) if run.namespace == STORE_SPACE]
    return next((run for run in runs if not run.is_proved), None)


def _findings(found: Found, *, mended: bool, but: Collection[str] = ()) -> Iterator[Problem]:
    for holder in found.holders:
        is_mended = mended and not holder.is_name and holder.where not in but
        for kind, count in holder.kinds.items():
            times = "a secret" if count == 1 else f"{count} secrets"
            problem = f"{holder.where} holds {times} of the kind {kind}"
            yield Problem(PART, problem, _remedy(holder, is_mended=is_mended), is_mended)


def _told(error: CommonplaceError) -> Problem:
    return Problem(PART, error.args[0], error.remedy)


def _remedy(holder: Holder, *, is_mended: bool) -> str:
    if holder.is_name:
        return _NAMED
    if not is_mended:
        return _MEND
    return _FILE if holder.is_file else _CHANGE


def _remedy_of_file(name: str) -> str:
    if Path(name).name.startswith("store.db") or name.startswith(f"{INDEX}/"):
        return "end every program that has the store open, then run `commonplace doctor --secrets` again"
    return "it is no file of the store: remove it, or edit it"
