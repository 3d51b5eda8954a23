"""Put a directory in the place of another one, in one step. It knows directories, no store."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_HERE = -100
"""AT_FDCWD of Linux."""
_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2) on Linux, and RENAME_SWAP of renamex_np(2) on macOS."""
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def put_in_place(new: Path, directory: Path, aside: Path) -> Path:
    """Move `new` to where `directory` is and that one to `aside`; return where it is. All three stand side by side.

    Where the system can exchange two directories, a crash at any moment leaves one of them whole at `directory`. Where
    it cannot, a crash between two renames leaves none there, and both whole beside it.

    Raises:
        OSError: nothing was moved.
    """
    if _exchange(new, directory):
        try:
            return new.rename(aside)
        except OSError:
            return new
    directory.rename(aside)
    try:
        new.rename(directory)
    except OSError:
        aside.rename(directory)
        raise
    return aside


def _exchange(one: Path, other: Path) -> bool:
    """Let two directories change places; return False where the system or the file system cannot do that."""
    system = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        call, values = getattr(system, "renamex_np", None), (first, second, _EXCHANGE)
    else:
        call, values = getattr(system, "renameat2", None), (_HERE, first, _HERE, second, _EXCHANGE)
    if call is None:
        return False
    if call(*values) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
