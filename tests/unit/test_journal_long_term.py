"""Where a memory stands in MEMORY.md, and which ones have room there."""

from __future__ import annotations

import pytest

from commonplace.formats.journal import SECTIONS, category_of, fit, section_of


@pytest.mark.parametrize(
    ("category", "section"),
    [
        ("decision", "Decisions"),
        ("Preference", "Preferences"),
        ("lesson", "Lessons"),
        ("fact", "Lessons"),
        ("context", "Events"),
        ("event", "Events"),
        ("", "Lessons"),
        ("contacts", "Lessons"),
    ],
)
def test_the_category_chooses_the_section(category: str, section: str) -> None:
    """Whatever has no section of its own is something learned."""
    assert section_of(category) == section


def test_a_section_of_a_persons_own_is_a_category() -> None:
    """A note written there stays there when it is written again."""
    assert category_of("Contacts") == "contacts"
    assert section_of("contacts", ["Mine", "Contacts"]) == "Contacts"
    assert section_of("decision", ["Decision"]) == "Decisions"


@pytest.mark.parametrize("section", [*SECTIONS, "lessons", "Straße"])
def test_a_section_is_found_by_the_category_it_gives(section: str) -> None:
    """Else a note would wander."""
    assert section_of(category_of(section), [section]).casefold() == section.casefold()


def test_memories_are_taken_in_order_while_there_is_room() -> None:
    """One that is too long keeps out no other, and the page stays under its limit."""
    counts = [("a", 6000), ("b", 4000), ("c", 900), ("d", 99), ("e", 1), ("f", 0)]
    assert fit(counts) == ("b", "c", "d", "f")
    assert fit(counts, used=1000) == ("c", "d", "e", "f")
    assert fit(counts, limit=6001) == ("a", "f")
    assert fit([("a", 10)], used=5000) == ()
