"""Retrieve an agent's knowledge for a query: vectors and words first, then a re-ranker.

What cannot be used is skipped and reported as a notice: a query has an answer as long as the store can be read.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import CommonplaceError
from commonplace.knowledge.config import KnowledgeRuntime, Means, reranked
from commonplace.knowledge.index import embedder_of, is_stale
from commonplace.knowledge.results import KnowledgeHit, Retrieval
from commonplace.models.cache import AgingCache, Bounds
from commonplace.search.request import MAX_LIMIT, MAX_QUERY_CHARACTERS, Request
from commonplace.search.result import SearchResult
from commonplace.search.signals import DENSE
from commonplace.text.snippet import snippet
from commonplace.types import Confidence, Filter
from commonplace.types.knowledge import StoredKnowledge

_log = logging.getLogger(__name__)

VECTORS_CACHE: Final = Bounds(max_entries=16, max_bytes=64 << 20, ttl_s=5 * 60)
MAX_CONTENT_CHARACTERS: Final = 4_000
"""A longer text would drown the prompt that it is put into; a re-ranker reads no more of it either."""
_AGENTS_NAMED: Final = 10
_MIN_CANDIDATES: Final = 100
"""What each of the lexical and the dense recall of a search brings at least."""


class _Ranked(NamedTuple):
    number: int
    score: float
    similarity: float | None = None
    confidence: Confidence | None = None
    passage: str = ""


@dataclass(slots=True)
class _Found:
    """What a stage found, best first, and what is to be told."""

    ranked: list[_Ranked] = field(default_factory=list)
    is_degraded: bool = False
    notices: list[str] = field(default_factory=list)

    def degrade(self, notice: str) -> None:
        """Tell that something could not be used."""
        self.is_degraded = True
        self.notices.append(notice)


class Retriever:
    """Answers queries over one store. Safe for threads."""

    def __init__(self, ground: KnowledgeRuntime, means: Means) -> None:
        self._ground = ground
        self._means = means
        self._rows: AgingCache[tuple[list[int], NDArray[np.int8]]] = AgingCache(VECTORS_CACHE)

    def retrieve(self, agent: str, query: str, limit: int, *, min_score: float, rerank: bool) -> Retrieval:
        """Return the best items of an agent for a query; of a query without words nothing."""
        begun = time.perf_counter()
        if not query.strip():
            return Retrieval(agent, query, notices=("the query is empty",))
        searched = query[:MAX_QUERY_CHARACTERS]
        count = min(MAX_LIMIT, limit * self._means.config.retrieval_factor)
        found = self._first_stage(agent, searched, count)
        items = self._ground.store.knowledge(self._ground.namespace).of_numbers([each.number for each in found.ranked])
        # What was found may have been deleted since.
        candidates = [
            _hit(items[each.number], each, searched)
            for each in found.ranked
            if each.score >= min_score and each.number in items and items[each.number].deleted_at is None
        ]
        if not candidates:
            found.notices += self.notices_of(agent)
        hits, reranked_by = candidates, ""
        if rerank and self._means.reranker is not None and len(candidates) > limit:
            hits, reranked_by = self._second_stage(query, limit, candidates, found)
        return Retrieval(
            agent=agent,
            query=query,
            hits=tuple(hits[:limit]),
            candidates=len(candidates),
            reranked_by=reranked_by,
            degraded=found.is_degraded,
            notices=tuple(found.notices),
            latency_ms=round((time.perf_counter() - begun) * 1000),
        )

    def notices_of(self, agent: str) -> tuple[str, ...]:
        """Say so where an agent has no knowledge at all: its name may be misspelt."""
        known = [each.agent for each in self._ground.store.knowledge(self._ground.namespace).agents() if each.items]
        if agent in known:
            return ()
        more = ", …" if len(known) > _AGENTS_NAMED else ""
        others = f"; those that have: {', '.join(map(repr, known[:_AGENTS_NAMED]))}{more}" if known else ""
        return (f"no agent {agent!r} has knowledge here{others}",)

    def forget_caches(self) -> None:
        """Drop what is kept of vectors."""
        self._rows.clear()

    def _first_stage(self, agent: str, query: str, count: int) -> _Found:
        found = _Found()
        means = self._means
        if means.no_vectors:
            found.degrade(f"searched by words alone: {means.no_vectors}")
        if means.vectors is not None and embedder_of(self._ground, means):
            ranked = self._by_own_vectors(agent, query, count, found)
            if ranked is not None:
                found.ranked = ranked
                return found
        result = self._ground.search(self._request(agent, query, count))
        if result.degraded:
            found.is_degraded = True
        found.notices += result.notices
        found.ranked = self._numbers(result)
        return found

    def _by_own_vectors(self, agent: str, query: str, count: int, found: _Found) -> list[_Ranked] | None:
        """Return the best items of an agent by cosine; None where that cannot be had, which is told."""
        vectors = self._means.vectors
        assert vectors is not None
        try:
            asked = vectors.of([query])[0]
        except CommonplaceError as error:
            _log.info("a query was not embedded: %s", error)
            found.degrade(f"searched with the store's own vectors and words: {error}")
            return None
        rows = self._rows_of(agent)
        if rows is None:
            found.degrade(
                f"searched with the store's own vectors and words, for not all of {agent}'s knowledge was embedded by"
                f" {vectors.name}; index it again"
            )
            return None
        numbers, stored = rows
        found_cosines = cosines(asked, stored)
        # The rows are in the order of their numbers, which a stable sort keeps among equals.
        best = np.argsort(-found_cosines.clip(0.0), kind="stable")[:count].tolist()
        similar = [(numbers[place], float(found_cosines[place])) for place in best]
        return [_Ranked(number, max(0.0, cosine), cosine) for number, cosine in similar]

    def _rows_of(self, agent: str) -> tuple[list[int], NDArray[np.int8]] | None:
        """Return the numbers of an agent's items and their vectors, None where some are of another embedder."""
        store, vectors = self._ground.store, self._means.vectors
        assert vectors is not None
        key = (agent, vectors.dimensions, store.head(self._ground.namespace).token)
        rows = self._rows.get(key)
        if rows is None:
            items = store.knowledge(self._ground.namespace).items(agent)
            if any(is_stale(item, vectors.name, vectors) for item in items):
                return None
            data = b"".join(item.record.vector for item in items)
            rows = [item.number for item in items], np.frombuffer(data, np.int8).reshape(-1, vectors.dimensions)
            self._rows.put(key, rows, len(data) + 64 * len(items))
        return rows

    def _request(self, agent: str, query: str, count: int) -> Request:
        is_lexical = not self._means.config.vector_enabled or self._means.no_vectors
        return Request(
            query=query,
            namespace=self._ground.namespace,
            limit=count,
            method="bm25" if is_lexical else "two-stage",
            wanted=Filter(kinds=("knowledge",), agents=(agent,)),
            min_score=0.0,
            stage1_limit=max(_MIN_CANDIDATES, count),
            by_words=bool(is_lexical),
        )

    def _numbers(self, result: SearchResult) -> list[_Ranked]:
        """Return the numbers of the items that hits are of, with what is known of each hit."""
        numbers = result.trace.numbers
        passages = self._ground.store.passages(self._ground.namespace, list(numbers.values()))
        return [
            _Ranked(
                passages[numbers[hit.id]].owner_number,
                hit.score,
                # What has no vector, or is compared with none, has exactly 0.
                hit.signals.get(DENSE) or None,
                hit.confidence,
                hit.text,
            )
            for hit in result.hits
            if numbers.get(hit.id) in passages
        ]

    def _second_stage(
        self, query: str, limit: int, candidates: list[KnowledgeHit], found: _Found
    ) -> tuple[list[KnowledgeHit], str]:
        """Return the candidates in the re-ranker's order, where it can be had, and its name."""
        means = self._means
        assert means.reranker is not None
        try:
            order = reranked(means.reranker(), query, [hit.content for hit in candidates], limit)
        except CommonplaceError as error:
            _log.info("what was retrieved was not re-ranked: %s", error)
            found.degrade(f"in the order of the first stage, for {means.reranker_name} did not re-rank it: {error}")
            return candidates, ""
        return [replace(candidates[place], score=score) for place, score in order], means.reranker_name


def _hit(item: StoredKnowledge, found: _Ranked, query: str) -> KnowledgeHit:
    record, content = item.record, item.record.content
    if len(content) > MAX_CONTENT_CHARACTERS:
        passage = found.passage or snippet(content, query, limit=MAX_CONTENT_CHARACTERS, layout="code").text
        content = passage[:MAX_CONTENT_CHARACTERS]
    known = json.loads(record.metadata)
    return KnowledgeHit(item.owner.id, record.agent, content, found.score, found.similarity, known, found.confidence)


def cosines(query: NDArray[np.float32], rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the cosine of a vector with each row, float32, shape (n,); 0 for a row of zeros.

    Args:
        query: float32, shape (d,).
        rows: int8, shape (n, d), each with a scale of its own.
    """
    values = rows.astype(np.float32)
    lengths = np.linalg.norm(values, axis=1) * np.linalg.norm(query)
    found: NDArray[np.float32] = np.divide(values @ query, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.clip(found, -1, 1)
