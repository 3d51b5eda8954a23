"""Ask an engine many questions and note what it found and how long each took. Knows nothing of judgements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.benchmarks.measures import percentile
from commonplace.errors import UsageError
from commonplace.types import METHODS, Hit, Method, Progress, Stage

if TYPE_CHECKING:
    from commonplace.engine import Engine

DEPTH = 100
"""How many hits a question about quality asks for, and the deepest that any measure looks."""

WARM_UP = "open the files and fill the caches before the clock starts"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question found.

    Attributes:
        ranking: ids of what was found, best first, each once.
        scores: the best score of each, in the same order, 0–1.
        probabilities: of relevance, likewise.
        ms: from the call to its return.
        stages: the engine's own account of it.
    """

    ranking: tuple[str, ...]
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]
    ms: float
    stages: tuple[Stage, ...]


def owner_of(hit: Hit) -> str:
    """Return the id under which a document was given."""
    return hit.owner_id


def path_of(hit: Hit) -> str:
    """Return the path of an artifact, or the owner's id where there is no file."""
    return hit.path or hit.owner_id


def check_methods(methods: Sequence[str]) -> tuple[Method, ...]:
    """Return the methods, each once, in the order given.

    Raises:
        UsageError: one is unknown, or there is none.
    """
    for name in methods:
        if name not in METHODS:
            raise UsageError(f"method {name!r} is unknown", remedy=f"use some of {', '.join(METHODS)}")
    if not methods:
        raise UsageError("no method was named", remedy=f"use some of {', '.join(METHODS)}")
    return tuple(method for method in dict.fromkeys(methods) if method in METHODS)


def ask(
    engine: Engine,
    questions: Sequence[str],
    method: Method,
    identity: Callable[[Hit], str],
    progress: Progress | None = None,
    *,
    limit: int = DEPTH,
    min_score: float | None = 0.0,
) -> Iterator[Answer]:
    """Yield the answer to each question in turn, one at a time and from one thread.

    Args:
        min_score: as the engine's; no hit is cut for its score unless it is given, None is the engine's own cut.
    """
    engine.search(WARM_UP, limit=limit, method=method, min_score=0.0)
    for number, question in enumerate(questions):
        if progress is not None:
            progress(f"asking, {method}", number, len(questions))
        yield _ask_one(engine, question, method, identity, limit, min_score)
    if progress is not None:
        progress(f"asking, {method}", len(questions), len(questions))


def _ask_one(
    engine: Engine,
    question: str,
    method: Method,
    identity: Callable[[Hit], str],
    limit: int,
    min_score: float | None,
) -> Answer:
    if not question.strip():
        return Answer((), (), (), 0.0, ())
    start = time.perf_counter()
    result = engine.search(question, limit=limit, method=method, min_score=min_score)
    ms = (time.perf_counter() - start) * 1000
    best: dict[str, Hit] = {}
    for hit in result.hits:
        best.setdefault(identity(hit), hit)
    scores = tuple(hit.score for hit in best.values())
    return Answer(tuple(best), scores, tuple(hit.probability or 0.0 for hit in best.values()), ms, result.stages)


def latency(times_ms: Sequence[float]) -> dict[str, float]:
    """Return the JSON form of many latencies: `p50_ms`, `p95_ms`, `max_ms`."""
    return {
        "p50_ms": round(percentile(times_ms, 0.5), 3),
        "p95_ms": round(percentile(times_ms, 0.95), 3),
        "max_ms": round(max(times_ms, default=0.0), 3),
    }
