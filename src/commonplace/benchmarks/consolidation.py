"""Measure what agents of consolidation take for the same, and how long they take.

Pairs of sentences that people judged are merged or linked by the similarity of their vectors, as two memories would be;
memories are linked that a person judged to hang together, or not; made-up memories are looked through and consolidated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.benchmarks.agents import fill, lived, looked
from commonplace.benchmarks.machine import describe
from commonplace.benchmarks.relations import judge, read_judged
from commonplace.benchmarks.similarity import Pair, cosines_of, read_pairs
from commonplace.benchmarks.workspace import workspace
from commonplace.errors import UsageError
from commonplace.types import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAME: Final = 0.8
"""The score, 0–1, from which people say that two sentences mean the same."""
NEARLY_SAME: Final = 0.6
"""The score from which they say that only details differ."""

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ConsolidationOptions:
    """What to measure.

    Attributes:
        pairs: a file of JSON lines {a, b, score}; None measures time alone.
        relations: a directory of memories and judged pairs of them; see `relations.read_judged`.
        memories: how many are looked through; 0 measures what people judged alone.
        runs: whether all agents are also run over them, a dry run and a real one.
    """

    pairs: Path | None = None
    relations: Path | None = None
    memories: int = 10_000
    runs: bool = False
    embedder: str | None = None
    keep: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.memories < 0:
            raise UsageError(f"memories is {self.memories}", remedy="give at least 0")


def run(options: ConsolidationOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Judge pairs, look through memories, and return the JSON form of what came of it.

    Raises:
        UsageError: the file cannot be read, or the directory to keep is wrong.
    """
    figures: dict[str, Any] = {"benchmark": "consolidation", "machine": describe()}
    if options.pairs is not None:
        figures["similarity"] = _judged(read_pairs(options.pairs), options.embedder or "static")
    if options.relations is not None:
        figures["relations"] = judge(read_judged(options.relations), options.embedder)
    if options.memories:
        with workspace(options.keep) as directory:
            fill(directory, options.memories, options.seed, options.embedder, progress)
            figures["scan"] = {"memories": options.memories, "agents": looked(directory, options.embedder)}
            if options.runs:
                figures["run"] = lived(directory, options.embedder, progress)
    return figures


def _judged(pairs: Sequence[Pair], embedder: str) -> dict[str, Any]:
    import numpy as np

    from commonplace.consolidation.clustering import LINKED, MERGED, size_factor
    from commonplace.consolidation.confidence import ConfidenceConfig
    from commonplace.models.calibrating import scale_of
    from commonplace.models.opening import open_embedder

    scores = np.array([pair.score for pair in pairs])
    similarities = scale_of(embedder)(cosines_of(open_embedder(embedder), pairs))
    is_merged = similarities >= MERGED
    sure = similarities * size_factor(2) >= ConfidenceConfig().log_threshold
    disputed = np.array([bool(merged) and _is_disputed(pair) for pair, merged in zip(pairs, is_merged, strict=True)])
    return {
        "embedder": embedder,
        "pairs": len(pairs),
        "same": int((scores >= SAME).sum()),
        "mean_absolute_error": float(np.abs(similarities - scores).mean()),
        "decisions": {
            "link": _counted(similarities >= LINKED, scores),
            "merge": _counted(is_merged, scores),
            "merge_without_contradiction": _counted(is_merged & ~disputed, scores),
            "merge_unasked": _counted(is_merged & ~disputed & sure, scores),
        },
    }


def _counted(chosen: NDArray[np.bool_], scores: NDArray[np.float64]) -> dict[str, float]:
    """Return precision and recall of the pairs that were chosen."""
    right = int((scores[chosen] >= SAME).sum())
    count = int(chosen.sum())
    return {
        "pairs": count,
        "precision": right / count if count else 1.0,
        "nearly_same": float((scores[chosen] >= NEARLY_SAME).mean()) if count else 1.0,
        "recall": right / max(1, int((scores >= SAME).sum())),
    }


def _is_disputed(pair: Pair) -> bool:
    from commonplace.consolidation.merging import Source, merge

    return bool(merge([Source("first", pair.first, _NOON), Source("second", pair.second, _NOON)]).conflicts)
