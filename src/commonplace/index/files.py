"""The files of a generation, open and compared with what was published; it knows sizes, times and checksums only.

A file is trusted by its size and time, else by its checksum. Descriptors stay open so that a file which shrinks later
is noticed before anybody touches its mapped pages, which would end the process. There are two locks, both shared.
Whoever has a generation open holds one on its directory: what is only removed while it is open is on the disk all the
same. Whoever reads in it holds another meanwhile, on `IN_USE`: without it, what is open can be emptied and removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from zlib import crc32

from commonplace.errors import IndexFaultError, StoreError
from commonplace.index.manifest import FileRecord

IN_USE = "lexical/meta.json"
"""The file that is locked while a generation is read; each has one of its own, which is a link to no other's."""
_BLOCK = 1 << 18
_OF_WRONG_KIND = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)


class OpenFiles:
    """Open files of one generation, closed when nobody holds this object any more. Safe for threads.

    Attributes:
        records: the files as they are: what was published, with the present times.
    """

    def __init__(self, directory: Path, files: Mapping[str, FileRecord], *, thorough: bool = False) -> None:
        """Open the files and check that they are those that were published.

        Args:
            files: by path relative to `directory`.
            thorough: compare the checksums whatever the times say.

        Raises:
            IndexFaultError: a file is missing or differs.
            StoreError: a file may be whole and cannot be read.
        """
        self._descriptors: dict[str, int] = {}
        self._held: dict[str, int] = {}
        weakref.finalize(self, _close_all, self._descriptors)
        weakref.finalize(self, _close_all, self._held)
        if files:
            self._hold(directory)
        self._sizes = [known.size for known in files.values()]
        self.records = {name: self._open(directory / name, name, known, thorough) for name, known in files.items()}
        self._turn = threading.Lock()
        self._users = 0

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Check the files, and let nobody empty them for the length of a `with` block, which others may share.

        Raises:
            IndexFaultError: one was damaged, or is being removed.
        """
        with self._turn:
            if not self._users:
                self._lock(fcntl.LOCK_SH | fcntl.LOCK_NB)
            self._users += 1
        try:
            self.check()
            yield
        finally:
            with self._turn:
                self._users -= 1
                if not self._users:
                    self._lock(fcntl.LOCK_UN)

    def _lock(self, operation: int) -> None:
        if IN_USE in self._descriptors:
            try:
                fcntl.flock(self._descriptors[IN_USE], operation)
            except BlockingIOError as error:
                raise IndexFaultError("is being removed") from error
            except OSError:
                pass  # no locks here: nobody empties what he cannot lock

    def check(self) -> None:
        """Check that no file has changed its size since it was opened; a fraction of a microsecond for each.

        Raises:
            IndexFaultError: one has.
        """
        # Seeking tells the size three times as fast as fstat; nothing reads from the position it leaves.
        sizes = [os.lseek(descriptor, 0, os.SEEK_END) for descriptor in self._descriptors.values()]
        if sizes != self._sizes:
            for name, size, known in zip(self._descriptors, sizes, self._sizes, strict=True):
                _compare_sizes(name, size, known)

    def _hold(self, directory: Path) -> None:
        """Tell others that the generation is open. Where that fails, opening its files does too, or there are no locks.

        Where it is being removed this very moment, its files are missing in the next one.
        """
        with suppress(OSError):
            self._held[directory.name] = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._held[directory.name], fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _open(self, path: Path, name: str, known: FileRecord, thorough: bool) -> FileRecord:
        try:
            descriptor = self._descriptors[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            stat = os.fstat(descriptor)
            _compare_sizes(name, stat.st_size, known.size)
            if (thorough or stat.st_mtime_ns != known.mtime_ns) and _checksum(descriptor) != known.crc32:
                raise IndexFaultError(f"was damaged: {name} was altered")
        except FileNotFoundError as error:
            raise IndexFaultError(f"was damaged: {name} is missing") from error
        except OSError as error:
            raise unreadable(error.errno, f"{name} cannot be read ({error.strerror})") from error
        return FileRecord(known.size, stat.st_mtime_ns, known.crc32)


def remove_unless_open(directory: Path) -> bool:
    """Remove the files of a generation unless somebody has them open, in this process or another.

    Returns:
        Whether it is gone.
    """
    # It loads the libraries of two ways to compress.
    import shutil

    if _is_removed_link(directory):
        return True
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return not directory.exists()
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # no locks here: nobody holds one
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(descriptor)
    return not directory.exists()


def empty_and_remove(directory: Path) -> bool:
    """Empty the files of a generation and remove them unless somebody reads in it at this moment.

    Nothing of them is on the disk then, even where a process that rests has them open. A file that is also another
    generation's is left to that one.

    Returns:
        Whether it is gone.
    """
    import shutil

    if _is_removed_link(directory):
        return True
    try:
        descriptor = os.open(directory / IN_USE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return remove_unless_open(directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path in directory.rglob("*"):
            status = path.lstat()
            if S_ISREG(status.st_mode) and status.st_nlink == 1:
                os.truncate(path, 0)
        shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError:
        return False
    except OSError:
        return remove_unless_open(directory)
    finally:
        os.close(descriptor)
    return not directory.exists()


def _is_removed_link(directory: Path) -> bool:
    """Remove a link that stands where a generation may: what it leads to is none of ours."""
    if directory.is_symlink():
        directory.unlink()
        return True
    return False


def unreadable(code: int | None, what: str) -> StoreError:
    """Return what to raise when the system refuses to read: a fault only where it says what stands there is wrong.

    Too many open files, missing rights or a failing disk say nothing of the files: to rebuild would not help.

    Args:
        code: the system's error number.
        what: what happened, a clause.
    """
    if code in _OF_WRONG_KIND:
        return IndexFaultError(f"was damaged: {what}")
    return StoreError(f"the index cannot be used: {what}", remedy="end the cause and try again; nothing is lost")


def record(path: Path) -> FileRecord:
    """Return what identifies the file's present content."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        stat = os.fstat(descriptor)
        return FileRecord(stat.st_size, stat.st_mtime_ns, _checksum(descriptor))
    finally:
        os.close(descriptor)


def _compare_sizes(name: str, size: int, known: int) -> None:
    if size != known:
        side = "short" if size < known else "long"
        raise IndexFaultError(f"was damaged: {name} is {abs(size - known)} bytes too {side}")


def _checksum(descriptor: int) -> int:
    checksum = offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        checksum = crc32(block, checksum)
        offset += len(block)
    return checksum


def _close_all(descriptors: dict[str, int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
