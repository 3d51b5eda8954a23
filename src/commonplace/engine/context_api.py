"""Put together what a model should know: for a task, at the start of a session, or unasked in a conversation."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.engine.runtime import Service
from commonplace.errors import StoreError
from commonplace.memory.injections import add_injected, injected
from commonplace.memory.usage import injected_hits
from commonplace.memory.validate import fraction, int_in
from commonplace.search.context import (
    POSSIBLY_RELATED,
    Context,
    Form,
    assemble,
    bare_headings,
    context_of,
    distinct,
    of_the_first_owners,
    one_line_artifacts,
    with_text_under,
)
from commonplace.search.hits import is_likely, memory_hit, without_secrets
from commonplace.search.request import MAX_LIMIT, Wishes, chosen
from commonplace.search.result import SearchResult, joined, reference
from commonplace.types import KINDS, Kind, Selection, StoredMemory, Tier

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What a context is for, checked.

    Attributes:
        limit: of passages; None where nobody says.
        tags: None leaves them to the agent's strategy, none of them lifts its filter.
    """

    task: str
    max_tokens: int
    wishes: Wishes
    limit: int | None
    kinds: tuple[Kind, ...]
    tags: tuple[str, ...] | None
    min_trust: float

    @classmethod
    def of(
        cls,
        task: str,
        max_tokens: int,
        wishes: Wishes,
        limit: int | None,
        kinds: Sequence[Kind] | None,
        tags: Sequence[str] | None,
        min_trust: float,
    ) -> Asked:
        """Check what is asked; a search checks limit and kinds."""
        tokens, some_kinds = int_in("max_tokens", max_tokens, MIN_TOKENS, MAX_TOKENS), chosen("kinds", kinds)
        some_tags = None if tags is None else chosen("tags", tags)
        return cls(task, tokens, wishes, limit, some_kinds, some_tags, fraction("min_trust", min_trust))  # type: ignore[arg-type]


class ContextApi(Service):
    """Puts together what a model should know. Safe for threads."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine._runtime)
        self._search = engine.search
        own = self._settings.context
        self._form = Form(metadata=own.metadata == "on", references=own.references == "on")

    def context(self, asked: Asked, weak: int | None, touch: bool) -> Context:
        if not asked.task.strip():
            return self._counted(self._opening(asked), touch)
        result = self._found(asked, asked.kinds)
        few = POSSIBLY_RELATED if weak is None else int_in("weak", weak, 0, MAX_LIMIT)
        has_floor = asked.wishes.min_score is not None or self._settings.search.min_score is not None
        return self._counted(self._made(result, asked, None if has_floor else few), touch)

    def injection(self, asked: Asked, conversation: str, touch: bool) -> Context:
        store, namespace, now = self._store, self._namespace, self._runtime.now()
        known = injected(store, namespace, conversation, now) if conversation else set()
        if not asked.task.strip():
            made = self._opening(asked, known)
        else:
            wishes = asked.wishes
            result = self._found(asked, asked.kinds or (("memory", "artifact") if wishes.agent else ("memory",)))
            if not (result.hits or result.degraded):
                result = replace(result, notices=wishes.notices)  # why nothing is there, nobody asked
            likely = {hit.id for hit in result.hits if is_likely(hit)}
            # What may have overtaken something likely goes with it: the older alone would mislead.
            likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
            new = [hit for hit in result.hits if hit.id in likely and hit.owner_id not in known]
            made = self._made(replace(result, hits=one_line_artifacts(new)), asked, POSSIBLY_RELATED)
        ids = {hit.owner_id for hit in made.hits}
        if conversation and ids and not store.is_read_only:
            try:
                add_injected(store, namespace, conversation, ids, now)
            except StoreError as error:  # better said twice than not at all
                _log.warning("what was injected was not noted: %s", error)
        return self._counted(made, touch)

    def _counted(self, made: Context, touch: bool) -> Context:
        if touch:
            self._runtime.count_uses(injected_hits(made.hits))
        return made

    def _made(self, result: SearchResult, asked: Asked, weak: int | None) -> Context:
        if bare := bare_headings(result):
            asked_for = [number for head in bare for number in (head, head + 1)]
            result = with_text_under(result, bare, self._store.passages(self._namespace, asked_for))
        count = self._runtime.tokens.count_tokens
        return context_of(result, max_tokens=asked.max_tokens, count=count, form=self._form, weak=weak)

    def _find(self, asked: Asked, limit: int, kinds: Sequence[Kind], agent: str | None = None) -> SearchResult:
        return self._search(
            asked.task,
            limit,
            kinds,
            tags=asked.tags,
            min_score=asked.wishes.min_score,
            min_trust=asked.min_trust,
            per_owner=PASSAGES_TOGETHER,
            agent=agent,
        )

    def _found(self, asked: Asked, kinds: Sequence[Kind]) -> SearchResult:
        """Return what is found for a task: by an agent's strategy, and what memories and knowledge say of it.

        Types, phases and tags of a strategy are those of artifacts: what is remembered has none, and is never left out
        for that.
        """
        wishes, limit = asked.wishes, asked.limit
        if not wishes.agent:
            return self._find(asked, PASSAGES if limit is None else limit, kinds)
        most = wishes.limit or PASSAGES
        # Twice as many as there is room for: some are passed over.
        passages = min(MAX_LIMIT, 2 * most * PASSAGES_TOGETHER) if limit is None else limit
        others = [kind for kind in kinds or KINDS if kind != "artifact"]
        counts = self._store.counts(self._namespace)
        if not kinds and not (counts["memories"] or counts["knowledge"] or self._runtime.has_ultra):
            others = []
        found = [] if kinds and "artifact" not in kinds else [self._find(asked, passages, ["artifact"], wishes.agent)]
        if others:
            found.append(self._find(asked, passages, others))
        result = joined(found, passages)
        hits = result.hits
        if limit is None:
            hits = of_the_first_owners(distinct(hits), most)
        notices = tuple(dict.fromkeys((*wishes.notices, *result.notices)))
        return replace(result, hits=hits, agent=wishes.agent, notices=notices)

    def _opening(self, asked: Asked, known: Collection[str] = ()) -> Context:
        """Return the context of a session that has no task yet."""
        limit = int_in("limit", PASSAGES if asked.limit is None else asked.limit, 1, MAX_PASSAGES)
        self._runtime.before()
        now, policy = self._runtime.now(), self._runtime.retention
        tiers: tuple[tuple[Tier, ...], ...] = (("long",), ("short", "medium"))
        kept = (  # one by one: there may be any number of them
            memory_hit(stored, min(1.0, policy.raw(stored.record, now)))
            for each in (tiers if not asked.kinds or "memory" in asked.kinds else ())
            for stored in self._first(each, asked.tags or (), limit, now)
            if stored.record.trust >= asked.min_trust and stored.owner.id not in known
        )
        found = distinct(without_secrets(list(islice(kept, limit))))
        count = self._runtime.tokens.count_tokens
        text, hits = assemble(found, max_tokens=asked.max_tokens, count=count, form=self._form)
        named, left_out = tuple(reference(hit) for hit in hits), len(found) - len(hits)
        agent, notices = asked.wishes.agent, asked.wishes.notices
        return Context("", text, named, hits, count(text), left_out=left_out, agent=agent, notices=notices)

    def _first(self, tiers: tuple[Tier, ...], tags: tuple[str, ...], limit: int, now: float) -> list[StoredMemory]:
        """Return live memories: long ones the most present first, others the newest first."""
        is_long, raw = tiers == ("long",), self._runtime.retention.raw
        wanted = Selection(tiers=tiers, tags=tags, statuses=("active", "promoted"), limit=None if is_long else limit)
        found = self._store.memories(self._namespace, wanted)
        if is_long:
            found.sort(key=lambda each: (-raw(each.record, now), each.owner.id))
        return found
