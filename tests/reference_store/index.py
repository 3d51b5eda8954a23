"""The exact reference for both parts of the index: plain, in memory, slow; the fast parts are compared with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from tests.reference_store import bm25

from commonplace.index.contract import LexicalStatistics, Scope, Scored
from commonplace.index.dense import best
from commonplace.index.lexical import MAX_TERMS
from commonplace.ranking.arrays import within
from commonplace.text.languages import ENGLISH
from commonplace.text.query import edits
from commonplace.text.tokens import FIELDS, fields_of, passage_language
from commonplace.types import Filter, IndexEntry


class ExactLexicalIndex:
    """BM25 with exact lengths over the given passages: a `LexicalIndex`."""

    def __init__(self, entries: Iterable[IndexEntry] = ()) -> None:
        self._entries = {entry.number: entry for entry in entries}
        self._fields = {number: fields_of(entry) for number, entry in self._entries.items()}
        self._frequencies: dict[str, Counter[str]] = {field: Counter() for field in FIELDS}
        for fields in self._fields.values():
            for field, terms in fields.items():
                self._frequencies[field].update(set(terms))

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> Scored:
        """Return the best passages that hold any of the terms; see `LexicalIndex.search`."""
        scores = self.score(terms, self._entries, scope)
        return best(np.array(list(scores), np.int64), np.array(list(scores.values()), np.float32), limit)

    def score(self, terms: Sequence[str], numbers: Collection[int], scope: Scope) -> dict[int, float]:
        """Return the scores of the given passages that match; see `LexicalIndex.score`."""
        rarest, statistics = self._rarest(terms), self.statistics(terms)
        scores = {
            number: bm25.score(
                rarest,
                self._fields[number],
                weights={field: FIELDS[field] for field in scope.fields},
                documents=statistics.documents,
                mean_lengths=statistics.mean_lengths,
                frequencies=statistics.frequencies,
            )
            for number in map(int, numbers)
            if number in self._entries and _is_in_scope(self._entries[number], scope)
        }
        return {number: score for number, score in scores.items() if score > 0}

    def statistics(self, terms: Sequence[str]) -> LexicalStatistics:
        """Return the exact statistics for the terms."""
        documents = len(self._entries)
        lengths = {field: sum(len(fields[field]) for fields in self._fields.values()) for field in FIELDS}
        return LexicalStatistics(
            documents,
            {field: length / max(1, documents) for field, length in lengths.items()},
            {field: {term: self._frequencies[field][term] for term in dict.fromkeys(terms)} for field in FIELDS},
        )

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

    def _rarest(self, terms: Sequence[str]) -> list[str]:
        counts = Counter(terms)
        held = {term: sum(self._frequencies[field][term] for field in FIELDS) for term in counts}
        rarest = sorted((term for term in held if held[term]), key=lambda term: (held[term], term))[:MAX_TERMS]
        return [term for term in rarest for _ in range(counts[term])]


class ExactDenseIndex:
    """Cosine with every passage: a `DenseIndex`."""

    def __init__(self, entries: Iterable[IndexEntry] = ()) -> None:
        self._entries = {entry.number: entry for entry in entries}
        self._vectors = {
            number: np.frombuffer(entry.vector, np.int8).astype(np.float32) for number, entry in self._entries.items()
        }

    def search(self, vector: NDArray[np.float32], scope: Scope, limit: int, space: str = "") -> Scored:
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

    def token_frequencies(self, token_ids: NDArray[np.uint16]) -> tuple[int, NDArray[np.int64]]:
        """Return the number of passages and, for each token id, how many passages hold it."""
        held = Counter(
            token for entry in self._entries.values() for token in set(np.frombuffer(entry.token_ids, "<u2").tolist())
        )
        return len(self._entries), np.array([held[token] for token in token_ids.tolist()], dtype=np.int64)

    def passages(self, scope: Scope) -> int:
        """Return how many passages there are to find; see `DenseIndex.passages`."""
        everywhere = Scope(scope.namespace, Filter(), dead=scope.dead)
        return sum(_is_in_scope(entry, everywhere) for entry in self._entries.values())

    def _cosine(self, vector: NDArray[np.float32], number: int) -> float:
        row = self._vectors[number]
        return float(row @ vector) / float(np.linalg.norm(row))


def _is_in_scope(entry: IndexEntry, scope: Scope) -> bool:
    wanted = scope.filter
    return (
        entry.namespace == scope.namespace
        and (not wanted.kinds or entry.kind in wanted.kinds)
        and (not wanted.types or entry.type in wanted.types)
        and (not wanted.phases or not entry.phase or entry.phase in wanted.phases)
        and (not wanted.tags or not set(wanted.tags).isdisjoint(entry.tags))
        and (not wanted.needs_owners or _is_owner_in(entry, scope))
        and not _is_left_out(entry, scope)
    )


def _is_owner_in(entry: IndexEntry, scope: Scope) -> bool:
    return scope.owners is None or bool(within(np.array([entry.owner_number]), scope.owners)[0])


def _is_left_out(entry: IndexEntry, scope: Scope) -> bool:
    is_dead = scope.dead is not None and bool(within(np.array([entry.number]), scope.dead)[0])
    return is_dead or (
        scope.passed_over is not None and bool(within(np.array([entry.owner_number]), scope.passed_over)[0])
    )
