"""Sets as sorted arrays do what NumPy's set functions do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commonplace.ranking.arrays import distinct, union, within, without

NUMBERS = st.lists(st.integers(-20, 20)).map(lambda values: np.array(values, dtype=np.int64))


@given(NUMBERS, NUMBERS)
def test_they_agree_with_numpy(first: np.ndarray, second: np.ndarray) -> None:
    """Candidates are merged and filtered by them, so a lost number is a lost hit."""
    members = np.unique(second)
    assert distinct(first).tolist() == np.unique(first).tolist()
    assert within(first, members).tolist() == np.isin(first, members).tolist()
    assert without(first, members).tolist() == first[~np.isin(first, members)].tolist()
    assert union(first, second).tolist() == np.union1d(first, second).tolist()
