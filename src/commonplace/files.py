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
        limit: maximum size in bytes.
        follow: whether the path may be a link.

    Raises:
        OSError: it cannot be read, is too large, or is a directory, a pipe or a device; `strerror` says which.
    """
    with open_file(path, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes, the limit", str(path))
    return data


def open_file(path: Path | str, *, follow: bool = True, directory: int | None = None) -> BinaryIO:
    """Open a regular file for reading; the caller closes it.

    Args:
        follow: whether the path may be a link.
        directory: descriptor of the directory that the path is relative to.

    Raises:
        OSError: it cannot be read, or is a directory, a pipe or a device; `strerror` says which.
    """
    # Without O_NONBLOCK, opening a named pipe blocks until somebody writes to it; with it, the pipe is refused below.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags, dir_fd=directory)
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
    """Flush a file, or the names in a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stays_inside(path_or_glob: str) -> bool:
    """Return whether a path or glob is relative on every system and has no `..`; a leading `!` is ignored."""
    path = path_or_glob.lstrip("!")
    windows = PureWindowsPath(path)
    climbs = ".." in PurePosixPath(path).parts or ".." in windows.parts
    return not (climbs or windows.drive or windows.root or path.startswith("~"))
