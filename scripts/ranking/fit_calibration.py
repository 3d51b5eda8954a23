"""Fit the probability of a hit for an embedder (`commonplace.ranking.calibration`), and judge it and what rests on it.

Usage: COMMONPLACE_DATA=… python scripts/ranking/fit_calibration.py [--embedder NAME] [--most N] [--conversations N]

Fitted on everyday memories, longmemeval-dev (MIT), medquad (CC BY 4.0) and cosqa-dev (MIT / C-UDA), whole and in small
stores, each of which counts alike: a logistic regression of the relevance of the first ten hits on the evidence for
them. Questions that nothing answers count half as much as the others: those of the set itself, those of other stores of
it, the same questions with their answers taken out (but for sets in which other texts answer too), and those of other
sets. A weight that comes out below zero is left out. Each kind is judged by a fit without it.

LoCoMo and Cranfield have no part in any fit and are judged by the one that is printed.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from asking_sets import Asked, Judged, Labelled, ask_small, ask_whole, read_conversations, read_everyday, read_set
from numpy.typing import NDArray
from reliability import reliability

from commonplace.ranking.calibration import (
    ANCHOR_PROBABILITY,
    COVERAGE,
    FAINTNESS,
    LEAD,
    LEXICAL,
    LIKELY,
    SURE,
    WORDS,
    Calibration,
    evidence,
    probabilities,
)

EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "static": (LEAD, FAINTNESS, COVERAGE, WORDS, LEXICAL),
    "minilm": (LEAD, FAINTNESS, WORDS),
    "": (COVERAGE, WORDS, LEXICAL),
}
"""Of the kinds of evidence those that told something of sets left out."""
ANSWERED_TWICE = frozenset({"medquad", "cosqa-dev"})
"""In the whole of these sets other texts answer a question too, though nobody has judged them."""
JUDGED_HITS = 10
UNANSWERABLE_SHARE = 0.5
RIDGE = 1.0
WEIGHT = 300.0
"""Of one set, in hits that count against the ridge."""
Vector = NDArray[np.float64]


def regression(x: Vector, y: Vector, weights: Vector) -> Vector:
    """Return intercept and weights by ridge-penalised logistic regression over standardised columns."""
    mean = np.average(x, axis=0, weights=weights)
    deviation = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weights)) + 1e-9
    z = np.hstack([np.ones((len(x), 1)), (x - mean) / deviation])
    beta = np.zeros(z.shape[1])
    penalty = np.diag([0.0] + [RIDGE] * x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-(z @ beta)))
        gradient = z.T @ (weights * (y - p)) - penalty @ beta
        step = np.linalg.solve((z * (weights * p * (1 - p))[:, None]).T @ z + penalty, gradient)
        beta += step
        if np.abs(step).max() < 1e-9:
            break
    scaled = beta[1:] / deviation
    return np.concatenate([[beta[0] - scaled @ mean], scaled])


def unanswerable(asked: Asked) -> list[Judged]:
    """Return all questions of a set that nothing answers."""
    judged = [row for rows in asked.unanswerable.values() for row in rows]
    if asked.name not in ANSWERED_TWICE:
        judged += [row.without_answers() for row in asked.answerable]
    return [row for row in judged if len(row.signals)]


def evidence_of(judged: Judged) -> dict[str, NDArray[np.float32]]:
    """Return the evidence for each hit."""
    dense, coverage, words, lexical = judged.signals.T
    return evidence(dense, coverage, words, lexical, judged.passages)


def fit(sets: Sequence[Asked], names: Sequence[str]) -> Calibration:
    """Return the weights of these kinds of evidence; any that comes out below zero is left out."""
    x, y, weights = [], [], []
    for part in sets:
        none = unanswerable(part)
        share = UNANSWERABLE_SHARE * len(part.answerable) / max(1, len(none))
        whole = len(part.answerable) * (1 + UNANSWERABLE_SHARE)
        for row, weight in [*((row, 1.0) for row in part.answerable), *((row, share) for row in none)]:
            values = evidence_of(row)
            x.append(np.stack([values[name][:JUDGED_HITS] for name in names], axis=1))
            y.append(row.relevant[:JUDGED_HITS].astype(np.float64))
            weights.append(np.full(len(y[-1]), WEIGHT * weight / whole))
    beta = regression(np.vstack(x).astype(np.float64), np.concatenate(y), np.concatenate(weights))
    positive = [name for name, value in zip(names, beta[1:], strict=True) if value > 0]
    if len(positive) < len(names):
        return fit(sets, positive)
    return Calibration(
        round(float(beta[0]), 2), {name: round(float(v), 2) for name, v in zip(names, beta[1:], strict=True)}
    )


def predict(calibration: Calibration, judged: Judged) -> NDArray[np.float32]:
    """Return the probability of each hit."""
    return probabilities(calibration.log_odds(evidence_of(judged))) if len(judged.signals) else np.zeros(1, np.float32)


def judge(calibration: Calibration, asked: Asked) -> str:
    """Return the lines of a set: what is called likely, what the anchor leaves, how far probabilities are right."""
    best = {"": [float(predict(calibration, row)[0]) for row in asked.answerable]}
    styles = sorted({row.query.style for row in asked.answerable})
    for style in styles if len(styles) > 1 else []:
        best[style] = [float(predict(calibration, row)[0]) for row in asked.answerable if row.query.style == style]
    nothing = {**asked.unanswerable, "answers taken out": [row.without_answers() for row in asked.answerable]}
    for kind, rows in nothing.items():
        best[f"({kind})"] = [float(predict(calibration, row)[0]) for row in rows]
    firsts = [float(predict(calibration, row)[row.relevant.argmax()]) for row in asked.answerable if row.relevant.any()]
    pairs = [
        (float(p), bool(good))
        for row in asked.answerable
        for p, good in zip(predict(calibration, row)[:JUDGED_HITS], row.relevant[:JUDGED_HITS], strict=False)
    ]
    right = reliability(pairs)
    likely = "  ".join(
        f"{kind or 'all'} {np.mean(np.array(values) >= LIKELY):.2f}" for kind, values in best.items() if values
    )
    return (
        f"{asked.name:18} likely or sure: {likely}\n"
        f"{'':18} sure {np.mean(np.array(best['']) >= SURE):.2f}, first relevant hit above the anchor "
        f"{np.mean(np.array(firsts) >= ANCHOR_PROBABILITY):.3f}, its 5 % quantile {np.quantile(firsts, 0.05):.4f}\n"
        f"{'':18} ECE {right.ece:.3f}, Brier {right.brier:.3f} of {right.constant:.3f}"
    )


def report(sets: Sequence[Asked], reported: Sequence[Asked], names: Sequence[str]) -> None:
    """Fit, print the weights and what they say of each set."""

    def kind(asked: Asked) -> str:
        return asked.name.removeprefix("small ")

    print("each kind by a fit without it:")
    for part in sets:
        other_sets = [other for other in sets if kind(other) != kind(part)]
        print(judge(fit(other_sets, names), part))
    calibration = fit(sets, names)
    print(f"\n{calibration}\nby it:")
    for part in [*sets, *reported]:
        print(judge(calibration, part))


def main() -> None:
    """Ask everything of every set, then fit and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--most", type=int, default=1_000_000, help="texts of each set of documents")
    parser.add_argument("--conversations", type=int, default=16)
    options = parser.parse_args()
    data, chance = Path(os.environ["COMMONPLACE_DATA"]), random.Random(11)  # noqa: S311 - a seeded sample, no secret
    talk = next((data / "longmemeval-dev").glob("*.json"))
    stores: dict[str, list[Labelled]] = {
        "everyday": read_everyday(data / "everyday"),
        "longmemeval": read_conversations(talk, "longmemeval", options.conversations),
        **{name: [read_set(data / name, options.most, chance)] for name in ("medquad", "cosqa-dev", "cranfield")},
        "locomo": read_conversations(data / "locomo" / "locomo10.json", "locomo", 3),
    }
    questions = {name: [query for one in part for query in one.queries] for name, part in stores.items()}
    asked: dict[str, list[Asked]] = {}
    for name, part in stores.items():
        ways: list[Callable[..., Asked]] = [ask_whole]
        if name in ("everyday", *ANSWERED_TWICE):
            ways.append(ask_small)
        asked[name] = [way(part, questions, options.embedder, chance) for way in ways]
        print(f"asked {name}", flush=True)
    fitted = [each for name in ("everyday", "longmemeval", "medquad", "cosqa-dev") for each in asked[name]]
    reported = [each for name in ("cranfield", "locomo") for each in asked[name]]
    report(fitted, reported, EVIDENCE[options.embedder])
    print("\na query without a vector:")
    print(fit(fitted, EVIDENCE[""]))


if __name__ == "__main__":
    main()
