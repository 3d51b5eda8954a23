"""The engine: everything a library, the command line or a server asks of one store."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, overload

from commonplace.dataclasses import replace
from commonplace.dates.time import Moment, iso, moment_in_words, moment_of
from commonplace.engine import memory_api
from commonplace.engine.maintenance import IndexStatus
from commonplace.engine.memory_api import Excerpt, Fading, MemoryCounts, MemoryFacets, Neighbourhood
from commonplace.engine.runtime import abbreviated, made_once
from commonplace.engine.search_api import search
from commonplace.errors import StoreError, UsageError
from commonplace.formats.escaping import visible
from commonplace.memory import validate
from commonplace.memory.usage import injected_hits, used_hits
from commonplace.memory.view import Memory
from commonplace.models.contract import Embedder
from commonplace.models.registry import is_remote
from commonplace.retention import DAY_S, MIN_TRUST_TO_PROMOTE, NEXT_TIER
from commonplace.search.request import MAX_LIMIT, MAX_QUERY_CHARACTERS, chosen, defaults_of
from commonplace.search.result import Receipt, SearchResult
from commonplace.settings import Settings
from commonplace.settings.paths import LOGS
from commonplace.types import (
    HOLDS_BESIDE,
    KINDS,
    STATUSES,
    SUPERSEDES,
    TIERS,
    Document,
    EmbeddedKind,
    Filter,
    Hit,
    IndexReport,
    Kind,
    Link,
    Method,
    RerankMode,
    Selection,
)
from commonplace.types.ledger import AGENTS, VERDICTS, Verdict

Memories = list[Memory]
"""Annotation for lists of memories inside a class whose method `list` shadows the builtin."""

PROJECTED_AT_ONCE = 256
"""Maximum memories in one call that wait for the next search or update to be indexed; more are indexed at once."""
PAST_STEPS = 12
"""Number of steps in which `memory_fading` shows the time between two uses."""
MAX_LISTED = 10_000
LIST_ORDERS = ("newest", "used", "idle", "stored", "changed", "archived")
MAX_FADING_DAYS = 3_650
MAX_OFFSET = 10**9
MAX_USES = 1_000
MAX_RATE_LIMIT = 1_000_000
"""Highest rate limit, in operations a minute."""
MAX_DAYS = 36_500.0

if TYPE_CHECKING:
    from commonplace.consolidation.runner import ConsolidationChange, ConsolidationRun, ConsolidationStatus, RunReport
    from commonplace.consolidation.runtime import ConfidenceConfig, ConsolidationRuntime
    from commonplace.consolidation.undo import Undone
    from commonplace.engine.consolidation_api import ConsolidationApi
    from commonplace.engine.doctor import DoctorReport
    from commonplace.engine.erasure_api import ErasureApi
    from commonplace.engine.graph_api import Graph
    from commonplace.engine.index_api import IndexApi
    from commonplace.engine.knowledge_api import KnowledgeApi
    from commonplace.engine.review import Question, RuleLink
    from commonplace.engine.runtime import Runtime
    from commonplace.engine.tokens import Tokens
    from commonplace.engine.upgrade import UpgradeReport
    from commonplace.erasure.receipt import ForgetReceipt
    from commonplace.exchange.backup import BackupReport, KnownBackup
    from commonplace.exchange.export import ExportReport
    from commonplace.exchange.import_ import ImportReport
    from commonplace.health.examine import Health
    from commonplace.health.golden import GoldenQuery
    from commonplace.ingest.watch import Watch
    from commonplace.journal.pages import PagePlace
    from commonplace.journal.sync import SyncReport
    from commonplace.knowledge.config import Embedder as AnyEmbedder
    from commonplace.knowledge.config import MemoryConfig, Reranker
    from commonplace.knowledge.service import KnowledgeService
    from commonplace.ledger.ledger import Ledger
    from commonplace.memory.decay import DecayReport
    from commonplace.memory.idempotency import Answers
    from commonplace.memory.injections import Injection
    from commonplace.search.context import Context
    from commonplace.search.retrieval_log import MemoryUse, RetrievalHistory, RetrievalSummary, Used
    from commonplace.specialist import Specialist


class Engine:
    """One store, seen from one namespace. Safe for threads; `commonplace.open` returns it.

    Every call raises a `NotFoundError` if an id or a path names nothing, and a `UsageError` if a value is of the wrong
    type or out of range; in both cases nothing has changed.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.directory = runtime.directory
        self.project = runtime.project
        self.namespace = runtime.namespace
        self.settings = runtime.settings
        self._runtime = runtime
        self._process = os.getpid()

    # Made on first use: a process that only recalls never needs them.

    @made_once
    def _retrievals(self) -> RetrievalHistory:
        from commonplace.logs import RetrievalLog
        from commonplace.search.retrieval_log import RetrievalHistory

        return RetrievalHistory(RetrievalLog(self.directory / LOGS, queries=self.settings.log.queries), self.namespace)

    @property
    def _consolidation_api(self) -> ConsolidationApi:
        from commonplace.engine.consolidation_api import ConsolidationApi

        return ConsolidationApi(self)

    @property
    def _erasure_api(self) -> ErasureApi:
        from commonplace.engine.erasure_api import ErasureApi

        return ErasureApi(self._runtime)

    @property
    def _index_api(self) -> IndexApi:
        from commonplace.engine.index_api import IndexApi

        return IndexApi(self._runtime)

    @made_once
    def _knowledge_api(self) -> KnowledgeApi:
        from commonplace.engine.knowledge_api import KnowledgeApi

        return KnowledgeApi(self._runtime)

    def __repr__(self) -> str:
        state = " (closed)" if self._runtime.is_closed else ""
        location = self._runtime.store.place or str(self.directory)
        return f"<commonplace.Engine {location!r}, namespace {self.namespace!r}{state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_local(self) -> bool:
        """Whether every embedder of the store runs in this process, so that a search sends nothing away."""
        stamp = self._runtime.follow().stamp
        return not any(is_remote(embedding.name) for embedding in (stamp, *(other for _, other in stamp.others)))

    def in_namespace(self, namespace: str, settings: Settings | None = None, *, is_served: bool = False) -> Engine:
        """Return an engine for another namespace of this store; it shares connections, index and models.

        Close it separately, before this one.

        Args:
            settings: other settings; models and embedders stay.
            is_served: never name other namespaces, which a server's clients may not know.
        """
        from commonplace.engine.open import check_namespace

        check_namespace(namespace)
        return Engine(self._runtime.in_namespace(namespace, settings, is_served=is_served))

    def close(self) -> None:
        """Close the engine; closing twice is harmless, and in a forked child all is left to the parent."""
        if self._process != os.getpid():
            return
        if "graph" in self.__dict__:  # made on first use
            self.graph.close()
        if "_knowledge_api" in self.__dict__:
            self._knowledge_api.close()
        self._runtime.close()

    def remember(  # noqa: PLR0913 - the options of a facade
        self,
        content: str,
        tier: str | None = None,
        tags: Sequence[str] = (),
        source: str = "",
        at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        category: str = "",
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        session: str = "",
        entities: Sequence[str] = (),
        origin: str | None = None,
        trust: float | None = None,
        derived_from: Sequence[str] = (),
        force: bool = False,
    ) -> Memory:
        """Store a memory. It is durable and can be found by every process when the call returns.

        Secrets are replaced by placeholders, and recalled blocks cut out. A duplicate, exact or nearly so, touches the
        existing memory instead: `outcome` and `notices` of the returned memory say so. A known `id` with other words
        makes the next version of that memory, which keeps its tier, tags, source, metadata, category and entities
        unless they are given. Facts go into the graph in the same transaction, unless graph.remember is off.

        Args:
            content: at most 1 MiB of UTF-8 (setting memory.max_bytes).
            tier: "ultra" (this process only), "short" (default), "medium" (default in a session) or "long".
            tags: at most 100, each at most 200 characters.
            source: who or what it came from.
            at: when it happened: an ISO 8601 text, a datetime, seconds, or words such as "yesterday" (its beginning);
                default: now. Dates in the text are relative to it.
            metadata: a JSON object, at most 64 KiB.
            category: decision, preference, fact, context, …; sets the half-life.
            id: your own id; default: a new UUID.
            session: the conversation; its memories keep their order and are never merged.
            entities: names of its subjects.
            origin: "user", "agent" (the default), "tool", "document" or "web".
            trust: 0–1; default: by origin, or the least of `derived_from`.
            derived_from: ids of the memories that it was made from.
            force: store it even if it is a duplicate or looks binary.

        Raises:
            AdmissionError: the text is a passage of an indexed artifact, or holds only recalled blocks.
        """
        item: dict[str, Any] = {"id": id, "content": content, "tier": tier, "tags": tags, "category": category}
        item |= {"source": source, "at": at, "metadata": metadata, "session": session, "entities": entities}
        item |= {"origin": origin, "trust": trust, "derived_from": derived_from}
        return self.remember_many([item], force=force)[0]

    def remember_many(self, items: Iterable[Mapping[str, Any]], *, force: bool = False, wait: bool = True) -> Memories:
        """Store many memories in order, and return one for each.

        All are checked before any is stored. Each transaction takes 256 of them, or 128 KiB of text. They are durable
        and found by their words before they are embedded.

        Args:
            items: mappings with `content` and other arguments of `remember`, or chat messages with `role` (user,
                assistant, tool) and `content`.
            force: as for `remember`.
            wait: return when all are embedded; False embeds in the background.

        Raises:
            AdmissionError: as for `remember`; the message says which one.
        """
        validate.boolean("force", force)
        inputs, runtime = list(validate.series("items", items)), self._runtime
        runtime.before_call()
        in_process = [isinstance(item, Mapping) and item.get("tier") == "ultra" for item in inputs]
        if any(in_process):
            if not all(in_process):
                # All are stored or none is, and no transaction covers both stores.
                remedy = "give those in a call of their own"
                raise UsageError("some of the memories are of the tier ultra", remedy=remedy)
            return runtime.ultra.remember(inputs, force=force)
        memories = runtime.memory.remember(inputs, force=force)
        if wait and len(inputs) > 1:  # one alone was embedded as it was stored
            runtime.backlog.drain(runtime.progress)
        if len(inputs) > PROJECTED_AT_ONCE:
            runtime.maintenance.update_index()
            runtime.tokens.release()
        runtime.after_write()
        return memories

    def get(self, id: str, *, as_of: Moment | None = None, touch: bool | None = None) -> Memory:  # noqa: A002
        """Return a memory, live or archived. This counts as a use, at most once an hour.

        Args:
            as_of: return the version that was known then, as in `search`.
            touch: True counts a use now, False none.
        """
        if touch and as_of is None:
            return self.touch(id)
        self._runtime.before_call()
        stored = self._runtime.get(id, as_of)
        if touch is None and as_of is None:
            self._runtime.count_uses([id])
        return self._runtime.view(stored)

    def resolve_id(self, abbreviation: str) -> str:
        """Return the id of the memory that begins with these characters, as git does.

        If no memory begins so, the text is returned unchanged.

        Args:
            abbreviation: at least 4 characters of an id.

        Raises:
            UsageError: several memories begin so.
        """
        validate.reject_invalid_id(abbreviation)
        store, namespace = self._runtime.store, self.namespace
        if store.memory(namespace, abbreviation) is not None:
            return abbreviation
        self._runtime.before_call()
        if any(store.owner_numbers(namespace, kind, [abbreviation]) for kind in KINDS):
            # It is the full id of something else, and must not be taken for the beginning of a memory's id.
            return abbreviation
        return abbreviated(abbreviation, (id_ for _, id_, _ in store.memory_digests(namespace)), "memories")

    def versions(self, id: str) -> Memories:  # noqa: A002
        """Return every version of a memory, oldest first."""
        validate.reject_invalid_id(id)
        stored_versions = self._runtime.store.versions(self.namespace, id)
        if not stored_versions:
            raise self._runtime.not_found(id)
        return [self._runtime.view(stored) for stored in stored_versions]

    def update(  # noqa: PLR0913 - the options of a facade
        self,
        id: str,  # noqa: A002
        content: str | None = None,
        *,
        tags: Sequence[str] | None = None,
        tier: str | None = None,
        source: str | None = None,
        at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        category: str | None = None,
        entities: Sequence[str] | None = None,
        if_version: int | None = None,
    ) -> Memory:
        """Write the next version of a memory. None keeps a field; `as_of` finds the old version.

        Args:
            if_version: fail unless the memory has this version.

        Raises:
            VersionConflictError: it has another version than `if_version`.
        """
        values: dict[str, Any] = {"content": content, "tags": tags, "tier": tier, "source": source, "at": at}
        values |= {"metadata": metadata, "category": category, "entities": entities}
        changed = {name: value for name, value in values.items() if value is not None}
        # The tier is how long a memory is kept, not what it says: changing it alone makes no version.
        is_tier = changed.keys() == {"tier"} and if_version is None
        with self._runtime.writing():
            memories = self._runtime.memory
            return memories.set_tier(id, tier) if is_tier else memories.update(id, changed, if_version)

    def touch(self, id: str, *, reinforce: bool = False) -> Memory:  # noqa: A002
        """Count a use of a memory. Three in seven days raise its tier, if its trust is at least 0.5.

        Args:
            reinforce: also raise its strength by 0.1, up to 2.
        """
        runtime = self._runtime
        with runtime.writing(id):
            if runtime.has_ultra and runtime.ultra.find(id) is not None:
                return runtime.store_if_risen(runtime.ultra.service.touch(id, reinforce=reinforce))
            return runtime.memory.touch(id, reinforce=reinforce)

    def review(self, id: str) -> Memory:  # noqa: A002
        """Record that a person confirmed a memory. This also counts as a use.

        Three reviews are a reason to promote it, as `consolidate` does.
        """
        with self._runtime.writing(id):
            return self._runtime.memory.touch(id, is_review=True)

    def questions(self) -> list[Question]:
        """Return what waits for a decision: contradicting facts and proposals of consolidation."""
        from commonplace.engine.review import MAX_QUESTIONS, questions

        return list(islice(questions(self), MAX_QUESTIONS))

    def answer(
        self,
        id: str,  # noqa: A002
        answer: str,
        *,
        reason: str = "",
        text: str = "",
        by_agent: bool = False,
    ) -> dict[str, Any]:
        """Answer one of `questions`.

        Args:
            answer: one of the question's `answers`, or the id of the side that is right. "left" and "right" keep that
                side, "both" keeps all, "edit" writes `text` instead, "accept" and "reject" answer a proposal.
            by_agent: refuse if a user said one of the sides, or one is not trusted.

        Raises:
            UsageError: the question does not take this answer, or an agent may not give it.
        """
        from commonplace.engine.review import answer as answered

        validate.reject_invalid_id(id)
        why = validate.short_text("reason", reason)
        return answered(self, id, answer, reason=why, text=text, by_agent=validate.boolean("by_agent", by_agent))

    def archive(self, id: str) -> Memory:  # noqa: A002
        """Hide a memory from searches. `restore_memory` undoes it; `gc` deletes it after 30 days."""
        with self._runtime.writing(id):
            return self._runtime.memory.archive(id)

    def restore_memory(self, id: str) -> Memory:  # noqa: A002
        """Bring an archived memory back, as a new version with the same text."""
        with self._runtime.writing(id):
            return self._runtime.memory.restore(id)

    def raise_tier(self, id: str, tier: str | None = None) -> Memory:  # noqa: A002 - the name of the field
        """Move a live memory to the next tier, or to a given higher one.

        Raises:
            UsageError: the tier is no higher one, or the memory is trusted less than 0.5.
        """
        memory = self.get(id, touch=False)
        target_tier = NEXT_TIER.get(memory.tier) if tier is None else validate.one_of("tier", tier, TIERS)
        if target_tier is None or TIERS.index(target_tier) <= TIERS.index(memory.tier):
            raise UsageError(
                f"memory {memory.id!r:.80} is {memory.tier} already"
                if target_tier in (None, memory.tier)
                else f"memory {memory.id!r:.80} is {memory.tier}, which is above {target_tier}",
                remedy=f"tiers are, from low to high, {', '.join(TIERS)}; use `update` to lower one",
            )
        if memory.trust < MIN_TRUST_TO_PROMOTE:
            raise UsageError(
                f"memory {memory.id!r:.80} is trusted {memory.trust:.2f},"
                f" and one below {MIN_TRUST_TO_PROMOTE} is not raised",
                remedy="let a person confirm it with `update`",
            )
        if memory.tier == "ultra":
            return self._runtime.store_if_risen(replace(memory, tier=target_tier))  # type: ignore[arg-type] # one of them
        return self.update(id, tier=target_tier)

    def decay(self, tier: str = "short", threshold: float = 0.3) -> DecayReport:
        """Recompute the retention of one tier, and archive memories below a threshold.

        Only memories that were unused for 7 days (short) or 90 (medium) are archived. `restore_memory` brings one back
        for 30 days.

        Args:
            tier: "short" or "medium".
            threshold: 0–1.
        """
        from commonplace.memory.decay import decay

        floor, now = validate.fraction("threshold", threshold), self._runtime.now()
        with self._runtime.writing():
            policy, feed = self._runtime.retention, self._runtime.feed
            return decay(self._runtime.store, self.namespace, policy, now, tier=tier, threshold=floor, feed=feed)

    def memory_counts(self) -> MemoryCounts:
        """Count the memories of this namespace."""
        self._runtime.before_call()
        store, counted = self._runtime.store, self._runtime.store.count_tiers(self.namespace)
        live = {tier: sum(counted.get((tier, status), 0) for status in memory_api.LIVE) for tier in TIERS[1:]}
        archived = sum(count for (_, status), count in counted.items() if status == "archived")
        ultra = len(self._runtime.ultra.all(Selection(statuses=memory_api.LIVE))) if self._runtime.has_ultra else 0
        return MemoryCounts(ultra=ultra, archived=archived, links=store.count_links(self.namespace), **live)

    def link(
        self,
        source: str,
        target: str,
        type: str = "related",  # noqa: A002
        strength: float = 1.0,
        *,
        by_agent: bool = False,
    ) -> Link:
        """Link two memories; a link of the same type between them is replaced.

        Args:
            strength: 0–1.
            by_agent: refuse the types "supersedes" and "holds beside" if a user said one of the memories, or one is not
                trusted, or a link says otherwise.
        """
        if validate.boolean("by_agent", by_agent) and validate.link_type(type) in (SUPERSEDES, HOLDS_BESIDE):
            from commonplace.engine.review import refuse_agent

            refuse_agent(self.get(memory_id, touch=False).trust for memory_id in (source, target))
        with self._runtime.writing(source, target):
            return self._runtime.memory.link(source, target, type, strength, by_agent=by_agent)

    def unlink(self, source: str, target: str, type: str | None = None) -> int:  # noqa: A002
        """Delete the links from one memory to another, of one type or all; return how many."""
        if type is not None:
            validate.short_text("type", type)
        with self._runtime.writing(source, target):
            return self._runtime.memory.unlink(source, target, type)

    def links(self, id: str | None = None) -> list[Link]:  # noqa: A002
        """Return the links from and to a memory, or all, by source, target and type."""
        if id is not None:
            validate.reject_invalid_id(id)
        return self._runtime.store.links(self.namespace, None if id is None else [id])

    def rule_links(self, limit: int = 100) -> list[RuleLink]:
        """Return the links that the rule of search made, the latest first, also those that have ended."""
        from commonplace.engine.review import rule_links

        return rule_links(self, validate.int_in("limit", limit, 1, MAX_LISTED))

    def neighbourhood(self, id: str, *, depth: int = 2, limit: int = 50) -> Neighbourhood:  # noqa: A002
        """Return the live memories linked to a memory, in either direction.

        Args:
            depth: how many links away, 1–4.
            limit: maximum number of memories, 1–500.
        """
        validate.int_in("depth", depth, 1, memory_api.MAX_DEPTH)
        validate.int_in("limit", limit, 1, memory_api.MAX_NEIGHBOURS)
        validate.reject_invalid_id(id)
        self._runtime.before_call()
        return memory_api.neighbourhood(self._runtime, id, depth, limit)

    def search(  # noqa: PLR0913 - the options of a facade
        self,
        query: str,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        method: Method | None = None,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        types: Sequence[str] | None = None,
        phases: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
        tiers: Sequence[str] | None = None,
        sessions: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        min_trust: float = 0.0,
        stage1_limit: int | None = None,
        per_owner: int = 1,
        rerank: RerankMode | None = None,
        agent: str | None = None,
        also: Sequence[str] | None = None,
    ) -> SearchResult:
        """Find the passages that answer a query, best first, each with the probability that it is relevant.

        Filters apply before the limit. Dates in the query ("last May", "three days ago") favour memories of that time.

        Args:
            query: words, a question or an identifier, never a query language.
            limit: maximum number of hits, 1–1000; default: setting search.limit, 10.
            kinds: only hits of these kinds.
            method: "two-stage" (lexical and dense recall, then late interaction), "bm25" or "semantic".
            as_of: search what was known at that time: an ISO 8601 text, a datetime, seconds, or words such as "last
                Tuesday" (its end) or "two hours ago".
            valid_at: search only memories, in the versions that were true at that time. With `as_of`: as known then.
            min_score: hold back hits with a lower score, 0–1; 0 keeps all; default: setting search.min_score.
            types, paths: only artifacts of these types, or matching these globs.
            phases, tags: only what has one of these phases (or none), or one of these tags.
            tiers, sessions, sources: only memories of these.
            min_trust: only memories with at least this trust, 0–1.
            stage1_limit: maximum number of lexical and of dense candidates per phrasing, 1–10,000; default: setting
                search.stage1_limit, 100, or what `limit` needs.
            per_owner: maximum number of hits from one artifact or memory.
            rerank: let a language model re-rank three times as many hits: "single" (one call each), "batch" or "none";
                default: setting models.reranker.
            agent: use this agent's strategy, else that of `default`, for limit, min_score, types, phases and tags that
                this call leaves open; an empty list lifts a filter.
            also: one to four other phrasings; hits are ranked by the mean of all.
        """
        now = self._runtime.now()
        defaults = defaults_of(agent, self.settings.agents)
        defaults = defaults.under(limit=limit, min_score=min_score, types=types, phases=phases, tags=tags)
        filters = Filter(
            kinds=chosen("kinds", kinds),  # type: ignore[arg-type] # Request checks it
            types=chosen("types", defaults.types),
            phases=chosen("phases", defaults.phases),
            tags=chosen("tags", defaults.tags),
            paths=chosen("paths", paths),
            tiers=tuple(validate.one_of("tiers", tier, TIERS) for tier in chosen("tiers", tiers)),  # type: ignore[misc]
            sessions=chosen("sessions", sessions),
            sources=chosen("sources", sources),
            min_trust=validate.fraction("min_trust", min_trust),
            as_of=None if as_of is None else moment_in_words("as_of", as_of, now),
            valid_at=None if valid_at is None else moment_in_words("valid_at", valid_at, now),
        )
        return search(self._runtime, query, defaults, filters, now, method, stage1_limit, per_owner, also, rerank)

    def recall(  # noqa: PLR0913 - the options of a facade
        self,
        query: str,
        limit: int | None = None,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        tags: Sequence[str] | None = None,
        tiers: Sequence[str] | None = None,
        sessions: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        min_trust: float = 0.0,
        per_owner: int = 1,
        also: Sequence[str] | None = None,
        touch: bool = True,
    ) -> SearchResult:
        """Search memories only, and count a use of what is found, unless a time is given.

        The other arguments are those of `search`.

        Args:
            touch: False counts no use.
        """
        filters: dict[str, Any] = {"tags": tags, "tiers": tiers, "sessions": sessions, "sources": sources}
        filters |= {"as_of": as_of, "valid_at": valid_at, "min_score": min_score, "min_trust": min_trust}
        result = self.search(query, limit, ("memory",), per_owner=per_owner, also=also, **filters)
        if touch and as_of is None and valid_at is None:
            self.count_use(result.hits)
        return result

    def count_use(self, hits: Sequence[Hit]) -> None:
        """Count the likely and sure memories among the first three hits as used.

        Each counts at most once an hour over all processes, and not if a newer one may have overtaken it. It is written
        within a second, and at the latest when the engine is closed.
        """
        if not isinstance(hits, Sequence) or not all(isinstance(hit, Hit) for hit in hits):
            raise UsageError(f"hits is {hits!r:.80}", remedy="give the hits of a result, as `search` returned them")
        self._runtime.count_uses(used_hits(hits))

    def why(self, result: SearchResult, hit_id: str) -> Receipt:
        """Explain a hit: each signal and its weight, matched words, what was rejected."""
        from commonplace.search.explain import explain

        if not isinstance(result, SearchResult):
            raise UsageError(f"result is {result!r:.80}", remedy="give what `search` returned")
        in_process = result.in_process
        if in_process is not None and hit_id in in_process.trace.numbers:  # a memory of this process
            return explain(self._runtime.ultra.store, replace(result, trace=in_process.trace), hit_id)
        return explain(self._runtime.store, result, hit_id)

    def log_retrieval(self, result: SearchResult | Context, call: str = "search") -> None:
        """Write a line about a search to the store's retrieval log.

        The setting `log.queries` decides whether it has the query's hash, its text, or is not written at all. Hits are
        logged by the paths of artifacts and digests of memories' ids. Failures to write are ignored.
        """
        if not isinstance(getattr(result, "hits", None), tuple):
            raise UsageError(f"result is {result!r:.80}", remedy="give what `search` or `context` returned")
        search_result = result if isinstance(result, SearchResult) else result.found
        if search_result is not None:
            self._retrievals.add(search_result, result.hits, call, self._runtime.now())

    def log_use(self, name: str, kind: Used = "memory") -> None:
        """Log that something was opened or touched.

        Args:
            name: a memory's id or an artifact's path.
        """
        if not isinstance(name, str) or not name:
            raise UsageError(f"name is {name!r:.80}", remedy="give an id or a path")
        self._retrievals.add_use(name, kind, self._runtime.now())

    def retrievals(self, since: Moment | None = None) -> RetrievalSummary:
        """Summarize the log of searches of this namespace: counts, latencies, most found, used.

        Args:
            since: only from this time on; words such as "last Tuesday" mean its beginning.

        Raises:
            StoreError: the log cannot be read.
        """
        start = -math.inf if since is None else moment_in_words("since", since, self._runtime.now(), is_start=True)
        return self._retrievals.summary(start)

    def context(  # noqa: PLR0913 - the options of a facade
        self,
        task: str = "",
        max_tokens: int | None = None,
        *,
        agent: str | None = None,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        tags: Sequence[str] | None = None,
        min_score: float | None = None,
        min_trust: float = 0.0,
        weak: int | None = None,
        touch: bool = True,
    ) -> Context:
        """Return what is worth knowing before a task, as one fenced text for a model, labelled as data.

        It holds the passages that are likely to answer the task, those of one file together in reading order, and under
        "Possibly related" a few weak memories, within a budget of tokens. Without a task it holds memories of the tier
        `long`, those of the highest retention first, then the newest of the rest.

        Args:
            task: the task in words; "" is the start of a session.
            max_tokens: 64–1,000,000; default: setting context.max_tokens, 50,000.
            agent: use this agent's search strategy for what this call leaves open.
            limit: maximum number of passages, 1–1000; default: 30, or by the strategy.
            kinds, tags, min_score, min_trust: as in `search`; a `min_score` admits every hit that reaches it.
            weak: maximum number of weak memories, 0–1000; default: 3.
            touch: as in `recall`.
        """
        from commonplace.engine.context_api import ContextApi

        if len(validate.text("task", task)) > MAX_QUERY_CHARACTERS:
            raise UsageError(
                f"task has {len(task):,} characters, the limit is {MAX_QUERY_CHARACTERS:,}",
                remedy="describe the task in fewer words",
            )
        budget = self.settings.context.max_tokens if max_tokens is None else max_tokens
        defaults = defaults_of(agent, self.settings.agents).under(min_score=min_score)
        result = ContextApi(self, task, budget, defaults, limit, kinds, tags, min_trust).context(weak)
        if touch:
            self._runtime.count_uses(injected_hits(result.hits))
        return result

    def injection(  # noqa: PLR0913 - the options of a facade
        self,
        prompt: str = "",
        max_tokens: int | None = None,
        *,
        conversation: str = "",
        agent: str | None = None,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        tags: Sequence[str] | None = None,
        min_trust: float = 0.0,
        touch: bool = True,
    ) -> Context:
        """Return what a client's hook adds to a conversation: memories that are likely relevant and new to it.

        Artifacts have one line each. Nothing is returned twice for the same conversation within a day, unless
        `clear_injected` is called.

        Args:
            prompt: the user's prompt; "" is the start of a session.
            max_tokens: default: 500 for a prompt, 2,000 without.
            conversation: the client's name for it; "" is a new one.
            agent, limit, tags, min_trust: as in `context`.
            kinds: default: memories, and with an agent also artifacts.
            touch: as in `recall`.
        """
        from commonplace.engine.context_api import PROMPT_TOKENS, START_TOKENS, ContextApi

        validate.text("conversation", conversation)
        default_tokens = PROMPT_TOKENS if validate.text("prompt", prompt).strip() else START_TOKENS
        budget = min(default_tokens, self.settings.context.max_tokens) if max_tokens is None else max_tokens
        task, defaults = prompt[:MAX_QUERY_CHARACTERS], defaults_of(agent, self.settings.agents)
        result = ContextApi(self, task, budget, defaults, limit, kinds, tags, min_trust).injection(conversation)
        if touch:
            self._runtime.count_uses(injected_hits(result.hits))
        return result

    def clear_injected(self, conversation: str) -> None:
        """Let `injection` return everything again in a conversation, as after a compaction."""
        from commonplace.memory.injections import clear_injected

        validate.text("conversation", conversation)
        if not self._runtime.store.is_read_only:
            clear_injected(self._runtime.store, self.namespace, conversation, self._runtime.now())

    def injections(self, limit: int = 20) -> list[Injection]:
        """Return what `injection` gave to named conversations within a day, newest first.

        Conversations are identified by a digest of their name. Prompts are not kept.

        Args:
            limit: 1–1000.
        """
        from commonplace.memory.injections import injections

        validate.int_in("limit", limit, 1, MAX_LIMIT)
        self._runtime.before_call()
        return injections(self._runtime.store, self.namespace, self._runtime.now())[:limit]

    def pages(self) -> list[str]:
        """Return the names of the Markdown pages: `MEMORY.md`, then the days, newest first."""
        self._runtime.import_edits()
        return self._runtime.pages.names()

    def places(self, ids: Iterable[str]) -> dict[str, PagePlace]:
        """Return where memories are on Markdown pages; others are absent."""
        return self._runtime.pages.places(validate.series("ids", ids))

    def memory_at(self, path: str, line: int) -> str | None:
        """Return the id of the memory on a line (from 1) of a Markdown page, or None."""
        validate.int_in("line", line, 1, MAX_OFFSET)
        return self._runtime.pages.memory_at(path, line) if isinstance(path, str) else None

    def read(self, path: str, first: int = 1, lines: int = memory_api.LINES, *, touch: bool = False) -> Excerpt:
        """Return lines of a Markdown page, an indexed artifact or a memory.

        Nothing else can be read, and no file but a page is opened: an artifact's lines are those that were indexed.

        Args:
            path: `MEMORY.md`, `memory/2026-11-21.md`, an artifact's path, `memory:ID`, a memory's id, or a reference
                such as `@PATH` or `PATH:3-8`. An artifact with the name of a page is `./NAME`.
            first: first line, from 1.
            lines: maximum number, 1–2,000.
            touch: count a use of the memory (of a page, the one on the first line), at most once an hour.
        """
        validate.int_in("first", first, 1, MAX_OFFSET)
        validate.int_in("lines", lines, 1, memory_api.MAX_LINES)
        if not isinstance(path, str):
            raise UsageError(f"path is {path!r:.80}", remedy="name a path that a search returned")
        self._runtime.import_edits()
        return memory_api.read(self._runtime, path, first, lines, touch=touch)

    def snippet(self, text: str, query: str, limit: int = 300) -> str:
        """Return the part of a text that answers a query best, on one line, with invisible characters escaped."""
        from commonplace.text.snippet import snippet

        return snippet(visible(validate.text("text", text)), validate.text("query", query), limit=limit).text

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, as all budgets do."""
        return self._runtime.tokens.count_tokens(validate.text("text", text))

    def cut_tokens(self, text: str) -> list[tuple[str, int]]:
        """Return the parts of a text with the number of tokens of each.

        White space belongs to the part that follows it.
        """
        return self._runtime.tokens.cut(validate.text("text", text))

    @overload
    def index(
        self,
        root: str | Path = ".",
        include: Sequence[str] | None = None,
        watch: Literal[False] = False,
        *,
        force: bool = False,
        keep_most: bool = False,
    ) -> IndexReport: ...
    @overload
    def index(
        self, root: str | Path = ".", include: Sequence[str] | None = None, *, watch: Literal[True], force: bool = False
    ) -> Watch: ...
    def index(
        self,
        root: str | Path = ".",
        include: Sequence[str] | None = None,
        watch: bool = False,
        *,
        force: bool = False,
        keep_most: bool = False,
    ) -> IndexReport | Watch:
        """Index new, changed and removed files below a directory.

        Args:
            root: a directory or a file.
            include: globs, in place of the setting and the default list.
            watch: index now and after each change: `for run in book.index(watch=True)`. Each run has a `report` or an
                `error`; `stop()` ends the loop from any thread.
            force: read every file again, changed or not; when watching, in the first run only.
            keep_most: refuse to remove more than half of what is indexed there; not when watching.

        Raises:
            RemovalError: `keep_most` applies. Nothing was changed.
            NotFoundError: there is no such directory or file; a watch reports it as the error of a run.
            StoreBusyError: the directory is watched already, for this store and namespace.
        """
        globs = chosen("include", include)
        path = validate.path_value("root", root).expanduser().absolute()
        if watch:
            return self._index_api.watch(path, globs, force=force)
        return self._index_api.index(path, globs, force=force, keep_most=keep_most)

    def index_documents(self, documents: Iterable[Document]) -> IndexReport:
        """Index texts that are not files, each under its own id; a known id is replaced.

        Give the documents of one session in their order; a later call continues where the session ended.
        """
        return self._index_api.index_documents(documents)

    def index_upgrade(self, embedder: str | Embedder, kinds: Sequence[EmbeddedKind] | None = None) -> UpgradeReport:
        """Embed everything again with another embedder, then switch to it.

        This includes all namespaces, past versions, knowledge and the texts of graphs. Meanwhile every process searches
        the old vectors, and new texts get both. An interrupted run continues when it is called again; with the present
        embedder it is abandoned instead. Other processes use the new embedder from their next call on.

        Args:
            embedder: a name or an object, as in `commonplace.open`; "default" is the setting of each kind.
            kinds: "memories", "knowledge", "graph" or "artifacts"; default: all.

        Raises:
            ModelError, ProviderError: the embedder cannot be used; the store keeps its own.
            StoreBusyError: another process changes the embedder, or holds the lock of the index.
        """
        from commonplace.engine.upgrade import EmbedderApi

        return EmbedderApi(self._runtime).upgrade(embedder, kinds)

    def embed_pending(self) -> int:
        """Embed what is stored without vectors; return how many passages still wait."""
        self._runtime.backlog.drain(self._runtime.progress)
        self._runtime.after_write()
        return self._runtime.store.count_pending()

    @made_once
    def graph(self) -> Graph:
        """The temporal knowledge graph of this namespace.

        Raises:
            UsageError: the settings name Graphiti as its backend, but no server.
        """
        from commonplace.engine.graph_api import Graph

        return Graph(self._runtime)

    @made_once
    def knowledge(self) -> KnowledgeService:
        """The knowledge service over this store, as the settings configure it."""
        return self.knowledge_service()

    def knowledge_service(
        self,
        config: MemoryConfig | None = None,
        *,
        embedder: str | Embedder | AnyEmbedder | None = None,
        reranker: Reranker | None = None,
    ) -> KnowledgeService:
        """Return a knowledge service with its own configuration, embedder or re-ranker.

        Args:
            config: default: from the settings. Another store that it names is closed with this engine.
            embedder: an object with `embed(*texts)`, or an embedder or its name; default: the store's.
            reranker: an object with `rerank(query, candidates, top_k)`; default: the configured language model.

        Raises:
            ConfigError: the configuration is invalid.
            StoreError: the other store cannot be opened.
        """
        return self._knowledge_api.service(config, embedder, reranker)

    @made_once
    def specialist(self) -> Specialist:
        """The memory specialist, which answers requests in the text protocol CSP/1."""
        from commonplace.specialist import Specialist

        return Specialist(self)

    def consolidate(
        self,
        agents: Sequence[str] | None = None,
        dry_run: bool = False,
        *,
        rate_limit: int | None = None,
        confidence: ConfidenceConfig | None = None,
        golden: str | Path | None = None,
    ) -> RunReport:
        """Run background agents over this namespace: decay, cluster, merge, promote, relations, in this order.

        They act if their confidence is high and otherwise file an issue in the ledger. `undo_consolidation` undoes the
        change of an issue or a whole run.

        Args:
            agents: which ones; default: all.
            dry_run: return what a run would do, and change nothing.
            rate_limit: maximum operations a minute over all processes; 0 is unlimited; default: setting
                consolidation.rate_limit.
            confidence: thresholds to act at; default: from the settings.
            golden: a file of golden queries, JSON lines with `query` and `relevant` (ids or paths), besides those of
                `mark`. The run is rolled back if one loses a result.

        Raises:
            KeyboardInterrupt: the run was stopped; a note on the exception says how to undo what was done until then.
        """
        from commonplace.consolidation.runner import RunOptions, agents_of
        from commonplace.consolidation.runtime import ConfidenceConfig

        if confidence is not None and not isinstance(confidence, ConfidenceConfig):
            raise UsageError(f"confidence is {confidence!r:.80}", remedy="give a ConfidenceConfig")
        options = RunOptions(
            agents_of(agents), validate.boolean("dry_run", dry_run), self._rate(rate_limit), confidence
        )
        return self._consolidation_api.consolidate(options, golden)

    def process_issue(self, issue: str, dry_run: bool = False, *, rate_limit: int | None = None) -> RunReport:
        """Apply what an issue proposes, whatever the confidence, and close it.

        On failure the issue is blocked with the error, and no memory is changed.

        Raises:
            NotFoundError: there is no such open issue, or one of its memories no longer exists.
            UsageError: no agent filed the issue, or its proposal is not an action of that agent.
        """
        from commonplace.consolidation.runner import RunOptions, process

        validate.reject_invalid_id(issue)
        options = RunOptions(dry_run=validate.boolean("dry_run", dry_run), rate_limit=self._rate(rate_limit))
        self._runtime.before_call()
        return process(self, issue, options)

    def undo_consolidation(self, id: str) -> Undone:  # noqa: A002 - the name of the field
        """Undo the change of an issue, or all remaining changes of a run, in one transaction.

        Raises:
            NotFoundError: there is no such issue or run, or everything of it was undone already.
            UsageError: a later change depends on it, or one of its memories was changed since.
        """
        from commonplace.consolidation.undo import undo

        validate.short_text("id", id)
        self._runtime.before_call()
        return undo(self.consolidation_runtime(), id)

    def unmerge(self, id: str) -> Undone:  # noqa: A002 - the name of the field
        """Undo the merge that made a memory; its sources are restored exactly.

        Raises:
            NotFoundError: the memory was not made by a merge, or the merge was undone already.
            UsageError: a later change depends on it, or one of its memories was changed since.
        """
        from commonplace.consolidation.undo import undo_merge

        validate.reject_invalid_id(id)
        self._runtime.before_call()
        return undo_merge(self.consolidation_runtime(), id)

    def consolidation_status(self, agent: str | None = None, *, rate_limit: int | None = None) -> ConsolidationStatus:
        """Count the issues that are pending, in progress and blocked, and the operations left this minute."""
        from commonplace.consolidation.runner import status_of

        if agent is not None:
            validate.one_of("agent", agent, AGENTS)
        return status_of(self.consolidation_runtime(), agent, self._rate(rate_limit))

    def consolidation_runs(self, limit: int = 20) -> list[ConsolidationRun]:
        """Return recent runs that changed, proposed or failed at something, newest first.

        Dry runs are not recorded.

        Args:
            limit: 1–1000.
        """
        from commonplace.consolidation.runner import KEPT, latest

        validate.int_in("limit", limit, 1, KEPT)
        self._runtime.before_call()
        return latest(self.consolidation_runtime(), limit)

    def consolidation_changes(self, run: str) -> Sequence[ConsolidationChange]:
        """Return the changes of a run in order. `undo_consolidation` takes the issue of one."""
        from commonplace.consolidation.runner import changes

        validate.short_text("run", run)
        self._runtime.before_call()
        return changes(self.consolidation_runtime(), run)

    def _rate(self, rate_limit: int | None) -> int:
        default_limit = self.settings.consolidation.rate_limit
        return default_limit if rate_limit is None else validate.int_in("rate_limit", rate_limit, 0, MAX_RATE_LIMIT)

    def health(self, golden: str | Path | None = None) -> Health:
        """Count the memories of this namespace and list what needs attention. It changes nothing.

        Golden queries that `mark` made are asked too.

        Args:
            golden: a file of further golden queries, as in `consolidate`.
        """
        return self._consolidation_api.health(golden)

    def golden_queries(self) -> list[GoldenQuery]:
        """Return the golden queries that `mark` made, oldest first."""
        return self._consolidation_api.golden_queries()

    def mark(self, query: str, id: str, verdict: Verdict = "right") -> GoldenQuery:  # noqa: A002
        """Say whether a memory is a right result of a query, and so make a golden query.

        A golden query is an issue of the ledger: exported with it, closed like any issue, and erased with each memory
        that it names.

        Args:
            query: the query as it was asked; secrets are replaced.
            verdict: "right": the query must find the memory among its first ten hits; "wrong": it must not show it;
                "none": remove the mark.
        """
        from commonplace.health.golden import mark
        from commonplace.ledger.rules import Doer

        validate.reject_invalid_id(id)
        validate.one_of("verdict", verdict, VERDICTS)
        query_text = validate.label("query", query)
        self._runtime.before_call()
        with self._runtime.store.change_memories(self.namespace) as change:
            return mark(change, query_text, id, verdict, Doer(_person(), self._runtime.now()))

    def consolidation_runtime(self) -> ConsolidationRuntime:
        """Return what a consolidation agent of your own works with."""
        return self._consolidation_api.consolidation_runtime()

    @made_once
    def ledger(self) -> Ledger:
        """The issues of this namespace, in the store or, if the settings say so, in beads.

        Raises:
            UsageError: the settings name beads, and its program or database is missing.
        """
        if self.settings.ledger.backend == "bd":
            from commonplace.ledger.bd import open_bd

            return open_bd(self.settings.ledger.bd, (self.project or Path.cwd()).absolute())
        from commonplace.ledger.ledger import Ledger

        return Ledger(self._runtime.store, self.namespace, self._runtime.now, _person())

    @made_once
    def tokens(self) -> Tokens:
        """The access tokens of this store, by which a server knows who may do what."""
        from commonplace.engine.tokens import Tokens

        return Tokens(self._runtime)

    @made_once
    def answers(self) -> Answers:
        """What a server answered in this namespace to requests with an idempotency key."""
        from commonplace.memory.idempotency import Answers

        return Answers(self._runtime.store, self.namespace, self._runtime.now)

    def sync(self, *, accept: str | Path | None = None) -> SyncReport:
        """Synchronize the memories of this namespace with their Markdown pages.

        The tier `short` is in `memory/YYYY-MM-DD.md`, the tier `long` in `MEMORY.md`. Edits of these pages are
        imported: an edited entry is a new version, a new note a new memory, and a removed entry archives its memory. If
        both sides changed, the page gets the store's version, and the other is kept in a conflict file. With the
        setting memory.mirror this happens automatically, at the next call and soon after a write; pages that somebody
        has just saved wait then.

        A page that looks damaged, because it has NUL characters, breaks off, or lacks many entries at once, archives
        nothing: it is written again from the store, and the damaged one is kept in a file beside it.

        Args:
            accept: import this page, or the file in which it was kept, as it is.

        Raises:
            NotFoundError: `accept` names neither a page nor a damaged one that was kept.
            UsageError: the file that it names has NUL characters.
            StoreBusyError: another process held the pages for more than a minute.
            StoreError: the store cannot be written.
        """
        if self._runtime.store.is_on_server:
            raise StoreError(
                f"the store {self._runtime.store.place} has no directory for Markdown pages",
                remedy="keep pages in a store of your own, and move memories by `commonplace export` and `import`",
            )
        return self._runtime.journal.sync(None if accept is None else validate.path_value("accept", accept))

    def forget(
        self,
        id: str | Sequence[str] | None = None,  # noqa: A002 - the name of the field
        *,
        tag: str | None = None,
        source: str | None = None,
        session: str | None = None,
        path: str | Path | None = None,
        agent: str | None = None,
        dry_run: bool = False,
    ) -> ForgetReceipt:
        """Delete memories, an artifact or an agent's knowledge with every copy, and verify it.

        This includes every version, live or archived, with passages, vectors, links, Markdown and log lines, memories
        that were derived from it, and archived ones that it was merged from; others that were merged with it become
        active again. Deleting an episode deletes what only it supports in the graph, deleting an entity every fact
        about it. Then every file of the store is searched for the words. Files that another process holds open are
        listed as waiting, and finished by `doctor`. Only a backup can bring anything back.

        Args:
            id: one id or several, of memories, artifacts, documents, knowledge, episodes, entities or facts.
            tag, source, session: of memories and of documents that are not files.
            path: an indexed file, which itself stays and is indexed again unless ignored.
            agent: all knowledge of this agent, deleted or not, and its context.
            dry_run: return what would be deleted, and change nothing.

        Raises:
            NotFoundError: nothing matches. Nothing was changed.
            StoreBusyError: another process held the store, or was deleting, for too long.
            UsageError: not exactly one of `id`, `tag`, `source`, `session`, `path`, `agent` is given, or one is empty.
        """
        selectors = {"id": id, "tag": tag, "source": source, "session": session, "path": path, "agent": agent}
        return self._erasure_api.forget(self._erasure_api.read_request(selectors), dry_run=dry_run)

    def forget_namespace(self, name: str, *, confirm: str, dry_run: bool = False) -> ForgetReceipt:
        """Delete a namespace with all it holds, and verify it.

        Args:
            confirm: the name once more.

        Raises:
            UsageError: the two names differ. Nothing was changed.
        """
        from commonplace.erasure.erase import forget_namespace

        if name != confirm:
            raise UsageError(
                f"the namespace is {name!r} and what confirms it is {confirm!r}; nothing was forgotten",
                remedy="give its exact name twice",
            )
        receipt = forget_namespace(self._erasure_api.erasure_runtime(), name, dry_run=dry_run)
        if not dry_run and name == self.namespace and self._runtime.has_ultra:
            in_process = self._runtime.ultra
            in_process.erase([memory.owner.id for memory in in_process.all(Selection())])
        return receipt

    def gc(self, older_than_days: float | None = None, *, dry_run: bool = False) -> ForgetReceipt:
        """Delete what was archived long ago, with one receipt.

        Live memories, and those derived from an archived one, stay. If nothing is old enough, the receipt has no id and
        is not kept.

        Args:
            older_than_days: 0–36,500; default: setting memory.gc_after, 30.
        """
        from commonplace.erasure.select import EraseRequest

        days = self.settings.memory.gc_after if older_than_days is None else older_than_days
        if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= MAX_DAYS:
            raise UsageError(f"older_than_days is {days!r}", remedy=f"give a number from 0 to {MAX_DAYS:,.0f}")
        return self._erasure_api.forget(EraseRequest(archived_by=self._runtime.now() - days * DAY_S), dry_run=dry_run)

    def receipts(self) -> list[ForgetReceipt]:
        """Return the receipts of past deletions in this namespace, oldest first."""
        from commonplace.erasure.receipt import RECEIPT, receipt_of
        from commonplace.store.schema import WHOLE_STORE

        store = self._runtime.store
        # The receipt of a namespace's own deletion outlives it, among the notes of the store as a whole.
        notes = [*store.notes(self.namespace, RECEIPT), *store.notes(WHOLE_STORE, RECEIPT)]
        matches = [receipt for note in notes if (receipt := receipt_of(note)).namespace == self.namespace]
        return sorted(matches, key=lambda receipt: (receipt.at, receipt.id))

    def backup(self, target: str | Path) -> BackupReport:
        """Write a complete, verified copy of the store to a new file while others use the store.

        It holds every namespace, every version and the Markdown, but not the index, which can be rebuilt, nor logs,
        settings and `ultra` memories. `commonplace.restore` makes a store of it. The store remembers the file, so that
        the receipt of a later deletion can name it: the backup still has what is deleted.

        Args:
            target: the file, in an existing directory; it appears only when complete.

        Raises:
            StoreDamagedError: the store is damaged, or the backup could not be verified.
            StoreError: the file exists already, or cannot be written.
        """
        from commonplace.exchange.backup import back_up

        file = validate.path_value("target", target)
        self._runtime.before_call()
        now, progress = self._runtime.now(), self._runtime.progress
        return back_up(self._runtime.store, self.directory, file, now=now, progress=progress)

    def backups(self) -> list[KnownBackup]:
        """Return the known backups of this store and the stores that it replaced, newest first."""
        from commonplace.exchange.backup import known_backups

        return known_backups(self._runtime.store)

    def export(self, target: str | Path | TextIO, *, kinds: Sequence[str] | None = None) -> ExportReport:
        """Write this namespace as JSON lines, from one state of the store.

        It contains memories with all versions and links, other owners with their passages, and the graph with episodes,
        entities, facts and their history. The same content gives the same bytes.

        Args:
            target: a new file, which appears only when complete, or a text stream.
            kinds: "artifact", "memory", "knowledge", "graph", "ledger"; default: all.

        Raises:
            StoreError: the file exists already, or cannot be written.
        """
        from commonplace.exchange.export import export
        from commonplace.exchange.items import EXPORTED

        owner_kinds = [validate.one_of("kinds", kind, EXPORTED) for kind in validate.labels("kinds", kinds or ())]
        output = target if callable(getattr(target, "write", None)) else validate.path_value("target", target)
        self._runtime.before_call()
        store, progress = self._runtime.store, self._runtime.progress
        return export(store, self.namespace, output, directory=self.directory, kinds=owner_kinds, progress=progress)  # type: ignore[arg-type] # a stream, or else a path

    def import_(
        self,
        path: str | Path,
        *,
        format: str = "auto",  # noqa: A002 - the name of the option
        dry_run: bool = False,
        on_conflict: str = "refuse",
        skip_problems: bool = False,
    ) -> ImportReport:
        """Import an export of Commonplace, or the files of another system.

        Everything is checked first, as `remember` checks it, and nothing is written if anything is refused. An item
        that the store already has, with the same id and content, stays as it is: importing twice changes nothing, and
        importing again completes an interrupted import. The same holds for entities and facts of which the store knows
        at least as much. Ids, versions, times, positions in sessions, tiers, status and use are kept; passages and
        vectors are made again, and secrets replaced. An export of Commonplace includes its graph. Memories of another
        system feed the graph as by `remember`, and its relations as by `graph.add_triplet`.

        Args:
            format: "commonplace" or another system; "auto" recognises it.
            dry_run: check everything, and write nothing.
            on_conflict: if something else has the same id: "refuse" everything, "skip" it, or "replace" what is here
                (for a memory, by a new version).
            skip_problems: leave out and list what cannot be stored, instead of refusing everything.

        Raises:
            StoreVersionError: a newer Commonplace wrote the export.
            UsageError: the file is damaged, truncated or of an unknown format, or one of its items cannot be stored or
                conflicts with another one. The message says which, and where. Nothing was written.
        """
        from commonplace.exchange.import_ import ON_CONFLICT

        validate.one_of("on_conflict", on_conflict, ON_CONFLICT)
        return self._import(path, format, on_conflict=on_conflict, skip_problems=skip_problems, dry_run=dry_run)

    def _import(
        self, path: str | Path, format_: str, *, has_graph: bool = True, dry_run: bool = False, **options: Any
    ) -> ImportReport:
        from commonplace.exchange.import_ import ImportRuntime, import_items
        from commonplace.exchange.read import OWN, source_of

        runtime, file = self._runtime, validate.path_value("path", path).expanduser()
        max_bytes = self.settings.memory.max_bytes
        source = source_of(file, format_, kinds=runtime.kinds, now=runtime.now(), max_bytes=max_bytes)
        runtime.before_call()
        destination, now = runtime.destination, runtime.now()
        # Our own export brings its graph along; the memories of other systems are read for facts.
        has_graph = has_graph and source.format == OWN
        into = ImportRuntime(
            runtime.store, self.namespace, destination, now, runtime.graph_on, runtime.feed, has_graph=has_graph
        )
        report = import_items(source, into, dry_run=dry_run, progress=runtime.progress, **options)
        if not dry_run:
            runtime.backlog.drain(runtime.progress)
            runtime.tokens.release()
            runtime.maintenance.update_index()
            runtime.after_write()
        return report

    def move_memories(self, to: Engine) -> int:
        """Move all memories of this namespace into another store; return how many.

        They are deleted here once the other store has them; after an interruption call it again. A memory that is
        changed meanwhile stays here as well. The memories feed the other store's graph.

        Raises:
            StoreBusyError: another process held one of the stores for too long.
            UsageError: the other store has a different memory with one of the ids. Nothing was moved.
        """
        from commonplace.store.drafts import draft

        def versions() -> dict[str, int]:
            return {row.owner.id: row.number for row in self._runtime.store.memories(self.namespace, Selection())}

        before = versions()
        if not before:
            return 0
        with draft(self.directory, to.directory / "moved") as temporary:
            path = temporary.with_name(f"{temporary.name}.jsonl")
            self.export(path, kinds=["memory"])
            to._import(path, "auto", has_graph=False)
        ids = [id_ for id_, number in versions().items() if before.get(id_) == number]
        if ids:
            self.forget(ids)
        return len(ids)

    def index_status(self) -> IndexStatus:
        """Return what the store and its index hold, and their sizes."""
        return self._runtime.maintenance.status()

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces, sorted."""
        # The notes of the store as a whole are in a namespace without a name.
        return [name for name in self._runtime.store.namespaces() if name]

    def export_index(self) -> dict[str, Any]:
        """Return the artifacts in the form of the auto-retrieval contract's artifact index."""
        from commonplace.engine.index_api import artifact_index

        with self._runtime.store.snapshot():
            return artifact_index(self._runtime.store, self.namespace)

    def doctor(self, *, mend: bool = True, secrets: bool = False) -> DoctorReport:
        """Check store, index and model files, and repair what can be repaired.

        Args:
            secrets: also search everything stored for secrets, in all namespaces and on Markdown pages; with `mend`
                each is replaced and every copy removed.
        """
        from commonplace.engine.doctor import Doctor

        return Doctor(self).examine(mend=mend, secrets=secrets)

    def list(  # noqa: PLR0913 - the options of a facade
        self,
        *,
        tiers: Sequence[str] = (),
        statuses: Sequence[str] = ("active", "promoted"),
        tags: Sequence[str] = (),
        sources: Sequence[str] = (),
        sessions: Sequence[str] = (),
        categories: Sequence[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        min_trust: float = 0.0,
        order: str = "newest",
        limit: int = 50,
        offset: int = 0,
    ) -> Memories:
        """Return memories, newest first by their own times; ties by id.

        Args:
            statuses: "active", "promoted", "archived"; an empty list means all.
            since, until: half-open, on the memories' own times.
            order: "newest", "used" (most used), "idle" (longest unused), "stored" (oldest stored), "changed" (latest
                version), "archived" (latest archived).
            limit: 1–10,000.
        """
        selection = self._selection(tiers, statuses, tags, sources, sessions, categories, since, until, min_trust)
        page = replace(
            selection,
            order=validate.one_of("order", order, LIST_ORDERS),  # type: ignore[arg-type]
            limit=validate.int_in("limit", limit, 1, MAX_LISTED),
            offset=validate.int_in("offset", offset, 0, MAX_OFFSET),
        )
        runtime = self._runtime
        runtime.before_call()
        # Memories of this process are merged in, so the pages before this one are read too.
        first = replace(page, offset=0, limit=page.offset + limit)
        ultra = runtime.ultra.all(first) if runtime.has_ultra else []
        if not ultra:
            return [runtime.view(stored) for stored in runtime.store.memories(self.namespace, page)]
        memories = sorted([*runtime.store.memories(self.namespace, first), *ultra], key=first.key)
        return [runtime.view(stored) for stored in memories[page.offset : first.limit]]

    def memory_facets(  # noqa: PLR0913 - the options of a facade
        self,
        *,
        tiers: Sequence[str] = (),
        statuses: Sequence[str] = ("active", "promoted"),
        tags: Sequence[str] = (),
        sources: Sequence[str] = (),
        sessions: Sequence[str] = (),
        categories: Sequence[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        min_trust: float = 0.0,
    ) -> MemoryFacets:
        """Count the memories that `list` would return, by tier, status, category, source, session, trust and tag.

        Args:
            statuses, since, until: as in `list`.
        """
        selection = self._selection(tiers, statuses, tags, sources, sessions, categories, since, until, min_trust)
        self._runtime.before_call()
        stores = [self._runtime.store, *([self._runtime.ultra.store] if self._runtime.has_ultra else [])]
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for store in stores:
            for name, values in store.memory_facets(self.namespace, selection).items():
                counts[name].update(values)
        by_field = {name: dict(sorted(values.items())) for name, values in counts.items()}
        return MemoryFacets(counts["status"].total(), by_field)

    def memory_fading(self, id: str, days: int = 30, past: bool = False) -> Sequence[Fading]:  # noqa: A002
        """Return the retention of a memory on each day after its last use, if it is not used again.

        Args:
            days: 1–3,650.
            past: begin when it was stored.
        """
        record, policy = self._runtime.get(id).record, self._runtime.retention
        validate.int_in("days", days, 1, MAX_FADING_DAYS)
        times = [(record, record.last_used + day * DAY_S) for day in range(days + 1)]
        uses = record.uses or (record.last_used,)
        # A correction counts as a use for the fading, but is not among the uses.
        moments = sorted({record.born_at, *uses, record.last_used}, reverse=True)
        for later, earlier in pairwise(moments) if past else ():
            count = record.use_count - sum(use >= later for use in uses)
            then = replace(record, last_used=earlier, use_count=max(0, count))
            steps = (earlier + (later - earlier) * step / PAST_STEPS for step in range(PAST_STEPS + 1))
            times = [*((then, moment) for moment in steps), *times]
        return [Fading(moment_of(moment), policy.retention(then, moment)) for then, moment in times]

    def memory_uses(self, id: str, limit: int = 50) -> Sequence[MemoryUse]:  # noqa: A002 - the name of the field
        """Return when a memory was found and used, newest first.

        Hits are read from the retrieval log, as far as it goes back; the memory itself records its last uses.

        Args:
            limit: 1–1,000.

        Raises:
            StoreError: the log cannot be read.
        """
        validate.int_in("limit", limit, 1, MAX_USES)
        stored = self._runtime.get(id)
        return self._retrievals.uses(id, stored.record.uses)[:limit]

    def _selection(  # noqa: PLR0913, PLR0917 - the filters of a list
        self,
        tiers: Sequence[str],
        statuses: Sequence[str],
        tags: Sequence[str],
        sources: Sequence[str],
        sessions: Sequence[str],
        categories: Sequence[str],
        since: Moment | None,
        until: Moment | None,
        min_trust: float,
    ) -> Selection:
        now = self._runtime.now()
        begin, end = validate.moment("since", since, now), validate.moment("until", until, now)
        if begin is not None and end is not None and begin > end:
            names = ("since", "until")
            raise UsageError(f"since is {iso(begin)}, after until, {iso(end)}", remedy="swap them", parameters=names)
        return Selection(
            tiers=tuple(validate.one_of("tiers", tier, TIERS) for tier in validate.labels("tiers", tiers)),  # type: ignore[misc]
            statuses=tuple(
                validate.one_of("statuses", status, STATUSES)  # type: ignore[misc]
                for status in validate.labels("statuses", statuses)
            ),
            tags=validate.labels("tags", tags),
            sources=validate.texts("sources", sources),
            sessions=validate.texts("sessions", sessions),
            categories=tuple(category.lower() for category in validate.labels("categories", categories)),
            since=begin,
            until=end,
            min_trust=validate.fraction("min_trust", min_trust),
        )


def _person() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"  # in a container a user may have a number and no name
