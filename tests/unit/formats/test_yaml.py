"""What stands at the start of a text, and what is made of a broken one."""

from __future__ import annotations

import pytest

from commonplace.formats.yaml import MAX_LENGTH, NONE, parse_front_matter


def test_yaml_front_matter_is_read() -> None:
    """It is where people say what a document is."""
    front = parse_front_matter("---\nTitle: A\ntags: [x, y]\n---\n# Body\n")
    assert front.values == {"title": "A", "tags": ["x", "y"]}
    assert (front.lines, front.fault) == (4, "")


def test_toml_front_matter_is_read() -> None:
    """Hugo sites write it so."""
    front = parse_front_matter('+++\ntitle = "A"\n+++\nBody\n')
    assert (front.values, front.lines) == ({"title": "A"}, 3)


@pytest.mark.parametrize("text", ["", "# A\n", "---\nno end\n", "\n---\na: 1\n---\n", "---\nA sentence.\n---\nmore\n"])
def test_texts_without_front_matter_have_none(text: str) -> None:
    """A thematic break may open a text, too."""
    assert parse_front_matter(text) == NONE


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("a: [1", "in line"),
        ("a: b: c", "mapping values are not allowed"),
        ("when: 2024-13-45", "month must be in 1..12"),
        ("? [a]\n: b", "unhashable"),
        ("- a\n- b", "not a mapping"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: &x [1]\nb: *x", "aliases are not allowed"),
        ("a: " + "[" * 100, "more than 64 brackets"),
    ],
)
def test_broken_front_matter_has_a_fault_and_raises_nothing(block: str, fault: str) -> None:
    """One careless file must not stop a build, nor one that was made to."""
    front = parse_front_matter(f"---\n{block}\n---\nText\n")
    assert fault in front.fault
    assert front.values == {}


def test_an_anchor_that_nothing_repeats_is_harmless() -> None:
    """`R &D` in a title is no attack."""
    assert parse_front_matter('---\ntitle: "R &D and *this*"\n---\n').values == {"title": "R &D and *this*"}


def test_a_block_over_the_limit_is_taken_for_text() -> None:
    """A megabyte between two rules is a document, and parsing it would take seconds."""
    assert parse_front_matter("---\n" + "a: 1\n" * MAX_LENGTH + "---\n") == NONE
