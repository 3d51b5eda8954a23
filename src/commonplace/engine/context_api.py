"""The call of an engine that tells what is worth knowing before a task. What is put together how is in `search`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from commonplace.engine.runtime import Runtime
from commonplace.engine.search_api import SearchApi, Wishes, joined, wishes_of
from commonplace.errors import StoreError, UsageError
from commonplace.memory.usage import injected_hits
from commonplace.memory.validate import fraction, int_in
from commonplace.search.hits import is_likely, memory_hit, without_secrets
from commonplace.search.request import MAX_LIMIT, MAX_QUERY_CHARACTERS, chosen
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


class ContextApi:
    """Puts together what a model should know. Safe for threads."""

    def __init__(self, runtime: Runtime, search: SearchApi) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._namespace = runtime.namespace
        self._settings = runtime.settings
        self._search = search

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
    ) -> Context:
        from commonplace.search.context import POSSIBLY_RELATED, context_of, without_old_news

        own = self._settings.context
        budget = int_in("max_tokens", own.max_tokens if max_tokens is None else max_tokens, FEWEST_TOKENS, MOST_TOKENS)
        if not isinstance(task, str):
            raise UsageError(f"task is {task!r:.80}", remedy="give a text")
        if len(task) > MAX_QUERY_CHARACTERS:
            raise UsageError(
                f"task has {len(task):,} characters, the limit is {MAX_QUERY_CHARACTERS:,}",
                remedy="say in fewer words what is to be done",
            )
        wishes = wishes_of(agent, self._settings.agents).under(min_score=min_score)
        if not task.strip():
            most = PASSAGES if limit is None else limit
            named = chosen("kinds", kinds), chosen("tags", tags), fraction("min_trust", min_trust)
            made = replace(self._opening(budget, most, *named), agent=wishes.agent, notices=wishes.notices)
            self._runtime.count_uses(injected_hits(made.hits))
            return made
        find = self._finder(task, wishes, tags, min_trust)
        if wishes.agent:
            result = self._found_for(wishes, find, chosen("kinds", kinds), limit)
        elif limit is None:
            result = find(PASSAGES, kinds)
            result = replace(result, hits=without_old_news(result.hits))
        else:
            result = find(limit, kinds)
        following = self._under_headings(result)
        count = self._runtime.tokens.count_tokens
        few = POSSIBLY_RELATED if weak is None else int_in("weak", weak, 0, MAX_LIMIT)
        taken = few if wishes.min_score is None and self._settings.search.min_score is None else None
        made = context_of(result, max_tokens=budget, count=count, form=self._form, following=following, weak=taken)
        self._runtime.count_uses(injected_hits(made.hits))
        return made

    def injection(
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
    ) -> Context:
        from commonplace.memory.injections import add_injected, injected
        from commonplace.search.context import context_of, one_line_artifacts

        usual = min(PROMPT_TOKENS if prompt.strip() else START_TOKENS, self._settings.context.max_tokens)
        budget = int_in("max_tokens", usual if max_tokens is None else max_tokens, FEWEST_TOKENS, MOST_TOKENS)
        known = injected(self._store, self._namespace, conversation, self._runtime.now()) if conversation else set()
        wishes = wishes_of(agent, self._settings.agents)
        if not prompt.strip():
            most = PASSAGES if limit is None else limit
            named = chosen("kinds", kinds), chosen("tags", tags), fraction("min_trust", min_trust)
            made = replace(self._opening(budget, most, *named, known), agent=wishes.agent, notices=wishes.notices)
        else:
            wanted = kinds or (("memory", "artifact") if wishes.agent else ("memory",))
            find = self._finder(prompt, wishes, tags, min_trust)
            most = PASSAGES if limit is None else limit
            result = self._found_for(wishes, find, wanted, limit) if wishes.agent else find(most, wanted)
            if not (result.hits or result.degraded):
                result = replace(result, notices=wishes.notices)  # why nothing is there, nobody asked
            likely = {hit.id for hit in result.hits if is_likely(hit)}
            # What may have overtaken something likely goes with it: the older alone would mislead.
            likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
            new = [hit for hit in result.hits if hit.id in likely and hit.owner_id not in known]
            result = replace(result, hits=one_line_artifacts(new))
            following = self._under_headings(result)
            count = self._runtime.tokens.count_tokens
            made = context_of(result, max_tokens=budget, count=count, form=self._form, following=following)
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

    def _finder(
        self, text: str, wishes: Wishes, tags: Sequence[str] | None, min_trust: float
    ) -> Callable[..., SearchResult]:
        """Return a search that still takes a limit and kinds."""
        return partial(
            self._search.search,
            text,
            tags=tags,
            min_score=wishes.min_score,
            min_trust=min_trust,
            per_owner=PASSAGES_TOGETHER,
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

    def _found_for(
        self, wishes: Wishes, find: Callable[..., SearchResult], kinds: Sequence[str], limit: int | None
    ) -> SearchResult:
        """Return what an agent's strategy finds for a task, and what memories and knowledge say of it.

        Types, phases and tags of a strategy are those of artifacts: what is remembered has none, and is never left out
        for that.
        """
        from commonplace.search.context import distinct, in_turn, of_the_first_owners, without_old_news

        most = wishes.limit or PASSAGES
        # Twice as many as there is room for: some are passed over.
        passages = min(MAX_LIMIT, 2 * most * PASSAGES_TOGETHER) if limit is None else limit
        others = [kind for kind in kinds or KINDS if kind != "artifact"]
        counts = self._store.counts(self._namespace)
        if not kinds and not (counts["memories"] or counts["knowledge"] or self._runtime.has_ultra):
            others = []
        found = [] if kinds and "artifact" not in kinds else [find(passages, ["artifact"], agent=wishes.agent)]
        standing_in = set(found[0].wanted.types).difference(wishes.types or ()) if found else set()
        if others:
            found.append(find(passages, others))
        result = joined(found, passages)
        hits = result.hits
        if limit is None:
            hits = of_the_first_owners(without_old_news(in_turn(distinct(hits), standing_in)), most)
        return replace(
            result, hits=hits, agent=wishes.agent, notices=tuple(dict.fromkeys((*wishes.notices, *result.notices)))
        )

    def _opening(
        self,
        max_tokens: int,
        limit: int,
        kinds: tuple[str, ...],
        tags: tuple[str, ...],
        min_trust: float,
        known: Collection[str] = (),
    ) -> Context:
        """Return the context of a session that has no task yet."""
        from commonplace.search.context import Context, assemble, distinct

        int_in("limit", limit, 1, MOST_PASSAGES)
        self._runtime.before()
        now = self._runtime.now()
        tiers: tuple[tuple[Tier, ...], ...] = (("long",), ("short", "medium"))
        kept = [
            memory_hit(stored, min(1.0, self._runtime.retention.raw(stored.record, now)))
            for each in (tiers if not kinds or "memory" in kinds else ())
            for stored in self._first(each, tags, limit)
            if stored.record.trust >= min_trust and stored.owner.id not in known
        ]
        found = distinct(without_secrets(kept[:limit]))
        text, hits = assemble(found, max_tokens=max_tokens, count=self._runtime.tokens.count_tokens, form=self._form)
        named = tuple(reference(hit) for hit in hits)
        return Context("", text, named, hits, self._runtime.tokens.count_tokens(text), left_out=len(found) - len(hits))

    def _first(self, tiers: tuple[Tier, ...], tags: tuple[str, ...], limit: int) -> list[StoredMemory]:
        """Return live memories: long ones the most present first, others the newest first."""
        is_long = tiers == ("long",)
        wanted = Selection(tiers=tiers, tags=tags, statuses=("active", "promoted"), limit=None if is_long else limit)
        found = self._store.memories(self._namespace, wanted)
        if is_long:
            now = self._runtime.now()
            found.sort(key=lambda each: (-self._runtime.retention.raw(each.record, now), each.owner.id))
        return found
