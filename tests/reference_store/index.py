"""The exact reference for both parts of the index: plain, in memory, slow; the fast parts are compared with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from tests.reference_store import bm25

from commonplace.index.contract import Scope, Scored, Vectors
from commonplace.index.dense import best
from commonplace.index.lexical import MAX_TERMS
from commonplace.ranking.arrays import within
from commonplace.ranking.bm25 import NAMES, WEIGHTS, Statistics, pack
from commonplace.text.languages import ENGLISH
from commonplace.text.query import edits
from commonplace.text.tokens import fields_of, passage_language
from commonplace.types import IndexEntry


def vectors_of(entries: Iterable[IndexEntry]) -> Vectors:
    """Return what gives the vectors of entries as a store does."""
    held = {(entry.namespace, entry.number): entry.vector for entry in entries}
    return lambda namespace, numbers: {n: held[namespace, n] for n in numbers if (namespace, n) in held}


class ExactLexicalIndex:
    """BM25 with exact lengths over the given passages: a `LexicalIndex`."""

    def __init__(self, entries: Iterable[IndexEntry] = ()) -> None:
        self._entries = {entry.number: entry for entry in entries}
        self._fields = {number: fields_of(entry) for number, entry in self._entries.items()}

    def search(self, terms: Sequence[str], scope: Scope, limit: int, statistics: Statistics | None = None) -> Scored:
        """Return the best passages that hold any of the terms; see `LexicalIndex.search`."""
        scores = self._scores(terms, self._entries, scope, statistics or self.statistics(terms, scope))
        return best(np.array(list(scores), np.int64), np.array(list(scores.values()), np.float32), limit)

    def _scores(
        self, terms: Sequence[str], numbers: Collection[int], scope: Scope, statistics: Statistics
    ) -> dict[int, float]:
        rarest = list(statistics.rarest(terms, MAX_TERMS).elements())
        scores = {
            number: bm25.score(
                rarest,
                self._fields[number],
                weights={field: WEIGHTS[field] for field in scope.fields},
                statistics=statistics,
            )
            for number in map(int, numbers)
            if number in self._entries and _is_in_scope(self._entries[number], scope)
        }
        return {number: score for number, score in scores.items() if score > 0}

    def rows(self, numbers: NDArray[np.int64]) -> list[bytes]:
        """Return the term counts of passages; see `LexicalIndex.rows`."""
        return [pack(self._fields[number]) if number in self._fields else b"" for number in numbers.tolist()]

    def statistics(self, terms: Sequence[str], scope: Scope) -> Statistics:
        """Return the statistics of the scope's namespace; see `LexicalIndex.statistics`."""
        everywhere = Scope(scope.namespace, dead=scope.dead)
        held = [self._fields[n] for n, entry in self._entries.items() if _is_in_scope(entry, everywhere)]
        return Statistics(
            len(held),
            np.array([sum(len(fields[name]) for fields in held) for name in NAMES]),
            {
                term: tuple(sum(term in fields[name] for fields in held) for name in NAMES)
                for term in dict.fromkeys(terms)
            },
        )

    def listed(self, terms: Sequence[str], namespaces: Iterable[str]) -> dict[str, int]:
        """Return how many entries there are of each term; see `LexicalIndex.listed`."""
        return {
            term: sum(term in held for fields in self._fields.values() for held in fields.values()) for term in terms
        }

    def similar(self, term: str, distance: int, scope: Scope, limit: int) -> list[int]:
        """Return passages with a term that is spelled almost like the given one; see `LexicalIndex.similar`."""
        found = [
            number
            for number, fields in self._fields.items()
            if _is_in_scope(self._entries[number], scope)
            and any(edits(term, held, distance) <= distance for terms in fields.values() for held in set(terms))
        ]
        return found[:limit]

    def languages(self, namespace: str) -> frozenset[str]:
        """Return the languages but English of a namespace's passages."""
        entries = [entry for entry in self._entries.values() if entry.namespace == namespace]
        return frozenset(map(passage_language, entries)) - {ENGLISH}


class ExactDenseIndex:
    """Cosine with every passage: a `DenseIndex`."""

    def __init__(self, entries: Iterable[IndexEntry] = ()) -> None:
        self._entries = {entry.number: entry for entry in entries}
        self._vectors = {
            number: np.frombuffer(entry.vector, np.int8).astype(np.float32) for number, entry in self._entries.items()
        }

    def search(
        self, vector: NDArray[np.float32], scope: Scope, limit: int, vectors: Vectors, space: str = ""
    ) -> Scored:
        """Return the passages with the highest cosine; see `DenseIndex.search`. It holds those of one embedder."""
        found = [
            number
            for number, entry in self._entries.items()
            if self._vectors[number].any()
            and entry.namespace == scope.namespace
            and _is_owner_in(entry, scope)
            and not _is_left_out(entry, scope)
        ]
        numbers = np.array(found if vector.any() else [], dtype=np.int64)
        cosines = [self._cosine(vector, number) for number in numbers.tolist()]
        return best(numbers, np.array(cosines, dtype=np.float32), limit)

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owner of each passage; see `DenseIndex.owners`."""
        found = (self._entries.get(number) for number in numbers.tolist())
        return np.array([-1 if entry is None else entry.owner_number for entry in found], dtype=np.int64)

    def _cosine(self, vector: NDArray[np.float32], number: int) -> float:
        row = self._vectors[number]
        return float(row @ vector) / float(np.linalg.norm(row))


def _is_in_scope(entry: IndexEntry, scope: Scope) -> bool:
    return (
        entry.namespace == scope.namespace
        and (not scope.kinds or entry.kind in scope.kinds)
        and _is_owner_in(entry, scope)
        and not _is_left_out(entry, scope)
    )


def _is_owner_in(entry: IndexEntry, scope: Scope) -> bool:
    return scope.owners is None or bool(within(np.array([entry.owner_number]), scope.owners)[0])


def _is_left_out(entry: IndexEntry, scope: Scope) -> bool:
    is_dead = scope.dead is not None and bool(within(np.array([entry.number]), scope.dead)[0])
    return is_dead or (
        scope.passed_over is not None and bool(within(np.array([entry.owner_number]), scope.passed_over)[0])
    )
