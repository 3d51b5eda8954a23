"""Write the files that a person or a settings file names: where they may be, and whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

from commonplace.errors import SettingsError, UsageError
from commonplace.settings.locations import PROJECT_FILE, STORE_NAME
from commonplace.store.drafts import clear_drafts, draft

VECTORS_FILE = "embeddings.jsonl"

_EXPORT = re.compile(
    rb'\{"version": "[0-9.]+", "namespace": "(?:[^"\\]|\\.)*", "change": \d+, "embedding_config": \{'
    rb'|\{"path": "(?:[^"\\]|\\.)*", "embedding": \['
)
_START_BYTES = 1 << 16
"""More than the longest path takes when each of its characters is an escape."""


def inside(project: Path, store: Path, written: str, *, setting: str, origin: str) -> Path:
    """Return the file that a setting names below a project, with all links followed.

    A settings file arrives with somebody else's clone, and so may a link: neither leads out of the project, into
    a store or a repository's own files, or to a file that anybody but an export wrote.

    Raises:
        SettingsError: the path leads elsewhere.
    """
    target = (project / written).resolve()
    where = _forbidden(target, project.resolve(), store.resolve())
    if where:
        raise SettingsError(
            f"{setting} is {written!r} ({origin}), which leads to {target}, {where}",
            remedy="name a new file below the project, or write elsewhere with --output",
        )
    return target


def _forbidden(target: Path, project: Path, store: Path) -> str:
    """Return why a settings file may not name a file for exports, or ""."""
    if not target.is_relative_to(project):
        return f"outside the project {project}"
    # In lower case, for a file system that does not tell .GIT from .git.
    below = {part.lower() for part in target.relative_to(project).parts}
    if target.is_relative_to(store) or STORE_NAME in below:
        return "inside the store"
    if ".git" in below:
        return "which belongs to git"
    if target.name.lower() == PROJECT_FILE:
        return "which holds settings"
    if os.path.lexists(target) and not _is_export(target):
        return "which exists and is no earlier export"
    return ""


def _is_export(path: Path) -> bool:
    """Return whether a file begins as `index export` begins its index and its vectors, or is a list of no vectors."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
    except OSError:
        return False
    return _EXPORT.match(start) is not None or (not start and path.name == VECTORS_FILE)


def write_whole(
    path: Path, content: str | bytes, *, store: Path | None = None, remedy: str = "name another --output"
) -> None:
    """Write a file beside its place and move it there, so that nobody ever reads half of it.

    A link is followed, and a file that is there already keeps its rights.

    Args:
        store: whose content it is; None: none of a store's.

    Raises:
        UsageError: it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device or a pipe takes what it is given
            return
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        if store is not None:
            clear_drafts(store)
        with draft(store, target) as base:
            # Not tempfile's own file, which nobody else could read: this one gets the rights that any new file gets.
            fresh = base.with_name(f"{base.name}.new")
            with fresh.open("xb") as file:
                if target.exists():
                    os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy=remedy) from error
