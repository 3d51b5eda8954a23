"""Fusion and lending between neighbours: exact values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from commonplace.ranking.calibration import literal_share
from commonplace.search.rank import bounded, fuse, lend, ramp, standardise


def test_standardised_values_have_mean_0_and_deviation_1() -> None:
    """The values 1, 2, 3 have mean 2 and standard deviation √(2/3)."""
    assert standardise(np.array([1, 2, 3], np.float32)) == pytest.approx([-1.224745, 0.0, 1.224745], abs=1e-5)


def test_a_signal_that_is_equal_everywhere_says_nothing() -> None:
    """Division by a zero deviation must not make a signal infinite."""
    assert standardise(np.array([0.4, 0.4], np.float32)).tolist() == [0.0, 0.0]
    assert standardise(np.array([0.22961336, 0.22961338, 0.22961336], np.float32)).tolist() == [0.0, 0.0, 0.0]
    assert standardise(np.array([], np.float32)).tolist() == []


def test_each_group_is_standardised_by_itself() -> None:
    """Cosines of one embedder lie around 0.2, of another around 0.7: the second must not come first for that."""
    values, groups = np.array([0.1, 0.7, 0.3, 0.6, 0.8], np.float32), np.array([0, 1, 0, 1, 1], np.uint8)
    assert standardise(values, groups) == pytest.approx([-1.0, 0.0, 1.0, -1.224745, 1.224745], abs=1e-5)
    assert standardise(values, np.zeros(5, np.uint8)).tolist() == standardise(values).tolist()


@pytest.mark.parametrize(("value", "share"), [(0.0, 0.0), (0.3, 0.0), (0.375, 0.25), (0.6, 1.0), (2.0, 1.0)])
def test_a_ramp_rises_from_0_to_1_between_its_ends(value: float, share: float) -> None:
    """0.375 lies a quarter of the way from 0.3 to 0.6."""
    assert ramp(value, 0.3, 0.6) == pytest.approx(share)


def test_fusion_adds_weighted_signals_and_passes_over_the_rest() -> None:
    """2 × (−1, 1) + (0.5, 1) × (1, −1) = (−1.5, 1): a weight may differ by candidate."""
    signals = {name: np.array(values, np.float32) for name, values in (("a", [-1, 1]), ("b", [1, -1]), ("c", [9, 1]))}
    weights = {"a": np.array([2, 2], np.float32), "b": np.array([0.5, 1], np.float32)}
    assert fuse(signals, weights) == pytest.approx([-1.5, 1.0])


def test_neighbours_lend_a_share_of_the_mean_of_their_values_and_strangers_nothing() -> None:
    """Turn 20 receives 0.3 × (1 + 4) / 2 from 10 and 30; number 99 is no candidate."""
    pairs = np.array([(20, 10), (20, 30), (30, 99), (10, 20)])
    received = lend(np.array([1.0, 2.0, 4.0], np.float32), np.array([10, 20, 30]), pairs, 0.3)
    assert received == pytest.approx([0.6, 0.75, 0.0])


def test_what_is_received_shrinks_with_the_length_of_a_turn() -> None:
    """Of 2, a turn of 10 or 60 tokens keeps all, one of 240 a quarter; one without any token must not divide by 0."""
    received = bounded(np.full(4, 2.0, np.float32), np.array([10, 60, 240, 0]), 60)
    assert received == pytest.approx([2.0, 2.0, 0.5, 2.0])


def test_a_neighbour_below_the_mean_takes_nothing_away() -> None:
    """A small answer next to an irrelevant remark is as good as one that stands alone."""
    received = lend(np.array([-2.0, 1.0], np.float32), np.array([1, 2]), np.array([(2, 1), (1, 2)]), 0.5)
    assert received == pytest.approx([0.5, 0.0])


def test_a_passage_that_scores_the_querys_rarity_holds_half_of_it() -> None:
    """BM25 grows with the length of the query; relevance does not."""
    assert literal_share(np.array([0.0, 6.0, 18.0], np.float32), 6.0) == pytest.approx([0.0, 0.5, 1.0])
    assert literal_share(np.array([0.0], np.float32), 0.0).tolist() == [0.0]
