"""Where memories stand on pages: which page, in which words, and how much of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.journal.book import LONG, NOON, TODAY, Book, model, zone

from commonplace.journal.folder import directory_name
from commonplace.journal.sync import SyncReport

DAY = 86_400.0


def test_a_short_memory_stands_on_the_page_of_its_day(book: Book) -> None:
    memory = book.remember("We chose Postgres for billing.", tags=["decision"])
    report = book.sync()
    assert book.files() == {
        "memory/2026-11-21.md": "# 2026-11-21\n\n"
        "## 12:00 We chose Postgres for billing\n\n"
        "We chose Postgres for billing.\n\n"
        f"Tags: #decision\n<!-- memory: {memory.id} -->\n"
    }
    assert report == SyncReport(pages_written=1)
    assert book.is_settled()


def test_memories_of_several_days_stand_on_their_days_in_the_order_of_their_times(book: Book) -> None:
    book.remember("Tea at four.", at=NOON + 4 * 3600)
    book.remember("Rain in the morning.", at=NOON - 4 * 3600)
    book.remember("It snowed.", at=NOON - DAY)
    book.sync()
    assert set(book.files()) == {"memory/2026-11-20.md", "memory/2026-11-21.md"}
    page = book.page()
    assert page.index("## 08:00 Rain") < page.index("## 16:00 Tea")
    assert "## 12:00 It snowed" in book.page("2026-11-20.md")


@pytest.mark.parametrize(
    ("name", "day", "time"),
    [("UTC", "2026-11-21", "23:30"), ("JST-9", "2026-11-22", "08:30"), ("EST5", "2026-11-21", "18:30")],
)
def test_the_day_is_that_of_this_machine(tmp_path: Path, name: str, day: str, time: str) -> None:
    with zone(name):
        book = Book(tmp_path)
        book.remember("Late.", at=datetime(2026, 11, 21, 23, 30, tzinfo=UTC))
        book.sync()
        assert list(book.files()) == [f"memory/{day}.md"]
        assert f"## {time} Late" in book.page(f"{day}.md")


def test_a_long_memory_stands_in_its_section_of_the_long_term_page(book: Book) -> None:
    decided = book.remember("We deploy on Mondays.", tier="long", category="decision")
    likes = book.remember("Ada likes short answers.", tier="long", category="preference")
    book.sync()
    assert book.files() == {
        "MEMORY.md": "# Memory\n\n"
        "## Decisions\n\n### 2026-11-21 We deploy on Mondays\n\nWe deploy on Mondays.\n\n"
        f"<!-- memory: {decided.id} -->\n\n"
        "## Preferences\n\n### 2026-11-21 Ada likes short answers\n\nAda likes short answers.\n\n"
        f"<!-- memory: {likes.id} -->\n"
    }
    assert book.is_settled()


def test_medium_memories_stand_on_no_page(book: Book) -> None:
    book.remember("A turn of a talk.", tier="medium")
    assert book.sync() == SyncReport()
    assert book.files() == {}
    assert book.is_settled()


def test_a_memory_that_rises_a_tier_goes_from_page_to_page(book: Book) -> None:
    memory = book.remember("The pump leaks.")
    book.sync()
    book.keeper.set_tier(memory.id, "medium")
    assert book.sync().pages_written == 0
    assert book.files() == {}
    book.keeper.set_tier(memory.id, "long")
    book.sync()
    assert list(book.files()) == [LONG]
    book.keeper.set_tier(memory.id, "short")
    assert book.sync().moved == 1
    assert "The pump leaks." in book.page()
    assert LONG not in book.files()
    assert book.is_settled()


def test_an_update_an_archiving_and_a_restoring_reach_the_page(book: Book) -> None:
    memory, other = book.remember("The door is blue."), book.remember("The roof is grey.")
    book.sync()
    book.keeper.update(memory.id, {"content": "The door is green.", "tags": ["house"]})
    book.sync()
    assert "The door is green.\n\nTags: #house\n" in book.page()
    assert "blue" not in book.page()
    book.keeper.archive(memory.id)
    book.sync()
    assert "door" not in book.page()
    book.keeper.restore(memory.id)
    book.sync()
    assert "The door is green.\n\nTags: #house\n" in book.page()
    book.keeper.archive(memory.id)
    book.keeper.archive(other.id)
    book.sync()
    assert book.files() == {}
    assert book.is_settled()


def test_a_new_time_takes_a_memory_to_the_page_of_its_new_day(book: Book) -> None:
    memory = book.remember("The fair.")
    book.sync()
    book.keeper.update(memory.id, {"at": NOON + DAY})
    assert book.sync().moved == 1
    assert list(book.files()) == ["memory/2026-11-22.md"]
    assert book.is_settled()


def test_links_are_written_by_id_and_follow_the_store(book: Book) -> None:
    one, two = book.remember("Invoices are late."), book.remember("The bank was closed.")
    book.keeper.link(one.id, two.id, "related", 1.0)
    book.sync()
    assert f"Links: [[{two.id}]]\n<!-- memory: {one.id} -->" in book.page()
    book.keeper.unlink(one.id, two.id, None)
    book.sync()
    assert "Links:" not in book.page()
    assert book.is_settled()


def test_the_long_term_page_keeps_the_most_retained_under_5000_tokens(book: Book) -> None:
    """Every memory has the same length, so those that are used are there, and of the others the latest."""
    for number in range(60):
        book.clock.at += 60
        book.remember(f"Lesson {number}: " + "measure before you cut " * 25, tier="long", id=f"m{number:02}")
    book.keeper.touch("m03")
    book.keeper.touch("m04")
    book.sync()
    page = book.page(LONG)
    assert len(model().tokenize(page)) < 5000
    there = [number for number in range(60) if f"<!-- memory: m{number:02} -->" in page]
    latest = range(60 - (len(there) - 2), 60)
    assert there == [3, 4, *latest]
    assert 30 < len(there) < 60
    assert book.is_settled()
    assert book.is_settled()


def test_what_leaves_the_long_term_page_for_want_of_room_comes_back_when_it_is_used(book: Book) -> None:
    long = "measure before you cut " * 150
    for number in range(12):
        book.clock.at += 60
        book.remember(f"Lesson {number}: {long}", tier="long", id=f"m{number:02}")
    book.sync()
    assert "memory: m00" not in book.page(LONG)
    book.keeper.touch("m00")
    report = book.sync()
    assert "memory: m00" in book.page(LONG)
    assert report.archived == report.updated == 0
    assert len(book.contents()) == 12
    assert book.is_settled()


def test_a_memory_too_long_for_the_long_term_page_keeps_out_no_other(book: Book) -> None:
    book.remember("word " * 6000, tier="long", id="huge")
    book.remember("Small.", tier="long", id="small")
    book.sync()
    page = book.page(LONG)
    assert "memory: small" in page
    assert "memory: huge" not in page
    assert book.is_settled()


def test_words_of_a_person_on_the_long_term_page_count_and_stay(book: Book) -> None:
    book.write(LONG, "# Ours\n\n" + "word " * 4900 + "\n")
    for number in range(10):
        book.remember(f"Lesson {number}. " + "measure before you cut " * 5, tier="long")
    book.sync()
    page = book.page(LONG)
    assert page.startswith("# Ours\n\nword word")
    assert len(model().tokenize(page)) < 5000
    assert "<!-- memory:" in page
    assert page.count("<!-- memory:") < 10
    assert book.is_settled()


def test_a_page_that_is_full_takes_no_more_and_says_so(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("folder", "write_pages"):
        monkeypatch.setattr(f"commonplace.journal.{module}.MAX_PAGE_BYTES", 5_000)
    for number in range(20):
        book.remember(f"Note {number}: " + "so much to say " * 40, id=f"m{number:02}")
    report = book.sync()
    assert len(book.page().encode()) <= 5_000
    assert book.page().count("<!-- memory:") >= 2
    assert [notice for notice in report.notices if "is full" in notice]
    assert len(book.contents()) == 20
    assert replace(book.sync(), notices=()) == SyncReport()


@pytest.mark.parametrize("namespace", ["ada", "Ada", "../up", "a/b", "Größe", "CON", ".", "x" * 300, "~", "%41"])
def test_other_namespaces_have_directories_of_their_own(tmp_path: Path, namespace: str) -> None:
    with zone("UTC"):
        ours, theirs = Book(tmp_path), Book(tmp_path, namespace)
        ours.remember("Ours.")
        ours.remember("Ours for long.", tier="long")
        ours.sync()
        before = ours.files()
        theirs.remember("Theirs.")
        theirs.remember("Theirs for long.", tier="long")
        theirs.sync()
        folder = f"memory/{directory_name(namespace)}"
        assert set(ours.files()) == {"MEMORY.md", f"memory/{TODAY}", f"{folder}/{TODAY}", f"{folder}/MEMORY.md"}
        assert {name: text for name, text in ours.files().items() if name in before} == before
        assert "Theirs." in theirs.page()
        assert theirs.is_settled()
        assert ours.is_settled()
        assert ours.contents() == ["Ours for long.", "Ours."]


def test_directory_names_are_told_apart_and_safe() -> None:
    names = ["ada", "Ada", "ADA", "a.b", "a/b", "a%b", "..", ".", "", "x" * 200, "x" * 201, "x" * 202, "ä", "a\u0308"]
    written = [directory_name(name) for name in names]
    assert len({name.casefold() for name in written}) == len(names)
    assert directory_name("ada") == "ada"
    assert directory_name("Ada") == "%41da"
    assert directory_name("a/b") == "a%2fb"
    assert directory_name("..") == "%2e%2e"
    assert all(len(name.encode()) <= 200 and "/" not in name for name in written)


def test_a_namespace_that_was_never_written_gets_nothing(tmp_path: Path) -> None:
    book = Book(tmp_path, "nobody")
    assert book.sync() == SyncReport()
    assert book.files() == {}
    assert book.store.namespaces() == []


@pytest.mark.parametrize(
    "content",
    [
        "## 09:00 not a heading\n\nTags: #no\n<!-- memory: no -->",
        "```\n## code\n",
        "\ufeffa mark",
        "tab\tand\r\ncarriage\rreturn",
        "\x00 and \x1b[31m red",
        "Links: [[nothing]]",
        "- a list\n- of two\n",
        "מה נשמע",
        "word" * 5000,
        "# Title\n\n\n\nfar below\n\n\n",
        "   indented\n\ttab",
        "&#13; and &amp;",
        "---\ntitle: x\n---",
    ],
)
@pytest.mark.parametrize("tier", ["short", "long"])
def test_whatever_a_memory_says_no_sync_takes_it_for_an_edit(book: Book, content: str, tier: str) -> None:
    book.keeper.remember([{"content": content, "tier": tier, "tags": ["#a", "b c", "d,e"]}], force=True)
    book.sync()
    [stored] = book.all()
    for _ in range(2):
        assert book.is_settled()
    assert book.all() == [stored]
    book.write(LONG if tier == "long" else TODAY, book.page(LONG if tier == "long" else TODAY) + "\n")
    assert book.sync().updated == 0
    assert book.all() == [stored]
