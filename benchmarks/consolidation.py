"""Measure what consolidation would merge and link, against pairs that people judged, and how long each agent takes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

import commonplace
from benchmarks.output import FILE, embedder_option, json_option, keep_option, seed_option, show
from benchmarks.stores import texts
from commonplace.benchmarks.harness import describe, open_engine, workspace
from commonplace.consolidation.runner import RunOptions, agent_of
from commonplace.errors import NoRelation, NotFoundError, UsageError
from commonplace.retention import DAY_S
from commonplace.types import Progress
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commonplace.consolidation.base import ConsolidationAgent
    from commonplace.consolidation.results import RelationResult
    from commonplace.models.contract import Embedder


_T = TypeVar("_T")

END: Final = 1_767_225_600.0
"""When the agents run: the beginning of 2026."""
_PARTS: Final = 100
_DAYS: Final = 120.0
_NAMES: Final = 2_000
_TAGS: Final = 50
_ITEMS: Final = 50
_AGAIN: Final = 10
"""Every tenth memory says again what the one before it does, without every fifth word."""
_REVIEWED: Final = 100
_REVIEWS: Final = 3
"""Every hundredth was reviewed so often."""


def fill(directory: Path, count: int, seed: int, embedder: str | None, progress: Progress | None = None) -> None:
    """Remember so many made memories in a new store, over the 120 days before `END`."""
    memories = _memories(count, seed)
    size = max(1, -(-count // _PARTS))
    begins = range(0, count, size)
    clock = [END]
    with commonplace.open(directory, embedder=embedder, clock=lambda: clock[0]) as engine:
        for part, begin in enumerate(begins, start=1):
            clock[0] = END - _DAYS * DAY_S * (1 - part / len(begins))
            engine.remember_many(memories[begin : begin + size])
            if progress is not None:
                progress("remembering", min(count, begin + size), count)
        for number in range(0, count, _REVIEWED):
            for _ in range(_REVIEWS):
                engine.review(str(number))


def looked(directory: Path, embedder: str | None) -> dict[str, dict[str, float | int]]:
    """Return, by agent, how many items it finds, and the seconds of its scans and of its slowest item; write nothing.

    Merging has none: its items are issues that the agent before it files.
    """
    figures: dict[str, dict[str, float | int]] = {}
    with open_engine(directory, embedder=embedder, now=END) as engine:
        for name in (agent for agent in AGENTS if agent != "merge"):
            figures[name] = _looked(agent_of(name, engine, RunOptions(dry_run=True)))
    return figures


def lived(directory: Path, embedder: str | None, progress: Progress | None = None) -> dict[str, Any]:
    """Return how long a dry run of all agents takes, and then a real one, agent by agent, without a rate limit."""
    with open_engine(directory, embedder=embedder, now=END) as engine:
        dry, _ = _timed(partial(engine.consolidate, dry_run=True, rate_limit=0))
        figures: dict[str, dict[str, float | int]] = {}
        for index, name in enumerate(AGENTS):
            if progress is not None:
                progress(f"running {name}", index, len(AGENTS))
            seconds, report = _timed(partial(engine.consolidate, [name], rate_limit=0))
            figures[name] = {
                "results": len(report.results[name]),
                "applied": report.applied,
                "failed": len(report.errors),
                "run_s": round(seconds, 3),
            }
    return {
        "dry_s": round(dry, 3),
        "real_s": round(sum(row["run_s"] for row in figures.values()), 3),
        "agents": figures,
    }


def _looked(agent: ConsolidationAgent[Any]) -> dict[str, float | int]:
    first, items = _timed(agent.scan)
    again, _ = _timed(agent.scan)
    times = [0.0]
    for item in items[:_ITEMS]:
        with suppress(NoRelation, NotFoundError):
            times.append(_timed(partial(agent.process_item, item))[0])
    return {
        "items": len(items),
        "scan_s": round(first, 3),
        "again_s": round(again, 3),
        "slowest_item_s": round(max(times), 4),
    }


def _memories(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)  # noqa: S311 - made memories
    weights = [1 / (index + 1) for index in range(_NAMES)]
    memories: list[dict[str, Any]] = []
    for number, document in enumerate(texts(count, seed)):
        words = document.text.split()
        if number % _AGAIN == _AGAIN - 1:
            words = [word for index, word in enumerate(memories[-1]["content"].split()) if index % 5]
        memories.append(
            {
                "id": str(number),
                "content": " ".join(words),
                "tier": "medium",
                "entities": [f"Name {name}" for name in draw.choices(range(_NAMES), weights, k=2)],
                "tags": [f"tag-{draw.randrange(_TAGS)}"],
            }
        )
    return memories


def _timed(call: Callable[[], _T]) -> tuple[float, _T]:
    begun = time.perf_counter()
    result = call()
    return time.perf_counter() - begun, result


LARGEST_SCORE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences, and how much they say the same, 0–1."""

    first: str
    second: str
    score: float


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a file of JSON lines {a, b, score}, a score from 0 to 5.

    Raises:
        UsageError: the file cannot be read, or a line is not of the form.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a readable file in UTF-8") from error
    return [_pair(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _pair(path: Path, number: int, line: str) -> Pair:
    try:
        value = json.loads(line)
        first, second, score = value["a"], value["b"], value["score"]
        if isinstance(first, str) and isinstance(second, str) and 0 <= score <= LARGEST_SCORE:
            return Pair(first, second, score / LARGEST_SCORE)
    except (ValueError, KeyError, TypeError):
        pass
    raise UsageError(
        f"{path}, line {number} is no pair of sentences",
        remedy='give JSON lines {"a": text, "b": text, "score": number from 0 to 5}',
    )


def cosines_of(embedder: Embedder, pairs: Sequence[Pair]) -> NDArray[np.float32]:
    """Return the cosines of the vectors of each pair as a store keeps them: shape (len(pairs),)."""
    import numpy as np

    from commonplace.models.contract import TokenizedText
    from commonplace.models.static import StaticEmbedder
    from commonplace.ranking.arrays import quantise, restore

    tokenize = StaticEmbedder.load().tokenize
    texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
    rows = quantise(embedder.embed([TokenizedText(text, tokenize(text)) for text in texts]))
    vectors = restore([row.tobytes() for row in rows])
    places = {text: index for index, text in enumerate(texts)}
    first = vectors[[places[pair.first] for pair in pairs]]
    second = vectors[[places[pair.second] for pair in pairs]]
    cosines: NDArray[np.float32] = np.einsum("nd,nd->n", first, second)
    return cosines


MEMORIES: Final = "memories.jsonl"
PAIRS: Final = "pairs.jsonl"

Ends = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """Memories as `remember_many` takes them, and whether pairs of them, by sorted ids, are related."""

    memories: tuple[Mapping[str, Any], ...]
    related: Mapping[Ends, bool]


def read_judged(directory: Path) -> Judged:
    """Return the memories of `memories.jsonl`, {id, content, tags…}, and the pairs of `pairs.jsonl`, {a, b, related}.

    Raises:
        UsageError: a file cannot be read, a line is not of the form, or a pair names a memory that is not there.
    """
    memories = tuple(value for _, value in _lines(directory / MEMORIES))
    ids = {memory.get("id") for memory in memories}
    related: dict[Ends, bool] = {}
    for number, value in _lines(directory / PAIRS):
        left, right, is_related = value.get("a"), value.get("b"), value.get("related")
        is_pair = isinstance(left, str) and isinstance(right, str) and left != right and {left, right} <= ids
        if not is_pair or not isinstance(is_related, bool):
            raise UsageError(
                f"{directory / PAIRS}, line {number} is no pair of the memories",
                remedy='give JSON lines {"a": id, "b": id, "related": true or false}',
            )
        related[_sorted(str(left), str(right))] = is_related
    return Judged(memories, related)


def judge_links(judged: Judged, embedder: str | None = None) -> dict[str, Any]:
    """Look for relations among the memories, in a store of their own, and return how right the found ones are."""
    from commonplace.consolidation import ConfidenceConfig, RelationshipDiscovery

    with workspace(None) as directory, open_engine(directory, embedder=embedder) as engine:
        engine.remember_many(judged.memories)
        agent = RelationshipDiscovery(dry_run=True, book=engine)
        begun = time.perf_counter()
        items = agent.scan()
        scan_s = time.perf_counter() - begun
        links = {_sorted(link.from_memory_id, link.to_memory_id): link for link in _results(agent, items)}
    least = ConfidenceConfig().log_threshold
    return {
        "memories": len(judged.memories),
        "judged": len(judged.related),
        "related": sum(judged.related.values()),
        "scan_s": round(scan_s, 3),
        "decisions": {
            "link": _links_counted(links, judged.related),
            "link_unasked": _links_counted(
                [pair for pair, link in links.items() if link.confidence >= least], judged.related
            ),
        },
    }


def _results(agent: Any, items: Collection[str]) -> Iterator[RelationResult]:
    for item in items:
        try:
            yield agent.process_item(item)
        except NoRelation:
            continue


def _links_counted(chosen: Collection[Ends], related: Mapping[Ends, bool]) -> dict[str, float]:
    """Return precision and recall of the pairs that were chosen; neither where none of them was judged."""
    verdicts = [related[pair] for pair in chosen if pair in related]
    counted: dict[str, float] = {"pairs": len(chosen), "judged": len(verdicts)}
    if verdicts:
        counted |= {"precision": sum(verdicts) / len(verdicts), "recall": sum(verdicts) / max(1, sum(related.values()))}
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
            raise UsageError(f"{path}, line {number} is not a JSON object", remedy="give one object a line")
        yield number, value


def _sorted(left: str, right: str) -> Ends:
    return (left, right) if left < right else (right, left)


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
        figures["relations"] = judge_links(read_judged(options.relations), options.embedder)
    if options.memories:
        with workspace(options.keep) as directory:
            fill(directory, options.memories, options.seed, options.embedder, progress)
            figures["scan"] = {"memories": options.memories, "agents": looked(directory, options.embedder)}
            if options.runs:
                figures["run"] = lived(directory, options.embedder, progress)
    return figures


def _judged(pairs: Sequence[Pair], embedder: str) -> dict[str, Any]:
    import numpy as np

    from commonplace.consolidation.pairs import LINKED, MERGED, size_factor
    from commonplace.consolidation.runtime import ConfidenceConfig, scale_of
    from commonplace.models.registry import open_embedder

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
    from commonplace.consolidation.text_merge import MergeSource, merge

    return bool(merge([MergeSource("first", pair.first, _NOON), MergeSource("second", pair.second, _NOON)]).conflicts)


@click.command()
@click.option("--pairs", type=FILE, help="Judged pairs of sentences, JSON lines {a, b, score}.")
@click.option(
    "--relations",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory with memories.jsonl and judged pairs.jsonl.",
)
@click.option(
    "--memories", type=int, default=10_000, show_default=True, metavar="N", help="How many are looked through; 0: none."
)
@click.option("--runs", is_flag=True, help="Also run all agents over them, a dry run and a real one.")
@embedder_option
@keep_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure what is merged and linked, and how fast.

    The pairs are merged or linked by the similarity of their vectors, as two memories would be: prints precision and
    recall against scores from 0 to 5, of which 4 and more mean the same. The memories of a directory are linked, and
    compared with the pairs of them, {a, b, related}, that were judged. Then made-up memories are looked through,
    and consolidated with --runs.
    """
    show(lambda: run(ConsolidationOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
