"""Read files safely, without following links out of a directory, and sync them to disk."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO


def read_file(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """Return the bytes of a regular file.

    Args:
        limit: the most bytes that it may have.
        follow: whether the path may be a link.

    Raises:
        OSError: it cannot be read, is a directory, a pipe or a device, or larger; `strerror` says which.
    """
    with open_file(path, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes, the limit", str(path))
    return data


def open_file(path: Path | str, *, follow: bool = True, place: int | None = None) -> BinaryIO:
    """Open a regular file to be read; the caller closes it.

    Args:
        follow: whether the path may be a link.
        place: the descriptor of the directory that the path is relative to.

    Raises:
        OSError: it cannot be read, is a directory, a pipe or a device; `strerror` says which.
    """
    # A named pipe would hold up the open until somebody writes to it; O_NONBLOCK lets it be seen for what it is.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags, dir_fd=place)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stays_inside(path_or_glob: str) -> bool:
    """Return whether it is relative, on every system, and never climbs; a leading `!` of a glob is passed over."""
    written = path_or_glob.lstrip("!")
    windows = PureWindowsPath(written)
    climbs = ".." in PurePosixPath(written).parts or ".." in windows.parts
    return not (climbs or windows.drive or windows.root or written.startswith("~"))
