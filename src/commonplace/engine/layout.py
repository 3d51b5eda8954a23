"""What lies where in a store's directory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from commonplace.errors import UsageError

DATABASE = "store.db"
INDEX = "index"
LOGS = "logs"
UPGRADE_LOCK = "upgrade.lock"
EMBEDDING_LOCK = "embedding.lock"
WATCH_LOCK = "watch.lock"
INDEXING_LOCK = "indexing.lock"
_SQLITE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})


def sqlite_directory(path: str) -> Path:
    """Return the directory of the store that a `sqlitePath` names.

    A store is a directory. `memory.db`, as a single database is called, names the store `memory` beside it, unless it
    is a directory itself; `store.db` names the store that it lies in.

    Raises:
        UsageError: the path is a file and no store.
    """
    given = Path(path)
    with suppress(RuntimeError):  # the home of a user that there is not is a directory like any other
        given = given.expanduser()
    given = given.absolute()
    if given.name == DATABASE:
        return given.parent
    if given.is_file():
        raise UsageError(
            f"sqlitePath is {path!r}, which is a file and no store", remedy=f"name a directory, or {DATABASE} in one"
        )
    if given.suffix.lower() in _SQLITE_SUFFIXES and given.stem and not given.is_dir():
        return given.with_suffix("")
    return given


def index_watch_lock(root: Path, namespace: str) -> str:
    """Return the name of the lock that whoever watches a directory for a namespace holds."""
    from hashlib import sha256

    whose = f"{root}\n{namespace}".encode(errors="surrogateescape")
    return f"watch-{sha256(whose).hexdigest()[:16]}.lock"
