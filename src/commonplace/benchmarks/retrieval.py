"""Measure how well documents are found: in a new store of a labelled corpus, or in the current index by path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from commonplace.benchmarks import harness, measures
from commonplace.benchmarks.data import Query, read_corpus, read_judged_queries, read_labelled_queries
from commonplace.dataclasses import dataclass
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.types import METHODS, Method, Progress

UNKNOWN_NAMED = 3
CURVE = (1, 2, 3, 5, 10, 20, 50, 100)
"""Depths of the recall curve, in hits."""
SHOWN = 10
"""Maximum number of hits per query in the `per_query` file."""


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Options of the benchmark.

    Attributes:
        queries: with `corpus` and `qrels`, BEIR queries; alone, JSON lines {query, relevant: [path]}.
        corpus, qrels: both, to index the corpus in a new store; neither, to ask the current index.
        store, namespace: the current index; without a store it is found as `commonplace search` finds it.
        per_query: a file for the results of each query, as JSON lines.
    """

    queries: Path
    corpus: Path | None = None
    qrels: Path | None = None
    methods: tuple[str, ...] = METHODS
    store: Path | None = None
    namespace: str = "default"
    embedder: str | None = None
    per_query: Path | None = None


def run(options: RetrievalOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Ask every judged query by every method, and return the figures as JSON."""
    methods = harness.check_methods(options.methods)
    if (options.corpus is None) != (options.qrels is None):
        raise UsageError(
            "a corpus needs judgements and judgements need a corpus", remedy="give both --corpus and --qrels"
        )
    if options.per_query is not None and not options.per_query.absolute().parent.is_dir():
        raise UsageError(f"{options.per_query.parent} is not a directory", remedy="create it first")
    with ExitStack() as stack:
        if options.corpus is not None and options.qrels is not None:
            queries, skipped = read_judged_queries(options.queries, options.qrels)
            judged = [key for query in queries for key, grade in query.grades.items() if grade > 0]
            # Otherwise every figure would be 0.
            if judged and {document.id for document in read_corpus(options.corpus)}.isdisjoint(judged):
                raise UsageError(
                    f"{options.qrels} judges {judged[0]!r} and {len(judged) - 1} others relevant, and "
                    f"{options.corpus} has none of them",
                    remedy="give the judgements of this corpus",
                )
            directory = stack.enter_context(harness.workspace(None))
            documents = harness.Metered(read_corpus(options.corpus))
            corpus = harness.build(directory, documents, embedder=options.embedder, progress=progress).to_dict()
            engine = stack.enter_context(harness.open_engine(directory))
            identity = harness.owner_of
        else:
            queries, skipped = read_labelled_queries(options.queries), 0
            engine = stack.enter_context(
                harness.open_engine(options.store, namespace=options.namespace, embedder=options.embedder)
            )
            _check_paths(engine, queries)
            corpus, identity = {}, harness.path_of
        texts = [query.text for query in queries]
        answers = {method: list(harness.ask(engine, texts, method, identity, progress)) for method in methods}
        if options.per_query is not None:
            _write_queries(options.per_query, queries, answers)
        return {
            "benchmark": "retrieval",
            "machine": harness.describe(),
            "embedder": engine.index_status().embedder,
            "corpus": corpus,
            "queries": {"asked": len(queries), "without_relevant": skipped},
            **_measured(queries, answers),
            "peak_memory_bytes": harness.peak_memory_bytes(),
        }


def _check_paths(engine: Engine, queries: Sequence[Query]) -> None:
    """Reject paths that the index does not hold: they would count as relevant but never found.

    An index that also holds texts without a file is not checked, because the names of those texts cannot be listed.
    """
    indexed = {artifact["path"] for artifact in engine.export_index()["artifacts"]}
    if engine.index_status().counts["owners"] > len(indexed):
        return
    unknown = [f"{query.text!r:.60} names {path}" for query in queries for path in query.grades if path not in indexed]
    if unknown:
        more = f" and {len(unknown) - UNKNOWN_NAMED} more" if len(unknown) > UNKNOWN_NAMED else ""
        raise UsageError(
            f"{', '.join(unknown[:UNKNOWN_NAMED])}{more}: not in the index",
            remedy="write paths as `commonplace search` prints them, or index those files first",
        )


def _measured(queries: Sequence[Query], answers: Mapping[Method, Sequence[harness.QueryRun]]) -> dict[str, Any]:
    methods, curves = {}, {}
    for method, method_answers in answers.items():
        judged = [(answer.ranking, query.grades) for query, answer in zip(queries, method_answers, strict=True)]
        rows = [_quality(ranking, grades) for ranking, grades in judged]
        means = {name: round(measures.mean([row[name] for row in rows]), 4) for name in rows[0]}
        methods[method] = means | harness.latency([answer.ms for answer in method_answers])
        pairs = [(ranking, measures.relevant(grades)) for ranking, grades in judged]
        curves[method] = {
            f"recall@{k}": round(measures.mean([measures.recall(*pair, k) for pair in pairs]), 4) for k in CURVE
        }
    return {"methods": methods, "curves": curves}


def _quality(ranking: Sequence[str], grades: Mapping[str, float]) -> dict[str, float]:
    relevant = measures.relevant(grades)
    return {
        "ndcg@10": measures.ndcg(ranking, grades, 10),
        "precision@10": measures.precision(ranking, relevant, 10),
        "recall@10": measures.recall(ranking, relevant, 10),
        "recall@100": measures.recall(ranking, relevant, 100),
        "mrr": measures.reciprocal_rank(ranking, relevant),
    }


def _write_queries(file: Path, queries: Sequence[Query], answers: Mapping[Method, Sequence[harness.QueryRun]]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        for number, query in enumerate(queries):
            results = {}
            for method, method_answers in answers.items():
                answer = method_answers[number]
                quality = _quality(answer.ranking, query.grades)
                hits = list(zip(answer.ranking, answer.scores, answer.probabilities, strict=True))[:SHOWN]
                results[method] = {
                    "first_relevant": measures.first_relevant(answer.ranking, measures.relevant(query.grades)),
                    "ndcg@10": round(quality["ndcg@10"], 4),
                    "recall@10": round(quality["recall@10"], 4),
                    "ms": round(answer.ms, 3),
                    "hits": [
                        {
                            "id": id_,
                            "score": round(score, 4),
                            "probability": round(probability, 4),
                            "grade": query.grades.get(id_, 0),
                        }
                        for id_, score, probability in hits
                    ],
                }
            row = {"id": query.id, "query": query.text, "relevant": dict(query.grades), "methods": results}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
