"""Make texts and a store of them, and measure the least that any store could take."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from commonplace.benchmarks.data import make_documents
from commonplace.benchmarks.harness import open_engine
from commonplace.types import Document, Progress

FILLED_AT_ONCE = 1_000
MEMORY_WORDS = 40
"""Words of a made memory: a long sentence or two."""


def texts(count: int, seed: int) -> Iterator[Document]:
    """Yield texts of a sentence or two, those of a made corpus cut short."""
    for document in make_documents(count, seed):
        yield Document(document.id, " ".join(document.text.split()[:MEMORY_WORDS]))


def fill(
    store: Path | str, documents: Sequence[Document], embedder: str | None, progress: Progress | None
) -> dict[str, float]:
    """Remember all the texts in a new store, and return the JSON form of how many and how long it took."""
    with open_engine(store, embedder=embedder) as engine:
        begun = time.perf_counter()
        for begin in range(0, len(documents), FILLED_AT_ONCE):
            part = documents[begin : begin + FILLED_AT_ONCE]
            engine.remember_many([{"content": document.text, "tier": "medium"} for document in part])
            if progress is not None:
                progress("remembering", begin + len(part), len(documents))
        return {"stored": len(documents), "fill_s": round(time.perf_counter() - begun, 3)}


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
