"""Lexical search over the postings in the chunks: every passage that holds a term is scored.

A term is listed under its namespace's code, so other namespaces cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.index.chunks import ChunkFile, label
from commonplace.index.contract import Scope, Scored
from commonplace.index.dense import ChunkedDenseIndex, best
from commonplace.index.files import Manifest
from commonplace.ranking.arrays import distinct, within
from commonplace.ranking.bm25 import NAMES, Statistics, TermRows
from commonplace.text.languages import ENGLISH, NATURAL_LANGUAGES
from commonplace.text.query import edits

MAX_TERMS = 64
"""Maximum number of terms searched, the rarest of the query, so that a pasted page costs no more than a paragraph."""
_MAX_CACHED = 10_000
"""Maximum number of terms whose frequencies are cached, some 2 MB; then the cache is emptied."""


class PackedLexicalIndex:
    """The lexical part of one generation: a `LexicalIndex`. Safe for threads."""

    def __init__(self, manifest: Manifest, dense: ChunkedDenseIndex) -> None:
        """Read the chunks that the dense part has open."""
        self._dense = dense
        self._codes = {name: code for code, name in enumerate(manifest.namespaces)}
        self._totals = np.array(manifest.statistics, np.int64).reshape(-1, 1 + len(NAMES))
        self._cached: dict[tuple[int, str], tuple[int, ...]] = {}
        self._last_dead: tuple[NDArray[np.int64], int, TermRows] | None = None

    def search(self, terms: Sequence[str], scope: Scope, limit: int, statistics: Statistics | None = None) -> Scored:
        code, numbers, scores = self._codes.get(scope.namespace), [_NUMBERS], [_SCORES]
        if code is None or limit <= 0:
            return Scored(_NUMBERS, _SCORES)
        statistics = statistics or self.statistics(terms, scope)
        query_terms = statistics.rarest(terms, MAX_TERMS)
        for chunk, dead in zip(self._dense.chunks, self._dense.dead, strict=True):
            chunk_scores = chunk.find_terms(code, list(query_terms)).scores(query_terms, statistics, scope.fields)
            rows = _in_scope(chunk, dead, np.flatnonzero(chunk_scores > 0), scope, code)
            numbers.append(chunk.numbers[rows])
            scores.append(chunk_scores[rows])
        return best(np.concatenate(numbers), np.concatenate(scores), limit)

    def rows(self, numbers: NDArray[np.int64]) -> Sequence[bytes]:
        return self._dense.terms(numbers, None)

    def statistics(self, terms: Sequence[str], scope: Scope) -> Statistics:
        code, distinct_terms = self._codes.get(scope.namespace, -1), list(dict.fromkeys(terms))
        totals = self._totals[code] if code >= 0 else np.zeros(1 + len(NAMES), np.int64)
        indexed = Statistics(int(totals[0]), totals[1:], self._frequencies(code, distinct_terms))
        if scope.dead is None or not len(scope.dead):
            return indexed
        # Term counts of passages that the store deleted are read once for all searches of a state.
        last = self._last_dead
        if last is None or last[0] is not scope.dead or last[1] != code:
            rows = [row for row in self._dense.terms(scope.dead, code) if row]
            last = self._last_dead = scope.dead, code, TermRows(rows)
        return indexed - last[2].find(distinct_terms).statistics

    def listed(self, terms: Sequence[str], namespaces: Iterable[str]) -> Counter[str]:  # noqa: ARG002 - one for all
        counts = Counter(dict.fromkeys(terms, 0))
        for chunk in self._dense.chunks:
            counts.update(chunk.listed(terms))
        return counts

    def similar(self, term: str, distance: int, scope: Scope, limit: int) -> Sequence[int]:
        code, numbers = self._codes.get(scope.namespace, -1), list[int]()
        for chunk, dead in zip(self._dense.chunks, self._dense.dead, strict=True):
            alike = [name for name in chunk.alike(code, term, distance) if edits(term, name, distance) <= distance]
            rows = distinct(chunk.find_terms(code, alike).rows) if alike else np.empty(0, np.int64)
            numbers += chunk.numbers[_in_scope(chunk, dead, rows, scope, code)].tolist()
            if len(numbers) >= limit:
                break  # each chunk's names are decompressed separately
        return numbers[: max(0, limit)]

    def languages(self, namespace: str) -> frozenset[str]:
        terms = {label(language): language for language in NATURAL_LANGUAGES if language != ENGLISH}
        frequencies = self._frequencies(self._codes.get(namespace, -1), list(terms))
        return frozenset(terms[term] for term, counts in frequencies.items() if any(counts))

    def _frequencies(self, code: int, terms: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        """Return how many passages of a namespace hold each term, by field; the counts are cached."""
        if len(self._cached) > _MAX_CACHED:
            self._cached.clear()
        frequencies = {term: self._cached.get((code, term)) for term in terms}
        if missing := [term for term, cached in frequencies.items() if cached is None]:
            counts = np.zeros(len(missing) * len(NAMES), np.int64)
            for chunk, dead in zip(self._dense.chunks, self._dense.dead, strict=True):
                matches = chunk.find_terms(code, missing)
                positions = matches.terms * len(NAMES) + matches.fields
                counts += np.bincount(positions[~within(matches.rows, dead)], minlength=len(counts))
            for term, by_field in zip(missing, map(tuple, counts.reshape(-1, len(NAMES)).tolist()), strict=True):
                frequencies[term] = self._cached[code, term] = by_field
        return frequencies  # type: ignore[return-value]


_NUMBERS, _SCORES = np.empty(0, np.int64), np.empty(0, np.float32)


def _in_scope(
    chunk: ChunkFile, dead: NDArray[np.int32], rows: NDArray[np.int64], scope: Scope, code: int
) -> NDArray[np.int64]:
    """Return the rows that are in scope, of ascending rows of a namespace."""
    keep = ~within(rows, dead)
    if scope.kinds:
        keep &= within(rows, np.sort(chunk.find_terms(code, list(map(label, scope.kinds))).rows))
    if scope.owners is not None:
        keep &= within(chunk.owners[rows], scope.owners)
    if scope.passed_over is not None:
        keep &= ~within(chunk.owners[rows], scope.passed_over)
    if scope.dead is not None:
        keep &= ~within(chunk.numbers[rows], scope.dead)
    return rows[keep]
