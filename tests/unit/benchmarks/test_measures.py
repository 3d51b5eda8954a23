"""The measures by which every claim about quality is made."""

from __future__ import annotations

import math

import pytest

from commonplace.benchmarks.measures import (
    first_relevant,
    has_all,
    mean,
    median,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    relevant,
)
from commonplace.search.retrieval_log import percentile

GRADES = {"x": 3.0, "y": 2.0, "z": 1.0, "no": 0.0}


def test_ndcg_uses_linear_gain_and_a_logarithmic_discount() -> None:
    """Grades 2, 0, 3 found where 3, 2, 1 was possible: (2/1 + 0 + 3/2) / (3/1 + 2/1.5850 + 1/2)."""
    assert ndcg(["y", "other", "x"], GRADES, 10) == pytest.approx(3.5 / 4.761859507142915)


def test_ndcg_of_the_ideal_order_is_one() -> None:
    """The ideal order is by grade, whatever else follows."""
    assert ndcg(["x", "y", "z", "no"], GRADES, 10) == pytest.approx(1.0)


def test_ndcg_compares_with_the_best_that_fits_in_k() -> None:
    """Only one place: finding grade 2 there is two thirds of finding grade 3."""
    assert ndcg(["y", "x"], GRADES, 1) == pytest.approx(2 / 3)


def test_ndcg_is_zero_where_nothing_is_relevant() -> None:
    """No judgement must not become a division by zero or a perfect score."""
    assert ndcg(["x"], {}, 10) == 0.0
    assert ndcg(["x"], {"x": 0.0}, 10) == 0.0
    assert ndcg([], GRADES, 10) == 0.0


def test_a_negative_grade_neither_helps_nor_harms() -> None:
    """Some sets mark junk with -1; trec_eval counts it as not relevant."""
    assert ndcg(["junk", "x"], {"junk": -1.0, "x": 1.0}, 10) == pytest.approx(1 / math.log2(3))
    assert relevant({"junk": -1.0, "x": 1.0, "no": 0.0}) == {"x"}


def test_precision_divides_by_k_even_when_fewer_were_found() -> None:
    """Two of three found, of ten asked for: 0.2, or a method could improve by returning less."""
    assert precision(["x", "other", "y"], {"x", "y"}, 10) == pytest.approx(0.2)
    assert precision(["other", "x", "y"], {"x", "y"}, 2) == pytest.approx(0.5)


def test_recall_is_the_share_of_the_wanted() -> None:
    """One of four among the first two."""
    assert recall(["x", "other", "y"], ["x", "y", "z", "w"], 2) == pytest.approx(0.25)
    assert recall(["x"], [], 2) == 0.0


def test_has_all_wants_every_piece_of_evidence() -> None:
    """A question that needs two turns is not answered by one."""
    assert has_all(["x", "other", "y"], {"x", "y"}, 3) == 1.0
    assert has_all(["x", "other", "y"], {"x", "y"}, 2) == 0.0


def test_reciprocal_rank_counts_from_one() -> None:
    """The third place is worth a third."""
    assert reciprocal_rank(["a", "b", "x", "y"], {"x", "y"}) == pytest.approx(1 / 3)
    assert reciprocal_rank(["a"], {"x"}) == 0.0


def test_percentile_is_a_value_that_was_measured() -> None:
    """Nearest rank: of 1…100 the 95th percentile is 95, of three values the median is the second."""
    assert percentile([float(value) for value in range(100, 0, -1)], 0.95) == 95.0
    assert median([30.0, 10.0, 20.0]) == 20.0
    assert percentile([7.0], 0.0) == 7.0
    assert percentile([1.0, 2.0], 1.0) == 2.0
    assert percentile([], 0.5) == 0.0


def test_mean_of_nothing_is_zero() -> None:
    """A type of question that nobody asked must not stop the report."""
    assert mean([]) == 0.0
    assert mean([1.0, 2.0]) == 1.5


def test_the_first_relevant_rank_counts_from_one_and_is_none_where_nothing_was_found() -> None:
    assert first_relevant(["a", "x", "y"], {"x", "y"}) == 2
    assert first_relevant(["a"], {"x"}) is None
    assert reciprocal_rank(["a", "x"], {"x"}) == 0.5
