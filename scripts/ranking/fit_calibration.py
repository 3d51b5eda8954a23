"""Fit the 0–1 score scale and the probability of an embedder (`commonplace.ranking.calibration`), and judge both.

Usage: COMMONPLACE_DATA=… python scripts/ranking/fit_calibration.py [--embedder NAME] --sets DIRECTORY
           [--stores DIRECTORY] [--most N]

`--sets` has what `made_sets.py` makes. `--stores` keeps the stores, to be asked again. `--most` takes so many texts of
each set, for embedders that are slow.

Fitted on medquad (CC BY 4.0), cosqa-dev (MIT / C-UDA) and the sets made of permissively licensed packages, whole and
in small stores. The scale: a logistic regression of relevance on the raw signals of the first hits of each query;
irrelevant hits and what is found for questions that nothing answers are the counter-examples. The anchor is the
log-odds at which the fitted sets keep 96 % of their first relevant hits on average. The probability: the same, of the
first ten hits, from the log-odds and their share among the candidates.

Each fitted set is judged by a scale that was fitted without it, whole and small. Cranfield and LoCoMo have no part in
any fit and are judged by the one that is printed.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from asking_sets import Asked, Judged, ask_small, ask_whole, read_conversations, read_set
from numpy.typing import NDArray

from commonplace.benchmarks.measures import reliability
from commonplace.ranking.calibration import Calibration, Likelihood, probabilities, scale
from commonplace.search.constants import ABSTAIN_BELOW, DEFAULT_MIN_SCORE

FITTED = ("medquad", "cosqa-dev", "pydoc", "sections")
KEPT = 0.96
RIDGE = 1.0
JUDGED_HITS = 10
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
Vector = NDArray[np.float64]


def regression(x: Vector, y: Vector, weights: Vector, ridge: float) -> Vector:
    """Return intercept and weights by ridge-penalised logistic regression."""
    x = np.hstack([np.ones((len(x), 1)), x])
    beta = np.zeros(x.shape[1])
    penalty = np.diag([0.0] + [ridge] * (x.shape[1] - 1))
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ beta)))
        gradient = x.T @ (weights * (y - p)) - penalty @ beta
        hessian = (x * (weights * p * (1 - p))[:, None]).T @ x + penalty
        step = np.linalg.solve(hessian, gradient)
        beta += step
        if np.abs(step).max() < 1e-9:
            break
    return beta


def fit(sets: Sequence[Asked]) -> Calibration:
    """Return the scale of the sets, which count equally, as do relevant and irrelevant hits of each."""
    features, labels, weights = [], [], []
    for each in sets:
        rows = [row for row in (*each.answerable, *each.strangers) if len(row.signals)]
        relevant = np.concatenate([row.relevant[:30] for row in rows]).astype(np.float64)
        share = np.where(relevant > 0, 0.5 / max(relevant.sum(), 1), 0.5 / max((1 - relevant).sum(), 1))
        features.append(np.concatenate([row.signals[:30] for row in rows]))
        labels.append(relevant)
        weights.append(share * 1000 / len(sets))
    beta = regression(np.concatenate(features), np.concatenate(labels), np.concatenate(weights), RIDGE)
    intercept, coverage, words, dense, size = (round(float(value), 3) for value in beta)
    found = Calibration(intercept, coverage, words, dense, size, 0.0, Likelihood(0.0, 0.0, 0.0))
    firsts = [first_relevant(found, each) for each in sets]
    grid = np.linspace(-8, 8, 1601)
    kept = np.array([[np.mean(first >= value) for first in firsts] for value in grid]).mean(axis=1)
    found = replace(found, anchor=round(float(grid[kept >= KEPT].max()), 3))
    return replace(found, likelihood=fit_likelihood(found, sets))


def fit_likelihood(calibration: Calibration, sets: Sequence[Asked]) -> Likelihood:
    """Return what log-odds say of probability; questions that nothing answers weigh as much as the others do."""
    pure = replace(calibration, likelihood=Likelihood(0.0, 0.0, 1.0))
    features, labels, weights = [], [], []
    for each in sets:
        ratio = len(each.answerable) / max(len(each.strangers), 1)
        parts = [(row, 1.0) for row in each.answerable] + [(row, ratio) for row in each.strangers]
        hits = sum(weight * min(len(row.signals), JUDGED_HITS) for row, weight in parts)
        for row, weight in parts:
            odds = odds_of(calibration, row)
            share = probabilities(pure, odds.astype(np.float32)).astype(np.float64)[:JUDGED_HITS]
            features.append(np.stack([odds[:JUDGED_HITS], np.log(share) - np.log1p(-share)], axis=1))
            labels.append(row.relevant[:JUDGED_HITS].astype(np.float64))
            weights.append(np.full(len(share), weight * 1000 / len(sets) / hits))
    beta = regression(np.concatenate(features), np.concatenate(labels), np.concatenate(weights), 0.1)
    return Likelihood(*(round(float(value), 3) for value in beta))


def odds_of(calibration: Calibration, row: Judged) -> Vector:
    """Return the log-odds of each hit."""
    weights = (calibration.coverage, calibration.words, calibration.dense, calibration.size)
    odds: Vector = calibration.intercept + row.signals @ np.array(weights)
    return odds


def seen(odds: Vector) -> Vector:
    """Return log-odds as a threshold sees them: never below what follows."""
    return np.maximum.accumulate(odds[::-1])[::-1]


def first_relevant(calibration: Calibration, asked: Asked) -> Vector:
    """Return the log-odds of the first relevant hit of every query that has one among its first hits."""
    found = [row for row in asked.answerable if row.relevant.any()]
    return np.array([seen(odds_of(calibration, row))[int(row.relevant.argmax())] for row in found])


def best(calibration: Calibration, rows: Sequence[Judged]) -> Vector:
    """Return the log-odds of the best hit of each query, far below all where there is none."""
    return np.array([odds_of(calibration, row).max() if len(row.signals) else -99.0 for row in rows])


def near_misses(asked: Asked) -> list[Judged]:
    """Return the answerable queries without the hits that answer them."""
    return [Judged(row.signals[~row.relevant], row.relevant[~row.relevant]) for row in asked.answerable]


def kept_by_default(calibration: Calibration, asked: Asked) -> float:
    """Return the share of queries with a relevant hit whose first one the engine's own cut leaves."""
    found = [row for row in asked.answerable if row.relevant.any()]
    places = [(scale(calibration, seen(odds_of(calibration, row)).astype(np.float32)), row) for row in found]
    return float(
        np.mean(
            [
                scores[0] >= ABSTAIN_BELOW and scores[int(row.relevant.argmax())] >= DEFAULT_MIN_SCORE
                for scores, row in places
            ]
        )
    )


def judge(calibration: Calibration, asked: Asked) -> str:
    """Return one line of the table."""

    def scores(odds: Vector) -> Vector:
        return scale(calibration, odds.astype(np.float32)).astype(np.float64)

    first = scores(first_relevant(calibration, asked))
    nothing = {
        "all": scores(best(calibration, asked.strangers)),
        **{kind: scores(best(calibration, rows)) for kind, rows in asked.unanswerable.items()},
        "taken out": scores(best(calibration, near_misses(asked))),
    }
    said = [
        pair
        for row in asked.answerable
        for pair in zip(
            probabilities(calibration, odds_of(calibration, row).astype(np.float32))[:JUDGED_HITS].tolist(),
            row.relevant[:JUDGED_HITS].tolist(),
            strict=True,
        )
    ]
    sure = reliability(said)
    left = kept_by_default(calibration, asked)
    kinds = "  ".join(
        f"{kind} {np.mean(values < ABSTAIN_BELOW):.3f}" for kind, values in nothing.items() if kind != "all"
    )
    at = "  ".join(
        f"{value:.2f} {np.mean(first >= value):.3f}/{np.mean(nothing['all'] < value):.3f}" for value in THRESHOLDS
    )
    return (
        f"{asked.name:16} {at}\n"
        f"{'':16} by default: {left:.3f}/{np.mean(nothing['all'] < ABSTAIN_BELOW):.3f}, nothing of {kinds}\n"
        f"{'':16} probability: ECE {sure.ece:.3f}, Brier {sure.brier:.3f} of {sure.constant:.3f}, "
        f"said {np.mean([p for p, _ in said]):.3f}, relevant {np.mean([good for _, good in said]):.3f}"
    )


def report(sets: Mapping[str, Asked]) -> None:
    """Fit, print the constants and the tables."""
    fitted = [sets[f"{prefix}{name}"] for name in FITTED for prefix in ("", "small ")]
    calibration = fit(fitted)
    print(calibration)
    print("\nscore, first relevant hit kept / unanswerable answered with nothing; by a fit without the set:")
    for each in fitted:
        family = each.name.removeprefix("small ")
        print(judge(fit([other for other in fitted if other.name.removeprefix("small ") != family]), each))
    print("\nno part in the fit:")
    for name in ("cranfield", "small cranfield", "locomo"):
        print(judge(calibration, sets[name]))
    print("\nfitted, by the fit itself:")
    for each in fitted:
        print(judge(calibration, each))


def main() -> None:
    """Ask everything of every set, then fit and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--stores", type=Path)
    parser.add_argument("--most", type=int, default=1_000_000)
    given = parser.parse_args()
    data, chance = Path(os.environ["COMMONPLACE_DATA"]), random.Random(11)  # noqa: S311 - a seeded sample, no secret
    folders = {name: next(p for p in (data / name, given.sets / name) if p.is_dir()) for name in (*FITTED, "cranfield")}
    labelled = {name: read_set(folder, given.most, chance) for name, folder in folders.items()}
    conversations = read_conversations(data / "locomo" / "locomo10.json")
    questions = {name: [text for text, _ in each.queries] for name, each in labelled.items()}
    questions["locomo"] = [text for each in conversations for text, _ in each.queries]

    def place(name: str) -> Path | None:
        return None if given.stores is None else given.stores / f"{given.embedder}-{name}"

    sets: dict[str, Asked] = {}
    for name, each in labelled.items():
        sets[name] = ask_whole(each, questions, given.embedder, chance, place(name))
        sets[f"small {name}"] = ask_small(each, questions, given.embedder, chance)
        print(f"asked {name}, {len(each.documents)} texts", flush=True)
    sets["locomo"] = Asked("locomo")
    for number, one in enumerate(conversations):
        sets["locomo"].add(ask_whole(one, questions, given.embedder, chance, place(f"locomo-{number}")))
    report(sets)


if __name__ == "__main__":
    main()
