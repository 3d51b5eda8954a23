"""What follows an erasing: each step lets one kind of copy go, may be taken again at any time, and says what waits.

They need nothing but ids and numbers, so that they can be taken after the process that erased was killed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from commonplace.errors import StoreError
from commonplace.forgetting.pending import Pending
from commonplace.forgetting.place import Place
from commonplace.forgetting.vault import notes_of, remove
from commonplace.ingest.projection import bring_up_to_date
from commonplace.store.drafts import clear_drafts

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
    place: Place,
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


def _remove_blocks(place: Place, pending: Pending, counts: dict[str, int]) -> None:
    blocks = place.forget_blocks(pending.namespace, pending.ids)
    counts["blocks"] = max(counts.get("blocks", 0), blocks)
    if pending.is_namespace:
        counts["pages"] = max(counts.get("pages", 0), place.drop_pages(pending.namespace))


def _delete_owners(place: Place, pending: Pending) -> None:
    """Delete what is no memory, unless it was given anew since."""
    space = pending.namespace
    numbers = [owner for owner, passage in pending.firsts if passage in place.store.passages_of(space, [owner])]
    if numbers:
        place.store.delete_owners(space, numbers)


def vault_notes(place: Place, namespace: str, ids: Sequence[str], paths: Sequence[str]) -> list[Path]:
    """Return the notes that were written of memories of a namespace."""
    # An id that a caller gave may be of another memory in another namespace.
    others = [name for name in place.store.namespaces() if name != namespace]
    own = [id_ for id_ in ids if all(place.store.memory(name, id_) is None for name in others)]
    return notes_of(place.directory, own, paths)


def _compact(place: Place, *, thorough: bool) -> list[Waiting]:
    if place.store.compact(thorough=thorough):
        return []
    return [Waiting(DATABASE, "store.db", "another process still reads the state before")]


def _clear_drafts(place: Place) -> list[Waiting]:
    left = [each for each in clear_drafts(place.directory) if each.state == "unreachable"]
    return [Waiting(DRAFTS, each.path, f"{LEFT_OF_DRAFT}; it {each.why}", each.remedy) for each in left]


def _rebuild(place: Place) -> list[Waiting]:
    report = bring_up_to_date(place.store, place.index, rebuild=True, timeout_s=_INDEX_WAIT_S, progress=place.progress)
    return [Waiting(INDEX, "index", "another process is writing it")] if report is None else []


def _remove_generations(place: Place) -> list[Waiting]:
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
