"""Cosine similarity, by values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from commonplace.knowledge.retrieve import cosine_similarity, cosines


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 0, 0], [1, 0, 0], 1.0),
        ([1, 0], [0, 1], 0.0),
        ([1, 2], [-1, -2], -1.0),
        ([3, 4], [4, 3], 24 / 25),
        ([1, 1], [1, 0], math.sqrt(0.5)),
        ([2, 4, 6], [1, 2, 3], 1.0),
    ],
)
def test_the_cosine_of_two_vectors(one: list[float], other: list[float], expected: float) -> None:
    assert cosine_similarity(one, other) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([], []),
        ([1.0], [1.0, 2.0]),
        ([0.0, 0.0], [1.0, 2.0]),
        ([math.nan, 1.0], [1.0, 1.0]),
        ([1.0, math.nan], [1.0, 1.0]),
        ([math.inf, 1.0], [1.0, 1.0]),
    ],
)
def test_what_cannot_be_compared_is_not_alike(one: list[float], other: list[float]) -> None:
    """A vector of another embedder, or of an empty text, must not stop a search."""
    assert cosine_similarity(one, other) == cosine_similarity(other, one) == 0.0


def test_very_large_and_very_small_vectors_are_compared_too() -> None:
    """Their squares are beyond what a number holds."""
    assert cosine_similarity([1e300, 1e300], [1e-300, 1e-300]) == pytest.approx(1.0)


def test_cosines_of_rows_are_those_of_the_vectors() -> None:
    """The rows are stored as bytes, each with its own scale, which the cosine does not see."""
    query = np.array([3, 4, 0], np.float32)
    rows = np.array([[127, 0, 0], [0, 127, 0], [0, 0, 127], [-64, 0, 0], [0, 0, 0], [76, 102, 0]], np.int8)
    found = cosines(query, rows)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([0.6, 0.8, 0.0, -0.6, 0.0, 0.99997], abs=1e-4)
    exact = [cosine_similarity(query.tolist(), row) for row in rows.astype(float).tolist()]
    assert found.tolist() == pytest.approx(exact, abs=1e-6)


def test_a_query_of_zeros_is_like_nothing() -> None:
    assert cosines(np.zeros(2, np.float32), np.ones((3, 2), np.int8)).tolist() == [0.0, 0.0, 0.0]
