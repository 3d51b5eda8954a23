"""What a search names can be read, by lines, and nothing else can."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import commonplace
from commonplace.errors import NotFoundError, StoreError, UsageError
from commonplace.types import Document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace import Engine

LONG = "The user wants short answers."


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / ".commonplace") as book:
        yield book


def test_a_page_is_read_by_the_lines_on_which_a_memory_stands(book: Engine) -> None:
    one = book.remember("First of all.", tier="long")
    two = book.remember(LONG, tier="long", category="preference")
    book.sync()
    place = book.places([one.id, two.id, "none"])[two.id]
    assert place.path == "MEMORY.md"
    assert set(book.places([one.id])) == {one.id}
    read = book.read(place.path, place.first_line, place.last_line - place.first_line + 1)
    assert LONG in read.text
    assert f"<!-- memory: {two.id} -->" in read.text
    assert "First of all." not in read.text
    assert (read.first_line, read.last_line) == (place.first_line, place.last_line)
    assert read.total_lines >= place.last_line


def test_places_follow_the_page_when_it_changes(book: Engine) -> None:
    kept = book.remember(LONG, tier="long")
    book.sync()
    before = book.places([kept.id])[kept.id]
    book.remember("Decided before.", tier="long", category="decision")
    book.sync()
    after = book.places([kept.id])[kept.id]
    assert after.first_line > before.first_line
    assert LONG in book.read("MEMORY.md", after.first_line, 3).text


def test_pages_are_listed_with_the_newest_day_first(book: Engine) -> None:
    for day in ("2026-03-01", "2026-03-03", "2026-03-02"):
        book.remember(f"Something of {day}.", at=f"{day}T12:00:00")
    book.remember(LONG, tier="long")
    book.sync()
    names = ["MEMORY.md", "memory/2026-03-03.md", "memory/2026-03-02.md", "memory/2026-03-01.md"]
    assert book.pages() == names


def test_a_memory_that_stands_on_no_page_is_read_by_its_id(book: Engine) -> None:
    kept = book.remember("One line.\nAnother line.", tier="medium")
    in_process = book.remember("Only for now.", tier="ultra")
    assert book.places([kept.id]) == {}
    assert book.read(f"memory:{kept.id}", 2, 1).text == "Another line."
    assert book.read(f"memory:{in_process.id}").text == "Only for now."


def test_a_memory_is_read_by_its_id_alone_and_by_every_reference_to_it(book: Engine) -> None:
    """Contexts and stored links name `@ID`, hits `memory:ID:2-2`, and a model repeats what it has read."""
    kept = book.remember("One line.\nAnother line.", tier="medium")
    for path in (kept.id, f"@{kept.id}", f"@memory:{kept.id}"):
        read = book.read(path)
        assert (read.path, read.text) == (f"memory:{kept.id}", "One line.\nAnother line.")
    read = book.read(f"memory:{kept.id}:2-2")
    assert (read.path, read.first_line, read.text) == (f"memory:{kept.id}", 2, "Another line.")


def test_a_reference_to_lines_is_read_from_there_on(book: Engine, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen.\nBlack.", "utf-8")
    book.index(tmp_path)
    assert book.read("tea.md:3-3").text == "Green.\nBlack."
    assert book.read("@tea.md:3-3", 4).text == "Black."
    assert book.read("@tea.md").first_line == 1


def test_an_artifact_is_read_as_it_was_indexed(book: Engine, tmp_path: Path) -> None:
    lines = [f"## Part {number}\n\nWords of part {number}, " + "and so on " * 40 for number in range(30)]
    text = "\n\n".join(lines)
    (tmp_path / "guide.md").write_text(text, "utf-8")
    book.index(tmp_path)
    (tmp_path / "guide.md").unlink()
    read = book.read("guide.md", 1, 2_000)
    assert [line.rstrip() for line in read.text.split("\n")] == [line.rstrip() for line in text.split("\n")]
    assert book.read("guide.md", 5, 1).text == "## Part 1"


def test_secrets_on_a_page_are_replaced_when_it_is_read(book: Engine, tmp_path: Path) -> None:
    book.remember(LONG, tier="long")
    book.sync()
    page = tmp_path / ".commonplace" / "MEMORY.md"
    token = "ghp_" + "a1B2" * 9
    page.write_text(f"{page.read_text('utf-8')}\nA token: {token}\n", "utf-8")
    assert token not in book.read("MEMORY.md").text


@pytest.mark.parametrize(
    "path",
    ["../MEMORY.md", "/etc/passwd", "store.db", "memory/../store.db", "memory", "", ".", "MEMORY.md/", "./MEMORY.md",
     "memory/notes.md", "memory/2026-03-01.md.draft", "\0", "memory:", "memory:nobody", "secret.md", "link.md"],
)  # fmt: skip
def test_nothing_else_can_be_read(book: Engine, tmp_path: Path, path: str) -> None:
    book.remember(LONG, tier="long")
    book.sync()
    (tmp_path / ".commonplace" / "memory").mkdir(exist_ok=True)
    (tmp_path / ".commonplace" / "memory" / "notes.md").write_text("no page", "utf-8")
    (tmp_path / "secret.md").write_text("not indexed", "utf-8")
    with pytest.raises(NotFoundError):
        book.read(path)


def test_a_page_that_is_a_link_is_not_followed(book: Engine, tmp_path: Path) -> None:
    book.remember(LONG, tier="long")
    book.sync()
    page = tmp_path / ".commonplace" / "MEMORY.md"
    page.unlink()
    (tmp_path / "elsewhere.md").write_text("secret", "utf-8")
    page.symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(StoreError, match="is a link"):
        book.read("MEMORY.md")


@pytest.mark.parametrize(("first", "lines"), [(0, 1), (1, 0), (1, 2_001), (True, 1), (1, "2")])
def test_lines_out_of_range_are_refused(book: Engine, first: int, lines: int) -> None:
    with pytest.raises(UsageError, match="give a whole number"):
        book.read("MEMORY.md", first, lines)


def test_lines_beyond_the_end_are_told(book: Engine) -> None:
    kept = book.remember("One line.", tier="medium")
    with pytest.raises(NotFoundError, match="ends with line 1, line 2 was asked for"):
        book.read(f"memory:{kept.id}", 2)


def test_the_middle_of_a_key_is_replaced_as_the_whole_is(book: Engine, tmp_path: Path) -> None:
    """Nothing in a line of it tells what it is."""
    book.remember(LONG, tier="long")
    book.sync()
    page = tmp_path / ".commonplace" / "MEMORY.md"
    key = [f"-----BEGIN {'RSA PRIVATE'} KEY-----", *["MIIEpAIBAAKCAQEA" * 4] * 6, f"-----END {'RSA PRIVATE'} KEY-----"]
    page.write_text("\n".join([page.read_text("utf-8"), *key, "after"]), "utf-8")
    whole = book.read("MEMORY.md")
    for first in range(1, whole.total_lines + 1):
        assert "MIIEpAIB" not in book.read("MEMORY.md", first, 3).text
    assert book.read("MEMORY.md", whole.total_lines, 1).text == "after"


def test_lines_are_counted_as_the_index_counts_them(book: Engine, tmp_path: Path) -> None:
    (tmp_path / "odd.md").write_text("one\ftwo\u2028three\nfour\r\nfive\x85six\n", "utf-8")
    book.index(tmp_path / "odd.md")
    kept = book.remember("one\ftwo\u2028three\r\nfour", tier="medium")
    assert book.read("odd.md", 2, 1).text == "four"
    assert book.read(f"memory:{kept.id}", 2, 1).text == "four"


def test_an_artifact_with_the_name_of_a_page_is_read_by_a_name_of_its_own(book: Engine, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# The project's own\n\nWords of the project.\n", "utf-8")
    book.index(tmp_path / "MEMORY.md")
    book.remember(LONG, tier="long")
    book.sync()
    assert "Words of the project." in book.read("./MEMORY.md").text
    assert LONG in book.read("MEMORY.md").text


def test_a_document_is_read_by_its_id(book: Engine) -> None:
    book.index_documents([Document("city", "Seoul is the capital of Korea.", kind="knowledge")])
    assert book.read("memory:city").text == "Seoul is the capital of Korea."


def test_a_folder_that_cannot_be_looked_at_is_no_error(book: Engine, tmp_path: Path) -> None:
    kept = book.remember(LONG, tier="medium")
    (tmp_path / ".commonplace" / "memory").write_text("a file", "utf-8")
    assert book.pages() == []
    assert book.places([kept.id]) == {}
    assert book.search("short answers", min_score=0).hits
    assert book.read(f"memory:{kept.id}").text == LONG
