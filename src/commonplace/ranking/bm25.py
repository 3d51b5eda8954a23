"""BM25 over weighted fields.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
the always positive inverse document frequency of Lucene and Tantivy. Fields are scored apart and summed with weights,
but a term has one rarity, that of the field which most texts hold it in: a common word in a rare heading stays
common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log

K1 = 1.2
"""How slowly repeating a term stops to add score."""
B = 0.75
"""How much of the field's length is held against a term, 0–1."""


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) for a term held by `frequency` of `documents` texts; never negative."""
    return log(1.0 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


def rarity(term: str, documents: int, frequencies: Mapping[str, Mapping[str, int]]) -> float:
    """Return the inverse document frequency of a term in the field that most texts hold it in.

    Args:
        frequencies: by field, how many texts hold a term; a term that is absent is held by none.
    """
    return inverse_document_frequency(documents, max((held.get(term, 0) for held in frequencies.values()), default=0))


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
    documents: int,
    mean_lengths: Mapping[str, float],
    frequencies: Mapping[str, Mapping[str, int]],
) -> float:
    """Return the BM25 score of one text: 0.0 when it holds none of the terms.

    Args:
        terms: analysed query terms; one that appears twice counts twice.
        fields: the text's analysed terms by field.
        weights: by field; fields without a weight do not count.
        documents: number of texts that the statistics speak of.
        mean_lengths: mean number of terms by field.
        frequencies: by field, how many texts hold a term; a term that is absent is held by none.
    """
    wanted = Counter(terms)
    rarities = {term: rarity(term, documents, frequencies) for term in wanted}
    total = 0.0
    for field, weight in weights.items():
        held = fields.get(field, ())
        counts = Counter(held)
        mean_length = mean_lengths.get(field, 0.0)
        for term, times in wanted.items():
            if counts[term]:
                total += times * weight * rarities[term] * saturation(counts[term], len(held), mean_length)
    return total
