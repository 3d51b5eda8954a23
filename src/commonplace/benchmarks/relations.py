"""Measure which memories are linked that hang together, on pairs that a person judged, and which are not."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.benchmarks.workspace import open_engine, workspace
from commonplace.errors import NoRelation, UsageError

if TYPE_CHECKING:
    from commonplace.consolidation.results import RelationResult

MEMORIES: Final = "memories.jsonl"
PAIRS: Final = "pairs.jsonl"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """Memories as `remember_many` takes them, and whether pairs of them, by sorted ids, hang together."""

    memories: tuple[Mapping[str, Any], ...]
    related: Mapping[Pair, bool]


def read_judged(directory: Path) -> Judged:
    """Return the memories of `memories.jsonl`, {id, content, tags…}, and the pairs of `pairs.jsonl`, {a, b, related}.

    Raises:
        UsageError: a file cannot be read, a line is not of the form, or a pair names a memory that is not there.
    """
    memories = tuple(value for _, value in _lines(directory / MEMORIES))
    ids = {memory.get("id") for memory in memories}
    related: dict[Pair, bool] = {}
    for number, value in _lines(directory / PAIRS):
        one, other, is_related = value.get("a"), value.get("b"), value.get("related")
        is_pair = isinstance(one, str) and isinstance(other, str) and one != other and {one, other} <= ids
        if not is_pair or not isinstance(is_related, bool):
            raise UsageError(
                f"{directory / PAIRS}, line {number} is no pair of the memories",
                remedy='give JSON lines {"a": id, "b": id, "related": true or false}',
            )
        related[_sorted(str(one), str(other))] = is_related
    return Judged(memories, related)


def judge(judged: Judged, embedder: str | None = None) -> dict[str, Any]:
    """Look for relations among the memories, in a store of their own, and return how right the found ones are."""
    from commonplace.consolidation import ConfidenceConfig, RelationshipDiscovery

    with workspace(None) as directory, open_engine(directory, embedder=embedder) as engine:
        engine.remember_many(judged.memories)
        agent = RelationshipDiscovery(dry_run=True, book=engine)
        begun = time.perf_counter()
        items = agent.scan()
        scan_s = time.perf_counter() - begun
        found = {_sorted(each.from_memory_id, each.to_memory_id): each for each in _results(agent, items)}
    least = ConfidenceConfig().log_threshold
    return {
        "memories": len(judged.memories),
        "judged": len(judged.related),
        "related": sum(judged.related.values()),
        "scan_s": round(scan_s, 3),
        "decisions": {
            "link": _counted(found, judged.related),
            "link_unasked": _counted(
                [pair for pair, each in found.items() if each.confidence >= least], judged.related
            ),
        },
    }


def _results(agent: Any, items: Collection[str]) -> Iterator[RelationResult]:
    for item in items:
        try:
            yield agent.process_item(item)
        except NoRelation:
            continue


def _counted(chosen: Collection[Pair], related: Mapping[Pair, bool]) -> dict[str, float]:
    """Return precision and recall of the pairs that were chosen; neither where none of them was judged."""
    known = [related[pair] for pair in chosen if pair in related]
    counted: dict[str, float] = {"pairs": len(chosen), "judged": len(known)}
    if known:
        counted |= {"precision": sum(known) / len(known), "recall": sum(known) / max(1, sum(related.values()))}
    return counted


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a readable file in UTF-8") from error
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line or "null")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise UsageError(f"{path}, line {number} is no JSON object", remedy="give one object a line")
        yield number, value


def _sorted(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)
