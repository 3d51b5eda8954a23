"""How far probabilities can be believed: calibration error and Brier score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from commonplace.benchmarks.measures import mean


@dataclass(frozen=True, slots=True)
class Bin:
    """Hits of about the same probability: how many, the mean of what was said of them, and the share that is relevant.

    Attributes:
        low, high: the least and the greatest probability in it.
    """

    low: float
    high: float
    hits: int
    predicted: float
    relevant: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far probabilities can be believed.

    Attributes:
        ece: expected calibration error, the mean distance between what was said and what was, over bins of equal mass.
        brier: mean squared error of the probabilities; 0 is perfect.
        constant: the Brier score of always saying the share of relevant hits, to compare `brier` with.
    """

    ece: float
    brier: float
    constant: float
    bins: tuple[Bin, ...]


def reliability(predictions: Sequence[tuple[float, bool]], bins: int = 10) -> Reliability:
    """Return how well probabilities agree with what was relevant; zeros where there are none.

    Bins hold equally many hits, by probability, as far as that is possible; Naeini, Cooper and Hauskrecht, "Obtaining
    well calibrated probabilities using Bayesian binning" (2015), define the error, Brier, "Verification of forecasts
    expressed in terms of probability" (1950), the score.

    Args:
        predicted: probability of relevance and whether it is relevant, of each hit.
    """
    ordered = sorted(predictions)
    ends = [round(len(ordered) * number / bins) for number in range(bins + 1)]
    parts = [ordered[begin:end] for begin, end in pairwise(ends) if end > begin]
    filled = tuple(
        Bin(part[0][0], part[-1][0], len(part), mean([p for p, _ in part]), mean([float(good) for _, good in part]))
        for part in parts
    )
    share = mean([float(good) for _, good in predictions])
    return Reliability(
        ece=math.fsum(bin_.hits * abs(bin_.predicted - bin_.relevant) for bin_ in filled) / max(1, len(predictions)),
        brier=mean([(p - good) ** 2 for p, good in predictions]),
        constant=share * (1 - share),
        bins=filled,
    )
