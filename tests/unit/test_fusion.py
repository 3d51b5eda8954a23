"""Fusion and lending between neighbours: exact values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from commonplace.ranking.calibration import literal_share
from commonplace.ranking.fusion import fuse, lend, standardise


def test_standardised_values_have_mean_0_and_deviation_1() -> None:
    """The values 1, 2, 3 have mean 2 and standard deviation √(2/3)."""
    assert standardise(np.array([1, 2, 3], np.float32)) == pytest.approx([-1.224745, 0.0, 1.224745], abs=1e-5)


def test_a_signal_that_is_equal_everywhere_says_nothing() -> None:
    """Division by a zero deviation must not make a signal infinite."""
    assert standardise(np.array([0.4, 0.4], np.float32)).tolist() == [0.0, 0.0]
    assert standardise(np.array([], np.float32)).tolist() == []


def test_fusion_adds_weighted_standardised_signals_and_passes_over_the_rest() -> None:
    """Two values standardise to −1 and 1: 2 × (−1, 1) + 0.5 × (1, −1) = (−1.5, 1.5)."""
    signals = {
        "a": np.array([0, 10], np.float32),
        "b": np.array([5, 1], np.float32),
        "c": np.array([9, 1], np.float32),
    }
    assert fuse(signals, {"a": 2.0, "b": 0.5}) == pytest.approx([-1.5, 1.5])


def test_neighbours_lend_a_share_of_their_score_and_strangers_nothing() -> None:
    """Turn 20 receives 0.3 × (1 + 4) from 10 and 30; number 99 is no candidate."""
    pairs = np.array([(20, 10), (20, 30), (30, 99), (10, 20)])
    received = lend(np.array([1.0, 2.0, 4.0], np.float32), np.array([10, 20, 30]), pairs, 0.3)
    assert received == pytest.approx([0.6, 1.5, 0.0])


def test_a_neighbour_below_the_mean_takes_nothing_away() -> None:
    """A small answer next to an irrelevant remark is as good as one that stands alone."""
    received = lend(np.array([-2.0, 1.0], np.float32), np.array([1, 2]), np.array([(2, 1), (1, 2)]), 0.5)
    assert received == pytest.approx([0.5, 0.0])


def test_a_passage_that_scores_the_querys_rarity_holds_half_of_it() -> None:
    """BM25 grows with the length of the query; relevance does not."""
    assert literal_share(np.array([0.0, 6.0, 18.0], np.float32), 6.0) == pytest.approx([0.0, 0.5, 1.0])
    assert literal_share(np.array([0.0], np.float32), 0.0).tolist() == [0.0]
