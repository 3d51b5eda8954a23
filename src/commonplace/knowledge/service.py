"""The knowledge service: index what agents know, find it, keep their contexts; agents and the prompts made from them.

What cannot be used is skipped and told as a notice: a query has an answer as long as the store can be read.
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
"""A longer text would drown the prompt that it is put into; a re-ranker reads no more of it either."""
MAX_AGENT_BYTES: Final = 64 * 1024 * 1024
_AGENTS_NAMED: Final = 10
_MIN_CANDIDATES: Final = 100
"""What each of the lexical and the dense recall of a search brings at least."""
_AT_ONCE: Final = 256
_WHAT: Final = "an agent's file"
_INSTRUCTIONS: Final = ("system", "prompt")
_LEXICAL: Final = "no vectors are made, for vectorEnabled is false: the knowledge is found by its words alone"

Given = str | Path | Mapping[str, Any]
"""A file's path, a text of YAML or JSON (it has several lines, or begins with a brace), or what such a text holds."""

_Made = dict[KnowledgeRecord, tuple[tuple[NewPassage, ...], bytes]]
"""The passages of maps, without an owner, and each map's own vector where there is one."""


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

        All is checked and embedded first; then everything changes in one transaction. A map that was there already
        keeps its id; one that is not given any more is softly deleted. Secrets are replaced by placeholders.

        Raises:
            ProviderError: an embedder failed. Nothing was changed.
        """
        agent, begun = checked_name(agent_name), time.perf_counter()
        maps, secrets, is_mended = checked_maps(agent, knowledge)
        notices = [f"what looks like a secret was replaced: {', '.join(secrets)}"] if secrets else []
        notices += [MENDED] * is_mended
        try:
            report = self._replace(agent, maps, notices)
        except EmbedderMismatchError:
            # Somebody changed the store's embedder after these vectors were made.
            report = self._replace(agent, maps, notices)
        self.forget_caches()
        return replace(report, seconds=time.perf_counter() - begun)

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
                stale=sum(_is_stale(item, embedder, runtime.vectors) for item in knowledge.items(each.agent)),
            )
            for each in knowledge.agents()
        )
        notices = [runtime.no_vectors] if runtime.no_vectors else [] if runtime.config.vector_enabled else [_LEXICAL]
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

    def _first_stage(
        self, agent: str, query: str, limit: int, min_score: float, notices: list[str]
    ) -> tuple[list[KnowledgeHit], bool]:
        """Return the candidates for re-ranking, best first, and whether something could not be used, as notices say."""
        runtime, count = self._runtime, min(MAX_LIMIT, limit * self.config.retrieval_factor)
        if runtime.no_vectors:
            notices.append(f"searched by words alone: {runtime.no_vectors}")
        ranked = self._by_own_vectors(agent, query, count, notices)
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
                # What has no vector, or is compared with none, has exactly 0.
                _Ranked(passage.owner_number, hit.score, hit.signals.get(DENSE) or None, hit.confidence, hit.text)
                for hit in result.hits
                if (passage := passages.get(numbers.get(hit.id, -1))) is not None
            ]
        items = runtime.store.knowledge(runtime.namespace).of_numbers([each.number for each in ranked])
        hits = []
        for number, score, similarity, confidence, passage_text in ranked:
            item = items.get(number)
            if score < min_score or item is None or item.deleted_at is not None:
                continue  # what was found may have been deleted since
            content, known = item.record.content, json.loads(item.record.metadata)
            if len(content) > MAX_CONTENT_CHARACTERS:
                shown = passage_text or snippet(content, query, limit=MAX_CONTENT_CHARACTERS, layout="code").text
                content = shown[:MAX_CONTENT_CHARACTERS]
            hits.append(KnowledgeHit(item.owner.id, item.record.agent, content, score, similarity, known, confidence))
        return hits, degraded

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
        similar = cosines(asked, stored)
        # The rows are in the order of their numbers, which a stable sort keeps among equals.
        best = np.argsort(-similar.clip(0.0), kind="stable")[:count].tolist()
        return [_Ranked(numbers[at], max(0.0, float(similar[at])), float(similar[at])) for at in best]

    def _replace(self, agent: str, maps: Sequence[KnowledgeRecord], notices: Sequence[str]) -> KnowledgeReport:
        """Embed new maps first, then write all changes in one transaction.

        A map that is there already stays as it is, with its id; one that is not given any more is softly deleted.
        """
        runtime, store, namespace = self._runtime, self._runtime.store, self._runtime.namespace
        wanted = [each for each in maps if each.content]
        # First the destination, which takes up the store's embedder of now: its name is told only then.
        destination = runtime.destination()
        embedder = runtime.embedder
        if not embedder:
            destination = replace(destination, embedder=NoVectors(destination.embedder.stamp))
        made: _Made = {}
        items = self._beside(wanted, store.knowledge(namespace).items(agent))
        while True:
            self._make(
                destination, [map_ for map_, _, needs_vectors in items if needs_vectors and map_ not in made], made
            )
            # Nobody else can write inside the block: what is compared there is what is replaced.
            with store.change_memories(namespace, made_by=destination.embedder.stamp) as change:
                known, now = change.knowledge.items(agent), runtime.now()
                items = self._beside(wanted, known)
                changing = [(map_, item) for map_, item, needs_vectors in items if needs_vectors]
                if any(map_ not in made for map_, _ in changing):
                    continue  # another process took something away meanwhile
                kept = {item.number for _, item, _ in items if item is not None}
                gone = change.knowledge.expire([each.number for each in known if each.number not in kept], now)
                for map_, item in changing:
                    owner = Owner(str(uuid4()), "knowledge") if item is None else item.owner
                    passages, vector = made[map_]
                    ids = (passage_id(namespace, owner, ordinal) for ordinal in range(len(passages)))
                    placed = tuple(replace(each, id=id_) for each, id_ in zip(passages, ids, strict=True))
                    record = replace(map_, embedder=embedder, vector=vector)
                    created_at = now if item is None else item.created_at
                    change.knowledge.put(KnowledgeWrite(owner, placed, record), created_at=created_at, updated_at=now)
            break
        added = sum(item is None for _, item in changing)
        runtime.after(len(changing) + gone)
        skipped = len(maps) - len(wanted)
        return KnowledgeReport(
            agent=agent,
            added=added,
            unchanged=len(items) - len(changing),
            embedded=len(changing) - added,
            deleted=gone,
            skipped=skipped,
            embedder=embedder,
            degraded=bool(runtime.no_vectors),
            notices=(*self._notices(skipped), *notices),
            change=store.change(namespace),
        )

    def _notices(self, skipped: int) -> Iterator[str]:
        if why := self._runtime.no_vectors:
            yield f"no vectors are made, and the knowledge is found by its words alone: {why}"
        elif not self.config.vector_enabled:
            yield _LEXICAL
        if skipped:
            yield f"{skipped} of the maps hold no text, and were skipped"

    def _beside(
        self, wanted: Sequence[KnowledgeRecord], known: Sequence[StoredKnowledge]
    ) -> list[tuple[KnowledgeRecord, StoredKnowledge | None, bool]]:
        """Return each map with the item that holds the same, of equal ones each its own, and if it needs vectors."""
        waiting: defaultdict[str, deque[StoredKnowledge]] = defaultdict(deque)
        for stored in known:
            waiting[stored.record.digest].append(stored)
        embedder, vectors = self._runtime.embedder, self._runtime.vectors
        items = ((each, waiting[each.digest].popleft() if waiting[each.digest] else None) for each in wanted)
        return [(each, item, item is None or _is_stale(item, embedder, vectors)) for each, item in items]

    def _make(self, destination: Destination, wanted: Sequence[KnowledgeRecord], made: _Made) -> None:
        runtime, maps, maker = self._runtime, list(dict.fromkeys(wanted)), PassageMaker(destination)
        for begin in range(0, len(maps), _AT_ONCE):
            part = maps[begin : begin + _AT_ONCE]
            try:
                vectors = [b""] * len(part)
                if runtime.embedder and runtime.vectors is not None:
                    vectors = [row.tobytes() for row in quantise(runtime.vectors.of([each.content for each in part]))]
                prepared = [maker.prepare(Owner("", "knowledge"), normalise(each.content), "text") for each in part]
                writes = maker.complete(prepared)
            except ProviderError as error:
                raise ProviderError(
                    f"the knowledge was not replaced, for it could not be embedded: {error.args[0]}",
                    status=error.status,
                    remedy=error.remedy,
                ) from error
            for each, write, vector in zip(part, writes, vectors, strict=True):
                made[each] = write.passages, vector
            if runtime.progress:
                runtime.progress("Embedding knowledge", begin + len(part), len(maps))


def _is_stale(item: StoredKnowledge, embedder: str, vectors: Vectors | None) -> bool:
    """Return whether an item has vectors of another embedder, or none, and so is to be embedded again.

    Where nothing embeds now, what there is stays: the embedder may be back at the next creation.
    """
    dimensions = 0 if vectors is None else vectors.dimensions
    is_other = item.record.embedder != embedder or (dimensions and len(item.record.vector) != dimensions)
    return bool(embedder and is_other)


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


@dataclass(frozen=True, slots=True)
class Prompt:
    """The system prompt of a conversation.

    Attributes:
        text: the agent's instructions, and behind them what was retrieved, fenced and labelled as data.
        knowledge: the lines that were retrieved; nothing else of the agent's knowledge is in the text.
    """

    text: str
    knowledge: RelevantKnowledge


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent whose knowledge is indexed. Made by `KnowledgeService.create_agent`.

    Attributes:
        model: the language model that it talks through, as it is written.
        instructions: the texts under `system` and `prompt`, what the agent's prompt begins with.
        report: what indexing its knowledge did.
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
            conversation: messages, the last one last, or that one's text alone.
            limit: how many lines at most; None is the configuration's.
        """
        return self.service.retrieve(self.name, last_text(conversation), limit)

    def prompt(
        self,
        conversation: str | Sequence[Message | Mapping[str, Any]],
        limit: int | None = None,
        *,
        min_score: float = 0.0,
    ) -> Prompt:
        """Return what its model is to be told before a conversation: of what is retrieved all that is not weak.

        Args:
            conversation, limit: as for `retrieve`.
            min_score: 0–1; what the first stage scores lower is left out. With vectors of an embedder of your own,
                of which nobody knows what is weak, this alone keeps out what has nothing to do with the conversation.
        """
        found = self.service.retrieve(self.name, last_text(conversation), limit, min_score=min_score)
        found = replace(found, hits=tuple(hit for hit in found.hits if hit.confidence != "weak"))
        return Prompt("\n\n".join(filter(None, (self.instructions, found.to_text()))), found.lines)


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


def _read_agent(given: Given) -> Mapping[str, Any]:
    """Return what an agent's file says: its `name`, and perhaps `knowledge`, checked; the rest as it is written.

    Raises:
        UsageError: it cannot be read, or a value is of the wrong kind.
    """
    document: object = given
    is_text = isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{"))
    if isinstance(given, str) and is_text:
        document = parse_document(given.encode("utf-8", "surrogatepass"), "the agent", MAX_AGENT_BYTES, _WHAT)
    elif isinstance(given, str | Path):
        document = read_document(Path(given), MAX_AGENT_BYTES, _WHAT)
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
