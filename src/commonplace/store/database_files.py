"""Database files as a whole: made, brought up to date, copied. It knows no owner and no passage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shlex import quote
from uuid import uuid4

from commonplace.errors import StoreDamagedError, StoreError
from commonplace.files import sync
from commonplace.locks import FileLock
from commonplace.store.driver import (
    can_be_written,
    connect,
    connect_read_only,
    driver_errors,
    lock_path,
    prepare_writer,
)
from commonplace.store.migrations import NEWEST, migrate, refuse_newer, version_of

_PAGE_BYTES = 8192
_MAKING_S = 5.0

_DERIVED = ("index",)
_PAGES = ("MEMORY.md", "memory", "vault")

Fill = Callable[[sqlite3.Connection], None]
"""Writes rows into a new database before it gets its name."""


def stands_at(path: Path) -> bool:
    """Tell whether there is a file.

    Raises:
        StoreError: its directory may not be looked into.
    """
    try:
        return path.exists()
    except OSError as error:
        raise StoreError(
            f"cannot read {path}: {error.strerror}", remedy="make its directory readable, or name another store"
        ) from error


def left_behind(path: Path) -> list[str]:
    """Return what stands beside a database that is gone and shows that it was there, in words; [] where it never was.

    Pages alone do not show it: they may have come with somebody's project. Ask before whether the database is there,
    and again after: another process may be making it.
    """
    beside = path.parent
    found = [name for name in _DERIVED if _has_entries(beside / name)]
    log = path.with_name(f"{path.name}-wal")
    found += [log.name] if log.is_file() and log.stat().st_size else []
    is_sure = bool(found) or lock_path(path).is_file()
    found += [name for name in _PAGES if (beside / name).is_file() or _has_entries(beside / name)]
    return found if is_sure else []


def refuse_lost(path: Path) -> None:
    """Refuse to take a store that has lost its database for one that was never made.

    Raises:
        StoreDamagedError: the database is gone, and what stands beside it is not.
    """
    try:
        left = [] if os.path.lexists(path) else left_behind(path)
        if left and lock_path(path).is_file():
            with suppress(StoreError), FileLock(lock_path(path)).hold(_MAKING_S):
                pass  # whoever is just making it has it then
        is_lost = bool(left) and not os.path.lexists(path)
    except OSError:
        return  # whoever opens it says what is wrong with the directory
    if is_lost:
        where = quote(str(path.parent))
        pages = ", which takes in what stands on its Markdown pages" if {*left} & {*_PAGES} else ""
        raise StoreDamagedError(
            f"the store {path.parent} has lost its database: {path.name} is gone, {', '.join(left)} "
            f"{'is' if len(left) == 1 else 'are'} there",
            remedy=f"restore a backup with `commonplace restore FILE --replace --store {where}`, or begin anew with "
            f"`commonplace init --anew --store {where}`{pages}",
        )


def make(path: Path, timeout_s: float) -> None:
    """Make an empty store at `path`, unless another process makes one first.

    The database gets its name only when it is complete, so that a crash leaves none that is half made.

    Raises:
        StoreBusyError: another process held the lock for longer than `timeout_s`.
        StoreError: the directory cannot be made or written.
    """
    with _file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    # The lock comes last: beside pages it is what tells a lost store from one that was never made.
    with _built(path, str(uuid4())) as new, FileLock(lock_path(path)).hold(timeout_s), _file_errors(path):
        if not path.exists():
            # The log of a database that someone removed would be replayed into the new one.
            _remove_logs(path)
            _publish(new, path)


def build(path: Path, store_id: str, fill: Fill | None = None) -> None:
    """Write a complete new database and give it its name in one step.

    Raises:
        StoreError: the directory cannot be written.
    """
    with _built(path, store_id, fill) as new, _file_errors(path):
        _publish(new, path)


def upgrade(path: Path, timeout_s: float) -> None:
    """Bring a database to the newest schema.

    Raises:
        StoreVersionError: it has a newer one already.
        StoreDamagedError: it is no store.
        StoreBusyError: another process held the lock for longer than `timeout_s`.
        StoreError: it has an older one and cannot be written.
    """
    is_writable = can_be_written(path)
    with driver_errors(path), closing((connect if is_writable else connect_read_only)(path, timeout_s)) as db:
        refuse_newer(db, path)
        if version_of(db, path) < NEWEST:
            if not is_writable:
                raise StoreError(
                    f"the store {path} is read-only and has schema version {version_of(db, path)}, not {NEWEST}",
                    remedy="open it once as a user who may write there, so that it is brought up to date",
                )
            with FileLock(lock_path(path)).hold(timeout_s):
                prepare_writer(db)
                refuse_newer(db, path)
                migrate(db, version_of(db, path))


def copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy the state that a connection sees to a new file, durably.

    Raises:
        StoreError: the target exists or cannot be written.
    """
    refuse_existing(target)
    new = _beside(target)
    try:
        with driver_errors(target), closing(connect(new, 0, create=True)) as db:
            source.backup(db)
        with _file_errors(target):
            _publish(new, target)
    finally:
        _remove(new)


def refuse_existing(target: Path) -> None:
    """Refuse to write over something.

    Raises:
        StoreError: the target exists.
    """
    if target.exists():
        raise StoreError(f"{target} exists already", remedy="name a file that does not exist yet")


@contextmanager
def _built(path: Path, store_id: str, fill: Fill | None = None) -> Iterator[Path]:
    """Give a complete new database beside the place where it is to be; it is removed unless it was put there."""
    new = _beside(path)
    try:
        with driver_errors(path):
            _build(new, store_id, fill)
        yield new
    finally:
        _remove(new)


def _build(path: Path, store_id: str, fill: Fill | None) -> None:
    with closing(connect(path, 0, create=True)) as db:
        db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        prepare_writer(db)
        begin_store(db, store_id, fill)


def begin_store(db: sqlite3.Connection, store_id: str, fill: Fill | None = None) -> None:
    """Make an empty database a store of that id, and fill it in the same transaction."""
    migrate(db, 0)
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
    if fill:
        fill(db)
    db.execute("COMMIT")


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{uuid4().hex}.new")


def _publish(new: Path, path: Path) -> None:
    sync(new)
    new.rename(path)
    sync(path.parent)


def _has_entries(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
        _remove_logs(path)


def _remove_logs(path: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", remedy="make its directory writable, or name another place"
        ) from error
