"""Where a page and the store were both changed, nobody's words are lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, NOON, TODAY, Book, zone

from commonplace.formats.journal import parse_page
from commonplace.journal import folder

HOUR = 3600.0


def copies(book: Book) -> dict[str, str]:
    """Return the conflict copies, by path."""
    return {name: text for name, text in book.files().items() if ".conflict-" in name}


@pytest.mark.parametrize("tier", ["short", "long"])
def test_both_sides_changed_leaves_the_stores_words_on_the_page_and_the_others_in_a_copy(book: Book, tier: str) -> None:
    memory = book.remember("The door is blue.", tier=tier)
    name = LONG if tier == "long" else TODAY
    book.sync()
    book.keeper.update(memory.id, {"content": "The door is green."})
    book.edit("The door is blue.\n\n", "The door is red.\n\n", name)
    report = book.sync()
    [(path, text)] = copies(book).items()
    assert report.conflicts == (path,)
    assert len(report.notices) == 1
    assert path in report.notices[0]
    assert Path(path).name.startswith(f"{name.removesuffix('.md')}.conflict-")
    assert "The door is red." in text
    assert "The door is green." in text
    assert "red" not in book.page(name)
    assert "The door is green." in book.page(name)
    assert book.contents() == ["The door is green."]
    assert book.is_settled()
    assert list(copies(book)) == [path]


def test_the_same_change_on_both_sides_is_no_conflict(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.keeper.update(memory.id, {"content": "The door is red.", "tags": ["a"]})
    page = book.page().replace("door is blue", "door is red")
    book.write(TODAY, page.replace("<!--", "Tags: #a\n<!--"))
    report = book.sync()
    assert report.conflicts == ()
    assert len(book.store.versions("default", memory.id)) == 2
    assert copies(book) == {}
    assert book.is_settled()


def test_an_editor_left_open_that_saves_later_loses_nothing_of_either_side(book: Book) -> None:
    """It saves the page as it was when it was opened, with an edit of one block and a new note."""
    one, two = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    opened = book.page()
    book.clock.at += HOUR
    three = book.remember("The wall is white.")
    book.keeper.update(one.id, {"content": "The door is green."})
    book.sync()
    book.write(TODAY, opened.replace("roof is grey.", "roof is black.") + "\n## 12:30 Note\n\nA new note.\n")
    report = book.sync()
    assert report.conflicts == ()
    assert (report.added, report.updated, report.archived) == (1, 1, 0)
    assert book.get(three.id).record.status == "active"
    assert "The wall is white." in book.page()
    assert book.get(one.id).record.content == "The door is green."
    assert "The door is green." in book.page()
    assert book.get(two.id).record.content == "The roof is black."
    assert book.is_settled()


def note(words: str) -> str:
    return f"\n## 12:30 {words}\n"


def test_a_memory_that_an_editor_left_open_has_not_seen_is_put_back_once(book: Book) -> None:
    """Else what an agent remembers while a person types would be archived by the person's saving."""
    book.remember("The door is blue.")
    book.sync()
    opened = book.page()
    book.clock.at += 60
    memory = book.remember("The roof is grey.")
    book.sync()
    book.write(TODAY, opened + note("Tea"))
    report = book.sync()
    assert (report.added, report.archived) == (1, 0)
    [notice] = report.notices
    assert notice.startswith(f"memory/{TODAY} was saved without a memory that had come to it meanwhile; that was put")
    assert "The roof is grey." in book.page()
    assert book.is_settled()
    book.write(TODAY, opened + note("Coffee"))
    assert book.sync().archived == 2
    assert book.get(memory.id).record.status == "archived"
    assert book.is_settled()


def test_what_was_overlooked_is_put_back_though_the_page_changes_again(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that has taken in the note is done once more, and then the page holds nothing that was typed anew."""
    book.remember("The door is blue.")
    book.sync()
    opened = book.page()
    book.clock.at += 60
    book.remember("The roof is grey.")
    book.sync()
    book.write(TODAY, opened + note("Tea"))
    write, calls = folder.write_draft, []

    def save_meanwhile(draft: Path, *rest: object) -> object:
        calls.append(draft)
        done = write(draft, *rest)  # type: ignore[arg-type]
        if len(calls) == 2:
            book.write(TODAY, "Dear diary.\n\n" + book.page())
        return done

    monkeypatch.setattr(folder, "write_draft", save_meanwhile)
    assert book.sync().archived == 0
    assert len(calls) == 3
    assert "The roof is grey." in book.page()
    assert "Dear diary." in book.page()
    assert len(book.contents()) == 3
    assert book.is_settled()


def test_a_save_that_only_removes_the_latest_block_archives_it_the_second_time(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    opened = book.page()
    book.clock.at += 60
    book.remember("The roof is grey.")
    book.sync()
    book.write(TODAY, opened)
    assert book.sync().archived == 0
    assert book.is_settled()
    book.write(TODAY, opened)
    assert book.sync().archived == 1
    assert book.contents() == ["The door is blue."]
    assert book.is_settled()


def test_a_block_removed_beside_a_new_note_archives_where_as_late_a_one_is_there(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    opened = book.page()
    book.clock.at += 60
    one, two = book.remember("The roof is grey."), book.remember("The wall is white.")
    book.sync()
    [raw] = [block.raw for block in parse_page(book.page()).blocks if block.entry.id == two.id]
    book.write(TODAY, opened + "\n" + raw + note("Tea"))
    report = book.sync()
    assert (report.added, report.archived) == (1, 1)
    assert book.get(one.id).record.status == "archived"
    assert book.is_settled()


def test_a_page_rewritten_by_hand_archives_what_it_had_from_the_start(book: Book) -> None:
    book.remember("The door is blue.")
    book.sync()
    book.write(TODAY, f"# 2026-11-21\n{note('Tea')}")
    report = book.sync()
    assert (report.added, report.archived) == (1, 1)
    assert book.contents() == ["Tea"]
    assert book.is_settled()


def test_an_edit_of_an_archived_memory_is_kept_in_a_copy(book: Book) -> None:
    memory, _ = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    book.keeper.archive(memory.id)
    book.edit("The door is blue.", "The door is red.")
    report = book.sync()
    [text] = copies(book).values()
    assert "The door is red." in text
    assert "The memory was archived." in text
    assert len(report.conflicts) == 1
    assert book.contents() == ["The roof is grey."]
    assert "door" not in book.page()
    assert book.is_settled()


def test_a_block_removed_while_the_store_changed_it_comes_back(book: Book) -> None:
    memory, _ = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    book.keeper.update(memory.id, {"content": "The door is green."})
    [block] = [each for each in parse_page(book.page()).blocks if each.entry.id == memory.id]
    book.write(TODAY, book.page().replace(block.raw, ""))
    report = book.sync()
    assert report.archived == 0
    assert "The door is green." in book.page()
    assert book.is_settled()


def test_an_edit_of_what_rose_a_tier_is_taken_in(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.keeper.set_tier(memory.id, "medium")
    book.edit("The door is blue.", "The door is red.")
    report = book.sync()
    assert report.updated == 1
    assert "The door is red." in book.get(memory.id).record.content
    assert book.files() == {}
    assert book.is_settled()


def test_a_block_that_comes_back_after_its_memory_left_the_pages_goes_again(book: Book) -> None:
    """An editor that was open while a memory rose to the medium tier saves its page with the old block."""
    memory, _ = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    opened = book.page()
    book.keeper.set_tier(memory.id, "medium")
    book.sync()
    book.write(TODAY, opened)
    report = book.sync()
    assert (report.added, report.updated, report.conflicts) == (0, 0, ())
    assert "door" not in book.page()
    assert book.get(memory.id).record.tier == "medium"
    book.write(TODAY, opened.replace("door is blue.", "door is red."))
    assert book.sync().updated == 1
    assert "The door is red." in book.get(memory.id).record.content
    assert book.is_settled()


def test_a_page_saved_between_reading_and_replacing_is_not_lost(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody saves at the last moment before the page is replaced: the run sees it and begins anew."""
    book.remember("The door is blue.")
    book.sync()
    book.remember("The roof is grey.")
    write, calls = folder.write_draft, []

    def save_meanwhile(draft: Path, *rest: object) -> object:
        done = write(draft, *rest)  # type: ignore[arg-type]
        if not calls:
            calls.append(draft)
            book.edit("The door is blue.\n", "The door is red.\n\n\n## 13:00 Note\n\nWritten meanwhile.\n")
        return done

    monkeypatch.setattr(folder, "write_draft", save_meanwhile)
    report = book.sync()
    assert len(calls) == 1
    assert (report.added, report.updated, report.conflicts) == (1, 1, ())
    assert any("The door is red." in content for content in book.contents())
    assert any("Written meanwhile." in content for content in book.contents())
    assert "The roof is grey." in book.page()
    assert book.is_settled()


def test_somebody_who_saves_all_the_time_is_told_and_loses_nothing(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.remember("The door is blue.")
    book.sync()
    write, saved = folder.write_draft, []

    def save_meanwhile(draft: Path, *rest: object) -> object:
        done = write(draft, *rest)  # type: ignore[arg-type]
        if draft.name.startswith(TODAY) and "conflict" not in draft.name:
            saved.append(f"\nDear diary, {len(saved)}.\n")
            book.write(TODAY, book.page() + saved[-1])
        return done

    book.remember("The roof is grey.")
    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_draft", save_meanwhile)
        report = book.sync()
    assert report.notices == ("the pages keep changing; they are synchronized at the next call",)
    assert all(text in book.page() for text in saved)
    book.sync()
    assert all(text.strip() in book.page() for text in saved)
    assert "The roof is grey." in book.page()
    assert book.is_settled()


def test_a_memory_changed_while_its_page_is_being_written_is_written_again(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = book.remember("The door is blue.")
    write = folder.write_draft

    def update_meanwhile(draft: Path, *rest: object) -> object:
        book.keeper.update(memory.id, {"content": "The door is green."})
        return write(draft, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_draft", update_meanwhile)
        book.sync()
    assert "blue" in book.page()
    assert book.store.due("default") == [memory.id]
    report = book.sync()
    assert "The door is green." in book.page()
    assert report.conflicts == ()
    assert book.is_settled()


def test_a_change_in_the_store_while_an_edit_is_taken_in_is_kept_as_a_version(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.edit("The door is blue.", "The door is red.")
    update, calls = type(book.keeper).update, []

    def update_twice(self: object, id_: str, values: object) -> object:
        if not calls:
            calls.append(id_)
            update(book.keeper, id_, {"content": "The door is green."})
        return update(self, id_, values)  # type: ignore[arg-type]

    monkeypatch.setattr(type(book.keeper), "update", update_twice)
    report = book.sync()
    assert [each.record.content for each in book.store.versions("default", memory.id)] == [
        "The door is blue.",
        "The door is green.",
        "The door is red.",
    ]
    assert [notice for notice in report.notices if "is kept among its versions" in notice]
    assert book.is_settled()


def test_a_memory_archived_while_an_edit_is_taken_in_leaves_a_copy(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.edit("The door is blue.", "The door is red.")
    update = type(book.keeper).update

    def archive_first(self: object, id_: str, values: object) -> object:
        book.keeper.archive(id_)
        return update(self, id_, values)  # type: ignore[arg-type]

    monkeypatch.setattr(type(book.keeper), "update", archive_first)
    book.sync()
    book.sync()
    assert book.get(memory.id).record.status == "archived"
    [text] = copies(book).values()
    assert "The door is red." in text
    assert book.is_settled()


def test_the_same_conflict_makes_one_copy_and_another_one_makes_a_second(book: Book) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    for number, words in enumerate(["red", "red", "black"]):
        book.keeper.update(memory.id, {"content": f"The door is green for the {number}. time."})
        book.write(TODAY, f"## 12:00\n\nThe door is {words}.\n\n<!-- memory: {memory.id} -->\n")
        assert len(book.sync().conflicts) == 1
        assert book.is_settled()
    assert len(copies(book)) == 2


def test_a_conflict_whose_copy_cannot_be_kept_waits_on_the_page(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = book.remember("The door is blue.")
    book.sync()
    book.keeper.update(memory.id, {"content": "The door is green."})
    book.edit("The door is blue.", "The door is red.")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(book.folder), "keep", no_space)
        report = book.sync()
    assert report.conflicts == ()
    assert [notice for notice in report.notices if "No space left on device" in notice]
    assert "The door is red." in book.page()
    assert book.contents() == ["The door is green."]
    book.flush()
    assert len(copies(book)) == 1
    assert "The door is green." in book.page()
    assert book.is_settled()


def test_two_journals_on_one_store_double_nothing(tmp_path: Path) -> None:
    with zone("UTC"):
        one, two = Book(tmp_path), Book(tmp_path)
        one.remember("From one.")
        two.remember("From two.")
        for book in (one, two, one, two):
            book.sync()
        one.write(TODAY, one.page() + "\n## 13:00 Note\n\nBy hand.\n")
        reports = [two.sync(), one.sync(), two.sync()]
        assert [report.added for report in reports] == [1, 0, 0]
        assert sum(report.pages_written for report in reports) == 1
        assert one.contents() == two.contents() == ["From one.", "From two.", "Note\n\nBy hand."]
        assert one.is_settled()
        assert two.is_settled()


def test_an_agreement_of_another_form_is_no_agreement(book: Book) -> None:
    """A store that a later version wrote is read with care: nothing is archived or doubled."""
    from commonplace.types import JournalBlock

    memory = book.remember("The door is blue.", at=NOON)
    book.sync()
    with book.store.change_memories("default") as change:
        change.put(JournalBlock(memory.id, TODAY, "[2, {}]"))
    report = book.sync()
    assert (report.added, report.updated, report.archived, report.conflicts) == (0, 0, 0, ())
    assert book.is_settled()
