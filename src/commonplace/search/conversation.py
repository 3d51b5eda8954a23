"""Turns around the turns that were found. It knows who stands next to whom in a session, not what was said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from commonplace.store.contract import Store


def next_to(store: Store, namespace: str, numbers: Sequence[int]) -> dict[int, set[int]]:
    """Return for each passage in a session the passages next to it, as far as they follow from asking for `numbers`."""
    beside: dict[int, set[int]] = defaultdict(set)
    for number, neighbour in store.neighbours(namespace, numbers):
        beside[number].add(neighbour)
        beside[neighbour].add(number)
    return beside


def steps(beside: dict[int, set[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs that are one step apart and those that are two, int64, shape (n, 2), each in both directions."""
    one = [(number, other) for number, others in beside.items() for other in others]
    two = {
        (number, far)
        for number, others in beside.items()
        for other in others
        for far in beside[other]
        if far != number and far not in others
    }
    return _pairs(sorted(one)), _pairs(sorted(two))


def answers(beside: dict[int, set[int]], asking: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs of a passage and one of `asking` right before it; int64, shape (n, 2)."""
    return _pairs(
        sorted((other, number) for number in asking.tolist() for other in beside.get(number, ()) if other > number)
    )


def _pairs(values: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64).reshape(-1, 2)
