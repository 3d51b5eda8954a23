"""Remove the copies of deleted data (index, journal pages, vault notes, drafts, free pages), also after a killed run.

Each step is idempotent and needs only ids and numbers, which a note in the store keeps until all are done.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.dataclasses import asdict, dataclass, replace
from commonplace.erasure.receipt import RECEIPT, STORE_SPACE, UNPROVED, ForgetReceipt, receipt_of, values_of
from commonplace.erasure.scan import CONTENT, DIGEST, ID, MIN_PART_LENGTH, Patterns
from commonplace.errors import CommonplaceError, StoreError
from commonplace.formats.vault import memory_id_of
from commonplace.graph.runtime import GraphRuntime
from commonplace.index.generations import Index
from commonplace.ingest.projection import bring_up_to_date
from commonplace.logs import blank_lines
from commonplace.store.drafts import clear_drafts
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.text.languages import natural_language
from commonplace.text.tokens import analyse
from commonplace.types import Note, Progress

if TYPE_CHECKING:
    from commonplace.graph.graphiti.backend import Left
    from commonplace.journal.sync import JournalSync

LOGS: Final = "logs"
TELLING: Final = 6
"""A word with fewer characters, in the form in which it is indexed, is taken for anybody's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong. `mended` tells whether it has been put right."""

    problem: str
    remedy: str
    mended: bool = False

    @classmethod
    def of(cls, error: CommonplaceError) -> Finding:
        return cls(error.args[0], error.remedy)


@dataclass(frozen=True, slots=True)
class ErasureRuntime:
    """A store with all that keeps copies of what it holds.

    Attributes:
        is_served: its answers go to a server's clients, who may not know of other namespaces.
        pages: None where the store has no Markdown.
        untell: takes note, in the transaction, that an outside graph is to delete an episode of a group too; None where
            there is none.
        leave: takes a namespace, of which what has these ids may have been told, away from an outside graph, or only
            says that it would (True); returns what went there and what is left; None where there is none.
        follow: brings the graph, in the transaction, to what memories say now; None where it takes none of it.
        ground: what a graph is changed with; None where nobody forgets parts of one.
        forget_caches: lets this process drop what it keeps of questions and texts.
        clock: seconds since the epoch.
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
    ground: Callable[[], GraphRuntime] | None = None
    untell: Callable[[MemoryChange, str, str], None] | None = None
    leave: Callable[[str, Set[str], bool], Left] | None = None


FORGETTING: Final = "forgetting"
"""The kind of these notes."""


@dataclass(frozen=True, slots=True)
class Pending:
    """What is still to be done. It has the id of the receipt that it belongs to.

    Attributes:
        namespace: where something goes, or that goes itself.
        steps: those of `steps.STEPS` that are to be taken.
        ids: of the memories that go.
        is_namespace: the whole namespace goes.
        is_proved: every file was looked through; else the run was ended before it could.
        is_clean: and nothing was found that does not wait.
    """

    id: str
    at: float
    namespace: str
    steps: tuple[str, ...]
    ids: tuple[str, ...] = ()
    is_namespace: bool = False
    is_proved: bool = False
    is_clean: bool = False

    def note(self) -> Note:
        return Note(FORGETTING, self.id, self.at, json.dumps(asdict(self), sort_keys=True))


def pending_of(notes: Sequence[Note]) -> list[Pending]:
    """Return what notes of the kind `FORGETTING` keep, each once."""
    return list({note.id: Pending(**values_of(note)) for note in notes}.values())


VAULT: Final = "vault"
DRAFT: Final = ".note.commonplace-draft"
"""The name of a file that is to be a note when it is complete."""
FRONT_MATTER_BYTES: Final = 65_536
"""In so many bytes a note has said of which memory it is."""


def notes_of(directory: Path, ids: Collection[str], paths: Collection[str]) -> list[Path]:
    """Return the notes of memories below the vault of a store, sorted; what lies outside of it is never among them.

    What was left of a note when its writer was killed is among them: it may not tell yet of which memory it is.

    Args:
        ids: of memories; a note is of one when a line `memory_id:` of its front matter says so.
        paths: where notes were written, relative to the store's directory.
    """
    vault = directory / VAULT
    if vault.is_symlink() or not vault.is_dir():
        return []
    wanted, named = set(ids), {directory / name for name in paths}
    found = {path for path in vault.rglob("*.md") if _memory_id(path) in wanted}
    found |= set(vault.rglob(DRAFT)) if wanted else set()
    found |= {path for path in named if path.is_file() and path.resolve().is_relative_to(vault.resolve())}
    return sorted(found)


def memories_of_notes(directory: Path, folder: Path) -> dict[str, str]:
    """Return whose notes lie in one folder of the vault: the memory's id by the path below the store's directory."""
    found = {path: _memory_id(path) for path in sorted(folder.glob("*.md"))} if folder.is_dir() else {}
    return {path.relative_to(directory).as_posix(): id_ for path, id_ in found.items() if id_ is not None}


def _memory_id(path: Path) -> str | None:
    """Return the memory's id in the front matter of a note, None where there is none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
            return memory_id_of(file.read(FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None


PAGES: Final = "pages"
INDEX: Final = "index"
GENERATIONS: Final = "generations"
DATABASE: Final = "database"
DRAFTS: Final = "drafts"
STEPS: Final = (PAGES, INDEX, GENERATIONS, DATABASE, DRAFTS)
"""In the order in which they are taken."""

LEFT_OF_DRAFT: Final = "left when a backup, restore or export was killed"
FINISHES: Final = "; `commonplace doctor` finishes it"

_INDEX_WAIT_S = 60.0
_HELD_WAIT_S = 1.0
_HELD_STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class Waiting:
    """A step that is still to be taken, and why, for people.

    Attributes:
        files: the beginning of the names, relative to the store or absolute, of what may still hold something.
        remedy: what has to come before it can be taken.
    """

    step: str
    files: str
    why: str
    remedy: str = "end that process, or wait for it"

    def __str__(self) -> str:
        return f"{self.files}: {self.why}"


def take(
    place: ErasureRuntime,
    pending: Pending,
    counts: dict[str, int],
    *,
    vault_paths: Sequence[str] = (),
    thorough: bool = False,
    is_patient: bool = False,
) -> list[Waiting]:
    """Take the steps that are pending, in their order; count what went, and return what waits, or cannot be done.

    Args:
        vault_paths: where notes were written of them, as far as that is still known.
        thorough: write the whole database anew.
        is_patient: a step that cannot be taken waits, and the others are taken.

    Raises:
        StoreError: a file cannot be written; never where it is patient.
    """
    waiting: list[Waiting] = []
    acts: Sequence[tuple[str, str, Callable[[], Sequence[Waiting]]]] = (
        (PAGES, "memory", lambda: _remove_blocks(place, pending, counts)),
        (PAGES, VAULT, lambda: _remove_notes(place, pending, counts, vault_paths)),
        (INDEX, "index", lambda: _purge_index(place)),
        (GENERATIONS, "index", lambda: _remove_generations(place, waiting)),
        (DATABASE, "store.db", lambda: _compact(place, thorough=thorough)),
        (DRAFTS, "store.db", lambda: _clear_drafts(place)),
    )
    for step, files, act in acts:
        try:
            if step in pending.steps:
                waiting += act()
        except StoreError as error:
            if not is_patient:
                raise
            waiting.append(Waiting(step, files, error.args[0], error.remedy or "see that it can be written"))
    return waiting


def _remove_blocks(place: ErasureRuntime, pending: Pending, counts: dict[str, int]) -> Sequence[Waiting]:
    if place.pages is not None:
        counts["blocks"] = max(counts.get("blocks", 0), place.pages.forget(pending.namespace, pending.ids))
        if pending.is_namespace:
            counts["pages"] = max(counts.get("pages", 0), place.pages.drop_all(pending.namespace))
    return ()


def _remove_notes(
    place: ErasureRuntime, pending: Pending, counts: dict[str, int], paths: Sequence[str]
) -> Sequence[Waiting]:
    for note in vault_notes(place, pending.namespace, pending.ids, paths):
        try:
            note.unlink(missing_ok=True)
        except OSError as error:
            why = f"{note} cannot be removed: {error.strerror}"
            raise StoreError(why, remedy="make its directory writable") from error
        counts["vault_notes"] = counts.get("vault_notes", 0) + 1
        if note.parent.parent.name == VAULT:
            with suppress(OSError):  # not empty; the name of a directory is that of a namespace
                note.parent.rmdir()
    return ()


def _purge_index(place: ErasureRuntime) -> Sequence[Waiting]:
    if place.store.is_on_server:
        return ()
    report = bring_up_to_date(place.store, place.index, purge=True, timeout_s=_INDEX_WAIT_S, progress=place.progress)
    return () if report else (Waiting(INDEX, "index", "another process is writing it"),)


def _remove_generations(place: ErasureRuntime, waiting: Sequence[Waiting]) -> Sequence[Waiting]:
    if unwritten := [replace(each, step=GENERATIONS) for each in waiting if each.step == INDEX]:
        return unwritten
    if place.store.is_on_server:
        return ()
    place.index.reader()  # so that this process has no older one open
    if not place.index.claim(_INDEX_WAIT_S):
        return (Waiting(GENERATIONS, "index", "another process is writing it"),)
    try:
        give_up = time.monotonic() + _HELD_WAIT_S
        while (held := place.index.remove_older()) and time.monotonic() < give_up:
            time.sleep(_HELD_STEP_S)  # a search that was under way takes milliseconds
    finally:
        place.index.release()
    return [Waiting(GENERATIONS, f"index/{name}", "somebody is searching in it") for name in held]


def _compact(place: ErasureRuntime, *, thorough: bool) -> Sequence[Waiting]:
    is_clean = place.store.compact(thorough=thorough)
    return () if is_clean else (Waiting(DATABASE, "store.db", "another process still reads the state before"),)


def _clear_drafts(place: ErasureRuntime) -> Sequence[Waiting]:
    left = [each for each in clear_drafts(place.directory) if each.state == "unreachable"]
    return [Waiting(DRAFTS, each.path, f"{LEFT_OF_DRAFT}; it {each.why}", each.remedy) for each in left]


def vault_notes(place: ErasureRuntime, namespace: str, ids: Sequence[str], paths: Sequence[str]) -> list[Path]:
    # An id that a caller gave may be of another memory in another namespace.
    others = [name for name in place.store.namespaces() if name != namespace]
    own = [id_ for id_ in ids if all(place.store.memory(name, id_) is None for name in others)]
    return notes_of(place.directory, own, paths)


def clear_logs(place: ErasureRuntime, patterns: Patterns, *, dry_run: bool = False) -> int:
    """Blank the log lines that quote what goes, or name it by id or hash; return how many there are.

    This comes before anything is erased: a run that is killed later cannot know any more what to look for.

    Raises:
        StoreError: a log cannot be read or written.
    """
    quoting = patterns.of_kinds(CONTENT, DIGEST, ID, shortest=MIN_PART_LENGTH)
    return blank_where(place, quoting.offsets, dry_run=dry_run) if len(quoting) else 0


def blank_where(place: ErasureRuntime, places: Callable[[bytes], Iterable[int]], *, dry_run: bool = False) -> int:
    """Blank the log lines that stand at these places of each log; return how many there are.

    Raises:
        StoreError: a log cannot be read or written.
    """
    try:
        return blank_lines(place.directory / LOGS, places, dry_run=dry_run)
    except OSError as error:
        raise StoreError(
            f"the log {error.filename} cannot be written: {error.strerror}", remedy="make it readable and writable"
        ) from error


def blank_questions(place: ErasureRuntime, terms: Collection[str] | None = None) -> int:
    """Blank the logged questions with a word that only what was forgotten had: a name gives it away as well.

    Args:
        terms: its words; None where a run that was cut short left nobody who knows them: all words that nothing has.
    """

    def places(data: bytes) -> list[int]:
        asked = [(offset, _words(line)) for offset, line in lines_of(data) if b'"query"' in line]
        wanted = {word for _, words in asked for word in words} if terms is None else terms
        telling = [word for word in wanted if len(word) >= TELLING]
        with place.index.reading() as generation:
            listed = generation.lexical.listed(telling, place.store.namespaces(with_texts=True))
        lost = {word for word in telling if not listed[word]}
        return [offset for offset, words in asked if not lost.isdisjoint(words)]

    return blank_where(place, places)


def lines_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a log, each with its offset."""
    lines = data.splitlines(keepends=True)
    return zip(accumulate(map(len, lines), initial=0), lines, strict=False)


def _words(line: bytes) -> list[str]:
    try:
        question = str(json.loads(line).get("query", ""))
    except (ValueError, AttributeError):
        return []  # not one of our lines
    return analyse(question, natural_language(question))


LOCK = "forgetting.lock"
"""Held, in the store's directory, by the one process that forgets."""
_SHARED = frozenset({INDEX, GENERATIONS, DATABASE, DRAFTS})
"""The steps that are the same whatever was forgotten."""


def finish_waiting(place: ErasureRuntime, *, mend: bool = True) -> list[Finding]:
    """Finish what earlier runs could not; an empty list where nothing is unfinished.

    Args:
        mend: else only tell what there is.

    Raises:
        StoreError: the store cannot be written.
    """
    if not place.store.notes(None, FORGETTING):
        return []
    if not mend or place.store.is_read_only:
        pending = pending_of(place.store.notes(None, FORGETTING))
        return [Finding(_problem(each), "run `commonplace doctor` where the store can be written") for each in pending]
    lock = place.store.lock(place.directory / LOCK)
    if not lock.acquire(0.0):
        return [Finding("another process is forgetting at this moment", "wait for it, then look again")]
    try:
        return finish_held(place)
    finally:
        lock.release()


def finish_held(place: ErasureRuntime) -> list[Finding]:
    """Do the same for a caller that holds the lock."""
    found: list[Finding] = []
    shared: dict[str, Waiting] = {}
    for each in pending_of(place.store.notes(None, FORGETTING)):
        if shared.keys() >= set(each.steps):
            # What had to wait for one run has to for the others: nobody is kept once more for each of them.
            found.append(_unfinished(each, [shared[step] for step in each.steps]))
        else:
            unfinished, waiting = _finish(place, each)
            found.append(unfinished)
            shared |= {left.step: left for left in waiting if left.step in _SHARED}
    if found:
        place.forget_caches()
    return found


def settle(
    place: ErasureRuntime, receipt: ForgetReceipt, pending: Pending, waiting: Sequence[Waiting]
) -> ForgetReceipt:
    """Write what became of a run: its receipt, and what is pending where something waits; return the receipt.

    Where it cannot be written, all steps stay pending, and the receipt says so.
    """
    steps = tuple(dict.fromkeys(each.step for each in waiting))
    receipt = replace(
        receipt,
        waiting=tuple(dict.fromkeys(f"{each}{FINISHES}" for each in waiting)),
        verified=pending.is_proved and pending.is_clean and not steps,
    )
    try:
        with place.store.change_memories(_space(pending)) as change:
            change.put(receipt.note())
            if steps:
                change.put(replace(pending, steps=steps).note())
            else:
                change.drop(Note, kind=FORGETTING, id=pending.id)
    except StoreError as error:
        unwritten = f"store.db: the receipt was not written: {error.args[0]}{FINISHES}"
        return replace(receipt, waiting=(*receipt.waiting, unwritten), verified=False)
    return receipt


def _space(pending: Pending) -> str:
    return STORE_SPACE if pending.is_namespace else pending.namespace


def _finish(place: ErasureRuntime, pending: Pending) -> tuple[Finding, Sequence[Waiting]]:
    notes = [note for note in place.store.notes(_space(pending), RECEIPT) if note.id == pending.id]
    is_marked = any(note.id == pending.id for note in place.store.notes(pending.namespace, FORGETTING))
    if not notes or (pending.is_namespace and is_marked):
        return _called_off(place, pending), ()
    receipt = receipt_of(notes[0])
    if not pending.is_proved:
        receipt = replace(receipt, notices=tuple(dict.fromkeys((*receipt.notices, UNPROVED))))
    counts = dict(receipt.counts)
    waiting = take(place, pending, counts, thorough=True, is_patient=True)
    if not pending.is_proved and not any(each.step == INDEX for each in waiting):
        counts["log_lines"] = counts.get("log_lines", 0) + blank_questions(place)
    receipt = settle(place, replace(receipt, counts=counts), pending, waiting)
    if waiting:
        return _unfinished(pending, waiting), waiting
    if receipt.waiting:
        why = receipt.waiting[0].removesuffix(FINISHES)
        return Finding(f"{_problem(pending)}: {why}", "see that there is room on the disk"), ()
    return Finding(_problem(pending), "finish it", mended=True), ()


def _unfinished(pending: Pending, waiting: Sequence[Waiting]) -> Finding:
    return Finding(f"{_problem(pending)}: {waiting[0]}", waiting[0].remedy)


def _called_off(place: ErasureRuntime, pending: Pending) -> Finding:
    """Drop the notes of a run that was ended before it erased anything."""
    for space in dict.fromkeys((pending.namespace, _space(pending))):
        if space in place.store.namespaces():
            with place.store.change_memories(space) as change:
                change.drop(Note, kind=FORGETTING, id=pending.id)
                change.drop(Note, kind=RECEIPT, id=pending.id)
    return Finding(
        f"to forget namespace {pending.namespace!r} was begun, and nothing was erased", "forget it again", mended=True
    )


def _problem(pending: Pending) -> str:
    what = f"namespace {pending.namespace!r}" if pending.is_namespace else "what was forgotten"
    return f"copies of {what} are not all gone yet (receipt {pending.id})"
