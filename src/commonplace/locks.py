"""Locks between processes, and locks that survive a fork.

The lock is flock(2) on a file that is created when needed and never removed (removing it would let two processes
hold two different files of the same name). The kernel drops it when its holder dies, however it dies.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from commonplace.errors import StoreBusyError, StoreError

_FIRST_WAIT_S = 0.0005
_MAX_WAIT_S = 0.001

_to_renew: weakref.WeakSet[Renewable] = weakref.WeakSet()
_hook = threading.Lock()
_hooked = False


class Renewable(Protocol):
    """What must not go on in a forked child as it stood in the parent."""

    def renew(self) -> None:
        """Make new locks and drop what only the parent may use; called in the child, which has one thread."""
        ...


def renew_in_children(thing: Renewable) -> None:
    """Have `thing.renew` called in every process forked from now on, for as long as it lives.

    A lock that another thread holds at the moment of a fork is copied held, and in the child nobody ever releases it.
    """
    global _hooked  # noqa: PLW0603 - a fork handler can be registered only once and never removed
    with _hook:
        if not _hooked:
            os.register_at_fork(before=_hook.acquire, after_in_parent=_hook.release, after_in_child=_renew_all)
            _hooked = True
        _to_renew.add(thing)


def _renew_all() -> None:
    _hook.release()
    for thing in list(_to_renew):
        thing.renew()


class FileLock:
    """Exclude other processes, other threads and other `FileLock` objects on the same path. Not re-entrant.

    A forked child does not inherit the lock: in it the object starts unheld.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._descriptor: int | None = None
        renew_in_children(self)

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting at most `timeout_s` seconds; 0 tries once. Return whether it was taken.

        Raises:
            StoreError: the lock file cannot be opened.
        """
        deadline = time.monotonic() + timeout_s
        if not self._threads.acquire(timeout=max(0.0, timeout_s)):
            return False
        try:
            self._descriptor = self._take(deadline)
        finally:
            if self._descriptor is None:
                self._threads.release()
        return self._descriptor is not None

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # Unlock before closing: a child forked meanwhile may still have the same open file for an instant.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
        self._threads.release()

    @contextmanager
    def hold(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock for the length of a `with` block.

        Raises:
            StoreBusyError: another holder kept it for longer than `timeout_s` seconds.
            StoreError: the lock file cannot be opened.
        """
        if not self.acquire(timeout_s):
            raise StoreBusyError(
                f"{self._path} was held by another process for longer than {timeout_s:g} s", remedy="try again"
            )
        try:
            yield
        finally:
            self.release()

    def _take(self, deadline: float) -> int | None:
        descriptor = self._open()
        wait_s = _FIRST_WAIT_S
        try:
            while not _try_lock(descriptor):
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    os.close(descriptor)
                    return None
                time.sleep(min(wait_s, left_s))
                wait_s = min(2 * wait_s, _MAX_WAIT_S)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise StoreError(f"the lock file {self._path} is a link", remedy="delete it") from error
            raise StoreError(
                f"cannot open the lock file {self._path}: {error.strerror}",
                remedy="make its directory exist and be writable, or name another store",
            ) from error

    def renew(self) -> None:
        """Drop what a fork copied, without unlocking: the open file, and so the lock, is shared with the parent."""
        self._threads = threading.Lock()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
