"""A server's thread that watches its project: when it begins, whose turn it is, and that it never ends the server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import pytest

from commonplace.cli import watch
from commonplace.cli.watch import Attendance
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
def attend() -> Iterator[Callable[[Book], Attendance]]:
    begun: list[Attendance] = []

    def begin(book: Book) -> Attendance:
        begun.append(Attendance())
        begun[-1].begin(cast(Engine, book))
        return begun[-1]

    yield begin
    for each in begun:
        each.end()


def test_it_watches_the_project_until_the_server_ends(attend: Callable[[Book], Attendance]) -> None:
    watching = Watching(WatchedRun(IndexReport()))
    book = Book(watching)
    attendance = attend(book)
    assert watching.waits.wait(LIMIT_S)
    attendance.end()
    assert (book.asked, watching.is_left) == ([(Path("/srv"), True)], True)


def test_where_another_process_watches_it_waits_for_its_turn(
    attend: Callable[[Book], Attendance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each agent's client starts a server of its own for the same project, and any of them may end first."""
    monkeypatch.setattr(watch, "AGAIN_S", 0.0)
    watching = Watching()
    book = Book(StoreBusyError("it is watched already"), StoreBusyError("it is watched already"), watching)
    attend(book)
    assert watching.waits.wait(LIMIT_S)
    assert len(book.asked) == 3


def test_runs_that_fail_are_logged(attend: Callable[[Book], Attendance], logged: list[logging.LogRecord]) -> None:
    watching = Watching(
        WatchedRun(error=NotFoundError("it is gone", remedy="bring it back")), WatchedRun(IndexReport())
    )
    attend(Book(watching))
    assert watching.waits.wait(LIMIT_S)
    assert [record.getMessage() for record in logged] == ["the project could not be indexed: it is gone; bring it back"]


@pytest.mark.parametrize("error", [StoreError("the disk is full"), RuntimeError("a defect")])
def test_what_ends_the_thread_is_logged_and_not_raised(
    attend: Callable[[Book], Attendance], logged: list[logging.LogRecord], error: Exception
) -> None:
    attendance = attend(Book(error))
    assert attendance._thread is not None
    attendance._thread.join(LIMIT_S)
    (record,) = logged
    assert "the project is not watched any more" in record.getMessage()


def test_without_a_project_nothing_is_watched(
    attend: Callable[[Book], Attendance], logged: list[logging.LogRecord]
) -> None:
    book = Book(project=None)
    attend(book)
    assert (book.asked, [record.getMessage() for record in logged]) == (
        [],
        ["nothing is watched: the store /srv/store belongs to no project"],
    )
