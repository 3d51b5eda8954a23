"""Connections to one SQLite database: who may read, who may write, and which state a thread sees."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commonplace.errors import StoreError
from commonplace.locks import FileLock, renew_in_children
from commonplace.store.batches import change_is_under_way, snapshot_is_written
from commonplace.store.driver import (
    can_be_written,
    connect,
    connect_read_only,
    driver_errors,
    fix_state,
    identity,
    lock_path,
    prepare_reader,
    prepare_writer,
)
from commonplace.store.migrations import refuse_newer

_IDLE_READERS = 8
_COMPACT_WAIT_MS = 1_000

_left_to_parent: list[sqlite3.Connection] = []


class Connections:
    """A pool of reading connections, each used by one thread at a time, and one writing connection.

    A thread inside `snapshot` reads through one connection, in one transaction. Where the database cannot be written,
    nothing is pooled. A forked child starts with an empty pool: SQLite forbids to use, or close, a connection across a
    fork.

    Attributes:
        is_read_only: writing is refused.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        self.path = path
        self._file = identity(path)
        self._timeout_s = timeout_s
        self._lock = FileLock(lock_path(path))
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._is_writing = False
        self._writing_thread: int | None = None
        self._is_closed = False
        self.is_read_only = not can_be_written(path)
        # By thread, not thread-local: a fork must find those of all threads. None: the process was forked meanwhile.
        self._snapshots: dict[int, sqlite3.Connection | None] = {}
        renew_in_children(self)

    def __del__(self) -> None:
        with suppress(AttributeError):  # a constructor that failed leaves no pool
            self.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside a read transaction: all its statements see one state, that of `snapshot` in it."""
        with driver_errors(self.path):
            if threading.get_ident() in self._snapshots:
                yield self._snapshot_reader()
                return
            db = self._take_reader()
            try:
                db.execute("BEGIN")
                yield db
            finally:
                self._give_back(db)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every `reading` of this thread inside the block see one state; refuse `writing`."""
        thread = threading.get_ident()
        if thread in self._snapshots:
            yield
            return
        with driver_errors(self.path):
            db = self._take_reader()
            try:
                db.execute("BEGIN")
                fix_state(db)
            except BaseException:
                self._give_back(db)
                raise
        self._snapshots[thread] = db
        try:
            yield
        finally:
            mine = self._snapshots.pop(thread)
            if mine is not None:
                self._give_back(mine)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the writing connection inside a transaction that is committed at the end, or rolled back on error.

        Raises:
            StoreError: the file at the path is another one than was opened, or gone: what is written would be lost.
        """
        if threading.get_ident() in self._snapshots:
            raise snapshot_is_written()
        if self._writing_thread == threading.get_ident():
            raise change_is_under_way()
        if self.is_read_only:
            raise StoreError(
                f"the store {self.path} is read-only",
                remedy="make the file and its directory writable, or copy the store to a place that is",
            )
        self._refuse_closed()
        self._refuse_replaced()  # already before the lock, whose file would be made anew
        with self._lock.hold(self._timeout_s), driver_errors(self.path):
            db = self._take_writer()
            try:
                db.execute("BEGIN IMMEDIATE")
                refuse_newer(db, self.path)
                self._writing_thread = threading.get_ident()
                yield db
                db.execute("COMMIT")
            except BaseException:
                self._roll_back(db)
                raise
            finally:
                self._writing_thread = None
                self._end_writing()

    def compact(self, *, thorough: bool) -> bool:
        """Move the log into the database and empty it; with `thorough`, write the whole database anew before.

        Returns:
            False where another connection still reads an older state, so that the log cannot be emptied now.
        """
        with self.writing():
            pass  # refuses a closed, read-only or newer store, and makes the writing connection
        with self._lock.hold(self._timeout_s), driver_errors(self.path):
            db = self._take_writer()
            try:
                if thorough:
                    db.execute("VACUUM")
                db.execute(f"PRAGMA busy_timeout = {_COMPACT_WAIT_MS}")
                (is_busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not is_busy
            finally:
                db.execute(f"PRAGMA busy_timeout = {round(self._timeout_s * 1000)}")
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

    def _refuse_replaced(self) -> None:
        if identity(self.path) != self._file:
            raise StoreError(
                f"the store at {self.path} was deleted or replaced while it was open", remedy="open it again"
            )

    def _take_reader(self) -> sqlite3.Connection:
        with self._guard:
            self._refuse_closed()
            if self._idle:
                return self._idle.pop()
        if self.is_read_only:
            return connect_read_only(self.path, self._timeout_s)
        db = connect(self.path, self._timeout_s)
        prepare_reader(db)
        return db

    def _snapshot_reader(self) -> sqlite3.Connection:
        with self._guard:
            self._refuse_closed()
        db = self._snapshots[threading.get_ident()]
        if db is None or not db.in_transaction:
            raise StoreError(f"the snapshot of {self.path} is gone", remedy="read again, in a new snapshot")
        return db

    def _give_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            db.close()
            return
        with self._guard:
            is_wanted = not (self._is_closed or self.is_read_only) and len(self._idle) < _IDLE_READERS
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
            self._refuse_replaced()
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

    def renew(self) -> None:
        """Start with an empty pool in a forked child."""
        _left_to_parent.extend(self._idle)
        if self._writer is not None:
            _left_to_parent.append(self._writer)
        _left_to_parent.extend(db for db in self._snapshots.values() if db is not None)
        thread = threading.get_ident()
        self._snapshots = {thread: None} if thread in self._snapshots else {}
        self._guard = threading.Lock()
        self._idle = []
        self._writer = None
        self._is_writing = False
        self._writing_thread = None


class ScratchConnections(Connections):
    """The one connection to a private copy of a database, which SQLite deletes when it is closed.

    It spills into a nameless temporary file where it is large, and takes no lock of the database that it is a copy of.
    """

    def __init__(self, source: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self.is_read_only = False
        self._mutex = threading.RLock()
        self._depth = 0
        self._is_writing = False
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        try:
            source.backup(self._db)
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.execute("PRAGMA synchronous = OFF")
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; inside a transaction of `writing` that is what it has written so far."""
        with self._mutex, driver_errors(self.path):
            yield self._db

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let no other thread write inside the block; refuse `writing`."""
        with self._mutex:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside a transaction that is committed at the end, or rolled back on error."""
        with self._mutex, driver_errors(self.path):
            if self._depth:
                raise snapshot_is_written()
            if self._is_writing:
                raise change_is_under_way()
            self._is_writing = True
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._is_writing = False

    def compact(self, *, thorough: bool) -> bool:  # noqa: ARG002 - it is never worth it
        """Do nothing: the copy goes as a whole."""
        return True

    def close(self) -> None:
        """Delete the copy."""
        with self._mutex:
            self._db.close()
