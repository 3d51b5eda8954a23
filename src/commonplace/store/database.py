"""Create, open and copy SQLite database files."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shlex import quote
from uuid import uuid4

from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from commonplace.files import sync
from commonplace.locks import FileLock
from commonplace.store.dialect import APPLICATION_ID, initial_sql
from commonplace.store.schema import VERSION

_WAL_LIMIT_BYTES = 32 * 2**20
CACHE_KIB = 256  # the system caches files: SQLite's default of 2 MB a connection saves little more
_RECOVERY = (
    "restore a backup with `commonplace restore FILE --replace --store {0}`, or move it away and run "
    "`commonplace init --anew --store {0}`"
)
_NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)


def lock_path(database: Path) -> Path:
    """Return the file that a writer of the database locks."""
    return database.with_name(database.name + ".lock")


class ReadOnlyConnection(sqlite3.Connection):
    """A connection to a database that cannot be written now, for one read only: somebody may write it at any time."""


def connect(
    path: Path, timeout_s: float, mode: str = "rw", factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself and that any thread may close."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(
        uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False, factory=factory
    )


def can_be_written(path: Path) -> bool:
    """Return whether the database can be written: SQLite needs the file and, for its log, the directory."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at a path, following links; None if there is none."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(
            f"cannot read {path}: {error.strerror}", remedy="make its directory readable, or name another store"
        ) from error
    return status.st_dev, status.st_ino


def connect_reader(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Open a connection for reads: a `ReadOnlyConnection` where rights or a full disk allow no other."""
    if can_be_written(path):
        db = connect(path, timeout_s)
        try:
            db.execute("PRAGMA schema_version")  # SQLite begins its log at the first read
        except sqlite3.Error as error:
            db.close()
            if _primary_code(error) not in (*_NOT_WRITABLE, sqlite3.SQLITE_FULL):
                raise
        else:
            return db
    return _connect_read_only(path, timeout_s)


def _connect_read_only(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Open a connection to a database that cannot be written.

    If the shared-memory file of the log cannot be created either, the database is opened as immutable.
    """
    db = connect(path, timeout_s, "ro", ReadOnlyConnection)
    try:
        # SQLite reports an unreadable database at the first read, not when it opens the file.
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        db.close()
        if _primary_code(error) not in _NOT_WRITABLE:
            raise
    else:
        return db
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"the store {path} has a log ({log.name}) that can only be read with write access to its directory",
            remedy="open the store once as a user who may write there, or copy both files to a place you may write",
        )
    return connect(path, timeout_s, "ro&immutable=1", ReadOnlyConnection)


def prepare_writer(db: sqlite3.Connection) -> None:
    """Set the pragmas that make commits of this connection durable and consistent, and its log and cache small."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    # Deleted content is overwritten at once: erasure must not depend on later writes.
    db.execute("PRAGMA secure_delete = ON")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Convert errors of the driver into store errors with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        primary, recovery = _primary_code(error), _RECOVERY.format(quote(str(path.parent)))
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreBusyError(f"the store {path} stayed locked by another program", remedy="try again") from error
        if primary == sqlite3.SQLITE_NOTADB:
            raise StoreDamagedError(f"{path} is not a Commonplace store", remedy=recovery) from error
        if primary == sqlite3.SQLITE_TOOBIG:
            raise StoreError(f"a value is too large for the store {path}: {error}", remedy="split it") from error
        if primary == sqlite3.SQLITE_FULL:
            reason = os.strerror(errno.ENOSPC)
            raise StoreError(f"the disk of {path} is full ({reason})", remedy="free some space") from error
        if primary in _NOT_WRITABLE:
            # A quota or a limit on file size is reported as an I/O error, not as a full disk.
            room = "see that there is room on the disk, and " if primary == sqlite3.SQLITE_IOERR else ""
            raise StoreError(
                f"the store {path} cannot be read or written: {error}",
                remedy=f"{room}make the file and its directory readable and writable, or name another store",
            ) from error
        raise StoreDamagedError(f"the store {path} is damaged: {error}", remedy=recovery) from error


def _primary_code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def refuse_other_version(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database with another schema version than this Commonplace has."""
    version = int(db.execute("SELECT max(version) FROM schema_versions").fetchone()[0])
    if version > VERSION:
        raise StoreVersionError(
            f"the store {path} has schema version {version}, this Commonplace knows versions up to {VERSION}",
            remedy="upgrade Commonplace",
        )
    if version < VERSION:
        raise StoreVersionError(
            f"the store {path} has schema version {version}, which was never released; this Commonplace reads "
            f"version {VERSION}",
            remedy="export it with the Commonplace that made it, run "
            f"`commonplace init --anew --store {quote(str(path.parent))}`, and import the export",
        )


_CREATION_S = 5.0

_DERIVED = ("index",)
_PAGES = ("MEMORY.md", "memory", "vault")


def left_behind(path: Path) -> list[str]:
    """Return the names of the files left beside a lost database; [] if nothing proves that it existed.

    Pages alone prove nothing: they may have come with somebody's project. Check before and after the call whether the
    database exists: another process may be creating it.
    """
    directory = path.parent
    names = [name for name in _DERIVED if _has_entries(directory / name)]
    log = path.with_name(f"{path.name}-wal")
    names += [log.name] if log.is_file() and log.stat().st_size else []
    is_sure = bool(names) or lock_path(path).is_file()
    names += [name for name in _PAGES if (directory / name).is_file() or _has_entries(directory / name)]
    return names if is_sure else []


def refuse_lost(path: Path) -> None:
    """Refuse a store that has lost its database, instead of treating it as one that was never created."""
    try:
        remains = [] if os.path.lexists(path) else left_behind(path)
        if remains and lock_path(path).is_file():
            with suppress(StoreError), FileLock(lock_path(path)).hold(_CREATION_S):
                pass  # a process that was creating it has finished
        is_lost = bool(remains) and not os.path.lexists(path)
    except OSError:
        return  # opening the store reports what is wrong with the directory
    if is_lost:
        parent = quote(str(path.parent))
        pages = ", which imports its Markdown pages" if {*remains} & {*_PAGES} else ""
        raise StoreDamagedError(
            f"the store {path.parent} has lost its database: {path.name} is gone, {', '.join(remains)} "
            f"{'is' if len(remains) == 1 else 'are'} there",
            remedy=f"restore a backup with `commonplace restore FILE --replace --store {parent}`, or create an empty "
            f"store with `commonplace init --anew --store {parent}`{pages}",
        )


def make(path: Path, timeout_s: float) -> None:
    """Create an empty store at `path`, unless another process creates one first.

    The database gets its name only when it is complete, so that a crash leaves no partial one.
    """
    with _draft(path) as draft:
        path.parent.mkdir(parents=True, exist_ok=True)
        with driver_errors(path), closing(connect(draft, 0, "rwc")) as db:
            prepare_writer(db)
            begin_store(db, str(uuid4()))
        # The lock comes last: beside pages it is the only proof that a lost store existed.
        with FileLock(lock_path(path)).hold(timeout_s):
            if not path.exists():
                # SQLite would replay the log of a removed database into the new one.
                _remove_logs(path)
                _publish(draft, path)


def refuse_unreadable(path: Path, timeout_s: float) -> None:
    """Refuse a file that is not a store of this schema version."""
    with driver_errors(path), closing(connect_reader(path, timeout_s)) as db:
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            remedy = _RECOVERY.format(quote(str(path.parent)))
            raise StoreDamagedError(f"{path} is not a Commonplace store", remedy=remedy)
        refuse_other_version(db, path)


def copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy the state that a connection sees durably to a new file."""
    refuse_existing(target)
    with _draft(target) as draft:
        with driver_errors(target), closing(connect(draft, 0, "rwc")) as db:
            source.backup(db)
        _publish(draft, target)


def refuse_existing(target: Path) -> None:
    """Refuse to overwrite an existing file."""
    if target.exists():
        raise StoreError(f"{target} exists already", remedy="name a file that does not exist yet")


def begin_store(db: sqlite3.Connection, store_id: str) -> None:
    """Turn an empty database into a store with this id, in one transaction; on failure the caller deletes it."""
    db.execute("BEGIN IMMEDIATE")
    for statement in initial_sql():
        db.execute(statement)
    db.execute("INSERT INTO schema_versions (version, name) VALUES (?, 'initial')", (VERSION,))
    db.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
    db.execute("COMMIT")


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Provide a temporary path beside a database; a file that is still there when the block ends is removed.

    Raises:
        StoreError: a file cannot be written.
    """
    draft = path.with_name(f"{path.name}.{uuid4().hex}.new")
    try:
        yield draft
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", remedy="make its directory writable, or name another place"
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
            _remove_logs(draft)


def _publish(draft: Path, path: Path) -> None:
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def _has_entries(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _remove_logs(path: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
