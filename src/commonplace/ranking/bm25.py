"""BM25 over weighted fields, from the term counts and field lengths of passages and the statistics of their namespace.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
the always positive inverse document frequency of Lucene. Fields are scored separately and summed with weights, but a
term has one rarity, that of the field in which most texts hold it: a common word in a rare heading stays common.

A passage's row consists of units of five bytes: for each field its number of terms, a little-endian uint32, and a zero
byte; then for each term of each field the crc32 of the term, uint32, and a mark, a byte with the field's index above
six bits for the count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from math import log
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.types import SEARCH_FIELDS

K1 = 1.2
"""How slowly repeating a term stops to add score."""
B = 0.75
"""How much of the field's length is held against a term, 0–1."""
WEIGHTS: Final = {"title": 2.0, "content": 1.0, "tags": 1.0, "summary": 0.5}
"""Weight of each field of a passage in its score."""
NAMES: Final = SEARCH_FIELDS
"""The fields, in the order of every array with a column for each."""
UNIT: Final = np.dtype([("value", "<u4"), ("mark", "u1")])
_COUNT_BITS: Final = 6
MAX_COUNT: Final = (1 << _COUNT_BITS) - 1
"""Maximum count of a term in a field; more would add less than a fiftieth to its score."""
_MAX_CODES: Final = 1 << 16


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) for a term held by `frequency` of `documents` texts; never negative."""
    return log(1.0 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class Statistics:
    """BM25's statistics of the passages of one namespace; whole numbers, so that parts add up to the same in any order.

    Attributes:
        documents: how many there are.
        lengths: how many terms they have by field, int64, shape (fields,).
        frequencies: of each asked term, how many of them hold it, by field.
    """

    documents: int
    lengths: NDArray[np.int64]
    frequencies: Mapping[str, tuple[int, ...]]

    def __add__(self, other: Statistics, sign: int = 1) -> Statistics:
        """Return the statistics of both parts together; both must know the same terms."""
        if not other.documents:
            return self
        frequencies = {
            term: tuple(left + sign * right for left, right in zip(counts, other.frequencies[term], strict=True))
            for term, counts in self.frequencies.items()
        }
        return Statistics(self.documents + sign * other.documents, self.lengths + sign * other.lengths, frequencies)

    def __sub__(self, other: Statistics) -> Statistics:
        """Return the statistics without those of a part."""
        return self.__add__(other, -1)

    @property
    def mean_lengths(self) -> NDArray[np.float64]:
        """The mean number of terms by field, float64, shape (fields,); 1 if there are none."""
        means = self.lengths / max(1, self.documents)
        return np.where(means > 0, means, 1.0)

    def rarity(self, term: str) -> float:
        """Return the inverse document frequency of a term in the field that most passages hold it in."""
        return inverse_document_frequency(self.documents, max(self.frequencies.get(term, (0,))))

    def rarest(self, terms: Sequence[str], count: int) -> Counter[str]:
        """Return the `count` rarest terms that any passage holds, with how often each occurs in the query."""
        counts = Counter(terms)
        totals = {term: sum(self.frequencies[term]) for term in counts}
        rarest = sorted((term for term in totals if totals[term]), key=lambda term: (totals[term], term))
        return Counter({term: counts[term] for term in rarest[:count]})


def code_of(term: str) -> int:
    """Return the number of a term in a passage's row."""
    return crc32(term.encode("utf-8", "surrogatepass"))


class _Packed(dict[str, bytes]):
    def __missing__(self, term: str) -> bytes:
        if len(self) >= _MAX_CODES:
            self.clear()
        packed = self[term] = code_of(term).to_bytes(4, "little")
        return packed


_packed = _Packed()
_MARKS: Final = [[bytes([column << _COUNT_BITS | n]) for n in range(MAX_COUNT + 1)] for column in range(len(NAMES))]


def pack(fields: Mapping[str, Sequence[str]]) -> bytes:
    """Return the row of a passage with these terms."""
    units = [len(fields.get(name, ())).to_bytes(UNIT.itemsize, "little") for name in NAMES]
    for name, marks in zip(NAMES, _MARKS, strict=True):
        terms = Counter(fields.get(name, ()))
        counts: Iterable[int] = terms.values()
        if max(counts, default=0) > MAX_COUNT:
            counts = (min(count, MAX_COUNT) for count in counts)
        units += chain.from_iterable(zip(map(_packed.__getitem__, terms), map(marks.__getitem__, counts), strict=True))
    return b"".join(units)


def lengths_of(row: bytes) -> tuple[int, ...]:
    """Return how many terms each field of a passage has, from its row or the beginning of it."""
    size = UNIT.itemsize
    return tuple(int.from_bytes(row[offset : offset + 4], "little") for offset in range(0, len(NAMES) * size, size))


class TermRows:
    """The term counts and field lengths of n passages.

    Attributes:
        lengths: int64, shape (n, fields).
    """

    def __init__(self, rows: Sequence[bytes]) -> None:
        """Read the rows of passages; b"" is a passage without terms."""
        sizes = np.fromiter(map(len, rows), np.int64, len(rows)) // UNIT.itemsize
        self._units = np.frombuffer(b"".join(rows), UNIT)
        self._ends = np.cumsum(sizes)
        self.lengths = np.zeros((len(rows), len(NAMES)), np.int64)
        is_filled = sizes > 0
        begins = (self._ends - sizes)[is_filled]
        self.lengths[is_filled] = self._units["value"][begins[:, np.newaxis] + np.arange(len(NAMES))]

    def __len__(self) -> int:
        return len(self._ends)

    def units(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
        """Return the row, code and mark of each term of each field, row by row."""
        positions = np.flatnonzero(self._units["mark"] > 0)
        rows = np.searchsorted(self._ends, positions, side="right")
        return rows, self._units["value"][positions], self._units["mark"][positions]

    def find(self, terms: Collection[str]) -> Matches:
        """Return where the rows hold the given terms; a repeated term is looked up once."""
        distinct = list(dict.fromkeys(terms))
        codes = np.fromiter(map(code_of, distinct), np.uint32, len(distinct))
        # Few of the rows' terms are asked for: a table of the lower halves finds them in one pass.
        table = np.zeros(1 << 16, np.bool_)
        table[codes & 0xFFFF] = True
        values, marks = self._units["value"], self._units["mark"]
        positions = np.flatnonzero(table[values.astype(np.uint16)] & (marks > 0))
        order = np.argsort(codes, kind="stable")
        term_indexes = np.minimum(np.searchsorted(codes[order], values[positions]), max(0, len(codes) - 1))
        if len(codes):
            is_match = codes[order][term_indexes] == values[positions]
            positions, term_indexes = positions[is_match], order[term_indexes[is_match]]
        rows = np.searchsorted(self._ends, positions, side="right")
        return Matches(self.lengths, rows, distinct, term_indexes, *fields_and_counts(marks[positions]))


def fields_and_counts(marks: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the field that each mark names, and how often the term is there."""
    return (marks >> _COUNT_BITS).astype(np.int64), (marks & MAX_COUNT).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Matches:
    """The m matches of a query's terms in n passages, passage by passage.

    Attributes:
        lengths: of the passages' fields; int64, shape (n, fields).
        rows, terms, fields: which passage holds which term in which field; int64, shape (m,).
        words: the terms.
        counts: how often; float64, shape (m,).
    """

    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    words: Sequence[str]
    terms: NDArray[np.int64]
    fields: NDArray[np.int64]
    counts: NDArray[np.float64]

    @property
    def statistics(self) -> Statistics:
        """The statistics of these passages alone."""
        size = len(NAMES)
        sums = np.bincount(self.terms * size + self.fields, minlength=len(self.words) * size).reshape(-1, size)
        frequencies = dict(zip(self.words, map(tuple, sums.tolist()), strict=True))
        return Statistics(len(self.lengths), self.lengths.sum(axis=0), frequencies)

    def scores(
        self, query: Mapping[str, int], statistics: Statistics, fields: Collection[str] = NAMES
    ) -> NDArray[np.float32]:
        """Return the BM25 scores of the passages, float32, shape (n,), 0 if no term matches.

        Args:
            query: how often each term is asked for, and counts.
            statistics: of all passages of the namespace.
            fields: those that count.
        """
        term_weights = np.array([query.get(term, 0) and query[term] * statistics.rarity(term) for term in self.words])
        weights = np.array([WEIGHTS[name] if name in fields else 0.0 for name in NAMES])
        relative = self.lengths[self.rows, self.fields] / statistics.mean_lengths[self.fields]
        saturated = self.counts * (K1 + 1.0) / (self.counts + K1 * (1.0 - B + B * relative))
        contributions = term_weights[self.terms] * weights[self.fields] * saturated if len(self.terms) else saturated
        return np.bincount(self.rows, contributions, minlength=len(self.lengths)).astype(np.float32)
