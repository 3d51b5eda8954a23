"""Answer searches from the store and from the memories of this process.

A search does not log itself: only its caller knows whether a person or an agent asked it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.engine.maintenance import INDEXING, Freshness
from commonplace.engine.runtime import Service
from commonplace.errors import EmbedderMismatchError, IndexFaultError
from commonplace.memory.validate import one_of
from commonplace.search.rank import FIRST_FLOOR, FLOOR
from commonplace.search.request import MAX_LIMIT, FadingRule, Request, Wishes, kinds_of, phrasings
from commonplace.search.result import Receipt, SearchResult, merged
from commonplace.search.result import rerank as rerank_hits
from commonplace.settings.schema import SearchSettings
from commonplace.text.query import subject_of
from commonplace.types import RERANK_MODES, SEARCH_FIELDS, Filter, Method, RerankMode

_NO_FILES: Final = ("memory", "knowledge")
FACTOR: Final = 3
"""A language model chooses among this many times the requested number of hits."""
MAX_TRIES: Final = 4
"""Attempts to search the store: the embedder may change twice meanwhile, and the index turn out damaged once."""


class SearchApi(Service):
    """Answers searches. Safe for threads."""

    def search(  # noqa: PLR0913 - the options of a facade
        self,
        query: str,
        wishes: Wishes,
        wanted: Filter,
        now: float,
        *,
        method: Method | None,
        stage1_limit: int | None,
        per_owner: int,
        also: Sequence[str] | None,
        rerank: RerankMode | None,
    ) -> SearchResult:
        """Search the store and the memories of this process; settings fill in what is None."""
        settings, policy = self._settings.search, self._runtime.retention
        if wishes.agent:
            wishes = wishes.fitted(self._store.artifact_types(self._namespace))
            types, tags, untagged = (tuple(each or ()) for each in (wishes.types, wishes.tags, wishes.untagged_types))
            wanted = replace(wanted, types=types, tags=tags, untagged_types=untagged)
        is_named = wanted.kinds or wishes.agent or wanted.types or wanted.paths
        if not is_named and self._settings.index.enabled == "off":
            wanted = replace(wanted, kinds=_NO_FILES)
        floor = settings.min_score if wishes.min_score is None else wishes.min_score
        request = Request(
            query=query,
            namespace=self._namespace,
            limit=settings.limit if wishes.limit is None else wishes.limit,
            method=method or settings.method,  # type: ignore[arg-type] # Request checks it
            wanted=wanted,
            min_score=FLOOR if floor is None else floor,
            first_floor=FIRST_FLOOR if floor is None else 0.0,
            stage1_limit=settings.stage1_limit if stage1_limit is None else stage1_limit,
            fields=settings.fields or tuple(SEARCH_FIELDS),
            is_bounded=stage1_limit is not None or settings.stage1_limit != SearchSettings().stage1_limit,
            per_owner=per_owner,
            now=now,
            retention_weight=settings.retention_weight,
            fading=FadingRule(policy.curve, tuple(sorted(policy.half_lives.items()))),
        )
        # A long task is also searched for by what it is about.
        subject = subject_of(query) if also is None and request.method == "two-stage" else ""
        request = replace(request, also=(subject,) if subject else phrasings(query, also))
        asked = self._settings.models.reranker if rerank is None else rerank
        mode: RerankMode = one_of("rerank", asked, RERANK_MODES)  # type: ignore[assignment] # one of the modes
        self._runtime.pick_up()
        # Where a language model is to choose, it chooses among more hits.
        wider = request if mode == "none" else replace(request, limit=min(MAX_LIMIT, FACTOR * request.limit))
        found, runtime = self.search_store(wider), self._runtime
        if runtime.has_ultra and wanted.as_of is None:
            in_process = runtime.ultra.searcher.search(wider)
            if in_process.hits:
                hits = merged([found.hits, in_process.hits])
                found = replace(found, hits=hits[: wider.limit], in_process=in_process)
        if mode != "none":
            name = f"{runtime.reranker_name} ({mode})"
            found = rerank_hits(found, request.limit, name, lambda: runtime.reranker(mode))
        if not wishes.agent:
            return replace(found, notices=(*found.notices, *self._why_none(found)))
        # The strategy's own filters are named here; whether there is any file at all, is asked below.
        why_none = self._why_none(replace(found, wanted=Filter(kinds=("artifact",))))
        notices = (*found.notices, *wishes.notices, *why_none)
        if not found.hits and not why_none and wishes.limits:
            notices = (*notices, f"agent {wishes.agent} finds only what is {wishes.limits}")
        return replace(found, agent=wishes.agent, notices=notices)

    def why(self, result: SearchResult, hit_id: str) -> Receipt:
        """Explain a hit, which may be a memory of this process."""
        from commonplace.search.explain import explain

        in_process = result.in_process
        if in_process is not None and hit_id in in_process.trace.numbers:
            return explain(self._runtime.ultra.store, replace(result, trace=in_process.trace), hit_id)
        return explain(self._store, result, hit_id)

    def search_store(self, request: Request) -> SearchResult:
        """Search the store; try again if its embedder changes meanwhile, or reading shows that the index is damaged."""
        tries, freshness, maintenance = 0, None, self._runtime.maintenance
        while True:
            generation = self._runtime.index.reader()
            try:
                with (
                    self._runtime.index.reading() as generation,
                    self._store.snapshot(self._namespace, maintenance.held(generation, self._namespace), INDEXING),
                ):
                    if freshness is not None or maintenance.is_fresh(generation, self._namespace):
                        freshness = freshness or Freshness()
                        notices = (*freshness.notices, *self._incomplete(request.wanted))
                        return self._runtime.searcher.search(request, notices=notices, degraded=freshness.is_degraded)
            except (EmbedderMismatchError, IndexFaultError) as fault:
                tries += 1
                if tries == MAX_TRIES:
                    raise
                if isinstance(fault, IndexFaultError):
                    self._runtime.index.condemn(str(fault), generation)
            self._runtime.follow()
            freshness = maintenance.freshen(self._namespace)

    def _why_none(self, found: SearchResult) -> tuple[str, ...]:
        """Explain why nothing was found, unless a notice already says that files are not indexed yet."""
        if found.hits or self._incomplete(found.wanted):
            return ()
        # Most searches find something, and need none of what compares misspelt names.
        from commonplace.search.explain import diagnose

        return tuple(diagnose(self._store, found, self._runtime.has_ultra, self._runtime.is_served))

    def _incomplete(self, wanted: Filter) -> tuple[str, ...]:
        """Return a notice about files that are not indexed yet, if the search includes files."""
        return self._runtime.maintenance.incomplete(self._namespace) if "artifact" in kinds_of(wanted) else ()
