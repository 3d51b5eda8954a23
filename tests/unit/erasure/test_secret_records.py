"""Cleaning texts of every shape: passages that share a secret, JSON, and secrets that only another text gives away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.erasure.secrets import Redactor, known_secrets, patterns_of
from commonplace.exchange.items import clean_passages
from commonplace.redaction import find_secrets
from commonplace.text.chunk import chunk
from commonplace.types import Chunk

MIXED = "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEaXoKi"
TOKEN = "ghp" + "_" + MIXED[:36]
PASSWORD = "hunter" + "2x9"
DASHES = "-" * 5
LINES = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us{n:04d}" for n in range(12)]
KEY = "\n".join([f"{DASHES}BEGIN PRIVATE KEY{DASHES}", *LINES, f"{DASHES}END PRIVATE KEY{DASHES}"])


class TestPassages:
    def test_a_key_that_fills_several_passages_goes_from_all_of_them(self) -> None:
        """Only the first passage says what it is; the lines of the others are nobody's words."""
        cut = chunk(
            f"Our key:\n{KEY}\nThat was it.", max_tokens=12, overlap=3, count_tokens=lambda text: len(text) // 20
        )
        assert len(cut) > 3
        assert sum(bool(find_secrets(each.text)) for each in cut) < len(cut)
        cleaner = Redactor()
        cleaned = clean_passages(cut, cleaner)
        assert not any(line in each.text for each in cleaned for line in LINES)
        assert cleaned[0].text.startswith("Our key:\n[redacted: private key]")
        assert cleaned[-1].text.endswith("That was it.")
        assert cleaner.kinds == {KEY: "private key"}
        assert [(each.start_line, each.end_line) for each in cleaned] == [
            (each.start_line, each.end_line) for each in cut
        ]

    def test_a_token_that_a_long_line_was_cut_in_goes_from_both_passages(self) -> None:
        pieces = [Chunk(f"It is {TOKEN[:17]}", 1, 1), Chunk(f"{TOKEN[17:]} and more", 1, 1)]
        cleaner = Redactor()
        assert [each.text for each in clean_passages(pieces, cleaner)] == [
            "It is [redacted: github token]",
            "[redacted: github token] and more",
        ]
        assert cleaner.kinds == {TOKEN: "github token"}

    def test_passages_that_overlap_count_their_secret_once(self) -> None:
        pieces = [Chunk(f"First\nIt is {TOKEN} now", 1, 2), Chunk(f"It is {TOKEN} now\nLast", 2, 3)]
        cleaner = Redactor()
        assert [each.text for each in clean_passages(pieces, cleaner)] == [
            "First\nIt is [redacted: github token] now",
            "It is [redacted: github token] now\nLast",
        ]
        assert list(cleaner.kinds.values()) == ["github token"]

    def test_a_heading_is_cleaned_too(self) -> None:
        [cleaned] = clean_passages([Chunk("Text", 1, 1, heading=f"About {TOKEN}")], Redactor())
        assert cleaned.heading == "About [redacted: github token]"

    @given(
        st.lists(st.text("ab é\n.#`", max_size=60), min_size=1, max_size=6),
        st.integers(5, 40),
        st.integers(0, 4),
        st.sampled_from([TOKEN, KEY]),
    )
    def test_no_secret_survives_any_way_of_cutting(
        self, texts: list[str], size: int, overlap: int, secret: str
    ) -> None:
        """What is cleaned is found clean again, and what had no secret is as it was."""
        text = f"\n{secret}\n".join(texts)
        cut = chunk(text, max_tokens=size, overlap=overlap, count_tokens=lambda text: len(text) // 8)
        cleaned = clean_passages(cut, Redactor())
        again = Redactor()
        assert clean_passages(cleaned, again) == cleaned
        assert again.kinds == {}
        assert not any(secret in each.text or LINES[5] in each.text for each in cleaned)
        plain = [each for each in cut if "M" not in each.text and "g" not in each.text and "-" not in each.text]
        assert clean_passages(plain, Redactor()) == tuple(plain)


class TestMetadata:
    def test_keys_and_values_are_cleaned_at_every_depth(self) -> None:
        cleaned = Redactor().value({TOKEN: [{"a": TOKEN}], "plain": 7, "none": None})
        placeholder = "[redacted: github token]"
        assert cleaned == {placeholder: [{"a": placeholder}], "plain": 7, "none": None}

    def test_a_key_may_tell_that_its_value_is_a_password(self) -> None:
        cleaner = Redactor()
        given = {"db": {"password": PASSWORD, "host": PASSWORD}}
        assert cleaner.value(given) == {"db": {"password": "[redacted: password]", "host": PASSWORD}}
        assert cleaner.kinds == {PASSWORD: "password"}

    def test_two_keys_never_become_one(self) -> None:
        placeholder = "[redacted: github token]"
        given = {TOKEN: 1, TOKEN[:-1] + "z": 2, placeholder: 3, f"{placeholder} 2": 4}
        assert sorted(Redactor().value(given).values()) == [1, 2, 3, 4]


class TestKnown:
    def test_a_secret_that_another_text_calls_one_is_found_alone(self) -> None:
        """Forty characters are an AWS secret key only where AWS is named."""
        first = Redactor()
        first.text(f"aws_secret_access_key = {MIXED}")
        assert first.kinds == {MIXED: "aws secret key"}
        assert Redactor().text(f"use {MIXED} é") == f"use {MIXED} é"
        again = Redactor(finder=known_secrets(first.kinds))
        assert again.text(f"é use {MIXED}.") == "é use [redacted: aws secret key]."

    def test_a_part_of_a_longer_word_is_none_of_them(self) -> None:
        known = known_secrets({MIXED: "aws secret key"})
        assert Redactor(finder=known).text(f"a{MIXED} {MIXED}é") == f"a{MIXED} {MIXED}é"

    def test_a_short_password_is_left_where_nothing_calls_it_one(self) -> None:
        """It may be the name of a machine in the next sentence."""
        assert Redactor(finder=known_secrets({PASSWORD: "password"})).text(f"ssh {PASSWORD}") == f"ssh {PASSWORD}"

    def test_of_two_that_begin_alike_the_longer_goes_whole(self) -> None:
        """The rest of a password, left behind a placeholder, would be found by nobody any more."""
        known = known_secrets({MIXED: "aws secret key"})
        assert Redactor(finder=known).text(f"password = {MIXED}-Tail77x") == "password = [redacted: password]"

    def test_what_is_a_part_of_a_name_is_kept_where_that_is_said(self) -> None:
        cleaner = Redactor(skip=frozenset({TOKEN}))
        assert cleaner.text(f"<!-- memory: {TOKEN} --> {PASSWORD}") == f"<!-- memory: {TOKEN} --> {PASSWORD}"
        assert cleaner.kinds == {}


class TestWhatIsLookedForInFiles:
    def test_a_private_key_is_looked_for_line_by_line_and_its_frame_is_not(self) -> None:
        """A page may have indented it; and a manual may speak of such frames."""
        patterns = patterns_of([KEY])
        assert patterns.find(f"    {LINES[3]}".encode()) == {LINES[3][:48].encode(), LINES[3][-48:].encode()}
        assert patterns.find(f"{DASHES}BEGIN PRIVATE KEY{DASHES}".encode()) == set()

    @pytest.mark.parametrize("secret", [TOKEN, PASSWORD])
    def test_a_secret_is_looked_for_as_it_is_and_in_lower_case(self, secret: str) -> None:
        patterns = patterns_of([secret])
        assert patterns.find(f"x{secret}x{secret.lower()}x".encode()) == {secret.encode(), secret.lower().encode()}
