"""Know which files of a project a memory speaks of, and what they held then: by their paths in its words.

A reference is `path@sha256:<hexadecimal>`, with the path below the project. Files are read, never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from commonplace.text.digests import sha256

MOST_FILES: Final = 10
"""So many files are known of a memory; what names more is a list, and speaks of none of them."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""A larger file is not read."""

_MARK: Final = "@sha256:"
_PATH: Final = re.compile(r"(?<![\w/.:-])@?(?:\./)?(?=[\w.]*[/.])[\w.-]+(?:/[\w.-]+)*\.\w{1,8}(?![\w/])")
"""What may be a path: it has a suffix, and may have directories; a line or a heading after it is left out."""
_MOST_LOOKED_AT: Final = 20_000

State = Literal["same", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that a memory speaks of, as it was then."""

    path: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.path}{_MARK}{self.sha256}"

    def state(self, project: Path) -> State:
        """Return what became of the file since."""
        file = _inside(project, self.path)
        if file is None:
            return "gone"
        return "same" if _digest(file) == self.sha256 else "changed"


def files_named(texts: Iterable[str], project: Path | None) -> tuple[str, ...]:
    """Return references to the files of a project that texts name, in their order; none outside of a project."""
    if project is None:
        return ()
    named = dict.fromkeys(
        found[0].removeprefix("@").removeprefix("./")
        for text in texts
        for found in _PATH.finditer(text[:_MOST_LOOKED_AT])
    )
    if not 0 < len(named) <= MOST_FILES:
        return ()
    files = {path: _inside(project, path) for path in named}
    digests = {path: _digest(file) for path, file in files.items() if file is not None}
    return tuple(str(FileReference(path, digest)) for path, digest in digests.items() if digest)


def references_of(references: Iterable[str]) -> list[FileReference]:
    """Return the files among references."""
    found = []
    for each in references:
        path, mark, digest = each.rpartition(_MARK)
        if mark and path and re.fullmatch(r"[0-9a-f]{64}", digest):
            found.append(FileReference(path, digest))
    return found


def _inside(project: Path, path: str) -> Path | None:
    """Return a file below the project, None where there is none."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        return None
    place = project / path
    try:
        return place if place.is_file() and place.resolve().is_relative_to(project.resolve()) else None
    except OSError:
        return None


def _digest(file: Path) -> str:
    """Return the sum of a file, "" of one that cannot be read, or is too large to be."""
    try:
        return "" if file.stat().st_size > MOST_BYTES else sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
