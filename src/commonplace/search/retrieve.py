"""Run a search: recall, signals, fusion, calibration, cut-off.

`Searcher.search` is the whole of it: what recall finds (`recall`) gets its signals (`signals`) and an order (`rank`);
`select` chooses the hits, without near-duplicates, and makes them from stored passages.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import replace
from commonplace.index.generations import Index
from commonplace.models.cache import AgingCache, Bounds
from commonplace.models.contract import Embedder
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import ONE_BLAS_THREAD, distinct
from commonplace.ranking.calibration import BY_EMBEDDER, confidence, probabilities
from commonplace.ranking.calibration import scores as scores_of
from commonplace.search import result
from commonplace.search.rank import POOL, Ranking, RankingContext, combined, order, placed
from commonplace.search.recall import ENTRY_BYTES, Recall, RecallState
from commonplace.search.request import PreparedQuery, Request, kinds_of, prepare
from commonplace.search.result import without_secrets
from commonplace.search.signals import COVERAGE, DENSE, LATE, LEXICAL, TIME, WORDS, Candidates, Phrasing, TokenRows
from commonplace.search.time import ONSETS, begins_at, dated_owners, passages_worth_recalling
from commonplace.store.schema import is_reserved
from commonplace.store.store import Store
from commonplace.text.languages import PROSE, language_of
from commonplace.text.markdown import heading_slug
from commonplace.text.query import analyse_query, respelled, slips
from commonplace.types import EMBEDDED_KIND_OF, GRAPH_KINDS, KINDS, Filter, Hit

QUERY_CACHE: Final = Bounds(max_entries=5_000, max_bytes=1 << 18, ttl_s=30 * 60)
RANKING_CACHE: Final = Bounds(max_entries=1_000, max_bytes=1 << 18, ttl_s=5 * 60)
"""How many embedded queries and how many rankings are remembered, and for how long, unless settings say otherwise."""
POOL_OWNERS: Final = 10
"""Recall goes on until it has passages of so many owners; what a larger limit needs besides stands behind these."""
CANDIDATE_BYTES: Final = 300
CHARACTER_BYTES: Final = 30
"""About what a ranking keeps of each candidate, and a prepared query of each character, in words and terms."""
MIN_RELATED: Final = 0.55
"""A rule moves no memory whose cosine with the query is lower by more than that of the one it overtook."""
_NUMBER: Final = re.compile(r"(?<![^\W_])[^\W\d_]*\d[^\W_]*")


class Searcher:
    """Answers requests over one store and its index. Safe for threads."""

    def __init__(
        self,
        store: Store,
        index: Index,
        embedder: Embedder,
        tokens: StaticEmbedder,
        queries: Bounds = QUERY_CACHE,
        rankings: Bounds = RANKING_CACHE,
    ) -> None:
        self._store = store
        self._recall = Recall(store, index, embedder.stamp)
        self._embedder = embedder
        self._tokens = tokens
        self._spaces = self._recall.spaces
        self._queries: AgingCache[PreparedQuery] = AgingCache(queries)
        self._rankings: AgingCache[Ranking] = AgingCache(rankings)

    def search(self, request: Request, *, notices: Sequence[str] = (), degraded: bool = False) -> result.SearchResult:
        """Return the hits of a request; what the caller knows of the index's state is passed on to the result.

        Everything is read from one state of the store.

        Raises:
            EmbedderMismatchError: the store's vectors are another embedder's.
            IndexFaultError: the current generation of the index is damaged or not of this store's history.
        """
        started, corrected, told = time.perf_counter(), "", [*notices]
        with self._recall.reading(request) as recall:
            ranking, hits, trace = self._found(recall, request)
            if request.method != "semantic" and not (hits and (ranking.candidates.lexical > 0).any()):
                query = self._respelled(recall, request.query)
                others = self._found(recall, replace(request, query=query)) if query != request.query else None
                if others and others[1]:
                    ranking, hits, trace = others
                    corrected = query
                    told.append(f"searched for {query!r} instead of {request.query!r}")
        if ranking.fault:
            told.append(f"searched by words alone, for the query could not be embedded: {ranking.fault}")
        return result.SearchResult(
            query=request.query,
            also=request.also,
            namespace=request.namespace,
            method=request.method,
            wanted=request.wanted,
            hits=hits,
            stages=tuple(recall.stages.values()),
            latency_ms=round((time.perf_counter() - started) * 1000),
            degraded=degraded or bool(ranking.fault),
            notices=tuple(told),
            trace=trace,
            calibrated=all(stamp.name in BY_EMBEDDER for stamp in self._spaces.stamps),
            corrected=corrected,
        )

    def _found(self, recall: RecallState, request: Request) -> tuple[Ranking, tuple[Hit, ...], result.Trace]:
        """Rank candidates for as many hits as are asked for, and choose these.

        They begin with the same pool whatever the limit, or the first hits would differ with how many are asked for.
        """
        ranking = self._ranking(recall, replace(request, limit=POOL_OWNERS))
        is_filled = request.is_bounded or len(ranking.candidates) < request.stage1_limit
        if not is_filled and len(distinct(ranking.candidates.owners)) < request.limit:
            ranking = ranking.followed_by(self._ranking(recall, request))
        with recall.stage("hits") as count:
            hits, trace = select(ranking, request, self._store)
            count.append(len(hits))
        return ranking, hits, trace

    def _ranking(self, recall: RecallState, request: Request) -> Ranking:
        """Return what ranks the candidates, from the cache where it is there."""
        if request.retention_weight:  # use changes retention without a change of the store
            return self._rank(recall, request)
        key = (replace(request, now=0.0), recall.asked, recall.parts.head(request.namespace).token, recall.tail.token)
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = self._rank(recall, request)
            if not ranking.fault:
                size = CANDIDATE_BYTES * len(ranking.candidates) + len(request.query) + sum(map(len, request.also))
                self._rankings.put(key, ranking, size + ENTRY_BYTES)
        return ranking

    def _rank(self, recall: RecallState, request: Request) -> Ranking:
        """Prepare each phrasing of the query, and rank what any of them recalls."""
        asked, store, namespace = recall.asked, self._store, request.namespace
        with recall.stage("query"):
            phrasings = self._phrasings(request, recall.languages)
            queries = [each.query for each in phrasings]
            if request.method == "semantic" and any(query.fault and not query.embedder for query in queries):
                request = replace(request, method="bm25")
        with ONE_BLAS_THREAD:
            dated, besides = None, np.empty(0, np.int64)
            if asked.times:
                with recall.stage(TIME) as count:
                    is_of_memories = "memory" in kinds_of(request.wanted)
                    in_scope = recall.scope.owners if is_of_memories else np.empty(0, np.int64)
                    dated = dated_owners(store, request, asked, in_scope)
                    besides = passages_worth_recalling(store, namespace, dated)
                    count.append(len(besides))
            rows, lexical, statistics, beside = recall.search(request, phrasings, besides)
            with recall.stage("signals") as count:
                signals = [
                    each.candidates(rows, bm25, own, recall.terms)
                    for each, bm25, own in zip(phrasings, lexical, statistics, strict=True)
                ]
                count.append(len(rows))
            with recall.stage("fusion"):
                weighs_use = request.retention_weight and request.method == "two-stage"
                retained = self._retention(request, signals[0]) if weighs_use else None
                context = RankingContext(beside, asked, dated, retained, statistics[0].documents)
                rankings = [
                    order(replace(request, query=each.text, also=()), each.query, own, context)
                    for each, own in zip(phrasings, signals, strict=True)
                ]
                ranking = (combined(rankings) if len(rankings) > 1 else rankings[0]).best_first()
                newer: dict[int, tuple[int, ...]] = {}
                # Who asks for a time wants what was so then, not what came later.
                if request.method == "two-stage" and not asked.times:
                    newer = self._newer(request, rows, ranking)
                begins = self._begins(namespace, rows, ranking.candidates, newer) if newer else {}
                fault = next((query.fault for query in queries if query.fault), "")
                return replace(ranking, fault=fault, newer=newer, begins=begins)

    def _phrasings(self, request: Request, languages: tuple[str, ...]) -> list[Phrasing]:
        """Prepare each phrasing, from the cache where it is there; embed for no kind of which there is nothing."""
        kinds: Sequence[str] = request.wanted.kinds or (GRAPH_KINDS if is_reserved(request.namespace) else KINDS)
        if len(self._spaces.stamps) > 1 and request.wanted.as_of is None and len(kinds) > 1:
            counts = self._store.counts(request.namespace)
            kinds = [kind for kind in kinds if counts.get(EMBEDDED_KIND_OF[kind], 1)] or kinds
        spaces = () if request.by_words else tuple(sorted({self._spaces.codes[kind] for kind in kinds}))
        phrasings = []
        for text in (request.query, *request.also):
            key = (text, spaces, languages)
            query = self._queries.get(key)
            if query is None:
                query = prepare(text, self._tokens.tokenize, self._embedder, spaces, languages)
                if not query.fault:
                    self._queries.put(key, query, query.vectors.nbytes + CHARACTER_BYTES * len(text) + ENTRY_BYTES)
            phrasings.append(Phrasing(text, query, self._tokens))
        return phrasings

    def _respelled(self, recall: RecallState, query: str) -> str:
        """Return the query with words that passages hold for those that none does and that are in no dictionary."""

        def is_word(word: str) -> bool:
            # What the tokenizer does not take apart is a word of English.
            return len(self._tokens.tokenize(word)) == 1 or recall.holds(analyse_query(word, recall.languages).terms)

        def near(word: str) -> Iterator[str]:
            for entry in recall.similar(analyse_query(word, recall.languages).terms, slips(word)):
                yield f"{entry.title} {entry.heading} {entry.text} {' '.join(entry.tags)}"

        return respelled(query, is_word, near)

    def _retention(self, request: Request, candidates: Candidates) -> NDArray[np.float32]:
        """Return the retention of each candidate's owner, 0–1, float32, shape (n,).

        What is no memory does not fade and is neither favoured nor held back: it gets the mean of the memories.
        """
        policy, now = request.policy, request.now or 0.0
        memories = self._store.memory_records(request.namespace, distinct(candidates.owners).tolist())
        known = {
            number: 1.0 if memory.record.tier == "long" else policy.retention(memory.record, now)
            for number, memory in memories.items()
        }
        mean = sum(known.values()) / max(1, len(known))
        return np.array([known.get(number, mean) for number in candidates.owners.tolist()], dtype=np.float32)

    def _newer(self, request: Request, rows: TokenRows, ranking: Ranking) -> dict[int, tuple[int, ...]]:
        """Return of the best candidates that are memories those that overtook them, newest first."""
        candidates = ranking.candidates
        self._store.passages_ahead(request.namespace, candidates.numbers[: 2 * POOL_OWNERS].tolist())
        owners = candidates.owners[:POOL].tolist()
        memories = self._store.statements(request.namespace, owners, request.wanted.as_of)
        kept = [(memories[number], place) for place, number in enumerate(owners) if number in memories]
        places = {each.id: (-each.at, place) for each, place in reversed(kept)}  # of each memory its best passage
        # Which candidates hold all the numbers that the query names; none where it names none.
        named = [token for word in _NUMBER.findall(request.query) for token in self._tokens.tokenize(word)]
        holds = np.full(len(rows), bool(named))
        for token in named:
            holds &= rows.holding(np.array([token]))
        holds = holds[np.searchsorted(rows.numbers, candidates.numbers)]
        newer: dict[int, tuple[int, ...]] = {}
        for each, place in kept:
            by = [places[id_] for id_ in each.overtaken_by if id_ in places]
            for id_ in () if by else each.judged:
                # A rule does not move what has little to do with the question, nor before the number that it names.
                other = places[id_][1] if id_ in places else place
                is_near = candidates.dense[other] >= candidates.dense[place] - MIN_RELATED
                if other != place and is_near and (holds[other] or not holds[place]):
                    by.append(places[id_])
            newer |= {place: tuple(other for _, other in sorted(by))} if by else {}
        return newer

    def _begins(
        self, namespace: str, rows: TokenRows, candidates: Candidates, newer: Mapping[int, tuple[int, ...]]
    ) -> dict[int, float]:
        """Return when those that overtake others begin, where they say so."""
        places = sorted({each for others in newer.values() for each in others})
        numbers = candidates.numbers[places]
        rows = rows.take(np.searchsorted(rows.numbers, numbers))
        says_when = np.concatenate([self._tokens.tokenize(word) for word in ONSETS.split()])
        onsets = numbers[rows.holding(says_when)].tolist()
        found = self._store.passages_with_owners(namespace, onsets) if onsets else {}
        begins: dict[int, float] = {}
        for place, number in zip(places, numbers.tolist(), strict=True):
            memory = found[number][2] if number in found else None
            since = None if memory is None else begins_at(memory.record.content, memory.at)
            if since is not None:
                begins[place] = since
        return begins

    def near(self, namespace: str, vector: NDArray[np.float32], count: int) -> TokenRows:
        """Return the live passages of memories that are nearest to a vector by their embedder, by number ascending."""
        request = Request("…", namespace, count, "semantic", Filter(("memory",)), 0.0, count, count, is_bounded=True)
        code, stamps = self._spaces.codes["memory"], self._spaces.stamps
        vectors = np.zeros((len(stamps), self._spaces.dimensions), np.float32)
        vectors[code, : len(vector)] = vector
        made_by = (*(each.name if place == code else "" for place, each in enumerate(stamps)), "")
        query = PreparedQuery((), (), np.empty(0, np.uint16), vectors, 0.0, embedders=made_by)
        with self._recall.reading(request) as recall, ONE_BLAS_THREAD:
            phrasing = Phrasing(request.query, query, self._tokens)
            rows, *_ = recall.search(request, [phrasing], np.empty(0, np.int64))
            return rows.select(rows.of_kinds(("memory",)))


TRACE_LENGTH = 20
"""How many rejected candidates a result remembers."""


def select(ranking: Ranking, request: Request, store: Store) -> tuple[tuple[Hit, ...], result.Trace]:
    """Return the hits, best first, ties by id, what is newer before what it overtakes; and the trace behind them."""
    candidates, ahead = ranking.candidates, ranking.newer
    if ranking.begins:
        ranking, ahead = ranking.standing(request.now if request.wanted.as_of is None else request.wanted.as_of)
    likely = probabilities(ranking.odds)
    scores = scores_of(likely)
    moved = placed(range(len(candidates)), ahead)
    looks = list(zip(candidates.lengths.tolist(), candidates.dense.tolist(), strict=True))
    made: dict[int, Hit] = {}
    copies: set[int] = set()
    while True:
        chosen, rejected, held_back = _choose(ranking, moved, scores, request, copies)
        # What is as long and as near as a chosen one may hold the same text, though it is beyond the limit.
        alike = {looks[place] for place in chosen}
        twins = {place for place, reason in rejected if reason == "beyond the limit" and looks[place] in alike}
        found = {**chosen, **{place: place for place in copies | twins}}
        made |= _made(ranking, request, store, [place for place in found if place not in made], scores, likely)
        ids = {place: hit.id for place, hit in made.items()}
        # Equal values stand by id, and what was moved with that before which it was.
        kept = sorted(
            (place for place in found if place in made),
            key=lambda place: (-float(ranking.values[found[place]]), ids.get(found[place], "")),
        )
        hits = result.without_copies([made[place] for place in kept])
        first = {hit.id for hit in hits}
        before, copies = copies, {place for place in kept if ids[place] not in first}
        if copies == before:
            break  # else others may stand where copies stood
    kept = [place for place in kept if place not in copies][: request.limit]
    traced = sorted([*((place, None) for place in kept), *rejected[:TRACE_LENGTH]])
    trace = result.Trace(
        make=lambda: [_candidate(ranking, place, float(scores[place]), why) for place, why in traced],
        terms=ranking.words,
        min_score=request.min_score,
        numbers={ids[place]: int(candidates.numbers[place]) for place in kept},
        times=ranking.asked.times,
        passages=ranking.passages,
        moved={ids[place]: ids[found[place]] for place in kept if found[place] != place and found[place] in ids},
        held_back=tuple(held_back),
    )
    return without_secrets(hits[: request.limit]), trace


def _choose(
    ranking: Ranking,
    moved: Sequence[tuple[int, int | None]],
    scores: NDArray[np.float32],
    request: Request,
    copies: Collection[int],
) -> tuple[dict[int, int], list[tuple[int, result.Reason]], list[float]]:
    """Choose what may become hits, ties with the last one included.

    Args:
        copies: places of texts that a better hit has.

    Returns:
        The chosen places, each with the one before which it was moved, else its own; the rejected ones, with the
        reason; and of each owner that is held back the best score.
    """
    owners, values, likely = ranking.candidates.owners.tolist(), ranking.values.tolist(), scores.tolist()
    chosen: dict[int, int] = {}
    rejected: list[tuple[int, result.Reason]] = []
    taken, below, last = Counter[int](), dict[int, float](), 0.0
    # The scores are float32, and so is what they are compared with.
    floor = float(np.float32(request.min_score)) if len(scores) and scores[0] >= request.first_floor else math.inf
    for place, before in moved:
        owner, anchor = owners[place], place if before is None else before
        if likely[anchor] < floor and likely[place] < floor:
            rejected.append((place, "below the minimum score"))
            below.setdefault(owner, likely[place])
        elif place in copies:
            rejected.append((place, "same text as a better hit"))
        elif taken[owner] >= request.per_owner:
            rejected.append((place, "same owner as a better hit"))
        elif len(chosen) >= request.limit and values[anchor] < last:
            rejected.append((place, "beyond the limit"))
        else:
            taken[owner] += 1
            chosen[place] = anchor
            last = values[anchor]
    return chosen, sorted(rejected), [score for owner, score in below.items() if not taken[owner]]


def _made(
    ranking: Ranking,
    request: Request,
    store: Store,
    places: Sequence[int],
    scores: NDArray[np.float32],
    likely: NDArray[np.float32],
) -> dict[int, Hit]:
    """Return the hits of candidates, by their places; without those that are gone."""
    namespace, numbers = request.namespace, ranking.candidates.numbers
    newest = {place: newer[0] for place in places if (newer := ranking.newer.get(place))}
    wanted = distinct(numbers[[*places, *newest.values()]]).tolist()
    held = store.passages_with_owners(namespace, wanted)
    owners = {passage.owner_number: owner for passage, owner, _ in held.values()}
    items = [number for number, owner in owners.items() if owner.kind == "knowledge"]
    knowledge = store.knowledge(namespace).of_numbers(items) if items else {}
    prose = {number for number, owner in owners.items() if language_of(owner.path.rpartition("/")[2]) in PROSE}
    # Passages whose heading does not name one section.
    unnamed = store.repeated_headings(namespace, wanted) if prose else ()
    made: dict[int, Hit] = {}
    for place in places:
        number = int(numbers[place])
        if number not in held:
            continue
        passage, owner, memory = held[number]
        chunk, later = passage.chunk, held.get(int(numbers[newest[place]])) if place in newest else None
        item = knowledge.get(passage.owner_number)
        made[place] = Hit(
            id=passage.id,
            text=chunk.text,
            score=float(scores[place]),
            signals=_raw(ranking, place),
            heading=chunk.heading,
            lines=(chunk.start_line, chunk.end_line) if owner.path else None,
            agent="" if item is None else item.record.agent,
            probability=float(likely[place]),
            confidence=confidence(float(likely[place])),
            anchor=heading_slug(chunk.heading) if number not in unnamed and passage.owner_number in prose else "",
            superseded_by=None if later is None else later[1].id,
            **result.owner_fields(owner, memory),
        )
    return made


def _raw(ranking: Ranking, place: int) -> dict[str, float]:
    raw = {name: float(getattr(ranking.candidates, name)[place]) for name in (LEXICAL, DENSE, LATE, COVERAGE, WORDS)}
    raw.update({name: float(values[place]) for name, values in ranking.signals.items() if name not in raw})
    return {**raw, "fused": float(ranking.values[place])} if ranking.weights else raw


def _candidate(ranking: Ranking, place: int, score: float, reason: result.Reason | None) -> result.Candidate:
    raw = _raw(ranking, place)
    # What orders beside the signals, as the rank behind a pool, has no value of its own.
    values = {**raw, **{name: float(part[place]) for name, part in ranking.parts.items() if name not in raw}}
    signals = {}
    for name, value in values.items():
        part, weight, evidence = (
            float(named[name][place]) if name in named else 0.0
            for named in (ranking.parts, ranking.weights, ranking.evidence)
        )
        signals[name] = result.SignalShare(name, value, part, weight, value * evidence)
    numbers, owners = ranking.candidates.numbers, ranking.candidates.owners
    return result.Candidate(int(numbers[place]), int(owners[place]), place + 1, score, signals, reason)
