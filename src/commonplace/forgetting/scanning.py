"""Look through every file below a directory. It knows bytes and needles, not what a file is for."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from commonplace.forgetting.needles import Needles
from commonplace.store.connections import file_blocks

_BLOCK = 1 << 23


@dataclass(slots=True)
class Scan:
    """What was looked through and what was found. Names are relative to the directory, with `/`.

    Attributes:
        sizes: bytes that were read, by file.
        hits: the needles that a file holds; files without any are absent.
        unread: (file, why) of files that nobody can tell anything about.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    hits: dict[str, set[bytes]] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)

    def all_hits(self) -> set[bytes]:
        """Return the needles that any file holds."""
        return set().union(*self.hits.values())


def files_below(directory: Path) -> list[str]:
    """Return the names of all regular files below a directory, sorted; links are not followed."""
    found = []
    for place, folders, names in os.walk(directory):
        folders.sort()
        for name in names:
            path = Path(place) / name
            try:
                is_regular = stat.S_ISREG(path.lstat().st_mode)
            except OSError:
                continue
            if is_regular:
                found.append(path.relative_to(directory).as_posix())
    return sorted(found)


def scan(
    directory: Path,
    names: Iterable[str],
    needles: Needles,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Scan:
    """Look for needles in files; one that vanishes meanwhile holds nothing any more.

    Args:
        progress: called with how many files were looked through, and of how many.
    """
    result, listed = Scan(), list(names)
    for done, name in enumerate(listed):
        progress(done, len(listed))
        size, hits = 0, set[bytes]()
        try:
            for block, fresh in _blocks(directory / name, max(0, needles.longest - 1)):
                size += fresh
                hits |= needles.found(block)
        except FileNotFoundError:
            continue
        except OSError as error:
            result.unread.append((name, f"it cannot be read ({error.strerror})"))
            continue
        result.sizes[name] = size
        if hits:
            result.hits[name] = hits
    progress(len(listed), len(listed))
    return result


def _blocks(path: Path, overlap: int) -> Iterator[tuple[bytes, int]]:
    """Yield (block, how much of it is new): each begins with the end of the last, so that no needle is cut in two."""
    kept = b""
    for block in file_blocks(path, _BLOCK):
        yield kept + block, len(block)
        kept = (kept + block)[-overlap:] if overlap else b""
