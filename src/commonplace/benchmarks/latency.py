"""Measure time, memory and disk at a given size, and the same work done by simpler means in the same run, as ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.benchmarks import baselines
from commonplace.benchmarks.asking import Answer, ask, check_methods, latency, owner_of
from commonplace.benchmarks.corpus import Recipe, make_documents, make_queries, sample, words_of
from commonplace.benchmarks.datasets import read_corpus
from commonplace.benchmarks.machine import describe, peak_memory_bytes
from commonplace.benchmarks.processes import measure
from commonplace.benchmarks.profile import bandwidth, profile
from commonplace.benchmarks.workspace import Metered, build, open_engine, workspace
from commonplace.errors import UsageError
from commonplace.settings.paths import DATABASE
from commonplace.types import Document, Method, Progress

if TYPE_CHECKING:
    from commonplace.engine import Engine

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
    questions, others = (make_queries(drawn, options.queries, options.seed + further) for further in (1, 2))
    if not questions:
        raise UsageError(f"{options.corpus} holds no text to ask about", remedy="give passages of three words or more")
    with workspace(options.keep) if options.built is None else nullcontext(options.built) as directory:
        corpus = _corpus(options, documents, directory, progress)
        with open_engine(directory) as engine:
            embedder = engine.index_status().embedder
            passages = corpus.setdefault("passages", engine.index_status().counts["passages"])
            peak = peak_memory_bytes()
            figures = {method: _figures(engine, questions, method, progress) for method in methods}
            profiled = profile(engine, others, limit=LIMIT)
        process = measure(directory, "default", options.embedder, questions)
        result = {
            "benchmark": "latency",
            "machine": describe(),
            "embedder": embedder,
            "corpus": {**corpus, "is_made": options.corpus is None, "seed": options.seed},
            "queries": {"asked": len(questions)},
            "methods": figures,
            "profile": profiled,
            "scan": bandwidth(profiled, passages, _dimensions(embedder)),
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
    from commonplace.models.static import ModelData

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
            "tantivy": lambda: baselines.tantivy(documents(), asked, directory / "tantivy"),
            "fts5": lambda: baselines.fts5(documents(), asked, directory / "fts5"),
            "numpy": lambda: baselines.numpy(*shape, asked, options.seed),
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
