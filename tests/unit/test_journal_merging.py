"""Who is right when a page and the store differ, and what becomes of the other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from commonplace.formats.journal import Entry, is_page_name
from commonplace.formats.journal_edit import Verdict, conflict_copy, digest, merge

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
    base: str, file: Entry | None, store: Entry | None, verdict: Verdict
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
    copy = conflict_copy("2026-11-21.md", EDITED, STORED, datetime(2026, 11, 21, 10, 42, tzinfo=UTC))
    assert copy.name == "2026-11-21.conflict-1d19d4e3.md"
    assert (
        copy.text
        == """# Conflict in 2026-11-21.md

At 2026-11-21 10:42+00:00 the memory `a` had been changed in 2026-11-21.md and in the store. The store's version holds.

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
    copy = conflict_copy("MEMORY.md", EDITED, None, when, kind="long")
    assert copy.name.startswith("MEMORY.conflict-")
    assert not is_page_name(copy.name)
    assert copy.text.endswith("The store's version:\n\nThe memory was archived.\n")
    again = conflict_copy("MEMORY.md", EDITED, STORED, datetime(2027, 1, 1, tzinfo=UTC), kind="long")
    assert again.name == copy.name
    for other in [replace(EDITED, id="b"), replace(EDITED, text="x")]:
        assert conflict_copy("MEMORY.md", other, None, when, kind="long").name != copy.name
