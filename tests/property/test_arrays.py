"""Sets as sorted arrays do what NumPy's set functions do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.dense import best
from commonplace.ranking.arrays import distinct, ranked, union, within, without

NUMBERS = st.lists(st.integers(-20, 20)).map(lambda values: np.array(values, dtype=np.int64))


@given(NUMBERS, NUMBERS)
def test_they_agree_with_numpy(first: np.ndarray, second: np.ndarray) -> None:
    """Candidates are merged and filtered by them, so a lost number is a lost hit."""
    members = np.unique(second)
    assert distinct(first).tolist() == np.unique(first).tolist()
    assert within(first, members).tolist() == np.isin(first, members).tolist()
    assert without(first, members).tolist() == first[~np.isin(first, members)].tolist()
    assert union(first, second).tolist() == np.union1d(first, second).tolist()


@given(NUMBERS, st.sampled_from((1, 7, 2**40)))
def test_numbers_far_apart_and_close_together_are_ranked_alike(values: np.ndarray, step: int) -> None:
    held, places = ranked(values * step)
    assert (held.tolist(), held[places].tolist()) == (np.unique(values * step).tolist(), (values * step).tolist())


@given(NUMBERS, st.integers(0, 12))
def test_the_best_of_many_are_those_that_a_sort_of_all_puts_first(values: np.ndarray, limit: int) -> None:
    """Of equal scores the lower number comes first, also at the end."""
    numbers, scores = np.arange(len(values), dtype=np.int64)[::-1], (values // 9).astype(np.float32)
    order = np.lexsort((numbers, -scores))[:limit]
    found = best(numbers, scores, limit)
    assert (found.numbers.tolist(), found.scores.tolist()) == (numbers[order].tolist(), scores[order].tolist())
