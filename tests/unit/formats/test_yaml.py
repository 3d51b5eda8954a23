"""What stands at the start of a text, and what is made of a broken one."""

from __future__ import annotations

import pytest

from commonplace.formats.yaml import (
    ABSENT,
    LONG_NUMBER,
    MAX_DIGITS,
    MAX_LENGTH,
    is_long_number,
    load_yaml,
    parse_front_matter,
)


def test_yaml_front_matter_is_read() -> None:
    """It is where people say what a document is."""
    front = parse_front_matter("---\nTitle: A\ntags: [x, y]\n---\n# Body\n")
    assert front.values == {"title": "A", "tags": ["x", "y"]}
    assert (front.lines, front.fault) == (4, "")


@pytest.mark.parametrize("text", ["", "# A\n", "---\nno end\n", "\n---\na: 1\n---\n", "---\nA sentence.\n---\nmore\n"])
def test_texts_without_front_matter_have_none(text: str) -> None:
    """A thematic break may open a text, too."""
    assert parse_front_matter(text) == ABSENT


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
    assert parse_front_matter("---\n" + "a: 1\n" * MAX_LENGTH + "---\n") == ABSENT


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("form", ["{:d}", "0x{:x}"])
def test_a_number_may_have_as_many_digits_as_its_fault_says(form: str, sign: str) -> None:
    """Python writes no longer one, so nobody could be told what it is."""
    too_large = 10**MAX_DIGITS
    longest = too_large - 1
    written = "9" * MAX_DIGITS if form == "{:d}" else form.format(longest)
    assert load_yaml(f"[{sign}{written}]") == ([int(f"{sign}1") * longest], "")
    written = "1" + "0" * MAX_DIGITS if form == "{:d}" else form.format(too_large)
    assert load_yaml(f"[{sign}{written}]") == (None, LONG_NUMBER)
    assert LONG_NUMBER == "a number has more than 4,300 digits"
    assert [is_long_number(int(f"{sign}1") * each) for each in (longest, too_large)] == [False, True]


@pytest.mark.parametrize("number", ["9" * 5_000, f"0x{'f' * 5_000}"])
def test_a_longer_number_in_front_matter_is_a_fault_of_it(number: str) -> None:
    front = parse_front_matter(f"---\nn: {number}\n---\nText\n")
    assert (front.values, front.lines) == ({}, 3)
    assert front.fault == f"front matter cannot be read: {LONG_NUMBER}"
