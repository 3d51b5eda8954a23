"""A damaged page archives nothing and adds nothing: it is written again, and kept beside as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, TODAY, YESTERDAY, Book, quiet, zone

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.journal import parse_page
from commonplace.journal.sync import SyncReport
from commonplace.types import JournalPage

Harm = Callable[[str], str]
README = "# Billing\n\nHow it works.\n\n## Install\n\n- Run make.\n\n## Use\n\nCall it.\n"


def fill(book: Book, count: int, name: str = TODAY) -> str:
    """Write a page of so many entries that a person has saved; return its text."""
    for number in range(count):
        tier = "long" if name == LONG else "short"
        book.remember(f"Service {number} has port {3000 + 7 * number}.", id=f"m{number}", tier=tier, tags=["port"])
    book.sync()
    book.write(name, book.page(name).replace("\n", "\n\nA preface of mine.\n", 1))
    book.sync()
    return book.page(name)


def without(text: str, *ids: str, name: str = TODAY) -> str:
    blocks = {block.entry.id: block.raw for block in parse_page(text, "long" if name == LONG else "day").blocks}
    for id_ in ids:
        text = text.replace(blocks[id_], "")
    return text


def nuls(text: str) -> str:
    middle = len(text) // 2
    return text[:middle] + "\0" * 600 + text[middle + 600 :]


def nuls_at_the_end(text: str) -> str:
    return text + "\0" * 512


def half(text: str) -> str:
    return text[: len(text) // 2]


def half_with_windows_line_ends(text: str) -> str:
    return half(text.replace("\n", "\r\n"))


def another_file(_: str) -> str:
    return README


def some_lost(text: str) -> str:
    return without(text, *(f"m{number}" for number in range(2, 7)))


HARMS = [nuls, nuls_at_the_end, half, half_with_windows_line_ends, another_file, some_lost]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", [TODAY, LONG])
def test_a_damaged_page_is_written_again_and_kept_as_it_was(book: Book, name: str, harm: Harm) -> None:
    """An archived memory is deleted later; half an entry, taken for a note, is a memory that nobody wrote."""
    damaged = harm(fill(book, 20, name))
    book.folder.path(name).write_bytes(damaged.encode())
    report = book.sync()
    assert (report.archived, report.added, report.updated, report.pages_written) == (0, 0, 0, 1)
    assert len(book.contents()) == 20
    assert {block.entry.id for block in parse_page(book.page(name), "long" if name == LONG else "day").blocks} == {
        f"m{number}" for number in range(20)
    }
    assert "\0" not in book.page(name)
    [copy] = report.conflicts
    assert (book.directory / copy).read_bytes() == damaged.encode()
    [notice] = report.notices
    assert notice.startswith(f"{book.folder.page_path(name)} ")
    assert f"and was written again from the store; what stood there is kept in {copy}" in notice
    assert book.is_settled()


@pytest.mark.parametrize("kept", range(1, 60, 7))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_page_cut_within_an_entry_archives_nothing_however_few_there_are(
    tmp_path: Path, count: int, kept: int
) -> None:
    """A full disk and a killed editor cut anywhere; what is left of an entry is neither a note nor an edit."""
    with zone("UTC"):
        book = Book(tmp_path)
        text = fill(book, count)
        entry = text.index(f"Service {count - 1}")
        book.write(TODAY, text[: entry + kept])
        report = book.sync()
        assert (report.archived, report.added, report.updated) == (0, 0, 0)
        assert f"memory/{TODAY} breaks off in the middle of an entry" in report.notices[0]
        assert book.page() == text
        assert book.is_settled()


def test_every_process_sees_a_damaged_page_so_not_a_sync_alone(book: Book) -> None:
    text = fill(book, 12)
    book.write(TODAY, nuls(text))
    book.flush()
    assert len(book.contents()) == 12
    assert "\0" not in book.page()


@pytest.mark.parametrize(("had", "removed"), [(1, 1), (3, 2), (6, 4), (40, 9)])
def test_entries_that_a_person_removes_are_archived(book: Book, had: int, removed: int) -> None:
    """One or several at a time: a page is there to be edited."""
    text = fill(book, had)
    gone = [f"m{number}" for number in range(removed)]
    book.write(TODAY, without(text, *gone))
    report = book.sync()
    assert (report.archived, report.conflicts) == (removed, ())
    assert len(book.contents()) == had - removed
    assert book.is_settled()


@pytest.mark.parametrize(("had", "removed"), [(2, 2), (5, 5), (6, 5), (20, 5), (40, 10)])
def test_many_entries_that_vanish_at_once_are_doubted_and_a_person_may_insist(
    book: Book, had: int, removed: int
) -> None:
    """An answer to the notice is one command, at any time, whoever was running meanwhile."""
    text = fill(book, had)
    gone = [f"m{number}" for number in range(removed)]
    book.write(TODAY, without(text, *gone) + "\n## 13:00 Note\n\nI have tidied up.\n")
    doubted = book.sync()
    [copy] = doubted.conflicts
    assert f"lacks {removed} of its {had} entries at once" in doubted.notices[0]
    book.clock.at += 60
    book.remember("An agent was here.", id="later")
    book.flush()
    report = book.journal.sync(accept=copy)
    assert (report.archived, report.added) == (removed, 1)
    live = {each.owner.id for each in book.all() if each.expired_at is None}
    assert live >= {f"m{number}" for number in range(removed, had)} | {"later"}
    assert not live & set(gone)
    assert "Note\n\nI have tidied up." in book.contents()
    assert not (book.directory / copy).exists()
    assert book.is_settled()


def test_a_page_is_accepted_before_anybody_has_doubted_it(book: Book) -> None:
    text = fill(book, 8)
    book.write(TODAY, without(text, *(f"m{number}" for number in range(6))))
    report = book.journal.sync(accept=book.folder.path(TODAY))
    assert (report.archived, report.conflicts) == (6, ())
    assert book.is_settled()


def test_only_pages_and_those_that_were_kept_are_accepted(book: Book) -> None:
    text = fill(book, 8)
    book.write("notes.md", "Mine.\n")
    for name in ("memory/notes.md", "memory/2026-11-01.md", "../elsewhere.md"):
        with pytest.raises(NotFoundError, match=rf"there is no page '{name}'; name one of memory/{TODAY}"):
            book.journal.sync(accept=name)
    book.write(TODAY, nuls(text))
    [copy] = book.sync().conflicts
    with pytest.raises(UsageError, match=r"damaged-.{8}\.md holds NUL characters"):
        book.journal.sync(accept=copy)
    assert book.page() == text


def test_entries_moved_to_another_page_are_not_missing(book: Book) -> None:
    text = fill(book, 8)
    moved = without(text, "m6", "m7")
    book.write(TODAY, without(text, *(f"m{number}" for number in range(6))))
    book.write(YESTERDAY, moved)
    report = book.sync()
    assert (report.archived, report.conflicts) == (0, ())
    assert len(book.contents()) == 8
    assert book.is_settled()


def test_a_page_with_nuls_and_no_entry_of_the_store_is_left_alone(book: Book) -> None:
    """There is nothing to write in its place, and what a person has on it may still be rescued."""
    book.write(TODAY, "## 09:00 Note\n\nMine.\n" + "\0" * 100)
    report = book.sync()
    assert quiet(report) == SyncReport()
    assert report.notices == (f"memory/{TODAY} holds NUL characters, as a damaged file does; it was left as it is",)
    assert book.contents() == []
    book.write(TODAY, "## 09:00 Note\n\nMine.\n")
    assert book.sync().added == 1


def conflicting(text: str) -> str:
    first, second = (text.rindex("\n#", 0, text.index(words)) + 1 for words in ("Service 2", "Service 4"))
    ours, theirs = text[first:second], text[first:second].replace("port", "socket")
    return f"{text[:first]}<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> other\n{text[second:]}"


@pytest.mark.parametrize("name", [TODAY, LONG])
def test_a_page_with_a_merge_that_nobody_has_resolved_waits(book: Book, name: str) -> None:
    """Both sides of it have the same ids: taken in, one side would be new notes, and the marks a part of the other."""
    text = fill(book, 8, name)
    book.write(name, conflicting(text))
    before = book.page(name)
    report = book.sync()
    assert quiet(report) == SyncReport()
    [notice] = report.notices
    line = before[: before.index("<<<<<<<")].count("\n") + 1
    assert f"has an unresolved merge conflict at line {line}; it was left as it is: resolve it, or delete it" in notice
    assert book.page(name) == before
    book.write(name, text.replace("port 3014", "port 1"))
    assert book.sync().updated == 1
    assert book.is_settled()


def test_a_memory_may_speak_of_the_marks_of_a_merge(book: Book) -> None:
    marks = "<<<<<<< HEAD\none\n=======\nother\n>>>>>>> branch"
    book.remember(f"Git wrote this:\n\n{marks}", id="said")
    book.sync()
    book.write(TODAY, f"{book.page()}\n## 13:00 Note\n\n```\n{marks}\n```\n")
    report = book.sync()
    assert (report.added, report.notices) == (1, ())
    assert book.contents().count(f"Git wrote this:\n\n{marks}") == 1
    assert book.is_settled()


def test_a_damaged_page_that_cannot_be_kept_is_left_as_it_is(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands there may be all that is left of a person's notes."""
    damaged = nuls(fill(book, 8))
    book.write(TODAY, damaged)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("commonplace.journal.folder.Folder.keep", full)
        report = book.sync()
    assert report.archived == 0
    assert "could not be written (No space left on device)" in report.notices[0]
    assert book.page() == damaged
    assert len(book.sync().conflicts) == 1
    assert book.is_settled()


def test_forgetting_takes_the_kept_page_that_may_have_words_of_the_memory(book: Book) -> None:
    """Where the damage took the id, nobody can tell whose the words are."""
    text = fill(book, 8)
    book.write(TODAY, text.replace("<!-- memory: m3 -->", "\0" * 20))
    [copy] = book.sync().conflicts
    book.write(YESTERDAY, "## 09:00 Other\n\nMine.\n")
    book.sync()
    with book.store.change_memories("default") as change:
        change.erase(["m3"])
    assert book.journal.forget("default", ["m3"]) == 2
    assert not (book.directory / copy).exists()
    assert all("Service 3" not in words for words in book.files().values())


def test_an_empty_page_of_which_the_store_knows_no_state_is_written_again(book: Book) -> None:
    """The file was gone when the store last looked, and an editor made it anew."""
    book.remember("Service 1 has port 3007.", id="m1")
    book.sync()
    with book.store.change_memories(book.namespace) as change:
        change.drop(JournalPage, page=TODAY)
    book.write(TODAY, "")
    book.sync()
    assert "Service 1 has port 3007." in book.page(TODAY)
