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
CACHE_KIB = 256  # what is read again is in the system's cache of files: SQLite's own 2 MB a connection save little
_FOREIGN = "restore a backup, or move it away and run `commonplace init --anew --store {}`"
_NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)


def lock_path(database: Path) -> Path:
    """Return the file whose lock a writer of the database holds."""
    return database.with_name(database.name + ".lock")


def connect(path: Path, timeout_s: float, mode: str = "rw") -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself and may be closed by any thread."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def can_be_written(path: Path) -> bool:
    """Return whether a writer could do its work: SQLite needs the database and, for its log, the directory."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what identifies the file at a path, links followed; None where there is none."""
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
    """
    db = connect(path, timeout_s, "ro")
    try:
        # Only the first read of a transaction fails where nothing can be read.
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
    return connect(path, timeout_s, "ro&immutable=1")


def prepare_writer(db: sqlite3.Connection) -> None:
    """Set what makes a commit durable and consistent on this connection, and keep it small."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    # What is deleted is overwritten at once: to forget must not depend on what is written later.
    db.execute("PRAGMA secure_delete = ON")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Turn what the driver raises into the store's errors, with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        primary = _primary_code(error)
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StoreBusyError(f"the store {path} stayed locked by another program", remedy="try again") from error
        if primary == sqlite3.SQLITE_NOTADB:
            remedy = _FOREIGN.format(quote(str(path.parent)))
            raise StoreDamagedError(f"{path} is not a Commonplace store", remedy=remedy) from error
        if primary == sqlite3.SQLITE_TOOBIG:
            raise StoreError(f"a value is too large for the store {path}: {error}", remedy="split it") from error
        if primary == sqlite3.SQLITE_FULL:
            reason = os.strerror(errno.ENOSPC)
            raise StoreError(f"the disk of {path} is full ({reason})", remedy="free some space") from error
        if primary in _NOT_WRITABLE:
            # A quota or a limit on the size of files comes as an error of input and output, not as a full disk.
            room = "see that there is room on the disk, and " if primary == sqlite3.SQLITE_IOERR else ""
            raise StoreError(
                f"the store {path} cannot be read or written: {error}",
                remedy=f"{room}make the file and its directory readable and writable, or name another store",
            ) from error
        raise StoreDamagedError(
            f"the store {path} is damaged: {error}",
            remedy="run `commonplace doctor`; if it cannot repair it, restore a backup",
        ) from error


def _primary_code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def refuse_other_version(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database whose schema is another one than that of this Commonplace."""
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


_MAKING_S = 5.0

_DERIVED = ("index",)
_PAGES = ("MEMORY.md", "memory", "vault")


def left_behind(path: Path) -> list[str]:
    """Return the names of what remains beside a lost database and proves that it existed; [] where it never did.

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
    """Refuse to take a store that has lost its database for one that was never made."""
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
        pages = ", which imports its Markdown pages" if {*left} & {*_PAGES} else ""
        raise StoreDamagedError(
            f"the store {path.parent} has lost its database: {path.name} is gone, {', '.join(left)} "
            f"{'is' if len(left) == 1 else 'are'} there",
            remedy=f"restore a backup with `commonplace restore FILE --replace --store {where}`, or create an empty "
            f"store with `commonplace init --anew --store {where}`{pages}",
        )


def make(path: Path, timeout_s: float) -> None:
    """Make an empty store at `path`, unless another process makes one first.

    The database gets its name only when it is complete, so that a crash leaves none that is half made.
    """
    with _draft(path) as new:
        path.parent.mkdir(parents=True, exist_ok=True)
        with driver_errors(path), closing(connect(new, 0, "rwc")) as db:
            prepare_writer(db)
            begin_store(db, str(uuid4()))
        # The lock comes last: beside pages it is the only proof that a lost store existed.
        with FileLock(lock_path(path)).hold(timeout_s):
            if not path.exists():
                # The log of a database that someone removed would be replayed into the new one.
                _remove_logs(path)
                _publish(new, path)


def refuse_unreadable(path: Path, timeout_s: float) -> None:
    """Refuse a file that is no store of this schema."""
    open_ = connect if can_be_written(path) else connect_read_only
    with driver_errors(path), closing(open_(path, timeout_s)) as db:
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            remedy = _FOREIGN.format(quote(str(path.parent)))
            raise StoreDamagedError(f"{path} is not a Commonplace store", remedy=remedy)
        refuse_other_version(db, path)


def copy(source: sqlite3.Connection, target: Path) -> None:
    """Copy the state that a connection sees to a new file, durably."""
    refuse_existing(target)
    with _draft(target) as new:
        with driver_errors(target), closing(connect(new, 0, "rwc")) as db:
            source.backup(db)
        _publish(new, target)


def refuse_existing(target: Path) -> None:
    """Refuse to write over something."""
    if target.exists():
        raise StoreError(f"{target} exists already", remedy="name a file that does not exist yet")


def begin_store(db: sqlite3.Connection, store_id: str) -> None:
    """Make an empty database a store of that id, in one transaction; whoever made it drops it where that fails."""
    db.execute("BEGIN IMMEDIATE")
    for statement in initial_sql():
        db.execute(statement)
    db.execute("INSERT INTO schema_versions (version, name) VALUES (?, 'initial')", (VERSION,))
    db.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
    db.execute("COMMIT")


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Give a name beside a database under which to write it; what has that name when the block ends is removed.

    Raises:
        StoreError: a file cannot be written.
    """
    new = path.with_name(f"{path.name}.{uuid4().hex}.new")
    try:
        yield new
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", remedy="make its directory writable, or name another place"
        ) from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
            _remove_logs(new)


def _publish(new: Path, path: Path) -> None:
    sync(new)
    new.rename(path)
    sync(path.parent)


def _has_entries(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _remove_logs(path: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
