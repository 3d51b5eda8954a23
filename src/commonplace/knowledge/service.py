"""The knowledge service: index and search agents' knowledge, store their contexts, and build agents and prompts.

A component that cannot be used is skipped and reported in a notice: a query is answered while the store is readable.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import CommonplaceError, EmbedderMismatchError, ProviderError, UsageError
from commonplace.formats.yaml import parse_document, read_document
from commonplace.ingest.passages import Destination, PassageMaker, passage_id
from commonplace.ingest.read import normalise
from commonplace.knowledge.config import KnowledgeRuntime, MemoryConfig, NoVectors, Vectors, reranked
from commonplace.knowledge.maps import (
    AgentContext,
    checked_maps,
    checked_name,
    context_of,
    record_of,
)
from commonplace.knowledge.results import (
    AgentStatus,
    KnowledgeHit,
    KnowledgeReport,
    KnowledgeStatus,
    RelevantKnowledge,
    Retrieval,
)
from commonplace.models.cache import AgingCache, Bounds
from commonplace.models.contract import Message
from commonplace.ranking.arrays import quantise
from commonplace.search.request import MAX_LIMIT, MAX_QUERY_CHARACTERS, Request
from commonplace.search.signals import DENSE
from commonplace.text.characters import MENDED
from commonplace.text.snippet import snippet
from commonplace.types import Confidence, Filter, NewPassage, Owner
from commonplace.types.knowledge import KnowledgeRecord, KnowledgeWrite, StoredKnowledge

_log = logging.getLogger(__name__)

VECTORS_CACHE: Final = Bounds(max_entries=16, max_bytes=64 << 20, ttl_s=5 * 60)
MAX_CONTENT_CHARACTERS: Final = 4_000
"""Longest content of a hit: longer text would drown the prompt it goes into, and a re-ranker reads no more of it."""
MAX_AGENT_BYTES: Final = 64 * 1024 * 1024
_AGENTS_NAMED: Final = 10
_MIN_CANDIDATES: Final = 100
"""Fewest candidates that lexical recall and dense recall each contribute to a search."""
_BATCH_SIZE: Final = 256
_AGENT_FILE: Final = "an agent's file"
_INSTRUCTIONS: Final = ("system", "prompt")
_LEXICAL: Final = "no vectors are made, for vectorEnabled is false: the knowledge is found by its words alone"

Given = str | Path | Mapping[str, Any]
"""A file's path, YAML or JSON text (has several lines, or begins with a brace), or the mapping parsed from one."""

_ReadyMaps = dict[KnowledgeRecord, tuple[tuple[NewPassage, ...], bytes]]
"""Each map's passages, without an owner, and its vector by the service's own embedder, b"" without one."""


class _Ranked(NamedTuple):
    number: int
    score: float
    similarity: float | None
    confidence: Confidence | None = None
    passage: str = ""


class KnowledgeService:
    """What the agents of one namespace know. Thread-safe.

    Every call raises a `StoreError` if the store cannot be read or written, and a `UsageError` for a value of the
    wrong type or out of range; in both cases nothing has changed.
    """

    def __init__(self, runtime: KnowledgeRuntime) -> None:
        self._runtime = runtime
        self._rows: AgingCache[tuple[list[int], NDArray[np.int8]]] = AgingCache(VECTORS_CACHE)

    @property
    def config(self) -> MemoryConfig:
        """The service's configuration."""
        return self._runtime.config

    def create_agent(self, given: Given) -> Agent:
        """Index the knowledge in an agent's file or mapping, and return the agent.

        Maps that are already indexed stay, and keep their vectors if the current embedder made them. If embedding
        fails, the agent is returned with the knowledge it had before, and its report says so.

        Args:
            given: a YAML or JSON file, YAML or JSON text, or a mapping: `name`, and any of `model`, `system`, `prompt`
                and `knowledge`, a list of maps. Without `knowledge` the indexed knowledge is left unchanged.
        """
        document, failure, report = _read_agent(given), "", None
        name = document["name"]
        if document.get("knowledge") is not None:
            try:
                report = self.index_knowledge(name, document["knowledge"])
            except ProviderError as error:
                failure = str(error)
        if report is None:
            store, namespace = self._runtime.store, self._runtime.namespace
            report = KnowledgeReport(
                name,
                unchanged=len(store.knowledge(namespace).items(name)),
                is_replaced=not failure,
                degraded=bool(failure),
                notices=(failure,) if failure else (),
                change=store.change(namespace),
            )
        model, *instructions = ((document.get(key) or "").strip() for key in ("model", *_INSTRUCTIONS))
        return Agent(name, model, "\n\n".join(filter(None, instructions)), report, self)

    def index_knowledge(self, agent_name: str, knowledge: Iterable[Mapping[str, Any]]) -> KnowledgeReport:
        """Replace an agent's knowledge with these maps.

        All maps are checked and embedded first, then written in one transaction. A map that is already indexed keeps
        its id; one that is no longer listed is soft-deleted. Secrets are replaced by placeholders.

        Raises:
            ProviderError: an embedder failed. Nothing has changed.
        """
        agent, begun = checked_name(agent_name), time.perf_counter()
        maps, secrets, is_mended = checked_maps(agent, knowledge)
        notices = [f"what looks like a secret was replaced: {', '.join(secrets)}"] if secrets else []
        notices += [MENDED] * is_mended
        try:
            report = self._replace(agent, maps, notices)
        except EmbedderMismatchError:
            # The store's embedder was changed after these vectors were made.
            report = self._replace(agent, maps, notices)
        self.forget_caches()
        return replace(report, seconds=time.perf_counter() - begun)

    def retrieve_relevant_knowledge(self, agent_name: str, query: str, limit: int | None = None) -> RelevantKnowledge:
        """Return the texts of an agent's knowledge that answer a query, best first.

        The list also carries ids, scores and whether the search was degraded; `retrieve` returns more.

        Args:
            limit: maximum number of texts, up to 1000; None or less than 1 means the configuration's `rerank_top_k`.
        """
        return self.retrieve(agent_name, query, limit).lines

    def retrieve(
        self, agent_name: str, query: str, limit: int | None = None, *, min_score: float = 0.0, rerank: bool = True
    ) -> Retrieval:
        """Return what an agent knows about a query, with scores and maps.

        Args:
            limit: as for `retrieve_relevant_knowledge`.
            min_score: 0–1; drops hits that the first stage scores lower. From 0.70 a text most likely answers.
            rerank: False keeps the first stage's order and calls no model.
        """
        begun = time.perf_counter()
        if not isinstance(query, str):
            raise UsageError(f"the query is {query!r:.80}", remedy="give a text")
        if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0.0 <= min_score <= 1.0:
            raise UsageError(f"min_score is {min_score!r:.80}", remedy="give a number from 0 to 1")
        agent, runtime = checked_name(agent_name), self._runtime
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit > MAX_LIMIT):
            raise UsageError(f"limit is {limit!r:.80}", remedy=f"give a whole number up to {MAX_LIMIT:,}")
        limit = limit if limit is not None and limit > 0 else self.config.rerank_top_k
        if not query.strip():
            return Retrieval(agent, query, notices=("the query is empty",))
        notices: list[str] = []
        candidates, degraded = self._first_stage(agent, query[:MAX_QUERY_CHARACTERS], limit, min_score, notices)
        if not candidates:
            notices += self.notices_of(agent)
        hits, reranked_by = candidates, ""
        if rerank and runtime.reranker is not None and len(candidates) > limit:
            try:
                order = reranked(runtime.reranker(), query, [hit.content for hit in candidates], limit)
                hits, reranked_by = [replace(candidates[i], score=score) for i, score in order], runtime.reranker_name
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
        """Soft-delete an agent's knowledge and return the number of maps.

        Searches no longer find it. `forget` and `gc` delete it permanently.
        """
        agent, runtime = checked_name(agent_name), self._runtime
        with runtime.store.change_memories(runtime.namespace) as change:
            deleted = change.knowledge.expire([item.number for item in change.knowledge.items(agent)], runtime.now())
        self.forget_caches()
        runtime.after(deleted)
        return deleted

    def notices_of(self, agent_name: str) -> tuple[str, ...]:
        """Return a notice that names the agents with knowledge if this one has none, else ()."""
        agent = checked_name(agent_name)
        agents = self._runtime.store.knowledge(self._runtime.namespace).agents()
        names = [row.agent for row in agents if row.items]
        if agent in names:
            return ()
        more = ", …" if len(names) > _AGENTS_NAMED else ""
        hint = f"; those that have: {', '.join(map(repr, names[:_AGENTS_NAMED]))}{more}" if names else ""
        return (f"no agent {agent!r} has knowledge here{hint}",)

    def set_context(self, context: AgentContext | Mapping[str, Any]) -> AgentContext:
        """Store an agent's context and return it."""
        record = record_of(AgentContext.of(context), self._runtime.now())
        with self._runtime.store.change_memories(self._runtime.namespace) as change:
            change.knowledge.put_context(record)
        return context_of(record)

    def get_context(self, name: str) -> AgentContext | None:
        """Return an agent's context, or None."""
        record = self._runtime.store.knowledge(self._runtime.namespace).context(checked_name(name))
        return None if record is None else context_of(record)

    def status(self) -> KnowledgeStatus:
        """Return the agents with knowledge here, the embedder and the re-ranker."""
        runtime = self._runtime
        embedder, knowledge = runtime.embedder, runtime.store.knowledge(runtime.namespace)
        agents = tuple(
            AgentStatus(
                row.agent,
                row.items,
                row.deleted,
                stale=sum(_is_stale(item, embedder, runtime.vectors) for item in knowledge.items(row.agent)),
            )
            for row in knowledge.agents()
        )
        notices = [runtime.no_vectors] if runtime.no_vectors else [] if runtime.config.vector_enabled else [_LEXICAL]
        reranker = ""
        if runtime.reranker is not None:
            try:
                runtime.reranker()
                reranker = runtime.reranker_name
            except CommonplaceError as error:
                notices.append(f"{runtime.reranker_name} cannot re-rank: {error}")
        return KnowledgeStatus(runtime.namespace, runtime.store_path, agents, embedder, reranker, tuple(notices))

    def forget_caches(self) -> None:
        """Empty this process's caches."""
        self._rows.clear()

    def _first_stage(
        self, agent: str, query: str, limit: int, min_score: float, notices: list[str]
    ) -> tuple[list[KnowledgeHit], bool]:
        """Return the candidates for re-ranking, best first, and whether the search was degraded; notices say how."""
        runtime, count = self._runtime, min(MAX_LIMIT, limit * self.config.retrieval_factor)
        if runtime.no_vectors:
            notices.append(f"searched by words alone: {runtime.no_vectors}")
        ranked = self._rank_by_vectors(agent, query, count, notices)
        degraded = bool(notices)
        if ranked is None:
            is_lexical = not self.config.vector_enabled or bool(runtime.no_vectors)
            request = Request(
                query=query,
                namespace=runtime.namespace,
                limit=count,
                method="bm25" if is_lexical else "two-stage",
                wanted=Filter(kinds=("knowledge",), agents=(agent,)),
                min_score=0.0,
                stage1_limit=max(_MIN_CANDIDATES, count),
                by_words=is_lexical,
            )
            result = runtime.search(request)
            degraded = degraded or result.degraded
            notices += result.notices
            numbers = result.trace.numbers
            passages = runtime.store.passages(runtime.namespace, list(numbers.values()))
            ranked = [
                # A passage without a vector, or one that is not compared, has a dense signal of exactly 0.
                _Ranked(passage.owner_number, hit.score, hit.signals.get(DENSE) or None, hit.confidence, hit.text)
                for hit in result.hits
                if (passage := passages.get(numbers.get(hit.id, -1))) is not None
            ]
        items = runtime.store.knowledge(runtime.namespace).of_numbers([candidate.number for candidate in ranked])
        hits = []
        for number, score, similarity, confidence, passage_text in ranked:
            item = items.get(number)
            if score < min_score or item is None or item.deleted_at is not None:
                continue  # a hit may have been deleted since the search
            content, values = item.record.content, json.loads(item.record.metadata)
            if len(content) > MAX_CONTENT_CHARACTERS:
                shown = passage_text or snippet(content, query, limit=MAX_CONTENT_CHARACTERS, layout="code").text
                content = shown[:MAX_CONTENT_CHARACTERS]
            hits.append(KnowledgeHit(item.owner.id, item.record.agent, content, score, similarity, values, confidence))
        return hits, degraded

    def _rank_by_vectors(self, agent: str, query: str, count: int, notices: list[str]) -> list[_Ranked] | None:
        """Return an agent's best items by cosine, if the service has its own embedder.

        None if it has none, or if its vectors cannot be used, which a notice reports.
        """
        vectors = self._runtime.vectors
        if vectors is None or not self._runtime.embedder:
            return None
        try:
            query_vector = vectors.of([query])[0]
        except CommonplaceError as error:
            _log.info("a query was not embedded: %s", error)
            notices.append(f"searched with the store's own vectors and words: {error}")
            return None
        store, namespace = self._runtime.store, self._runtime.namespace
        key = (agent, vectors.dimensions, store.head(namespace).token)
        rows = self._rows.get(key)
        if rows is None:
            items = store.knowledge(namespace).items(agent)
            if any(_is_stale(item, vectors.name, vectors) for item in items):
                notices.append(
                    f"searched with the store's own vectors and words, for not all of {agent}'s knowledge was embedded"
                    f" by {vectors.name}; index it again"
                )
                return None
            data = b"".join(item.record.vector for item in items)
            rows = [item.number for item in items], np.frombuffer(data, np.int8).reshape(-1, vectors.dimensions)
            self._rows.put(key, rows, len(data) + 64 * len(items))
        numbers, stored = rows
        similar = cosines(query_vector, stored)
        # The rows are ordered by item number; a stable sort keeps that order among equal cosines.
        best = np.argsort(-similar.clip(0.0), kind="stable")[:count].tolist()
        return [_Ranked(numbers[row], max(0.0, float(similar[row])), float(similar[row])) for row in best]

    def _replace(self, agent: str, maps: Sequence[KnowledgeRecord], notices: Sequence[str]) -> KnowledgeReport:
        """Embed new maps first, then write all changes in one transaction.

        A map that is already stored stays as it is, with its id; one that is no longer listed is soft-deleted.
        """
        runtime, store, namespace = self._runtime, self._runtime.store, self._runtime.namespace
        records = [knowledge_map for knowledge_map in maps if knowledge_map.content]
        # `destination()` picks up the store's current embedder, so it must run before the embedder's name is read.
        destination = runtime.destination()
        embedder = runtime.embedder
        if not embedder:
            destination = replace(destination, embedder=NoVectors(destination.embedder.stamp))
        ready: _ReadyMaps = {}
        items = self._match(records, store.knowledge(namespace).items(agent))
        while True:
            self._embed(
                destination, [map_ for map_, _, needs_vectors in items if needs_vectors and map_ not in ready], ready
            )
            # No other writer can enter this block, so the items compared here are the items replaced.
            with store.change_memories(namespace, made_by=destination.embedder.stamp) as change:
                stored, now = change.knowledge.items(agent), runtime.now()
                items = self._match(records, stored)
                changing = [(map_, item) for map_, item, needs_vectors in items if needs_vectors]
                if any(map_ not in ready for map_, _ in changing):
                    continue  # another process has deleted an item in the meantime
                numbers = {item.number for _, item, _ in items if item is not None}
                deleted = change.knowledge.expire([old.number for old in stored if old.number not in numbers], now)
                for map_, item in changing:
                    owner = Owner(str(uuid4()), "knowledge") if item is None else item.owner
                    passages, vector = ready[map_]
                    ids = (passage_id(namespace, owner, ordinal) for ordinal in range(len(passages)))
                    with_ids = tuple(replace(passage, id=id_) for passage, id_ in zip(passages, ids, strict=True))
                    record = replace(map_, embedder=embedder, vector=vector)
                    created_at = now if item is None else item.created_at
                    change.knowledge.put(KnowledgeWrite(owner, with_ids, record), created_at=created_at, updated_at=now)
            break
        added = sum(item is None for _, item in changing)
        runtime.after(len(changing) + deleted)
        skipped = len(maps) - len(records)
        return KnowledgeReport(
            agent=agent,
            added=added,
            unchanged=len(items) - len(changing),
            embedded=len(changing) - added,
            deleted=deleted,
            skipped=skipped,
            embedder=embedder,
            degraded=bool(runtime.no_vectors),
            notices=(*self._notices(skipped), *notices),
            change=store.change(namespace),
        )

    def _notices(self, skipped: int) -> Iterator[str]:
        if reason := self._runtime.no_vectors:
            yield f"no vectors are made, and the knowledge is found by its words alone: {reason}"
        elif not self.config.vector_enabled:
            yield _LEXICAL
        if skipped:
            yield f"{skipped} of the maps hold no text, and were skipped"

    def _match(
        self, records: Sequence[KnowledgeRecord], existing: Sequence[StoredKnowledge]
    ) -> list[tuple[KnowledgeRecord, StoredKnowledge | None, bool]]:
        """Return each map with its equal stored item, if any (each item is used once), and whether it needs vectors."""
        waiting: defaultdict[str, deque[StoredKnowledge]] = defaultdict(deque)
        for stored in existing:
            waiting[stored.record.digest].append(stored)
        embedder, vectors = self._runtime.embedder, self._runtime.vectors
        items = ((record, waiting[record.digest].popleft() if waiting[record.digest] else None) for record in records)
        return [(record, item, item is None or _is_stale(item, embedder, vectors)) for record, item in items]

    def _embed(self, destination: Destination, records: Sequence[KnowledgeRecord], ready: _ReadyMaps) -> None:
        runtime, maps, maker = self._runtime, list(dict.fromkeys(records)), PassageMaker(destination)
        for begin in range(0, len(maps), _BATCH_SIZE):
            batch = maps[begin : begin + _BATCH_SIZE]
            try:
                vectors = [b""] * len(batch)
                if runtime.embedder and runtime.vectors is not None:
                    vectors = [row.tobytes() for row in quantise(runtime.vectors.of([map_.content for map_ in batch]))]
                prepared = [maker.prepare(Owner("", "knowledge"), normalise(map_.content), "text") for map_ in batch]
                writes = maker.complete(prepared)
            except ProviderError as error:
                raise ProviderError(
                    f"the knowledge was not replaced, for it could not be embedded: {error.args[0]}",
                    status=error.status,
                    remedy=error.remedy,
                ) from error
            for map_, write, vector in zip(batch, writes, vectors, strict=True):
                ready[map_] = write.passages, vector
            if runtime.progress:
                runtime.progress("Embedding knowledge", begin + len(batch), len(maps))


def _is_stale(item: StoredKnowledge, embedder: str, vectors: Vectors | None) -> bool:
    """Return whether an item must be embedded again because it has no vectors or those of another embedder.

    False without a current embedder: existing vectors stay, as the embedder may be back when the agent is next created.
    """
    dimensions = 0 if vectors is None else vectors.dimensions
    is_other = item.record.embedder != embedder or (dimensions and len(item.record.vector) != dimensions)
    return bool(embedder and is_other)


def cosines(query: NDArray[np.float32], rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the cosine of a vector with each row, float32, shape (n,); 0 for a row of zeros.

    Args:
        query: float32, shape (d,).
        rows: int8, shape (n, d), each row with its own scale.
    """
    values = rows.astype(np.float32)
    lengths = np.linalg.norm(values, axis=1) * np.linalg.norm(query)
    ratios: NDArray[np.float32] = np.divide(values @ query, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.clip(ratios, -1, 1)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The system prompt of a conversation.

    Attributes:
        text: the agent's instructions, followed by the retrieved knowledge, fenced and labelled as data.
        knowledge: the retrieved lines; `text` contains no other knowledge of the agent.
    """

    text: str
    knowledge: RelevantKnowledge


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent whose knowledge is indexed. Created by `KnowledgeService.create_agent`.

    Attributes:
        model: the agent's language model, as written in its file.
        instructions: the texts under `system` and `prompt`; the agent's prompt begins with them.
        report: the result of indexing its knowledge.
    """

    name: str
    model: str
    instructions: str
    report: KnowledgeReport
    service: KnowledgeService

    def retrieve(
        self, conversation: str | Sequence[Message | Mapping[str, Any]], limit: int | None = None
    ) -> Retrieval:
        """Return what the agent knows about the last message of a conversation.

        Args:
            conversation: messages, the latest one last, or the text of the latest one alone.
            limit: maximum number of lines; None means the configuration's.
        """
        return self.service.retrieve(self.name, last_text(conversation), limit)

    def prompt(
        self,
        conversation: str | Sequence[Message | Mapping[str, Any]],
        limit: int | None = None,
        *,
        min_score: float = 0.0,
    ) -> Prompt:
        """Return the system prompt for a conversation: the instructions and every retrieved hit that is not weak.

        Args:
            conversation, limit: as for `retrieve`.
            min_score: 0–1; drops hits that the first stage scores lower. Hits found with your own embedder's vectors
                have no confidence, so there only `min_score` keeps out knowledge unrelated to the conversation.
        """
        retrieval = self.service.retrieve(self.name, last_text(conversation), limit, min_score=min_score)
        retrieval = replace(retrieval, hits=tuple(hit for hit in retrieval.hits if hit.confidence != "weak"))
        return Prompt("\n\n".join(filter(None, (self.instructions, retrieval.to_text()))), retrieval.lines)


def last_text(conversation: object) -> str:
    """Return the text of the last message of a conversation, or ""."""
    if isinstance(conversation, str):
        return conversation
    if not isinstance(conversation, Sequence):
        raise UsageError(f"the conversation is {conversation!r:.80}", remedy="give a list of messages, or a text")
    if not conversation:
        return ""
    last = conversation[-1]
    content = last.get("content") if isinstance(last, Mapping) else getattr(last, "content", last)
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _read_agent(source: Given) -> Mapping[str, Any]:
    """Return an agent's file as a mapping, with `name`, `knowledge`, `model`, `system` and `prompt` checked.

    Raises:
        UsageError: the file cannot be read, or a value has the wrong type.
    """
    document: object = source
    is_text = isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{"))
    if isinstance(source, str) and is_text:
        document = parse_document(source.encode("utf-8", "surrogatepass"), "the agent", MAX_AGENT_BYTES, _AGENT_FILE)
    elif isinstance(source, str | Path):
        document = read_document(Path(source), MAX_AGENT_BYTES, _AGENT_FILE)
    if not isinstance(document, Mapping):
        raise UsageError(f"the agent is {document!r:.80}", remedy="give a file, or a map with a `name`")
    checked_name(document.get("name"))
    knowledge = document.get("knowledge")
    if knowledge is not None and not isinstance(knowledge, list | tuple):
        raise UsageError(f"the knowledge of the agent is {knowledge!r:.80}", remedy="give a list of maps")
    for name in ("model", *_INSTRUCTIONS):
        if not isinstance(document.get(name), str | None):
            raise UsageError(f"`{name}` of the agent is {document[name]!r:.80}", remedy="give a text")
    return document
