"""Assemble what a model should know: for a task, at the start of a session, or unasked in a conversation."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import replace
from commonplace.engine.runtime import EngineApi
from commonplace.errors import StoreError
from commonplace.memory.injections import add_injected, read_injected
from commonplace.memory.validate import fraction, int_in
from commonplace.search import context as assembly
from commonplace.search.request import MAX_LIMIT, SearchDefaults, chosen
from commonplace.search.result import SearchResult, is_likely, joined, memory_hit, reference, without_secrets
from commonplace.types import KINDS, Kind, Selection, StoredMemory

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine

_log = logging.getLogger(__name__)

MIN_TOKENS, MAX_TOKENS = 64, 1_000_000
PROMPT_TOKENS, START_TOKENS = 500, 2_000
"""Tokens that a hook injects at a prompt and at the start of a session; clients cut off after 10,000 characters."""
MAX_PASSAGES: Final = 1_000
PASSAGES: Final = 30
"""Default maximum number of passages in a context."""
PASSAGES_TOGETHER: Final = 3
"""Maximum number of passages of one artifact or memory in a context."""


class ContextApi(EngineApi):
    """Assembles the context of one task. It validates its arguments, except limit and kinds, which a search validates.

    Args:
        task: "" is the start of a session.
        limit: maximum number of passages; None is the default.
        tags: None leaves them to the agent's strategy; an empty list lifts its filter.
    """

    def __init__(
        self,
        engine: Engine,
        task: str,
        max_tokens: int,
        defaults: SearchDefaults,
        limit: int | None,
        kinds: Sequence[Kind] | None,
        tags: Sequence[str] | None,
        min_trust: float,
    ) -> None:
        super().__init__(engine._runtime)
        self._search, self._task, self._defaults, self._limit = engine.search, task, defaults, limit
        self._max_tokens = int_in("max_tokens", max_tokens, MIN_TOKENS, MAX_TOKENS)
        self._kinds: tuple[Kind, ...] = chosen("kinds", kinds)  # type: ignore[assignment] # a search checks them
        self._tags = None if tags is None else chosen("tags", tags)
        self._min_trust = fraction("min_trust", min_trust)
        options = self._settings.context
        self._form = assembly.Form(metadata=options.metadata == "on", references=options.references == "on")

    def context(self, weak: int | None) -> assembly.Context:
        if not self._task.strip():
            return self._opening()
        result = self._retrieve(self._kinds)
        few = assembly.POSSIBLY_RELATED if weak is None else int_in("weak", weak, 0, MAX_LIMIT)
        has_floor = self._defaults.min_score is not None or self._settings.search.min_score is not None
        return self._pack(result, None if has_floor else few)

    def injection(self, conversation: str) -> assembly.Context:
        store, namespace, now = self._store, self._namespace, self._runtime.now()
        injected_ids = read_injected(store, namespace, conversation, now) if conversation else set()
        if not self._task.strip():
            context = self._opening(injected_ids)
        else:
            defaults = self._defaults
            result = self._retrieve(self._kinds or (("memory", "artifact") if defaults.agent else ("memory",)))
            if not (result.hits or result.degraded):
                result = replace(result, notices=defaults.notices)  # nobody asked why nothing was found
            likely_ids = {hit.id for hit in result.hits if is_likely(hit)}
            # A memory that may have overtaken a likely one goes with it: the older alone would mislead.
            likely_ids |= {newer for newer, older in result.trace.moved.items() if older in likely_ids}
            new_hits = [hit for hit in result.hits if hit.id in likely_ids and hit.owner_id not in injected_ids]
            context = self._pack(replace(result, hits=assembly.one_line_artifacts(new_hits)), assembly.POSSIBLY_RELATED)
        ids = {hit.owner_id for hit in context.hits}
        if conversation and ids and not store.is_read_only:
            try:
                add_injected(store, namespace, conversation, ids, now)
            except StoreError as error:  # better said twice than not at all
                _log.warning("what was injected was not noted: %s", error)
        return context

    def _pack(self, result: SearchResult, weak: int | None) -> assembly.Context:
        result = assembly.with_text_under(result, self._store)
        count = self._runtime.tokens.count_tokens
        return assembly.context_of(result, max_tokens=self._max_tokens, count=count, form=self._form, weak=weak)

    def _retrieve(self, kinds: Sequence[Kind]) -> SearchResult:
        """Return the hits for a task: artifacts by the agent's strategy, if any, and memories and knowledge.

        A strategy's types, phases and tags filter artifacts alone: they never leave out a memory or knowledge item.
        """
        defaults, limit = self._defaults, self._limit
        options: dict[str, Any] = {"tags": self._tags, "min_score": defaults.min_score, "min_trust": self._min_trust}

        def find(limit: int, kinds: Sequence[Kind], **options_: Any) -> SearchResult:
            return self._search(self._task, limit, kinds, per_owner=PASSAGES_TOGETHER, **options, **options_)

        if not defaults.agent:
            return find(PASSAGES if limit is None else limit, kinds)
        owner_limit = defaults.limit or PASSAGES
        # Twice as many as there is room for, since some are dropped.
        passages = min(MAX_LIMIT, 2 * owner_limit * PASSAGES_TOGETHER) if limit is None else limit
        other_kinds = [kind for kind in kinds or KINDS if kind != "artifact"]
        counts = self._store.counts(self._namespace)
        if not kinds and not (counts["memories"] or counts["knowledge"] or self._runtime.has_ultra):
            other_kinds = []
        results = [] if kinds and "artifact" not in kinds else [find(passages, ["artifact"], agent=defaults.agent)]
        if other_kinds:
            results.append(find(passages, other_kinds))
        result = joined(results, passages)
        hits = result.hits
        if limit is None:
            hits = assembly.of_the_first_owners(assembly.distinct(hits), owner_limit)
        notices = tuple(dict.fromkeys((*defaults.notices, *result.notices)))
        return replace(result, hits=hits, agent=defaults.agent, notices=notices)

    def _opening(self, injected_ids: Collection[str] = ()) -> assembly.Context:
        limit = int_in("limit", PASSAGES if self._limit is None else self._limit, 1, MAX_PASSAGES)
        self._runtime.before_call()
        now, policy = self._runtime.now(), self._runtime.retention
        live = Selection(tags=self._tags or (), statuses=("active", "promoted"))
        memories: list[StoredMemory] = []
        if not self._kinds or "memory" in self._kinds:
            memories = self._store.memories(self._namespace, replace(live, tiers=("long",)))
            memories.sort(key=lambda row: (-policy.raw(row.record, now), row.owner.id))
            memories += self._store.memories(self._namespace, replace(live, tiers=("short", "medium"), limit=limit))
        fit = [row for row in memories if row.record.trust >= self._min_trust and row.owner.id not in injected_ids]
        candidates = assembly.distinct(
            without_secrets([memory_hit(row, policy.retention(row.record, now)) for row in fit[:limit]])
        )
        count = self._runtime.tokens.count_tokens
        text, hits = assembly.assemble(candidates, max_tokens=self._max_tokens, count=count, form=self._form)
        refs, left_out = tuple(reference(hit) for hit in hits), len(candidates) - len(hits)
        agent, notices = self._defaults.agent, self._defaults.notices
        return assembly.Context("", text, refs, hits, count(text), left_out=left_out, agent=agent, notices=notices)
