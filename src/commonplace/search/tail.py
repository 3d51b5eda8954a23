"""The tail: passages that the store holds and the index does not yet, scored directly.

It knows the store and one index generation; it keeps what it read and analysed, so that a second search pays nothing.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import LexicalStatistics
from commonplace.ranking.arrays import union, within
from commonplace.ranking.bm25 import inverse_document_frequency, saturation
from commonplace.search.candidates import TokenRows, concatenate, token_rows
from commonplace.store.contract import Store
from commonplace.text.analysis import FIELDS, fields_of

MAX_ANALYSED = 2_000
"""How many analysed passages are kept in memory; about 3 kB each."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What the index lacks of one namespace.

    Attributes:
        base, upto: the rows are the passages written in change numbers (base, upto].
        rows: those of them that still exist, by number ascending.
        dead: numbers of the passages deleted in (base, upto], ascending; int64, shape (n,).
    """

    base: int
    upto: int
    rows: TokenRows
    dead: NDArray[np.int64]


Fields = Mapping[str, Counter[str]]


class TailReader:
    """Reads tails and scores their passages. Safe for threads."""

    def __init__(self, store: Store, dimensions: int) -> None:
        self._store = store
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        self._analysed: OrderedDict[tuple[str, int], Fields] = OrderedDict()

    def read(self, namespace: str, base: int) -> Tail:
        """Return what was written and deleted after `base`; within a snapshot of the store, what that holds."""
        upto = self._store.change()
        with self._lock:
            known = self._tails.get(namespace)
        if known is None or known.base != base or known.upto > upto:
            known = Tail(base, base, token_rows([], self._dimensions), np.empty(0, dtype=np.int64))
        if known.upto == upto:
            return known
        fresh = self._rows(namespace, known.upto)
        gone = np.array(self._store.deleted_since(known.upto, upto), dtype=np.int64)
        rows = concatenate(known.rows, fresh)
        tail = Tail(base, upto, rows.select(~within(rows.numbers, gone)), union(known.dead, gone))
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def statistics(
        self, namespace: str, numbers: Sequence[int], terms: Sequence[str], index: LexicalStatistics
    ) -> LexicalStatistics:
        """Return document frequencies and lengths of the index and of the given passages of the tail together."""
        analysed = self._fields(namespace, numbers)
        return _together(index, [fields for fields in analysed.values() if fields], terms)

    def lexical(
        self, namespace: str, numbers: Sequence[int], terms: Sequence[str], statistics: LexicalStatistics
    ) -> NDArray[np.float32]:
        """Return BM25 scores of passages of the tail, float32, shape (n,), 0 where no term matches."""
        analysed = self._fields(namespace, numbers)
        return np.array([_score(analysed[number], terms, statistics) for number in numbers], dtype=np.float32)

    def _fields(self, namespace: str, numbers: Sequence[int]) -> dict[int, Fields]:
        with self._lock:
            found = {n: self._analysed[namespace, n] for n in numbers if (namespace, n) in self._analysed}
        missing = [number for number in numbers if number not in found]
        entries = self._store.entries(namespace, missing) if missing else {}
        for number in missing:
            entry = entries.get(number)
            found[number] = {} if entry is None else {name: Counter(ws) for name, ws in fields_of(entry).items()}
        with self._lock:
            for number in missing:
                self._analysed[namespace, number] = found[number]
            while len(self._analysed) > MAX_ANALYSED:
                self._analysed.popitem(last=False)
        return found

    def _rows(self, namespace: str, base: int) -> TokenRows:
        return token_rows(self._store.tail(namespace, base), self._dimensions)


def _together(index: LexicalStatistics, passages: Sequence[Fields], terms: Sequence[str]) -> LexicalStatistics:
    documents = index.documents + len(passages)
    lengths, frequencies = {}, {}
    for name in FIELDS:
        counts = [fields.get(name, _NO_TERMS) for fields in passages]
        total = index.mean_lengths.get(name, 0.0) * index.documents + sum(c.total() for c in counts)
        lengths[name] = total / documents if documents else 0.0
        known = index.frequencies.get(name, {})
        frequencies[name] = {term: known.get(term, 0) + sum(term in c for c in counts) for term in terms}
    return LexicalStatistics(documents, lengths, frequencies)


def _score(fields: Fields, terms: Sequence[str], statistics: LexicalStatistics) -> float:
    score = 0.0
    for name, weight in FIELDS.items():
        counts = fields.get(name, _NO_TERMS)
        if not counts:
            continue
        length = counts.total()
        mean = statistics.mean_lengths[name]
        for term in terms:
            if counts[term]:
                idf = inverse_document_frequency(statistics.documents, statistics.frequencies[name][term])
                score += weight * idf * saturation(counts[term], length, mean)
    return score


_NO_TERMS: Counter[str] = Counter()
