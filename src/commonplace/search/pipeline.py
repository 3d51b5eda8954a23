"""One search from request to result: recall, signals, fusion, calibration, cut. It reads and never writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import EmbedderMismatchError, IndexFaultError
from commonplace.index.contract import Scope, Scored
from commonplace.models.cache import AgingCache, Bounds
from commonplace.ranking.arrays import distinct, union, within, without
from commonplace.search.candidates import DENSE, LEXICAL, TIME, Candidates, TokenRows, concatenate
from commonplace.search.conversation import next_to
from commonplace.search.ordering import Context, Ranking, order
from commonplace.search.past import PastReader
from commonplace.search.recall import recall
from commonplace.search.request import PreparedQuery, Request, prepare
from commonplace.search.result import SearchResult
from commonplace.search.retained import retentions
from commonplace.search.selection import select
from commonplace.search.signals import Reader, ScoredTail, TokenModel, weigh_tokens
from commonplace.search.tail import Tail, TailReader
from commonplace.search.times import AskedTimes, DatedOwners, asked_times, dated_owners, passages_worth_recalling
from commonplace.types import Stage

if TYPE_CHECKING:
    from commonplace.index.directory import Generation, Index
    from commonplace.models.contract import Embedder
    from commonplace.store.contract import Store

QUERY_CACHE = Bounds(most=5_000, most_bytes=1 << 18, ttl_s=30 * 60)
RANKING_CACHE = Bounds(most=1_000, most_bytes=1 << 18, ttl_s=5 * 60)
OWNERS_CACHE = Bounds(most=16, most_bytes=8 << 20, ttl_s=5 * 60)
ENTRY_BYTES = 2_000
"""About what a cache's entry has besides the arrays of its value: its key, a request, and Python's own objects."""

_BY_WORDS = "searched by words alone, for the query could not be embedded: {}"


@dataclass
class _Clock:
    """Collects the stages of one search."""

    started: float = field(default_factory=time.perf_counter)
    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[int]]:
        """Time a block; it appends the number of candidates that it leaves to the list it is given."""
        counted: list[int] = []
        begun = time.perf_counter()
        yield counted
        stage = Stage(name, sum(counted), (time.perf_counter() - begun) * 1000)
        for place, earlier in enumerate(self.stages):
            if earlier.name == name:
                self.stages[place] = Stage(name, earlier.candidates + stage.candidates, earlier.ms + stage.ms)
                return
        self.stages.append(stage)

    @property
    def total_ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)


class Searcher:
    """Answers requests over one store and its index. Safe for threads."""

    def __init__(self, store: Store, index: Index, embedder: Embedder, tokens: TokenModel) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._tokens = tokens
        self._tails = TailReader(store, embedder.stamp.dimensions)
        self._past = PastReader(store, embedder.stamp.dimensions)
        self._queries: AgingCache[PreparedQuery] = AgingCache(QUERY_CACHE)
        self._owners: AgingCache[NDArray[np.int64]] = AgingCache(OWNERS_CACHE)
        self._rankings: AgingCache[Ranking] = AgingCache(RANKING_CACHE)
        self._state: tuple[str, ...] = ()

    def search(self, request: Request, *, notices: tuple[str, ...] = (), degraded: bool = False) -> SearchResult:
        """Return the hits of a request; what the caller knows of the index's state is passed on to the result.

        Everything is read from one state of the store.

        Raises:
            EmbedderMismatchError: the store's vectors are another embedder's.
            IndexFaultError: the current generation of the index is damaged or not of this store's history.
        """
        clock = _Clock()
        # First the generation, then the state: so the state holds all that the generation does.
        with self._index.reading() as generation, self._store.snapshot():
            self._check_embedder()
            if self._store.token(generation.change) != generation.token:
                raise IndexFaultError("belongs to another history of its store")
            tail = self._tails.read(request.namespace, generation.change)
            asked = asked_times(request)
            self._drop_unless(generation.token, tail.token)
            key = (replace(request, now=0.0), asked, generation.token, tail.token)
            # Use changes retention without a change of the store, so what it has a part in is not kept.
            ranking = None if request.retention_weight else self._rankings.get(key)
            if ranking is None:
                ranking = self._rank(request, asked, generation, tail, clock)
                if not request.retention_weight and not ranking.fault:
                    self._rankings.put(key, ranking, ranking.size_bytes + len(request.query) + ENTRY_BYTES)
            with clock.stage("hits") as count:
                hits, trace = select(ranking, request, self._store)
                count.append(len(hits))
        return SearchResult(
            query=request.query,
            namespace=request.namespace,
            method=request.method,
            wanted=request.wanted,
            hits=hits,
            stages=tuple(clock.stages),
            latency_ms=clock.total_ms,
            degraded=degraded or bool(ranking.fault),
            notices=(*notices, *([_BY_WORDS.format(ranking.fault)] if ranking.fault else [])),
            trace=trace,
        )

    def _check_embedder(self) -> None:
        held, own = self._store.embedding(), self._embedder.stamp
        if held is not None and held != own:
            raise EmbedderMismatchError(f"the store's vectors are made by {held}, not by {own}", remedy="open it again")

    def _drop_unless(self, *state: str) -> None:
        """Drop what was found in another state of index and store: nobody can ask for it again."""
        if state != self._state:
            self._rankings.clear()
            self._owners.clear()
            self._state = state

    def _rank(self, request: Request, asked: AskedTimes, generation: Generation, tail: Tail, clock: _Clock) -> Ranking:
        with clock.stage("query"):
            scope = self._scope(request, tail)
            rows = tail.rows if request.wanted.as_of is None else self._rows_then(scope, tail, request.wanted.as_of)
            query = self._prepared(request, self._languages(request.namespace, generation, tail, rows))
            if query.fault and request.method == "semantic":
                request = replace(request, method="bm25")
            tokens = weigh_tokens(query, generation, scope, rows, self._tokens)
            reader = Reader(self._store, generation, scope, query, tokens, self._embedder.stamp.dimensions)
        dated, of_time = self._dated(request, asked, scope, clock)
        with clock.stage("tail") as count:
            unindexed = self._unindexed(reader, tail, rows)
            shortened = unindexed.shortened(query, tokens, request, of_time)
            count.append(len(shortened.rows))
        lexical, dense = self._recall(request, reader, clock)
        with clock.stage("signals") as count:
            recalled = _union(lexical, dense, without(of_time, rows.numbers))
            candidates = reader.candidates(recalled, lexical, shortened)
            beside: dict[int, set[int]] = {}
            if request.method == "two-stage":
                beside, candidates = self._with_neighbours(reader, candidates, recalled, lexical, unindexed)
            candidates = reader.with_unspaced_words(candidates, shortened.statistics)
            count.append(len(candidates))
        with clock.stage("fusion"):
            retained = self._retention(request, candidates)
            return replace(
                order(request, query, candidates, Context(beside, asked, dated, retained, tokens.passages)),
                fault=query.fault,
                words=query.words,
            )

    def _dated(
        self, request: Request, asked: AskedTimes, scope: Scope, clock: _Clock
    ) -> tuple[DatedOwners | None, NDArray[np.int64]]:
        """Return the memories of the times that are asked for, and the passages to recall for them, ascending."""
        if not asked.times:
            return None, np.empty(0, dtype=np.int64)
        with clock.stage(TIME) as count:
            dated = dated_owners(self._store, request, asked, scope.owners)
            passages = passages_worth_recalling(self._store, request.namespace, dated)
            count.append(len(passages))
        return dated, passages

    def _retention(self, request: Request, candidates: Candidates) -> NDArray[np.float32] | None:
        if not request.retention_weight or request.now is None or request.method != "two-stage":
            return None
        return retentions(self._store, request.namespace, candidates.owners, request.fading, request.now)

    def _recall(self, request: Request, reader: Reader, clock: _Clock) -> tuple[Scored | None, Scored | None]:
        """Return what lexical and dense recall find in the index."""
        lexical, dense = None, None
        if request.method != "semantic":
            with clock.stage(LEXICAL) as count:
                words = partial(reader.generation.lexical.search, reader.query.terms)
                lexical = recall(words, reader.owners, reader.scope, request)
                count.append(len(lexical.numbers))
        if request.method != "bm25":
            with clock.stage(DENSE) as count:
                meaning = partial(reader.generation.dense.search, reader.query.vector)
                dense = recall(meaning, reader.owners, reader.scope, request)
                count.append(len(dense.numbers))
        return lexical, dense

    def _languages(self, namespace: str, generation: Generation, tail: Tail, rows: TokenRows) -> tuple[str, ...]:
        """Return the languages of the passages that are searched."""
        unindexed = self._tails.languages(namespace, tail)
        if rows is not tail.rows:
            unindexed |= self._past.languages(namespace, rows)
        return tuple(sorted(unindexed | generation.lexical.languages(namespace)))

    def _prepared(self, request: Request, languages: tuple[str, ...]) -> PreparedQuery:
        query, key = request.query, (request.query, request.by_words, languages)
        prepared = self._queries.get(key)
        if prepared is None:
            prepared = prepare(
                query, self._tokens.tokenize, self._embedder, by_words=request.by_words, languages=languages
            )
            if not prepared.fault:
                self._queries.put(key, prepared, prepared.size_bytes + len(query) + ENTRY_BYTES)
        return prepared

    def _scope(self, request: Request, tail: Tail) -> Scope:
        if request.wanted.is_empty:
            return Scope(request.namespace, request.wanted, dead=tail.dead)
        key = (request.namespace, request.wanted, tail.token)
        owners = self._owners.get(key)
        if owners is None:
            owners = np.array(self._store.matching_owners(request.namespace, request.wanted), dtype=np.int64)
            self._owners.put(key, owners, owners.nbytes + ENTRY_BYTES)
        return Scope(request.namespace, request.wanted, owners, tail.dead)

    def _rows_then(self, scope: Scope, tail: Tail, as_of: float) -> TokenRows:
        """Return what the index lacks of a time: the tail's passages of then, and those that are past now."""
        rows = concatenate(tail.rows, self._past.read(scope.namespace, as_of))
        return rows if scope.owners is None else rows.select(within(rows.owners, scope.owners))

    def _unindexed(self, reader: Reader, tail: Tail, rows: TokenRows) -> ScoredTail:
        """Return the rows that are in scope, with their BM25 scores."""
        namespace, terms = reader.scope.namespace, reader.query.terms
        statistics = reader.generation.lexical.statistics(terms)
        if not len(rows):
            return ScoredTail(rows, np.empty(0, dtype=np.float32), statistics)
        if rows is not tail.rows:
            return ScoredTail(rows, *self._past.score(namespace, rows, terms, statistics))
        scored = ScoredTail(rows, *self._tails.score(namespace, tail, terms, statistics))
        owners = reader.scope.owners
        return scored if owners is None else scored.select(within(rows.owners, owners))

    def _with_neighbours(
        self,
        reader: Reader,
        candidates: Candidates,
        recalled: NDArray[np.int64],
        lexical: Scored | None,
        tail: ScoredTail,
    ) -> tuple[dict[int, set[int]], Candidates]:
        """Return which passages are next to each other in a session, and the candidates with their neighbours."""
        namespace = reader.scope.namespace
        beside = next_to(self._store, namespace, candidates.numbers.tolist())
        numbers = np.array(sorted(beside), dtype=np.int64)
        others = without(numbers, candidates.numbers)
        if not len(others):
            return beside, candidates
        for number, found in next_to(self._store, namespace, others.tolist()).items():
            beside.setdefault(number, set()).update(found)
        wanted = union(candidates.numbers, others)
        in_tail = tail.select(within(tail.rows.numbers, wanted))
        indexed = without(union(recalled, others), tail.rows.numbers)
        wider = reader.candidates(indexed, lexical, in_tail)
        if reader.scope.owners is not None:
            wider = wider.select(within(wider.owners, reader.scope.owners))
        return beside, wider


def _union(lexical: Scored | None, dense: Scored | None, dated: NDArray[np.int64]) -> NDArray[np.int64]:
    found = [part.numbers for part in (lexical, dense) if part is not None]
    return distinct(np.concatenate([*found, dated]))
