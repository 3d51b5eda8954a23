"""Probability, score and confidence: exact values worked out by hand, and what holds of them whatever the signals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from commonplace.ranking.calibration import (
    ANCHOR,
    ANCHOR_PROBABILITY,
    BY_EMBEDDER,
    LEAD,
    LEXICAL,
    LIKELY,
    SURE,
    Calibration,
    calibration_of,
    confidence,
    evidence,
    leads,
    probabilities,
    scores,
    text_scores,
)
from commonplace.search.rank import FLOOR


def test_a_cosine_leads_by_what_it_has_over_the_mean_of_the_five_best_others() -> None:
    """Of .9, .5, .4, .3, .2, .1, 0 the first leads (.5 + .4 + .3 + .2 + .1) / 5 = .3 by .6."""
    found = leads(np.array([0.5, 0.9, 0.4, 0.3, 0.2, 0.1, 0.0], np.float32))
    assert found[1] == pytest.approx(0.9 - 0.3)
    assert found[0] == pytest.approx(0.5 - (0.9 + 0.4 + 0.3 + 0.2 + 0.1) / 5)
    assert found[-1] == pytest.approx(0.0 - (0.9 + 0.5 + 0.4 + 0.3 + 0.2) / 5)


def test_of_a_few_candidates_strangers_stand_for_the_rest() -> None:
    """Two have each other and four at .1: .6 − (.2 + .4) / 5 and .2 − (.6 + .4) / 5; one has five at .1."""
    assert leads(np.array([0.6, 0.2], np.float32)) == pytest.approx([0.48, 0.0], abs=1e-6)
    assert leads(np.array([0.6], np.float32)) == pytest.approx([0.5])
    assert len(leads(np.array([], np.float32))) == 0


def test_log_odds_add_up_what_each_kind_of_evidence_says() -> None:
    """−1 + 2 · (.6 − .12) + 3 · 4 / ln 100 for one of two passages among 99, and −1 + 2 · (.2 − .2)."""
    dense, zeros = np.array([0.6, 0.2], np.float32), np.zeros(2, np.float32)
    found = evidence(dense, zeros, zeros, np.array([4.0, 0.0], np.float32), 99)
    odds = Calibration(-1.0, {LEAD: 2.0, LEXICAL: 3.0}).log_odds(found)
    assert odds == pytest.approx([-1 + 0.96 + 12 / np.log(100), -1.0])


def test_common_words_and_faint_cosines_are_told_from_others() -> None:
    found = evidence(
        np.array([0.05, 0.3], np.float32), np.zeros(2, np.float32), np.array([0.1, 0.5], np.float32), np.zeros(2), 9
    )
    assert found["faintness"] == pytest.approx([-0.2, 0.0])
    assert found["words_beyond_chance"] == pytest.approx([0.0, 0.3])


def test_hits_whose_probability_rises_are_as_likely_as_they_are_together() -> None:
    """Odds of 1, 3 and 1/3 in rank order are ½, ¾ and ¼: the first two have the mean of ½ and ¾."""
    found = probabilities(np.log(np.array([1.0, 3.0, 1 / 3], np.float32)))
    assert found == pytest.approx([0.625, 0.625, 0.25])
    assert len(probabilities(np.array([], np.float32))) == 0


@given(arrays(np.float32, st.integers(0, 40), elements=st.floats(-100, 100, width=32)))
def test_probability_never_rises_with_the_rank_and_keeps_its_mean(odds: np.ndarray) -> None:
    """Pooling moves probability between hits and adds none, so that what is said stays right on the mean."""
    found = probabilities(odds)
    assert (np.diff(found) <= 1e-6).all()
    assert ((found >= 0) & (found <= 1)).all()
    own = 1 / (1 + np.exp(-np.maximum(odds.astype(np.float64), -30)))
    assert found.sum() == pytest.approx(own.sum(), abs=1e-4)


@given(st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_the_score_is_an_increasing_function_of_the_probability(one: float, other: float) -> None:
    """A score belongs to its probability: nothing else has a part in it."""
    low, high = scores(np.array(sorted((one, other)), np.float32))
    assert 0.0 <= low <= high <= 1.0
    if abs(one - other) > 1e-3:
        assert low < high


def test_the_anchor_has_its_score_and_the_words_begin_at_their_probabilities() -> None:
    """σ(ln 7/3 + ½ (ln 9 − ln .045/.955)) is the score of .9."""
    found = scores(np.array([ANCHOR_PROBABILITY, 0.9, 0.0086], np.float32))
    beyond = np.log(7 / 3) + (np.log(9) + np.log(0.955 / 0.045)) / 2
    assert found[:2] == pytest.approx([ANCHOR, 1 / (1 + np.exp(-beyond))], abs=1e-5)
    assert found[2] == pytest.approx(FLOOR, abs=0.01)
    assert [confidence(value) for value in (SURE, SURE - 1e-6, LIKELY, LIKELY - 1e-6, 0.0)] == [
        "sure",
        "likely",
        "likely",
        "weak",
        "weak",
    ]


@pytest.mark.parametrize("name", BY_EMBEDDER)
def test_no_evidence_is_weak_and_all_of_it_is_sure(name: str) -> None:
    """Whoever made the vectors, in stores of a few passages and of a million."""
    for passages in (3, 1_000_000):
        dense = np.array([1.0 if name else 0.0, 0.0, 0.0], np.float32)
        signals = np.array([1.0, 0.0, 0.0], np.float32)
        found = evidence(dense, signals, signals, 20 * signals, passages)
        everything, nothing, _ = probabilities(calibration_of(name).log_odds(found))
        assert confidence(float(everything)) == "sure"
        assert nothing < 0.02


@pytest.mark.parametrize("name", ["hashing", "openai:text-embedding-3-small"])
def test_an_unknown_embedders_cosines_say_nothing_of_probability(name: str) -> None:
    """Words and late interaction do, which are the same for all."""
    assert name not in BY_EMBEDDER
    assert "minilm" in BY_EMBEDDER
    assert calibration_of(name) is calibration_of("")
    given = (*(np.array([share], np.float32) for share in (0.3, 0.2, 0.4)), 10)
    assert text_scores(name, *given) == text_scores("static", *given)


def test_a_text_that_is_judged_by_itself_has_the_anchor_where_its_scale_says() -> None:
    """The graph's bars and the re-ranker without a model rest on it: −1.969 + 6.582 · d − .323 · ln 4 = −.36."""
    zero = np.zeros(1, np.float32)
    dense = np.array([(1.969 - 0.36 + 0.323 * np.log(4)) / 6.582], np.float32)
    assert text_scores("static", zero, zero, dense, 3) == pytest.approx([ANCHOR], abs=1e-5)
