"""Reorder the hits of a search with a re-ranker; keep the order if it fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from commonplace.dataclasses import replace
from commonplace.errors import ProviderError
from commonplace.models.contract import Reranker
from commonplace.search.result import SearchResult, Trace
from commonplace.types import Stage

RERANK: Final = "rerank"
FIRST_STAGE: Final = "first_stage"
"""The signals of a re-ranked hit: what the model said, and the score that the hit had before."""


def rerank(result: SearchResult, limit: int, name: str, opened: Callable[[], Reranker]) -> SearchResult:
    """Return the result with its hits in the re-ranker's order, ties in the one that they had, at most `limit` of them.

    The score of a hit becomes the one that the re-ranker gave it, and the score it had one of its signals. Where the
    re-ranker fails, order and scores stay as they are, and the result is degraded.

    Args:
        opened: opens the re-ranker of that name; called where there is something to rank.
    """
    hits = result.hits
    if not hits:
        return result
    begun = time.perf_counter()
    try:
        order = opened().rerank(result.query, [hit.text for hit in hits], len(hits))
        kept = tuple(
            replace(
                hits[each.index],
                score=each.score,
                signals={**hits[each.index].signals, FIRST_STAGE: hits[each.index].score, RERANK: each.score},
            )
            for each in order[:limit]
        )
        result = replace(result, reranked_by=name)
    except ProviderError as error:
        kept = hits[:limit]
        notice = f"the hits are in the order of the first stages, because {name} did not re-rank them: {error}"
        result = replace(result, degraded=True, notices=(*result.notices, notice))
    spent_ms = (time.perf_counter() - begun) * 1000
    ids, in_process = {hit.id for hit in kept}, result.in_process
    return replace(
        result,
        hits=kept,
        stages=(*result.stages, Stage(RERANK, len(hits), spent_ms)),
        latency_ms=result.latency_ms + round(spent_ms),
        trace=_of_hits(result.trace, ids),
        in_process=None if in_process is None else replace(in_process, trace=_of_hits(in_process.trace, ids)),
    )


def _of_hits(trace: Trace, ids: set[str]) -> Trace:
    """Return the trace with the hits that are no longer among these as rejected."""
    dropped = {number for id_, number in trace.numbers.items() if id_ not in ids}
    return replace(
        trace,
        numbers={id_: number for id_, number in trace.numbers.items() if id_ in ids},
        make=lambda: [
            replace(each, rejected="beyond the limit") if each.number in dropped else each for each in trace.candidates
        ],
    )
