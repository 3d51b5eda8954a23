"""When a watched directory is indexed again, when it must not be, and how that ends; time and files are made up."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from commonplace.errors import CommonplaceError, NotFoundError, StoreBusyError
from commonplace.ingest.discover import Look
from commonplace.ingest.watch import CHECK_S, POLL_S, QUIET_S, UNREST_S, Alarm, Stopped, Watch, open_native
from commonplace.types import IndexReport

ROOT = (1, 2)


@dataclass
class World:
    """A directory that changes at given times, and a watch of it that waits without any time going by.

    Attributes:
        changes: what happens at which second.
        state: what a look would find, or the error of looking.
        is_told: whether the system tells of changes.
        indexed: the state at the beginning of each run, and the time.
    """

    changes: dict[float, Callable[[], None]] = field(default_factory=dict)
    state: Look | CommonplaceError = field(default_factory=lambda: Look(1, 1, frozenset({7}), ROOT))
    is_told: bool = False
    is_stopped: bool = False
    now: float = 0.0
    indexed: list[tuple[float, Look]] = field(default_factory=list)
    firsts: list[bool] = field(default_factory=list)
    failures: list[CommonplaceError | None] = field(default_factory=list)
    armed: list[float] = field(default_factory=list)
    looks: int = 0
    seconds: float = 0.0
    released: int = 0
    closed: int = 0

    def watch(self) -> Watch:
        return Watch(self.look, self.index, self, self._release, lambda: self.now)

    def look(self) -> Look:
        self.looks += 1
        if isinstance(self.state, CommonplaceError):
            raise self.state
        return self.state

    def index(self, is_first: bool) -> IndexReport:
        assert isinstance(self.state, Look)
        self.firsts.append(is_first)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        self.indexed.append((self.now, self.state))
        return IndexReport(changed=self.state.files, seconds=self.seconds)

    def arm(self) -> None:
        self.armed.append(self.now)

    def wait(self, most_s: float) -> None:
        due = min(self.changes, default=float("inf"))
        self._go(min(due, self.now + most_s) if self.is_told else self.now + most_s)

    def sleep(self, seconds: float) -> None:
        self._go(self.now + seconds)

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        self.closed += 1

    def shows(self, digest: int, files: int = 1, devices: frozenset[int] = frozenset({7})) -> Callable[[], None]:
        def change() -> None:
            self.state = Look(files, digest, devices, ROOT)

        return change

    def _go(self, until: float) -> None:
        for due in sorted(each for each in self.changes if each <= until):
            self.changes.pop(due)()
        self.now = until

    def _release(self) -> None:
        self.released += 1


def runs(world: World, until_s: float) -> list[str]:
    """Watch until a time, and tell what every run became."""
    world.changes[until_s] = world.stop
    return [str(run.error).partition(";")[0] if run.error else f"{run.report.changed} files" for run in world.watch()]  # type: ignore[union-attr]


def test_it_indexes_at_once_and_again_when_something_changed() -> None:
    world = World(is_told=True)
    world.changes = {5.0: world.shows(2)}
    assert runs(world, 30.0) == ["1 files", "1 files"]
    assert [time for time, _ in world.indexed] == [0.0, 5.0 + QUIET_S]
    assert world.firsts == [True, False]


def test_where_the_system_tells_nothing_files_are_looked_at_every_two_seconds() -> None:
    world = World()
    world.changes = {5.0: world.shows(2)}
    assert runs(world, 9.0) == ["1 files", "1 files"]
    assert [time for time, _ in world.indexed] == [0.0, 3 * POLL_S + QUIET_S]


def test_a_watch_that_is_told_nothing_looks_once_a_minute_all_the_same() -> None:
    """What the system tells can be lost; and nothing else may keep a machine awake."""
    world = World(is_told=True)
    assert runs(world, 10 * CHECK_S) == ["1 files"]
    assert world.looks <= 12


def test_a_large_directory_is_looked_at_less_often() -> None:
    """A look of a second is one twentieth of the time."""
    world = World(state=Look(1, 1, frozenset({7}), ROOT, seconds=1.0))
    runs(world, 200.0)
    assert world.looks <= 12


def test_thousands_of_changes_one_after_the_other_are_one_run() -> None:
    """A branch switch."""
    world = World(is_told=True)
    world.changes = {5.0 + number / 1000: world.shows(number + 2) for number in range(5000)}
    assert runs(world, 60.0) == ["1 files", "1 files"]
    assert world.indexed[1][1].digest == 5001


def test_a_directory_that_never_rests_is_indexed_all_the_same() -> None:
    world = World(is_told=True)
    world.changes = {5.0 + number / 10: world.shows(number + 2) for number in range(500)}
    runs(world, 60.0)
    assert world.indexed[1][0] == 5.0 + UNREST_S


def test_what_changes_and_changes_back_is_not_indexed() -> None:
    """An editor that moves a file away to write another one in its place."""
    world = World(is_told=True)
    world.changes = {5.0: world.shows(0, files=0), 5.1: world.shows(1)}
    assert runs(world, 30.0) == ["1 files"]


def test_a_file_that_changes_while_its_directory_is_indexed_is_indexed_again() -> None:
    world = World(is_told=True)
    index = world.index

    def slow(is_first: bool) -> IndexReport:
        report = index(is_first)
        if is_first:
            world.shows(2)()
        return report

    watch = Watch(world.look, slow, world, world._release, lambda: world.now)
    assert [next(watch).error, next(watch).error] == [None, None]
    assert [seen.digest for _, seen in world.indexed] == [1, 2]


def test_files_that_are_all_gone_are_not_taken_for_deleted_ones() -> None:
    """An unmounted disk leaves an empty directory."""
    world = World(is_told=True)
    world.changes = {5.0: world.shows(0, files=0, devices=frozenset()), 40.0: world.shows(1), 50.0: world.shows(2)}
    told = runs(world, 70.0)
    assert told == ["1 files", "none of 1 files can be seen any more, so nothing was removed from the store", *told[2:]]
    assert [seen.digest for _, seen in world.indexed] == [1, 1, 2]


def test_a_disk_within_that_is_gone_is_not_taken_for_deleted_files() -> None:
    world = World(is_told=True, state=Look(9, 1, frozenset({7, 8}), ROOT))
    world.changes = {5.0: world.shows(2, files=4), 20.0: world.shows(3, 9, frozenset({7, 8}))}
    assert runs(world, 60.0) == [
        "9 files",
        "a disk that held some of the files is gone, so nothing was removed from the store",
        "9 files",
    ]


def test_a_root_that_is_gone_is_told_once_and_waited_for() -> None:
    """The system tells nothing of a directory that is not there: it is looked for, and asked about anew."""
    world = World(is_told=True)

    def vanish() -> None:
        world.state = NotFoundError("there is no directory 'x'")
        world.changes[30.0] = come_back

    def come_back() -> None:
        world.state = Look(3, 4, frozenset({7}), ROOT)

    world.changes = {5.0: vanish}
    assert runs(world, 100.0) == ["1 files", "there is no directory 'x'", "3 files"]
    assert world.indexed[1][0] == pytest.approx(30.0, abs=2 * POLL_S)
    assert len(world.armed) == 2


def test_a_replaced_root_is_asked_about_anew() -> None:
    world = World(is_told=True)

    def replace() -> None:
        world.state = Look(1, 1, frozenset({7}), (1, 3))

    world.changes = {5.0: replace}
    assert runs(world, 30.0) == ["1 files", "1 files"]
    assert world.armed == [0.0, 5.0 + QUIET_S]


def test_a_disk_that_comes_into_the_directory_is_asked_about_too() -> None:
    """The system tells of the directory that it covers."""
    world = World(is_told=True)
    world.changes = {5.0: world.shows(2, 9, frozenset({7, 8}))}
    assert runs(world, 30.0) == ["1 files", "9 files"]
    assert world.armed == [0.0, 5.0 + QUIET_S]


def test_a_run_that_fails_is_told_and_the_next_change_tried() -> None:
    world = World(is_told=True, failures=[None, StoreBusyError("the store is busy")])
    world.changes = {5.0: world.shows(2), 20.0: world.shows(3)}
    assert runs(world, 30.0) == ["1 files", "the store is busy", "1 files"]
    assert world.indexed[1][0] == 20.0 + QUIET_S


def test_a_run_that_fails_is_tried_again_after_a_minute_and_the_same_failure_told_once() -> None:
    busy = StoreBusyError("the store is busy")
    world = World(is_told=True, failures=[busy, busy, busy])
    assert runs(world, 300.0) == ["the store is busy", "1 files"]
    assert world.indexed[0][0] == 3 * CHECK_S
    assert world.firsts == [True, True, True, True]


def test_a_watch_that_is_stopped_while_it_indexes_ends_and_lets_go() -> None:
    world = World()

    def interrupted(is_first: bool) -> IndexReport:
        raise Stopped

    watch = Watch(world.look, interrupted, world, world._release, lambda: world.now)
    assert list(watch) == []
    watch.close()
    assert (world.released, world.closed) == (1, 1)


def test_an_interruption_lets_go_and_is_passed_on() -> None:
    world = World(is_told=True)

    def interrupt() -> None:
        raise KeyboardInterrupt

    world.changes = {5.0: interrupt}
    watch = world.watch()
    next(watch)
    with pytest.raises(KeyboardInterrupt):
        next(watch)
    assert (world.released, world.closed) == (1, 1)


def test_leaving_the_block_stops_it() -> None:
    world = World()
    with world.watch() as watch:
        watch.stop()
        assert list(watch) == []
    assert (world.looks, world.released) == (0, 1)


# What wakes whoever waits for changes: the system's word about files that matter, and nothing else.

LONG_S = 60.0
"""A wait that nothing ends; a test that takes so long has failed."""


class Source:
    """Stands for the system: tells what a test puts into it."""

    def __init__(self) -> None:
        self.told: queue.Queue[Any] = queue.Queue()
        self.is_closed = False

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop: threading.Event) -> Any:
        assert (debounce_ms, step_ms) == (400, 50)
        end = time.monotonic() + timeout_ms / 1000
        while not stop.is_set():
            try:
                told = self.told.get(timeout=step_ms / 1000)
            except queue.Empty:
                if time.monotonic() > end:
                    return "timeout"
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
def test_what_is_never_indexed_wakes_nobody(
    alarm: Alarm, source: Source, tmp_path: Path, path: str, matters: bool
) -> None:
    """The store lies in the directory, and every run writes to it: the next one would follow at once, for ever."""
    source.told.put({(2, str(tmp_path / path))})
    alarm.wait(LONG_S if matters else 0.2)
    assert source.told.empty()
    if not matters:  # what was told is over, and the wait went on to its end
        source.told.put({(2, str(tmp_path / path)), (1, str(tmp_path / "b.md"))})
        alarm.wait(LONG_S)


def test_a_root_within_a_directory_that_is_never_entered_is_a_root_all_the_same(tmp_path: Path, source: Source) -> None:
    alarm = Alarm(tmp_path / ".cache" / "notes", (), lambda root: source)
    alarm.arm()
    source.told.put({(2, str(tmp_path / ".cache" / "notes" / "a.md"))})
    alarm.wait(LONG_S)
    assert not alarm.is_stopped


def test_stopping_ends_this_wait_and_all_others(alarm: Alarm) -> None:
    stopper = threading.Timer(0.0, alarm.stop)
    stopper.start()
    alarm.wait(LONG_S)
    alarm.wait(LONG_S)
    alarm.sleep(LONG_S)
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
    alarm.wait(0.2)
    assert (alarm.is_told, source.is_closed) == (False, True)


def test_the_system_tells_of_a_new_file_and_of_one_in_a_new_directory(tmp_path: Path) -> None:
    """The real source, without its package, which would load an asynchronous framework."""
    alarm = Alarm(tmp_path, (), open_native)
    alarm.arm()
    assert alarm.is_told
    for name in ("a.md", "new/b.md"):
        begun = time.monotonic()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\n")
        alarm.wait(LONG_S)
        assert time.monotonic() - begun < LONG_S
    alarm.close()


def test_a_root_that_is_not_there_cannot_be_told_of(tmp_path: Path) -> None:
    alarm = Alarm(tmp_path / "gone", (), open_native)
    alarm.arm()
    assert alarm.is_told is False
