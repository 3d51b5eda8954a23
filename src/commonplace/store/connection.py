"""Connection pools of a SQLite file: readers per thread, one writer.

All users of a file in one process share one pool, so a thousand namespaces need no more connections than one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

from commonplace.errors import StoreError
from commonplace.locks import FileLock, Lock, refuse_forked
from commonplace.store.database import (
    CACHE_KIB,
    ReadOnlyConnection,
    begin_store,
    can_be_written,
    connect,
    connect_reader,
    copy,
    driver_errors,
    identity,
    lock_path,
    prepare_writer,
    refuse_other_version,
)
from commonplace.store.dialect import Database, Read
from commonplace.store.validate import META, refuse_write

T = TypeVar("T")

_IDLE_READERS = 8
_COMPACT_WAIT_MS = 1_000

_left_to_parent: list[sqlite3.Connection] = []


EVERY: Final = "\x1f"
"""Value of `namespace` that stands for all namespaces in reads and writes; no namespace has this name."""


def settings(db: Database) -> dict[object, Any]:
    """Read the settings that every snapshot caches when it begins."""
    return {META: db.execute(META).fetchall()}


class Connections:
    """One user's access to the pooled connections of a file, open until `close`.

    A thread inside `snapshot` reads through one connection, in one transaction, and caches what it reads by `known`.

    Attributes:
        is_read_only: writing is refused.
        place: the address of the server that holds the store; "" for a store in a file.
    """

    place = ""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self.path = path
        # All users in this process share the pool of a file. A file that was replaced or whose permissions changed gets
        # a new pool; so does a forked child. Two threads that create a pool at once may each get their own, which costs
        # one connection and nothing else.
        key = (os.getpid(), path.absolute(), identity(path), can_be_written(path), timeout_s)
        self._pool: _Pool | _PrivatePool | None = _pools.get(key) or _pools.setdefault(key, _Pool(path, timeout_s))
        self.is_read_only = self._pool.is_read_only
        self._snapshots: dict[int, sqlite3.Connection] = {}
        self._known: dict[int, dict[object, Any]] = {}

    def reading(self, namespace: str | None = None) -> AbstractContextManager[Database]:  # noqa: ARG002
        """Provide a connection inside a read transaction: all statements see one state, inside `snapshot` that one's.

        Args:
            namespace: the one whose rows and texts are read; `EVERY` for all. A server shows no other rows; for None
                only rows of no namespace, or those of an enclosing block.
        """
        return self._reading(is_whole=True)

    @contextmanager
    def _reading(self, *, is_whole: bool) -> Iterator[Database]:
        with driver_errors(self.path):
            pool, snapshot = self._open_pool(), self._snapshots.get(threading.get_ident())
            if snapshot is not None:
                if isinstance(pool, _Pool) and not snapshot.in_transaction:
                    raise StoreError(f"the snapshot of {self.path} is gone", remedy="read again, in a new snapshot")
                yield snapshot
                return
            db = pool.take_reader(is_whole=is_whole)
            try:
                yield db
            finally:
                pool.give_back(db)

    def rows(self, sql: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the rows of one statement; its value `namespace` names the one that it reads, None all of them."""
        # A single statement sees one state and needs no transaction.
        with self._reading(is_whole=False) as db:
            return db.execute(sql, values or {}).fetchall()

    def cached(self, key: object, read: Callable[[], T]) -> T:
        """Return the result of `read`; inside a snapshot, call it once per key and cache the result."""
        cache = self._known.get(threading.get_ident())
        if cache is None:
            return read()
        if key not in cache:
            cache[key] = read()
        value: T = cache[key]
        return value

    def ahead(self, reads: Sequence[Read], namespace: str) -> None:
        """Send reads of a namespace in this snapshot ahead, which saves round trips to a server; a file ignores it."""

    @contextmanager
    def snapshot(
        self,
        first: Callable[[Database], dict[object, Any]] = settings,
        namespace: str | None = None,  # noqa: ARG002
    ) -> Iterator[None]:
        """Let every `reading` of this thread inside the block see one state; refuse `writing`.

        Args:
            namespace: the one that is read most.
            first: returns the first entries of the cache of `known`; its first read fixes the state of the snapshot.
        """
        thread = threading.get_ident()
        if thread in self._snapshots:
            yield
            return
        pool = self._open_pool()
        with driver_errors(self.path):
            db = pool.take_reader(is_whole=True)
            try:
                cache = first(db)
            except BaseException:
                pool.give_back(db)
                raise
        self._snapshots[thread], self._known[thread] = db, cache
        try:
            yield
        finally:
            del self._known[thread]
            pool.give_back(self._snapshots.pop(thread))

    @contextmanager
    def writing(
        self,
        namespace: str | None = None,  # noqa: ARG002 - a file has one writer for all namespaces
        ahead: Sequence[Read] = (),  # noqa: ARG002 - a file needs no round trips
    ) -> Iterator[Database]:
        """Provide the writing connection inside a transaction: commit it at the end, roll it back on error.

        Args:
            namespace: the one to write to, with its texts; None for several, or for rows of the whole store.
            ahead: the first reads of the transaction; a server gets all of them in one round trip.

        Raises:
            StoreError: the file was deleted or replaced since it was opened: what is written would be lost.
        """
        refuse_write(in_snapshot=threading.get_ident() in self._snapshots, in_change=False)
        with self._open_pool().writing() as db:
            yield db

    def writing_also(self, db: Database, namespace: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Let the transaction also write to this namespace inside the block."""
        return nullcontext()

    def files(self) -> list[Path]:
        """Return the files that hold the data."""
        database = self.path.absolute()
        candidates = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
        return [path for path in candidates if path.exists()]

    def copy_to(self, target: Path) -> None:
        """Write a complete copy to a new file."""
        with self.reading() as db:
            assert isinstance(db, sqlite3.Connection)
            copy(db, target)

    def private_copy(self) -> PrivateConnections:
        """Return a private copy of the database; a large one spills into a nameless temporary file."""
        db = _private("")
        try:
            with self.reading() as source:
                assert isinstance(source, sqlite3.Connection)
                source.backup(db)
            return PrivateConnections(db, self.path)
        except BaseException:
            db.close()
            raise

    def compact(self, *, thorough: bool) -> bool:
        """Move the log into the database and truncate it; with `thorough`, rewrite the whole database first.

        Returns:
            False if another connection still reads an older state, so that the log cannot be truncated now.
        """
        with self.writing():
            pass  # refuses a closed, read-only or newer store, and opens the writing connection
        return self._open_pool().compact(thorough=thorough)

    def lock(self, path: Path) -> Lock:
        """Return a lock shared by all users of the store: the file at `path`, or on a server a lease with its name."""
        return FileLock(path)

    def close(self) -> None:
        """Stop using the file; connections close once they are given back, unless others use the pool."""
        self._pool = None

    def _open_pool(self) -> _Pool | _PrivatePool:
        pool = self._pool
        if pool is None:
            raise StoreError(f"the store {self.path} is closed", remedy="open it again")
        refuse_forked(pool.process, self.path)
        return pool


class _Pool:
    """Reading connections, each used by one thread at a time, and one writing connection; closed with its last user.

    A read-only database is not pooled. SQLite forbids using or closing a connection across a fork: a child has to open
    the store again, which gives it its own pool.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        self.path = path
        self.timeout_s = timeout_s
        self.is_read_only = not can_be_written(path)
        self.process = os.getpid()
        self.file = identity(path)
        self._lock = FileLock(lock_path(path))
        self.guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._writing_thread: int | None = None

    def __del__(self) -> None:
        with suppress(AttributeError):  # the constructor failed
            # Another thread may still get this pool and use it: it must not contain the connections closed here.
            connections, self._idle = [*self._idle, *([] if self._writer is None else [self._writer])], []
            self._writer = None
            if self.process != os.getpid():
                _left_to_parent.extend(connections)
                return
            for db in connections:
                db.close()
            if not any(pool.file == self.file and pool is not self for pool in list(_pools.values())):
                for descriptor in _descriptors.pop(self.file, {}).values():
                    os.close(descriptor)

    def take_reader(self, *, is_whole: bool) -> sqlite3.Connection:
        """Return a reading connection; the caller gives it back.

        Args:
            is_whole: begin a transaction, so that several statements see one state.
        """
        with self.guard:
            db = self._idle.pop() if self._idle else None
        if db is None:
            db = connect_reader(self.path, self.timeout_s)
            db.execute("PRAGMA query_only = ON")
            db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        if is_whole:
            db.execute("BEGIN")
        return db

    def give_back(self, db: sqlite3.Connection) -> None:
        """Return a connection to the pool, after a rollback if it is in a transaction."""
        if self.process != os.getpid():
            _left_to_parent.append(db)
            return
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            db.close()
            return
        with self.guard:
            is_reused = not isinstance(db, ReadOnlyConnection) and len(self._idle) < _IDLE_READERS
            if is_reused:
                self._idle.append(db)
        if not is_reused:
            db.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        refuse_write(in_snapshot=False, in_change=self._writing_thread == threading.get_ident())
        if self.is_read_only:
            raise StoreError(
                f"the store {self.path} is read-only",
                remedy="make the file and its directory writable, or copy the store to a place that is",
            )
        self._refuse_replaced()  # before locking, which would create the lock file again
        with self._lock.hold(self.timeout_s), driver_errors(self.path):
            db = self._take_writer()
            try:
                db.execute("BEGIN IMMEDIATE")
                refuse_other_version(db, self.path)
                self._writing_thread = threading.get_ident()
                yield db
                db.execute("COMMIT")
            except BaseException:
                try:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                except sqlite3.Error:
                    self._drop_writer()
                raise
            finally:
                self._writing_thread = None

    def compact(self, *, thorough: bool) -> bool:
        with self._lock.hold(self.timeout_s), driver_errors(self.path):
            db = self._take_writer()
            try:
                if thorough:
                    db.execute("VACUUM")
                db.execute(f"PRAGMA busy_timeout = {_COMPACT_WAIT_MS}")
                (is_busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not is_busy
            finally:
                db.execute(f"PRAGMA busy_timeout = {round(self.timeout_s * 1000)}")

    def _take_writer(self) -> sqlite3.Connection:
        try:
            if self._writer is None:
                self._writer = connect(self.path, self.timeout_s)
                prepare_writer(self._writer)
            self._refuse_replaced()
        except BaseException:
            self._drop_writer()
            raise
        return self._writer

    def _refuse_replaced(self) -> None:
        if identity(self.path) != self.file:
            raise StoreError(
                f"the store at {self.path} was deleted or replaced while it was open", remedy="open it again"
            )

    def _drop_writer(self) -> None:
        db, self._writer = self._writer, None
        if db is not None:
            db.close()


_pools: weakref.WeakValueDictionary[tuple[object, ...], _Pool] = weakref.WeakValueDictionary()


_descriptors: dict[tuple[int, int] | None, dict[tuple[int, int], int]] = {}
"""Open descriptors by the identity of a pool's database, then of the file: the database or the index of its log."""


def file_blocks(path: Path, size: int) -> Iterator[bytes]:
    """Yield the content of a file in blocks; safe for a database that this process has open.

    POSIX drops all locks of a process on a file when it closes any descriptor of the file. Without SQLite's locks,
    another process takes the database for closed and removes the log to which this one still writes. Descriptors of
    open databases therefore stay open until the last pool of the database is closed.

    Raises:
        OSError: the file cannot be read.
    """
    status = path.stat()
    file = status.st_dev, status.st_ino
    pool_files = ((pool, identity(pool.path.with_name(f"{pool.path.name}-shm"))) for pool in list(_pools.values()))
    pool = next((pool for pool, log_index in pool_files if file in (pool.file, log_index)), None)
    if pool is None:
        with path.open("rb", buffering=0) as stream:
            while block := stream.read(size):
                yield block
        return
    with pool.guard:
        descriptors = _descriptors.setdefault(pool.file, {})
        if file not in descriptors:
            descriptors[file] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    offset = 0
    while block := os.pread(descriptors[file], size, offset):
        yield block
        offset += len(block)


class PrivateConnections(Connections):
    """The only connection to a database that no other process sees; the database is deleted when it closes."""

    def __init__(self, db: sqlite3.Connection, path: Path, *, keeps_before: bool = False) -> None:
        """Take over a connection.

        Args:
            path: names the database in messages; no file there is locked.
            keeps_before: reads during a transaction of `writing` see the state before it, as in a file, which costs a
                copy per transaction; otherwise they see what was written so far.
        """
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = OFF")
        self.path = path
        self.is_read_only = False
        self._pool = _PrivatePool(db, path, keeps_before=keeps_before)
        self._snapshots = {}
        self._known = {}

    @classmethod
    def empty(cls, path: Path, *, is_spilling: bool = True) -> PrivateConnections:
        """Return an empty store, in memory or, if `is_spilling`, in a nameless temporary file once it is large."""
        db = _private("" if is_spilling else ":memory:")
        try:
            if not is_spilling:
                db.execute("PRAGMA temp_store = MEMORY")
            begin_store(db, str(uuid4()))
            return cls(db, path, keeps_before=not is_spilling)
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if isinstance(pool, _PrivatePool):
            pool.close()


class _PrivatePool:
    """One connection, which threads take turns to read and write through."""

    def __init__(self, db: sqlite3.Connection, path: Path, *, keeps_before: bool) -> None:
        self.process = os.getpid()
        self._db = db
        self._path = path
        self._keeps_before = keeps_before
        self._before: sqlite3.Connection | None = None
        self._mutex = threading.RLock()
        self._is_writing = False

    def take_reader(self, *, is_whole: bool) -> sqlite3.Connection:  # noqa: ARG002 - nobody else writes meanwhile
        self._mutex.acquire()
        return self._before or self._db

    def give_back(self, db: sqlite3.Connection) -> None:  # noqa: ARG002 - there is one
        self._mutex.release()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, driver_errors(self._path):
            refuse_write(in_snapshot=False, in_change=self._is_writing)
            if self._keeps_before:
                self._before = _private(":memory:")
                self._db.backup(self._before)
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
                if self._before:
                    self._before.close()
                    self._before = None

    def compact(self, *, thorough: bool) -> bool:  # noqa: ARG002 - it is never worth it
        return True

    def close(self) -> None:
        with self._mutex:
            self._db.close()


def _private(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, isolation_level=None, check_same_thread=False)
