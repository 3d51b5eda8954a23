"""Cosines of any embedder become similarities that mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from commonplace.consolidation.runtime import BY_EMBEDDER, KNOTS, scale_of


def _similarities(name: str, *cosines: float) -> list[float]:
    scale = scale_of(name)
    return [round(float(value), 6) for value in scale(np.array(cosines, np.float32))]


@pytest.mark.parametrize("name", [*BY_EMBEDDER, "openai:text-embedding-3-small"])
def test_equal_vectors_are_alike_by_one_and_opposite_ones_by_nothing(name: str) -> None:
    assert _similarities(name, 1.0, 0.0, -1.0, 1.0000001) == [1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("name", [*BY_EMBEDDER, "openai:text-embedding-3-small"])
def test_a_higher_cosine_is_never_a_lower_similarity(name: str) -> None:
    scale = scale_of(name)
    assert (np.diff(scale(np.linspace(-1, 1, 401).astype(np.float32))) >= 0).all()


def test_between_two_knots_similarity_goes_straight_from_one_to_the_other() -> None:
    """At 0.65, halfway between 0.32 and 0.44; at 0.9 the value of the knot itself."""
    assert _similarities("static", 0.65, 0.9) == [0.38, 0.707]


def test_the_hashing_embedder_counts_shared_words_so_that_its_cosine_is_its_similarity() -> None:
    assert _similarities("hashing", 0.25, 0.8) == [0.25, 0.8]


def test_an_unknown_embedder_is_taken_for_a_sentence_transformer() -> None:
    assert _similarities("ollama:nomic-embed-text", 0.8, 0.95) == _similarities("minilm", 0.8, 0.95) == [0.6, 0.76]


def test_what_is_no_number_is_like_nothing() -> None:
    assert _similarities("static", float("nan")) == [0.0]


def test_every_fitted_scale_has_a_value_for_each_knot() -> None:
    fitted = [scale for name, scale in BY_EMBEDDER.items() if name != "hashing"]
    assert [len(scale.similarities) for scale in fitted] == [len(KNOTS)] * len(fitted)
