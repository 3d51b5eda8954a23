"""An editor that was open while others wrote takes nothing back from them when it is saved, however often."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, TODAY, YESTERDAY, Book

import commonplace
from commonplace.formats.journal import parse_page

NOTE = "\n## Note {0}\n\n{1}\n"


@pytest.fixture
def book(book: Book) -> Book:
    """Return a store with two memories on a page that nobody has saved yet."""
    book.remember("Alpha decision: we use Postgres.", id="alpha", tags=["db"])
    book.remember("Beta note: deploys on Thursday.", id="beta")
    later(book)
    return book


def later(book: Book) -> None:
    """Write what is due, a minute later."""
    book.clock.at += 60
    book.flush()


def agent(book: Book, name: str) -> None:
    book.remember(f"Agent {name} was here.", id=name)
    later(book)


def save(book: Book, text: str, name: str = TODAY) -> tuple[str, ...]:
    """Save a page, and return what people are told."""
    book.clock.at += 60
    book.write(name, text)
    return book.sync().notices


def live(book: Book) -> list[str]:
    return sorted(each.owner.id for each in book.all() if each.expired_at is None)


def raw(book: Book, id_: str, name: str = TODAY) -> str:
    blocks = parse_page(book.page(name), "long" if name == LONG else "day").blocks
    return next(block.raw for block in blocks if block.entry.id == id_)


def test_an_editor_that_is_saved_several_times_doubles_and_archives_nothing(book: Book) -> None:
    """Its notes have no ids, whatever was written under them on the page since it read that."""
    opened = book.page()
    agent(book, "A")
    opened += NOTE.format(1, "first")
    save(book, opened)
    agent(book, "B")
    opened += NOTE.format(2, "second")
    for _ in range(3):
        [notice] = save(book, opened)
        assert notice == (
            f"memory/{TODAY} was saved without a memory that had come to it meanwhile; that was put back: reload the "
            f"page before you remove it"
        )
        assert book.contents() == [
            "Agent A was here.",
            "Agent B was here.",
            "Alpha decision: we use Postgres.",
            "Beta note: deploys on Thursday.",
            "Note 1\n\nfirst",
            "Note 2\n\nsecond",
        ]
        assert len(book.all()) == 6
        assert book.page().count("## Note 1") == book.page().count("## Note 2") == 1
        assert book.is_settled()


def test_a_note_that_the_store_has_changed_since_is_known_again_by_its_older_words(book: Book) -> None:
    opened = book.page() + NOTE.format(1, "first")
    save(book, opened)
    [note] = [id_ for id_ in live(book) if id_ not in ("alpha", "beta")]
    book.keeper.update(note, {"content": "Note 1, as an agent has it."})
    later(book)
    save(book, opened)
    assert book.get(note).record.content == "Note 1, as an agent has it."
    assert "Note 1, as an agent has it." in book.page()
    assert live(book) == sorted(["alpha", "beta", note])
    assert book.is_settled()


def test_a_note_with_a_secret_is_known_again(book: Book) -> None:
    opened = book.page() + NOTE.format(1, "The key is AKIAIOSFODNN7EXAMPLE.")
    save(book, opened)
    save(book, opened)
    assert len(book.all()) == 3
    assert book.is_settled()


def test_two_notes_of_the_same_words_stay_two(book: Book) -> None:
    opened = book.page() + 2 * NOTE.format(1, "first")
    save(book, opened)
    before = live(book)
    save(book, opened)
    assert live(book) == before
    assert len(before) == 4
    assert book.is_settled()


def test_an_editor_whose_notes_have_ids_by_now_takes_no_older_words_back(book: Book) -> None:
    opened = book.page() + NOTE.format(1, "first")
    save(book, opened)
    save(book, book.page().replace("deploys on Thursday.\n", "deploys on Friday.\n"))
    newer = book.get("beta").record.content
    assert "Friday" in newer
    save(book, opened)
    assert book.get("beta").record.content == newer
    assert "Friday" in book.page()
    assert book.is_settled()


def test_a_page_that_is_saved_as_it_was_takes_back_no_memory_at_once(book: Book) -> None:
    opened = book.page()
    agent(book, "A")
    agent(book, "B")
    [notice] = save(book, opened)
    assert "put back: remove it once more to archive it" in notice
    assert live(book) == ["A", "B", "alpha", "beta"]
    assert book.is_settled()
    assert save(book, opened) == tuple(
        f"memory '{id_}' was archived, since its entry was removed from memory/{TODAY}" for id_ in ("A", "B")
    )
    assert live(book) == ["alpha", "beta"]
    assert book.is_settled()


def test_what_came_to_a_page_is_put_back_where_another_entry_was_removed_beside_it(book: Book) -> None:
    opened = book.page().replace(raw(book, "alpha"), "")
    agent(book, "A")
    notices = save(book, opened)
    assert f"memory 'alpha' was archived, since its entry was removed from memory/{TODAY}" in notices
    assert live(book) == ["A", "beta"]
    assert book.is_settled()


def test_what_a_person_has_saved_on_a_page_is_archived_as_soon_as_it_is_removed(book: Book) -> None:
    agent(book, "A")
    save(book, f"Dear diary.\n\n{book.page()}")
    save(book, book.page().replace(raw(book, "A"), ""))
    assert live(book) == ["alpha", "beta"]
    assert book.is_settled()


def test_a_sync_is_no_person_who_has_seen_a_page(book: Book) -> None:
    opened = book.page()
    agent(book, "A")
    book.sync()
    save(book, opened)
    assert live(book) == ["A", "alpha", "beta"]


def test_older_words_are_no_edit_where_nobody_has_saved_the_newer_ones(book: Book) -> None:
    opened = book.page()
    book.keeper.update("beta", {"content": "Beta note: deploys on Friday."})
    later(book)
    for _ in range(2):
        [notice] = save(book, opened)
        assert notice.startswith(
            f"memory/{TODAY} was saved with older words of memory 'beta', which was changed in the"
        )
        assert book.get("beta").record.content == "Beta note: deploys on Friday."
        assert "Friday" in book.page()
        assert "Thursday" not in book.page()
        assert book.is_settled()


def test_older_words_are_an_edit_of_whoever_has_saved_the_newer_ones(book: Book) -> None:
    opened = book.page()
    book.keeper.update("beta", {"content": "Beta note: deploys on Friday."})
    later(book)
    save(book, f"Dear diary.\n\n{book.page()}")
    save(book, opened)
    assert book.get("beta").record.content == "Beta note: deploys on Thursday."
    assert book.is_settled()


def test_a_person_takes_an_own_edit_back(book: Book) -> None:
    opened = book.page()
    save(book, opened.replace("deploys on Thursday.\n", "deploys on Friday.\n"))
    save(book, opened)
    assert book.get("beta").record.content == "Beta note: deploys on Thursday."
    assert book.is_settled()


def test_an_edit_of_older_words_is_a_conflict_and_no_heading_of_theirs_becomes_text(book: Book) -> None:
    opened = book.page()
    book.keeper.update("beta", {"content": "Beta note: deploys on Friday."})
    later(book)
    book.write(TODAY, opened.replace("deploys on Thursday.\n", "deploys on Monday.\n"))
    report = book.sync()
    [path] = report.conflicts
    assert "Beta note: deploys on Monday." in book.files()[path]
    assert book.get("beta").record.content == "Beta note: deploys on Friday."
    assert "Monday" not in book.page()
    assert book.is_settled()


@pytest.mark.parametrize("left", ["# 2026-11-21\n", "# 2026-11-21\n\nDear diary.\n", "Mine.\n"])
def test_a_page_that_had_entries_and_has_none_is_written_again(book: Book, left: str) -> None:
    notices = save(book, left)
    assert notices == (f"memory/{TODAY} was deleted or emptied; it was written again from the store",)
    assert live(book) == ["alpha", "beta"]
    assert left.strip() in book.page()
    assert book.is_settled()


def test_all_entries_of_a_page_moved_to_another_leave_it_without_a_word(book: Book) -> None:
    page = book.page()
    book.write(YESTERDAY, page.replace("# 2026-11-21", "# 2026-11-20"))
    assert save(book, "# 2026-11-21\n\nDear diary.\n") == ()
    assert live(book) == ["alpha", "beta"]
    assert "alpha" in book.page(YESTERDAY)
    assert "alpha" not in book.page()
    assert book.is_settled()


def test_a_line_below_an_entry_is_a_memory_of_its_own_and_stays_when_that_is_forgotten(book: Book) -> None:
    save(book, f"{book.page()}\nCall the bank.\n")
    assert "Call the bank." in book.contents()
    assert book.get("beta").record.content == "Beta note: deploys on Thursday."
    assert book.is_settled()
    book.write(TODAY, f"{book.page()}\nNot taken in yet.\n")
    assert book.journal.forget("default", ["beta", "alpha"]) == 2
    assert "Call the bank." in book.page()
    assert "Not taken in yet." in book.page()


def test_a_line_below_an_entry_stays_when_that_is_archived(book: Book) -> None:
    save(book, f"# T\n\nMine.\n\n{raw(book, 'beta')}\nCall the bank.\n\n{raw(book, 'alpha')}")
    book.keeper.archive("beta")
    later(book)
    assert book.contents() == ["Alpha decision: we use Postgres.", "Call the bank."]
    assert "Mine.\n" in book.page()
    assert "deploys" not in book.page()
    assert book.is_settled()


def test_an_entry_moved_with_its_own_heading_changes_its_tier_and_nothing_else(book: Book) -> None:
    moved = raw(book, "beta")
    book.write(TODAY, book.page().replace(moved, ""))
    save(book, f"# Memory\n\n## Decisions\n\n{moved}", LONG)
    stored = book.get("beta")
    assert (stored.record.tier, stored.record.content) == ("long", "Beta note: deploys on Thursday.")
    assert "### 2026-11-21 Beta note: deploys on Thursday\n" in book.page(LONG)
    assert book.is_settled()
    moved = raw(book, "beta", LONG)
    book.write(LONG, book.page(LONG).replace(moved, ""))
    save(book, f"{book.page()}\n{moved}")
    stored = book.get("beta")
    assert (stored.record.tier, stored.record.content) == ("short", "Beta note: deploys on Thursday.")
    assert "## 12:00 Beta note: deploys on Thursday\n" in book.page()
    assert live(book) == ["alpha", "beta"]
    assert book.is_settled()


# An editor that writes in place, in two steps, while a process ends.


def test_a_process_that_ends_leaves_a_page_alone_that_is_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.journal.snapshot.QUIET_NS", 10**12)  # however slow this machine is
    at = datetime.now().astimezone()
    with commonplace.open(tmp_path) as book:
        for name in ("one", "two"):
            book.remember(f"Memory {name}.", id=name, at=at)
    page = tmp_path / "memory" / f"{at:%Y-%m-%d}.md"
    whole = page.read_text("utf-8")
    first, second = whole[: whole.index("Memory two.")], whole[whole.index("Memory two.") :]
    with page.open("w", encoding="utf-8") as editor:
        editor.write(first)
        editor.flush()
        with commonplace.open(tmp_path) as book:
            book.remember("Memory three.", id="three", at=at)
        editor.write(second.replace("Memory two.", "Memory two, edited."))
    with commonplace.open(tmp_path) as book:
        book.sync()
        kept = {memory.id: memory.content for memory in book.list()}
    assert kept == {"one": "Memory one.", "two": "Memory two, edited.", "three": "Memory three."}
    assert "Memory three." in page.read_text("utf-8")
