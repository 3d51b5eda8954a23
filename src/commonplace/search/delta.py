"""Score passages that the index lacks: the delta since its last update, and history for `as_of`."""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import LexicalStatistics
from commonplace.ranking.arrays import union, within, without
from commonplace.ranking.bm25 import K1, B, rarity
from commonplace.search.signals import Spaces, TokenRows, concatenate, token_rows
from commonplace.text.tokens import FIELDS, fields_of, passage_language
from commonplace.types import IndexEntry

if TYPE_CHECKING:
    from commonplace.store.store import Store

_NAMES = tuple(FIELDS)
_FIELD_BITS, _COUNT_BITS = 4, 12
_MAX_COUNT = (1 << _COUNT_BITS) - 1


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
            for column, name in enumerate(_NAMES):
                terms = fields.get(name, [])
                self._lengths[column].append(len(terms))
                for term, count in Counter(terms).items():
                    posting = (place << _FIELD_BITS | column) << _COUNT_BITS | min(count, _MAX_COUNT)
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
            for column, name in enumerate(_NAMES):
                chosen = fields == column
                if name not in read or not chosen.any():
                    continue
                mean = statistics.mean_lengths[name] or 1.0
                weight = FIELDS[name] * worth
                count, length = counts[chosen], lengths[column][rows[chosen]]
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
        return rows, fields, (packed & _MAX_COUNT).astype(np.float64)


def _together(
    index: LexicalStatistics,
    lengths: Sequence[NDArray[np.float64]],
    matches: dict[str, tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64]]],
) -> LexicalStatistics:
    documents = index.documents + len(lengths[0])
    mean_lengths: dict[str, float] = {}
    frequencies: dict[str, dict[str, int]] = {}
    for column, name in enumerate(_NAMES):
        total = index.mean_lengths.get(name, 0.0) * index.documents + float(lengths[column].sum())
        mean_lengths[name] = total / documents if documents else 0.0
        known = index.frequencies.get(name, {})
        frequencies[name] = {
            term: known.get(term, 0) + int((fields == column).sum()) for term, (_, fields, _) in matches.items()
        }
    return LexicalStatistics(documents, mean_lengths, frequencies)


_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Tail:
    """What the index lacks of one namespace.

    Attributes:
        base, upto: the rows are the passages written in change numbers (base, upto].
        token: of the change `upto`; a store with another one there has another history.
        rows: those of them that still exist, by number ascending.
        dead: numbers of the passages deleted in (base, upto], ascending; int64, shape (n,).
        terms: the analysed rows; shared with the tails that grew into this one.
    """

    base: int
    upto: int
    token: str
    rows: TokenRows
    dead: NDArray[np.int64]
    terms: TailTerms


MAX_CACHED = 20_000
"""So many analysed passages of the past are kept, some 20 MB; then it begins anew."""


@dataclass(frozen=True, slots=True)
class _Analysed:
    """Analysed passages of one namespace; a store with another token at `change` has another history."""

    change: int
    token: str
    terms: TailTerms = field(default_factory=TailTerms)


class DeltaReader:
    """Reads tails, and what was live at a time and is not any more; scores their passages. Safe for threads."""

    def __init__(self, store: Store, spaces: Spaces) -> None:
        self._store = store
        self._spaces = spaces
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        self._past: dict[str, _Analysed] = {}

    def tail(self, namespace: str, base: int) -> Tail:
        """Return what was written and deleted after `base`; within a snapshot of the store, what that holds."""
        upto = self._store.change()
        with self._lock:
            known = self._tails.get(namespace)
        if known is None or known.base != base or known.upto > upto or known.token != self._store.token(known.upto):
            nothing = token_rows([], self._spaces)
            known = Tail(base, base, self._store.token(base), nothing, np.empty(0, dtype=np.int64), TailTerms())
        if known.upto == upto:
            return known
        gone = np.array(self._store.deleted_since(known.upto, upto), dtype=np.int64)
        rows = concatenate(known.rows, token_rows(self._store.tail(namespace, known.upto), self._spaces))
        rows, dead = rows.select(~within(rows.numbers, gone)), union(known.dead, gone)
        tail = Tail(base, upto, self._store.token(upto), rows, dead, known.terms)
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def past(self, namespace: str, as_of: float | None, valid_at: float | None) -> TokenRows:
        """Return the passages of past versions that were live, or true, at a time, by number ascending."""
        return token_rows(self._store.past(namespace, as_of, valid_at), self._spaces)

    def score(
        self,
        namespace: str,
        rows: TokenRows,
        tail: Tail,
        terms: Sequence[str],
        index: LexicalStatistics,
        fields: Collection[str],
    ) -> tuple[NDArray[np.float32], LexicalStatistics]:
        """Return BM25 scores of rows, float32, shape (n,), and the statistics of the index and these rows together.

        What was not scored before is analysed first, which costs most.
        """
        with self._lock:
            return self._terms(namespace, rows, tail).score(rows.numbers, terms, index, fields)

    def languages(self, namespace: str, rows: TokenRows, tail: Tail) -> frozenset[str]:
        """Return the languages of rows, which are analysed for it, and of others that were."""
        with self._lock:
            return frozenset(self._terms(namespace, rows, tail).languages)

    def _terms(self, namespace: str, rows: TokenRows, tail: Tail) -> TailTerms:
        """Return the analysed passages that rows are among: those of the tail, or of another time."""
        if rows is tail.rows:
            terms, missing = tail.terms, rows.numbers[rows.numbers > tail.terms.last]
        else:
            known = self._past.get(namespace)
            if known is None or self._store.token(known.change) != known.token:
                known = self._begin_anew(namespace)
            missing = known.terms.missing(rows.numbers)
            if len(known.terms) and len(known.terms) + len(missing) > MAX_CACHED:
                known, missing = self._begin_anew(namespace), rows.numbers
            terms = known.terms
        for begin in range(0, len(missing), _READ_AT_ONCE):
            entries = self._store.entries(namespace, missing[begin : begin + _READ_AT_ONCE].tolist())
            terms.add(entries[number] for number in sorted(entries))
        return terms

    def _begin_anew(self, namespace: str) -> _Analysed:
        change = self._store.change()
        known = self._past[namespace] = _Analysed(change, self._store.token(change))
        return known
