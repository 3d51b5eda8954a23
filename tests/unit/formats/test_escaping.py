"""What nobody sees in a text is written out where it leaves; what people write in any script is left alone."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.formats.escaping import (
    CHARACTERS,
    HIDDEN,
    harmless,
    harmless_json,
    harmless_line,
    unescape,
    visible,
    visible_json,
)


def flag(code: str) -> str:
    """Return the flag of a part of a country: a black flag, its code in tags, and the tag that ends it."""
    return "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in code) + "\U000e007f"


def tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


@pytest.mark.parametrize(
    "text",
    [
        "שלום עולם",
        "السلام عليكم",
        "می\u200cخواهم",
        "क्\u200dष",
        "👩🏽\u200d💻 👨\u200d👩\u200d👧",
        "❤\ufe0f 1\ufe0f\u20e3 葛\U000e0100 ❤\ufe0f\ufe0f",
        "🇩🇪🇫🇷",
        flag("gbsct"),
        f"{flag('gbeng')}{flag('gbwls')} {flag('usca')}",
        "ภาษา\u200bไทย",
        "tab\tand\nline",
    ],
)
def test_what_people_write_is_left_alone(text: str) -> None:
    """Letters of every script, joiners, selectors and flags, also those that are made of tags."""
    assert (visible(text), harmless(text)) == (text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u202eevil\u202c", r"pay\u202eevil\u202c"),
        ("\u2066a\u2069\u200f\u061c", r"\u2066a\u2069\u200f\u061c"),
        (tags("hi"), r"\U000e0068\U000e0069"),
        (flag("gbsct")[:-1], "\U0001f3f4" + "".join(rf"\U{ord(tag):08x}" for tag in tags("gbsct"))),
        (flag("ab"), "\U0001f3f4" + r"\U000e0061\U000e0062\U000e007f"),
        (flag("abcdef")[-3:], r"\U000e0065\U000e0066\U000e007f"),
        (flag("gbsct") + tags("x"), flag("gbsct") + r"\U000e0078"),
        ("a\ufe0f\U000e0141\U000e0142", "a\ufe0f" + r"\U000e0141\U000e0142"),
        ("\x1b[2J\x9b\x7f\x08", r"\x1b[2J\x9b\x7f\x08"),
        ("\ud800\u2028\ufff9\U000e0001", r"\ud800\u2028\ufff9\U000e0001"),
    ],
)
def test_what_hides_or_turns_text_is_written_out(text: str, shown: str) -> None:
    assert (visible(text), harmless(text), harmless_line(text)) == (shown, shown, shown)


def test_line_ends_stay_for_a_model_and_are_shown_on_a_terminal_where_they_overwrite() -> None:
    """A file of Windows has a carriage return in each line."""
    assert (visible("a\r\nb\tc"), harmless("a\r\nb\tc"), harmless_line("a\nb")) == ("a\r\nb\tc", "a\\r\nb\tc", "a\\nb")


ODD = flag("gbsct") + "\u202e\U000e0041\U000e0141\ufe0f\\x19u2n0e"
ANY = st.text(st.characters() | st.sampled_from(ODD), max_size=20)


@given(ANY)
def test_nothing_hidden_is_left_and_showing_twice_changes_nothing(text: str) -> None:
    shown = visible(text)
    assert re.search(HIDDEN, shown) is None
    assert visible(shown) == shown


@given(ANY)
def test_json_keeps_the_text_or_shows_it(text: str) -> None:
    """A program reads the text as it is stored, a model reads what it is shown; neither stream holds it raw."""
    kept, shown = harmless_json({"text": text}), visible_json({"text": text})
    assert json.loads(kept)["text"] == json.loads(json.dumps(text))
    assert visible(json.loads(shown)["text"]) == visible(text)
    assert re.search(HIDDEN, kept + shown) is None


@given(st.text(st.sampled_from("ab/. é" + "\u202e\U000e0041\u200f"), max_size=12))
def test_name_that_a_model_was_shown_leads_to_what_is_stored(name: str) -> None:
    assert unescape(visible(name)) == name


def test_written_characters_that_hide_nothing_stay_as_they_are() -> None:
    r"""A path of Windows may have `\x41` in it."""
    assert unescape(r"C:\x41\u0041\U00110000\U000e0041") == r"C:\x41\u0041\U00110000" + "\U000e0041"
    assert re.fullmatch(f"[{CHARACTERS}]+", "\u202e\U000e0041\U000e0141")
