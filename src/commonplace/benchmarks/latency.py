"""Measure the time, memory and disk that building and searching a store of a given size take."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commonplace.benchmarks import harness
from commonplace.benchmarks.data import make_documents, questions_about, read_corpus
from commonplace.benchmarks.measures import median
from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, UsageError
from commonplace.types import Document, Progress

LIMIT = 10
"""Number of hits retrieved, as by default."""
STARTS = 5
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class LatencyOptions:
    """Options of the benchmark.

    Attributes:
        passages: size of the generated corpus; unused with `corpus`, a BEIR corpus.jsonl.
        queries: number of questions asked by each method, and in the process whose memory is measured.
    """

    passages: int = 10_000
    corpus: Path | None = None
    queries: int = 300
    methods: tuple[str, ...] = ("two-stage",)
    embedder: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        harness.check_counts(passages=self.passages, queries=self.queries)

    def documents(self) -> Iterable[Document]:
        """Return the same documents at every call, one by one: a million are never in memory at once."""
        if self.corpus is not None:
            return read_corpus(self.corpus)
        return make_documents(self.passages, self.seed)

    def questions(self) -> list[str]:
        """Return the same questions about the documents at every call."""
        questions = questions_about(self.documents(), self.queries, self.seed)
        if not questions:
            raise UsageError(f"{self.corpus} holds no text to ask about", remedy="give passages of three words or more")
        return questions


def run(options: LatencyOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Build a store, ask it, measure new processes that open it, and return the figures as JSON."""
    methods = harness.check_methods(options.methods)
    questions = options.questions()
    with harness.workspace(None) as directory:
        documents = harness.Metered(options.documents())
        corpus = harness.build(directory, documents, embedder=options.embedder, progress=progress).to_dict()
        with harness.open_engine(directory) as engine:
            embedder = engine.index_status().embedder
            peak = harness.peak_memory_bytes()
            figures = {}
            for method in methods:
                answers = list(harness.ask(engine, questions, method, harness.owner_of, progress, limit=LIMIT))
                stages: dict[str, list[float]] = {}
                for stage in (stage for answer in answers for stage in answer.stages):
                    stages.setdefault(stage.name, []).append(stage.ms)
                stage_figures = {name: harness.latency(times) for name, times in stages.items()}
                figures[method] = {**harness.latency([answer.ms for answer in answers]), "stages": stage_figures}
        process = _processes(directory, options.embedder, questions)
    return {
        "benchmark": "latency",
        "machine": harness.describe(),
        "embedder": embedder,
        "corpus": {**corpus, "is_made": options.corpus is None, "seed": options.seed},
        "queries": {"asked": len(questions)},
        "methods": figures,
        "process": process,
        "peak_memory_bytes": peak,
    }


# Imports only what answering needs, so that it measures what a user's process would take.
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
    import os
    from commonplace.benchmarks.harness import memory_of
    sizes = memory_of(os.getpid())
print(json.dumps({name: sizes.get(name, 0) for name in ("resident_bytes", "peak_bytes")}))
"""


def _processes(store: Path, embedder: str | None, questions: Sequence[str]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="commonplace-benchmark-") as name:
        first_path, all_path = Path(name) / "one.json", Path(name) / "many.json"
        first_path.write_text(json.dumps(questions[:1]), encoding="utf-8")
        all_path.write_text(json.dumps(list(questions)), encoding="utf-8")
        command = [sys.executable, "-c", _PROBE, str(store), embedder or ""]
        starts = [_first_line([*command, str(first_path)])[0] for _ in range(STARTS)]
        memory: dict[str, Any] = json.loads(_first_line([*command, str(all_path)])[1])
    bare = [_first_line([sys.executable, "-c", "print()"])[0] for _ in range(STARTS)]
    return {
        "first_answer_ms": round(median(starts), 1),
        "bare_python_ms": round(median(bare), 1),
        "searches": len(questions),
        **memory,
    }


def _first_line(command: Sequence[str]) -> tuple[float, str]:
    """Run a process; return the milliseconds until its first line of output, and the output after it."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ms = (time.perf_counter() - start) * 1000
        output, errors = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        raise CommonplaceError(f"a measured process ended with {process.returncode}: {harness.last_line(errors)}")
    return ms, output
