"""Run a search: recall, signals, fusion, calibration, cut-off."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import EmbedderMismatchError, IndexFaultError
from commonplace.index.contract import Scope, Scored
from commonplace.index.generations import Generation, Index
from commonplace.models.cache import AgingCache, Bounds
from commonplace.models.contract import Embedder
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import distinct, union, within, without
from commonplace.ranking.calibration import is_fitted
from commonplace.retention import age, retention
from commonplace.search.delta import DeltaReader, Tail
from commonplace.search.hits import select
from commonplace.search.rank import (
    COMPARABLE,
    POOL,
    Context,
    Dated,
    Ranking,
    change_tokens,
    competitors,
    count_changes,
    order,
    together,
)
from commonplace.search.request import PreparedQuery, Request, prepare
from commonplace.search.result import SearchResult
from commonplace.search.signals import (
    DENSE,
    LEXICAL,
    TIME,
    Candidates,
    Phrasing,
    ScoredTail,
    Spaces,
    TokenRows,
    all_of,
    concatenate,
    next_to,
    recall,
    weigh_tokens,
)
from commonplace.search.time import (
    NO_TIMES,
    AskedTimes,
    DatedOwners,
    asked_times,
    dated_owners,
    passages_worth_recalling,
)
from commonplace.store.graph_rules import is_reserved
from commonplace.store.store import Store
from commonplace.text.query import analyse_query, respelled, slips
from commonplace.text.tokens import fields_of
from commonplace.types import GRAPH_KINDS, KINDS, Filter, IndexEntry, Stage, TokenEntry

QUERY_CACHE = Bounds(max_entries=5_000, max_bytes=1 << 18, ttl_s=30 * 60)
RANKING_CACHE = Bounds(max_entries=1_000, max_bytes=1 << 18, ttl_s=5 * 60)
OWNERS_CACHE = Bounds(max_entries=16, max_bytes=8 << 20, ttl_s=5 * 60)
POOL_OWNERS = 10
"""Recall goes on until it has passages of so many owners; what a larger limit needs besides stands behind these."""

ENTRY_BYTES = 2_000
"""About what a cache's entry has besides the arrays of its value: its key, a request, and Python's own objects."""

MAX_NEAR, MAX_TAIL_READ = 20, 200
"""So many passages of the index and of the tail are read for words that a misspelt one may be meant for."""

_NUMBER = re.compile(r"[^\W_]*\d[^\W_]*")
_RESPELLED = "searched for {!r} instead of {!r}"
_BY_WORDS = "searched by words alone, for the query could not be embedded: {}"


@dataclass(frozen=True, slots=True)
class Caches:
    """How many embedded queries and how many rankings are remembered, and for how long."""

    queries: Bounds = QUERY_CACHE
    rankings: Bounds = RANKING_CACHE


@dataclass
class _Clock:
    """Collects the stages of one search."""

    started: float = field(default_factory=time.perf_counter)
    stages: dict[str, Stage] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[int]]:
        """Time a block; it appends the number of candidates that it leaves to the list it is given."""
        counted: list[int] = []
        begun = time.perf_counter()
        yield counted
        before = self.stages.get(name, Stage(name, 0, 0.0))
        spent_ms = (time.perf_counter() - begun) * 1000
        self.stages[name] = Stage(name, before.candidates + sum(counted), before.ms + spent_ms)


@dataclass(frozen=True, slots=True)
class _Run:
    """What all steps of one search share.

    Attributes:
        rows: what the index lacks: the tail, or with `as_of` and `valid_at` what was live or true then.
    """

    request: Request
    asked: AskedTimes
    generation: Generation
    tail: Tail
    scope: Scope
    rows: TokenRows
    languages: tuple[str, ...]
    clock: _Clock

    def asking(self, **changes: Any) -> _Run:
        """Return the run with some values of its request changed."""
        return replace(self, request=replace(self.request, **changes))


class Searcher:
    """Answers requests over one store and its index. Safe for threads."""

    def __init__(
        self, store: Store, index: Index, embedder: Embedder, tokens: StaticEmbedder, caches: Caches = Caches()
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._tokens = tokens
        self._spaces = Spaces.of(embedder.stamp)
        self._delta = DeltaReader(store, self._spaces)
        self._queries: AgingCache[PreparedQuery] = AgingCache(caches.queries)
        self._owners: AgingCache[NDArray[np.int64]] = AgingCache(OWNERS_CACHE)
        self._rankings: AgingCache[Ranking] = AgingCache(caches.rankings)
        self._states: dict[str, tuple[str, ...]] = {}

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
            held = generation.head(request.namespace)
            if self._store.token(request.namespace, held.change) != held.token:
                raise IndexFaultError("belongs to another history of its store")
            run = self._begin(request, generation, clock)
            ranking = self._pool(run)
            with clock.stage("hits") as count:
                hits, trace = select(ranking, request, self._store)
                count.append(len(hits))
            corrected = ""
            if request.method != "semantic" and not (hits and (ranking.candidates.lexical > 0).any()):
                query = self._respelled(run)
                if query != request.query:
                    ranked = self._pool(run.asking(query=query))
                    others, other_trace = select(ranked, request, self._store)
                    if others:
                        ranking, hits, trace, corrected = ranked, others, other_trace, query
                        notices = (*notices, _RESPELLED.format(query, request.query))
        return SearchResult(
            query=request.query,
            also=request.also,
            namespace=request.namespace,
            method=request.method,
            wanted=request.wanted,
            hits=hits,
            stages=tuple(clock.stages.values()),
            latency_ms=round((time.perf_counter() - clock.started) * 1000),
            degraded=degraded or bool(ranking.fault),
            notices=(*notices, *([_BY_WORDS.format(ranking.fault)] if ranking.fault else [])),
            trace=trace,
            calibrated=all(is_fitted(stamp.name) for stamp in self._spaces.stamps),
            corrected=corrected,
        )

    def _begin(self, request: Request, generation: Generation, clock: _Clock) -> _Run:
        tail = self._delta.tail(request.namespace, generation.head(request.namespace).change)
        self._drop_unless(request.namespace, generation.head(request.namespace).token, tail.token)
        scope = self._scope(request, tail)
        is_now = request.wanted.as_of is None and request.wanted.valid_at is None
        rows = tail.rows if is_now else self._rows_then(scope, tail, request.wanted)
        languages = self._languages(request.namespace, generation, tail, rows)
        return _Run(request, _asked_times(request), generation, tail, scope, rows, languages, clock)

    def _respelled(self, run: _Run) -> str:
        """Return the query with words that passages hold for those that none does and that are in no dictionary."""
        lexical, rows, languages = run.generation.lexical, run.rows, run.languages

        @cache
        def unindexed() -> list[IndexEntry]:
            return read(rows.numbers[-MAX_TAIL_READ:].tolist())

        def read(numbers: Sequence[int]) -> list[IndexEntry]:
            return list(self._store.entries(run.request.namespace, numbers).values())

        def is_word(word: str) -> bool:
            if len(self._tokens.tokenize(word)) == 1:
                return True  # what the tokenizer does not take apart is a word of English
            terms = analyse_query(word, languages).terms
            return len(lexical.search(terms, run.scope, 1).numbers) > 0 or any(
                not set(terms).isdisjoint(chain.from_iterable(fields_of(entry).values())) for entry in unindexed()
            )

        def near(word: str) -> Iterator[str]:
            terms = analyse_query(word, languages).terms
            found = {n for term in terms for n in lexical.similar(term, slips(word), run.scope, MAX_NEAR)}
            for entry in (*read(sorted(found)), *unindexed()):
                yield f"{entry.title} {entry.heading} {entry.text} {' '.join(entry.tags)}"

        return respelled(run.request.query, is_word, near)

    def _check_embedder(self) -> None:
        held, own = self._store.embedding(), self._embedder.stamp
        if held is not None and held != own:
            raise EmbedderMismatchError(f"the store's vectors are made by {held}, not by {own}", remedy="open it again")

    def _drop_unless(self, namespace: str, *state: str) -> None:
        """Drop what was found in another state of a namespace in index and store: nobody can ask for it again."""
        if state != self._states.get(namespace):
            self._rankings.clear()
            self._owners.clear()
            self._states[namespace] = state

    def _pool(self, run: _Run) -> Ranking:
        """Return the candidates for as many hits as are asked for.

        They begin with the same pool whatever the limit, or the first hits would differ with how many are asked for.
        """
        ranking = self._ranking(run.asking(limit=POOL_OWNERS))
        request = run.request
        if (
            not request.is_bounded
            and ranking.lacks_owners(request.limit)
            and len(ranking.candidates) >= request.stage1_limit
        ):
            ranking = ranking.followed_by(self._ranking(run))
        return ranking

    def _ranking(self, run: _Run) -> Ranking:
        """Return what ranks the candidates, as it is remembered or anew."""
        request = run.request
        key = (replace(request, now=0.0), run.asked, run.generation.head(request.namespace).token, run.tail.token)
        # Use changes retention without a change of the store, so what it has a part in is not kept.
        ranking = None if request.retention_weight else self._rankings.get(key)
        if ranking is None:
            ranking = self._rank(run)
            if not request.retention_weight and not ranking.fault:
                characters = sum(map(len, (request.query, *request.also)))
                self._rankings.put(key, ranking, ranking.size_bytes + characters + ENTRY_BYTES)
        return ranking

    def _rank(self, run: _Run) -> Ranking:
        """Rank for each phrasing of the query what any of them recalls."""
        clock, request = run.clock, run.request
        with clock.stage("query"):
            texts, spaces = (request.query, *request.also), tuple(self._asked(request))
            queries = [self._prepared(text, () if request.by_words else spaces, run.languages) for text in texts]
            if request.method == "semantic" and any(query.fault and not query.embedder for query in queries):
                run = run.asking(method="bm25")
                request = run.request
            entries: dict[int, TokenEntry] = {}
        dated, of_time = self._dated(run)
        with clock.stage("tail") as count:
            state = (self._store, run.generation, run.scope, self._spaces, entries)
            terms = self._delta.terms(request.namespace, run.rows, run.tail) if len(run.rows) else []
            beside_index = [self._unindexed(run, query, terms) for query in queries]
            phrasings = [
                Phrasing(text, query, weigh_tokens(query, rows.statistics, self._tokens), rows, *state)
                for text, query, rows in zip(texts, queries, beside_index, strict=True)
            ]
            first = phrasings[0]
            kept = within(first.unindexed.rows.numbers, of_time)
            if not request.is_bounded:
                for each in phrasings:
                    kept |= each.unindexed.worth_ranking(each, request)
            count.append(int(kept.sum()))
        for each in phrasings:
            self._recall(run, each, spaces)
        if request.is_bounded and len(run.rows):
            for each in phrasings:
                kept |= each.bound(request.stage1_limit)
        with clock.stage("signals") as count:
            parts = [part.numbers for each in phrasings for part in (each.lexical, each.dense) if part is not None]
            recalled = distinct(np.concatenate([*parts, without(of_time, run.rows.numbers)]))
            candidates = first.candidates(recalled, kept)
            beside: dict[int, set[int]] = {}
            if request.method == "two-stage":
                beside, candidates = self._with_neighbours(first, candidates, recalled)
            signals = [candidates]
            for each in phrasings[1:]:
                unindexed = each.unindexed.rows.numbers
                signals.append(
                    each.candidates(without(candidates.numbers, unindexed), within(unindexed, candidates.numbers))
                )
            signals = [each.with_unspaced_words(own) for each, own in zip(phrasings, signals, strict=True)]
            count.append(len(candidates))
        with clock.stage("fusion"):
            retained = self._retention(request, candidates)
            context = Context(beside, run.asked, dated, retained, first.unindexed.statistics.documents)
            ranking = together(
                [
                    order(replace(request, query=each.text, also=()), each.query, own, context)
                    for each, own in zip(phrasings, signals, strict=True)
                ]
            )
            # Who asks for a time is not told of another.
            # Nor can the vectors tell of scripts that they do not know which texts are about one thing.
            is_left = request.method != "two-stage" or run.asked.times or any(query.unspaced for query in queries)
            newer = {} if is_left else self._newer(request.query, first, ranking)
            return replace(ranking, fault=next((query.fault for query in queries if query.fault), ""), newer=newer)

    @cached_property
    def _change_tokens(self) -> frozenset[int]:
        return change_tokens(self._tokens.tokenize)

    def _newer(self, query: str, phrasing: Phrasing, ranking: Ranking) -> dict[int, tuple[int, ...]]:
        """Return of the best candidates that are memories with a date those that may have overtaken them.

        How alike two of them are is known of our embedders' vectors alone.
        """
        if phrasing.query.embedders[self._spaces.codes["memory"]] not in COMPARABLE:
            return {}
        candidates = ranking.candidates
        places = np.argsort(-ranking.values, kind="stable")[:POOL]
        owners = self._store.owners(phrasing.scope.namespace, distinct(candidates.owners[places]).tolist())
        known = [owners.get(number) for number in candidates.owners[places].tolist()]
        dated = [
            (int(place), owner.at, owner.session)
            for place, owner in zip(places, known, strict=True)
            if owner is not None and owner.kind == "memory" and owner.at is not None
        ]
        if len(dated) < 2:
            return {}
        chosen = np.array([place for place, *_ in dated], dtype=np.int64)
        rows = phrasing.rows_of(candidates.numbers[chosen])
        vectors = rows.vectors.astype(np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9))
        texts = np.split(rows.token_ids, np.cumsum(rows.lengths)[:-1])
        numbers = [set(self._tokens.tokenize(word).tolist()) for word in _NUMBER.findall(query)]
        return competitors(
            Dated(
                places=chosen,
                times=np.array([at for _, at, _ in dated], dtype=np.float64),
                sessions=[session for *_, session in dated],
                vectors=vectors,
                dense=candidates.dense[chosen],
                holds=np.array(
                    [bool(numbers) and all(each <= set(text.tolist()) for each in numbers) for text in texts]
                ),
                changes=np.array([count_changes(text, self._change_tokens) for text in texts], dtype=np.int64),
            )
        )

    def _dated(self, run: _Run) -> tuple[DatedOwners | None, NDArray[np.int64]]:
        """Return the memories of the times that are asked for, and the passages to recall for them, ascending."""
        if not run.asked.times:
            return None, np.empty(0, dtype=np.int64)
        with run.clock.stage(TIME) as count:
            dated = dated_owners(self._store, run.request, run.asked, run.scope.owners)
            passages = passages_worth_recalling(self._store, run.request.namespace, dated)
            count.append(len(passages))
        return dated, passages

    def _retention(self, request: Request, candidates: Candidates) -> NDArray[np.float32] | None:
        """Return the retention of each candidate's owner, 0–1, float32, shape (n,); None where it has no weight.

        What is no memory does not fade and is neither favoured nor held back: it gets the mean of the memories.
        """
        now, rule, half_lives = request.now, request.fading, dict(request.fading.half_lives)
        if not request.retention_weight or now is None or request.method != "two-stage":
            return None
        known: dict[int, float] = {}
        memories = self._store.memory_records(request.namespace, distinct(candidates.owners).tolist())
        for number, record in ((number, memory.record) for number, memory in memories.items()):
            elapsed, half_life = age(record.last_used, now), half_lives.get(record.category)
            kept = retention(record.use_count, elapsed, record.strength, rule.curve, half_life)
            known[number] = 1.0 if record.tier == "long" else kept
        mean = sum(known.values()) / max(1, len(known))
        return np.array([known.get(number, mean) for number in candidates.owners.tolist()], dtype=np.float32)

    def _recall(self, run: _Run, phrasing: Phrasing, spaces: Sequence[int]) -> None:
        """Find in the index what lexical and dense recall bring."""
        request, clock = run.request, run.clock
        if request.method != "semantic":
            with clock.stage(LEXICAL) as count:
                known = phrasing.unindexed.statistics
                words = partial(run.generation.lexical.search, phrasing.query.terms, statistics=known)
                phrasing.lexical = recall(words, phrasing.owners, run.scope, request)
                count.append(len(phrasing.lexical.numbers))
        if request.method != "bm25":
            with clock.stage(DENSE) as count:
                nearest = [partial(self._nearest, run.generation, phrasing.query, code) for code in spaces]
                phrasing.dense = all_of([recall(each, phrasing.owners, run.scope, request) for each in nearest])
                count.append(len(phrasing.dense.numbers))

    def _nearest(self, generation: Generation, query: PreparedQuery, code: int, scope: Scope, limit: int) -> Scored:
        """Return the passages of one space whose vectors are nearest to the query's, with their cosines."""
        stamp = self._spaces.stamps[code]
        return generation.dense.search(query.vectors[code, : stamp.dimensions], scope, limit, str(stamp))

    def _asked(self, request: Request) -> list[int]:
        """Return the codes of the spaces in which something may be found: no other embedder is asked."""
        if len(self._spaces.stamps) == 1:
            return [0]
        kinds: Sequence[str] = request.wanted.kinds or (GRAPH_KINDS if is_reserved(request.namespace) else KINDS)
        if request.wanted.as_of is None and len(kinds) > 1:
            counts = self._store.counts(request.namespace)
            names = {"artifact": "artifacts", "memory": "memories", "knowledge": "knowledge"}
            kinds = [kind for kind in kinds if kind not in names or counts[names[kind]]] or kinds
        return sorted({self._spaces.codes[kind] for kind in kinds})

    def _languages(self, namespace: str, generation: Generation, tail: Tail, rows: TokenRows) -> tuple[str, ...]:
        """Return the languages of the passages that are searched."""
        unindexed = (self._delta.languages(namespace, each, tail) for each in (tail.rows, rows))
        return tuple(sorted(generation.lexical.languages(namespace).union(*unindexed)))

    def _prepared(self, query: str, spaces: tuple[int, ...], languages: tuple[str, ...]) -> PreparedQuery:
        key = (query, spaces, languages)
        prepared = self._queries.get(key)
        if prepared is None:
            prepared = prepare(query, self._tokens.tokenize, self._embedder, spaces, languages)
            if not prepared.fault:
                self._queries.put(key, prepared, prepared.size_bytes + len(query) + ENTRY_BYTES)
        return prepared

    def _scope(self, request: Request, tail: Tail) -> Scope:
        if request.wanted.is_empty:
            return Scope(request.namespace, request.wanted, dead=tail.dead, fields=request.fields)
        key = (request.namespace, request.wanted, tail.token)
        owners = self._owners.get(key)
        if owners is None:
            owners = np.array(self._store.matching_owners(request.namespace, request.wanted), dtype=np.int64)
            self._owners.put(key, owners, owners.nbytes + ENTRY_BYTES)
        return Scope(request.namespace, request.wanted, owners, tail.dead, fields=request.fields)

    def _rows_then(self, scope: Scope, tail: Tail, wanted: Filter) -> TokenRows:
        """Return what the index lacks of a time: the tail's passages of then, and those that are past now."""
        rows = concatenate(tail.rows, self._delta.past(scope.namespace, wanted.as_of, wanted.valid_at))
        return rows if scope.owners is None else rows.select(within(rows.owners, scope.owners))

    def _unindexed(self, run: _Run, query: PreparedQuery, terms: Sequence[bytes]) -> ScoredTail:
        """Return the rows that are in scope, with their BM25 scores; given are the term counts of all."""
        rows, scope = run.rows, run.scope
        scored = ScoredTail.of(query, run.generation.lexical, scope, rows, terms)
        return scored if scope.owners is None else scored.select(within(rows.owners, scope.owners))

    def _with_neighbours(
        self, phrasing: Phrasing, candidates: Candidates, recalled: NDArray[np.int64]
    ) -> tuple[dict[int, set[int]], Candidates]:
        """Return which passages are next to each other in a session, and the candidates with their neighbours."""
        namespace, owners = phrasing.scope.namespace, phrasing.scope.owners
        beside = next_to(self._store, namespace, candidates.numbers.tolist())
        numbers = np.array(sorted(beside), dtype=np.int64)
        others = without(numbers, candidates.numbers)
        if not len(others):
            return beside, candidates
        for number, found in next_to(self._store, namespace, others.tolist()).items():
            beside.setdefault(number, set()).update(found)
        unindexed = phrasing.unindexed.rows.numbers
        kept = within(unindexed, union(candidates.numbers, others))
        wider = phrasing.candidates(without(union(recalled, others), unindexed), kept)
        return beside, wider if owners is None else wider.select(within(wider.owners, owners))


def _asked_times(request: Request) -> AskedTimes:
    """Return the times that the first phrasing names which names any; several say more than the time."""
    if not request.also:
        return asked_times(request)
    each = (asked_times(replace(request, query=text, also=())) for text in (request.query, *request.also))
    return replace(next((asked for asked in each if asked.times), NO_TIMES), is_all=False)
