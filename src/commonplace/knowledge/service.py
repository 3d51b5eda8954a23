"""The knowledge service: index what agents know, find it, keep their contexts.

What cannot be used is skipped and told as a notice: a query has an answer as long as the store can be read.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import replace
from commonplace.errors import CommonplaceError, ProviderError, UsageError
from commonplace.knowledge.agents import Agent, Given, read_agent
from commonplace.knowledge.config import KnowledgeRuntime, MemoryConfig, reranked
from commonplace.knowledge.index import LEXICAL, is_stale, replace_knowledge
from commonplace.knowledge.maps import AgentContext, checked_name, context_of, record_of
from commonplace.knowledge.results import (
    AgentStatus,
    KnowledgeHit,
    KnowledgeReport,
    KnowledgeStatus,
    RelevantKnowledge,
    Retrieval,
)
from commonplace.models.cache import AgingCache, Bounds
from commonplace.search.request import MAX_LIMIT, MAX_QUERY_CHARACTERS, Request
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
    similarity: float | None
    confidence: Confidence | None = None
    passage: str = ""


class KnowledgeService:
    """What the agents of one namespace know. Thread-safe.

    Every call raises a `StoreError` if the store cannot be read or written, and a `UsageError` for a value of the
    wrong kind or out of its range; then nothing was changed.
    """

    def __init__(self, runtime: KnowledgeRuntime) -> None:
        self._runtime = runtime
        self._rows: AgingCache[tuple[list[int], NDArray[np.int8]]] = AgingCache(VECTORS_CACHE)

    @property
    def config(self) -> MemoryConfig:
        """How it is configured."""
        return self._runtime.config

    def create_agent(self, given: Given) -> Agent:
        """Index the knowledge in an agent's file or mapping, and return the agent.

        What is indexed already stays, also with its vectors where these are of the embedder of now. Where something
        cannot be embedded, the agent is there all the same, with the knowledge that it had; its report says so.

        Args:
            given: a YAML or JSON file, such a text, or a mapping: `name`, and any of `model`, `system`, `prompt` and
                `knowledge`, a list of maps. Without `knowledge` what is indexed stays as it is.
        """
        document, failure = read_agent(given), ""
        name = document["name"]
        if document.get("knowledge") is not None:
            try:
                return Agent.of(document, self.index_knowledge(name, document["knowledge"]), self)
            except ProviderError as error:
                failure = str(error)
        store, namespace = self._runtime.store, self._runtime.namespace
        report = KnowledgeReport(
            name,
            unchanged=len(store.knowledge(namespace).items(name)),
            is_replaced=not failure,
            degraded=bool(failure),
            notices=(failure,) if failure else (),
            change=store.change(namespace),
        )
        return Agent.of(document, report, self)

    def index_knowledge(self, agent_name: str, knowledge: Iterable[Mapping[str, Any]]) -> KnowledgeReport:
        """Replace an agent's knowledge with these maps.

        All is checked and embedded first; then everything changes in one transaction. A map that was there already
        keeps its id; one that is not given any more is softly deleted. Secrets are replaced by placeholders.

        Raises:
            ProviderError: an embedder failed. Nothing was changed.
        """
        report = replace_knowledge(self._runtime, checked_name(agent_name), knowledge)
        self.forget_caches()
        return report

    def retrieve_relevant_knowledge(self, agent_name: str, query: str, limit: int | None = None) -> RelevantKnowledge:
        """Return the texts of an agent's knowledge that answer a query, best first.

        The list has ids, scores, and whether a part of the search could not be used; `retrieve` returns more.

        Args:
            limit: how many at most, up to 1000; None, or less than 1, is the configuration's `rerank_top_k`.
        """
        return self.retrieve(agent_name, query, limit).lines

    def retrieve(
        self, agent_name: str, query: str, limit: int | None = None, *, min_score: float = 0.0, rerank: bool = True
    ) -> Retrieval:
        """Return what an agent knows about a query, with scores and maps.

        Args:
            limit: as for `retrieve_relevant_knowledge`.
            min_score: 0–1; what the first stage scores lower is left out. From 0.70 on a text most likely answers.
            rerank: False leaves the first stage's order, and asks no model.
        """
        begun = time.perf_counter()
        if not isinstance(query, str):
            raise UsageError(f"the query is {query!r:.80}", remedy="give a text")
        if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0.0 <= min_score <= 1.0:
            raise UsageError(f"min_score is {min_score!r:.80}", remedy="give a number from 0 to 1")
        agent, limit, runtime = checked_name(agent_name), self._limit(limit), self._runtime
        if not query.strip():
            return Retrieval(agent, query, notices=("the query is empty",))
        searched, count = query[:MAX_QUERY_CHARACTERS], min(MAX_LIMIT, limit * runtime.config.retrieval_factor)
        notices = [f"searched by words alone: {runtime.no_vectors}"] if runtime.no_vectors else []
        ranked = self._by_own_vectors(agent, searched, count, notices)
        degraded = bool(notices)
        if ranked is None:
            result = runtime.search(self._request(agent, searched, count))
            degraded, notices = degraded or result.degraded, [*notices, *result.notices]
            numbers = result.trace.numbers
            passages = runtime.store.passages(runtime.namespace, list(numbers.values()))
            ranked = [
                # What has no vector, or is compared with none, has exactly 0.
                _Ranked(passage.owner_number, hit.score, hit.signals.get(DENSE) or None, hit.confidence, hit.text)
                for hit in result.hits
                if (passage := passages.get(numbers.get(hit.id, -1))) is not None
            ]
        items = runtime.store.knowledge(runtime.namespace).of_numbers([each.number for each in ranked])
        # What was found may have been deleted since.
        candidates = [
            _hit(items[each.number], each, searched)
            for each in ranked
            if each.score >= min_score and each.number in items and items[each.number].deleted_at is None
        ]
        if not candidates:
            notices += self.notices_of(agent)
        hits, reranked_by = candidates, ""
        if rerank and runtime.reranker is not None and len(candidates) > limit:
            try:
                order = reranked(runtime.reranker(), query, [hit.content for hit in candidates], limit)
                hits, reranked_by = [replace(candidates[at], score=score) for at, score in order], runtime.reranker_name
            except CommonplaceError as error:
                _log.info("what was retrieved was not re-ranked: %s", error)
                degraded = True
                notices.append(
                    f"in the order of the first stage, for {runtime.reranker_name} did not re-rank it: {error}"
                )
        return Retrieval(
            agent=agent,
            query=query,
            hits=tuple(hits[:limit]),
            candidates=len(candidates),
            reranked_by=reranked_by,
            degraded=degraded,
            notices=tuple(notices),
            latency_ms=round((time.perf_counter() - begun) * 1000),
        )

    def delete_agent_knowledge(self, agent_name: str) -> int:
        """Delete an agent's knowledge softly, and return the number of maps.

        It is not found any more. `forget` and `gc` delete it for good.
        """
        agent, runtime = checked_name(agent_name), self._runtime
        with runtime.store.change_memories(runtime.namespace) as change:
            gone = change.knowledge.expire([item.number for item in change.knowledge.items(agent)], runtime.now())
        self.forget_caches()
        runtime.after(gone)
        return gone

    def notices_of(self, agent_name: str) -> tuple[str, ...]:
        """Return a notice if the agent has no knowledge, with the agents that have."""
        agent = checked_name(agent_name)
        agents = self._runtime.store.knowledge(self._runtime.namespace).agents()
        known = [each.agent for each in agents if each.items]
        if agent in known:
            return ()
        more = ", …" if len(known) > _AGENTS_NAMED else ""
        others = f"; those that have: {', '.join(map(repr, known[:_AGENTS_NAMED]))}{more}" if known else ""
        return (f"no agent {agent!r} has knowledge here{others}",)

    def set_context(self, context: AgentContext | Mapping[str, Any]) -> AgentContext:
        """Store an agent's context and return it."""
        record = record_of(AgentContext.of(context), self._runtime.now())
        with self._runtime.store.change_memories(self._runtime.namespace) as change:
            change.knowledge.put_context(record)
        return context_of(record)

    def get_context(self, name: str) -> AgentContext | None:
        """Return an agent's context, or None."""
        found = self._runtime.store.knowledge(self._runtime.namespace).context(checked_name(name))
        return None if found is None else context_of(found)

    def status(self) -> KnowledgeStatus:
        """Return the agents with knowledge here, the embedder and the re-ranker."""
        runtime = self._runtime
        embedder, knowledge = runtime.embedder, runtime.store.knowledge(runtime.namespace)
        agents = tuple(
            AgentStatus(
                each.agent,
                each.items,
                each.deleted,
                stale=sum(is_stale(item, embedder, runtime.vectors) for item in knowledge.items(each.agent)),
            )
            for each in knowledge.agents()
        )
        notices = [runtime.no_vectors] if runtime.no_vectors else [] if runtime.config.vector_enabled else [LEXICAL]
        reranker = ""
        if runtime.reranker is not None:
            try:
                runtime.reranker()
                reranker = runtime.reranker_name
            except CommonplaceError as error:
                notices.append(f"{runtime.reranker_name} cannot re-rank: {error}")
        return KnowledgeStatus(runtime.namespace, runtime.place, agents, embedder, reranker, tuple(notices))

    def forget_caches(self) -> None:
        """Empty this process's caches."""
        self._rows.clear()

    def _limit(self, limit: int | None) -> int:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit > MAX_LIMIT):
            raise UsageError(f"limit is {limit!r:.80}", remedy=f"give a whole number up to {MAX_LIMIT:,}")
        return limit if limit is not None and limit > 0 else self.config.rerank_top_k

    def _by_own_vectors(self, agent: str, query: str, count: int, notices: list[str]) -> list[_Ranked] | None:
        """Return the best items of an agent by cosine, if the service has an embedder of its own.

        None if it has none, or if it cannot be used, which a notice says.
        """
        vectors = self._runtime.vectors
        if vectors is None or not self._runtime.embedder:
            return None
        try:
            asked = vectors.of([query])[0]
        except CommonplaceError as error:
            _log.info("a query was not embedded: %s", error)
            notices.append(f"searched with the store's own vectors and words: {error}")
            return None
        store, namespace = self._runtime.store, self._runtime.namespace
        key = (agent, vectors.dimensions, store.head(namespace).token)
        rows = self._rows.get(key)
        if rows is None:
            items = store.knowledge(namespace).items(agent)
            if any(is_stale(item, vectors.name, vectors) for item in items):
                notices.append(
                    f"searched with the store's own vectors and words, for not all of {agent}'s knowledge was embedded"
                    f" by {vectors.name}; index it again"
                )
                return None
            data = b"".join(item.record.vector for item in items)
            rows = [item.number for item in items], np.frombuffer(data, np.int8).reshape(-1, vectors.dimensions)
            self._rows.put(key, rows, len(data) + 64 * len(items))
        numbers, stored = rows
        similar = cosines(asked, stored)
        # The rows are in the order of their numbers, which a stable sort keeps among equals.
        best = np.argsort(-similar.clip(0.0), kind="stable")[:count].tolist()
        return [_Ranked(numbers[at], max(0.0, float(similar[at])), float(similar[at])) for at in best]

    def _request(self, agent: str, query: str, count: int) -> Request:
        is_lexical = not self.config.vector_enabled or bool(self._runtime.no_vectors)
        return Request(
            query=query,
            namespace=self._runtime.namespace,
            limit=count,
            method="bm25" if is_lexical else "two-stage",
            wanted=Filter(kinds=("knowledge",), agents=(agent,)),
            min_score=0.0,
            stage1_limit=max(_MIN_CANDIDATES, count),
            by_words=is_lexical,
        )


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
