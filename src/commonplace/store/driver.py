"""The SQLite driver: how a connection to a file is opened, what makes it durable, and what its errors mean.

It knows no table.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError

_WAL_LIMIT_BYTES = 32 * 2**20
_CACHE_KIB = 256  # what is read again is in the system's cache of files: SQLite's own 2 MB a connection save little
_NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)


def lock_path(database: Path) -> Path:
    """Return the file whose lock a writer of the database holds."""
    return database.with_name(database.name + ".lock")


def connect(path: Path, timeout_s: float, *, create: bool = False) -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself and may be closed by any thread."""
    return _connect(path, timeout_s, "mode=rwc" if create else "mode=rw")


def can_be_written(path: Path) -> bool:
    """Tell whether a writer could do its work: SQLite needs the database and, for its log, the directory."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at a path from every other file there is, links followed; None where there is none.

    Raises:
        StoreError: nobody can tell, since its directory may not be looked into.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(
            f"cannot read {path}: {error.strerror}", remedy="make its directory readable, or name another store"
        ) from error
    return status.st_dev, status.st_ino


def connect_read_only(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Open a connection to a database in a place that cannot be written.

    Where not even the file can be made through which readers and writers of a log speak, the database is read as one
    that nobody changes. Such a connection is for one read: a writer with more rights may come at any time.

    Raises:
        StoreError: there is a log; what it holds cannot be read without making that file.
    """
    db = _connect(path, timeout_s, "mode=ro")
    try:
        fix_state(db)
    except sqlite3.Error as error:
        db.close()
        if _primary_code(error) not in _NOT_WRITABLE:
            raise
    else:
        return db
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"the store {path} has a log ({log.name}) that can only be read where its directory can be written",
            remedy="open the store once as a user who may write there, or copy both files to a place you may write",
        )
    return _connect(path, timeout_s, "mode=ro&immutable=1")


def fix_state(db: sqlite3.Connection) -> None:
    """Read something: only the first read of a transaction fixes what it sees, or fails where nothing can be read."""
    db.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def prepare_reader(db: sqlite3.Connection) -> None:
    """Refuse writing through this connection, and keep it small."""
    db.execute("PRAGMA query_only = ON")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def prepare_writer(db: sqlite3.Connection) -> None:
    """Set what makes a commit durable and consistent on this connection, and keep it small."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    # What is deleted is overwritten at once: to forget must not depend on what is written later.
    db.execute("PRAGMA secure_delete = ON")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Turn what the driver raises into the store's errors, with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise _meaning(error, path) from error


def _connect(path: Path, timeout_s: float, parameters: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{parameters}"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def _meaning(error: sqlite3.Error, path: Path) -> StoreError:
    primary = _primary_code(error)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(f"the store {path} stayed locked by another program", remedy="try again")
    if primary == sqlite3.SQLITE_NOTADB:
        return StoreDamagedError(f"{path} is not a Commonplace store", remedy="restore a backup, or name another store")
    if primary == sqlite3.SQLITE_TOOBIG:
        return StoreError(f"a value is too large for the store {path}: {error}", remedy="split it")
    if primary == sqlite3.SQLITE_FULL:
        return StoreError(f"the disk of {path} is full ({os.strerror(errno.ENOSPC)})", remedy="free some space")
    if primary in _NOT_WRITABLE:
        # A quota or a limit on the size of files comes as an error of input and output, not as a full disk.
        room = "see that there is room on the disk, and " if primary == sqlite3.SQLITE_IOERR else ""
        return StoreError(
            f"the store {path} cannot be read or written: {error}",
            remedy=f"{room}make the file and its directory readable and writable, or name another store",
        )
    return StoreDamagedError(
        f"the store {path} is damaged: {error}",
        remedy="run `commonplace doctor`; where it cannot mend it, restore a backup",
    )


def _primary_code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
