"""Measure how fast memories are stored and recalled, and what memory the process takes that does it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click

from benchmarks.output import embedder_option, json_option, keep_option, probed, seed_option, show
from benchmarks.stores import bare_commits, fill, texts
from commonplace.benchmarks.data import questions_about
from commonplace.benchmarks.harness import check_counts, describe, latency, open_engine, workspace
from commonplace.types import Progress


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """What to measure.

    Attributes:
        memories: how many the store holds when the measured process starts.
        calls: how often that process recalls, and then stores and recalls in turn.
    """

    memories: int = 10_000
    calls: int = 300
    embedder: str | None = None
    keep: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(memories=self.memories, calls=self.calls)


def run(options: MemoryOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Fill a store, let a fresh process recall, then store and recall in turn, and return the JSON form of it.

    That process says what memory it has when it has opened the store, recalled once, recalled `calls` times, and stored
    and recalled `calls` times. The least that a durable write can take here is measured in the same run: one small row,
    committed by SQLite alone.

    Raises:
        UsageError: a number or the directory to keep is wrong.
        CommonplaceError: the measured process failed.
    """
    documents = texts(options.memories + options.calls, options.seed)
    stored = list(islice(documents, options.memories))
    fresh = [document.text for document in documents]
    questions = questions_about(stored, 2 * options.calls + 1, options.seed)
    with workspace(options.keep) as directory:
        filled = fill(directory, stored, options.embedder, progress)
        with open_engine(directory) as engine:
            embedder = engine.index_status().embedder
        figures = _measured(directory, options.embedder, fresh, questions)
        bare = bare_commits(directory.parent / f"{directory.name}.bare.db", options.calls)
    store = latency(figures.pop("store_ms"))
    return {
        "benchmark": "memories",
        "machine": describe(),
        "embedder": embedder,
        "memories": {**filled, "calls": options.calls},
        "store": {**store, "bare_commit": latency(bare)},
        "recall": latency(figures.pop("recall_ms")),
        "memory": figures.pop("memory"),
    }


def _measured(directory: Path, embedder: str | None, texts: list[str], questions: list[str]) -> dict[str, Any]:
    """Return what the process says; only the recalls between which it stored are timed."""
    first, alone, between = questions[0], questions[1 : len(texts) + 1], questions[len(texts) + 1 :]
    requests = [
        ("memory", "open"),
        ("recall", first),
        ("memory", "first_recall"),
        *(("recall", question) for question in alone),
        ("memory", "recalls"),
        *(item for both in zip(texts, between, strict=True) for item in zip(("store", "recall"), both, strict=True)),
        ("memory", "stores_and_recalls"),
    ]
    figures = probed("memory_probe", [str(directory.absolute()), embedder or ""], requests)
    return {**figures, "recall_ms": figures["recall_ms"][-len(texts) :]}


@click.command()
@click.option(
    "--memories", type=int, default=10_000, show_default=True, metavar="N", help="How many are stored before."
)
@click.option(
    "--calls", type=int, default=300, show_default=True, metavar="N", help="How often is stored, and recalled."
)
@embedder_option
@keep_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure how fast memories are stored and recalled.

    A fresh process stores and recalls in turn; a bare durable commit is measured beside it.
    """
    show(lambda: run(MemoryOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
