"""The tail: passages that the store holds and the index does not yet, scored directly.

It knows the store and one index generation; it keeps what it read and analysed, so that a second search pays nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import LexicalStatistics
from commonplace.ranking.arrays import union, within
from commonplace.search.candidates import Spaces, TokenRows, concatenate, token_rows
from commonplace.search.tail_terms import TailTerms

if TYPE_CHECKING:
    from commonplace.store.contract import Store

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


class TailReader:
    """Reads tails and scores their passages. Safe for threads."""

    def __init__(self, store: Store, spaces: Spaces) -> None:
        self._store = store
        self._spaces = spaces
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}

    def read(self, namespace: str, base: int) -> Tail:
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
        rows = concatenate(known.rows, self._rows(namespace, known.upto))
        tail = Tail(
            base,
            upto,
            self._store.token(upto),
            rows.select(~within(rows.numbers, gone)),
            union(known.dead, gone),
            known.terms,
        )
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def score(
        self, namespace: str, tail: Tail, terms: Sequence[str], index: LexicalStatistics, fields: Collection[str]
    ) -> tuple[NDArray[np.float32], LexicalStatistics]:
        """Return BM25 scores of all rows of a tail, float32, shape (n,), and the statistics of index and tail together.

        What the tail has gained since the last call is analysed first, which costs most.
        """
        with self._lock:
            self._learn(namespace, tail)
            return tail.terms.score(tail.rows.numbers, terms, index, fields)

    def languages(self, namespace: str, tail: Tail) -> frozenset[str]:
        """Return the languages of a tail's passages, which are analysed for it."""
        with self._lock:
            self._learn(namespace, tail)
            return frozenset(tail.terms.languages)

    def _learn(self, namespace: str, tail: Tail) -> None:
        learn(tail.terms, tail.rows.numbers[tail.rows.numbers > tail.terms.last], self._store, namespace)

    def _rows(self, namespace: str, base: int) -> TokenRows:
        return token_rows(self._store.tail(namespace, base), self._spaces)


def learn(terms: TailTerms, numbers: NDArray[np.int64], store: Store, namespace: str) -> None:
    """Read and analyse passages, by number ascending."""
    for begin in range(0, len(numbers), _READ_AT_ONCE):
        entries = store.entries(namespace, numbers[begin : begin + _READ_AT_ONCE].tolist())
        terms.add(entries[number] for number in sorted(entries))
