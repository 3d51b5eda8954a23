"""Restore a backup into a directory and put it in place of a store.

A store that any program has open is not replaced: that program would go on writing to the old store, which nobody
reads any more.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from commonplace.dataclasses import dataclass
from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError
from commonplace.exchange.backup import (
    BACKUP,
    Manifest,
    backup_note,
    check_database,
    counter,
    database_errors,
    open_backup,
    put_notes,
    unpack,
)
from commonplace.files import sync
from commonplace.locks import FileLock
from commonplace.settings import load
from commonplace.settings.paths import DATABASE, STORE_FILE, STORE_NAME, address_of, refuse_links
from commonplace.store.database import connect, driver_errors, left_behind, lock_path
from commonplace.store.drafts import clear_drafts, file_errors, restore_draft, take_over_notes
from commonplace.store.schema import WHOLE_STORE
from commonplace.store.store import Store
from commonplace.types import Note, Progress

_HERE = -100
"""AT_FDCWD of Linux."""
_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2) on Linux, and RENAME_SWAP of renamex_np(2) on macOS."""
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_IGNORE: Final = ".gitignore"
_CARRIED: Final = (_IGNORE, STORE_FILE)
"""Files that a directory keeps whatever store it holds."""

_TRIES, _PAUSE_S = 20, 0.05
_LOCK_S = 10.0


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A store that was restored from a backup.

    Attributes:
        directory: the store.
        store: its id, the same as that of the store that was backed up.
        change: last number of the change sequence that it holds.
        files: how many files of Markdown it holds.
        backed_up_at: ISO 8601, UTC.
        kept: path of the store that was replaced; None if there was none.
    """

    directory: Path
    store: str
    change: int
    files: int
    backed_up_at: str
    kept: Path | None
    seconds: float


def restore(
    source: str | Path,
    path: str | Path | None = None,
    *,
    replace: bool = False,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
) -> RestoreReport:
    """Restore a store from a backup; check all of the backup before touching anything in the directory.

    The index is not part of a backup: the first search builds it. Close every program that has the store open before
    you replace it, agents' servers too; otherwise the restore is refused. A crash leaves either the old store or the
    new one in the directory, and perhaps a sibling directory whose name ends in `.new`: the next restore to the
    directory removes it, and so does the next backup, forgetting or `doctor` of its store.

    Args:
        source: a file that `Engine.backup` wrote.
        path: the store's directory; None: the one that `commonplace.open` would use.
        replace: replace an existing store, which is kept beside the new one under a name with the time.
        progress: called with numbers of bytes.
        clock: returns seconds since the epoch.

    Raises:
        NotFoundError: the backup does not exist.
        StoreBusyError: another program has the store to be replaced open.
        StoreDamagedError: the file is damaged, truncated or no backup. Nothing was changed.
        StoreVersionError: a newer Commonplace wrote the backup or the store in it. Nothing was changed.
        StoreError: the directory holds a store or something else, or cannot be written. Nothing was changed.
    """
    begun = time.perf_counter()
    if path is None:
        path = load().store.path
    if address_of(path) is not None:
        raise StoreError(
            f"a backup cannot be restored to {address_of(path)}",
            remedy="restore it to a directory, and move it by `commonplace export` and `commonplace import`",
        )
    # Follow links: the directory itself is moved.
    backup, directory = Path(source).expanduser().absolute(), Path(path).expanduser().resolve()
    writing = f"cannot restore to {directory}"
    with (
        file_errors(writing, remedy="make its parent writable, or name another place"),
        open_backup(backup) as (archive, manifest),
    ):
        is_store = _refuse_occupied(directory, is_replacing=replace)
        clear_drafts(directory)
        now = datetime.fromtimestamp(clock(), UTC)
        base_name = f"{directory.name}.{now:%Y-%m-%dT%H-%M-%SZ}"
        asides = (directory.with_name(f"{base_name}{f'.{number}' if number else ''}.replaced") for number in count())
        aside = next(candidate for candidate in asides if not os.path.lexists(candidate))
        directory.parent.mkdir(parents=True, exist_ok=True)
        with (
            restore_draft(directory, aside) as new,
            database_errors(writing, new / DATABASE, f"{DATABASE} in {backup}"),
        ):
            _unpack_all(new, directory, archive, manifest, progress)
            another = "take another backup"
            identity = check_database(new / DATABASE, "the store in the backup is damaged", another)
            if identity != (manifest.store, manifest.change):
                raise StoreDamagedError(
                    "the store in the backup is not the one that its manifest names", remedy=another
                )
            put_notes(new / DATABASE, [backup_note(backup, datetime.fromisoformat(manifest.created_at))])
            if is_store:
                kept = _replace_store(new, directory, aside, now)
            else:
                kept = None
                _place_store(new, directory, aside)
    return RestoreReport(
        directory=directory,
        store=manifest.store,
        change=manifest.change,
        files=len(manifest.members) - 1,
        backed_up_at=manifest.created_at,
        kept=kept,
        seconds=time.perf_counter() - begun,
    )


def _refuse_occupied(directory: Path, *, is_replacing: bool) -> bool:
    """Refuse an occupied directory unless its store may be replaced; return whether it holds a store."""
    if not os.path.lexists(directory):
        return False
    if not directory.is_dir():
        raise StoreError(f"{directory} is a file", remedy="name a directory")
    refuse_links(directory)
    is_store, leftovers = os.path.lexists(directory / DATABASE), left_behind(directory / DATABASE)
    if is_store or leftovers:
        if is_replacing:
            return True
        content = "a store already" if is_store else f"files of a store, but not its {DATABASE}: {', '.join(leftovers)}"
        raise StoreError(
            f"{directory} holds {content}",
            remedy="replace it with replace=True, which keeps the old files, or name another directory",
        )
    strange = sorted(child.name for child in directory.iterdir() if child.name not in _CARRIED)
    if strange:
        raise StoreError(
            f"{directory} holds no store, but {strange[0]!r}", remedy="name a directory that is empty or does not exist"
        )
    return False


def _unpack_all(new: Path, directory: Path, archive: ZipFile, manifest: Manifest, progress: Progress | None) -> None:
    """Copy the old directory's kept files and unpack the files of a backup into the new directory."""
    free = shutil.disk_usage(new).free
    if manifest.total_bytes > free:
        raise StoreError(
            f"the backup needs {manifest.total_bytes:,} bytes unpacked, {free:,} are free beside {new}",
            remedy="free some space, or name another directory",
        )
    for name in _CARRIED:
        if (directory / name).is_file():
            shutil.copy2(directory / name, new / name)
    # Hide a project's store from the project's version control before it has content.
    if directory.name == STORE_NAME and not (new / _IGNORE).exists():
        (new / _IGNORE).write_text("*\n", encoding="utf-8")
    count = counter(progress, "Restoring", manifest.total_bytes)
    for member in manifest.members:
        target = new / member.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            for piece in unpack(archive, member):
                file.write(piece)
                count(len(piece))
        os.utime(target, ns=(member.mtime_ns, member.mtime_ns))


def _place_store(new: Path, directory: Path, aside: Path) -> None:
    """Move a store to a directory that is missing or holds at most the files of `_CARRIED`."""
    _sync_all(new)
    if directory.exists():
        left = put_in_place(new, directory, aside)
        for name in _CARRIED:
            (left / name).unlink(missing_ok=True)
        left.rmdir()
    else:
        new.rename(directory)
    sync(directory.parent)


def _replace_store(new: Path, directory: Path, aside: Path, now: datetime) -> Path:
    """Replace a store and return the path where the old one is kept.

    The old store and its backups still hold what is forgotten later, so the new store takes over the notes about them.
    """
    database, notes = directory / DATABASE, list[Note]()
    with suppress(StoreError), closing(Store.open(database, create=False)) as store:  # it may be unreadable
        notes = store.notes(WHOLE_STORE, BACKUP)
    put_notes(new / DATABASE, [*notes, backup_note(aside, now, replaced=True)])
    _sync_all(new)
    with FileLock(lock_path(database)).hold(_LOCK_S):
        # SQLite lets a database leave WAL mode only if nobody else has it open. That also folds the log into it. A
        # damaged database cannot be checked.
        for tries_left in reversed(range(_TRIES if database.exists() else 0)):
            try:
                with driver_errors(database), closing(connect(database, 0)) as db:
                    db.execute("PRAGMA journal_mode = DELETE").fetchone()
                break
            except StoreBusyError as error:
                if not tries_left:
                    raise StoreBusyError(
                        f"another program has the store {database} open",
                        remedy="close every program that uses it, servers of agents too, and restore again",
                    ) from error
                time.sleep(_PAUSE_S)
            except StoreDamagedError:
                break
        take_over_notes(directory, new)
        kept = put_in_place(new, directory, aside)
    sync(directory.parent)
    if kept != aside:
        put_notes(database, [backup_note(kept, now, replaced=True)])
    return kept


def _sync_all(new: Path) -> None:
    for folder, _, names in os.walk(new, topdown=False):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def put_in_place(new: Path, directory: Path, aside: Path) -> Path:
    """Move `new` to `directory` and the old `directory` to `aside`; return where the old one is. All are siblings.

    If the system can exchange two directories, a crash at any moment leaves one of them whole at `directory`. If it
    cannot, a crash between the two renames leaves nothing there, and both whole beside it.

    Raises:
        OSError: nothing was moved.
    """
    if _exchange(new, directory):
        try:
            return new.rename(aside)
        except OSError:
            return new
    directory.rename(aside)
    try:
        new.rename(directory)
    except OSError:
        aside.rename(directory)
        raise
    return aside


def _exchange(left: Path, right: Path) -> bool:
    """Exchange two directories atomically; return False if the system or the file system cannot."""
    system = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(left), os.fsencode(right)
    if sys.platform == "darwin":
        call, values = getattr(system, "renamex_np", None), (first, second, _EXCHANGE)
    else:
        call, values = getattr(system, "renameat2", None), (_HERE, first, _HERE, second, _EXCHANGE)
    if call is None:
        return False
    if call(*values) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(right))
