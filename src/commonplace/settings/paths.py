"""Locate settings files, projects and stores. Creates nothing."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path

from commonplace.errors import SettingsError, StoreError, UsageError
from commonplace.lazy_regex import lazy_pattern

STORE_NAME = ".commonplace"
PROJECT_FILE = "commonplace.toml"
STORE_FILE = "settings.json"
VECTORS_FILE = "embeddings.jsonl"

LONG_TERM_PAGE = "MEMORY.md"
PAGE_DRAFT = ".commonplace-draft"
"""Suffix of the name of a file that becomes a page when it is complete."""
PAGES_LOCK = "memory.lock"
"""The file in a store's directory that is locked while pages are written."""

_EXPORT = lazy_pattern(
    rb'\{"version": "[0-9.]+", "namespace": "(?:[^"\\]|\\.)*", "change": \d+, "embedding_config": \{'
    rb'|\{"path": "(?:[^"\\]|\\.)*", "embedding": \['
)
_START_BYTES = 1 << 16
"""Bytes read to recognise an export: more than the longest path takes if each of its characters is an escape."""
_MARKDOWN = lazy_pattern(r"memory|vault|MEMORY.*")
_DAY_PAGE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")


def find_project(start: Path) -> Path | None:
    """Return the nearest directory, from `start` upward, that holds a store or a project file; None if none does."""
    base = start.absolute()
    for directory in (base, *base.parents):
        if (directory / STORE_NAME).is_dir() or (directory / PROJECT_FILE).is_file():
            return directory
    return None


def project_of(store: Path) -> Path | None:
    """Return the project a store belongs to: the directory that holds it as `.commonplace`; None for another name."""
    return store.parent if store.name == STORE_NAME else None


def refuse_links(store: Path) -> None:
    """Refuse a store that holds a link, which may have come with a clone and lead to anybody's files.

    Pages and notes are checked when they are read: a link that a person put there is skipped.

    Raises:
        StoreError: the message names the link.
    """
    pending = [store]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.path == str(store / entry.name) and _MARKDOWN.fullmatch(entry.name):
                    continue
                if entry.is_symlink():
                    raise StoreError(
                        f"{entry.path} is a link, and links in a store are not followed",
                        remedy="name another store with --store; if this one is yours, delete the link",
                    )
                if entry.is_dir():
                    pending.append(Path(entry.path))


def user_settings_file() -> Path:
    """Return the path of the user's own settings file."""
    return _user_directory("XDG_CONFIG_HOME", ".config", "user_config_dir") / "settings.toml"


def user_store() -> Path:
    """Return the path of the store that is used outside any project."""
    return _user_directory("XDG_DATA_HOME", ".local/share", "user_data_dir") / "store"


def _user_directory(variable: str, below_home: str, elsewhere: str) -> Path:
    """Return our directory of one kind: configuration, data or cache.

    On Linux it follows the XDG base directory specification: platformdirs would give the same, but load a megabyte of
    modules into every process. All other cases are left to platformdirs.

    Args:
        elsewhere: the function of platformdirs.
    """
    configured, home = os.environ.get(variable, ""), os.environ.get("HOME", "")
    if sys.platform == "linux" and configured.startswith("/"):
        return Path(configured, "commonplace")
    if sys.platform == "linux" and not configured and home.startswith("/"):
        return Path(home, below_home, "commonplace")
    import platformdirs

    return Path(getattr(platformdirs, elsewhere)("commonplace", appauthor=False))


_SCHEMES = ("postgresql://", "postgres://")


class StoreAddress(str):
    """Where a database server keeps a store. Its text has no password, so that it may be shown anywhere.

    Attributes:
        password: "" if the server needs none, or libpq finds it elsewhere.
    """

    password: str

    def __new__(cls, url: str) -> StoreAddress:
        """Return an address, with its password split off."""
        from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

        try:
            parts = urlsplit(url)
        except ValueError:
            raise UsageError("the address of the store cannot be read", remedy=WRITE_ADDRESS) from None
        user, _, hosts = parts.netloc.rpartition("@")
        name, _, secret = user.partition(":")
        query = dict(parse_qsl(parts.query.replace("+", "%2B")))  # libpq takes a plus sign literally
        secret = query.pop("password", "") or unquote(secret)
        netloc = f"{name}@{hosts}" if name else hosts
        rest = parts._replace(scheme="", netloc="", query=urlencode(query, quote_via=quote)).geturl()
        address = super().__new__(cls, f"{parts.scheme}://{netloc}{rest}")  # `geturl` omits // without a host
        address.password = secret
        return address


WRITE_ADDRESS = "write postgresql://user@host:5432/database"


def address_of(store: object) -> StoreAddress | None:
    """Return the address of the database server of a store, or None if the store is a directory."""
    if isinstance(store, StoreAddress):
        return store
    return StoreAddress(store) if isinstance(store, str) and store.startswith(_SCHEMES) else None


def directory_of(store: str | Path) -> Path:
    """Return the directory of a store; for a store on a server, that of its locks and settings on this machine."""
    address = address_of(store)
    if address is None:
        return Path(store)
    from commonplace.text.hashes import sha256

    cache = _user_directory("XDG_CACHE_HOME", ".cache", "user_cache_dir")
    return cache / "postgres" / sha256(address.encode()).hexdigest()[:16]


DATABASE = "store.db"
INDEX = "index"
LOGS = "logs"
VAULT = "vault"
UPGRADE_LOCK = "upgrade.lock"
EMBEDDING_LOCK = "embedding.lock"
WATCH_LOCK = "watch.lock"
INDEXING_LOCK = "indexing.lock"
_SQLITE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})


def sqlite_directory(path: str) -> Path:
    """Return the directory of the store that a `sqlitePath` names.

    A store is a directory. `memory.db`, a usual name of a single database, names the store `memory` beside it, unless
    it is a directory itself; `store.db` names the store that contains it.

    Raises:
        UsageError: the path is a file and no store.
    """
    target = Path(path)
    with suppress(RuntimeError):  # `~name` of an unknown user stays a plain directory name
        target = target.expanduser()
    target = target.absolute()
    if target.name == DATABASE:
        return target.parent
    if target.is_file():
        raise UsageError(
            f"sqlitePath is {path!r}, which is a file and no store", remedy=f"name a directory, or {DATABASE} in one"
        )
    if target.suffix.lower() in _SQLITE_SUFFIXES and target.stem and not target.is_dir():
        return target.with_suffix("")
    return target


def index_watch_lock(root: Path, namespace: str) -> str:
    """Return the name of the lock that is held while a directory is watched for a namespace."""
    from commonplace.text.hashes import sha256

    digest = f"{root}\n{namespace}".encode(errors="surrogateescape")
    return f"watch-{sha256(digest).hexdigest()[:16]}.lock"


def export_target(project: Path, store: Path, path: str, *, setting: str, origin: str) -> Path:
    """Return the file that a setting names below a project, with all links followed.

    A settings file or a link may come with somebody else's clone: neither may lead out of the project, into a store or
    a repository's own files, or to a file that no export wrote.

    Raises:
        SettingsError: the path leads elsewhere.
    """
    target = (project / path).resolve()
    if reason := _forbidden(target, project.resolve(), store.resolve()):
        raise SettingsError(
            f"{setting} is {path!r} ({origin}), which leads to {target}, {reason}",
            remedy="name a new file below the project, or write elsewhere with --output",
        )
    return target


def _forbidden(target: Path, project: Path, store: Path) -> str:
    if not target.is_relative_to(project):
        return f"outside the project {project}"
    # In lower case, for file systems on which .GIT is .git.
    relative = {part.lower() for part in target.relative_to(project).parts}
    if target.is_relative_to(store) or STORE_NAME in relative:
        return "inside the store"
    if ".git" in relative:
        return "which belongs to git"
    if target.name.lower() == PROJECT_FILE:
        return "which holds settings"
    if os.path.lexists(target) and not _is_export(target):
        return "which exists and is no earlier export"
    return ""


def _is_export(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
    except OSError:
        return False
    return _EXPORT.match(start) is not None or (not start and path.name == VECTORS_FILE)


def page_name(day: date) -> str:
    """Return the file name of a day's page."""
    return f"{day.isoformat()}.md"


def day_of(name: str) -> date | None:
    """Return the day of a daily page; None for any other file name."""
    if not _DAY_PAGE.fullmatch(name):
        return None
    try:
        return date.fromisoformat(name[:10])
    except ValueError:
        return None


def is_page_name(name: str) -> bool:
    """Return whether a file of this name is read as a page; conflict copies, a README and personal notes are not."""
    return name == LONG_TERM_PAGE or day_of(name) is not None
