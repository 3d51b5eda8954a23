"""Read what the index lacks: the delta since its last update, and history for `as_of`."""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field
from commonplace.ranking.arrays import union, within
from commonplace.ranking.bm25 import pack
from commonplace.search.signals import Spaces, TokenRows, concatenate, token_rows
from commonplace.store.store import Store
from commonplace.text.tokens import fields_of, passage_language

_READ_AT_ONCE: Final = 500
MAX_CACHED: Final = 20_000
"""So many analysed passages that a search does not ask for are kept, some 10 MB; then it begins anew."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What the index lacks of one namespace.

    Attributes:
        base, upto: the rows are the passages written in the changes (base, upto] of the namespace.
        token: of the change `upto`; a store with another one there has another history.
        rows: those of them that still exist, by number ascending.
        dead: numbers of the passages deleted in (base, upto], ascending; int64, shape (n,).
    """

    base: int
    upto: int
    token: str
    rows: TokenRows
    dead: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Analysed:
    """Passages of one namespace by number; a store with another token at `change` has another history.

    Attributes:
        terms: their term counts, some 500 bytes for a passage of 200 words; see `commonplace.ranking.bm25`.
        languages: in which they are stemmed.
    """

    change: int
    token: str
    terms: dict[int, bytes] = field(default_factory=dict)
    languages: dict[int, str] = field(default_factory=dict)


class DeltaReader:
    """Reads tails, and what was live at a time and is not any more. Safe for threads."""

    def __init__(self, store: Store, spaces: Spaces) -> None:
        self._store = store
        self._spaces = spaces
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        self._known: dict[str, _Analysed] = {}

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
            known = Tail(base, base, self._store.token(namespace, base), nothing, np.empty(0, dtype=np.int64))
        if known.upto == upto:
            return known
        gone = np.array(self._store.deleted_since(namespace, known.upto, upto), dtype=np.int64)
        rows = concatenate(known.rows, token_rows(self._store.tail(namespace, known.upto), self._spaces))
        tail = Tail(base, upto, token, rows.select(~within(rows.numbers, gone)), union(known.dead, gone))
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def past(self, namespace: str, as_of: float | None, valid_at: float | None) -> TokenRows:
        """Return the passages of past versions that were live, or true, at a time, by number ascending."""
        return token_rows(self._store.past(namespace, as_of, valid_at), self._spaces)

    def terms(self, namespace: str, rows: TokenRows) -> list[bytes]:
        """Return the term counts of rows, b"" for one that is gone. What was not read before is analysed first."""
        known = self._analysed(namespace, rows)
        return [known.terms.get(number, b"") for number in rows.numbers.tolist()]

    def languages(self, namespace: str, rows: TokenRows) -> frozenset[str]:
        """Return the languages of rows, which are analysed for it."""
        known = self._analysed(namespace, rows)
        return frozenset(known.languages[number] for number in rows.numbers.tolist() if number in known.languages)

    def _analysed(self, namespace: str, rows: TokenRows) -> _Analysed:
        """Return analysed passages, these rows among them: to analyse them costs most of a search that lacks them."""
        with self._lock:
            known, numbers = self._known.get(namespace), rows.numbers.tolist()
            is_too_much = known is not None and len(known.terms) > MAX_CACHED + len(numbers)
            if known is None or is_too_much or self._store.token(namespace, known.change) != known.token:
                known = self._known[namespace] = _Analysed(*self._store.head(namespace))
            missing = [number for number in numbers if number not in known.terms]
            for begin in range(0, len(missing), _READ_AT_ONCE):
                for entry in self._store.entries(namespace, missing[begin : begin + _READ_AT_ONCE]).values():
                    language = known.languages[entry.number] = passage_language(entry)
                    known.terms[entry.number] = pack(fields_of(entry, language))
            return known
