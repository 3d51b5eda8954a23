"""What wakes whoever waits for changes: the system's word about files that matter, and nothing else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.ingest.watch import Alarm, open_native

LONG_S = 60.0
"""A wait that nothing ends; a test that takes so long has failed."""


class Source:
    """Stands for the system: tells what a test puts into it."""

    def __init__(self) -> None:
        self.told: queue.Queue[Any] = queue.Queue()
        self.is_closed = False

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop: threading.Event) -> Any:
        assert (debounce_ms, step_ms, timeout_ms) == (400, 50, 0)
        while not stop.is_set():
            try:
                told = self.told.get(timeout=step_ms / 1000)
            except queue.Empty:
                continue
            if isinstance(told, Exception):
                raise told
            return told
        return "stop"

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def alarm(tmp_path: Path, source: Source) -> Iterator[Alarm]:
    made = Alarm(tmp_path, [tmp_path / "store"], lambda root: source)
    made.arm()
    yield made
    made.close()


def test_a_file_that_changed_ends_a_wait(alarm: Alarm, source: Source, tmp_path: Path) -> None:
    source.told.put({(2, str(tmp_path / "a.md"))})
    alarm.wait(LONG_S)
    assert (alarm.is_told, alarm.is_stopped) == (True, False)


def test_a_change_before_the_wait_ends_it_and_only_that_one(alarm: Alarm, source: Source, tmp_path: Path) -> None:
    heard = []
    alarm._rung.set()
    alarm.wait(LONG_S)
    heard.append(alarm._rung.is_set())
    assert heard == [False]


@pytest.mark.parametrize(
    ("path", "matters"),
    [
        ("a.md", True),
        ("docs/a.md", True),
        (".gitignore", True),
        ("store/store.db-wal", False),
        ("storehouse/a.md", True),
        (".git/index", False),
        ("sub/node_modules/x/a.js", False),
        (".commonplace/store.db", False),
    ],
)
def test_what_is_never_indexed_wakes_nobody(alarm: Alarm, tmp_path: Path, path: str, matters: bool) -> None:
    """The store lies in the directory, and every run writes to it: the next one would follow at once, for ever."""
    alarm._hear([str(tmp_path / path)])
    assert alarm._rung.is_set() is matters


def test_a_root_within_a_directory_that_is_never_entered_is_a_root_all_the_same(tmp_path: Path, source: Source) -> None:
    alarm = Alarm(tmp_path / ".cache" / "notes", (), lambda root: source)
    alarm._hear([str(tmp_path / ".cache" / "notes" / "a.md")])
    assert alarm._rung.is_set()


def test_stopping_ends_this_wait_and_all_others(alarm: Alarm) -> None:
    stopper = threading.Timer(0.0, alarm.stop)
    stopper.start()
    alarm.wait(LONG_S)
    alarm.wait(LONG_S)
    alarm.rest(LONG_S)
    stopper.join()
    assert alarm.is_stopped


def test_closing_lets_the_source_go(alarm: Alarm, source: Source) -> None:
    alarm.close()
    assert (source.is_closed, alarm.is_told) == (True, False)


def test_arming_again_asks_anew(tmp_path: Path) -> None:
    sources: list[Source] = []

    def opened(root: Path) -> Source:
        sources.append(Source())
        return sources[-1]

    alarm = Alarm(tmp_path, (), opened)
    alarm.arm()
    alarm.arm()
    assert [source.is_closed for source in sources] == [True, False]
    alarm.close()


@pytest.mark.parametrize("error", [ImportError("not installed"), OSError(28, "no watches left"), RuntimeError("?")])
def test_where_the_system_cannot_tell_waits_just_end(tmp_path: Path, error: Exception) -> None:
    def refuse(root: Path) -> Any:
        raise error

    alarm = Alarm(tmp_path, (), refuse)
    alarm.arm()
    alarm.wait(0.0)
    assert alarm.is_told is False


def test_a_source_that_fails_tells_nothing_any_more(alarm: Alarm, source: Source) -> None:
    source.told.put(RuntimeError("the queue overflowed"))
    assert alarm._listening is not None
    alarm._listening._thread.join(LONG_S)
    assert alarm.is_told is False


def test_the_system_tells_of_a_new_file_and_of_one_in_a_new_directory(tmp_path: Path) -> None:
    """The real source, without its package, which would load an asynchronous framework."""
    alarm = Alarm(tmp_path, (), open_native)
    alarm.arm()
    assert alarm.is_told
    (tmp_path / "a.md").write_text("one\n")
    alarm._rung.wait(LONG_S)
    assert alarm._rung.is_set()
    alarm.wait(0.0)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "b.md").write_text("two\n")
    alarm._rung.wait(LONG_S)
    assert alarm._rung.is_set()
    alarm.close()


def test_a_root_that_is_not_there_cannot_be_told_of(tmp_path: Path) -> None:
    alarm = Alarm(tmp_path / "gone", (), open_native)
    alarm.arm()
    assert alarm.is_told is False
