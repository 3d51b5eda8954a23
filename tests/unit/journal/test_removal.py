"""What is forgotten is on no page, whoever brings it back, and what else people wrote stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, NOON, TODAY, Book, zone

from commonplace.errors import StoreBusyError, StoreError
from commonplace.formats.journal import parse_page
from commonplace.journal.folder import directory_name
from commonplace.types import Note


def erase(book: Book, *ids: str) -> None:
    """Let the store forget memories, as a forgetting does, with a receipt."""
    with book.store.change_memories(book.namespace) as change:
        change.erase(ids)
        body = {"namespace": book.namespace, "ids": list(ids)}
        change.put(Note("receipt", f"r-{'-'.join(ids)}", NOON, json.dumps(body)))


def test_forgetting_removes_blocks_copies_of_them_and_the_conflict_copies(book: Book) -> None:
    gone = book.remember("The door is blue.")
    kept = book.remember("The roof is grey.")
    book.sync()
    book.keeper.update(gone.id, {"content": "The door is green."})
    book.edit("The door is blue.\n", "The door is red.\n")
    book.sync()
    block = next(each.raw for each in parse_page(book.page()).blocks if each.entry.id == gone.id)
    book.write("2026-11-20.md", f"# Friday\n\nMine.\n\n{block}")
    book.write(TODAY, book.page() + f"\n{block}\n## 13:00 Note\n\nNot taken in yet.\n")
    book.write("notes.conflict-of-mine.md", "Words of mine.\n")
    erase(book, gone.id)
    assert book.journal.forget("default", [gone.id]) == 4
    files = book.files()
    assert all("door" not in text and gone.id not in text for text in files.values())
    assert set(files) == {f"memory/{TODAY}", "memory/2026-11-20.md", "memory/notes.conflict-of-mine.md"}
    assert files["memory/2026-11-20.md"] == "# Friday\n\nMine.\n\n"
    assert "The roof is grey." in book.page()
    assert "Not taken in yet." in book.page()
    assert book.sync().added == 1
    assert book.contents() == ["Note\n\nNot taken in yet.", "The roof is grey."]
    assert book.get(kept.id).expired_at is None
    assert book.is_settled()


def test_a_page_that_went_with_its_last_memory_is_no_lost_one_when_the_day_goes_on(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    erase(book, memory.id)
    book.journal.forget("default", [memory.id])
    book.remember("The roof is grey.")
    assert book.sync().notices == ()
    assert "The roof is grey." in book.page()
    assert book.is_settled()


def test_forgetting_the_last_memory_of_a_page_removes_the_page(book: Book) -> None:
    memory = book.remember("The door is blue.")
    long = book.remember("We deploy on Mondays.", tier="long")
    book.sync()
    erase(book, memory.id, long.id)
    assert book.journal.forget("default", [memory.id, long.id]) == 2
    assert book.files() == {}
    assert book.sync().notices == ()
    assert book.is_settled()


def test_forgetting_removes_what_stands_on_no_page_without_harm(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    before = book.files()
    assert book.journal.forget("default", ["nobody"]) == 0
    assert book.journal.forget("default", []) == 0
    assert book.journal.forget("elsewhere", ["nobody"]) == 0
    assert book.files() == before


def test_forgetting_removes_drafts_of_killed_processes(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    draft = book.folder.path(TODAY + ".commonplace-draft")
    draft.write_text("The door is blue.", encoding="utf-8")
    erase(book, memory.id)
    book.journal.forget("default", [memory.id])
    assert not draft.exists()


def test_a_page_brought_back_with_a_forgotten_memory_loses_it_with_a_notice(book: Book) -> None:
    """Else an editor left open, or a copy from elsewhere, would undo a forgetting."""
    memory, _ = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    opened = book.page()
    erase(book, memory.id)
    book.journal.forget("default", [memory.id])
    book.sync()
    book.write(TODAY, opened)
    report = book.sync()
    assert report.added == 0
    [notice] = report.notices
    assert notice.startswith(f"memory/{TODAY} had memory '{memory.id}', which was forgotten, and its entry was removed")
    assert "door" not in book.page()
    assert book.contents() == ["The roof is grey."]
    assert book.is_settled()


def test_a_receipt_of_another_namespace_says_nothing_about_this_one(book: Book, tmp_path: Path) -> None:
    with book.store.change_memories("ada") as change:
        change.put(Note("receipt", "r", NOON, json.dumps({"namespace": "ada", "ids": ["x"]})))
    book.write(TODAY, "## 09:00 Tea\n\nGreen.\n\n<!-- memory: x -->\n")
    assert book.sync().added == 1


def test_what_was_erased_without_a_receipt_leaves_the_page_when_it_was_due(book: Book) -> None:
    """Whoever erases tells the journal; where it could not, the block comes back as a memory, and is told of."""
    memory = book.remember("The door is blue.")
    book.sync()
    with book.store.change_memories("default") as change:
        change.erase([memory.id])
    report = book.sync()
    assert report.added == 1
    assert "that the store did not know" in report.notices[0]


def test_forgetting_in_one_namespace_leaves_the_pages_of_others(tmp_path: Path) -> None:
    with zone("UTC"):
        ours, theirs = Book(tmp_path), Book(tmp_path, "ada")
        for book in (ours, theirs):
            book.remember("The door is blue.", id="same")
            book.remember("We deploy.", id="long", tier="long")
            book.sync()
        before = ours.files()
        assert ours.journal.forget("ada", ["same", "long"]) == 2
        for name in (TODAY, LONG):
            assert ours.page(name) == before[ours.folder.page_path(name)]
            assert not theirs.folder.path(name).exists() or "memory: " not in theirs.page(name)


def test_dropping_a_namespace_removes_its_pages_and_copies_alone(tmp_path: Path) -> None:
    with zone("UTC"):
        ours, theirs = Book(tmp_path), Book(tmp_path, "Ada")
        for book in (ours, theirs):
            memory = book.remember("The door is blue.")
            book.remember("We deploy.", tier="long")
            book.sync()
            book.keeper.update(memory.id, {"content": "The door is green."})
            book.edit("The door is blue.\n", "The door is red.\n")
            book.sync()
        folder = theirs.folder.path(TODAY).parent
        kept = {name: text for name, text in ours.files().items() if directory_name("Ada") not in name}
        assert len(kept) == 3
        assert ours.journal.drop_all("Ada") == 3
        assert ours.files() == kept
        assert not folder.exists()
        assert ours.journal.drop_all("Ada") == 0
        assert ours.journal.drop_all("default") == 3
        assert ours.files() == {}


def test_dropping_leaves_what_people_put_beside_the_pages(tmp_path: Path) -> None:
    book = Book(tmp_path, "ada")
    book.remember("The door is blue.")
    book.sync()
    for name in ("README.md", "notes.conflict-of-mine.md", "2026-11-20.conflict-0123abcd.txt"):
        book.write(name, "Mine.\n")
    book.write("2026-11-20.conflict-0123abcd.md", "The journal's.\n")
    assert book.journal.drop_all("ada") == 2
    assert sorted(path.name for path in book.folder.path(TODAY).parent.iterdir()) == [
        "2026-11-20.conflict-0123abcd.txt",
        "README.md",
        "notes.conflict-of-mine.md",
    ]


def test_forgetting_gives_up_on_a_page_that_is_changed_all_the_time(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = book.remember("The door is blue.")
    book.remember("The roof is grey.")
    book.sync()
    monkeypatch.setattr(type(book.folder), "replace", lambda *_: None)
    with pytest.raises(StoreBusyError, match="keeps changing"):
        book.journal.forget("default", [memory.id])


def test_forgetting_says_what_could_not_be_written(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = book.remember("The door is blue.")
    book.remember("The roof is grey.")
    book.sync()

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(book.folder), "replace", no_space)
    with pytest.raises(StoreError, match="No space left on device"):
        book.journal.forget("default", [memory.id])
