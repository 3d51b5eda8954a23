"""Raw signals into one 0–1 scale that means the same for every query: 0.70 keeps what answers.

The scale is a logistic function of the raw signals, stretched so that its anchor falls on 0.70. It knows no query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ANCHOR = 0.70


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of the raw signals in the log-odds of relevance, and the log-odds that the anchor stands for."""

    intercept: float
    coverage: float
    exact: float
    dense: float
    anchor: float


def log_odds(
    calibration: Calibration,
    coverage: NDArray[np.float32],
    exact: NDArray[np.float32],
    dense: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the log-odds of relevance, float32, shape (n,).

    Args:
        coverage: late-interaction coverage of the query, 0–1.
        exact: IDF-weighted share of the query's tokens that the passage holds literally, 0–1.
        dense: cosine of query and passage, −1–1.
    """
    value = (
        calibration.intercept + calibration.coverage * coverage + calibration.exact * exact + calibration.dense * dense
    )
    return np.asarray(value, dtype=np.float32)


def scale(calibration: Calibration, odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return scores in 0–1, monotone in the log-odds, exactly `ANCHOR` at the calibration's anchor."""
    shift = np.float32(np.log(ANCHOR / (1.0 - ANCHOR)) - calibration.anchor)
    return np.asarray(1.0 / (1.0 + np.exp(-(odds + shift))), dtype=np.float32)
