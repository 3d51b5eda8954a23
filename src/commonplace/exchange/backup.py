"""Write a backup of a live store and verify it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import iso
from commonplace.errors import StoreDamagedError, StoreError
from commonplace.exchange.archive import (
    BACKUP,
    FOLDERS,
    LONG_TERM,
    SUFFIX,
    Manifest,
    backup_note,
    counter,
    database_errors,
    examined,
    file_errors,
    opened,
    refuse_occupied,
    unpack,
    write_archive,
)
from commonplace.files import sync
from commonplace.settings.paths import DATABASE
from commonplace.store.drafts import clear_drafts, draft
from commonplace.store.store import Store
from commonplace.text.characters import storable
from commonplace.types import Note, Progress

_DAMAGED: Final = "the store is damaged, so that no backup of it was kept"


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A verified backup.

    Attributes:
        path: absolute.
        size: bytes of the file.
        store: the store's id.
        change: last number of the change sequence that it holds.
        files: how many files of Markdown it holds beside the database.
        notices: one sentence each, for people.
    """

    path: Path
    size: int
    store: str
    change: int
    files: int
    created_at: datetime
    seconds: float
    notices: tuple[str, ...] = ()


def back_up(
    store: Store, directory: Path, target: Path, *, namespace: str, now: float, progress: Progress | None = None
) -> BackupReport:
    """Write a backup of the store in a directory to a new file; see `Engine.backup`.

    The database is copied first: Markdown that changes meanwhile is then newer than it, and is taken in after a restore
    like any page that somebody edited. The reverse would undo what was remembered last.

    Args:
        namespace: where the note about the backup is kept.
        now: seconds since the epoch.
        progress: told of bytes.
    """
    begun = time.perf_counter()
    target = target.expanduser().absolute()
    refuse_occupied(target)
    if target.parent.resolve().is_relative_to(directory.resolve()):
        raise StoreError(
            f"{target} is inside the store, which deletions scan",
            remedy="name a place outside of the store",
        )
    created_at = datetime.fromtimestamp(now, UTC)
    writing = f"cannot write {target}"
    left = [each for each in clear_drafts(directory) if each.state == "unreachable"]
    with draft(directory, target) as base:
        database, archive = (base.with_name(f"{base.name}{end}") for end in (".db", ".new"))
        with file_errors(writing), archive.open("xb") as file:
            with database_errors(writing, database, str(directory / DATABASE)):
                counter(progress, "Copying the database", 0)
                store.backup(database)
                found = examined(database, _DAMAGED, "see `commonplace doctor`, and keep the earlier backups")
            sources, links = _sources(directory)
            sources.insert(0, (DATABASE, database))
            sizes = (path.stat().st_size for _, path in sources if path.exists())
            count = counter(progress, "Backing up", sum(sizes))
            about = Manifest(version("commonplace"), *found, iso(created_at))
            manifest = write_archive(file, sources, about, count)
            file.flush()
            os.fsync(file.fileno())
        count = counter(progress, "Reading the backup", manifest.total_bytes)
        with opened(archive) as (packed, found_again):
            for member in found_again.members:
                for piece in unpack(packed, member):
                    count(len(piece))
        if found_again != manifest:
            raise StoreDamagedError(f"{archive} does not hold what was written to it", remedy="check the disk")
        with _noted(store, namespace, target, created_at):
            refuse_occupied(target)
            with file_errors(writing):
                archive.rename(target)
                sync(target.parent)
    notices = [f"{path} is a link, and was skipped" for path in links]
    notices += [f"an earlier one was killed, and what it left ({each.path}) {each.why}: {each.remedy}" for each in left]
    if store.is_read_only:
        notices.append(
            "the store is read-only and cannot note where this backup is: a later deletion will not report it"
        )
    return BackupReport(
        path=target,
        size=target.stat().st_size,
        store=manifest.store,
        change=manifest.change,
        files=len(manifest.members) - 1,
        created_at=created_at,
        seconds=time.perf_counter() - begun,
        notices=tuple(notices),
    )


def _sources(directory: Path) -> tuple[list[tuple[str, Path]], list[Path]]:
    """Return (path in the archive, file) of the store's Markdown, sorted, and the links that are none of it."""
    found, links = [], []
    places = [directory.glob(f"{LONG_TERM}*{SUFFIX}")]
    for folder in FOLDERS:
        walk = os.walk(directory / folder)
        places.append(Path(place, name) for place, folders, names in walk for name in (*folders, *names))
    for path in chain.from_iterable(places):
        if path.is_symlink():
            links.append(path)
        elif path.name.endswith(SUFFIX) and path.is_file():
            name = path.relative_to(directory).as_posix()
            if storable(name) != name:
                raise StoreError(f"{name!r} has a name that is not UTF-8, which no backup can hold", remedy="rename it")
            found.append((name, path))
    return sorted(found), sorted(links)


@contextmanager
def _noted(store: Store, namespace: str, target: Path, at: datetime) -> Iterator[None]:
    """Note a backup in its store before it gets its name: a receipt should rather name one too many."""
    if store.is_read_only:
        yield
        return
    with store.change_memories(namespace) as change:
        change.put(backup_note(target, at))
    try:
        yield
    except BaseException:
        with store.change_memories(namespace) as change:
            change.drop(Note, kind=BACKUP, id=str(target))
        raise
