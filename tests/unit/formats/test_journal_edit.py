"""What is changed in a page, and that nothing else is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from commonplace.formats.journal import Entry, parse_page
from commonplace.formats.journal_edit import MergeResult, assign_ids, conflict_copy, digest, merge, update_page
from commonplace.settings.paths import is_page_name

PAGE = """# 2026-11-21
my own line
## 09:30   one
text one
<!--memory:a-->


## a note
mine
## 11:00 two

text two
Tags: #x, #y
<!-- memory: b -->
"""


def _by_id(entries: Iterable[Entry]) -> dict[str, Entry | None]:
    return {entry.id: entry for entry in entries}


def test_an_empty_page_gets_its_title() -> None:
    """A day begins with its first memory."""
    entries = [Entry("b", 600, "two", "Two."), Entry("a", 570, "one", "One.")]
    assert update_page("", _by_id(entries), title="2026-11-21") == (
        "# 2026-11-21\n\n## 09:30 one\n\nOne.\n\n<!-- memory: a -->\n\n## 10:00 two\n\nTwo.\n\n<!-- memory: b -->\n"
    )
    assert update_page("", _by_id([]), title="2026-11-21") == ""


def test_an_entry_is_replaced_in_its_place() -> None:
    """The blank lines around it are the person's."""
    changed = update_page(PAGE, {"a": Entry("a", 570, "one", "New.")}, title="")
    assert changed == PAGE.replace(
        "## 09:30   one\ntext one\n<!--memory:a-->\n", "## 09:30 one\n\nNew.\n\n<!-- memory: a -->\n"
    )


def test_an_entry_that_says_the_same_is_not_reformatted() -> None:
    """How a person spaces a page is no concern of ours."""
    same = {"a": Entry("a", 570, "one", "text one"), "b": Entry("b", 660, "two", "text two", ("x", "y"))}
    assert update_page(PAGE, same, title="") == PAGE


def test_a_removed_entry_takes_only_its_own_lines() -> None:
    """The notes around it stay."""
    start, end = PAGE.index("## 09:30"), PAGE.index("## a note")
    assert update_page(PAGE, {"a": None, "unknown": None}, title="") == PAGE[:start] + PAGE[end:]


def test_words_below_a_removed_entry_stay_as_a_note_of_their_own() -> None:
    """They are no part of it, nor of what stands before it."""
    text = "# T\n\nmine\n\n## 09:30 t\n\none\n<!-- memory: a -->\n\ntwo, and more. Three.\n"
    assert update_page(text, {"a": None}, title="") == "# T\n\nmine\n\n## two, and more\n\ntwo, and more. Three.\n"


def test_an_entry_removed_before_another_section_leaves_no_heading() -> None:
    """What stands below a heading of its own needs none of ours."""
    entry = "### 2026-11-21 t\n\none\n\n<!-- memory: new -->\n\n"
    text = f"## Mine\n\n{entry}## note\n<!-- memory: m -->\n"
    assert update_page(text, {"new": None}, title="T", kind="long") == text.replace(entry, "")


def test_a_section_of_ours_goes_with_its_last_entry_and_comes_back_with_it() -> None:
    """A heading over nothing tells nothing; a heading of a person's, or words of theirs below ours, stay."""
    full = f"# Memory\n\n## Decisions\n\n{_written('d')}\n{_written('e', 2)}\n## Lessons\n\n{_written('l')}"
    without = update_page(full, {"d": None, "e": None}, title="Memory", kind="long")
    assert without == f"# Memory\n\n## Lessons\n\n{_written('l')}"
    back = {"d": _long("d", "Decisions"), "e": _long("e", "Decisions", 2)}
    assert update_page(without, back, title="Memory", kind="long") == full
    assert "## Decisions" in update_page(full, {"d": None}, title="Memory", kind="long")
    moved = {"d": None, "e": None, "l": _long("l", "Decisions")}
    assert update_page(full, moved, title="Memory", kind="long") == f"# Memory\n\n## Decisions\n\n{_written('l')}\n"
    for kept in ("## Mine\n\n", "## Decisions\n\nMy own words.\n\n"):
        text = kept + _written("d")
        assert update_page(text, {"d": None}, title="Memory", kind="long") == kept


def test_entries_of_one_day_stand_by_their_rank() -> None:
    """What is taken out and put back, as by undoing, stands where it stood."""
    ranks = {"a": (1.0,), "b": (2.0,), "c": (3.0,)}
    text = "".join(f"{_written(id_)}\n" for id_ in "abc")
    page = f"# Memory\n\n## Lessons\n\n{text}"[:-1]
    for gone in ("a", "b", "c", "ab", "ac", "bc"):
        without = update_page(page, dict.fromkeys(gone), title="Memory", kind="long", ranks=ranks)
        back = {id_: _long(id_, "Lessons") for id_ in reversed(gone)}
        assert update_page(without, back, title="Memory", kind="long", ranks=ranks) == page
    assert update_page(page, {"n": _long("n", "Lessons")}, title="Memory", kind="long", ranks=ranks) == (
        f"{page}\n{_written('n')}"
    )


def test_an_entry_is_added_before_the_first_later_one() -> None:
    """A note without a time stays with what it was written below."""
    new = "## 10:15 t\n\nNew.\n\n<!-- memory: c -->\n\n"
    changed = update_page(PAGE, _by_id([Entry("c", 615, "t", "New.")]), title="")
    assert changed == PAGE.replace("## 11:00 two", f"\n{new}## 11:00 two")


def test_entries_of_one_minute_keep_the_order_given() -> None:
    """A conversation is read downwards."""
    text = update_page("", _by_id([Entry("z", 600, "t", "1"), Entry("a", 600, "t", "2")]), title="T")
    text = update_page(text, _by_id([Entry("b", 600, "t", "3")]), title="T")
    assert [block.entry.text for block in parse_page(text).blocks] == ["1", "2", "3"]


def test_adding_an_entry_twice_adds_it_once() -> None:
    """A process that was killed after it wrote a page does the same again."""
    entry = Entry("c", 615, "t", "New.")
    once = update_page(PAGE, _by_id([entry]), title="")
    assert update_page(once, _by_id([entry]), title="") == once
    assert update_page(PAGE, {"c": entry}, title="") == once


def test_a_page_keeps_its_line_ends_its_mark_and_its_missing_last_line_end() -> None:
    """An editor that wrote them wants them back."""
    page = "\ufeff## 09:30 a\r\n\r\nx\r\n<!-- memory: a -->"
    replaced = update_page(page, {"a": Entry("a", 570, "a", "y")}, title="")
    assert replaced == "\ufeff## 09:30 a\r\n\r\ny\r\n\r\n<!-- memory: a -->"
    added = update_page(page, _by_id([Entry("b", 571, "b", "y")]), title="")
    assert added == page + "\r\n\r\n## 09:31 b\r\n\r\ny\r\n\r\n<!-- memory: b -->\r\n"


MEMORY = """# Memory

## Mine

hello

## Lessons

Learned the hard way:

- Never on Friday
- Ask first
  <!-- memory: b -->

### 2026-02-01 later

Later.

<!-- memory: l -->
"""


def _long(memory_id: str, section: str, day: int = 1) -> Entry:
    return Entry(memory_id, None, "t", "Text.", (), (), section, date(2026, 1, day))


def _written(memory_id: str, day: int = 1) -> str:
    return f"### 2026-01-{day:02d} t\n\nText.\n\n<!-- memory: {memory_id} -->\n"


def test_sections_that_are_missing_are_made_in_their_order() -> None:
    """Decisions, Preferences, Lessons, Events; what a person calls a section stays where it is."""
    new = [_long("e", "Events"), _long("p", "Preferences"), _long("d", "Decisions")]
    assert update_page(MEMORY, _by_id(new), title="Memory", kind="long") == MEMORY.replace(
        "## Lessons\n",
        f"## Decisions\n\n{_written('d')}\n## Preferences\n\n{_written('p')}\n## Lessons\n",
    ) + (f"\n## Events\n\n{_written('e')}")
    assert (
        update_page("", _by_id(new[2:]), title="Memory", kind="long") == f"# Memory\n\n## Decisions\n\n{_written('d')}"
    )


def test_an_entry_is_added_to_its_section_by_date() -> None:
    """Below the list that a person keeps there."""
    changed = update_page(
        MEMORY, _by_id([_long("n", "Lessons"), _long("m", "Mine"), _long("d", "Decisions")]), title="", kind="long"
    )
    assert changed == MEMORY.replace("### 2026-02-01", f"{_written('n')}\n### 2026-02-01").replace(
        "hello\n\n", f"hello\n\n{_written('m')}\n## Decisions\n\n{_written('d')}\n"
    )


def test_an_entry_whose_section_has_changed_moves() -> None:
    """A lesson that became a decision stands among the decisions."""
    moved = update_page(MEMORY, {"l": _long("l", "Mine")}, title="", kind="long")
    assert moved == MEMORY[: MEMORY.index("### 2026-02-01")].replace("hello\n\n", f"hello\n\n{_written('l')}\n")


def test_an_item_of_a_list_stays_one() -> None:
    """A heading in its place would take the items below it."""
    same = Entry("b", None, "Ask", "Ask first", (), (), "Lessons", date(2026, 1, 1))
    assert update_page(MEMORY, {"b": same}, title="", kind="long") == MEMORY
    other = Entry("b", None, "Ask", "Ask twice", ("x",), (), "Lessons", date(2026, 1, 1))
    assert update_page(MEMORY, {"b": other}, title="", kind="long") == MEMORY.replace(
        "- Ask first\n", "- Ask twice\n  Tags: #x\n"
    )
    assert update_page(MEMORY, {"b": None}, title="", kind="long") == MEMORY.replace(
        "- Ask first\n  <!-- memory: b -->\n", ""
    )


def test_a_new_note_gets_its_id_and_nothing_else() -> None:
    """What a person wrote is not touched."""
    assert assign_ids(PAGE, {1: "n"}) == PAGE.replace("mine\n", "mine\n<!-- memory: n -->\n")
    assert assign_ids("## a", {0: "n"}) == "## a\n<!-- memory: n -->"
    assert assign_ids("## a\r\n\r\nx\r\n\r\n", {0: "n"}) == "## a\r\n\r\nx\r\n<!-- memory: n -->\r\n\r\n"
    assert assign_ids(MEMORY, {0: "n"}, "long") == MEMORY.replace("Friday\n", "Friday\n  <!-- memory: n -->\n")


def test_a_copy_gets_an_id_in_place_of_the_one_it_repeats() -> None:
    """Both go on as memories of their own."""
    text = "## t\none\n<!-- memory: a -->\n## t\ntwo\n<!-- memory: a -->\n"
    assert assign_ids(text, {1: "b"}) == "## t\none\n<!-- memory: a -->\n## t\ntwo\n<!-- memory: b -->\n"


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "\ufeff\r\n"])
def test_a_blank_page_counts_as_empty(text: str) -> None:
    """An editor leaves a line end behind when all is deleted."""
    assert update_page(text, _by_id([Entry("a", 0, "t", "x")]), title="T").lstrip("\ufeff").startswith("# T")


# Who is right when a page and the store differ, and what becomes of the other.

AGREED = Entry("a", 570, "Postgres", "We chose Postgres.", ("decision", "billing"))
EDITED = replace(AGREED, text="We chose MySQL.")
STORED = replace(AGREED, text="We chose SQLite.")
EMPTIED = replace(AGREED, text=" \n")


@pytest.mark.parametrize(
    ("base", "file", "store", "verdict"),
    [
        (digest(AGREED), AGREED, AGREED, "same"),
        (digest(AGREED), EDITED, EDITED, "same"),
        (digest(AGREED), None, None, "same"),
        (digest(AGREED), EDITED, AGREED, "take file"),
        (digest(AGREED), None, AGREED, "take file"),
        (digest(AGREED), EMPTIED, AGREED, "take file"),
        (digest(AGREED), AGREED, STORED, "take store"),
        (digest(AGREED), AGREED, None, "take store"),
        (digest(AGREED), None, STORED, "take store"),
        (digest(AGREED), EDITED, STORED, "conflict"),
        (digest(AGREED), EDITED, None, "conflict"),
        ("", None, AGREED, "take store"),
        ("", EDITED, None, "take file"),
        ("", EDITED, AGREED, "conflict"),
    ],
)
def test_each_side_is_compared_with_what_both_last_agreed_on(
    base: str, file: Entry | None, store: Entry | None, verdict: MergeResult
) -> None:
    """What one side alone changed holds; where both did, the store does, and a text is never lost for it."""
    assert merge(base, file, store) == verdict


def test_a_note_that_says_less_than_the_store_is_no_change_of_either() -> None:
    """A person's note has no time; the store gave it one when it took the note in."""
    note = replace(AGREED, at_minutes=None)
    base, store_base = digest(note), digest(AGREED)
    assert merge(base, note, AGREED, store_base=store_base) == "same"
    assert merge(base, None, AGREED, store_base=store_base) == "take file"
    assert merge(base, note, STORED, store_base=store_base) == "take store"
    assert merge(base, replace(note, text="New."), STORED, store_base=store_base) == "conflict"


def test_the_digest_is_of_what_an_entry_means() -> None:
    """Formatters change blanks, people sort tags, and neither is an edit."""
    looser = replace(AGREED, id="b", text="\nWe chose Postgres.  \n\n", tags=("billing", "decision", "billing"))
    assert digest(looser) == digest(AGREED)
    assert digest(replace(AGREED, text="a\n\n\nb")) == digest(replace(AGREED, text="a\n\nb"))
    others = [
        replace(AGREED, text="a\nb"),
        replace(AGREED, text="a\n\nb"),
        replace(AGREED, text="a\n\n b"),
        replace(AGREED, at_minutes=571),
        replace(AGREED, topic="MySQL"),
        replace(AGREED, tags=("decision",)),
        replace(AGREED, links=("x",)),
        replace(AGREED, section="Lessons"),
        replace(AGREED, day=date(2026, 11, 21)),
    ]
    assert len({digest(entry) for entry in [AGREED, *others]}) == 10


def test_a_conflict_copy_says_what_happened_and_holds_both_versions() -> None:
    """A person decides; the entry can be put back as it is."""
    name, text = conflict_copy("2026-11-21.md", EDITED, STORED, datetime(2026, 11, 21, 10, 42, tzinfo=UTC))
    assert name == "2026-11-21.conflict-1d19d4e3.md"
    assert (
        text
        == """# Conflict in 2026-11-21.md

At 2026-11-21 10:42+00:00 the memory `a` had been changed in 2026-11-21.md and in the store. The store's version stays.

This file is not read. To have the page's version after all, put its entry back in 2026-11-21.md; then delete this file.

---

The page's version:

## 09:30 Postgres

We chose MySQL.

Tags: #decision #billing
<!-- memory: a -->

---

The store's version:

## 09:30 Postgres

We chose SQLite.

Tags: #decision #billing
<!-- memory: a -->
"""
    )


def test_conflict_copies_are_told_apart_by_memory_and_text_and_are_no_pages() -> None:
    """The same conflict met twice is one file; one that was read as a page would bring the loser back."""
    when = datetime(2026, 11, 21, 10, 42, tzinfo=UTC)
    name, text = conflict_copy("MEMORY.md", EDITED, None, when, kind="long")
    assert name.startswith("MEMORY.conflict-")
    assert not is_page_name(name)
    assert text.endswith("The store's version:\n\nThe memory was archived.\n")
    again, _ = conflict_copy("MEMORY.md", EDITED, STORED, datetime(2027, 1, 1, tzinfo=UTC), kind="long")
    assert again == name
    for other in [replace(EDITED, id="b"), replace(EDITED, text="x")]:
        assert conflict_copy("MEMORY.md", other, None, when, kind="long")[0] != name
