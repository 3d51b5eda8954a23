"""Fuse signals into one ranking: standardise, weigh, add, and lend scores to neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

Groups = NDArray[np.uint8]
"""Of each candidate, whose vector it has: an index into embedders; uint8, shape (n,)."""


ROUNDING: Final = 1e-6
"""Relative to the largest value, float32's error after some dozens of additions."""


def standardise(values: NDArray[np.float32], groups: Groups | None = None) -> NDArray[np.float32]:
    """Return (values − mean) / standard deviation over the candidates, zeros where all are equal but for rounding.

    Args:
        groups: each one's values are standardised by themselves: cosines of two embedders do not compare.
    """
    if groups is not None and len(groups) and groups.min() != groups.max():
        result = np.zeros_like(values)
        for group in np.flatnonzero(np.bincount(groups)):
            result[groups == group] = standardise(values[groups == group])
        return result
    if not len(values):
        return values
    deviation = float(values.std())
    # Sums of float32 in another order differ in their last bits: as a difference of rank that would be noise made loud.
    if deviation < ROUNDING * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / deviation, dtype=np.float32)


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, and what lies between on a straight line."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def fuse(signals: Mapping[str, NDArray[np.float32]], weights: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the weighted sum of the signals; one without a weight does not count.

    Over signals that were standardised over the union of the candidates this is CombSUM with z-scores (Wu, Crestani &
    Bi 2006); weights that follow the query make use of reliability indicators (Bennett, Dumais & Horvitz 2005).

    Args:
        signals, weights: float32, shape (n,).
    """
    length = len(next(iter(signals.values())))
    total = np.zeros(length, dtype=np.float32)
    for name, values in signals.items():
        if name in weights:
            total += weights[name] * values
    return total


def lend(
    values: NDArray[np.float32], numbers: NDArray[np.int64], pairs: NDArray[np.int64], share: float
) -> NDArray[np.float32]:
    """Return what each candidate receives from its neighbours in a conversation: `share` of the mean of their values.

    The mean and not the sum, or the middle of a session would bury its ends. Only what is above the candidates' mean
    (0, since values are sums of z-scores) is lent: a poor neighbour says nothing about a turn.

    Args:
        values: float32, shape (n,).
        numbers: int64, shape (n,), ascending.
        pairs: receiver and lender, int64, shape (p, 2); pairs with a number that is no candidate are passed over.
    """
    received = np.zeros_like(values)
    if not len(pairs) or not len(numbers):
        return received
    places = np.minimum(np.searchsorted(numbers, pairs), len(numbers) - 1)
    receivers, lenders = places[(numbers[places] == pairs).all(axis=1)].T
    np.add.at(received, receivers, np.float32(share) * np.maximum(values[lenders], 0))
    counts = np.bincount(receivers, minlength=len(values))
    return np.asarray(received / np.maximum(counts, 1), dtype=np.float32)


def bounded(received: NDArray[np.float32], lengths: NDArray[np.int64], fully: int) -> NDArray[np.float32]:
    """Return what remains of it for a text of so many tokens: all of it up to `fully` tokens, then `fully` / length.

    A short turn needs those around it to be understood; a long one says itself what it is about.
    """
    return np.asarray(received * np.minimum(1.0, fully / np.maximum(lengths, 1)), dtype=np.float32)
