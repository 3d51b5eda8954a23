"""How sure it is that one method is better than another, on samples whose answer is known without the code."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import significance
from benchmarks.significance import Comparison, comparisons, interval, p_value, resampled_means


def test_the_p_value_counts_the_means_that_lie_as_far_from_their_own_as_that_from_zero() -> None:
    """Of 0, .5, .5, 1 around .5 two are half away or more; with the sample itself three of five."""
    drawn = np.array([0.0, 0.5, 0.5, 1.0])
    assert p_value(drawn, 0.5) == pytest.approx(3 / 5)
    assert p_value(drawn, 0.6) == pytest.approx(2 / 5)
    assert p_value(-drawn, -0.5) == pytest.approx(3 / 5)


def test_a_p_value_is_never_zero() -> None:
    assert p_value(np.full(9999, 0.5), 0.5) == pytest.approx(1 / 10_000)


def test_the_interval_leaves_out_a_fortieth_on_either_side() -> None:
    assert interval(np.arange(101.0)) == pytest.approx((2.5, 97.5))
    assert interval(np.arange(101.0), 0.5) == pytest.approx((25.0, 75.0))


def test_means_of_two_numbers_are_three_the_middle_one_half_of_the_time() -> None:
    drawn = resampled_means(np.array([0.0, 1.0]), 10_000, np.random.default_rng(0))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0.0, 0.5, 1.0]
    assert counts / 10_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.02)


def test_many_questions_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand samples of as many questions at once would be 800 MB."""
    monkeypatch.setattr(significance, "_DRAWN_AT_ONCE", 7)
    drawn = resampled_means(np.array([2.0, 2.0, 2.0]), 11, np.random.default_rng(0))
    assert drawn.tolist() == [2.0] * 11


def test_a_method_that_is_better_everywhere_by_the_same_has_no_spread() -> None:
    values = {"bm25": {"ndcg@10": [0.25, 0.5, 0.0]}, "two-stage": {"ndcg@10": [0.5, 0.75, 0.25]}}
    assert comparisons(values, 0, resamples=999) == [
        Comparison("two-stage", "bm25", "ndcg@10", 0.25, 0.25, 0.25, 1 / 1000, 3)
    ]


def test_methods_that_do_the_same_do_not_differ() -> None:
    values = {"a": {"m": [0.1, 0.9, 0.4]}, "b": {"m": [0.1, 0.9, 0.4]}}
    (found,) = comparisons(values, 0, resamples=999)
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_every_pair_is_compared_once_the_later_method_with_the_earlier() -> None:
    values = {name: {"m": [0.0, 1.0], "n": [1.0, 1.0]} for name in "abc"}
    found = comparisons(values, 0, resamples=10)
    assert [(each.method, each.against, each.measure) for each in found] == [
        (method, against, measure) for method, against in (("b", "a"), ("c", "a"), ("c", "b")) for measure in "mn"
    ]


def test_the_interval_of_a_known_spread_is_that_of_the_normal_distribution() -> None:
    """A hundred differences, half of them 0 and half 1: mean .5, standard error .05, 1.96 of them on either side."""
    values = {"a": {"m": [0.0] * 100}, "b": {"m": [0.0, 1.0] * 50}}
    (found,) = comparisons(values, 0)
    assert (found.low, found.high) == pytest.approx((0.402, 0.598), abs=0.01)
    assert found.p == pytest.approx(1 / 10_001)


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    generator = np.random.default_rng(5)
    values = {name: {"m": generator.random(50).tolist()} for name in "ab"}
    assert comparisons(values, 1) == comparisons(values, 1)
    assert comparisons(values, 1) != comparisons(values, 2)


def test_its_json_is_rounded_and_says_how_it_was_made() -> None:
    found = Comparison("two-stage", "bm25", "ndcg@10", 0.123456, 0.1, 0.15, 0.00009999, 300)
    assert found.to_dict() == {
        "method": "two-stage",
        "against": "bm25",
        "measure": "ndcg@10",
        "difference": 0.1235,
        "low": 0.1,
        "high": 0.15,
        "p": 0.0001,
        "queries": 300,
        "resamples": 10_000,
    }
