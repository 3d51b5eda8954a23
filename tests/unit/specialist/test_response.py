"""The budget of a response, whatever grows with its size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.formats.csp import Response
from commonplace.models.static import StaticEmbedder
from commonplace.specialist.verbs import fits
from commonplace.text.budget import MAX_TOKENS, largest, most_tokens

MODEL = StaticEmbedder.load()


class Counting:
    """Counts words as tokens, and how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def count_tokens(self, text: str) -> int:
        self.calls += 1
        return len(text.split())


@given(st.lists(st.integers(0, 3000), max_size=120))
def test_the_largest_size_that_fits_is_found_however_uneven_the_parts(parts: list[int]) -> None:
    book = Counting()

    def make(size: int) -> Response:
        return Response(rationale="word " * sum(parts[:size]) + ".")

    expected = max((size for size in range(1, len(parts) + 1) if 4 + sum(parts[:size]) <= MAX_TOKENS), default=0)
    assert largest(len(parts), lambda size: fits(book, make(size))) == expected  # type: ignore[arg-type]
    assert book.calls <= 16


@given(st.text(st.sampled_from("aé각ﬃ東ǖ😀\u0390…-, ↔") | st.characters(exclude_categories=["Cs"])))
def test_a_text_has_no_more_tokens_than_the_bound_that_stands_in_for_counting(text: str) -> None:
    """Most responses are short and not counted."""
    assert MODEL.count_tokens(text) <= most_tokens(text)


def test_a_response_that_is_short_enough_is_not_counted() -> None:
    book = Counting()
    assert fits(book, Response(content="x" * 2400))  # type: ignore[arg-type]
    assert book.calls == 0
    assert not fits(book, Response(content="x " * 2600))  # type: ignore[arg-type]
    assert book.calls == 1
