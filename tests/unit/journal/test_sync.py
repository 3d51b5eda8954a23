"""When the journal runs, and when it leaves pages for later."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, TODAY, Book, zone

from commonplace.errors import StoreBusyError
from commonplace.journal import folder
from commonplace.journal.sync import FLUSH_AFTER_S, LOOK_EVERY_S, MAX_PENDING, JournalSync, SyncReport
from commonplace.locks import FileLock
from commonplace.settings.paths import PAGES_LOCK


def test_writes_reach_the_pages_after_a_while_and_not_each_by_itself(book: Book) -> None:
    for _ in range(3):
        book.remember("The door is blue.", force=True)
        book.journal.count_write()
        assert book.files() == {}
    book.clock.at += FLUSH_AFTER_S
    book.remember("The roof is grey.")
    book.journal.count_write()
    assert len(book.page().split("<!-- memory:")) == 1 + len(book.contents())
    assert not book.store.due("default")


def test_many_writes_reach_the_pages_at_once(book: Book) -> None:
    book.journal.import_edits()
    for number in range(MAX_PENDING):
        assert book.files() == {}
        book.remember(f"Number {number} of {number * 7919}.", force=True)
        book.journal.count_write()
    assert book.page().count("<!-- memory:") == MAX_PENDING


def test_what_waits_is_written_by_the_next_call_or_at_the_end(book: Book) -> None:
    book.remember("The door is blue.")
    book.journal.count_write()
    book.clock.at += FLUSH_AFTER_S
    book.journal.import_edits()
    assert "door" in book.page()
    book.remember("The roof is grey.")
    book.journal.count_write()
    assert "roof" not in book.page()
    book.journal.flush()
    assert "roof" in book.page()


def test_what_a_killed_process_left_due_is_written_by_the_next_one(book: Book) -> None:
    book.remember("The door is blue.")
    book.fresh_journal().import_edits()
    assert "door" in book.page()


def test_edits_are_picked_up_by_the_next_call_but_not_more_than_once_a_second(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    book.journal.import_edits()
    book.edit("The door is blue.\n", "The door is red.\n")
    book.journal.import_edits()
    assert "The door is blue." in book.contents()
    book.clock.at += LOOK_EVERY_S
    book.journal.import_edits()
    assert book.contents() == ["The door is red."]


def test_a_look_without_news_reads_no_page(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.remember("The door is blue.")
    book.remember("We deploy.", tier="long")
    book.sync()
    pages: list[str] = []
    monkeypatch.setattr(type(book.folder), "read", lambda _, name: pages.append(name))
    for _ in range(3):
        book.clock.at += 100
        book.journal.import_edits()
        book.journal.flush()
    assert pages == []


def test_a_page_saved_this_instant_is_left_for_the_next_look(book: Book) -> None:
    """It may still be being written. When somebody asks for it, it is read nevertheless."""
    wall = 0
    journal = JournalSync(book.ground, stopwatch=book.clock, wall_ns=lambda: wall)
    journal.import_edits()
    book.write(TODAY, "## 09:00 Tea\n")
    saved = book.folder.path(TODAY).stat().st_mtime_ns
    wall = saved + 100_000_000
    book.clock.at += LOOK_EVERY_S
    journal.import_edits()
    assert book.all() == []
    wall = saved + 300_000_000
    book.clock.at += LOOK_EVERY_S
    journal.import_edits()
    assert book.contents() == ["Tea"]


def test_a_process_that_begins_waits_for_a_page_saved_this_instant(book: Book) -> None:
    """A command looks once: the edit would be seen by the next one only."""
    book.remember("The door is blue.")
    book.sync()
    book.write(TODAY, book.page() + "\n## 09:00 Tea\n")
    wall, waits = book.folder.path(TODAY).stat().st_mtime_ns + 50_000_000, list[float]()

    def sleep(duration_s: float) -> None:
        nonlocal wall
        waits.append(duration_s)
        wall += int(duration_s * 1e9)

    for _ in range(2):
        JournalSync(book.ground, stopwatch=book.clock, wall_ns=lambda: wall, sleep=sleep).import_edits()
    assert waits == [0.15], "without an edit nothing is waited for"
    assert book.contents() == ["Tea", "The door is blue."]


def test_a_long_run_is_followed_by_a_long_rest(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """So no process spends more than a small share of its time on pages."""
    write = folder.write_draft

    def slowly(self: object, *rest: object) -> object:
        book.clock.at += 3
        return write(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "write_draft", slowly)
    book.remember("The door is blue.")
    book.journal.flush()
    book.journal.count_write()
    book.clock.at += FLUSH_AFTER_S
    book.journal.count_write()
    assert "door" in book.page()
    book.remember("The roof is grey.")
    book.journal.count_write()
    for _ in range(5):
        book.clock.at += 10
        book.journal.count_write()
        assert "roof" not in book.page()
    book.clock.at += 10
    book.journal.count_write()
    assert "roof" in book.page()


def test_while_another_process_is_at_it_calls_pass_by(book: Book) -> None:
    book.remember("The door is blue.")
    other = FileLock(book.directory / PAGES_LOCK)
    with other.hold(1):
        journal = book.fresh_journal()
        journal.import_edits()
        journal.count_write()
        assert book.files() == {}
    book.clock.at += FLUSH_AFTER_S
    journal.import_edits()
    assert "door" in book.page()


def test_a_sync_waits_and_then_says_that_another_process_is_at_it(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.journal.sync._SYNC_WAIT_S", 0.0)
    with FileLock(book.directory / PAGES_LOCK).hold(1), pytest.raises(StoreBusyError, match="held by another process"):
        book.sync()


def test_faults_in_calls_are_logged_once_and_raise_nothing(
    book: Book, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    book.remember("The door is blue.")

    def busy(*_: object) -> None:
        raise StoreBusyError("the store is held")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "commonplace.journal"):
        patched.setattr(type(book.store), "blocks", busy)
        for _ in range(3):
            book.clock.at += 60
            book.journal.import_edits()
            book.journal.count_write()
    assert [record.getMessage() for record in caplog.records] == [
        "pages and memories could not be synchronized: the store is held"
    ]
    book.journal.flush()
    assert "door" in book.page()


def test_a_store_that_may_only_be_read_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zone("UTC"):
        writing = Book(tmp_path)
        writing.remember("The door is blue.")
        writing.sync()
        writing.remember("The roof is grey.")
        writing.write(LONG, "## Lessons\n\n- Measure.\n")
        before = writing.files()
        writing.store.close()
        monkeypatch.setattr("commonplace.store.connection.can_be_written", lambda _: False)
        book = Book(tmp_path)
        book.journal.import_edits()
        book.journal.count_write()
        book.clock.at += 60
        book.journal.import_edits()
        book.journal.flush()
        assert book.sync() == SyncReport(notices=("the store is read-only; pages and memories were left as they are",))
        assert book.files() == before
        assert book.contents() == ["The door is blue.", "The roof is grey."]


def test_nothing_is_read_or_written_before_a_call(tmp_path: Path) -> None:
    book = Book(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    book.fresh_journal()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    book.fresh_journal().import_edits()
    book.fresh_journal().flush()
    assert PAGES_LOCK not in {path.name for path in tmp_path.iterdir()}
