"""Answer searches from the store and from the memories of this process.

A search does not log itself: only its caller knows whether a person or an agent asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.engine.runtime import Runtime
from commonplace.memory.validate import one_of
from commonplace.search.rank import FIRST_FLOOR, FLOOR
from commonplace.search.request import MAX_LIMIT, Request, SearchDefaults, phrasings
from commonplace.search.result import SearchResult, merged
from commonplace.search.result import rerank as rerank_hits
from commonplace.settings.schema import SearchSettings
from commonplace.text.query import subject_of
from commonplace.types import RERANK_MODES, SEARCH_FIELDS, Filter, Method, RerankMode

FACTOR: Final = 3
"""A language model chooses among this many times the requested number of hits."""


def search(  # noqa: PLR0913, PLR0917 - the options of a facade
    runtime: Runtime,
    query: str,
    defaults: SearchDefaults,
    filters: Filter,
    now: float,
    method: Method | None,
    stage1_limit: int | None,
    per_owner: int,
    also: Sequence[str] | None,
    rerank: RerankMode | None,
) -> SearchResult:
    """Search the store and the memories of this process; settings fill in what is None."""
    settings = runtime.settings.search
    if defaults.agent:
        defaults = defaults.fitted(runtime.store.artifact_types(runtime.namespace))
        types, tags, untagged = (tuple(item or ()) for item in (defaults.types, defaults.tags, defaults.untagged_types))
        filters = replace(filters, types=types, tags=tags, untagged_types=untagged)
    is_named = filters.kinds or defaults.agent or filters.types or filters.paths
    if not is_named and runtime.settings.index.enabled == "off":
        filters = replace(filters, kinds=("memory", "knowledge"))
    floor = settings.min_score if defaults.min_score is None else defaults.min_score
    request = Request(
        query=query,
        namespace=runtime.namespace,
        limit=settings.limit if defaults.limit is None else defaults.limit,
        method=method or settings.method,  # type: ignore[arg-type] # Request checks it
        wanted=filters,
        min_score=FLOOR if floor is None else floor,
        first_floor=FIRST_FLOOR if floor is None else 0.0,
        stage1_limit=settings.stage1_limit if stage1_limit is None else stage1_limit,
        fields=settings.fields or SEARCH_FIELDS,
        is_bounded=stage1_limit is not None or settings.stage1_limit != SearchSettings().stage1_limit,
        per_owner=per_owner,
        now=now,
        retention_weight=settings.retention_weight,
        policy=runtime.retention,
    )
    # A long task is also searched by its subject.
    subject = subject_of(query) if also is None and request.method == "two-stage" else ""
    request = replace(request, also=(subject,) if subject else phrasings(query, also))
    mode_name = runtime.settings.models.reranker if rerank is None else rerank
    mode: RerankMode = one_of("rerank", mode_name, RERANK_MODES)  # type: ignore[assignment] # one of the modes
    runtime.import_edits()
    # A language model re-ranks more hits than were requested.
    wider_request = request if mode == "none" else replace(request, limit=min(MAX_LIMIT, FACTOR * request.limit))
    result = runtime.search(wider_request)
    if runtime.has_ultra and filters.as_of is None:  # memories of this process have no past
        in_process = runtime.ultra.searcher.search(wider_request)
        if in_process.hits:
            hits = merged([result.hits, in_process.hits])
            result = replace(result, hits=hits[: wider_request.limit], in_process=in_process)
    if mode != "none":
        name = f"{runtime.reranker_name} ({mode})"
        result = rerank_hits(result, request.limit, name, lambda: runtime.reranker(mode))
    return _with_notices(runtime, result, defaults)


def _with_notices(runtime: Runtime, result: SearchResult, defaults: SearchDefaults) -> SearchResult:
    """Add notices that say why nothing was found, unless one already says that files are not indexed yet."""
    # A strategy's own filters are named below; here, only check whether there is any file at all.
    filters = Filter(kinds=("artifact",)) if defaults.agent else result.wanted
    why_none: tuple[str, ...] = ()
    if not result.hits and not runtime.unindexed(filters):
        # Most searches find something, and need no comparison of misspelt names.
        from commonplace.search.explain import diagnose

        why_none = tuple(diagnose(runtime.store, replace(result, wanted=filters), runtime.has_ultra, runtime.is_served))
    if not defaults.agent:
        return replace(result, notices=(*result.notices, *why_none))
    notices = (*result.notices, *defaults.notices, *why_none)
    if not result.hits and not why_none and defaults.limits:
        notices = (*notices, f"agent {defaults.agent} finds only what is {defaults.limits}")
    return replace(result, agent=defaults.agent, notices=notices)
