"""Tell whether the files of a selection are still those of the last time, without opening one; it keeps no list.

A look is what an indexing would choose, as a digest of paths, sizes and times: whatever changes it (an edit, a rename,
an ignore rule) is a reason to index again, and nothing else is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from commonplace.ingest.discovery import Selection, discover
from commonplace.text.digests import blake2b

_DIGEST_BYTES: Final = 8
_DIGEST_BITS: Final = (1 << 8 * _DIGEST_BYTES) - 1


@dataclass(frozen=True, slots=True)
class Look:
    """What was chosen at one time; equal looks are the same files.

    Attributes:
        files: how many.
        digest: of their paths, sizes and times.
        devices: the file systems that hold them.
        root: device and inode of the root.
        seconds: how long it took; it is not compared.
    """

    files: int
    digest: int
    devices: frozenset[int]
    root: tuple[int, int]
    seconds: float = field(default=0.0, compare=False)


def look(selection: Selection, clock: Callable[[], float] = time.perf_counter) -> Look:
    """Look at the files of a selection.

    Raises:
        NotFoundError: there is nothing at its root.
        UsageError: a glob is not valid, or the root is never indexed.
    """
    begun = clock()
    found = discover(selection)
    digest, directories = 0, set()
    for file in found.files:
        # A sum, so that no list has to be kept; each term is of the whole of one file. Python's own hash of a tuple
        # will not do: it is so nearly linear that two files may change places without changing the sum.
        whole = f"{file.size} {file.mtime_ns} {file.path}".encode("utf-8", "surrogateescape")
        term = blake2b(whole, digest_size=_DIGEST_BYTES).digest()
        digest = (digest + int.from_bytes(term, "big")) & _DIGEST_BITS
        directories.add(os.path.dirname(file.location))  # noqa: PTH120 - the walk speaks in strings
    devices = frozenset(status.st_dev for each in directories if (status := _status(each)))
    root = _status(str(selection.root))
    return Look(len(found.files), digest, devices, (root.st_dev, root.st_ino) if root else (0, 0), clock() - begun)


def _status(place: str) -> os.stat_result | None:
    try:
        return os.stat(place)  # noqa: PTH116 - the walk speaks in strings
    except OSError:
        return None
