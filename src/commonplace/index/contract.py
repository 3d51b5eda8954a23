"""Protocols of the lexical and the dense index.

A part is read at one generation: an immutable state of the index that holds every change up to its `heads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.ranking.bm25 import Statistics
from commonplace.types import SEARCH_FIELDS

Vectors = Callable[[str, Sequence[int]], Mapping[int, bytes]]
"""Reads the int8 vectors of passages of a namespace by number, as `Store.vectors` does."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search of the index may return.

    Attributes:
        namespace: always one; nothing outside it is ever returned.
        owners: ascending owner numbers that pass the request's filter, or None if it asks for nothing but kinds.
        dead: ascending passage numbers that the store deleted since this generation; they take no place in a result.
        passed_over: ascending owner numbers of which nothing more is wanted; they take no place in a result.
        kinds: kinds to return, () for all; an index beside the store knows them in its lexical part alone.
        fields: fields that the lexical part reads; a term keeps the rarity that it has in all fields.
    """

    namespace: str
    owners: NDArray[np.int64] | None = None
    dead: NDArray[np.int64] | None = None
    passed_over: NDArray[np.int64] | None = None
    fields: tuple[str, ...] = SEARCH_FIELDS
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """Passages with scores, best first, ties by number. `numbers`: int64, shape (n,); `scores`: float32, shape (n,)."""

    numbers: NDArray[np.int64]
    scores: NDArray[np.float32]


class LexicalIndex(Protocol):
    """Passages by their words, scored by `commonplace.ranking.bm25` with the statistics of their own namespace."""

    def search(self, terms: Sequence[str], scope: Scope, limit: int, statistics: Statistics | None = None) -> Scored:
        """Return the best passages that hold any of the analysed terms.

        Args:
            statistics: those of the namespace if it holds more than the index; None takes the index's own.
        """

    def rows(self, numbers: NDArray[np.int64]) -> Sequence[bytes]:
        """Return the term counts of passages in their order, see `ranking.bm25`; b"" for one that is not here."""

    def statistics(self, terms: Sequence[str], scope: Scope) -> Statistics:
        """Return the statistics of the scope's namespace without its dead passages; no filter counts."""

    def listed(self, terms: Sequence[str], namespaces: Iterable[str]) -> Mapping[str, int]:
        """Return how many entries the index has of each term, including deleted ones that it still holds.

        Args:
            namespaces: those that are counted; an index with one dictionary for all counts all.
        """

    def similar(self, term: str, distance: int, scope: Scope, limit: int) -> Sequence[int]:
        """Return numbers of passages that hold a term at most 1 or 2 edits away from the given one.

        An edit adds, removes or replaces a character, or exchanges two. In no particular order; at most `limit`.
        """

    def languages(self, namespace: str) -> frozenset[str]:
        """Return the languages other than English in which passages of a namespace are stemmed."""


class DenseIndex(Protocol):
    """Cosine similarity over int8 vectors of one or several embedders."""

    def search(
        self, vector: NDArray[np.float32], scope: Scope, limit: int, vectors: Vectors, space: str = ""
    ) -> Scored:
        """Return the passages with the highest cosine.

        Args:
            vector: float32, shape (d,), of unit length, or zero, which finds nothing.
            vectors: reads those of the candidates, if the index holds none itself.
            space: the stamp of the embedder that made it; passages of another one are not found. "" is any that makes
                vectors of that length.
        """

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owner number of each passage, int64, shape (n,), -1 for one that is not here."""
