"""BM25 with values worked out by hand from the formula."""

from __future__ import annotations

import math

import pytest
from tests.reference_store.bm25 import saturation, score

from commonplace.ranking.bm25 import inverse_document_frequency


def test_rarity_of_a_term_held_by_half_of_the_texts_is_ln_2() -> None:
    """ln(1 + (1000 - 500 + 0.5) / (500 + 0.5))."""
    assert inverse_document_frequency(1000, 500) == pytest.approx(math.log(2))


def test_rarity_is_never_negative_even_with_inconsistent_counts() -> None:
    """Tail and index are counted at different moments."""
    assert inverse_document_frequency(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert inverse_document_frequency(3, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert inverse_document_frequency(0, 0) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("count", "length", "mean", "value"),
    [
        (1, 10, 10.0, 1.0),  # 2.2 / (1 + 1.2)
        (2, 10, 10.0, 4.4 / 3.2),
        (1, 20, 10.0, 2.2 / 3.1),  # 1.2 * (0.25 + 0.75 * 2) = 2.1
        (1, 4, 3.5, 2.2 * 0.42944783),  # as Tantivy explains its own score
        (5, 7, 0.0, 11 / 6.2),
        (0, 7, 3.0, 0.0),
    ],
)
def test_saturation_of_a_term_in_a_field(count: int, length: int, mean: float, value: float) -> None:
    """k1 = 1.2 and b = 0.75."""
    assert saturation(count, length, mean) == pytest.approx(value)


def test_score_sums_fields_by_weight_with_one_rarity_and_counts_repeated_query_terms() -> None:
    """One term in title (weight 2, one of two texts) and content (both): it is as common as in the content, twice said.

    A heading inside an answer must not make a common word rare.
    """
    fields = {"title": ["a"], "content": ["a", "b"], "ignored": ["a"]}
    value = score(
        ["a", "a", "zzz"],
        fields,
        weights={"title": 2.0, "content": 1.0},
        documents=2,
        mean_lengths={"title": 1.0, "content": 2.0},
        frequencies={"title": {"a": 1}, "content": {"a": 2}},
    )
    assert value == pytest.approx(2 * (2 + 1) * math.log(1 + 0.5 / 2.5))


def test_a_text_without_the_terms_scores_zero() -> None:
    """Only passages that hold a term are lexical hits."""
    none = score(["x"], {"content": ["a"]}, weights={"content": 1.0}, documents=1, mean_lengths={}, frequencies={})
    assert none == 0.0
