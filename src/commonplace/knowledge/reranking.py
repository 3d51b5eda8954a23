"""Re-rankers that are given to a knowledge service, and what is made of their answers. It knows texts, no store.

Whatever a re-ranker returns, no candidate is added, changed or counted twice: only the order and the scores are its.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from commonplace.errors import CommonplaceError, ProviderError, UsageError
from commonplace.redaction import redact


class Reranker(Protocol):
    """The contract's re-ranker; ours are of this kind too."""

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> Sequence[Any]:
        """Return results with `content` and `score`, best first; an `index` tells equal contents apart."""
        ...


def checked_reranker(given: object) -> Reranker:
    """Return a re-ranker.

    Raises:
        UsageError: it is none.
    """
    if not callable(getattr(given, "rerank", None)):
        raise UsageError(f"the re-ranker is {given!r:.80}", remedy="give an object with `rerank(query, texts, top_k)`")
    return given  # type: ignore[return-value] # it has what the protocol asks for


def reranked(reranker: Reranker, query: str, candidates: Sequence[str], top_k: int) -> list[tuple[int, float]]:
    """Return at most `top_k` places of candidates with scores, best first, ties in the order given.

    A result that is no candidate is passed over; candidates that have none follow with score 0. A score beyond 0–1, as
    some models give them, counts for the order, and is told as the nearer end.

    Raises:
        ProviderError: the re-ranker failed, or returned no results.
    """
    try:
        results = list(reranker.rerank(query, list(candidates), top_k))
    except CommonplaceError:
        raise
    except Exception as error:  # it may be somebody else's, and raise anything
        raise ProviderError(redact(f"the re-ranker failed: {type(error).__name__}: {error}").text) from error
    scores = _scores(results, candidates)
    if not scores:
        raise ProviderError("the re-ranker returned none of the candidates")
    order = sorted(range(len(candidates)), key=lambda place: (place not in scores, -scores.get(place, 0.0), place))
    return [(place, min(1.0, max(0.0, scores.get(place, 0.0)))) for place in order[:top_k]]


def _scores(results: Sequence[object], candidates: Sequence[str]) -> dict[int, float]:
    """Return the score of each place that a result names, by its index, else by its content."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, content in enumerate(candidates):
        places[content].append(place)
    scores: dict[int, float] = {}
    for result in results:
        content, index, score = (_value(result, name) for name in ("content", "index", "score"))
        named = places.get(content, ()) if isinstance(content, str) else ()
        free = [each for each in named if each not in scores]
        if free:
            scores[index if index in free else free[0]] = _score(score)
    return scores


def _value(result: object, name: str) -> Any:
    return result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)


def _score(given: object) -> float:
    """Return a score; what is no finite number, NumPy's and decimal ones among them, is 0."""
    try:
        score = 0.0 if isinstance(given, bool) else float(given)  # type: ignore[arg-type] # that is what is tried
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return score if math.isfinite(score) else 0.0
