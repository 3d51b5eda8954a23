"""Raw signals into one 0–1 scale that means the same for every query: 0.70 keeps what answers.

The scale is a logistic function of the raw signals, stretched so that its anchor falls on 0.70. It knows no query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ANCHOR = 0.70


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of the raw signals in the log-odds of relevance, and the log-odds that the anchor stands for."""

    intercept: float
    coverage: float
    literal: float
    dense: float
    anchor: float


CALIBRATION = Calibration(intercept=-3.696, coverage=0.867, literal=2.79, dense=4.698, anchor=-0.911)
"""Log-odds of relevance; fitted by `scripts/ranking/fit_calibration.py` on medquad and cosqa-dev."""

BY_EMBEDDER: Mapping[str, Calibration] = {
    "static": CALIBRATION,
    "minilm": Calibration(intercept=-4.129, coverage=0.941, literal=2.357, dense=5.931, anchor=-0.578),
}
"""Cosines of one embedder mean something else than those of another: each has a scale of its own, fitted likewise."""


def calibration_of(embedder: str) -> Calibration:
    """Return the scale that was fitted for an embedder of that name; for any other, that of the default one."""
    return BY_EMBEDDER.get(embedder, CALIBRATION)


def literal_share(scores: NDArray[np.float32], rarity: float) -> NDArray[np.float32]:
    """Return min(1, s / 2·rarity), the part of a query that BM25 found, whatever the query's length.

    Args:
        scores: BM25, float32, shape (n,), not negative.
        rarity: the sum of the IDF of all terms of the query; twice that is reached by saying all in title and text.
    """
    if rarity <= 0.0:
        return np.zeros_like(scores)
    return np.asarray(np.minimum(scores / (2 * rarity), 1.0), dtype=np.float32)


def log_odds(
    calibration: Calibration,
    coverage: NDArray[np.float32],
    literal: NDArray[np.float32],
    dense: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the log-odds of relevance, float32, shape (n,).

    Args:
        coverage: late-interaction coverage of the query, 0–1.
        literal: share of the query that the passage holds literally, by IDF, 0–1.
        dense: cosine of query and passage, −1–1.
    """
    value = (
        calibration.intercept
        + calibration.coverage * coverage
        + calibration.literal * literal
        + calibration.dense * dense
    )
    return np.asarray(value, dtype=np.float32)


def scale(calibration: Calibration, odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return scores in 0–1, monotone in the log-odds, exactly `ANCHOR` at the calibration's anchor."""
    shift = np.float32(np.log(ANCHOR / (1.0 - ANCHOR)) - calibration.anchor)
    return np.asarray(1.0 / (1.0 + np.exp(-(odds + shift))), dtype=np.float32)
