"""BM25 of one text, written out: what the index and the tail must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from commonplace.ranking.bm25 import K1, MAX_COUNT, NAMES, B, Statistics


def saturation(count: int, length: int, mean_length: float, *, k1: float = K1, b: float = B) -> float:
    """Return what `count` occurrences in a field of `length` terms are worth, from 0 up to k1 + 1.

    A mean length of 0 (nothing indexed yet) leaves the length out of account.
    """
    relative_length = length / mean_length if mean_length > 0 else 1.0
    return count * (k1 + 1.0) / (count + k1 * (1.0 - b + b * relative_length))


def score(
    terms: Collection[str],
    fields: Mapping[str, Sequence[str]],
    *,
    weights: Mapping[str, float],
    statistics: Statistics,
) -> float:
    """Return the BM25 score of one text: 0.0 when it holds none of the terms.

    Args:
        terms: analysed query terms; one that appears twice counts twice.
        fields: the text's analysed terms by field.
        weights: by field; fields without a weight do not count.
        statistics: of all texts.
    """
    wanted = Counter(terms)
    means = dict(zip(NAMES, statistics.mean_lengths.tolist(), strict=True))
    total = 0.0
    for field, weight in weights.items():
        held = fields.get(field, ())
        counts = Counter(held)
        for term, times in wanted.items():
            if counts[term]:
                total += (
                    times
                    * weight
                    * statistics.rarity(term)
                    * saturation(min(counts[term], MAX_COUNT), len(held), means[field])
                )
    return total
