"""Late interaction: exact values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from commonplace.ranking.late_interaction import find_matches, weighted_share


def test_each_query_token_takes_its_best_match_in_each_passage() -> None:
    """This is the maximum that late interaction sums up."""
    similarities = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, 0.5, 1.0, 0.6]], dtype=np.float32)
    tokens = np.array([0, 1, 3, 2], dtype=np.uint16)
    best = find_matches(similarities, tokens, np.array([2, 0, 1, 1])).best()
    assert best == pytest.approx(np.array([[1.0, 0.5], [0.0, 0.0], [0.2, 0.6], [0.0, 1.0]]))


def test_a_token_counts_the_less_the_farther_from_the_beginning_it_stands() -> None:
    """With a fading of 1, what has 3 tokens before it counts a half: 0.5 at the beginning equals 1 at the fourth."""
    similarities = np.array([[0.0, 1.0, 0.5]], dtype=np.float32)
    tokens = np.array([1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 1], dtype=np.uint16)
    best = find_matches(similarities, tokens, np.array([3, 4, 4])).best(1.0)
    assert best == pytest.approx(np.array([[1.0], [0.5], [0.5]]))


def test_fading_may_prefer_a_poorer_match_that_stands_earlier() -> None:
    """0.9 at once is more than 1 after eight tokens, which is worth 1 / √2 where the fading is 8."""
    similarities = np.array([[0.0, 0.9, 1.0]], dtype=np.float32)
    matches = find_matches(similarities, np.array([1, *[0] * 7, 2], np.uint16), np.array([9]))
    assert matches.best(8.0) == pytest.approx(np.array([[0.9]]))
    late = find_matches(similarities, np.array([*[0] * 8, 2], np.uint16), np.array([9]))
    assert late.best(8.0) == pytest.approx(np.array([[2**-0.5]]))
    assert late.best().tolist() == [[1.0]]


def test_passages_without_tokens_and_queries_without_tokens_are_no_error() -> None:
    """Empty files and queries of unknown script reach this code."""
    nothing = find_matches(np.zeros((0, 4), np.float32), np.array([1], np.uint16), np.array([1])).best()
    assert nothing.shape == (1, 0)
    empty = find_matches(np.ones((1, 4), np.float32), np.array([], np.uint16), np.array([0, 0])).best(8.0)
    assert empty.tolist() == [[0.0], [0.0]]


def test_the_share_is_weighted_by_rarity_and_zero_without_weights() -> None:
    """(3 × 1 + 1 × 0.5) / 4 = 0.875."""
    values = np.array([[1.0, 0.5]], dtype=np.float32)
    assert weighted_share(values, np.array([3.0, 1.0], np.float32)) == pytest.approx([0.875])
    assert weighted_share(values, np.zeros(2, np.float32)).tolist() == [0.0]
