"""Reorder the hits of a search with a re-ranker; keep the order if it fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import ProviderError
from commonplace.models.contract import Reranker
from commonplace.search.result import SearchResult, Trace
from commonplace.types import Hit, Stage

RERANK: Final = "rerank"
FIRST_STAGE: Final = "first_stage"
"""The signals of a re-ranked hit: what the model said, and the score that the hit had before."""


@dataclass(frozen=True, slots=True)
class Reranking:
    """Who re-ranks a result, opened when there is something to rank; by what name; how many hits are to be left."""

    open: Callable[[], Reranker]
    name: str
    limit: int


def rerank(result: SearchResult, reranking: Reranking) -> SearchResult:
    """Return the result with its hits in the re-ranker's order, ties in the one that they had, at most `limit` of them.

    The score of a hit becomes the one that the re-ranker gave it, and the score it had one of its signals. Where the
    re-ranker fails, order and scores stay as they are, and the result is degraded.
    """
    hits, limit = result.hits, reranking.limit
    if not hits:
        return result
    begun = time.perf_counter()
    try:
        order = reranking.open().rerank(result.query, [hit.text for hit in hits], len(hits))
    except ProviderError as error:
        notice = f"the hits stand in the order of the first stages, for {reranking.name} did not re-rank them: {error}"
        return replace(_cut(result, hits[:limit], begun), degraded=True, notices=(*result.notices, notice))
    ordered = []
    for each in order[:limit]:
        hit = hits[each.index]
        signals = {**hit.signals, FIRST_STAGE: hit.score, RERANK: each.score}
        ordered.append(replace(hit, score=each.score, signals=signals))
    return replace(_cut(result, tuple(ordered), begun), reranked_by=reranking.name)


def _cut(result: SearchResult, hits: tuple[Hit, ...], begun: float) -> SearchResult:
    """Return the result with these of its hits, and the time that re-ranking took."""
    spent_ms = (time.perf_counter() - begun) * 1000
    in_process = result.in_process
    return replace(
        result,
        hits=hits,
        stages=(*result.stages, Stage(RERANK, len(result.hits), spent_ms)),
        latency_ms=result.latency_ms + round(spent_ms),
        trace=_without(result.trace, hits),
        in_process=None if in_process is None else replace(in_process, trace=_without(in_process.trace, hits)),
    )


def _without(trace: Trace, hits: tuple[Hit, ...]) -> Trace:
    """Return the trace with the hits that are no longer among these as rejected."""
    kept = {hit.id for hit in hits}
    dropped = {number for id_, number in trace.numbers.items() if id_ not in kept}
    return replace(
        trace,
        numbers={id_: number for id_, number in trace.numbers.items() if id_ in kept},
        make=lambda: [
            replace(each, rejected="beyond the limit") if each.number in dropped else each for each in trace.candidates
        ],
    )
