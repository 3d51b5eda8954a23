"""Put together what is worth knowing before a task, from a search and from what is kept long."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commonplace.engine.runtime import Runtime, Service
from commonplace.engine.search_api import Wishes, joined
from commonplace.errors import StoreError
from commonplace.memory.usage import injected_hits
from commonplace.memory.validate import int_in
from commonplace.search.hits import is_likely, memory_hit, without_secrets
from commonplace.search.request import MAX_LIMIT
from commonplace.search.result import SearchResult, reference
from commonplace.types import KINDS, Kind, Passage, Selection, StoredMemory, Tier

if TYPE_CHECKING:
    from commonplace.search.context import Context, Form

_log = logging.getLogger(__name__)

FEWEST_TOKENS, MOST_TOKENS = 64, 1_000_000
MOST_PASSAGES = 1_000
PROMPT_TOKENS, START_TOKENS = 500, 2_000
"""What a hook injects at a prompt and at the start of a session; clients cut what is beyond ten thousand characters."""
PASSAGES = 30
"""How many passages are in a context at most, where nobody says."""
PASSAGES_TOGETHER = 3
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


class ContextApi(Service):
    """Puts together what a model should know. Safe for threads."""

    def __init__(self, runtime: Runtime, search: Callable[..., SearchResult]) -> None:
        super().__init__(runtime)
        self._search = search

    def context(self, asked: Asked, weak: int | None) -> Context:
        from commonplace.search.context import POSSIBLY_RELATED, context_of, without_old_news

        wishes = asked.wishes
        if not asked.task.strip():
            made = self._opening(asked)
            self._runtime.count_uses(injected_hits(made.hits))
            return made
        if wishes.agent:
            result = self._found_for(asked, asked.kinds)
        else:
            result = self._find(asked, PASSAGES if asked.limit is None else asked.limit, asked.kinds)
            if asked.limit is None:
                result = replace(result, hits=without_old_news(result.hits))
        following = self._under_headings(result)
        count = self._runtime.tokens.count_tokens
        few = POSSIBLY_RELATED if weak is None else int_in("weak", weak, 0, MAX_LIMIT)
        taken = few if wishes.min_score is None and self._settings.search.min_score is None else None
        made = context_of(
            result, max_tokens=asked.max_tokens, count=count, form=self._form, following=following, weak=taken
        )
        self._runtime.count_uses(injected_hits(made.hits))
        return made

    def injection(self, asked: Asked, conversation: str) -> Context:
        from commonplace.memory.injections import add_injected, injected
        from commonplace.search.context import context_of, one_line_artifacts

        known = injected(self._store, self._namespace, conversation, self._runtime.now()) if conversation else set()
        if not asked.task.strip():
            made = self._opening(asked, known)
        else:
            wishes = asked.wishes
            kinds = asked.kinds or (("memory", "artifact") if wishes.agent else ("memory",))
            most = PASSAGES if asked.limit is None else asked.limit
            result = self._found_for(asked, kinds) if wishes.agent else self._find(asked, most, kinds)
            if not (result.hits or result.degraded):
                result = replace(result, notices=wishes.notices)  # why nothing is there, nobody asked
            likely = {hit.id for hit in result.hits if is_likely(hit)}
            # What may have overtaken something likely goes with it: the older alone would mislead.
            likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
            new = [hit for hit in result.hits if hit.id in likely and hit.owner_id not in known]
            result = replace(result, hits=one_line_artifacts(new))
            following = self._under_headings(result)
            count = self._runtime.tokens.count_tokens
            made = context_of(result, max_tokens=asked.max_tokens, count=count, form=self._form, following=following)
        self._runtime.count_uses(injected_hits(made.hits))
        ids = {hit.owner_id for hit in made.hits}
        if conversation and ids and not self._store.is_read_only:
            try:
                add_injected(self._store, self._namespace, conversation, ids, self._runtime.now())
            except StoreError as error:  # better said twice than not at all
                _log.warning("what was injected was not noted: %s", error)
        return made

    def clear_injected(self, conversation: str) -> None:
        from commonplace.memory.injections import clear_injected

        if not self._store.is_read_only:
            clear_injected(self._store, self._namespace, conversation, self._runtime.now())

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

    def _under_headings(self, result: SearchResult) -> dict[int, Passage]:
        """Return what stands under the headings among the hits, by the numbers of their passages."""
        from commonplace.search.context import unsaid

        bare = unsaid(result)
        held = self._store.passages(self._namespace, [*bare, *(number + 1 for number in bare)])
        return {
            number: held[number + 1]
            for number in bare
            if {number, number + 1} <= held.keys() and held[number].owner_number == held[number + 1].owner_number
        }

    @property
    def _form(self) -> Form:
        from commonplace.search.context import Form

        own = self._settings.context
        return Form(metadata=own.metadata == "on", references=own.references == "on")

    def _found_for(self, asked: Asked, kinds: Sequence[Kind]) -> SearchResult:
        """Return what an agent's strategy finds for a task, and what memories and knowledge say of it.

        Types, phases and tags of a strategy are those of artifacts: what is remembered has none, and is never left out
        for that.
        """
        from commonplace.search.context import distinct, in_turn, of_the_first_owners, without_old_news

        wishes, limit = asked.wishes, asked.limit
        most = wishes.limit or PASSAGES
        # Twice as many as there is room for: some are passed over.
        passages = min(MAX_LIMIT, 2 * most * PASSAGES_TOGETHER) if limit is None else limit
        others = [kind for kind in kinds or KINDS if kind != "artifact"]
        counts = self._store.counts(self._namespace)
        if not kinds and not (counts["memories"] or counts["knowledge"] or self._runtime.has_ultra):
            others = []
        found = [] if kinds and "artifact" not in kinds else [self._find(asked, passages, ["artifact"], wishes.agent)]
        standing_in = set(found[0].wanted.types).difference(wishes.types or ()) if found else set()
        if others:
            found.append(self._find(asked, passages, others))
        result = joined(found, passages)
        hits = result.hits
        if limit is None:
            hits = of_the_first_owners(without_old_news(in_turn(distinct(hits), standing_in)), most)
        return replace(
            result, hits=hits, agent=wishes.agent, notices=tuple(dict.fromkeys((*wishes.notices, *result.notices)))
        )

    def _opening(self, asked: Asked, known: Collection[str] = ()) -> Context:
        """Return the context of a session that has no task yet."""
        from commonplace.search.context import Context, assemble, distinct

        limit = int_in("limit", PASSAGES if asked.limit is None else asked.limit, 1, MOST_PASSAGES)
        self._runtime.before()
        now = self._runtime.now()
        tiers: tuple[tuple[Tier, ...], ...] = (("long",), ("short", "medium"))
        kept = [
            memory_hit(stored, min(1.0, self._runtime.retention.raw(stored.record, now)))
            for each in (tiers if not asked.kinds or "memory" in asked.kinds else ())
            for stored in self._first(each, asked.tags or (), limit)
            if stored.record.trust >= asked.min_trust and stored.owner.id not in known
        ]
        found = distinct(without_secrets(kept[:limit]))
        count = self._runtime.tokens.count_tokens
        text, hits = assemble(found, max_tokens=asked.max_tokens, count=count, form=self._form)
        named, left_out = tuple(reference(hit) for hit in hits), len(found) - len(hits)
        agent, notices = asked.wishes.agent, asked.wishes.notices
        return Context("", text, named, hits, count(text), left_out=left_out, agent=agent, notices=notices)

    def _first(self, tiers: tuple[Tier, ...], tags: tuple[str, ...], limit: int) -> list[StoredMemory]:
        """Return live memories: long ones the most present first, others the newest first."""
        is_long = tiers == ("long",)
        wanted = Selection(tiers=tiers, tags=tags, statuses=("active", "promoted"), limit=None if is_long else limit)
        found = self._store.memories(self._namespace, wanted)
        if is_long:
            now = self._runtime.now()
            found.sort(key=lambda each: (-self._runtime.retention.raw(each.record, now), each.owner.id))
        return found
