"""Measure what a process that serves an agent takes to store and recall, in time and memory, over many memories."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from commonplace.benchmarks.asking import latency
from commonplace.benchmarks.corpus import Recipe, make_documents, make_queries, sample, words_of
from commonplace.benchmarks.machine import describe
from commonplace.benchmarks.workspace import open_engine, workspace
from commonplace.errors import CommonplaceError, UsageError
from commonplace.types import Document, Progress

WORDS = 40
"""Words of a memory: a long sentence or two."""
BATCH = 1_000
TIMEOUT_S = 600


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
        for name, value in (("memories", self.memories), ("calls", self.calls)):
            if value < 1:
                raise UsageError(f"{name} is {value}", remedy="give at least 1")


def run(options: MemoryOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Fill a store, let a fresh process recall, then store and recall in turn, and return the JSON form of it.

    That process says what memory it has when it has opened the store, recalled once, recalled `calls` times, and stored
    and recalled `calls` times. The least that a durable write can take here is measured in the same run: one small row,
    committed by SQLite alone.

    Raises:
        UsageError: a number or the directory to keep is wrong.
        CommonplaceError: the measured process failed.
    """
    made = texts(options.memories + options.calls, options.seed)
    known = list(islice(made, options.memories))
    fresh = [document.text for document in made]
    questions = make_queries(sample(known, 500, options.seed), 2 * options.calls + 1, options.seed + 1)
    with workspace(options.keep) as directory:
        filled = fill(directory, known, options.embedder, progress)
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


def texts(count: int, seed: int) -> Iterator[Document]:
    """Yield texts of a sentence or two, those of a made corpus cut short."""
    from commonplace.models.static import ModelData

    words = words_of(ModelData().vocabulary())
    for document in make_documents(Recipe(count, seed), words):
        yield Document(document.id, " ".join(document.text.split()[:WORDS]))


def fill(
    directory: Path, known: Sequence[Document], embedder: str | None, progress: Progress | None
) -> dict[str, float]:
    """Remember all the texts in a new store, and return the JSON form of how many and how long it took."""
    with open_engine(directory, embedder=embedder) as engine:
        begun = time.perf_counter()
        for begin in range(0, len(known), BATCH):
            part = known[begin : begin + BATCH]
            engine.remember_many([{"content": document.text, "tier": "medium"} for document in part])
            if progress is not None:
                progress("remembering", begin + len(part), len(known))
        return {"stored": len(known), "fill_s": round(time.perf_counter() - begun, 3)}


def _measured(directory: Path, embedder: str | None, texts: list[str], questions: list[str]) -> dict[str, Any]:
    """Return what the process says; only the recalls between which it stored are timed."""
    first, alone, between = questions[0], questions[1 : len(texts) + 1], questions[len(texts) + 1 :]
    requests = [
        ("memory", "open"),
        ("recall", first),
        ("memory", "first_recall"),
        *(("recall", question) for question in alone),
        ("memory", "recalls"),
        *(each for both in zip(texts, between, strict=True) for each in zip(("store", "recall"), both, strict=True)),
        ("memory", "stores_and_recalls"),
    ]
    command = [sys.executable, "-m", "commonplace.benchmarks.memory_probe", str(directory), embedder or ""]
    task = "\n".join(map(json.dumps, requests))
    done = subprocess.run(command, input=task, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise CommonplaceError(f"the measured process ended with {done.returncode}: {last[0]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return {**figures, "recall_ms": figures["recall_ms"][-len(texts) :]}


def bare_commits(path: Path, count: int) -> list[float]:
    """Return the milliseconds of `count` commits of one row each, as durable as those of a store."""
    times = []
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("CREATE TABLE t (x TEXT)")
            for number in range(count):
                begun = time.perf_counter()
                db.execute("INSERT INTO t VALUES (?)", (str(number),))
                times.append((time.perf_counter() - begun) * 1000)
    finally:
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    return times


if __name__ == "__main__":
    memories, calls, seed = map(int, sys.argv[1:])
    print(json.dumps(run(MemoryOptions(memories, calls, seed=seed))))  # noqa: T201 - read by `figures`
