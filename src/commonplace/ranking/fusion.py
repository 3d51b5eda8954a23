"""Several signals into one ranking: standardise, weigh, add; neighbours lend.

It knows arrays of candidates, not where they came from.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def standardise(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (values − mean) / standard deviation over the candidates, zeros where all are equal."""
    if not len(values):
        return values
    deviation = float(values.std())
    if deviation < 1e-9:
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / deviation, dtype=np.float32)


def fuse(signals: Mapping[str, NDArray[np.float32]], weights: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the weighted sum of the standardised signals; a signal without a weight does not count.

    Standardising over the union of the candidates and adding is CombSUM with z-scores (Wu, Crestani & Bi 2006).
    """
    length = len(next(iter(signals.values())))
    total = np.zeros(length, dtype=np.float32)
    for name, values in signals.items():
        weight = weights.get(name, 0.0)
        if weight:
            total += np.float32(weight) * standardise(values)
    return total


def lend(
    scores: NDArray[np.float32], numbers: NDArray[np.int64], pairs: NDArray[np.int64], share: float
) -> NDArray[np.float32]:
    """Return what each candidate receives from its neighbours in a conversation: `share` of each one's score.

    Only what is above the candidates' mean (0, since scores are sums of z-scores) is lent: a poor neighbour says
    nothing about a turn.

    Args:
        scores: float32, shape (n,).
        numbers: int64, shape (n,), ascending.
        pairs: receiver and lender, int64, shape (p, 2); pairs with a number that is no candidate are passed over.
    """
    received = np.zeros_like(scores)
    if not len(pairs) or not len(numbers):
        return received
    places = np.minimum(np.searchsorted(numbers, pairs), len(numbers) - 1)
    known = (numbers[places] == pairs).all(axis=1)
    np.add.at(received, places[known, 0], np.float32(share) * np.maximum(scores[places[known, 1]], 0))
    return received
