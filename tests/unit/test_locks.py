"""The file lock keeps one holder at a time, across objects, threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from commonplace.errors import StoreBusyError, StoreError
from commonplace.locks import FileLock

HOLDER = """
import sys
from pathlib import Path
from commonplace.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
assert lock.acquire(10)
print("held", flush=True)
sys.stdin.readline()
"""


def hold_in_another_process(path: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def end(holder: subprocess.Popen[str], *, kill: bool = False) -> None:
    if kill:
        holder.kill()
    holder.communicate()


def test_two_objects_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """Two engines in one process are two writers; a per-process lock would let both in."""
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire(0)
    assert not second.acquire(0)
    first.release()
    assert second.acquire(0)
    second.release()


def test_one_object_excludes_a_second_thread(tmp_path: Path) -> None:
    """Threads share the object; the lock must hold between them too."""
    lock = FileLock(tmp_path / "lock")
    answers: list[bool] = []
    with lock.hold(0):
        thread = threading.Thread(target=lambda: answers.append(lock.acquire(0)))
        thread.start()
        thread.join()
    assert answers == [False]
    assert lock.acquire(0)
    lock.release()


def test_another_process_excludes_us_until_it_ends(tmp_path: Path) -> None:
    """This is what the lock is for."""
    holder = hold_in_another_process(tmp_path / "lock")
    lock = FileLock(tmp_path / "lock")
    assert not lock.acquire(0.02)
    end(holder)
    assert lock.acquire(0)
    lock.release()


def test_a_killed_holder_leaves_no_lock_behind(tmp_path: Path) -> None:
    """Nobody should ever have to delete a stale lock file by hand."""
    holder = hold_in_another_process(tmp_path / "lock")
    end(holder, kill=True)
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire(0)
    lock.release()


def test_hold_names_the_file_and_the_limit_when_it_gives_up(tmp_path: Path) -> None:
    """A busy store is an error that the user must be able to act on."""
    path = tmp_path / "lock"
    other = FileLock(path)
    with other.hold(0), pytest.raises(StoreBusyError) as caught, FileLock(path).hold(0):
        pass
    assert str(caught.value) == f"{path} was held by another process for longer than 0 s; try again"


def test_waiting_ends_when_the_holder_lets_go(tmp_path: Path) -> None:
    """A waiter must get the lock within its time, not only at its end."""
    path = tmp_path / "lock"
    first, second = FileLock(path), FileLock(path)
    assert first.acquire(0)
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(second.acquire(30)))
    thread.start()
    first.release()
    thread.join()
    assert answers == [True]
    second.release()


def test_hold_releases_after_an_exception(tmp_path: Path) -> None:
    """A failed write must not lock everyone out."""
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(KeyError), lock.hold(0):
        raise KeyError
    assert lock.acquire(0)
    lock.release()


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    """Cleanup code runs in any order."""
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire(0)
    lock.release()
    lock.release()
    assert lock.acquire(0)
    lock.release()


def test_a_missing_directory_is_a_store_error_with_a_remedy(tmp_path: Path) -> None:
    """Driver and system errors stop at this border."""
    with pytest.raises(StoreError, match=r"cannot open the lock file .*; make its directory exist"):
        FileLock(tmp_path / "nowhere" / "lock").acquire(0)


def test_a_forked_child_neither_takes_nor_releases_the_parents_lock(tmp_path: Path) -> None:
    """A child that released it would let a second writer in under the first."""
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire(0)
    child = os.fork()
    if child == 0:
        lock.release()
        with pytest.raises(StoreError, match="was opened before this process forked; open it again"):
            lock.acquire(0)
        os._exit(1 if FileLock(tmp_path / "lock").acquire(0) else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert not FileLock(tmp_path / "lock").acquire(0)
    lock.release()
    assert FileLock(tmp_path / "lock").acquire(0)
