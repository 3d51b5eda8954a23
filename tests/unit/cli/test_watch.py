"""A server's thread that watches its project: when it begins, whose turn it is, and that it never ends the server."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import click
import pytest

from commonplace.cli import watch
from commonplace.cli.options import duration
from commonplace.cli.watch import ProjectWatch, repeat, until_stopped
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, StoreBusyError, StoreError
from commonplace.ingest.watch import WatchedRun
from commonplace.types import IndexReport

LIMIT_S = 60.0


class Watching:
    """Gives runs, and then waits to be stopped."""

    def __init__(self, *runs: WatchedRun) -> None:
        self._runs = runs
        self.waits = threading.Event()
        self.stopped = threading.Event()
        self.is_left = False

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: TracebackType | None) -> None:
        self.is_left = True

    def __iter__(self) -> Iterator[WatchedRun]:
        yield from self._runs
        self.waits.set()
        assert self.stopped.wait(LIMIT_S)

    def stop(self) -> None:
        self.stopped.set()


class Book:
    """An engine that answers each call of `index` by the next of these."""

    directory = Path("/srv/store")

    def __init__(self, *answers: Watching | Exception, project: Path | None = Path("/srv")) -> None:
        self.project = project
        self._answers = list(answers)
        self.asked: list[tuple[Path, bool]] = []

    def index(self, root: Path, *, watch: bool) -> Watching:
        self.asked.append((root, watch))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What is logged, also after a program attached its own log, which takes it from all others."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("commonplace.cli.watch")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield records
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


@pytest.fixture
def attend() -> Iterator[Callable[[Book], ProjectWatch]]:
    begun: list[ProjectWatch] = []

    def begin(book: Book) -> ProjectWatch:
        begun.append(ProjectWatch())
        begun[-1].begin(cast(Engine, book))
        return begun[-1]

    yield begin
    for each in begun:
        each.end()


def test_it_watches_the_project_until_the_server_ends(attend: Callable[[Book], ProjectWatch]) -> None:
    watching = Watching(WatchedRun(IndexReport()))
    book = Book(watching)
    attendance = attend(book)
    assert watching.waits.wait(LIMIT_S)
    attendance.end()
    assert (book.asked, watching.is_left) == ([(Path("/srv"), True)], True)


def test_where_another_process_watches_it_waits_for_its_turn(
    attend: Callable[[Book], ProjectWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each agent's client starts a server of its own for the same project, and any of them may end first."""
    monkeypatch.setattr(watch, "RETRY_S", 0.0)
    watching = Watching()
    book = Book(StoreBusyError("it is watched already"), StoreBusyError("it is watched already"), watching)
    attend(book)
    assert watching.waits.wait(LIMIT_S)
    assert len(book.asked) == 3


def test_runs_that_fail_are_logged(attend: Callable[[Book], ProjectWatch], logged: list[logging.LogRecord]) -> None:
    watching = Watching(
        WatchedRun(error=NotFoundError("it is gone", remedy="bring it back")), WatchedRun(IndexReport())
    )
    attend(Book(watching))
    assert watching.waits.wait(LIMIT_S)
    assert [record.getMessage() for record in logged] == ["the project could not be indexed: it is gone; bring it back"]


@pytest.mark.parametrize("error", [StoreError("the disk is full"), RuntimeError("a defect")])
def test_what_ends_the_thread_is_logged_and_not_raised(
    attend: Callable[[Book], ProjectWatch], logged: list[logging.LogRecord], error: Exception
) -> None:
    attendance = attend(Book(error))
    assert attendance._thread is not None
    attendance._thread.join(LIMIT_S)
    (record,) = logged
    assert "the project is not watched any more" in record.getMessage()


def test_without_a_project_nothing_is_watched(
    attend: Callable[[Book], ProjectWatch], logged: list[logging.LogRecord]
) -> None:
    book = Book(project=None)
    attend(book)
    assert (book.asked, [record.getMessage() for record in logged]) == (
        [],
        ["nothing is watched: the store /srv/store belongs to no project"],
    )


# Work that is done again and again: when it begins, and when it ends.


@pytest.mark.parametrize(
    ("given", "seconds"), [("10s", 10.0), ("30m", 1800.0), ("1h", 3600.0), ("1.5 H", 5400.0), ("7d", 604_800.0)]
)
def test_durations_are_read_as_people_write_them(given: str, seconds: float) -> None:
    assert duration(click.Context(click.Command("a")), click.Option(["--every"]), given) == seconds


@pytest.mark.parametrize("given", ["", "1", "h", "9s", "367d", "1w", "-1h", "1e3h", "1h30m", "²h"])
def test_what_is_no_duration_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration from 10s to 366d"):
        duration(click.Context(click.Command("a")), click.Option(["--every"]), given)


def test_work_begins_every_so_often_and_what_took_too_long_is_not_made_up_for() -> None:
    now = [0.0]
    begun: list[float] = []
    taken = iter([10.0, 250.0, 0.0])

    def work() -> None:
        begun.append(now[0])
        now[0] += next(taken)

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return len(begun) == 3

    repeat(work, 100.0, wait, lambda: now[0])
    assert begun == [0.0, 100.0, 350.0]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_and_is_handled_as_before_afterwards(sent: signal.Signals) -> None:
    before = signal.getsignal(sent)
    with until_stopped() as wait:
        os.kill(os.getpid(), sent)
        assert wait(60.0) is True
    assert signal.getsignal(sent) == before
