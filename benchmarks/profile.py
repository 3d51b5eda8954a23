"""Tell where the time of a search goes: the functions of its path are timed from outside, each without what it calls.

So the parts add up to the whole, and what none of them has is the rest.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, Final

import click
import numpy as np

from benchmarks.output import embedder_option, json_option, seed_option, show
from commonplace.benchmarks.data import make_documents, make_queries, sample
from commonplace.benchmarks.harness import WARM_UP, Metered, build, describe, open_engine, workspace
from commonplace.benchmarks.measures import median
from commonplace.engine import Engine
from commonplace.types import Document

PARTS: Final = {
    "state of index and store": (
        ("commonplace.engine.maintenance", "IndexMaintenance.freshen"),
        ("commonplace.search.recall", "Recall._tail"),
        ("commonplace.index.generations", "Index.reader"),
    ),
    "analyse the query": (
        ("commonplace.search.recall", "asked_times"),
        ("commonplace.search.retrieve", "prepare"),
    ),
    "embed it": (("commonplace.models.static", "StaticEmbedder.embed"),),
    "its tokens' weights": (("commonplace.models.static", "StaticEmbedder.similarities"),),
    "words: postings": (("commonplace.index.lexical", "PackedLexicalIndex.search"),),
    "words: scores of the others": (
        ("commonplace.search.recall", "RecallState._scores"),
        ("commonplace.ranking.bm25", "Matches.scores"),
    ),
    "meaning: sign bits": (("commonplace.index.dense", "ChunkedDenseIndex._candidates"),),
    "meaning: int8": (("commonplace.index.dense", "ChunkedDenseIndex.search"),),
    "read the candidates": (
        ("commonplace.store.store", "Store.tokens"),
        ("commonplace.store.store", "Store.tokens_beside"),
        ("commonplace.search.recall", "token_rows"),
    ),
    "late interaction": (("commonplace.search.signals", "Phrasing.shares"),),
    "other signals": (
        ("commonplace.search.signals", "Phrasing.candidates"),
        ("commonplace.search.recall", "RecallState._unindexed"),
        ("commonplace.search.recall", "RecallState._of_owners"),
    ),
    "fusion": (("commonplace.search.retrieve", "order"),),
    "selection": (("commonplace.search.retrieve", "select"),),
    "texts of the hits": (("commonplace.search.retrieve", "_made"),),
    "look for secrets": (("commonplace.search.result", "without_secrets"),),
}
"""What is timed under each name: a module, and a function of it as its caller finds it."""

REST: Final = "rest"
_SCAN: Final = "meaning: sign bits"
_SUMS: Final = 20


class _Watch:
    """Adds up the time of parts, each without those that it calls. For one thread."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - begun
                self.spent[part] += took - self._inner.pop()
                self._inner[-1] += took

        return measured


def profile(engine: Engine, questions: Sequence[str], *, limit: int) -> dict[str, Any]:
    """Ask each question once, and return the JSON form of where the time went.

    Returns:
        `whole`: p50_ms and mean_ms; `parts`, in the order of a search: p50_ms, mean_ms and the share of the whole; the
        means add up to that of the whole.
    """
    whole: list[float] = []
    rows: list[dict[str, float]] = []
    with _watched() as watch:
        engine.search(WARM_UP, limit=limit, min_score=0.0)
        for question in questions:
            watch.spent.clear()
            begun = time.perf_counter()
            engine.search(question, limit=limit, min_score=0.0)
            took = time.perf_counter() - begun
            whole.append(took)
            rows.append({**watch.spent, REST: took - sum(watch.spent.values())})
    total = sum(whole)
    return {
        "whole": {"p50_ms": _ms(median(whole)), "mean_ms": _ms(total / len(whole))},
        "parts": {
            part: {
                "p50_ms": _ms(median([row.get(part, 0.0) for row in rows])),
                "mean_ms": _ms(sum(row.get(part, 0.0) for row in rows) / len(rows)),
                "share": round(sum(row.get(part, 0.0) for row in rows) / total, 4),
            }
            for part in (*PARTS, REST)
        },
    }


def bandwidth(profiled: Mapping[str, Any], passages: int, dimensions: int) -> dict[str, float]:
    """Return how fast the sign bits are gone through, and how fast NumPy adds up as many bytes, which is the least.

    Of each passage are read a bit for each dimension, in words of 64, and eight bytes that tell if it may be found.
    """
    size = passages * (-(-dimensions // 64) + 1) * 8
    words = np.ones(size // 8, np.uint64)
    times = []
    for _ in range(_SUMS):
        begun = time.perf_counter()
        words.sum()
        times.append(time.perf_counter() - begun)
    scan_ms = profiled["parts"][_SCAN]["p50_ms"]
    sum_ms = median(times) * 1000
    return {
        "read_bytes": size,
        "scan_ms": scan_ms,
        "sum_ms": round(sum_ms, 4),
        "scan_gigabytes_per_s": round(size / scan_ms / 1e6, 2) if scan_ms else 0.0,
        "sum_gigabytes_per_s": round(size / sum_ms / 1e6, 2),
        "times_as_long": round(scan_ms / sum_ms, 1),
    }


@contextmanager
def _watched() -> Iterator[_Watch]:
    """Time the parts for the length of a `with` block."""
    watch = _Watch()
    put_back: list[tuple[Any, str, Any]] = []
    try:
        for part, places in PARTS.items():
            for module, path in places:
                holder, name = _holder(module, path)
                original = vars(holder)[name]
                put_back.append((holder, name, original))
                setattr(holder, name, watch.timed(part, original))
        yield watch
    finally:
        for holder, name, original in put_back:
            setattr(holder, name, original)


def _holder(module: str, path: str) -> tuple[Any, str]:
    """Return what has a function as its attribute, a module or a class, and the attribute's name."""
    holder: Any = import_module(module)
    *classes, name = path.split(".")
    for class_name in classes:
        holder = vars(holder)[class_name]
    return holder, name


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def run(passages: int, queries: int, embedder: str | None, seed: int) -> dict[str, Any]:
    """Build a made corpus, ask, and return the JSON form of where the time went."""

    def documents() -> Iterator[Document]:
        return make_documents(passages, seed)

    questions = make_queries(sample(documents(), 500, seed), queries, seed + 2)
    with workspace(None) as directory:
        build(directory, Metered(documents()), embedder=embedder)
        with open_engine(directory) as engine:
            name = engine.index_status().embedder
            profiled = profile(engine, questions, limit=10)
    dimensions = int(name.rpartition("/")[2].rstrip(")"))
    return {"machine": describe(), **profiled, "scan": bandwidth(profiled, passages, dimensions)}


@click.command()
@click.option(
    "--passages", type=int, default=10_000, show_default=True, metavar="N", help="Size of the made-up corpus."
)
@click.option("--queries", type=int, default=300, show_default=True, metavar="N", help="How many questions are asked.")
@embedder_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Tell where the time of a search goes, and how fast the sign bits are gone through."""
    show(lambda: run(**options), as_json=as_json)


if __name__ == "__main__":
    main()
