"""Measure time, memory and disk at a given size, and the same work done by simpler means in the same run, as ratios.

The simpler means are what one would otherwise build on: Tantivy alone, SQLite FTS5, NumPy brute force. Each is used as
its own manual shows, with stop words taken out of the questions, and finds the best hundred. They do less than a search
does: no second stage, no filters, no snippets.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tantivy import Document as Row
from tantivy import Index, SchemaBuilder

from commonplace.benchmarks.data import Recipe, make_documents, make_queries, read_corpus, sample, words_of
from commonplace.benchmarks.harness import (
    DEPTH,
    Answer,
    Metered,
    ask,
    build,
    check_methods,
    describe,
    latency,
    open_engine,
    owner_of,
    peak_memory_bytes,
    size_bytes,
    workspace,
)
from commonplace.benchmarks.measures import median
from commonplace.engine import Engine
from commonplace.errors import CommonplaceError, UsageError
from commonplace.models.static import ModelData
from commonplace.settings.paths import DATABASE
from commonplace.text.languages import STOP_WORDS
from commonplace.types import Document, Method, Progress

LIMIT = 10
"""Hits asked for, as by default; a hundred candidates of each kind stand behind them, as many as the others find."""
SAMPLED = 500
BASELINE_QUESTIONS = 100
"""The simpler means get fewer questions: at a million passages some of them take most of a second for one."""


@dataclass(frozen=True, slots=True)
class LatencyOptions:
    """What to measure.

    Attributes:
        passages: size of the corpus that is made; unused with `corpus`.
        corpus: a BEIR corpus.jsonl to use in its place.
        queries: how many questions are asked, by each method and in the process whose memory is measured.
        has_baselines: also do the work with Tantivy, FTS5 and NumPy.
        built: the store that an earlier run with the same corpus kept, to ask it again; None builds one.
        keep: directory to leave the built store in; None removes it.
    """

    passages: int = 10_000
    corpus: Path | None = None
    queries: int = 300
    methods: tuple[str, ...] = ("two-stage",)
    has_baselines: bool = True
    embedder: str | None = None
    built: Path | None = None
    keep: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("passages", self.passages), ("queries", self.queries)):
            if value < 1:
                raise UsageError(f"{name} is {value}", remedy="give at least 1")
        if self.built is not None and not (self.built / DATABASE).exists():
            raise UsageError(f"there is no store in {self.built}", remedy="name the directory of an earlier --keep")
        if self.built is not None and self.keep is not None:
            raise UsageError(
                f"no store is built that {self.keep} could keep", remedy="give --built or --keep, not both"
            )


def run(options: LatencyOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Build, ask, start processes, repeat with the simpler means, and return the JSON form of what was measured.

    Raises:
        UsageError: a method, the corpus file or the directory to keep is wrong.
    """
    methods = check_methods(options.methods)
    documents = _source(options)
    drawn = sample(documents(), SAMPLED, options.seed)
    questions = make_queries(drawn, options.queries, options.seed + 1)
    if not questions:
        raise UsageError(f"{options.corpus} holds no text to ask about", remedy="give passages of three words or more")
    with workspace(options.keep) if options.built is None else nullcontext(options.built) as directory:
        corpus = _corpus(options, documents, directory, progress)
        with open_engine(directory) as engine:
            embedder = engine.index_status().embedder
            corpus.setdefault("passages", engine.index_status().counts["passages"])
            peak = peak_memory_bytes()
            figures = {method: _figures(engine, questions, method, progress) for method in methods}
        process = _processes(directory, options.embedder, questions)
        result = {
            "benchmark": "latency",
            "machine": describe(),
            "embedder": embedder,
            "corpus": {**corpus, "is_made": options.corpus is None, "seed": options.seed},
            "queries": {"asked": len(questions)},
            "methods": figures,
            "process": process,
            "peak_memory_bytes": peak,
        }
    return {**result, **_compared(options, documents, questions, result, progress)} if options.has_baselines else result


def _corpus(
    options: LatencyOptions, documents: Callable[[], Iterable[Document]], directory: Path, progress: Progress | None
) -> dict[str, Any]:
    """Build the store, and return what that cost; of one that is there already nothing is known."""
    if options.built is not None:
        return {}
    return build(directory, Metered(documents()), embedder=options.embedder, progress=progress).to_dict()


def _dimensions(embedder: str) -> int:
    """Return how long the vectors of an embedder are, which is written as name@version/dimensions."""
    return int(embedder.rpartition("/")[2].rstrip(")"))


def _source(options: LatencyOptions) -> Callable[[], Iterable[Document]]:
    """Return what gives the same documents again at every call, one by one: a million are never held at once."""
    if options.corpus is not None:
        return partial(read_corpus, options.corpus)
    words = words_of(ModelData().vocabulary())
    return partial(make_documents, Recipe(options.passages, options.seed), words)


def _figures(engine: Engine, questions: Sequence[str], method: Method, progress: Progress | None) -> dict[str, Any]:
    answers = list(ask(engine, questions, method, owner_of, progress, limit=LIMIT))
    return {**latency([answer.ms for answer in answers]), "stages": _stages(answers)}


def _stages(answers: Sequence[Answer]) -> dict[str, Any]:
    names = dict.fromkeys(stage.name for answer in answers for stage in answer.stages)
    return {
        name: latency([stage.ms for answer in answers for stage in answer.stages if stage.name == name])
        for name in names
    }


def _compared(
    options: LatencyOptions,
    documents: Callable[[], Iterable[Document]],
    questions: Sequence[str],
    result: dict[str, Any],
    progress: Progress | None,
) -> dict[str, Any]:
    asked = questions[:BASELINE_QUESTIONS]
    shape = (result["corpus"]["passages"], _dimensions(result["embedder"]))
    with workspace(None) as directory:
        runs: dict[str, Callable[[], dict[str, Any]]] = {
            "tantivy": lambda: _tantivy(documents(), asked, directory / "tantivy"),
            "fts5": lambda: _fts5(documents(), asked, directory / "fts5"),
            "numpy": lambda: _numpy(*shape, asked, options.seed),
        }
        measured = {}
        for number, (name, measured_run) in enumerate(runs.items()):
            if progress is not None:
                progress(f"comparing with {name}", number, len(runs))
            measured[name] = measured_run()
    return {"baselines": measured, "ratios": {name: _ratios(result, figures) for name, figures in measured.items()}}


def _ratios(result: dict[str, Any], baseline: dict[str, Any]) -> dict[str, float]:
    """Return our figure divided by the other's; the first method asked stands for us."""
    ours = next(iter(result["methods"].values()))
    pairs = {
        "build": (result["corpus"].get("build_s", 0.0), baseline.get("build_s", 0.0)),
        "p50": (ours["p50_ms"], baseline["p50_ms"]),
        "p95": (ours["p95_ms"], baseline["p95_ms"]),
    }
    return {name: round(mine / theirs, 2) for name, (mine, theirs) in pairs.items() if mine and theirs}


STARTS = 5
TIMEOUT_S = 600

# It imports only what answering needs, so that what is measured is what a user's process would take.
_PROBE = """
import json, sys
import commonplace
store, embedder, path = sys.argv[1:]
questions = json.load(open(path, encoding="utf-8"))
with commonplace.open(store, embedder=embedder or None) as book:
    for number, question in enumerate(questions):
        book.search(question)
        if number == 0:
            print("answered", flush=True)
    from commonplace.benchmarks.harness import peak_memory_bytes, resident_memory_bytes
    figures = {"resident_bytes": resident_memory_bytes(), "peak_bytes": peak_memory_bytes()}
print(json.dumps(figures))
"""


def _processes(store: Path, embedder: str | None, questions: Sequence[str]) -> dict[str, Any]:
    """Return `first_answer_ms` (median of five starts), `bare_python_ms`, and memory after all questions.

    Raises:
        CommonplaceError: a process failed; its message is in the error.
    """
    with TemporaryDirectory(prefix="commonplace-benchmark-") as name:
        one, many = Path(name) / "one.json", Path(name) / "many.json"
        one.write_text(json.dumps(questions[:1]), encoding="utf-8")
        many.write_text(json.dumps(list(questions)), encoding="utf-8")
        command = [sys.executable, "-c", _PROBE, str(store), embedder or ""]
        starts = [_first_line([*command, str(one)])[0] for _ in range(STARTS)]
        memory: dict[str, Any] = json.loads(_first_line([*command, str(many)])[1])
    bare = [_first_line([sys.executable, "-c", "print()"])[0] for _ in range(STARTS)]
    return {
        "first_answer_ms": round(median(starts), 1),
        "bare_python_ms": round(median(bare), 1),
        "searches": len(questions),
        **memory,
    }


def _first_line(command: Sequence[str]) -> tuple[float, str]:
    """Return the milliseconds until a process wrote its first line, and all that it wrote after that."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ms = (time.perf_counter() - start) * 1000
        rest, complaint = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        raise CommonplaceError(f"a measured process ended with {process.returncode}: {last[0]}")
    return ms, rest


SQLITE_BATCH = 2000
MATRIX_BATCH = 50_000


def content_words(question: str) -> list[str]:
    """Return the words of a question as a keyword engine wants them: lower case, no stop words, each once."""
    words = ["".join(filter(str.isalnum, word)).lower() for word in question.split()]
    kept = [word for word in words if word and word not in STOP_WORDS]
    return list(dict.fromkeys(kept or [word for word in words if word]))


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

    def find(question: str) -> int:
        words = content_words(question)
        return (
            len(searcher.search(index.parse_query(" ".join(words), ["text"]), DEPTH, count=False).hits) if words else 0
        )

    return _baseline(seconds, size_bytes(directory), questions, find)


def _fts5(documents: Iterable[Document], questions: Sequence[str], directory: Path) -> dict[str, Any]:
    """Build an FTS5 table with the porter stemmer in one transaction and search it with OR, ranked by its bm25."""
    directory.mkdir(parents=True)
    path = directory / "fts5.db"
    metered = Metered(documents)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        start = time.perf_counter()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize = 'porter unicode61')")
        connection.execute("BEGIN")
        for batch in _batches(metered, SQLITE_BATCH):
            connection.executemany("INSERT INTO passages (text) VALUES (?)", [(document.text,) for document in batch])
        connection.execute("COMMIT")
        seconds = time.perf_counter() - start - metered.seconds

        def find(question: str) -> int:
            words = " OR ".join(f'"{word}"' for word in content_words(question))
            if not words:
                return 0
            sql = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
            return len(connection.execute(sql, (words, DEPTH)).fetchall())

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

    def find(_question: str) -> int:
        vector = generator.standard_normal(dimensions, dtype=np.float32)
        scores = matrix @ vector
        nearest = np.argpartition(scores, passages - best)[passages - best :]
        return len(nearest[np.argsort(-scores[nearest])])

    return _baseline(None, matrix.nbytes, questions, find)


def _batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch


def _baseline(seconds: float | None, size: int, questions: Sequence[str], find: Callable[[str], int]) -> dict[str, Any]:
    times = []
    for question in (questions[0], *questions):
        start = time.perf_counter()
        find(question)
        times.append((time.perf_counter() - start) * 1000)
    build = {} if seconds is None else {"build_s": round(seconds, 3)}
    # The first question opens files and fills caches; it is asked again, and only that counts.
    return {**build, "bytes": size, **latency(times[1:])}
