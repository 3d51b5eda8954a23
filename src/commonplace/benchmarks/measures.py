"""Quality measures of rankings, and averages, as pure functions, independent of what was searched and how.

A ranking is a sequence of distinct ids, best first. Grades map ids to their judged relevance; an id that is absent or
has a grade of 0 or less is not relevant. `wanted` are the relevant ids.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from commonplace.search.retrieval_log import percentile


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first `k` ids, 0–1; 0 if nothing is relevant.

    The gain is the grade itself (linear) and the discount is log2(rank + 1), as trec_eval and BEIR compute it; Järvelin
    and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002). The ideal ranking uses every judged id.
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


def precision(ranking: Sequence[str], relevant_ids: Collection[str], k: int) -> float:
    """Return the number of wanted ids among the first `k`, divided by `k` even if the ranking is shorter."""
    return len(set(ranking[:k]) & set(relevant_ids)) / k


def recall(ranking: Sequence[str], relevant_ids: Collection[str], k: int) -> float:
    """Return the share of the wanted ids that are among the first `k`; 0 if none are wanted."""
    return len(set(ranking[:k]) & set(relevant_ids)) / len(set(relevant_ids)) if relevant_ids else 0.0


def has_all(ranking: Sequence[str], relevant_ids: Collection[str], k: int) -> float:
    """Return 1.0 if every wanted id is among the first `k`, else 0.0."""
    return float(set(relevant_ids) <= set(ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], relevant_ids: Collection[str]) -> float:
    """Return 1 / rank of the first wanted id, or 0 if none is ranked."""
    rank = first_relevant(ranking, relevant_ids)
    return 1.0 / rank if rank else 0.0


def first_relevant(ranking: Sequence[str], relevant_ids: Collection[str]) -> int | None:
    """Return the rank of the first wanted id, from 1, or None if none is ranked."""
    targets = set(relevant_ids)
    return next((rank for rank, id_ in enumerate(ranking, start=1) if id_ in targets), None)


def mean(values: Collection[float]) -> float:
    """Return the arithmetic mean, or 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def median(values: Collection[float]) -> float:
    """Return the median by the nearest-rank method."""
    return percentile(values, 0.5)
