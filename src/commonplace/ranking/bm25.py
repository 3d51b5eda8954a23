"""BM25 over weighted fields.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
the always positive inverse document frequency of Lucene and Tantivy. Fields are scored apart and summed with weights,
but a term has one rarity, that of the field which most texts hold it in: a common word in a rare heading stays
common.
"""

from __future__ import annotations

from collections.abc import Mapping
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
