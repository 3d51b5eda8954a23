"""Recall in PostgreSQL: the parts of an index, read from the tables that each change of the store writes.

Workers cache nothing: a search reads the postings of its terms, the tail of its namespace, and the vectors whose signs
are nearest to its own, in the snapshot that it sees. Scores are those of an index beside the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field
from commonplace.index.contract import Scope, Scored, Vectors
from commonplace.index.dense import CANDIDATES, CANDIDATES_PER_HIT, best
from commonplace.index.lexical import MAX_TERMS
from commonplace.ranking.arrays import ranked, restore, within
from commonplace.ranking.bm25 import NAMES, Matches, Statistics, TermRows, code_of, fields_and_counts
from commonplace.store.postings import LEAST_INDEXED, POSTING, PostingsReader
from commonplace.store.store import Store
from commonplace.types import EMBEDDED_KIND_OF, Embedding, Head, TokenEntry

ALL_EXACT: Final = 2_000
"""Number of passages in scope up to which all are scored exactly: they come in one round trip."""
_FEW_OWNERS: Final = 2_000
"""Number of owners up to which all their passages are read; with more, the owners of the best passages are read."""
_LOOKED_UP: Final = 1_000
_GROWTH: Final = 8


@dataclass
class DatabaseState:
    """The parts of an index, in one state of a store; what it reads of candidates, of one namespace, is cached."""

    store: Store
    reader: PostingsReader
    stamp: Embedding
    namespace: str = ""
    memo: dict[int, tuple[bytes, TokenEntry]] = field(default_factory=dict)

    @cached_property
    def lexical(self) -> PostgresLexical:
        return PostgresLexical(self)

    @cached_property
    def dense(self) -> PostgresDense:
        return PostgresDense(self)

    def head(self, namespace: str) -> Head:
        """Return up to which change it holds a namespace: the last one."""
        return self.store.head(namespace)

    def tokens(self, namespace: str, numbers: Sequence[int]) -> dict[int, TokenEntry]:
        """Return token ids and vectors of the passages that exist in a namespace, by number; each is read once."""
        missing = [number for number in numbers if number not in self.memo]
        if missing:
            self.memo.update((entry.number, (terms, entry)) for terms, entry in self.reader.entries(namespace, missing))
        return {number: self.memo[number][1] for number in numbers if number in self.memo}

    def tokens_beside(
        self, namespace: str, numbers: Sequence[int]
    ) -> tuple[dict[int, TokenEntry], list[tuple[int, int]]]:
        """Return `tokens` of passages and of those next to them in a session, and the neighbours; see `Store`."""
        pairs, chosen = self.store.neighbours(namespace, numbers), set(numbers)
        return self.tokens(namespace, sorted(chosen.union(near for number, near in pairs if number in chosen))), pairs

    def among(self, scored: Scored, scope: Scope, limit: int) -> Scored:
        """Return the best scored passages that are in scope, at most `limit`."""
        keep, kinds = np.ones(len(scored.numbers), np.bool_), scope.kinds
        if scope.passed_over is not None and len(scope.passed_over):
            excluded = self.reader.passages_of(scope.namespace, scope.passed_over.tolist())
            keep &= ~within(scored.numbers, excluded)
        if scope.owners is not None and len(scope.owners) <= _FEW_OWNERS:
            keep &= within(scored.numbers, self.reader.passages_of(scope.namespace, scope.owners.tolist()))
        scored = Scored(scored.numbers[keep], scored.scores[keep])
        if not kinds and (scope.owners is None or len(scope.owners) <= _FEW_OWNERS):
            return best(scored.numbers, scored.scores, limit)
        # Most passages are of the wanted kinds, and become candidates, so all tokens read here are needed soon.
        begin, size, positions = 0, limit if kinds else max(_LOOKED_UP, 2 * limit), np.empty(0, np.intp)
        ordered = best(scored.numbers, scored.scores, size)
        while begin < len(ordered.numbers) and len(positions) < limit:
            batch = ordered.numbers[begin:].tolist()
            if scope.owners is None:
                entries = self.tokens(scope.namespace, batch)
                fits = np.array([number in entries and entries[number].kind in kinds for number in batch], np.bool_)
            else:
                owners = self.reader.owners(scope.namespace, batch)
                fits = within(np.array([owners.get(number, -1) for number in batch], np.int64), scope.owners)
            positions = np.concatenate((positions, begin + np.flatnonzero(fits)))
            begin, size = begin + size, size * _GROWTH
            ordered = best(scored.numbers, scored.scores, begin + size) if len(positions) < limit else ordered
        return Scored(ordered.numbers[positions[:limit]], ordered.scores[positions[:limit]])


_TermMatches = tuple[Statistics, list[tuple[NDArray[np.int64], Matches]]]


@dataclass
class _Postings:
    """The passages of a namespace by their terms, as one snapshot sees them; each term is read once.

    Attributes:
        blocks: for each term that was read, by its code, the first number of each segment with the units there.
        documents, lengths: number of passages in all segments, and their terms by field.
    """

    _reader: PostingsReader
    _namespace: str
    _blocks: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    _tail: tuple[NDArray[np.int64], TermRows] | None = None
    _documents: int = 0
    _lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(NAMES), np.int64))
    _matches: dict[tuple[str, ...], _TermMatches] = field(default_factory=dict)

    def find(self, terms: Iterable[str]) -> _TermMatches:
        """Return the statistics of terms, and the passages that hold them: in parts, numbers with their matches."""
        unique = tuple(dict.fromkeys(terms))
        if unique in self._matches:
            return self._matches[unique]
        codes = sorted({code_of(term) for term in unique} - self._blocks.keys())
        if codes or self._tail is None:
            segments = self._reader.blocks(self._namespace, np.array(codes, np.uint32), is_first=self._tail is None)
            self._blocks.update((code, []) for code in codes)
            unpacked = []
            for term, number, passages, data, lengths in segments:
                if lengths is not None:
                    self._documents += passages
                    self._lengths = self._lengths + np.array(lengths, np.int64)
                elif term is None:
                    unpacked.append((number, data))
                else:
                    self._blocks[term & 0xFFFFFFFF].append((number, data))
            if self._tail is None:
                unpacked.sort()
                numbers = np.array([number for number, _ in unpacked], np.int64)
                self._tail = numbers, TermRows([data for _, data in unpacked])
        # The matches in the segments, besides those in the tail.
        blocks = [(index, block) for index, term in enumerate(unique) for block in self._blocks[code_of(term)]]
        units = np.frombuffer(b"".join(data for _, (_, data) in blocks), POSTING)
        sizes = [len(data) // POSTING.itemsize for _, (_, data) in blocks]
        starts = np.repeat(np.array([start for _, (start, _) in blocks], np.int64), sizes)
        hits, rows = ranked(starts + ((units["number"].astype(np.int64) - starts) & 0xFFFFFFFF))
        indexes = np.repeat(np.array([index for index, _ in blocks], np.int64), sizes)
        fields, counts = fields_and_counts(units["mark"])
        sums = np.zeros((len(hits), len(NAMES)), np.int64)  # only of fields that hold a term: no other is asked for
        sums[rows, fields] = units["length"]
        tail, packed = self._tail[1].find(unique), Matches(sums, rows, list(unique), indexes, fields, counts)
        statistics = tail.statistics + Statistics(self._documents, self._lengths, packed.statistics.frequencies)
        self._matches[unique] = statistics, [(self._tail[0], tail), (hits, packed)]
        return self._matches[unique]


@dataclass(eq=False)
class PostgresLexical:
    """A `LexicalIndex` of the postings in the database, in one state."""

    _state: DatabaseState
    _by_namespace: dict[str, _Postings] = field(default_factory=dict)
    _scored: dict[tuple[str, tuple[str, ...], tuple[str, ...], bool], Scored] = field(default_factory=dict)

    def _postings(self, namespace: str) -> _Postings:
        return self._by_namespace.setdefault(namespace, _Postings(self._state.reader, namespace))

    def search(self, terms: Sequence[str], scope: Scope, limit: int, statistics: Statistics | None = None) -> Scored:
        key = scope.namespace, tuple(terms), scope.fields, statistics is None
        if key not in self._scored:  # a further round asks for the same with less in scope
            own_statistics, parts = self._postings(scope.namespace).find(terms)
            statistics = statistics or own_statistics
            rarest = statistics.rarest(terms, MAX_TERMS)
            scores = np.concatenate([matches.scores(rarest, statistics, scope.fields) for _, matches in parts])
            numbers = np.concatenate([part for part, _ in parts])
            self._scored[key] = Scored(numbers[scores > 0], scores[scores > 0])
        return self._state.among(self._scored[key], scope, limit)

    def rows(self, numbers: NDArray[np.int64]) -> Sequence[bytes]:
        """Return the term counts of candidates, in their order; b"" for what was not read."""
        return [self._state.memo[number][0] if number in self._state.memo else b"" for number in numbers.tolist()]

    def statistics(self, terms: Sequence[str], scope: Scope) -> Statistics:
        return self._postings(scope.namespace).find(terms)[0]

    def listed(self, terms: Sequence[str], namespaces: Iterable[str]) -> Mapping[str, int]:
        counts: Counter[str] = Counter(dict.fromkeys(terms, 0))
        for namespace in namespaces:
            frequencies = self._postings(namespace).find(counts)[0].frequencies
            counts.update({term: sum(by_field) for term, by_field in frequencies.items()})
        return counts

    def similar(self, term: str, distance: int, scope: Scope, limit: int) -> Sequence[int]:  # noqa: ARG002 - terms are not kept as text
        """Return the newest passages, whatever they hold: the database cannot tell which terms are alike."""
        newest = np.array(self._state.reader.newest(scope.namespace), np.int64)
        scored = Scored(newest, np.zeros(len(newest), np.float32))
        return [int(number) for number in self._state.among(scored, scope, len(newest)).numbers]

    def languages(self, namespace: str) -> frozenset[str]:
        return frozenset(self._state.reader.languages(namespace))


@dataclass(eq=False)
class PostgresDense:
    """A `DenseIndex` of the vectors in the database, in one state.

    It scores exactly what a vector index finds, or else the vectors whose signs are nearest.
    """

    _state: DatabaseState
    _owners: dict[int, int] = field(default_factory=dict)

    def search(
        self,
        vector: NDArray[np.float32],
        scope: Scope,
        limit: int,
        vectors: Vectors,  # noqa: ARG002 - they come with what is found
        space: str = "",
    ) -> Scored:
        if not vector.any() or limit <= 0:
            return Scored(np.empty(0, np.int64), np.empty(0, np.float32))
        rows = self._nearest(vector, scope, limit, space)
        self._owners.update((number, owner) for number, owner, _ in rows)
        numbers, int8_vectors = np.array([row[0] for row in rows], np.int64), [row[2] for row in rows]
        is_embedded = np.array([any(values) for values in int8_vectors], np.bool_)
        cosines = restore(int8_vectors) @ vector if rows else np.empty(0, np.float32)
        return best(numbers[is_embedded], cosines[is_embedded], limit)

    def ahead(self, vector: NDArray[np.float32], scope: Scope, limit: int, space: str) -> None:
        """Send a search ahead of its use, if it takes one statement."""
        if vector.any():
            self._nearest(vector, scope, limit, space, is_ahead=True)

    def _nearest(
        self, vector: NDArray[np.float32], scope: Scope, limit: int, space: str, *, is_ahead: bool = False
    ) -> list[tuple[int, int, bytes]]:
        state, stamp, requested = self._state, self._state.stamp, scope.kinds
        is_mixed = bool(space) and len(stamp.spaces) > 1
        kinds = [
            kind
            for kind in EMBEDDED_KIND_OF
            if (not is_mixed or str(stamp.of(kind)) == space) and (not requested or kind in requested)
        ]
        total, rows = state.store.counts(scope.namespace)["passages"], None
        is_whole = scope.owners is None and not requested and (scope.passed_over is None or not len(scope.passed_over))
        # An index is of one number of dimensions: it cannot tell two spaces apart that share it.
        if total >= LEAST_INDEXED and is_whole and [item.dimensions for item in stamp.spaces].count(len(vector)) == 1:
            rows = [] if is_ahead else state.reader.indexed(scope.namespace, vector, limit)
        if rows is not None:
            return rows
        pool_size = max(CANDIDATES, CANDIDATES_PER_HIT * limit)
        return state.reader.nearest(
            scope.namespace,
            vector,
            pool_size,
            max(ALL_EXACT, pool_size),
            total,
            kinds=kinds if is_mixed or requested else None,
            owners=scope.owners,
            passed_over=scope.passed_over,
            is_ahead=is_ahead,
        )

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owner of each passage of a search, -1 for one that is not there."""
        requested = numbers.tolist()
        missing = [number for number in requested if number not in self._owners]
        if missing:
            # What was found by words is a candidate, so all its tokens are needed soon.
            entries = self._state.tokens(self._state.namespace, missing)
            self._owners.update((number, entry.owner_number) for number, entry in entries.items())
        return np.array([self._owners.get(number, -1) for number in requested], np.int64)
