"""The knowledge service: index, retrieve, keep an agent's context. Synchronous and thread-safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from commonplace.dataclasses import replace
from commonplace.errors import CommonplaceError, ProviderError, UsageError
from commonplace.knowledge.agents import Agent, Given, definition_of
from commonplace.knowledge.config import KnowledgeRuntime, Means, MemoryConfig
from commonplace.knowledge.index import LEXICAL, embedder_of, is_stale, replace_knowledge
from commonplace.knowledge.maps import AgentContext, checked_name, context_of, record_of
from commonplace.knowledge.results import (
    AgentStatus,
    KnowledgeReport,
    KnowledgeStatus,
    RelevantKnowledge,
    Retrieval,
)
from commonplace.knowledge.retrieve import Retriever
from commonplace.search.request import MAX_LIMIT


class KnowledgeService:
    """What the agents of one namespace know.

    Every call raises a `StoreError` where the store cannot be read or written, and a `UsageError` for a value of the
    wrong kind or out of its range; then nothing was changed.
    """

    def __init__(self, ground: KnowledgeRuntime, means: Means) -> None:
        self._ground = ground
        self._means = means
        self._retriever = Retriever(ground, means)

    @property
    def config(self) -> MemoryConfig:
        """How it is configured."""
        return self._means.config

    def create_agent(self, given: Given) -> Agent:
        """Index the knowledge in an agent's file or mapping, and return the agent.

        What is indexed already stays, also with its vectors where these are of the embedder of now. Where something
        cannot be embedded, the agent is there all the same, with the knowledge that it had; its report says so.

        Args:
            given: a YAML or JSON file, such a text, or a mapping: `name`, and any of `model`, `system`, `prompt` and
                `knowledge`, a list of maps. Without `knowledge` what is indexed stays as it is.
        """
        definition = definition_of(given)
        failure = ""
        if definition.knowledge is not None:
            try:
                return Agent(definition, self.index_knowledge(definition.name, definition.knowledge), self)
            except ProviderError as error:
                failure = str(error)
        report = KnowledgeReport(
            definition.name,
            unchanged=len(self._ground.store.knowledge(self._ground.namespace).items(definition.name)),
            is_replaced=not failure,
            degraded=bool(failure),
            notices=(failure,) if failure else (),
            change=self._ground.store.change(self._ground.namespace),
        )
        return Agent(definition, report, self)

    def index_knowledge(self, agent_name: str, knowledge: Iterable[Mapping[str, Any]]) -> KnowledgeReport:
        """Replace an agent's knowledge with these maps.

        All is checked and embedded first; then everything changes in one transaction. A map that was there already
        keeps its id; one that is not given any more is softly deleted. Secrets are replaced by placeholders.

        Raises:
            ProviderError: an embedder failed. Nothing was changed.
        """
        report = replace_knowledge(self._ground, self._means, checked_name(agent_name), knowledge)
        self._retriever.forget_caches()
        return report

    def retrieve_relevant_knowledge(self, agent_name: str, query: str, limit: int | None = None) -> RelevantKnowledge:
        """Return the texts of an agent's knowledge that answer a query, best first.

        The list knows ids, scores, and whether a part of the search could not be used; `retrieve` tells more.

        Args:
            limit: how many at most, up to 1000; None, or less than 1, is the configuration's `rerank_top_k`.
        """
        return self.retrieve(agent_name, query, limit).lines

    def retrieve(
        self,
        agent_name: str,
        query: str,
        limit: int | None = None,
        *,
        min_score: float = 0.0,
        rerank: bool = True,
    ) -> Retrieval:
        """Return what an agent knows about a query, with scores and maps.

        Args:
            limit: as for `retrieve_relevant_knowledge`.
            min_score: 0–1; what the first stage scores lower is left out. From 0.70 on a text most likely answers.
            rerank: False leaves the first stage's order, and asks no model.
        """
        if not isinstance(query, str):
            raise UsageError(f"the query is {query!r:.80}", remedy="give a text")
        if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0.0 <= min_score <= 1.0:
            raise UsageError(f"min_score is {min_score!r:.80}", remedy="give a number from 0 to 1")
        agent = checked_name(agent_name)
        return self._retriever.retrieve(agent, query, self._limit(limit), min_score=min_score, rerank=rerank)

    def delete_agent_knowledge(self, agent_name: str) -> int:
        """Delete an agent's knowledge softly, and return the number of maps.

        It is not found any more. `forget` and `gc` delete it for good.
        """
        agent = checked_name(agent_name)
        with self._ground.store.change_memories(self._ground.namespace) as change:
            gone = change.knowledge.expire([item.number for item in change.knowledge.items(agent)], self._ground.now())
        self._retriever.forget_caches()
        self._ground.after(gone)
        return gone

    def notices_of(self, agent_name: str) -> tuple[str, ...]:
        """Return a notice if the agent has no knowledge, with the agents that have."""
        return self._retriever.notices_of(checked_name(agent_name))

    def set_context(self, context: AgentContext | Mapping[str, Any]) -> AgentContext:
        """Store an agent's context and return it."""
        record = record_of(AgentContext.of(context), self._ground.now())
        with self._ground.store.change_memories(self._ground.namespace) as change:
            change.knowledge.put_context(record)
        return context_of(record)

    def get_context(self, name: str) -> AgentContext | None:
        """Return an agent's context, or None."""
        found = self._ground.store.knowledge(self._ground.namespace).context(checked_name(name))
        return None if found is None else context_of(found)

    def status(self) -> KnowledgeStatus:
        """Return the agents with knowledge here, the embedder and the re-ranker."""
        ground, means = self._ground, self._means
        embedder = embedder_of(ground, means)
        knowledge = ground.store.knowledge(ground.namespace)
        agents = []
        for each in knowledge.agents():
            stale = sum(is_stale(item, embedder, means.vectors) for item in knowledge.items(each.agent))
            agents.append(AgentStatus(each.agent, each.items, each.deleted, stale))
        status = KnowledgeStatus(ground.namespace, ground.place, tuple(agents), embedder)
        notices = [means.no_vectors] if means.no_vectors else [] if means.config.vector_enabled else [LEXICAL]
        if means.reranker is None:
            return replace(status, notices=tuple(notices))
        try:
            means.reranker()
        except CommonplaceError as error:
            return replace(status, notices=(*notices, f"{means.reranker_name} cannot re-rank: {error}"))
        return replace(status, reranker=means.reranker_name, notices=tuple(notices))

    def forget_caches(self) -> None:
        """Empty this process's caches."""
        self._retriever.forget_caches()

    def _limit(self, limit: int | None) -> int:
        if limit is None:
            return self.config.rerank_top_k
        if isinstance(limit, bool) or not isinstance(limit, int) or limit > MAX_LIMIT:
            raise UsageError(f"limit is {limit!r:.80}", remedy=f"give a whole number up to {MAX_LIMIT:,}")
        return limit if limit > 0 else self.config.rerank_top_k
