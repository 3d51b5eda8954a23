"""Raw signals into one 0–1 scale that means the same for every query, and into the probability of relevance.

Both rest on the same log-odds, a logistic function of signals that are absolute: none is relative to the candidates
of a query. The scale is moved so that its anchor falls on 0.70, and bent there. The probability also looks at the other
candidates, since one that is much likelier than all others is more often right than one of many alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ANCHOR = 0.70

ABOVE, BELOW = 0.4, 1.5
"""What one of log-odds counts above the anchor and below it. If each counted one, whatever shares a few words with a
query would have 1.00, and what shares none would have a third in a store of a few texts. Round numbers."""

RIVALS = 30
"""Among so many of the first candidates, and that none is relevant, the evidence is shared out."""

_LEAST = -80.0
"""Less than this is as good as never; float32 ends where e is raised to 89."""

_NONE = 0.0
"""The log-odds that stand for none of them being relevant."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Weights of a passage's own log-odds, and of the logarithm of its share among the candidates' odds."""

    intercept: float
    odds: float
    share: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of the raw signals in the log-odds of relevance, and the log-odds that the anchor stands for.

    Attributes:
        size: of the logarithm of the number of passages. The best of many reaches by chance what the best of few does
            not, so it is negative: what is found in a large store has to be better.
        likelihood: what the log-odds say of the probability of relevance.
    """

    intercept: float
    coverage: float
    words: float
    dense: float
    size: float
    anchor: float
    likelihood: Likelihood


CALIBRATION = Calibration(
    intercept=-1.969,
    coverage=3.295,
    words=2.663,
    dense=6.582,
    size=-0.323,
    anchor=-0.36,
    likelihood=Likelihood(intercept=0.177, odds=0.584, share=0.951),
)
"""Log-odds of relevance; fitted by `scripts/ranking/fit_calibration.py`, which names the sets."""

BY_EMBEDDER: Mapping[str, Calibration] = {
    "static": CALIBRATION,
    "minilm": Calibration(
        intercept=-2.185,
        coverage=3.262,
        words=3.014,
        dense=7.381,
        size=-0.392,
        anchor=-0.26,
        likelihood=Likelihood(intercept=0.068, odds=0.699, share=0.812),
    ),
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
    words: NDArray[np.float32],
    dense: NDArray[np.float32],
    passages: int,
) -> NDArray[np.float32]:
    """Return the log-odds of relevance, float32, shape (n,).

    Args:
        coverage: late-interaction coverage of the query by what its tokens weigh in any text, 0–1.
        words: the part of the query that BM25 found, 0–1.
        dense: cosine of query and passage, −1–1.
        passages: how many there are to choose from.
    """
    value = (
        calibration.intercept
        + calibration.coverage * coverage
        + calibration.words * words
        + calibration.dense * dense
        + calibration.size * math.log1p(passages)
    )
    return np.asarray(value, dtype=np.float32)


def scale(calibration: Calibration, odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return scores in 0–1, monotone in the log-odds, exactly `ANCHOR` at the calibration's anchor."""
    above = odds - np.float32(calibration.anchor)
    bent = above * np.where(above > 0, np.float32(ABOVE), np.float32(BELOW))
    value = bent + np.float32(math.log(ANCHOR / (1.0 - ANCHOR)))
    return _logistic(value)


def probabilities(calibration: Calibration, odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the probability that each candidate is relevant, float32, shape (n,).

    Args:
        odds: log-odds of relevance of the candidates of one query, best ranked first.
    """
    if not len(odds):
        return odds
    first = odds[:RIVALS].astype(np.float64)
    best = max(float(first.max()), _NONE)
    share = odds - (best + math.log(float(np.exp(first - best).sum()) + math.exp(_NONE - best)))
    likelihood = calibration.likelihood
    value = likelihood.intercept + likelihood.odds * odds + likelihood.share * share
    return _logistic(value)


def _logistic(value: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(value, _LEAST))), dtype=np.float32)
