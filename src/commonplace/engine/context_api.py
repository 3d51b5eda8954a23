"""Put together what a model should know: for a task, at the start of a session, or unasked in a conversation."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import replace
from commonplace.engine.runtime import Service
from commonplace.errors import StoreError
from commonplace.memory.injections import add_injected, injected
from commonplace.memory.validate import fraction, int_in
from commonplace.search import context as assembly
from commonplace.search.request import MAX_LIMIT, Wishes, chosen
from commonplace.search.result import SearchResult, is_likely, joined, memory_hit, reference, without_secrets
from commonplace.types import KINDS, Kind, Selection, StoredMemory

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine

_log = logging.getLogger(__name__)

MIN_TOKENS, MAX_TOKENS = 64, 1_000_000
PROMPT_TOKENS, START_TOKENS = 500, 2_000
"""What a hook injects at a prompt and at the start of a session; clients cut what is beyond ten thousand characters."""
MAX_PASSAGES: Final = 1_000
PASSAGES: Final = 30
"""How many passages are in a context at most, where nobody says."""
PASSAGES_TOGETHER: Final = 3
"""Of one artifact or memory, at most so many passages are in a context."""


class ContextApi(Service):
    """Puts together what a model should know for one task, which is checked here; a search checks limit and kinds.

    Args:
        task: "" is the start of a session.
        limit: of passages; None where nobody says.
        tags: None leaves them to the agent's strategy, none of them lifts its filter.
    """

    def __init__(
        self,
        engine: Engine,
        task: str,
        max_tokens: int,
        wishes: Wishes,
        limit: int | None,
        kinds: Sequence[Kind] | None,
        tags: Sequence[str] | None,
        min_trust: float,
    ) -> None:
        super().__init__(engine._runtime)
        self._search, self._task, self._wishes, self._limit = engine.search, task, wishes, limit
        self._max_tokens = int_in("max_tokens", max_tokens, MIN_TOKENS, MAX_TOKENS)
        self._kinds: tuple[Kind, ...] = chosen("kinds", kinds)  # type: ignore[assignment] # a search checks them
        self._tags = None if tags is None else chosen("tags", tags)
        self._min_trust = fraction("min_trust", min_trust)
        own = self._settings.context
        self._form = assembly.Form(metadata=own.metadata == "on", references=own.references == "on")

    def context(self, weak: int | None) -> assembly.Context:
        if not self._task.strip():
            return self._opening()
        result = self._found(self._kinds)
        few = assembly.POSSIBLY_RELATED if weak is None else int_in("weak", weak, 0, MAX_LIMIT)
        has_floor = self._wishes.min_score is not None or self._settings.search.min_score is not None
        return self._made(result, None if has_floor else few)

    def injection(self, conversation: str) -> assembly.Context:
        store, namespace, now = self._store, self._namespace, self._runtime.now()
        known = injected(store, namespace, conversation, now) if conversation else set()
        if not self._task.strip():
            made = self._opening(known)
        else:
            wishes = self._wishes
            result = self._found(self._kinds or (("memory", "artifact") if wishes.agent else ("memory",)))
            if not (result.hits or result.degraded):
                result = replace(result, notices=wishes.notices)  # why nothing is there, nobody asked
            likely = {hit.id for hit in result.hits if is_likely(hit)}
            # What may have overtaken something likely goes with it: the older alone would mislead.
            likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
            new = [hit for hit in result.hits if hit.id in likely and hit.owner_id not in known]
            made = self._made(replace(result, hits=assembly.one_line_artifacts(new)), assembly.POSSIBLY_RELATED)
        ids = {hit.owner_id for hit in made.hits}
        if conversation and ids and not store.is_read_only:
            try:
                add_injected(store, namespace, conversation, ids, now)
            except StoreError as error:  # better said twice than not at all
                _log.warning("what was injected was not noted: %s", error)
        return made

    def _made(self, result: SearchResult, weak: int | None) -> assembly.Context:
        result = assembly.with_text_under(result, self._store)
        count = self._runtime.tokens.count_tokens
        return assembly.context_of(result, max_tokens=self._max_tokens, count=count, form=self._form, weak=weak)

    def _found(self, kinds: Sequence[Kind]) -> SearchResult:
        """Return what is found for a task: by an agent's strategy, and what memories and knowledge say of it.

        Types, phases and tags of a strategy are those of artifacts: what is remembered has none, and is never left out
        for that.
        """
        wishes, limit = self._wishes, self._limit
        options: dict[str, Any] = {"tags": self._tags, "min_score": wishes.min_score, "min_trust": self._min_trust}

        def find(limit: int, kinds: Sequence[Kind], **more: Any) -> SearchResult:
            return self._search(self._task, limit, kinds, per_owner=PASSAGES_TOGETHER, **options, **more)

        if not wishes.agent:
            return find(PASSAGES if limit is None else limit, kinds)
        most = wishes.limit or PASSAGES
        # Twice as many as there is room for: some are passed over.
        passages = min(MAX_LIMIT, 2 * most * PASSAGES_TOGETHER) if limit is None else limit
        others = [kind for kind in kinds or KINDS if kind != "artifact"]
        counts = self._store.counts(self._namespace)
        if not kinds and not (counts["memories"] or counts["knowledge"] or self._runtime.has_ultra):
            others = []
        found = [] if kinds and "artifact" not in kinds else [find(passages, ["artifact"], agent=wishes.agent)]
        if others:
            found.append(find(passages, others))
        result = joined(found, passages)
        hits = result.hits
        if limit is None:
            hits = assembly.of_the_first_owners(assembly.distinct(hits), most)
        notices = tuple(dict.fromkeys((*wishes.notices, *result.notices)))
        return replace(result, hits=hits, agent=wishes.agent, notices=notices)

    def _opening(self, known: Collection[str] = ()) -> assembly.Context:
        limit = int_in("limit", PASSAGES if self._limit is None else self._limit, 1, MAX_PASSAGES)
        self._runtime.before()
        now, policy = self._runtime.now(), self._runtime.retention
        live = Selection(tags=self._tags or (), statuses=("active", "promoted"))
        memories: list[StoredMemory] = []
        if not self._kinds or "memory" in self._kinds:
            memories = self._store.memories(self._namespace, replace(live, tiers=("long",)))
            memories.sort(key=lambda each: (-policy.raw(each.record, now), each.owner.id))
            memories += self._store.memories(self._namespace, replace(live, tiers=("short", "medium"), limit=limit))
        fit = [each for each in memories if each.record.trust >= self._min_trust and each.owner.id not in known]
        found = assembly.distinct(
            without_secrets([memory_hit(each, policy.retention(each.record, now)) for each in fit[:limit]])
        )
        count = self._runtime.tokens.count_tokens
        text, hits = assembly.assemble(found, max_tokens=self._max_tokens, count=count, form=self._form)
        named, left_out = tuple(reference(hit) for hit in hits), len(found) - len(hits)
        agent, notices = self._wishes.agent, self._wishes.notices
        return assembly.Context("", text, named, hits, count(text), left_out=left_out, agent=agent, notices=notices)
