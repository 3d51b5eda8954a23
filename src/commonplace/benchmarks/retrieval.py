"""Measure how well documents are found: a labelled set in a store of its own, or the current index with known paths."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.benchmarks import measures
from commonplace.benchmarks.asking import Answer, ask, check_methods, latency, owner_of, path_of
from commonplace.benchmarks.datasets import (
    Query,
    read_corpus,
    read_judged_queries,
    read_labelled_queries,
)
from commonplace.benchmarks.machine import describe, peak_memory_bytes
from commonplace.benchmarks.workspace import Metered, build, open_engine, workspace
from commonplace.errors import UsageError
from commonplace.types import METHODS, Hit, Method, Progress

if TYPE_CHECKING:
    from commonplace.engine import Engine

UNKNOWN_NAMED = 3


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What to measure.

    Attributes:
        queries: with `corpus` and `qrels`, BEIR queries; alone, JSON lines {query, relevant: [path]}.
        corpus, qrels: both, to index the corpus in a store of its own; neither, to ask the current index.
        store, namespace: which index is the current one; None is found as `commonplace search` finds it.
        keep: directory to leave the built store in; None removes it.
        limit_queries: ask only so many, drawn with `seed`.
    """

    queries: Path
    corpus: Path | None = None
    qrels: Path | None = None
    methods: tuple[str, ...] = METHODS
    store: Path | None = None
    namespace: str = "default"
    embedder: str | None = None
    keep: Path | None = None
    limit_queries: int | None = None
    seed: int = 0


def run(options: RetrievalOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Ask every judged query by every method and return the JSON form of what was measured.

    Raises:
        UsageError: a file, a method or the combination of options is wrong.
    """
    methods = check_methods(options.methods)
    if (options.corpus is None) != (options.qrels is None):
        raise UsageError(
            "a corpus needs judgements and judgements need a corpus", remedy="give both --corpus and --qrels"
        )
    with ExitStack() as stack:
        if options.corpus is not None and options.qrels is not None:
            queries, skipped = read_judged_queries(options.queries, options.qrels)
            directory = stack.enter_context(workspace(options.keep))
            documents = Metered(read_corpus(options.corpus))
            corpus = build(directory, documents, embedder=options.embedder, progress=progress).to_dict()
            engine = stack.enter_context(open_engine(directory))
            identity = owner_of
        else:
            queries, skipped = read_labelled_queries(options.queries), 0
            engine = stack.enter_context(
                open_engine(options.store, namespace=options.namespace, embedder=options.embedder)
            )
            _check_paths(engine, queries, options.queries)
            corpus, identity = {}, path_of
        queries = _drawn(queries, options)
        return {
            "benchmark": "retrieval",
            "machine": describe(),
            "embedder": engine.index_status().embedder,
            "corpus": corpus,
            "queries": {"asked": len(queries), "without_relevant": skipped},
            **_measured(engine, queries, methods, identity, progress),
            "peak_memory_bytes": peak_memory_bytes(),
        }


def _check_paths(engine: Engine, queries: Sequence[Query], file: Path) -> None:
    """Refuse a path that the index does not hold: it would count as something that no search finds.

    An index that also holds texts without a file is let pass, since what those are called cannot be listed.

    Raises:
        UsageError: names the first few, each with its line.
    """
    known = {artifact["path"] for artifact in engine.export_index()["artifacts"]}
    if engine.index_status().counts["owners"] > len(known):
        return
    unknown = [f"{file}:{query.id} names {path}" for query in queries for path in query.grades if path not in known]
    if unknown:
        more = f" and {len(unknown) - UNKNOWN_NAMED} more" if len(unknown) > UNKNOWN_NAMED else ""
        raise UsageError(
            f"{', '.join(unknown[:UNKNOWN_NAMED])}{more}: not in the index",
            remedy="write paths as `commonplace search` prints them, or index those files first",
        )


def _drawn(queries: list[Query], options: RetrievalOptions) -> list[Query]:
    if options.limit_queries is None or options.limit_queries >= len(queries):
        return queries
    chosen = random.Random(options.seed).sample(range(len(queries)), options.limit_queries)  # noqa: S311 - not a secret
    return [queries[number] for number in sorted(chosen)]


def _measured(
    engine: Engine,
    queries: Sequence[Query],
    methods: Sequence[Method],
    identity: Callable[[Hit], str],
    progress: Progress | None,
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    thresholds: dict[str, Any] = {}
    for method in methods:
        answers = list(ask(engine, [query.text for query in queries], method, identity, progress))
        figures[method] = _figures(queries, answers)
        judged = [_judged(query, answer) for query, answer in zip(queries, answers, strict=True)]
        thresholds[method] = [asdict(measures.kept(judged, value)) for value in measures.THRESHOLDS]
    return {"methods": figures, "thresholds": thresholds}


def _figures(queries: Sequence[Query], answers: Sequence[Answer]) -> dict[str, float]:
    pairs = [
        (answer.ranking, query.grades, measures.relevant(query.grades))
        for query, answer in zip(queries, answers, strict=True)
    ]
    quality = {
        "ndcg@10": measures.mean([measures.ndcg(ranking, grades, 10) for ranking, grades, _ in pairs]),
        "precision@10": measures.mean([measures.precision(ranking, wanted, 10) for ranking, _, wanted in pairs]),
        "recall@10": measures.mean([measures.recall(ranking, wanted, 10) for ranking, _, wanted in pairs]),
        "recall@100": measures.mean([measures.recall(ranking, wanted, 100) for ranking, _, wanted in pairs]),
        "mrr": measures.mean([measures.reciprocal_rank(ranking, wanted) for ranking, _, wanted in pairs]),
    }
    return {name: round(value, 4) for name, value in quality.items()} | latency([answer.ms for answer in answers])


def _judged(query: Query, answer: Answer) -> measures.Judged:
    wanted = measures.relevant(query.grades)
    return measures.Judged(tuple((s, id_ in wanted) for id_, s in zip(answer.ranking, answer.scores, strict=True)))
