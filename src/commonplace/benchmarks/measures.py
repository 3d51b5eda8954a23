"""How good a ranking is and how long it took, as pure formulas; nothing here knows what was searched or how.

A ranking is a sequence of ids, best first, without repetitions. Grades map ids to their judged relevance; an id that
is absent, or has grade 0 or less, is not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

THRESHOLDS: tuple[float, ...] = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first `k`, 0–1; 0 where nothing is relevant.

    Gain is the grade itself (linear) and the discount log2(rank + 1), as trec_eval and BEIR compute it; Järvelin and
    Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002). The ideal ranking uses every judged id.
    """
    gains = [max(grades.get(id_, 0.0), 0.0) for id_ in ranking[:k]]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def relevant(grades: Mapping[str, float]) -> set[str]:
    """Return the ids with a positive grade."""
    return {id_ for id_, grade in grades.items() if grade > 0}


def precision(ranking: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Return how many of the first `k` are wanted, divided by `k`, however short the ranking is."""
    return len(set(ranking[:k]) & set(wanted)) / k


def recall(ranking: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Return the share of the wanted ids among the first `k`; 0 where nothing is wanted."""
    return len(set(ranking[:k]) & set(wanted)) / len(set(wanted)) if wanted else 0.0


def has_all(ranking: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Return 1.0 where every wanted id is among the first `k`, else 0.0."""
    return float(set(wanted) <= set(ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], wanted: Collection[str]) -> float:
    """Return one divided by the rank of the first wanted id, 0 where none is found."""
    rank = first_relevant(ranking, wanted)
    return 1.0 / rank if rank else 0.0


def first_relevant(ranking: Sequence[str], wanted: Collection[str]) -> int | None:
    """Return the rank of the first wanted id, None where none is found."""
    sought = set(wanted)
    return next((rank for rank, id_ in enumerate(ranking, start=1) if id_ in sought), None)


def mean(values: Collection[float]) -> float:
    """Return the arithmetic mean, 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def percentile(values: Collection[float], share: float) -> float:
    """Return the smallest value that at least `share` (0–1) of the values do not exceed: the nearest rank.

    Nothing is interpolated, so the answer is always a value that was measured; 0 for no values.
    """
    if not values:
        return 0.0
    # The small amount keeps 0.95 × 100 = 95.00000000000001 from becoming rank 96.
    rank = math.ceil(share * len(values) - 1e-9)
    return sorted(values)[max(rank, 1) - 1]


def median(values: Collection[float]) -> float:
    """Return the value at half of the nearest-rank order."""
    return percentile(values, 0.5)


@dataclass(frozen=True, slots=True)
class Judged:
    """One query's hits as far as scores are concerned: (score, is relevant), best first."""

    hits: tuple[tuple[float, bool], ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a threshold on the score keeps, as shares of what was found without one.

    Attributes:
        first: queries whose best relevant hit stays, of the queries that found one.
        relevant, irrelevant: hits that stay, of all relevant and of all other hits.
    """

    threshold: float
    first: float
    relevant: float
    irrelevant: float


def kept(queries: Collection[Judged], threshold: float) -> Kept:
    """Return the share of relevant and irrelevant hits with a score of at least `threshold`."""
    firsts = [next((score for score, good in query.hits if good), None) for query in queries]
    found = [score for score in firsts if score is not None]
    good = [score for query in queries for score, is_relevant in query.hits if is_relevant]
    bad = [score for query in queries for score, is_relevant in query.hits if not is_relevant]
    return Kept(threshold, _share(found, threshold), _share(good, threshold), _share(bad, threshold))


def answered_with_nothing(queries: Collection[Judged], threshold: float) -> float:
    """Return the share of the queries of which not even the best hit has a score of at least `threshold`."""
    return 1.0 - _share([query.hits[0][0] if query.hits else -math.inf for query in queries], threshold)


def _share(scores: Collection[float], threshold: float) -> float:
    return mean([float(score >= threshold) for score in scores])


@dataclass(frozen=True, slots=True)
class Bin:
    """Hits of about the same probability: how many, the mean of what was said of them, and the share that is relevant.

    Attributes:
        low, high: the least and the greatest probability in it.
    """

    low: float
    high: float
    hits: int
    said: float
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


def reliability(said: Sequence[tuple[float, bool]], bins: int = 10) -> Reliability:
    """Return how well probabilities agree with what was relevant; zeros where there are none.

    Bins hold equally many hits, by probability, as far as that is possible; Naeini, Cooper and Hauskrecht, "Obtaining
    well calibrated probabilities using Bayesian binning" (2015), define the error, Brier, "Verification of forecasts
    expressed in terms of probability" (1950), the score.

    Args:
        said: probability of relevance and whether it is relevant, of each hit.
    """
    ordered = sorted(said)
    ends = [round(len(ordered) * number / bins) for number in range(bins + 1)]
    parts = [ordered[begin:end] for begin, end in pairwise(ends) if end > begin]
    found = tuple(
        Bin(part[0][0], part[-1][0], len(part), mean([p for p, _ in part]), mean([float(good) for _, good in part]))
        for part in parts
    )
    share = mean([float(good) for _, good in said])
    return Reliability(
        ece=math.fsum(each.hits * abs(each.said - each.relevant) for each in found) / max(1, len(said)),
        brier=mean([(p - good) ** 2 for p, good in said]),
        constant=share * (1 - share),
        bins=found,
    )
