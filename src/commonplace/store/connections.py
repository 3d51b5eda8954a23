"""Connections to one SQLite file: who may read, who may write, and what the driver's errors mean.

It knows no table but the one that records the schema version.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError
from commonplace.locks import FileLock
from commonplace.store.migrations import refuse_newer

_IDLE_READERS = 8
_WAL_LIMIT_BYTES = 32 * 2**20

_open: weakref.WeakSet[Connections] = weakref.WeakSet()
_hook = threading.Lock()
_hooked = False
_left_to_parent: list[sqlite3.Connection] = []


def lock_path(database: Path) -> Path:
    """Return the file whose lock a writer of the database holds."""
    return database.with_name(database.name + ".lock")


def connect(path: Path, timeout_s: float, *, create: bool = False) -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself and may be closed by any thread."""
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


class Connections:
    """A pool of reading connections, each used by one thread at a time, and one writing connection.

    A forked child starts with an empty pool: SQLite forbids to use, or close, a connection across a fork.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        self.path = path
        self._timeout_s = timeout_s
        self._lock = FileLock(lock_path(path))
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._is_writing = False
        self._is_closed = False
        _watch_forks()
        _open.add(self)

    def __del__(self) -> None:
        with suppress(AttributeError):  # a constructor that failed leaves no pool
            self.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside a read transaction: all its statements see one state."""
        with driver_errors(self.path):
            db = self._take_reader()
            try:
                db.execute("BEGIN")
                yield db
            finally:
                self._give_back(db)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the writing connection inside a transaction that is committed at the end, or rolled back on error."""
        with self._lock.hold(self._timeout_s), driver_errors(self.path):
            db = self._take_writer()
            try:
                db.execute("BEGIN IMMEDIATE")
                refuse_newer(db, self.path)
                yield db
                db.execute("COMMIT")
            except BaseException:
                self._roll_back(db)
                raise
            finally:
                self._end_writing()

    def close(self) -> None:
        """Close what is idle now and what is in use as soon as it is given back."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
            if not self._is_writing:
                self._drop_writer()
        for db in idle:
            db.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise StoreError(f"the store {self.path} is closed", remedy="open it again")

    def _take_reader(self) -> sqlite3.Connection:
        with self._guard:
            self._refuse_closed()
            if self._idle:
                return self._idle.pop()
        db = connect(self.path, self._timeout_s)
        db.execute("PRAGMA query_only = ON")
        return db

    def _give_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            db.close()
            return
        with self._guard:
            is_wanted = not self._is_closed and len(self._idle) < _IDLE_READERS
            if is_wanted:
                self._idle.append(db)
        if not is_wanted:
            db.close()

    def _take_writer(self) -> sqlite3.Connection:
        with self._guard:
            self._refuse_closed()
            self._is_writing = True
        try:
            if self._writer is None:
                self._writer = connect(self.path, self._timeout_s)
                prepare_writer(self._writer)
        except BaseException:
            self._drop_writer()
            self._end_writing()
            raise
        return self._writer

    def _end_writing(self) -> None:
        with self._guard:
            self._is_writing = False
            if self._is_closed:
                self._drop_writer()

    def _roll_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop_writer()

    def _drop_writer(self) -> None:
        db, self._writer = self._writer, None
        if db is not None:
            db.close()

    def _start_empty(self) -> None:
        _left_to_parent.extend(self._idle)
        if self._writer is not None:
            _left_to_parent.append(self._writer)
        self._guard = threading.Lock()
        self._idle = []
        self._writer = None
        self._is_writing = False


def prepare_writer(db: sqlite3.Connection) -> None:
    """Set what makes a commit durable and consistent on this connection."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Turn what the driver raises into the store's errors, with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise _meaning(error, path) from error


def _meaning(error: sqlite3.Error, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(f"the store {path} stayed locked by another program", remedy="try again")
    if primary == sqlite3.SQLITE_NOTADB:
        return StoreDamagedError(f"{path} is not a Commonplace store", remedy="restore a backup, or name another store")
    if primary == sqlite3.SQLITE_TOOBIG:
        return StoreError(f"a value is too large for the store {path}: {error}", remedy="split it")
    if primary == sqlite3.SQLITE_FULL:
        return StoreError(f"the disk of {path} is full ({os.strerror(errno.ENOSPC)})", remedy="free some space")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR):
        return StoreError(
            f"the store {path} cannot be read or written: {error}",
            remedy="make the file and its directory readable and writable, or name another store",
        )
    return StoreDamagedError(f"the store {path} is damaged: {error}", remedy="run `commonplace doctor`")


def _watch_forks() -> None:
    global _hooked  # noqa: PLW0603 - a fork handler can be registered only once and never removed
    with _hook:
        if not _hooked:
            os.register_at_fork(after_in_child=_start_all_empty)
            _hooked = True


def _start_all_empty() -> None:
    for connections in list(_open):
        connections._start_empty()
