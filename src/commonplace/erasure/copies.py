"""Remove the copies of erased data: journal pages, vault notes, index, free pages of the database, drafts of backups.

Everything here can be repeated and needs only a note that the store keeps until all is done. The next run or `doctor`
therefore repeats from the start what a killed run left or could not do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.dataclasses import asdict, dataclass, replace
from commonplace.erasure.receipt import RECEIPT, UNVERIFIED, ForgetReceipt, Problem, receipt_of, values_of
from commonplace.errors import StoreError
from commonplace.files import open_file
from commonplace.formats.vault import memory_id_of
from commonplace.graph.runtime import GraphRuntime
from commonplace.index.generations import Index
from commonplace.ingest.index_update import bring_up_to_date
from commonplace.logs import blank_lines
from commonplace.settings.paths import DATABASE, INDEX, LOGS, VAULT
from commonplace.store.drafts import clear_drafts
from commonplace.store.memories import MemoryChange
from commonplace.store.schema import WHOLE_STORE
from commonplace.store.store import Store
from commonplace.types import Note, Progress

if TYPE_CHECKING:
    from commonplace.graph.graphiti.backend import Removal
    from commonplace.journal.sync import JournalSync

LOCK: Final = "forgetting.lock"
"""Name of the lock file in the store's directory that the one erasing process holds."""
DRAFT: Final = ".note.commonplace-draft"
"""The name under which a vault note is written until it is complete."""
_FRONT_MATTER_BYTES: Final = 65_536
"""Bytes read from the beginning of a vault note, which contain the memory's id."""
FORGETTING: Final = "forgetting"
"""The kind of the notes on unfinished runs, and the part of a `doctor` report about them."""
LEFT_OF_DRAFT: Final = "left when a backup, restore or export was killed"
FINISHES: Final = "; `commonplace doctor` finishes it"

_CLAIM_S = 60.0
_HELD_WAIT_S = 1.0
_HELD_STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class ErasureRuntime:
    """A store with everything that keeps copies of its data.

    Attributes:
        is_served: results go to clients of a server, who must not learn of other namespaces.
        pages: the journal; None if the store has no Markdown.
        delete_outside: records, in the transaction, that an outside graph has to delete an episode of a group too;
            None if there is no outside graph.
        leave: removes a namespace from an outside graph, to which items with these ids may have been sent, or with True
            only reports what it would do; returns what was removed and what is left. None if there is none.
        follow: updates the graph, in the transaction, to the current content of memories; None if it follows none.
        graph: creates the runtime for changing a graph; None if no parts of a graph can be forgotten.
        forget_caches: drops what this process caches of queries and texts.
        clock: returns seconds since the epoch.
    """

    directory: Path
    store: Store
    index: Index
    clock: Callable[[], float] = time.time
    is_served: bool = False
    pages: JournalSync | None = None
    forget_caches: Callable[[], None] = lambda: None
    progress: Progress | None = None
    follow: Callable[[MemoryChange, Sequence[str]], None] | None = None
    graph: Callable[[], GraphRuntime] | None = None
    delete_outside: Callable[[MemoryChange, str, str], None] | None = None
    leave: Callable[[str, Set[str], bool], Removal] | None = None


@dataclass(frozen=True, slots=True)
class PendingRun:
    """An unfinished run. It has the id of its receipt.

    Attributes:
        namespace: the one in which data was deleted, or that was deleted itself (`is_namespace`).
        ids: the ids of the deleted memories.
    """

    id: str
    at: float
    namespace: str
    ids: tuple[str, ...] = ()
    is_namespace: bool = False

    @property
    def note_namespace(self) -> str:
        """The namespace that stores its notes."""
        return WHOLE_STORE if self.is_namespace else self.namespace

    def note(self) -> Note:
        return Note(FORGETTING, self.id, self.at, json.dumps(asdict(self), sort_keys=True))


def pending_runs(store: Store, namespace: str | None = None) -> list[PendingRun]:
    """Return the unfinished runs of one namespace or of all, each once."""
    return list({note.id: PendingRun(**values_of(note)) for note in store.notes(namespace, FORGETTING)}.values())


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that cannot be done yet, and the reason.

    Attributes:
        files: the prefix of the paths, relative to the store or absolute, of files that may still contain traces.
        remedy: what has to happen first.
    """

    files: str
    reason: str
    remedy: str = "end that process, or wait for it"

    def __str__(self) -> str:
        return f"{self.files}: {self.reason}"


def remove_pages(
    runtime: ErasureRuntime, pending: PendingRun, counts: dict[str, int], vault_paths: Sequence[str] = ()
) -> list[Obstacle]:
    """Remove the Markdown of a run's memories, and add to `counts`; return what cannot be done yet.

    Args:
        vault_paths: the paths of their vault notes, as far as still known.
    """
    waiting = list[Obstacle]()
    with _deferred(waiting, "memory"):
        if runtime.pages is not None and (pending.ids or pending.is_namespace):
            counts["blocks"] = max(counts.get("blocks", 0), runtime.pages.forget(pending.namespace, pending.ids))
            if pending.is_namespace:
                counts["pages"] = max(counts.get("pages", 0), runtime.pages.drop_all(pending.namespace))
    with _deferred(waiting, VAULT):
        for note in vault_notes(runtime, pending.namespace, pending.ids, vault_paths):
            try:
                note.unlink(missing_ok=True)
            except OSError as error:
                reason = f"{note} cannot be removed: {error.strerror}"
                raise StoreError(reason, remedy="make its directory writable") from error
            counts["vault_notes"] = counts.get("vault_notes", 0) + 1
            if note.parent.parent.name == VAULT:
                with suppress(OSError):  # not empty; the name of a directory is that of a namespace
                    note.parent.rmdir()
    return waiting


def rewrite_files(runtime: ErasureRuntime, *, thorough: bool) -> list[Obstacle]:
    """Remove data erased from the store from index, database and drafts; return what cannot be done yet.

    Args:
        thorough: rewrite the whole database.
    """
    waiting = list[Obstacle]()
    with _deferred(waiting, INDEX):
        if not runtime.store.is_on_server:
            waiting += _purge_index(runtime)
    with _deferred(waiting, DATABASE):
        if not runtime.store.compact(thorough=thorough):
            waiting.append(Obstacle(DATABASE, "another process still reads the state before"))
    with _deferred(waiting, DATABASE):
        for draft in clear_drafts(runtime.directory):
            if draft.state == "unreachable":
                waiting.append(Obstacle(draft.path, f"{LEFT_OF_DRAFT}; it {draft.why}", draft.remedy))
    return waiting


@contextmanager
def _deferred(waiting: list[Obstacle], files: str) -> Iterator[None]:
    """Append an error of the block to `waiting` instead of raising it, so that the other steps are done."""
    try:
        yield
    except StoreError as error:
        waiting.append(Obstacle(files, error.args[0], error.remedy or "see that it can be written"))


def _purge_index(runtime: ErasureRuntime) -> list[Obstacle]:
    """Rewrite the index, and remove the older generations."""
    other_writer = [Obstacle(INDEX, "another process is writing it")]
    if not bring_up_to_date(runtime.store, runtime.index, purge=True, timeout_s=_CLAIM_S, progress=runtime.progress):
        return other_writer
    runtime.index.reader()  # closes an older generation in this process
    if not runtime.index.claim(_CLAIM_S):
        return other_writer
    try:
        deadline = time.monotonic() + _HELD_WAIT_S
        while (busy := runtime.index.remove_older()) and time.monotonic() < deadline:
            time.sleep(_HELD_STEP_S)  # a search under way takes milliseconds
    finally:
        runtime.index.release()
    return [Obstacle(f"{INDEX}/{name}", "somebody is searching in it") for name in busy]


def vault_notes(runtime: ErasureRuntime, namespace: str, ids: Sequence[str], paths: Sequence[str]) -> list[Path]:
    if not (runtime.directory / VAULT).is_dir():
        return []
    # A memory of another namespace may have the same id if callers chose it.
    other_namespaces = [name for name in runtime.store.namespaces() if name != namespace]
    unique_ids = [id_ for id_ in ids if all(runtime.store.memory(name, id_) is None for name in other_namespaces)]
    return notes_of(runtime.directory, unique_ids, paths)


def notes_of(directory: Path, ids: Collection[str], paths: Collection[str]) -> list[Path]:
    """Return the notes of memories below the vault of a store, sorted; never files outside the vault.

    Drafts left by a killed writer are included: they may not name their memory yet.

    Args:
        ids: memory ids, as in the line `memory_id:` of the front matter.
        paths: paths of notes, relative to the store's directory.
    """
    vault = directory / VAULT
    if vault.is_symlink() or not vault.is_dir():
        return []
    memory_ids, recorded = set(ids), {directory / name for name in paths}
    notes = {path for path in vault.rglob("*.md") if memory_of_note(path) in memory_ids}
    notes |= set(vault.rglob(DRAFT)) if memory_ids else set()
    notes |= {path for path in recorded if path.is_file() and path.resolve().is_relative_to(vault.resolve())}
    return sorted(notes)


def memories_of_notes(directory: Path, folder: Path) -> dict[str, str]:
    """Return the memory ids of the notes in one folder of the vault, by path relative to the store."""
    by_path = {path: memory_of_note(path) for path in sorted(folder.glob("*.md"))} if folder.is_dir() else {}
    return {path.relative_to(directory).as_posix(): id_ for path, id_ in by_path.items() if id_ is not None}


def memory_of_note(path: Path) -> str | None:
    """Return the memory id in the front matter of a note, None if there is none.

    A link, or anything that is no readable file, also gives None.
    """
    try:
        with open_file(path, follow=False) as file:
            return memory_id_of(file.read(_FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def blank_logs(runtime: ErasureRuntime, offsets_in: Callable[[bytes], Iterable[int]], *, dry_run: bool = False) -> int:
    """Blank the log lines at the offsets that `offsets_in` yields for each log; return how many there are."""
    try:
        return blank_lines(runtime.directory / LOGS, offsets_in, dry_run=dry_run)
    except OSError as error:
        raise StoreError(
            f"the log {error.filename} cannot be written: {error.strerror}", remedy="make it readable and writable"
        ) from error


def lines_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) for each line of a log."""
    lines = data.splitlines(keepends=True)
    return zip(accumulate(map(len, lines), initial=0), lines, strict=False)


def store_receipt(
    runtime: ErasureRuntime, receipt: ForgetReceipt, pending: PendingRun, waiting: Sequence[Obstacle]
) -> ForgetReceipt:
    """Store and return the receipt of a run. The run stays pending while something is waiting.

    If the receipt cannot be stored, the run stays pending and the returned receipt says so.
    """
    receipt = replace(
        receipt,
        waiting=tuple(dict.fromkeys(f"{item}{FINISHES}" for item in waiting)),
        verified=bool(receipt.checked) and not receipt.found and not waiting,
    )
    try:
        with runtime.store.change_memories(pending.note_namespace) as change:
            change.put(receipt.note())
            if not waiting:
                change.drop(Note, kind=FORGETTING, id=pending.id)
    except StoreError as error:
        unwritten = f"{DATABASE}: the receipt was not written: {error.args[0]}{FINISHES}"
        return replace(receipt, waiting=(*receipt.waiting, unwritten), verified=False)
    return receipt


def finish_runs(runtime: ErasureRuntime, *, mend: bool = True) -> list[Problem]:
    """Finish earlier runs, or without `mend` only report them; return [] if there are none."""
    runs = pending_runs(runtime.store)
    if not runs:
        return []
    if not mend or runtime.store.is_read_only:
        return [_problem(run, "", "run `commonplace doctor` where the store can be written") for run in runs]
    lock = runtime.store.lock(runtime.directory / LOCK)
    if not lock.acquire(0.0):
        problem = "another process is forgetting at this moment"
        return [Problem(FORGETTING, problem, "wait for it, then look again")]
    try:
        return finish_runs_locked(runtime)
    finally:
        lock.release()


def finish_runs_locked(runtime: ErasureRuntime) -> list[Problem]:
    """Finish unfinished runs for a caller that holds the lock."""
    store, problems, erased = runtime.store, [], list[tuple[PendingRun, ForgetReceipt, list[Obstacle]]]()
    for run in pending_runs(store):
        [note] = store.notes(run.note_namespace, RECEIPT, run.id)
        receipt = receipt_of(note)
        counts = dict(receipt.counts)
        waiting = remove_pages(runtime, run, counts)
        notices = receipt.notices if receipt.checked else tuple(dict.fromkeys((*receipt.notices, UNVERIFIED)))
        erased.append((run, replace(receipt, counts=counts, notices=notices), waiting))
    # One pass over the files serves all runs: they all wait for the same files.
    shared = rewrite_files(runtime, thorough=True) if erased else []
    for run, receipt, run_waiting in erased:
        waiting = [*run_waiting, *shared]
        remaining = store_receipt(runtime, receipt, run, waiting).waiting
        remedy = waiting[0].remedy if waiting else "see that there is room on the disk"
        if remaining:
            problems.append(_problem(run, remaining[0].removesuffix(FINISHES), remedy))
        else:
            problems.append(_problem(run, "", "finish it", mended=True))
    if erased:
        runtime.forget_caches()
    return problems


def _problem(run: PendingRun, reason: str, remedy: str, *, mended: bool = False) -> Problem:
    subject = f"namespace {run.namespace!r}" if run.is_namespace else "what was forgotten"
    message = f"copies of {subject} are not all gone yet (receipt {run.id})"
    return Problem(FORGETTING, f"{message}: {reason}" if reason else message, remedy, mended)
