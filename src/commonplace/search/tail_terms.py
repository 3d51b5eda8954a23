"""An inverted index in memory, of passages that no index holds: which of them hold a term, how often, in which field.

It knows analysed passages and BM25, neither the store nor what else a passage is scored by.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import LexicalStatistics
from commonplace.ranking.arrays import within, without
from commonplace.ranking.bm25 import K1, B, rarity
from commonplace.text.analysis import FIELDS, fields_of, passage_language
from commonplace.types import IndexEntry

_NAMES = tuple(FIELDS)
_FIELD_BITS, _COUNT_BITS = 4, 12
_MOST = (1 << _COUNT_BITS) - 1


class TailTerms:
    """Grows with what it is given: 16 bytes for each different word of a passage. Not safe for threads.

    A posting is two integers: the hash of the term, and the passage's place, the field and the count, from high bits to
    low. They stand as they came: to look through 50,000 of them takes 20 µs, and a list for each term takes five times
    the memory.
    """

    def __init__(self) -> None:
        self._numbers = array("q")
        self._lengths = [array("I") for _ in _NAMES]
        self._terms = array("q")
        self._postings = array("Q")
        self.languages: set[str] = set()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def last(self) -> int:
        """The passage number taken last, 0 for none; the highest one where they were taken by number ascending."""
        return self._numbers[-1] if self._numbers else 0

    def missing(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of the passage numbers that are not held, in their order."""
        return without(numbers, np.sort(np.frombuffer(self._numbers, dtype=np.int64)))

    def add(self, entries: Iterable[IndexEntry]) -> None:
        """Take passages that are not held yet, in any order."""
        for entry in entries:
            place = len(self._numbers)
            self._numbers.append(entry.number)
            language = passage_language(entry)
            self.languages.add(language)
            fields = fields_of(entry, language)
            for field, name in enumerate(_NAMES):
                terms = fields.get(name, [])
                self._lengths[field].append(len(terms))
                for term, count in Counter(terms).items():
                    posting = (place << _FIELD_BITS | field) << _COUNT_BITS | min(count, _MOST)
                    self._terms.append(hash(term))
                    self._postings.append(posting)

    def score(
        self,
        numbers: NDArray[np.int64],
        terms: Sequence[str],
        index: LexicalStatistics,
        read: Collection[str] = _NAMES,
    ) -> tuple[NDArray[np.float32], LexicalStatistics]:
        """Return BM25 scores of passages, and the statistics they follow from: of the index and these passages.

        Args:
            numbers: int64, shape (n,), ascending.
            read: the fields that count.

        Returns:
            float32, shape (n,), 0 where no term matches and for a passage that is not held.
        """
        held = np.frombuffer(self._numbers, dtype=np.int64)
        places = np.flatnonzero(within(held, numbers))
        lengths = [np.frombuffer(length, dtype=np.uint32)[places].astype(np.float64) for length in self._lengths]
        matches = {term: self._matches(term, places) for term in terms}
        statistics = _together(index, lengths, matches)
        scores = np.zeros(len(places))
        times = Counter(terms)
        for term, (rows, fields, counts) in matches.items():
            worth = times[term] * rarity(term, statistics.documents, statistics.frequencies) * (K1 + 1.0)
            for field, name in enumerate(_NAMES):
                chosen = fields == field
                if name not in read or not chosen.any():
                    continue
                mean = statistics.mean_lengths[name] or 1.0
                weight = FIELDS[name] * worth
                count, length = counts[chosen], lengths[field][rows[chosen]]
                scores[rows[chosen]] += weight * count / (count + K1 * (1.0 - B + B * length / mean))
        result = np.zeros(len(numbers), dtype=np.float32)
        result[np.searchsorted(numbers, held[places])] = scores
        return result, statistics

    def _matches(
        self, term: str, places: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64]]:
        """Return rows among `places`, fields and counts of a term's postings."""
        found = np.flatnonzero(np.frombuffer(self._terms, dtype=np.int64) == hash(term))
        packed = np.frombuffer(self._postings, dtype=np.int64)[found]
        place = packed >> (_FIELD_BITS + _COUNT_BITS)
        packed = packed[within(place, places)]
        rows = np.searchsorted(places, packed >> (_FIELD_BITS + _COUNT_BITS))
        fields = (packed >> _COUNT_BITS) & ((1 << _FIELD_BITS) - 1)
        return rows, fields, (packed & _MOST).astype(np.float64)


def _together(
    index: LexicalStatistics,
    lengths: Sequence[NDArray[np.float64]],
    matches: dict[str, tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64]]],
) -> LexicalStatistics:
    documents = index.documents + len(lengths[0])
    mean_lengths: dict[str, float] = {}
    frequencies: dict[str, dict[str, int]] = {}
    for field, name in enumerate(_NAMES):
        total = index.mean_lengths.get(name, 0.0) * index.documents + float(lengths[field].sum())
        mean_lengths[name] = total / documents if documents else 0.0
        known = index.frequencies.get(name, {})
        frequencies[name] = {
            term: known.get(term, 0) + int((fields == field).sum()) for term, (_, fields, _) in matches.items()
        }
    return LexicalStatistics(documents, mean_lengths, frequencies)
