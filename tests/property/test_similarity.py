"""What holds of every text that is compared with another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.similarity import BANDS, contained_share, digest, is_near_duplicate, normal_form, signature

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)
WORDS = st.lists(st.sampled_from("alpha beta gamma delta not 5 MB Bob to from is . , ?".split()), max_size=12)
PROSE = WORDS.map(" ".join)


@given(ANY_TEXT)
def test_every_text_has_a_signature_of_the_promised_shape(text: str) -> None:
    """Whatever can be stored is compared first, lone surrogates included."""
    found = signature(text)
    assert len(found.digest) == 64
    assert len(found.bands) in {0, BANDS}
    assert all(0 <= band < 2**63 for band in found.bands)


@given(ANY_TEXT)
def test_the_normal_form_is_its_own(text: str) -> None:
    """A form that changes when taken twice would give a re-imported text another digest."""
    assert normal_form(normal_form(text)) == normal_form(text)


@given(ANY_TEXT | PROSE)
def test_every_text_says_the_same_as_itself_in_other_spacing(text: str) -> None:
    """Wrapping a line anew adds no knowledge."""
    assert is_near_duplicate(text, f"\n {'  '.join(text.split())} ")


@given(ANY_TEXT | PROSE, ANY_TEXT | PROSE)
def test_saying_the_same_goes_both_ways(new: str, old: str) -> None:
    """Which of two memories came first must not matter."""
    assert is_near_duplicate(new, old) == is_near_duplicate(old, new)


@given(PROSE, st.integers(2, 10**9), st.integers(2, 10**9))
def test_another_number_is_another_statement(text: str, one: int, other: int) -> None:
    """Figures are what memories are kept for."""
    assert is_near_duplicate(f"{text} {one} days", f"{text} {other} days") == (one == other)


@given(ANY_TEXT | PROSE)
def test_equal_digests_mean_equal_forms(text: str) -> None:
    """The digest is looked up without the text at hand."""
    assert digest(text) == digest(normal_form(text))


@given(ANY_TEXT | PROSE, ANY_TEXT | PROSE)
def test_contained_share_is_a_share(text: str, passage: str) -> None:
    """It is compared with a threshold."""
    assert 0.0 <= contained_share(text, passage) <= 1.0
    if normal_form(text):
        assert contained_share(text, text) == 1.0
