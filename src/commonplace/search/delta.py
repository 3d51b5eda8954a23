"""Read what the index lacks: the delta since its last update, and history for `as_of`."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field
from commonplace.ranking.arrays import union, within
from commonplace.ranking.bm25 import pack
from commonplace.search.signals import Spaces, TokenRows, concatenate, token_rows
from commonplace.store.store import Store
from commonplace.text.tokens import fields_of, passage_language
from commonplace.types import IndexEntry


class TailTerms:
    """The term counts of passages by number, and their languages; it grows with what it is given.

    A row has some 500 bytes for a passage of 200 words; see `commonplace.ranking.bm25`.
    """

    def __init__(self) -> None:
        self._rows: dict[int, bytes] = {}
        self.languages: set[str] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def missing(self, numbers: NDArray[np.int64]) -> list[int]:
        """Return those of the passage numbers that are not held, in their order."""
        return [number for number in numbers.tolist() if number not in self._rows]

    def add(self, entries: Iterable[IndexEntry]) -> None:
        """Take passages."""
        for entry in entries:
            language = passage_language(entry)
            self.languages.add(language)
            self._rows[entry.number] = pack(fields_of(entry, language))

    def of(self, numbers: NDArray[np.int64]) -> list[bytes]:
        """Return the rows of passages in their order, b"" for one that is not held."""
        return [self._rows.get(number, b"") for number in numbers.tolist()]


_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Tail:
    """What the index lacks of one namespace.

    Attributes:
        base, upto: the rows are the passages written in the changes (base, upto] of the namespace.
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
"""So many analysed passages of the past are kept, some 10 MB; then it begins anew."""


@dataclass(frozen=True, slots=True)
class _Analysed:
    """Analysed passages of one namespace; a store with another token at `change` has another history."""

    change: int
    token: str
    terms: TailTerms = field(default_factory=TailTerms)


class DeltaReader:
    """Reads tails, and what was live at a time and is not any more. Safe for threads."""

    def __init__(self, store: Store, spaces: Spaces) -> None:
        self._store = store
        self._spaces = spaces
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        self._past: dict[str, _Analysed] = {}

    def tail(self, namespace: str, base: int) -> Tail:
        """Return what was written and deleted after `base`; within a snapshot of the store, what that holds."""
        upto, token = self._store.head(namespace)
        with self._lock:
            known = self._tails.get(namespace)
        if (
            known is None
            or known.base != base
            or known.upto > upto
            or known.token != self._store.token(namespace, known.upto)
        ):
            nothing = token_rows([], self._spaces)
            known = Tail(
                base, base, self._store.token(namespace, base), nothing, np.empty(0, dtype=np.int64), TailTerms()
            )
        if known.upto == upto:
            return known
        gone = np.array(self._store.deleted_since(namespace, known.upto, upto), dtype=np.int64)
        rows = concatenate(known.rows, token_rows(self._store.tail(namespace, known.upto), self._spaces))
        rows, dead = rows.select(~within(rows.numbers, gone)), union(known.dead, gone)
        tail = Tail(base, upto, token, rows, dead, known.terms)
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def past(self, namespace: str, as_of: float | None, valid_at: float | None) -> TokenRows:
        """Return the passages of past versions that were live, or true, at a time, by number ascending."""
        return token_rows(self._store.past(namespace, as_of, valid_at), self._spaces)

    def terms(self, namespace: str, rows: TokenRows, tail: Tail) -> list[bytes]:
        """Return the term counts of rows. What was not read before is analysed first, which costs most."""
        with self._lock:
            return self._terms(namespace, rows, tail).of(rows.numbers)

    def languages(self, namespace: str, rows: TokenRows, tail: Tail) -> frozenset[str]:
        """Return the languages of rows, which are analysed for it, and of others that were."""
        with self._lock:
            return frozenset(self._terms(namespace, rows, tail).languages)

    def _terms(self, namespace: str, rows: TokenRows, tail: Tail) -> TailTerms:
        """Return the analysed passages that rows are among: those of the tail, or of another time."""
        if rows is tail.rows:
            terms = tail.terms
            missing = terms.missing(rows.numbers)
        else:
            known = self._past.get(namespace)
            if known is None or self._store.token(namespace, known.change) != known.token:
                known = self._begin_anew(namespace)
            missing = known.terms.missing(rows.numbers)
            if len(known.terms) and len(known.terms) + len(missing) > MAX_CACHED:
                known, missing = self._begin_anew(namespace), rows.numbers.tolist()
            terms = known.terms
        for begin in range(0, len(missing), _READ_AT_ONCE):
            terms.add(self._store.entries(namespace, missing[begin : begin + _READ_AT_ONCE]).values())
        return terms

    def _begin_anew(self, namespace: str) -> _Analysed:
        known = self._past[namespace] = _Analysed(*self._store.head(namespace))
        return known
