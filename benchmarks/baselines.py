"""Measure search at a given size, and the same work done by simpler means in the same run, as ratios.

The simpler means are what one would otherwise build on: Tantivy alone, SQLite FTS5, NumPy brute force. Each is used as
its own manual shows, with stop words taken out of the questions, and finds the best hundred. They do less than a search
does: no second stage, no filters, no snippets.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray
from tantivy import Document as Row
from tantivy import Index, SchemaBuilder

from benchmarks.output import FILE, embedder_option, json_option, seed_option, show
from commonplace.benchmarks import harness, latency
from commonplace.benchmarks.harness import DEPTH, Metered, size_bytes, workspace
from commonplace.benchmarks.latency import LatencyOptions
from commonplace.text.languages import STOP_WORDS
from commonplace.types import Document

MAX_QUESTIONS: Final = 100
"""The simpler means get fewer questions: at a million passages some of them take most of a second for one."""
MATRIX_BATCH: Final = 50_000


def run(options: LatencyOptions) -> dict[str, Any]:
    """Return the JSON form of what searching takes, of what the simpler means take, and of ours divided by theirs."""
    result = latency.run(options)
    questions = options.questions()[:MAX_QUESTIONS]
    # Written as name@version/dimensions.
    dimensions = int(result["embedder"].rpartition("/")[2].rstrip(")"))
    with workspace(None) as directory:
        measured = {
            "tantivy": _tantivy(options.documents(), questions, directory / "tantivy"),
            "fts5": _fts5(options.documents(), questions, directory / "fts5"),
            "numpy": _numpy(result["corpus"]["passages"], dimensions, questions, options.seed),
        }
    ratios = {name: _ratios(result, figures) for name, figures in measured.items()}
    return {**result, "baselines": measured, "ratios": ratios}


def _ratios(result: dict[str, Any], baseline: dict[str, Any]) -> dict[str, float]:
    """Return our figure divided by the other's; the first method asked stands for us."""
    measured = next(iter(result["methods"].values()))
    pairs = {
        "build": (result["corpus"].get("build_s", 0.0), baseline.get("build_s", 0.0)),
        "p50": (measured["p50_ms"], baseline["p50_ms"]),
        "p95": (measured["p95_ms"], baseline["p95_ms"]),
    }
    return {name: round(value / base, 2) for name, (value, base) in pairs.items() if value and base}


def content_words(question: str) -> list[str]:
    """Return the words of a question as a keyword engine wants them: lower case, no stop words, each once."""
    words = ["".join(filter(str.isalnum, word)).lower() for word in question.split()]
    content = [word for word in words if word and word not in STOP_WORDS]
    return list(dict.fromkeys(content or [word for word in words if word]))


def _tantivy(documents: Iterable[Document], questions: Sequence[str], directory: Path) -> dict[str, Any]:
    """Build a Tantivy index of one stemmed field, with its own defaults for threads and memory, and search it."""
    directory.mkdir(parents=True)
    schema = SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    schema.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    index = Index(schema.build(), str(directory))
    metered = Metered(documents)
    start = time.perf_counter()
    writer = index.writer()
    for document in metered:
        writer.add_document(Row(id=document.id, text=document.text))
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.perf_counter() - start - metered.seconds
    index.reload()
    searcher = index.searcher()

    def find(question: str) -> None:
        if words := content_words(question):
            searcher.search(index.parse_query(" ".join(words), ["text"]), DEPTH, count=False)

    return _baseline(seconds, size_bytes(directory), questions, find)


def _fts5(documents: Iterable[Document], questions: Sequence[str], directory: Path) -> dict[str, Any]:
    """Build an FTS5 table with the porter stemmer in one transaction and search it with OR, ranked by its bm25."""
    directory.mkdir(parents=True)
    metered = Metered(documents)
    with closing(sqlite3.connect(directory / "fts5.db", isolation_level=None)) as connection:
        start = time.perf_counter()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize = 'porter unicode61')")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO passages (text) VALUES (?)", ((document.text,) for document in metered))
        connection.execute("COMMIT")
        seconds = time.perf_counter() - start - metered.seconds

        def find(question: str) -> None:
            if words := " OR ".join(f'"{word}"' for word in content_words(question)):
                sql = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
                connection.execute(sql, (words, DEPTH)).fetchall()

        return _baseline(seconds, size_bytes(directory), questions, find)


def _numpy(passages: int, dimensions: int, questions: Sequence[str], seed: int) -> dict[str, Any]:
    """Compare a vector with every row of a float32 matrix; the numbers are random, which does not change the work."""
    generator = np.random.default_rng(seed)
    matrix: NDArray[np.float32] = np.empty((passages, dimensions), np.float32)
    for start in range(0, passages, MATRIX_BATCH):
        part = matrix[start : start + MATRIX_BATCH]
        generator.standard_normal(out=part, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    best = min(DEPTH, passages)

    def find(_question: str) -> None:
        scores = matrix @ generator.standard_normal(dimensions, dtype=np.float32)
        nearest = np.argpartition(scores, passages - best)[passages - best :]
        nearest[np.argsort(-scores[nearest])].tolist()

    return _baseline(None, matrix.nbytes, questions, find)


def _baseline(
    seconds: float | None, size: int, questions: Sequence[str], find: Callable[[str], None]
) -> dict[str, Any]:
    times = []
    for question in (questions[0], *questions):
        start = time.perf_counter()
        find(question)
        times.append((time.perf_counter() - start) * 1000)
    build = {} if seconds is None else {"build_s": round(seconds, 3)}
    # The first question opens files and fills caches; it is asked again, and only that counts.
    return {**build, "bytes": size, **harness.latency(times[1:])}


@click.command()
@click.option("--passages", type=int, default=10_000, show_default=True, metavar="N", help="Size of the corpus.")
@click.option("--corpus", type=FILE, help="Use this BEIR corpus.jsonl instead of a made-up one.")
@click.option("--queries", type=int, default=300, show_default=True, metavar="N", help="How many questions are asked.")
@embedder_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure search as `commonplace benchmark latency` does, and Tantivy, FTS5 and NumPy beside it."""
    show(lambda: run(LatencyOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
