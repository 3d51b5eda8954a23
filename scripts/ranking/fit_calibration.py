"""Fit the 0–1 score scale of an embedder (`commonplace.ranking.calibration`) and report how it does elsewhere.

Usage: COMMONPLACE_DATA=… python scripts/ranking/fit_calibration.py [EMBEDDER]

Fitted on medquad (CC BY 4.0) and cosqa-dev (MIT / C-UDA), whose licences allow it: a logistic regression of relevance
on the raw signals of the first hits of each query; irrelevant hits, the questions of the other corpora and random words
are the counter-examples. The anchor is the log-odds at which 99 % of the answerable queries of each fitted set keep
their first relevant hit: a margin, so that 95 % keep theirs on sets of another kind, such as conversations. Cranfield
and LoCoMo are only reported.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import commonplace
from commonplace.benchmarks.datasets import read_corpus, read_judged_queries
from commonplace.benchmarks.dialogues import read_dialogues
from commonplace.ranking.calibration import ANCHOR, Calibration, log_odds, scale
from commonplace.types import Document

FITTED = ("medquad", "cosqa-dev")
REPORTED = ("cranfield",)
DEPTH = 30
KEPT = 0.99
RIDGE = 1.0
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Judged:
    """The first hits of one query: signals (coverage, literal, dense), shape (n, 3), and which of them are relevant."""

    signals: NDArray[np.float64]
    relevant: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A labelled set: its own queries, and queries that nothing in it answers."""

    name: str
    answerable: list[Judged]
    unanswerable: list[Judged]


def ask(book: commonplace.engine.Engine, query: str, wanted: set[str]) -> Judged:
    """Return the first hits of a query, in rank order."""
    hits = book.search(query, limit=DEPTH, min_score=0.0).hits
    rows = [[hit.signals["late"], hit.signals["literal"], hit.signals["dense"]] for hit in hits]
    return Judged(
        np.array(rows, dtype=np.float64).reshape(-1, 3), np.array([hit.owner_id in wanted for hit in hits], dtype=bool)
    )


def word_salad(texts: Sequence[str], count: int, chance: random.Random) -> list[str]:
    """Return queries of random words from the given texts."""
    words = sorted({word.lower().strip("?.,:;()'\"") for text in texts for word in text.split()} - {""})
    return [" ".join(chance.choices(words, k=chance.randint(3, 8))) for _ in range(count)]


def read_set(
    name: str,
    documents: Iterable[Document],
    queries: Sequence[tuple[str, set[str]]],
    strangers: Sequence[str],
    embedder: str,
) -> Corpus:
    """Index a corpus in a store of its own and ask it everything."""
    with tempfile.TemporaryDirectory() as directory, commonplace.open(directory, embedder=embedder) as book:
        book.index_documents(documents)
        return Corpus(
            name,
            [ask(book, text, wanted) for text, wanted in queries],
            [ask(book, text, set()) for text in strangers],
        )


def fit(corpora: Sequence[Corpus]) -> NDArray[np.float64]:
    """Return intercept and weights (coverage, literal, dense) by ridge-penalised logistic regression."""
    features, labels, weights = [], [], []
    for corpus in corpora:
        rows = [*corpus.answerable, *corpus.unanswerable]
        signals = np.concatenate([row.signals for row in rows])
        relevant = np.concatenate([row.relevant for row in rows]).astype(np.float64)
        share = np.where(relevant > 0, 0.5 / max(relevant.sum(), 1), 0.5 / max((1 - relevant).sum(), 1))
        features.append(signals)
        labels.append(relevant)
        weights.append(share * 1000 / len(corpora))
    x = np.concatenate(features)
    x = np.hstack([np.ones((len(x), 1)), x])
    y, w = np.concatenate(labels), np.concatenate(weights)
    beta = np.zeros(x.shape[1])
    penalty = np.diag([0.0] + [RIDGE] * (x.shape[1] - 1))
    for _ in range(50):
        p = 1 / (1 + np.exp(-(x @ beta)))
        gradient = x.T @ (w * (y - p)) - penalty @ beta
        hessian = (x * (w * p * (1 - p))[:, None]).T @ x + penalty
        step = np.linalg.solve(hessian, gradient)
        beta += step
        if np.abs(step).max() < 1e-9:
            break
    return beta


def odds_of(beta: NDArray[np.float64], row: Judged) -> NDArray[np.float64]:
    """Return the log-odds in rank order, as a threshold sees them: never below what follows."""
    odds = beta[0] + row.signals @ beta[1:]
    return np.maximum.accumulate(odds[::-1])[::-1]


def first_relevant(beta: NDArray[np.float64], corpus: Corpus) -> NDArray[np.float64]:
    """Return the log-odds of the first relevant hit of every query that has one among its first hits."""
    found = [(odds_of(beta, row), int(row.relevant.argmax())) for row in corpus.answerable if row.relevant.any()]
    return np.array([odds[place] for odds, place in found])


def report(corpus: Corpus, beta: NDArray[np.float64], calibration: Calibration) -> None:
    """Print what each threshold keeps of a corpus."""
    shift = np.log(ANCHOR / (1 - ANCHOR)) - calibration.anchor
    first = 1 / (1 + np.exp(-(first_relevant(beta, corpus) + shift)))
    rows = [(1 / (1 + np.exp(-(odds_of(beta, row) + shift))), row.relevant) for row in corpus.answerable]
    scores = np.concatenate([row[0] for row in rows])
    relevant = np.concatenate([row[1] for row in rows])
    tops = [1 / (1 + np.exp(-(odds_of(beta, row)[0] + shift))) for row in corpus.unanswerable if len(row.signals)]
    silent = len(corpus.unanswerable) - len(tops)
    print(f"\n{corpus.name}: {len(corpus.answerable)} answerable, {len(corpus.unanswerable)} unanswerable queries")
    best = np.array([row[0][0] for row in rows if len(row[0])])
    print(f"  answerable queries whose best hit is under {ANCHOR:.2f}: {(best < ANCHOR).mean():.3f}")
    print("  score   first relevant kept   relevant kept   irrelevant kept   unanswerable answered with nothing")
    for threshold in THRESHOLDS:
        nothing = (sum(top < threshold for top in tops) + silent) / max(len(corpus.unanswerable), 1)
        print(
            f"  {threshold:.2f}   {(first >= threshold).mean():19.3f}   {(scores[relevant] >= threshold).mean():13.3f}"
            f"   {(scores[~relevant] >= threshold).mean():15.3f}   {nothing:10.3f}"
        )


def main() -> None:
    """Fit, print the constants and the tables."""
    data, embedder = Path(os.environ["COMMONPLACE_DATA"]), (sys.argv[1:] or ["static"])[0]
    chance = random.Random(11)  # noqa: S311 - a seeded sample, no secret
    sets: dict[str, list[tuple[str, set[str]]]] = {}
    for name in (*FITTED, *REPORTED):
        judged, _ = read_judged_queries(data / name / "queries.jsonl", data / name / "qrels.tsv")
        sets[name] = [(query.text, {key for key, grade in query.grades.items() if grade > 0}) for query in judged]
    dialogue = next(iter(read_dialogues(data / "locomo" / "locomo10.json", "locomo")))
    sets["locomo"] = [(question.text, set(question.turns)) for question in dialogue.questions if question.is_counted]
    corpora = {}
    for name, queries in sets.items():
        others = [text for other, items in sets.items() if other != name for text, _ in items]
        strangers = [*chance.sample(others, 100), *word_salad(others, 50, chance)]
        documents = dialogue.turns if name == "locomo" else read_corpus(data / name / "corpus.jsonl")
        corpora[name] = read_set(name, documents, queries, strangers, embedder)
    fitted = [corpora[name] for name in FITTED]
    beta = fit(fitted)
    anchor = min(float(np.quantile(first_relevant(beta, corpus), 1 - KEPT)) for corpus in fitted)
    intercept, coverage, literal, dense = (round(float(value), 3) for value in beta)
    calibration = Calibration(intercept, coverage, literal, dense, round(anchor, 3))
    print(calibration)
    example = log_odds(calibration, *(np.array([value], np.float32) for value in (0.5, 0.5, 0.5)))
    print(f"a passage with every signal at 0.5 scores {scale(calibration, example)[0]:.3f}")
    for corpus in corpora.values():
        report(corpus, beta, calibration)


if __name__ == "__main__":
    main()
