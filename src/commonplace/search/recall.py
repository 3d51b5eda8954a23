"""Recall: find the passages of a store that a search ranks, by the index beside the store.

The index lags behind the store and holds nothing of the past. What it lacks is read from the store, in the snapshot
that the search sees, and takes part as if the index held it. A database that keeps a store on a server answers in place
of the index, see `recall_postgres`.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import EmbedderMismatchError, IndexFaultError
from commonplace.index.contract import DenseIndex, LexicalIndex, Scope, Scored
from commonplace.index.generations import Index
from commonplace.index.lexical import MAX_TERMS
from commonplace.models.cache import AgingCache, Bounds
from commonplace.ranking.arrays import distinct, union, within, without
from commonplace.ranking.bm25 import Statistics, TermRows, pack
from commonplace.search.request import MAX_STAGE1_LIMIT, PreparedQuery, Request
from commonplace.search.signals import (
    DENSE,
    LEXICAL,
    Phrasing,
    Spaces,
    TokenRows,
    concatenate,
    cosines,
    token_rows,
)
from commonplace.store.store import Store
from commonplace.text.tokens import fields_of, passage_language
from commonplace.types import EMBEDDED_KIND_OF, Embedding, Head, IndexEntry, TokenEntry

StageOf = Callable[[str], AbstractContextManager[list[int]]]
"""Times a stage of a name; in the block, the number of candidates that it leaves is appended to the list given."""

OWNERS_CACHE = Bounds(max_entries=16, max_bytes=8 << 20, ttl_s=5 * 60)
ENTRY_BYTES = 2_000
"""About what a cache's entry has besides the arrays of its value: its key, a request, and Python's own objects."""
MAX_NEAR, MAX_TAIL_READ = 20, 200
"""Passages of the index and of the tail that are read to correct a misspelt word, at most."""
MAX_TAIL_CANDIDATES = 200
"""A longer tail is cut to this many of its best by BM25, and by dense and late score."""
ROUNDS, GROWTH = 4, 4
"""A stage that one long text fills is repeated without it: at most so often, and each time for so many times more."""
MAX_ANALYSED = 20_000
"""Analysed passages that are kept beyond those of the search, about 10 MB; then the cache is emptied."""
_READ_AT_ONCE: Final = 500
_NOTHING: Final = Scored(np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search ranks.

    Attributes:
        rows: the candidates and, of a `two-stage` request, the passages next to them in a session.
        lexical: BM25 of each row, for each phrasing; float32, shape (n,).
        statistics: of the terms of each phrasing, in all passages of the namespace.
        beside: which passages are next to each other in a session.
    """

    rows: TokenRows
    lexical: Sequence[NDArray[np.float32]]
    statistics: Sequence[Statistics]
    beside: dict[int, set[int]]


class Parts(Protocol):
    """The parts of an index, which hold every change of a namespace up to `head`: a `Generation`, or a database."""

    @property
    def lexical(self) -> LexicalIndex: ...
    @property
    def dense(self) -> DenseIndex: ...
    def head(self, namespace: str, /) -> Head: ...


class TokenReader(Protocol):
    """Reads token ids and vectors of candidates: the store, or a database that has them with their terms."""

    def tokens(self, namespace: str, numbers: Sequence[int], /) -> Mapping[int, TokenEntry]: ...
    def tokens_beside(
        self, namespace: str, numbers: Sequence[int], /
    ) -> tuple[Mapping[int, TokenEntry], Sequence[tuple[int, int]]]: ...


@dataclass(frozen=True, slots=True)
class Tail:
    """What the index lacks of one namespace.

    Attributes:
        base, upto: the rows are the passages written in the changes (base, upto] of the namespace.
        token: of the change `upto`; a store with another one there has another history.
        rows: those of them that still exist, by number ascending.
        dead: numbers of the passages deleted in (base, upto], ascending; int64, shape (n,).
    """

    base: int
    upto: int
    token: str
    rows: TokenRows
    dead: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Analysed:
    """Term counts and languages of passages, by number; a store with another token at `change` has another history."""

    change: int
    token: str
    known: dict[int, tuple[bytes, str]] = field(default_factory=dict)


class DeltaReader:
    """Reads and keeps what the index lacks: the delta since its last update. Safe for threads."""

    def __init__(self, store: Store, spaces: Spaces) -> None:
        self._store = store
        self._spaces = spaces
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        self._analysed: dict[str, _Analysed] = {}

    def tail(self, namespace: str, base: int) -> Tail:
        """Return what was written and deleted after `base`; within a snapshot of the store, what that holds."""
        upto, token = self._store.head(namespace)
        with self._lock:
            known = self._tails.get(namespace)
        if (
            known is None
            or known.base != base
            or known.upto > upto
            or known.token != self._store.token(namespace, known.upto)
        ):
            nothing = token_rows([], self._spaces)
            known = Tail(base, base, self._store.token(namespace, base), nothing, np.empty(0, dtype=np.int64))
        if known.upto == upto:
            return known
        gone = np.array(self._store.deleted_since(namespace, known.upto, upto), dtype=np.int64)
        rows = concatenate(known.rows, token_rows(self._store.tail(namespace, known.upto), self._spaces))
        tail = Tail(base, upto, token, rows.select(~within(rows.numbers, gone)), union(known.dead, gone))
        with self._lock:
            self._tails[namespace] = tail
        return tail

    def analysed(self, namespace: str, rows: TokenRows) -> list[tuple[bytes, str]]:
        """Return the term counts and the language of each row, b"" and "" for one that is gone.

        They are kept: to analyse passages costs most of a search that the index does not serve.
        """
        with self._lock:
            held, numbers = self._analysed.get(namespace), rows.numbers.tolist()
            is_too_much = held is not None and len(held.known) > MAX_ANALYSED + len(numbers)
            if held is None or is_too_much or self._store.token(namespace, held.change) != held.token:
                held = self._analysed[namespace] = _Analysed(*self._store.head(namespace))
            missing = [number for number in numbers if number not in held.known]
            for begin in range(0, len(missing), _READ_AT_ONCE):
                for entry in self._store.entries(namespace, missing[begin : begin + _READ_AT_ONCE]).values():
                    language = passage_language(entry)
                    held.known[entry.number] = pack(fields_of(entry, language)), language
            return [held.known.get(number, (b"", "")) for number in numbers]


class Recall:
    """Finds the passages of a store that a search ranks, by the index of this machine. Safe for threads."""

    finds_kinds = False
    """Whether passages that are found by meaning can be told apart by kind; those found by words always can."""

    def __init__(self, store: Store, index: Index | None, stamp: Embedding) -> None:
        self._store = store
        self._index = index
        self._stamp = stamp
        self._spaces = Spaces.of(stamp)
        self._delta = DeltaReader(store, self._spaces)
        self._owners: AgingCache[NDArray[np.int64]] = AgingCache(OWNERS_CACHE)

    @contextmanager
    def reading(self, request: Request) -> Iterator[RecallState]:
        """Open the state that a request sees; until the block ends, the store is read in this state too.

        Raises:
            EmbedderMismatchError: the store's vectors are another embedder's.
            IndexFaultError: an index is damaged or not of this store's history.
        """
        namespace, wanted = request.namespace, request.wanted
        # First the generation, then the state: so the state holds all that the generation does.
        with (
            self._parts(namespace) as (generation, reader),
            self._store.snapshot(namespace, generation.head(namespace).change),
        ):
            made_by, held = self._store.embedding(), generation.head(namespace)
            if made_by is not None and made_by != self._stamp:
                message = f"the store's vectors are made by {made_by}, not by {self._stamp}"
                raise EmbedderMismatchError(message, remedy="open it again")
            if self._store.token(namespace, held.change) != held.token:
                raise IndexFaultError("belongs to another history of its store")
            tail = self._delta.tail(namespace, held.change)
            scope, rows = self._scope(request, tail), tail.rows
            if wanted.as_of is not None or wanted.valid_at is not None:
                past = token_rows(self._store.past(namespace, wanted.as_of, wanted.valid_at), self._spaces)
                rows = concatenate(rows, past)
                rows = rows if scope.owners is None else rows.select(within(rows.owners, scope.owners))
            yield self._state(self._store, self._delta, self._spaces, generation, reader, tail, rows, scope)

    def _state(self, *given: Any) -> RecallState:
        return RecallState(*given)

    @contextmanager
    def _parts(self, namespace: str) -> Iterator[tuple[Parts, TokenReader]]:  # noqa: ARG002 - a database reads one alone
        """Open what finds passages, and what reads their tokens."""
        assert self._index is not None
        with self._index.reading() as generation:
            yield generation, self._store

    def _scope(self, request: Request, tail: Tail) -> Scope:
        """Return what a request may find: some kinds or owners, or all; owners only where they must be known.

        There may be very many of them.
        """
        namespace, wanted, kinds, owners = request.namespace, request.wanted, request.wanted.kinds, None
        is_of_owners = not wanted.is_empty
        if wanted.is_of_kinds:
            counts = self._store.counts(namespace)
            is_all = sum(counts.get(EMBEDDED_KIND_OF[kind], 0) for kind in set(kinds)) == counts["owners"]
            is_of_owners = not (is_all or self.finds_kinds or request.method == "bm25")
            kinds = () if is_all else kinds
        if is_of_owners:
            key = (namespace, wanted, tail.token)
            owners, kinds = self._owners.get(key), ()
            if owners is None:
                owners = np.array(self._store.matching_owners(namespace, wanted), dtype=np.int64)
                self._owners.put(key, owners, owners.nbytes + ENTRY_BYTES)
        return Scope(namespace, owners, tail.dead, fields=request.fields, kinds=kinds)


def recall_of(store: Store, index: Index, stamp: Embedding) -> Recall:
    """Return what finds the passages of a store: the database that keeps it on a server, else the index beside it."""
    if store.postings is None:
        return Recall(store, index, stamp)
    from commonplace.search.recall_postgres import DatabaseRecall

    return DatabaseRecall(store, store.postings, stamp)


def parts_of(store: Store, index: Index) -> AbstractContextManager[Parts]:
    """Open what finds the passages of a store, in all its namespaces."""
    stamp = store.embedding()
    if store.postings is None or stamp is None:
        return index.reading()
    from commonplace.search.recall_postgres import reading_parts

    return reading_parts(store, store.postings, stamp)


@dataclass
class RecallState:
    """One snapshot of a namespace, as one request sees it.

    It consists of the index and of the rows that the index lacks: the tail, or what was live or true at a time.
    """

    _store: Store
    _delta: DeltaReader
    _spaces: Spaces
    _generation: Parts
    _reader: TokenReader
    _tail: Tail
    _rows: TokenRows
    _scope: Scope

    @property
    def state(self) -> tuple[str, ...]:
        """A key of the snapshot: equal keys give equal results."""
        return self._generation.head(self._scope.namespace).token, self._tail.token

    @property
    def owners(self) -> NDArray[np.int64] | None:
        """The owners that pass the request's filter, ascending; None where the filter is empty, or their kind tells."""
        return self._scope.owners

    def passing(self, rows: TokenRows) -> NDArray[np.bool_]:
        """Return which rows pass the request's filter, bool, shape (n,)."""
        scope = self._scope
        if scope.owners is not None:
            return within(rows.owners, scope.owners)
        return rows.of_kinds(scope.kinds) if scope.kinds else np.ones(len(rows), np.bool_)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages besides English in which passages are stemmed, sorted."""
        namespace, unindexed = self._scope.namespace, (self._tail.rows, self._rows)
        found = {language for rows in unindexed if len(rows) for _, language in self._delta.analysed(namespace, rows)}
        return tuple(sorted(self._generation.lexical.languages(namespace) | (found - {""})))

    def search(
        self, request: Request, phrasings: Sequence[Phrasing], besides: NDArray[np.int64], stage: StageOf
    ) -> Recalled:
        """Return the best passages by words and by meaning for any of the phrasings, with all that ranks them.

        Args:
            request: says by which methods, how many of each, and of how many owners there must be some.
            besides: passages that are candidates whatever they say, ascending.
        """
        with stage("tail") as count:
            in_scope = self.passing(self._rows)
            rows = self._rows.select(in_scope)
            unindexed = [self._unindexed(phrasing.query, in_scope) for phrasing in phrasings]
            kept = within(rows.numbers, besides)
            if not request.is_bounded:
                for phrasing, (lexical, statistics) in zip(phrasings, unindexed, strict=True):
                    kept |= _worth_ranking(rows, phrasing, lexical, statistics, request)
            count.append(int(kept.sum()))
        found = [
            self._nominated(request, phrasing.query, statistics, stage)
            for phrasing, (_, statistics) in zip(phrasings, unindexed, strict=True)
        ]
        if request.is_bounded and len(rows):
            for phrasing, (lexical, _), parts in zip(phrasings, unindexed, found, strict=True):
                kept |= _bound(rows, lexical, phrasing.query, parts, request.stage1_limit)
        with stage("signals"):
            parts_of_all = (part.numbers for parts in found for part in parts.values())
            recalled = distinct(np.concatenate([without(besides, self._rows.numbers), *parts_of_all]))
            numbers = union(recalled, rows.numbers[kept])
            beside: defaultdict[int, set[int]] = defaultdict(set)
            namespace, asked = self._scope.namespace, set(numbers.tolist())
            if request.method == "two-stage":
                entries, pairs = self._reader.tokens_beside(namespace, numbers.tolist())
                for number, neighbour in pairs:
                    beside[number].add(neighbour)
                    beside[neighbour].add(number)
                near = {neighbour for number, neighbour in pairs if number in asked}
                numbers = union(numbers, np.array(list(near), dtype=np.int64))
            else:
                entries = self._reader.tokens(namespace, numbers.tolist())
            indexed = without(numbers, rows.numbers).tolist()
            held = token_rows([entries[number] for number in indexed if number in entries], self._spaces)
            here = within(rows.numbers, numbers)
            scores = [
                np.concatenate((self._scores(phrasing.query, held.numbers, parts, statistics), lexical[here]))
                for phrasing, (lexical, statistics), parts in zip(phrasings, unindexed, found, strict=True)
            ]
            order = np.argsort(np.concatenate((held.numbers, rows.numbers[here])))
            return Recalled(
                concatenate(held, rows.select(here)),
                [each[order] for each in scores],
                [statistics for _, statistics in unindexed],
                beside,
            )

    def terms(self, numbers: NDArray[np.int64]) -> Sequence[bytes]:
        """Return the term counts of passages that `search` gave, in their order; see `commonplace.ranking.bm25`."""
        found = list(self._generation.lexical.rows(numbers))
        for place in np.flatnonzero(within(numbers, self._rows.numbers)).tolist():
            found[place] = self._terms[int(np.searchsorted(self._rows.numbers, numbers[place]))]
        return found

    def holds(self, terms: Sequence[str]) -> bool:
        """Return whether any passage holds one of the terms."""
        return len(self._generation.lexical.search(terms, self._scope, 1).numbers) > 0 or any(
            not set(terms).isdisjoint(chain.from_iterable(fields_of(entry).values())) for entry in self._newest
        )

    def similar(self, terms: Sequence[str], distance: int) -> Sequence[IndexEntry]:
        """Return some passages that may hold a term at most so many edits away from one of these."""
        lexical, scope = self._generation.lexical, self._scope
        found = {number for term in terms for number in lexical.similar(term, distance, scope, MAX_NEAR)}
        return [*self._store.entries(scope.namespace, sorted(found)).values(), *self._newest]

    @cached_property
    def _newest(self) -> Sequence[IndexEntry]:
        """The last passages that the index lacks."""
        numbers = self._rows.numbers[-MAX_TAIL_READ:].tolist()
        return list(self._store.entries(self._scope.namespace, numbers).values())

    @cached_property
    def _terms(self) -> Sequence[bytes]:
        """The term counts of what the index lacks."""
        known = self._delta.analysed(self._scope.namespace, self._rows) if len(self._rows) else []
        return [terms for terms, _ in known]

    def _unindexed(self, query: PreparedQuery, in_scope: NDArray[np.bool_]) -> tuple[NDArray[np.float32], Statistics]:
        """Return BM25 of the rows in scope that the index lacks, and the statistics of the index with all it lacks."""
        scope = self._scope
        asked = dict.fromkeys((*query.terms, *chain.from_iterable(chain.from_iterable(query.spelled))))
        matches = TermRows(self._terms).find(asked)
        statistics = self._generation.lexical.statistics(list(asked), scope) + matches.statistics
        scores = matches.scores(statistics.rarest(query.terms, MAX_TERMS), statistics, scope.fields)
        return scores[in_scope], statistics

    def _nominated(
        self, request: Request, query: PreparedQuery, statistics: Statistics, stage: StageOf
    ) -> dict[str, Scored]:
        """Return what the index has, by each method."""
        lexical, dense = self._generation.lexical, self._generation.dense
        ways: dict[str, list[Callable[[Scope, int], Scored]]] = {}
        if request.method != "semantic":
            ways[LEXICAL] = [partial(lexical.search, query.terms, statistics=statistics)]
        if request.method != "bm25":
            ways[DENSE] = [
                partial(dense.search, vector, vectors=self._store.vectors, space=space)
                for vector, space in self._vectors(query)
            ]
        found = {}
        for name, searches in ways.items():
            with stage(name) as count:
                found[name] = all_of([_NOTHING, *(self._of_owners(search, request) for search in searches)])
                count.append(len(found[name].numbers))
        return found

    def _vectors(self, query: PreparedQuery) -> list[tuple[NDArray[np.float32], str]]:
        """Return the vectors of a query, each with the name of its space."""
        stamps = enumerate(self._spaces.stamps)
        return [(query.vectors[code, : each.dimensions], str(each)) for code, each in stamps if query.embedders[code]]

    def _of_owners(self, search: Callable[[Scope, int], Scored], request: Request) -> Scored:
        """Return the best passages of one part of the index, of as many owners as there are to be hits.

        The first round is the stage as it was asked for. Only where its passages are of too few owners, further rounds
        add the best passages of others. Where the request bounds the stage, these take the place of what one owner has
        most of.
        """
        kept: list[Scored] = []
        of_kept: list[NDArray[np.int64]] = []
        owners = np.empty(0, dtype=np.int64)
        scope, size = self._scope, request.stage1_limit
        for _ in range(ROUNDS):
            found = search(scope, size)
            if not kept and len(found.numbers) < size:
                return found
            belonging = self._generation.dense.owners(found.numbers)
            places = first_places(belonging, request.per_owner, len(belonging)) if kept else np.arange(len(belonging))
            kept.append(Scored(found.numbers[places], found.scores[places]))
            of_kept.append(belonging[places])
            fresh = distinct(belonging)
            owners = union(owners, fresh)
            if len(found.numbers) < size or len(owners) >= request.limit or not len(fresh):
                break
            scope = replace(scope, passed_over=owners)
            size = min(size * GROWTH, MAX_STAGE1_LIMIT)
        found = all_of(kept)
        if not request.is_bounded or len(found.numbers) <= request.stage1_limit:
            return found
        first = first_places(np.concatenate(of_kept), 1, request.limit)
        others = without(np.arange(len(found.numbers)), np.sort(first))
        places = np.sort(np.concatenate((first, others))[: request.stage1_limit])
        return Scored(found.numbers[places], found.scores[places])

    def _scores(
        self, query: PreparedQuery, numbers: NDArray[np.int64], found: Mapping[str, Scored], statistics: Statistics
    ) -> NDArray[np.float32]:
        """Return BM25 of passages of the index, float32, shape (n,); that of those found by words is known."""
        scores, known = np.zeros(len(numbers), dtype=np.float32), found.get(LEXICAL, _NOTHING)
        order = np.argsort(known.numbers)
        is_known = within(numbers, known.numbers[order])
        scores[is_known] = known.scores[order][np.searchsorted(known.numbers[order], numbers[is_known])]
        if query.terms and not is_known.all():
            matches = TermRows(self._generation.lexical.rows(numbers[~is_known])).find(query.terms)
            asked = statistics.rarest(query.terms, MAX_TERMS)
            scores[~is_known] = matches.scores(asked, statistics, self._scope.fields)
        return scores


def _worth_ranking(
    rows: TokenRows, phrasing: Phrasing, lexical: NDArray[np.float32], statistics: Statistics, request: Request
) -> NDArray[np.bool_]:
    """Return which rows that the index lacks are worth ranking: the best by words and by meaning, of enough owners."""
    if len(rows) <= MAX_TAIL_CANDIDATES:
        return np.ones(len(rows), dtype=np.bool_)
    late = phrasing.shares(rows, statistics).late
    keep = np.zeros(len(rows), dtype=np.bool_)
    for values in (lexical, late + cosines(rows, phrasing.query.vectors)):
        order = np.argsort(-values, kind="stable")
        keep[order[:MAX_TAIL_CANDIDATES]] = True
        keep[order[first_places(rows.owners[order], request.per_owner, request.limit)]] = True
    return keep


def _bound(
    rows: TokenRows, lexical: NDArray[np.float32], query: PreparedQuery, found: dict[str, Scored], limit: int
) -> NDArray[np.bool_]:
    """Let what each method found keep its best of index and rows together; return which rows are among them."""
    among = np.zeros(len(rows), dtype=np.bool_)
    for name, part in found.items():
        values = lexical if name == LEXICAL else cosines(rows, query.vectors)
        scores = np.concatenate((part.scores, values))
        kept = np.zeros(len(scores), dtype=np.bool_)
        kept[np.lexsort((np.concatenate((part.numbers, rows.numbers)), -scores))[:limit]] = True
        inside, own = np.split(kept, [len(part.numbers)])
        found[name] = Scored(part.numbers[inside], part.scores[inside])
        among |= own & (values > 0) if name == LEXICAL else own
    return among


def all_of(parts: Sequence[Scored]) -> Scored:
    """Return scored passages one after the other."""
    return Scored(np.concatenate([part.numbers for part in parts]), np.concatenate([part.scores for part in parts]))


def first_places(owners: NDArray[np.int64], count: int, most: int) -> NDArray[np.intp]:
    """Return the places, ascending, of the first `count` occurrences of each of the first `most` owners."""
    seen: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners.tolist()):
        if seen[owner] < count and (seen[owner] or len(seen) <= most):
            seen[owner] += 1
            places.append(place)
    return np.array(places, dtype=np.intp)
