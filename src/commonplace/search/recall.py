"""Recall, the first stage of a search: find the passages to rank, through the index beside the store.

The call `Engine.recall` is something else: it searches memories alone, with both stages.

The index lags behind the store and holds no past versions. What it lacks is read from the store, in the snapshot that
the search sees, and takes part as if the index held it. If a database keeps the store on a server, it answers in place
of the index; see `recall_postgres`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import EmbedderMismatchError, IndexFaultError
from commonplace.index.contract import Scope, Scored
from commonplace.index.generations import Generation, Index
from commonplace.index.lexical import MAX_TERMS
from commonplace.models.cache import AgingCache, Bounds
from commonplace.ranking.arrays import distinct, union, within, without
from commonplace.ranking.bm25 import Statistics, TermRows, pack
from commonplace.search.request import MAX_STAGE1_LIMIT, PreparedQuery, Request
from commonplace.search.signals import DENSE, LEXICAL, Phrasing, Spaces, TokenRows, concatenate, cosines, token_rows
from commonplace.search.time import AskedTimes, asked_times
from commonplace.store.store import UPTO_DATE, Store
from commonplace.text.tokens import fields_of, passage_language
from commonplace.types import EMBEDDED_KIND_OF, Embedding, Head, IndexEntry, Stage

if TYPE_CHECKING:
    from commonplace.search.recall_postgres import DatabaseState

OWNERS_CACHE = Bounds(max_entries=16, max_bytes=8 << 20, ttl_s=5 * 60)
ENTRY_BYTES = 2_000
"""Approximate bytes of a cache's entry besides the arrays of its value: its key, a request, and Python's objects."""
MAX_NEAR, MAX_TAIL_READ = 20, 200
"""Maximum number of passages of the index and of the tail that are read to correct a misspelt word."""
MAX_TAIL_CANDIDATES = 200
"""Number of best passages by BM25, and by dense and late score, to which a longer tail is cut."""
ROUNDS, GROWTH = 4, 4
"""Maximum rounds of a stage, which is repeated without a long text that fills it, and growth of its size each time."""
MAX_ANALYSED = 20_000
"""Number of analysed passages cached beyond those of the search, about 10 MB; then the cache is emptied."""
_READ_BATCH: Final = 500
_EMPTY: Final = Scored(np.empty(0, np.int64), np.empty(0, np.float32))


Parts: TypeAlias = "Generation | DatabaseState"
"""The parts of an index, which hold every change of a namespace up to its `head`."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What the index lacks of one namespace.

    Attributes:
        base, upto: the rows are the passages written in the changes (base, upto] of the namespace.
        token: of the change `upto`; a store with another token there has another history.
        rows: those of them that still exist, by number ascending.
        dead: numbers of the passages deleted in (base, upto], ascending; int64, shape (n,).
    """

    base: int
    upto: int
    token: str
    rows: TokenRows
    dead: NDArray[np.int64]


@contextmanager
def parts_of(
    store: Store, index: Index, stamp: Embedding | None = None, namespace: str | None = None
) -> Iterator[Parts]:
    """Open the parts that find a store's passages: those of its database on a server, else those of its index.

    Args:
        namespace: the only one that is read; None opens all.
    """
    if store.postings is not None and (stamp := stamp or store.embedding()) is not None:
        from commonplace.search.recall_postgres import DatabaseState

        with store.snapshot(namespace, UPTO_DATE):
            yield DatabaseState(store, store.postings, stamp, namespace or "")
    else:
        with index.reading() as parts:
            yield parts


class Recall:
    """Finds the passages of a store that a search ranks. Safe for threads.

    It caches what it read of the tail, the passages that the index lacks.

    Args:
        stamp: the embedders that searches use.
    """

    def __init__(self, store: Store, index: Index, stamp: Embedding) -> None:
        self.store = store
        self.spaces = Spaces.of(stamp)
        self._index = index
        self._stamp = stamp
        self._owners: AgingCache[NDArray[np.int64]] = AgingCache(OWNERS_CACHE)
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        # By namespace: a change with its token, and the term counts and language of passages by number.
        self._analysed: dict[str, tuple[Head, dict[int, tuple[bytes, str]]]] = {}

    @contextmanager
    def reading(self, request: Request) -> Iterator[RecallState]:
        """Open the state that a request sees; until the block ends, the store is read in this state too.

        Raises:
            EmbedderMismatchError: the store's vectors are another embedder's.
            IndexFaultError: an index is damaged or not of this store's history.
        """
        store, namespace, wanted = self.store, request.namespace, request.wanted
        # The generation first: a state opened after it holds all that the generation does.
        with (
            parts_of(store, self._index, self._stamp, namespace) as parts,
            store.snapshot(namespace, parts.head(namespace).change),
        ):
            made_by, head = store.embedding(), parts.head(namespace)
            if made_by is not None and made_by != self._stamp:
                message = f"the store's vectors are made by {made_by}, not by {self._stamp}"
                raise EmbedderMismatchError(message, remedy="open it again")
            if store.token(namespace, head.change) != head.token:
                raise IndexFaultError("belongs to another history of its store")
            tail = self._tail(namespace, head.change)
            # Owners, which may be many, are read unless the filter asks for all, or for kinds that recall tells apart.
            kinds, owners, is_of_owners = wanted.kinds, None, not wanted.is_empty
            if wanted.is_of_kinds:
                counts = store.counts(namespace)
                is_all = sum(counts.get(EMBEDDED_KIND_OF[kind], 0) for kind in set(kinds)) == counts["owners"]
                # An index beside the store tells kinds apart by words alone, a database by vectors too.
                is_of_owners = not (is_all or store.postings is not None or request.method == "bm25")
                kinds = () if is_all else kinds
            if is_of_owners:
                key = (namespace, wanted, tail.token)
                owners, kinds = self._owners.get(key), ()
                if owners is None:
                    owners = np.array(store.matching_owners(namespace, wanted), dtype=np.int64)
                    self._owners.put(key, owners, owners.nbytes + ENTRY_BYTES)
            scope, rows = Scope(namespace, owners, tail.dead, fields=request.fields, kinds=kinds), tail.rows
            if wanted.as_of is not None or wanted.valid_at is not None:
                rows = concatenate(rows, token_rows(store.past(namespace, wanted.as_of, wanted.valid_at), self.spaces))
                rows = rows if scope.owners is None else rows.select(within(rows.owners, scope.owners))
            yield RecallState(asked_times(request), self, parts, tail, rows, scope)

    def _tail(self, namespace: str, base: int) -> Tail:
        """Return what was written and deleted after `base`, as the current snapshot of the store sees it."""
        store = self.store
        upto, token = store.head(namespace)
        with self._lock:
            cached = self._tails.get(namespace)
        if (
            cached is None
            or cached.base != base
            or cached.upto > upto
            or cached.token != store.token(namespace, cached.upto)
        ):
            empty_rows = token_rows([], self.spaces)
            cached = Tail(base, base, store.token(namespace, base), empty_rows, np.empty(0, dtype=np.int64))
        if cached.upto == upto:
            return cached
        deleted = np.array(store.deleted_since(namespace, cached.upto, upto), dtype=np.int64)
        rows = concatenate(cached.rows, token_rows(store.tail(namespace, cached.upto), self.spaces))
        tail = Tail(base, upto, token, rows.select(~within(rows.numbers, deleted)), union(cached.dead, deleted))
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def analysed(self, namespace: str, rows: TokenRows) -> list[tuple[bytes, str]]:
        """Return the term counts and the language of each row, b"" and "" for one that is gone.

        They are cached, because analysing passages takes most of a search that the index does not serve.
        """
        numbers = rows.numbers.tolist()
        with self._lock:
            head, cached = self._analysed.get(namespace, (None, {}))
            is_full = len(cached) > MAX_ANALYSED + len(numbers)
            # A store with another token at that change has another history.
            if head is None or is_full or self.store.token(namespace, head.change) != head.token:
                head, cached = self._analysed[namespace] = (self.store.head(namespace), {})
            missing = [number for number in numbers if number not in cached]
            for begin in range(0, len(missing), _READ_BATCH):
                for entry in self.store.entries(namespace, missing[begin : begin + _READ_BATCH]).values():
                    language = passage_language(entry)
                    cached[entry.number] = pack(fields_of(entry, language)), language
            return [cached.get(number, (b"", "")) for number in numbers]


@dataclass
class RecallState:
    """One snapshot of a namespace, as one request sees it.

    Attributes:
        asked: the times that the query names.
        stages: how long each stage of the search took.
        rows: what the index lacks: the tail, and past versions that were live or true at a requested time.
        scope: what passes the request's filter; `owners` is None if the filter is empty, or kinds suffice.
    """

    asked: AskedTimes
    _recall: Recall
    parts: Parts
    tail: Tail
    rows: TokenRows
    scope: Scope
    stages: dict[str, Stage] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[int]]:
        """Time a block, which appends the number of candidates that it leaves to the yielded list."""
        counted: list[int] = []
        begun = time.perf_counter()
        yield counted
        before = self.stages.get(name, Stage(name, 0, 0.0))
        spent_ms = (time.perf_counter() - begun) * 1000
        self.stages[name] = Stage(name, before.candidates + sum(counted), before.ms + spent_ms)

    def passing(self, rows: TokenRows) -> NDArray[np.bool_]:
        """Return which rows pass the request's filter, bool, shape (n,)."""
        scope = self.scope
        if scope.owners is not None:
            return within(rows.owners, scope.owners)
        return rows.of_kinds(scope.kinds) if scope.kinds else np.ones(len(rows), np.bool_)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages besides English in which passages are stemmed, sorted."""
        namespace, unindexed = self.scope.namespace, (self.tail.rows, self.rows)
        names = {language for rows in unindexed if len(rows) for _, language in self._recall.analysed(namespace, rows)}
        return tuple(sorted(self.parts.lexical.languages(namespace) | (names - {""})))

    def search(
        self, request: Request, phrasings: Sequence[Phrasing], besides: NDArray[np.int64]
    ) -> tuple[TokenRows, list[NDArray[np.float32]], list[Statistics], dict[int, set[int]]]:
        """Find the best passages by words and by meaning for any of the phrasings, with all that ranks them.

        Args:
            request: gives the methods, how many passages of each, and how many owners they must cover.
            besides: passages that are candidates in any case, ascending.

        Returns:
            The candidates and, for a `two-stage` request, the passages next to them in a session that also pass the
            filter; for each phrasing, the BM25 of each row, float32, shape (n,); for each phrasing, the statistics of
            its terms in all passages of the namespace; which passages are next to each other in a session.
        """
        namespace, scope = self.scope.namespace, self.scope
        # A store on a server is read through its parts, which hold the tokens of what they find.
        reader: Store | DatabaseState = self._recall.store
        if self._recall.store.postings is not None:
            reader = cast("DatabaseState", self.parts)
            for phrasing in phrasings if request.method != "bm25" else ():
                for vector, space in self._vectors(phrasing.query):
                    reader.dense.ahead(vector, scope, request.stage1_limit, space)
        with self.stage("tail") as count:
            in_scope = self.passing(self.rows)
            rows = self.rows.select(in_scope)
            keep = within(rows.numbers, besides)
            unindexed = [self._unindexed(phrasing.query, in_scope) for phrasing in phrasings]
            if not request.is_bounded:
                for phrasing, (bm25, stats) in zip(phrasings, unindexed, strict=True):
                    keep |= _worth_ranking(rows, phrasing, bm25, stats, request)
            count.append(int(keep.sum()))
        nominated = [
            self._nominated(request, phrasing.query, stats)
            for phrasing, (_, stats) in zip(phrasings, unindexed, strict=True)
        ]
        if request.is_bounded and len(rows):
            for phrasing, (bm25, _), parts in zip(phrasings, unindexed, nominated, strict=True):
                keep |= _bound(rows, bm25, phrasing.query, parts, request.stage1_limit)
        with self.stage("signals"):
            parts_of_all = (part.numbers for parts in nominated for part in parts.values())
            recalled = distinct(np.concatenate([without(besides, self.rows.numbers), *parts_of_all]))
            numbers = union(recalled, rows.numbers[keep])
            beside: defaultdict[int, set[int]] = defaultdict(set)
            if request.method == "two-stage":
                chosen = set(numbers.tolist())
                entries, pairs = reader.tokens_beside(namespace, numbers.tolist())
                for number, neighbour in pairs:
                    beside[number].add(neighbour)
                    beside[neighbour].add(number)
                near = {neighbour for number, neighbour in pairs if number in chosen}
                numbers = union(numbers, np.array(list(near), dtype=np.int64))
            else:
                entries = reader.tokens(namespace, numbers.tolist())
            indexed = without(numbers, rows.numbers).tolist()
            held = token_rows([entries[number] for number in indexed if number in entries], self._recall.spaces)
            mask = within(rows.numbers, numbers)
            order = np.argsort(np.concatenate((held.numbers, rows.numbers[mask])))
            rows = concatenate(held, rows.select(mask))
            passing = self.passing(rows)  # what is next to a candidate may be out of scope
            scores = [
                np.concatenate((self._scores(phrasing.query, held.numbers, parts, stats), bm25[mask]))[order][passing]
                for phrasing, (bm25, stats), parts in zip(phrasings, unindexed, nominated, strict=True)
            ]
            return rows.select(passing), scores, [stats for _, stats in unindexed], beside

    def terms(self, numbers: NDArray[np.int64]) -> Sequence[bytes]:
        """Return the term counts of passages that `search` gave, in their order; see `commonplace.ranking.bm25`."""
        counts = list(self.parts.lexical.rows(numbers))
        for index in np.flatnonzero(within(numbers, self.rows.numbers)).tolist():
            counts[index] = self._terms[int(np.searchsorted(self.rows.numbers, numbers[index]))]
        return counts

    def holds(self, terms: Sequence[str]) -> bool:
        """Return whether any passage holds one of the terms."""
        return len(self.parts.lexical.search(terms, self.scope, 1).numbers) > 0 or any(
            not set(terms).isdisjoint(chain.from_iterable(fields_of(entry).values())) for entry in self._newest
        )

    def similar(self, terms: Sequence[str], distance: int) -> Sequence[IndexEntry]:
        """Return some passages that may hold a term within `distance` edits of one of these."""
        lexical, scope = self.parts.lexical, self.scope
        numbers = {number for term in terms for number in lexical.similar(term, distance, scope, MAX_NEAR)}
        return [*self._recall.store.entries(scope.namespace, sorted(numbers)).values(), *self._newest]

    @cached_property
    def _newest(self) -> Sequence[IndexEntry]:
        """The newest passages that the index lacks."""
        numbers = self.rows.numbers[-MAX_TAIL_READ:].tolist()
        return list(self._recall.store.entries(self.scope.namespace, numbers).values())

    @cached_property
    def _terms(self) -> Sequence[bytes]:
        """The term counts of what the index lacks."""
        analysed = self._recall.analysed(self.scope.namespace, self.rows) if len(self.rows) else []
        return [terms for terms, _ in analysed]

    def _unindexed(self, query: PreparedQuery, in_scope: NDArray[np.bool_]) -> tuple[NDArray[np.float32], Statistics]:
        """Return BM25 of the rows in scope that the index lacks, and the statistics of the index and all rows."""
        scope = self.scope
        query_terms = dict.fromkeys((*query.terms, *chain.from_iterable(chain.from_iterable(query.spelled))))
        matches = TermRows(self._terms).find(query_terms)
        statistics = self.parts.lexical.statistics(list(query_terms), scope) + matches.statistics
        return matches.scores(statistics.rarest(query.terms, MAX_TERMS), statistics, scope.fields)[in_scope], statistics

    def _nominated(self, request: Request, query: PreparedQuery, statistics: Statistics) -> dict[str, Scored]:
        lexical, dense = self.parts.lexical, self.parts.dense
        methods: dict[str, list[Callable[[Scope, int], Scored]]] = {}
        if request.method != "semantic":
            methods[LEXICAL] = [partial(lexical.search, query.terms, statistics=statistics)]
        if request.method != "bm25":
            methods[DENSE] = [
                partial(dense.search, vector, vectors=self._recall.store.vectors, space=space)
                for vector, space in self._vectors(query)
            ]
        results = {}
        for name, searches in methods.items():
            with self.stage(name) as count:
                results[name] = all_of([_EMPTY, *(self._of_owners(search, request) for search in searches)])
                count.append(len(results[name].numbers))
        return results

    def _vectors(self, query: PreparedQuery) -> list[tuple[NDArray[np.float32], str]]:
        """Return the vectors of a query, each with the name of its space."""
        pairs = enumerate(self._recall.spaces.stamps)
        return [(query.vectors[code, : stamp.dimensions], str(stamp)) for code, stamp in pairs if query.embedders[code]]

    def _of_owners(self, search: Callable[[Scope, int], Scored], request: Request) -> Scored:
        """Return the best passages of one part of the index, of enough owners for the hits requested.

        The first round is the stage as requested. If its passages are of too few owners, further rounds add the best
        passages of others. If the request bounds the stage, these replace further passages of one owner.
        """
        rounds: list[Scored] = []
        round_owners: list[NDArray[np.int64]] = []
        owners = np.empty(0, dtype=np.int64)
        scope, size = self.scope, request.stage1_limit
        for _ in range(ROUNDS):
            scored = search(scope, size)
            if not rounds and len(scored.numbers) < size:
                return scored
            holders = self.parts.dense.owners(scored.numbers)
            rows = first_places(holders, request.per_owner, len(holders)) if rounds else np.arange(len(holders))
            rounds.append(Scored(scored.numbers[rows], scored.scores[rows]))
            round_owners.append(holders[rows])
            new_owners = distinct(holders)
            owners = union(owners, new_owners)
            if len(scored.numbers) < size or len(owners) >= request.limit or not len(new_owners):
                break
            scope = replace(scope, passed_over=owners)
            size = min(size * GROWTH, MAX_STAGE1_LIMIT)
        scored = all_of(rounds)
        if not request.is_bounded or len(scored.numbers) <= request.stage1_limit:
            return scored
        first = first_places(np.concatenate(round_owners), 1, request.limit)
        further = without(np.arange(len(scored.numbers)), np.sort(first))
        rows = np.sort(np.concatenate((first, further))[: request.stage1_limit])
        return Scored(scored.numbers[rows], scored.scores[rows])

    def _scores(
        self, query: PreparedQuery, numbers: NDArray[np.int64], recalled: Mapping[str, Scored], statistics: Statistics
    ) -> NDArray[np.float32]:
        """Return BM25 of passages of the index, float32, shape (n,); what was found by words keeps its score."""
        scores, lexical = np.zeros(len(numbers), dtype=np.float32), recalled.get(LEXICAL, _EMPTY)
        order = np.argsort(lexical.numbers)
        is_recalled = within(numbers, lexical.numbers[order])
        scores[is_recalled] = lexical.scores[order][np.searchsorted(lexical.numbers[order], numbers[is_recalled])]
        if query.terms and not is_recalled.all():
            matches = TermRows(self.parts.lexical.rows(numbers[~is_recalled])).find(query.terms)
            rarest = statistics.rarest(query.terms, MAX_TERMS)
            scores[~is_recalled] = matches.scores(rarest, statistics, self.scope.fields)
        return scores


def _worth_ranking(
    rows: TokenRows, phrasing: Phrasing, lexical: NDArray[np.float32], statistics: Statistics, request: Request
) -> NDArray[np.bool_]:
    """Return which rows that the index lacks are worth ranking: the best by words and by meaning, of enough owners."""
    if len(rows) <= MAX_TAIL_CANDIDATES:
        return np.ones(len(rows), dtype=np.bool_)
    late, _, _ = phrasing.shares(rows, statistics)
    keep = np.zeros(len(rows), dtype=np.bool_)
    for values in (lexical, late + cosines(rows, phrasing.query.vectors)):
        order = np.argsort(-values, kind="stable")
        keep[order[:MAX_TAIL_CANDIDATES]] = True
        keep[order[first_places(rows.owners[order], request.per_owner, request.limit)]] = True
    return keep


def _bound(
    rows: TokenRows, lexical: NDArray[np.float32], query: PreparedQuery, recalled: dict[str, Scored], limit: int
) -> NDArray[np.bool_]:
    """Cut what each method found to its best of index and rows together, in place; return which rows are among them."""
    is_among = np.zeros(len(rows), dtype=np.bool_)
    for name, part in recalled.items():
        values = lexical if name == LEXICAL else cosines(rows, query.vectors)
        scores = np.concatenate((part.scores, values))
        keep = np.zeros(len(scores), dtype=np.bool_)
        keep[np.lexsort((np.concatenate((part.numbers, rows.numbers)), -scores))[:limit]] = True
        inside, of_rows = np.split(keep, [len(part.numbers)])
        recalled[name] = Scored(part.numbers[inside], part.scores[inside])
        is_among |= of_rows & (values > 0) if name == LEXICAL else of_rows
    return is_among


def all_of(parts: Sequence[Scored]) -> Scored:
    """Return scored passages one after the other."""
    return Scored(np.concatenate([part.numbers for part in parts]), np.concatenate([part.scores for part in parts]))


def first_places(owners: NDArray[np.int64], count: int, most: int) -> NDArray[np.intp]:
    """Return the places, ascending, of the first `count` occurrences of each of the first `most` owners."""
    counts: Counter[int] = Counter()
    positions = []
    for position, owner in enumerate(owners.tolist()):
        if counts[owner] < count and (counts[owner] or len(counts) <= most):
            counts[owner] += 1
            positions.append(position)
    return np.array(positions, dtype=np.intp)
