"""Remove the copies of deleted data: index, journal pages, vault notes, drafts, free pages. Each step is idempotent.

A step needs only ids and numbers, so that it can run after the process that erased was killed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from commonplace.errors import StoreError
from commonplace.formats.vault import memory_id_of
from commonplace.ingest.projection import bring_up_to_date
from commonplace.store.contract import MemoryChange, Note, Store
from commonplace.store.drafts import clear_drafts
from commonplace.types import Progress

if TYPE_CHECKING:
    from commonplace.graph.runtime import GraphRuntime
    from commonplace.index.generations import Index

LOGS = "logs"


class Pages(Protocol):
    """The Markdown of the memories."""

    def forget(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove the blocks of these memories from every page, and the conflict copies that name one of them.

        What else stands on a page stays. Ids without a block are passed over. A namespace that the store no longer has
        is not made again by it.

        Returns:
            How many blocks and copies went.
        """
        ...

    def drop_all(self, namespace: str) -> int:
        """Remove every page and conflict copy of a namespace; return how many files went."""
        ...


@dataclass(frozen=True, slots=True)
class ErasureRuntime:
    """A store with all that keeps copies of what it holds.

    Attributes:
        pages: None where the store has no Markdown.
        untell: takes note, in the transaction, that an outside graph is to delete an episode of a group too; None where
            there is none.
        leave: takes a namespace, of which so many episodes may have been told, away from an outside graph, or only says
            that it would (True); returns what went there and what is left; None where there is none.
        follow: brings the graph, in the transaction, to what memories say now; None where it takes none of it.
        ground: what a graph is changed with; None where nobody forgets parts of one.
        forget_caches: lets this process drop what it keeps of questions and texts.
        clock: seconds since the epoch.
    """

    directory: Path
    store: Store
    index: Index
    clock: Callable[[], float] = time.time
    pages: Pages | None = None
    forget_caches: Callable[[], None] = lambda: None
    progress: Progress | None = None
    follow: Callable[[MemoryChange, Sequence[str]], None] | None = None
    ground: Callable[[], GraphRuntime] | None = None
    untell: Callable[[MemoryChange, str, str], None] | None = None
    leave: Callable[[str, int, bool], tuple[Sequence[str], Sequence[str]]] | None = None

    def forget_blocks(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove the Markdown of memories; return how many blocks and conflict copies went."""
        return 0 if self.pages is None else self.pages.forget(namespace, ids)

    def drop_pages(self, namespace: str) -> int:
        """Remove all the Markdown of a namespace; return how many files went."""
        return 0 if self.pages is None else self.pages.drop_all(namespace)


FORGETTING: Final = "forgetting"
"""The kind of these notes."""


@dataclass(frozen=True, slots=True)
class Pending:
    """What is still to be done. It has the id of the receipt that it belongs to.

    Attributes:
        namespace: where something goes, or that goes itself.
        steps: those of `steps.STEPS` that are to be taken.
        ids: of the memories that go.
        firsts: (owner number, one of its passages) of artifacts and documents that go.
        is_namespace: the whole namespace goes.
        is_proved: every file was looked through; else the run was ended before it could.
        is_clean: and nothing was found that does not wait.
    """

    id: str
    at: float
    namespace: str
    steps: tuple[str, ...]
    ids: tuple[str, ...] = ()
    firsts: tuple[tuple[int, int], ...] = ()
    is_namespace: bool = False
    is_proved: bool = False
    is_clean: bool = False

    def note(self) -> Note:
        """Return the note that keeps it."""
        return Note(FORGETTING, self.id, self.at, json.dumps(asdict(self), sort_keys=True))


def pending_of(notes: Sequence[Note]) -> list[Pending]:
    """Return what notes of the kind `FORGETTING` keep, each once."""
    found = {}
    for note in notes:
        values = json.loads(note.body)
        values["steps"], values["ids"] = tuple(values["steps"]), tuple(values["ids"])
        values["firsts"] = tuple((owner, passage) for owner, passage in values["firsts"])
        found[note.id] = Pending(**values)
    return list(found.values())


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
    wanted = set(ids)
    found = {path for path in vault.rglob("*.md") if _memory_id(path) in wanted}
    found |= set(vault.rglob(DRAFT)) if wanted else set()
    for name in paths:
        path = directory / name
        if path.is_file() and path.resolve().is_relative_to(vault.resolve()):
            found.add(path)
    return sorted(found)


def memories_of_notes(directory: Path, folder: Path) -> dict[str, str]:
    """Return whose notes lie in one folder of the vault: the memory's id by the path below the store's directory."""
    found = {path: _memory_id(path) for path in sorted(folder.glob("*.md"))} if folder.is_dir() else {}
    return {path.relative_to(directory).as_posix(): id_ for path, id_ in found.items() if id_ is not None}


def remove(notes: Collection[Path]) -> int:
    """Remove notes; return how many were there.

    Raises:
        StoreError: one cannot be removed.
    """
    gone = 0
    for note in notes:
        try:
            note.unlink()
            gone += 1
            if note.parent.parent.name == VAULT:
                with suppress(OSError):  # not empty; the name of a directory is that of a namespace
                    note.parent.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(
                f"{note} cannot be removed: {error.strerror}", remedy="make its directory writable"
            ) from error
    return gone


def _memory_id(path: Path) -> str | None:
    """Return the memory's id in the front matter of a note, None where there is none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
            return memory_id_of(file.read(FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None


OWNERS: Final = "owners"
PAGES: Final = "pages"
INDEX: Final = "index"
GENERATIONS: Final = "generations"
DATABASE: Final = "database"
DRAFTS: Final = "drafts"
STEPS: Final = (OWNERS, PAGES, INDEX, GENERATIONS, DATABASE, DRAFTS)
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
        return f"{self.files}: {self.why}{FINISHES}"


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

    @contextmanager
    def step(name: str, files: str) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if not is_patient:
                raise
            waiting.append(Waiting(name, files, error.args[0], error.remedy or "see that it can be written"))

    if OWNERS in pending.steps:
        with step(OWNERS, "store.db"):
            _delete_owners(place, pending)
    if PAGES in pending.steps:
        with step(PAGES, "memory"):
            _remove_blocks(place, pending, counts)
        with step(PAGES, "vault"):
            gone = remove(vault_notes(place, pending.namespace, pending.ids, vault_paths))
            counts["vault_notes"] = counts.get("vault_notes", 0) + gone
    if INDEX in pending.steps:
        with step(INDEX, "index"):
            waiting += _rebuild(place)
    if GENERATIONS in pending.steps:
        unwritten = [each for each in waiting if each.step == INDEX]
        with step(GENERATIONS, "index"):
            waiting += [replace(each, step=GENERATIONS) for each in unwritten] or _remove_generations(place)
    if DATABASE in pending.steps:
        with step(DATABASE, "store.db"):
            waiting += _compact(place, thorough=thorough)
    if DRAFTS in pending.steps:
        waiting += _clear_drafts(place)
    return waiting


def _remove_blocks(place: ErasureRuntime, pending: Pending, counts: dict[str, int]) -> None:
    blocks = place.forget_blocks(pending.namespace, pending.ids)
    counts["blocks"] = max(counts.get("blocks", 0), blocks)
    if pending.is_namespace:
        counts["pages"] = max(counts.get("pages", 0), place.drop_pages(pending.namespace))


def _delete_owners(place: ErasureRuntime, pending: Pending) -> None:
    """Delete what is no memory, unless it was given anew since."""
    space = pending.namespace
    numbers = [owner for owner, passage in pending.firsts if passage in place.store.passages_of(space, [owner])]
    if numbers:
        place.store.delete_owners(space, numbers)


def vault_notes(place: ErasureRuntime, namespace: str, ids: Sequence[str], paths: Sequence[str]) -> list[Path]:
    """Return the notes that were written of memories of a namespace."""
    # An id that a caller gave may be of another memory in another namespace.
    others = [name for name in place.store.namespaces() if name != namespace]
    own = [id_ for id_ in ids if all(place.store.memory(name, id_) is None for name in others)]
    return notes_of(place.directory, own, paths)


def _compact(place: ErasureRuntime, *, thorough: bool) -> list[Waiting]:
    if place.store.compact(thorough=thorough):
        return []
    return [Waiting(DATABASE, "store.db", "another process still reads the state before")]


def _clear_drafts(place: ErasureRuntime) -> list[Waiting]:
    left = [each for each in clear_drafts(place.directory) if each.state == "unreachable"]
    return [Waiting(DRAFTS, each.path, f"{LEFT_OF_DRAFT}; it {each.why}", each.remedy) for each in left]


def _rebuild(place: ErasureRuntime) -> list[Waiting]:
    report = bring_up_to_date(place.store, place.index, rebuild=True, timeout_s=_INDEX_WAIT_S, progress=place.progress)
    return [Waiting(INDEX, "index", "another process is writing it")] if report is None else []


def _remove_generations(place: ErasureRuntime) -> list[Waiting]:
    place.index.reader()  # so that this process has no older one open
    if not place.index.claim(_INDEX_WAIT_S):
        return [Waiting(GENERATIONS, "index", "another process is writing it")]
    try:
        give_up = time.monotonic() + _HELD_WAIT_S
        while (held := place.index.remove_older()) and time.monotonic() < give_up:
            time.sleep(_HELD_STEP_S)  # a search that was under way takes milliseconds
    finally:
        place.index.release()
    return [Waiting(GENERATIONS, f"index/{name}", "somebody is searching in it") for name in held]
