"""The vocabulary answers as a dict would."""

from __future__ import annotations

import pytest

from commonplace.models.static import SHIPPED, VOCABULARY, ModelData
from commonplace.text.tokens import Vocabulary


def test_every_shipped_piece_has_the_number_of_its_line() -> None:
    """Line t of the file is token t; a piece in another place would stand for another word's vector."""
    vocabulary = ModelData().vocabulary()
    lines = (SHIPPED / VOCABULARY).read_text(encoding="utf-8").splitlines()
    assert list(vocabulary) == lines
    assert [vocabulary.get(line) for line in lines] == list(range(len(vocabulary)))
    assert vocabulary.longest >= max(map(len, lines))


def test_what_is_no_piece_has_no_id() -> None:
    """Neither a piece's beginning, nor its end, nor two that stand side by side are pieces."""
    vocabulary = Vocabulary("ab\ncdé\n##f".encode())
    assert [vocabulary.get(piece) for piece in ("ab", "cdé", "##f")] == [0, 1, 2]
    strangers = ["", "a", "b", "abcdé", "cd", "é", "f", "AB", "\ud800", "ab\x00", "ab\n", "ab\ncdé"]
    assert [vocabulary.get(stranger) for stranger in strangers] == [None] * len(strangers)
    with pytest.raises(KeyError, match="abc"):
        vocabulary["abc"]


def test_strings_that_no_piece_looks_like_are_not_taken_for_one() -> None:
    """Buckets are few: every string shares one with some piece now and then, and only its letters tell."""
    vocabulary = ModelData().vocabulary()
    known = set(vocabulary)
    words = [f"{stem}{number}" for number in range(2_000) for stem in ("##", "x", "memory")]
    assert [word for word in words if vocabulary.get(word) is not None] == [word for word in words if word in known]


def test_a_vocabulary_of_nothing_knows_nothing() -> None:
    """A damaged file must end in a message of ours, not in NumPy's."""
    empty = Vocabulary(b"")
    assert (len(empty), list(empty), empty.get("a"), empty.longest) == (0, [], None, 0)
