"""Locks between processes.

The lock is flock(2) on a file that is created when needed and never removed (removing it would let two processes
hold two different files of the same name). The kernel drops it when its holder dies, however it dies.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from commonplace.errors import StoreBusyError, StoreError

_FIRST_WAIT_S = 0.0005
_MAX_WAIT_S = 0.001


def refuse_forked(process: int, path: Path) -> None:
    """Refuse to use what the parent of this process opened: a forked child inherits its locks and connections.

    Raises:
        StoreError: this process is not `process`, which opened `path`.
    """
    if process != os.getpid():
        raise StoreError(f"{path} was opened before this process forked", remedy="open it again")


class Lock(ABC):
    """A lock with one holder at a time; `place` names it in messages."""

    place: str

    @abstractmethod
    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting at most `timeout_s` seconds; 0 tries once. Return whether it was taken."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock; harmless if it is not held."""

    def is_held(self) -> bool:
        """Return whether another holder has the lock."""
        is_free = self.acquire(0.0)
        self.release()
        return not is_free

    @contextmanager
    def hold(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock for the length of a `with` block.

        Raises:
            StoreBusyError: another holder kept it for longer than `timeout_s` seconds.
            StoreError: it cannot be taken at all.
        """
        if not self.acquire(timeout_s):
            raise StoreBusyError(
                f"{self.place} was held by another process for longer than {timeout_s:g} s", remedy="try again"
            )
        try:
            yield
        finally:
            self.release()


class FileLock(Lock):
    """Exclude other processes, other threads and other `FileLock` objects on the same path. Not re-entrant.

    A forked child cannot take it, and releasing it there leaves it to the parent.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.place = str(path)
        self._threads = threading.Lock()
        self._descriptor: int | None = None
        self._process = os.getpid()

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting at most `timeout_s` seconds; 0 tries once. Return whether it was taken.

        Raises:
            StoreError: the lock file cannot be opened, or this process was forked meanwhile.
        """
        refuse_forked(self._process, self._path)
        deadline, wait_s = time.monotonic() + timeout_s, _FIRST_WAIT_S
        if not self._threads.acquire(timeout=max(0.0, timeout_s)):
            return False
        with ExitStack() as failing:
            failing.callback(self._threads.release)
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                message, remedy = f"the lock file {self._path} is a link", "delete it"
                if error.errno != errno.ELOOP:
                    message = f"cannot open the lock file {self._path}: {error.strerror}"
                    remedy = "make its directory exist and be writable, or name another store"
                raise StoreError(message, remedy=remedy) from error
            failing.callback(os.close, descriptor)
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                time.sleep(min(wait_s, left_s))
                wait_s = min(2 * wait_s, _MAX_WAIT_S)
            failing.pop_all()
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Release the lock; harmless if it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # Unlock before closing: a child forked meanwhile shares the open file, and must not unlock it itself.
        if self._process == os.getpid():
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
        self._threads.release()
