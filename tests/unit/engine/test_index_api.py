"""A store that follows a directory through the library's own call, with files that really change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.errors import NotFoundError, StoreBusyError, UsageError
from commonplace.ingest.watch import WatchedRun
from commonplace.types import IndexReport


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    place.mkdir()
    (place / "a.md").write_text("Billing keeps its invoices in Postgres.\n")
    return place


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store") as opened:
        yield opened


def counts(run: WatchedRun) -> tuple[int, int, int]:
    assert isinstance(run.report, IndexReport), run.error
    return run.report.added, run.report.changed, run.report.removed


def test_a_loop_gives_a_run_at_once_and_one_for_every_change(book: Engine, notes: Path) -> None:
    with book.index(notes, watch=True) as watch:
        assert counts(next(watch)) == (1, 0, 0)
        (notes / "b.md").write_text("Sessions expire after thirty minutes.\n")
        assert counts(next(watch)) == (1, 0, 0)
        assert [hit.path for hit in book.search("when do sessions expire").hits] == [str(notes / "b.md")]
        (notes / "a.md").rename(notes / "c.md")
        assert counts(next(watch)) == (1, 0, 1)


def test_many_files_of_another_branch_are_one_run(book: Engine, notes: Path) -> None:
    with book.index(notes, watch=True) as watch:
        next(watch)
        for number in range(300):
            (notes / f"n{number}.md").write_text(f"Note {number}.\n")
        assert counts(next(watch)) == (300, 0, 0)


def test_a_file_that_an_editor_replaces_is_one_that_changed(book: Engine, notes: Path) -> None:
    """Many write another file and move it over the old one."""
    with book.index(notes, watch=True) as watch:
        next(watch)
        (notes / ".a.md.swp").write_text("Billing keeps them in SQLite.\n")
        (notes / ".a.md.swp").replace(notes / "a.md")
        assert counts(next(watch)) == (0, 1, 0)


def test_a_new_ignore_rule_takes_files_out(book: Engine, notes: Path) -> None:
    (notes / "b.md").write_text("Old.\n")
    with book.index(notes, watch=True) as watch:
        next(watch)
        (notes / ".gitignore").write_text("b.md\n")
        assert counts(next(watch)) == (0, 0, 1)


def test_a_directory_that_is_gone_empties_no_store_and_may_come_back(book: Engine, notes: Path) -> None:
    with book.index(notes, watch=True) as watch:
        next(watch)
        notes.rename(notes.with_name("elsewhere"))
        assert isinstance(next(watch).error, NotFoundError)
        assert book.search("where are invoices").hits
        notes.with_name("elsewhere").rename(notes)
        (notes / "b.md").write_text("Sessions expire after thirty minutes.\n")
        assert counts(next(watch)) == (1, 0, 0)


def test_a_directory_that_is_empty_from_the_beginning_empties_no_store(book: Engine, notes: Path) -> None:
    """A server that starts before its disk is mounted."""
    book.index(notes)
    (notes / "a.md").unlink()
    with book.index(notes, watch=True) as watch:
        assert isinstance(next(watch).error, NotFoundError)
    assert book.search("where are invoices").hits


def test_one_directory_is_watched_once_and_again_when_that_has_ended(book: Engine, notes: Path) -> None:
    with book.index(notes, watch=True), pytest.raises(StoreBusyError, match="is watched already"):
        book.index(notes / ".." / "notes", watch=True)
    with book.index(notes, watch=True) as watch, book.index(notes.parent, watch=True) as other:
        assert counts(next(watch)) == (1, 0, 0)
        assert counts(next(other)) == (0, 0, 0)


def test_a_glob_that_is_not_valid_is_refused_before_anything_is_watched(book: Engine, notes: Path) -> None:
    with pytest.raises(UsageError):
        book.index(notes, ["["], watch=True)
    with book.index(notes, watch=True) as watch:
        assert counts(next(watch)) == (1, 0, 0)


def test_another_thread_ends_the_loop(book: Engine, notes: Path) -> None:
    with book.index(notes, watch=True) as watch:
        next(watch)
        stopper = threading.Timer(0.0, watch.stop)
        stopper.start()
        assert list(watch) == []
        stopper.join()


def test_a_loop_that_is_stopped_while_it_indexes_keeps_whole_files(tmp_path: Path, notes: Path) -> None:
    for number in range(200):
        (notes / f"n{number}.md").write_text(f"Note {number}.\n")
    told: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        told.append(what)
        watch.stop()

    with commonplace.open(tmp_path / "store", progress=progress) as book:
        watch = book.index(notes, watch=True)
        assert list(watch) == []
        assert told == ["Indexing files"]
        report = book.index(notes)
    assert report.added + report.unchanged == 201


def test_an_engine_that_stays_small_indexes_in_a_process_of_its_own(tmp_path: Path, notes: Path) -> None:
    with open_engine(tmp_path / "store", "default", None, low_memory=True) as book:
        with book.index(notes, watch=True) as watch:
            assert counts(next(watch)) == (1, 0, 0)
            (notes / "a.md").unlink()
            error = next(watch).error
        assert isinstance(error, NotFoundError)
        assert book.index(notes).removed == 1
        with pytest.raises(NotFoundError):
            book.index(notes / "gone")


def test_a_process_of_its_own_is_ended_with_the_loop(tmp_path: Path, notes: Path) -> None:
    """What it had begun is finished by the next run."""
    for number in range(200):
        (notes / f"n{number}.md").write_text(f"Note {number}.\n")
    with open_engine(tmp_path / "store", "default", None, low_memory=True, progress=lambda *_: watch.stop()) as book:
        watch = book.index(notes, watch=True)
        assert list(watch) == []
        report = book.index(notes)
        assert report.added + report.unchanged == 201
        assert book.doctor().findings == ()
