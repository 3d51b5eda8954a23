"""Restore a backup into a directory and put it in place of a store.

Whoever has the old store open must close it first: what it wrote after the change of places would be written to the
old store, which nobody reads any more. So a store that is open anywhere is not replaced.
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
    counter,
    database_errors,
    examined,
    opened,
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
"""What a place keeps whatever store it holds."""

_TRIES, _PAUSE_S = 20, 0.05
_LOCK_S = 10.0


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A store that was made of a backup.

    Attributes:
        directory: the store.
        store: its id, which is that of the store that was backed up.
        change: last number of the change sequence that it holds.
        files: how many files of Markdown it holds.
        backed_up_at: ISO 8601, UTC.
        kept: where the store is that was there before, None where there was none.
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
    """Make a store of a backup; everything in it is checked before anything at its place is touched.

    The index is not part of a backup: the first search builds it. Close every program that has the store open before
    you replace it, servers of agents too; it is refused otherwise. A crash leaves the old store or the new one at its
    place, and perhaps a directory beside it whose name ends in `.new`: the next restore there removes it, and so does
    the next backup, forgetting or `doctor` of the store there.

    Args:
        source: a file that `Engine.backup` wrote.
        path: the store's directory; None is the one that `commonplace.open` would take.
        replace: put it in the place of a store that is there, which is kept beside it under a name with the time.
        progress: called with bytes.
        clock: returns seconds since the epoch.

    Raises:
        NotFoundError: there is no such backup.
        StoreBusyError: another program has the store open that would be replaced.
        StoreDamagedError: the backup is damaged, cut off, or no backup. Nothing was changed.
        StoreVersionError: a newer Commonplace wrote the backup or the store in it. Nothing was changed.
        StoreError: there is a store, or something else, at the place, or it cannot be written. Nothing was changed.
    """
    begun = time.perf_counter()
    if path is None:
        path = load().store.path
    if address_of(path) is not None:
        raise StoreError(
            f"a backup cannot be restored to {address_of(path)}",
            remedy="restore it to a directory, and move it by `commonplace export` and `commonplace import`",
        )
    # Links are followed: what is moved is the directory itself.
    backup, directory = Path(source).expanduser().absolute(), Path(path).expanduser().resolve()
    writing = f"cannot restore to {directory}"
    with (
        file_errors(writing, remedy="make its parent writable, or name another place"),
        opened(backup) as (archive, manifest),
    ):
        is_store = _refuse_occupied(directory, is_replacing=replace)
        clear_drafts(directory)
        now = datetime.fromtimestamp(clock(), UTC)
        named = f"{directory.name}.{now:%Y-%m-%dT%H-%M-%SZ}"
        asides = (directory.with_name(f"{named}{f'.{number}' if number else ''}.replaced") for number in count())
        aside = next(each for each in asides if not os.path.lexists(each))
        directory.parent.mkdir(parents=True, exist_ok=True)
        with (
            restore_draft(directory, aside) as new,
            database_errors(writing, new / DATABASE, f"{DATABASE} in {backup}"),
        ):
            _unpack_all(new, directory, archive, manifest, progress)
            another = "take another backup"
            found = examined(new / DATABASE, "the store in the backup is damaged", another)
            if found != (manifest.store, manifest.change):
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
    """Refuse an occupied place that may not be replaced; return whether a store is there."""
    if not os.path.lexists(directory):
        return False
    if not directory.is_dir():
        raise StoreError(f"{directory} is a file", remedy="name a directory")
    refuse_links(directory)
    is_store, left = os.path.lexists(directory / DATABASE), left_behind(directory / DATABASE)
    if is_store or left:
        if is_replacing:
            return True
        what = "a store already" if is_store else f"files of a store, but not its {DATABASE}: {', '.join(left)}"
        raise StoreError(
            f"{directory} holds {what}",
            remedy="replace it with replace=True, which keeps the old files, or name another directory",
        )
    strange = sorted(each.name for each in directory.iterdir() if each.name not in _CARRIED)
    if strange:
        raise StoreError(
            f"{directory} holds no store, but {strange[0]!r}", remedy="name a directory that is empty or does not exist"
        )
    return False


def _unpack_all(new: Path, directory: Path, archive: ZipFile, manifest: Manifest, progress: Progress | None) -> None:
    """Put into a new directory what the old one keeps, and the files of a backup."""
    free = shutil.disk_usage(new).free
    if manifest.total_bytes > free:
        raise StoreError(
            f"the backup needs {manifest.total_bytes:,} bytes unpacked, {free:,} are free beside {new}",
            remedy="free some space, or name another directory",
        )
    for name in _CARRIED:
        if (directory / name).is_file():
            shutil.copy2(directory / name, new / name)
    # A project's store is hidden from the project's own history before it has content.
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
    """Put a store where none is: at most what it carries was there."""
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
    """Put a store where another one is, and return where that is kept.

    What is forgotten later is still in the other one, and in the copies that it knew: the new one takes them over.
    """
    database, known = directory / DATABASE, list[Note]()
    with suppress(StoreError), closing(Store.open(database, create=False)) as store:  # it may be unreadable
        known = store.notes(WHOLE_STORE, BACKUP)
    put_notes(new / DATABASE, [*known, backup_note(aside, now, replaced=True)])
    _sync_all(new)
    with FileLock(lock_path(database)).hold(_LOCK_S):
        # Only where nobody else has a database open does SQLite let it leave the log's mode. That folds the log into
        # it, too. A damaged one cannot be checked.
        for left in reversed(range(_TRIES if database.exists() else 0)):
            try:
                with driver_errors(database), closing(connect(database, 0)) as db:
                    db.execute("PRAGMA journal_mode = DELETE").fetchone()
                break
            except StoreBusyError as error:
                if not left:
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
    for place, _, names in os.walk(new, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))


def put_in_place(new: Path, directory: Path, aside: Path) -> Path:
    """Move `new` to `directory`, and `directory` to `aside`; return the latter's path. All are siblings.

    Where the system can exchange two directories, a crash at any moment leaves one of them whole at `directory`. Where
    it cannot, a crash between two renames leaves none there, and both whole beside it.

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


def _exchange(one: Path, other: Path) -> bool:
    """Let two directories change places; return False where the system or the file system cannot do that."""
    system = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
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
    raise OSError(number, os.strerror(number), str(other))
