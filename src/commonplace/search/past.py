"""Passages of the past: versions that were replaced or archived since, which no index holds, scored directly.

It knows the store; it keeps what it analysed, so that a second look at the past pays only for what it had not seen.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import LexicalStatistics
from commonplace.search.candidates import Spaces, TokenRows, token_rows
from commonplace.search.tail import learn
from commonplace.search.tail_terms import TailTerms

if TYPE_CHECKING:
    from commonplace.store.contract import Store

MOST_HELD = 20_000
"""So many analysed passages are kept, some 20 MB; then it begins anew."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Analysed passages of one namespace; a store with another token at `change` has another history."""

    change: int
    token: str
    terms: TailTerms = field(default_factory=TailTerms)


class PastReader:
    """Reads what was live at a time and is not any more, and scores it. Safe for threads."""

    def __init__(self, store: Store, spaces: Spaces) -> None:
        self._store = store
        self._spaces = spaces
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def read(self, namespace: str, as_of: float | None, valid_at: float | None) -> TokenRows:
        """Return the passages of past versions that were live, or true, at a time, by number ascending."""
        return token_rows(self._store.past(namespace, as_of, valid_at), self._spaces)

    def score(
        self,
        namespace: str,
        rows: TokenRows,
        terms: Sequence[str],
        index: LexicalStatistics,
        fields: Collection[str],
    ) -> tuple[NDArray[np.float32], LexicalStatistics]:
        """Return BM25 scores of rows, float32, shape (n,), and the statistics of the index and these rows together."""
        with self._lock:
            return self._learned(namespace, rows).score(rows.numbers, terms, index, fields)

    def languages(self, namespace: str, rows: TokenRows) -> frozenset[str]:
        """Return the languages of rows, which are analysed for it, and of others that were."""
        with self._lock:
            return frozenset(self._learned(namespace, rows).languages)

    def _learned(self, namespace: str, rows: TokenRows) -> TailTerms:
        known = self._held(namespace)
        missing = known.missing(rows.numbers)
        if len(known) and len(known) + len(missing) > MOST_HELD:
            known = self._anew(namespace)
            missing = rows.numbers
        learn(known, missing, self._store, namespace)
        return known

    def _held(self, namespace: str) -> TailTerms:
        known = self._known.get(namespace)
        if known is None or self._store.token(known.change) != known.token:
            return self._anew(namespace)
        return known.terms

    def _anew(self, namespace: str) -> TailTerms:
        change = self._store.change()
        known = self._known[namespace] = _Known(change, self._store.token(change))
        return known.terms
