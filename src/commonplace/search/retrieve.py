"""Run a search: recall, signals, fusion, calibration, cut-off.

`Searcher.search` runs all of it: `recall` finds passages, `signals` and `rank` order them, and `select` chooses the
hits, without copies of a text, and reads them from the store.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
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
from commonplace.search.rank import POOL, Ranking, RankingContext, Successor, combined, order, placed
from commonplace.search.recall import ENTRY_BYTES, Recall, RecallState
from commonplace.search.request import PreparedQuery, Request, kinds_of, prepare
from commonplace.search.signals import COVERAGE, DENSE, LATE, LEXICAL, TIME, WORDS, Candidates, Phrasing, TokenRows
from commonplace.search.time import begins_at, dated_owners, passages_worth_recalling
from commonplace.store.schema import is_reserved
from commonplace.store.store import Store
from commonplace.text.languages import PROSE, language_of
from commonplace.text.markdown import heading_slug
from commonplace.text.query import analyse_query, respelled, slips
from commonplace.types import EMBEDDED_KIND_OF, GRAPH_KINDS, KINDS, Filter, Hit, Selection, StoredMemory

QUERY_CACHE: Final = Bounds(max_entries=5_000, max_bytes=1 << 18, ttl_s=30 * 60)
RANKING_CACHE: Final = Bounds(max_entries=1_000, max_bytes=1 << 18, ttl_s=5 * 60)
"""Default bounds of the caches of embedded queries and of rankings."""
POOL_OWNERS: Final = 10
"""Number of owners that recall covers first, whatever the limit; what a larger limit needs ranks behind these."""
CANDIDATE_BYTES: Final = 300
CHARACTER_BYTES: Final = 30
"""Approximate bytes of a prepared query per character, as `CANDIDATE_BYTES` are of a ranking per candidate."""
MIN_RELATED: Final = 0.55
"""How far a newer memory's cosine with the query may be below the older one's for a rule to move it forward, unless it
is sure that the older one is superseded."""
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
        """Return the hits of a request; `notices` and `degraded` are passed on to the result.

        Everything is read from one state of the store.

        Raises:
            EmbedderMismatchError: the store's vectors are another embedder's.
            IndexFaultError: the current generation of the index is damaged or not of this store's history.
        """
        started, corrected, messages = time.perf_counter(), "", [*notices]
        with self._recall.reading(request) as recall:
            ranking, hits, trace = self._ranked_hits(recall, request)
            if request.method != "semantic" and not (hits and (ranking.candidates.lexical > 0).any()):
                query = self._respelled(recall, request.query)
                retry = self._ranked_hits(recall, replace(request, query=query)) if query != request.query else None
                if retry and retry[1]:
                    ranking, hits, trace = retry
                    corrected = query
                    messages.append(f"searched for {query!r} instead of {request.query!r}")
        if ranking.fault:
            messages.append(f"searched by words alone, for the query could not be embedded: {ranking.fault}")
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
            notices=tuple(messages),
            trace=trace,
            calibrated=all(stamp.name in BY_EMBEDDER for stamp in self._spaces.stamps),
            corrected=corrected,
        )

    def _ranked_hits(self, recall: RecallState, request: Request) -> tuple[Ranking, tuple[Hit, ...], result.Trace]:
        """Rank candidates and choose the hits.

        The first pool is the same whatever the limit; otherwise the first hits would depend on the limit.
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
        """Return the ranking of the candidates, from the cache if it is there."""
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
            queries = [phrasing.query for phrasing in phrasings]
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
                    phrasing.candidates(rows, bm25, stats, recall.terms)
                    for phrasing, bm25, stats in zip(phrasings, lexical, statistics, strict=True)
                ]
                count.append(len(rows))
            with recall.stage("fusion"):
                weighs_use = request.retention_weight and request.method == "two-stage"
                retained = self._retention(request, signals[0]) if weighs_use else None
                context = RankingContext(beside, asked, dated, retained, statistics[0].documents)
                rankings = [
                    order(replace(request, query=phrasing.text, also=()), phrasing.query, part, context)
                    for phrasing, part in zip(phrasings, signals, strict=True)
                ]
                ranking = (combined(rankings) if len(rankings) > 1 else rankings[0]).best_first()
                # A query that names a time wants what held then, not what came later.
                is_of_now = request.method == "two-stage" and not asked.times
                superseding = self._superseding(request, rows, ranking) if is_of_now else {}
                fault = next((query.fault for query in queries if query.fault), "")
                return replace(ranking, fault=fault, superseding=superseding)

    def _phrasings(self, request: Request, languages: tuple[str, ...]) -> list[Phrasing]:
        """Prepare each phrasing, from the cache if it is there; embed only for kinds that the namespace holds."""
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
        """Return the query with words that are in no passage and no dictionary replaced by similar ones in passages."""

        def is_word(word: str) -> bool:
            # What the tokenizer does not take apart is a word of English.
            return len(self._tokens.tokenize(word)) == 1 or recall.holds(analyse_query(word, recall.languages).terms)

        def near(word: str) -> Iterator[str]:
            for entry in recall.similar(analyse_query(word, recall.languages).terms, slips(word)):
                yield f"{entry.title} {entry.heading} {entry.text} {' '.join(entry.tags)}"

        return respelled(query, is_word, near)

    def _retention(self, request: Request, candidates: Candidates) -> NDArray[np.float32]:
        """Return the retention of each candidate's owner, 0–1, float32, shape (n,).

        Other kinds do not fade and get the mean of the memories, so they are neither favoured nor held back.
        """
        policy, now = request.policy, request.now or 0.0
        memories = self._store.memory_records(request.namespace, distinct(candidates.owners).tolist())
        retentions = {
            number: 1.0 if memory.record.tier == "long" else policy.retention(memory.record, now)
            for number, memory in memories.items()
        }
        mean = sum(retentions.values()) / max(1, len(retentions))
        return np.array([retentions.get(number, mean) for number in candidates.owners.tolist()], dtype=np.float32)

    def _superseding(self, request: Request, rows: TokenRows, ranking: Ranking) -> dict[int, tuple[Successor, ...]]:
        """Return what supersedes the best candidates, by place: the newest first."""
        candidates, namespace, as_of = ranking.candidates, request.namespace, request.wanted.as_of
        self._store.passages_ahead(namespace, candidates.numbers[: 2 * POOL_OWNERS].tolist())
        owners = candidates.owners.tolist()
        statements = self._store.statements(namespace, owners[:POOL], as_of)
        stated = {row: statements[number] for row, number in enumerate(owners[:POOL]) if number in statements}
        rows_by_id = {stated[row].id: row for row in reversed(stated)}  # the best passage of each memory
        # Which candidates hold all the numbers that the query names; none where it names none.
        named = [token for word in _NUMBER.findall(request.query) for token in self._tokens.tokenize(word)]
        holds = np.full(len(rows), bool(named))
        for token in named:
            holds &= rows.holding(np.array([token]))
        holds = holds[np.searchsorted(rows.numbers, candidates.numbers)]
        holding = {id_ for id_, row in rows_by_id.items() if holds[row]}
        told = {statement.id: statement.told for statement in stated.values()}
        ids: dict[int, set[str]] = {}
        for row, statement in stated.items():
            # A rule does nothing to what alone holds the query's numbers, the graph nothing against what a person says.
            judged = set(statement.judged) & holding if holds[row] else set(statement.judged)
            ended_by = {id_ for id_ in statement.ended_by if statement.id not in told.get(id_, ())}
            ids |= {row: others} if (others := statement.told | ended_by | judged) else {}
        if not ids:
            return {}
        newer = self._newer(namespace, set(chain.from_iterable(ids.values())), rows_by_id, owners, as_of)
        superseding = {}
        for row, others in ids.items():
            statement, successors = stated[row], list[Successor]()
            # Beside what a person says, only that counts, unless it is archived.
            counted = statement.told & newer.keys() or others
            found = [newer[id_] for id_ in counted if id_ in newer and rows_by_id.get(id_) != row]
            for memory, begins in sorted(found, key=lambda pair: (-pair[0].at, pair[0].owner.id)):
                id_, place = memory.owner.id, rows_by_id.get(memory.owner.id)
                # A rule that is not sure moves nothing that has little to do with the query.
                if place is not None and not statement.judged.get(id_, True) and id_ not in statement.overtaken_by:
                    place = place if candidates.dense[place] >= candidates.dense[row] - MIN_RELATED else None
                since = begins if id_ in statement.told else max(begins, memory.at)
                successors.append(Successor(id_, place, since, id_ in statement.overtaken_by))
            superseding[row] = tuple(successors)
        return superseding

    def _newer(
        self, namespace: str, ids: set[str], rows_by_id: Mapping[str, int], owners: Sequence[int], as_of: float | None
    ) -> dict[str, tuple[StoredMemory, float]]:
        """Return memories by id, and when each begins to hold, if its words or facts say so; those gone are absent."""
        placed = [owners[rows_by_id[id_]] for id_ in ids if id_ in rows_by_id]
        memories = [*self._store.memory_records(namespace, placed).values()]
        if others := tuple(sorted(ids - rows_by_id.keys())):
            now, rows = math.inf if as_of is None else as_of, self._store.memories(namespace, Selection(ids=others))
            memories += [
                one for one in rows if one.created_at <= now and (one.expired_at is None or one.expired_at > now)
            ]
        begins = {memory.number: begins_at(memory.record.content, memory.at) for memory in memories}
        begins |= self._store.announced(namespace, [*begins])
        return {memory.owner.id: (memory, begins[memory.number] or -math.inf) for memory in memories}

    def near(self, namespace: str, vector: NDArray[np.float32], count: int) -> TokenRows:
        """Return the live passages of memories nearest to a vector of their embedder, by number ascending."""
        request = Request("…", namespace, count, "semantic", Filter(("memory",)), 0.0, count, count, is_bounded=True)
        code, stamps = self._spaces.codes["memory"], self._spaces.stamps
        vectors = np.zeros((len(stamps), self._spaces.dimensions), np.float32)
        vectors[code, : len(vector)] = vector
        made_by = (*(stamp.name if index == code else "" for index, stamp in enumerate(stamps)), "")
        query = PreparedQuery((), (), np.empty(0, np.uint16), vectors, 0.0, embedders=made_by)
        with self._recall.reading(request) as recall, ONE_BLAS_THREAD:
            phrasing = Phrasing(request.query, query, self._tokens)
            rows, *_ = recall.search(request, [phrasing], np.empty(0, np.int64))
            return rows.select(rows.of_kinds(("memory",)))


TRACE_LENGTH = 20
"""Maximum number of rejected candidates that a trace keeps."""


def select(ranking: Ranking, request: Request, store: Store) -> tuple[tuple[Hit, ...], result.Trace]:
    """Return the hits, best first, ties by id, newer memories before those they supersede; and the trace behind it."""
    asked_for = (request.wanted.valid_at, request.wanted.as_of, request.now)
    ranking, ahead = ranking.standing(next((time for time in asked_for if time is not None), None))
    candidates = ranking.candidates
    chances = probabilities(ranking.odds)
    scores = scores_of(chances)
    moved = placed(range(len(candidates)), ahead)
    profiles = list(zip(candidates.lengths.tolist(), candidates.dense.tolist(), strict=True))
    built: dict[int, Hit] = {}
    copies: set[int] = set()
    while True:
        chosen, rejected, held_back = _choose(ranking, moved, scores, request, copies)
        # A candidate beyond the limit that is as long and as near as a chosen one may hold the same text.
        alike = {profiles[row] for row in chosen}
        twins = {row for row, reason in rejected if reason == "beyond the limit" and profiles[row] in alike}
        anchors = {**chosen, **{row: row for row in copies | twins}}
        built |= _made(ranking, request, store, [row for row in anchors if row not in built], scores, chances)
        ids = {row: hit.id for row, hit in built.items()}
        # Equal values are sorted by id; what was moved has the value and id of the one that it was moved before.
        ordered = sorted(
            (row for row in anchors if row in built),
            key=lambda row: (-float(ranking.values[anchors[row]]), ids.get(anchors[row], "")),
        )
        hits = result.without_copies([built[row] for row in ordered])
        hit_ids = {hit.id for hit in hits}
        before, copies = copies, {row for row in ordered if ids[row] not in hit_ids}
        if copies == before:
            break  # else others may stand where copies stood
    ordered = [row for row in ordered if row not in copies][: request.limit]
    traced = sorted([*((row, None) for row in ordered), *rejected[:TRACE_LENGTH]])
    trace = result.Trace(
        candidates=[_candidate(ranking, row, float(scores[row]), rejection) for row, rejection in traced],
        terms=ranking.words,
        min_score=request.min_score,
        numbers={ids[row]: int(candidates.numbers[row]) for row in ordered},
        times=ranking.asked.times,
        passages=ranking.passages,
        moved={ids[row]: ids[anchors[row]] for row in ordered if anchors[row] != row and anchors[row] in ids},
        held_back=tuple(held_back),
    )
    return result.without_secrets(hits[: request.limit]), trace


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
        The chosen places, each with the place that it was moved before, or its own; the rejected places, with the
        reason; and the best score of each owner that is held back.
    """
    owners, values, likelihoods = ranking.candidates.owners.tolist(), ranking.values.tolist(), scores.tolist()
    chosen: dict[int, int] = {}
    rejected: list[tuple[int, result.Reason]] = []
    counts, below, last = Counter[int](), dict[int, float](), 0.0
    # The scores are float32, and so is what they are compared with.
    floor = float(np.float32(request.min_score)) if len(scores) and scores[0] >= request.first_floor else math.inf
    for row, before in moved:
        owner, anchor = owners[row], row if before is None else before
        if likelihoods[anchor] < floor and likelihoods[row] < floor:
            rejected.append((row, "below the minimum score"))
            below.setdefault(owner, likelihoods[row])
        elif row in copies:
            rejected.append((row, "same text as a better hit"))
        elif counts[owner] >= request.per_owner:
            rejected.append((row, "same owner as a better hit"))
        elif len(chosen) >= request.limit and values[anchor] < last:
            rejected.append((row, "beyond the limit"))
        else:
            counts[owner] += 1
            chosen[row] = anchor
            last = values[anchor]
    return chosen, sorted(rejected), [score for owner, score in below.items() if not counts[owner]]


def _made(
    ranking: Ranking,
    request: Request,
    store: Store,
    rows: Sequence[int],
    scores: NDArray[np.float32],
    chances: NDArray[np.float32],
) -> dict[int, Hit]:
    """Return the hits of candidates by their places, without those that are gone."""
    namespace, numbers = request.namespace, ranking.candidates.numbers
    passage_numbers = distinct(numbers[rows]).tolist()
    passages = store.passages_with_owners(namespace, passage_numbers)
    owners = {passage.owner_number: owner for passage, owner, _ in passages.values()}
    items = [number for number, owner in owners.items() if owner.kind == "knowledge"]
    knowledge = store.knowledge(namespace).of_numbers(items) if items else {}
    prose = {number for number, owner in owners.items() if language_of(owner.path.rpartition("/")[2]) in PROSE}
    # Passages whose heading does not name one section.
    unnamed = store.repeated_headings(namespace, passage_numbers) if prose else ()
    hits: dict[int, Hit] = {}
    for row in rows:
        number = int(numbers[row])
        if number not in passages:
            continue
        passage, owner, memory = passages[number]
        chunk, successors = passage.chunk, ranking.superseding.get(row, ())
        successor = max(successors, key=lambda one: one.is_decided, default=None)
        item = knowledge.get(passage.owner_number)
        hits[row] = Hit(
            id=passage.id,
            text=chunk.text,
            score=float(scores[row]),
            signals=_raw(ranking, row),
            heading=chunk.heading,
            lines=(chunk.start_line, chunk.end_line) if owner.path else None,
            agent="" if item is None else item.record.agent,
            probability=float(chances[row]),
            confidence=confidence(float(chances[row])),
            anchor=heading_slug(chunk.heading) if number not in unnamed and passage.owner_number in prose else "",
            superseded_by=None if successor is None else successor.id,
            is_superseded=successor is not None and successor.is_decided,
            **result.owner_fields(owner, memory),
        )
    return hits


def _raw(ranking: Ranking, row: int) -> dict[str, float]:
    raw = {name: float(getattr(ranking.candidates, name)[row]) for name in (LEXICAL, DENSE, LATE, COVERAGE, WORDS)}
    raw.update({name: float(values[row]) for name, values in ranking.signals.items() if name not in raw})
    return {**raw, "fused": float(ranking.values[row])} if ranking.weights else raw


def _candidate(ranking: Ranking, row: int, score: float, reason: result.Reason | None) -> result.Candidate:
    raw = _raw(ranking, row)
    # A part that is not a signal, such as the rank behind a pool, has no raw value.
    values = {**raw, **{name: float(part[row]) for name, part in ranking.parts.items() if name not in raw}}
    signals, added = {}, (ranking.parts, ranking.weights, ranking.evidence)
    for name, value in values.items():
        part, weight, evidence = (float(columns[name][row]) if name in columns else 0.0 for columns in added)
        signals[name] = result.SignalShare(name, value, part, weight, value * evidence)
    numbers, owners = ranking.candidates.numbers, ranking.candidates.owners
    return result.Candidate(int(numbers[row]), int(owners[row]), row + 1, score, signals, reason)
