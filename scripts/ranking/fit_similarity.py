"""Fit the similarity scale of an embedder (`commonplace.consolidation.runtime`) on sentence pairs that people judged.

Usage: PYTHONPATH=. COMMONPLACE_DATA=… python scripts/ranking/fit_similarity.py [EMBEDDER]

Fitted on the training pairs of STS-B (score / 5); the development pairs are only reported, by
`commonplace benchmark consolidation`. The value at a knot is the lower quartile of the scores around it, weighted by a
triangle that reaches to the knots beside it; where values fall, their neighbours are pooled (isotonic regression,
Barlow et al. 1972).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from benchmarks.consolidation import cosines_of, read_pairs
from numpy.typing import NDArray

from commonplace.consolidation.runtime import KNOTS
from commonplace.models.registry import open_embedder

QUANTILE = 0.25


def quantile(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the least value that holds a quarter of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(shares, QUANTILE)])


def pooled(values: list[float], weights: list[float]) -> list[float]:
    """Return the ascending values nearest to these."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] >= mean:
            before, heavier, more = blocks.pop()
            mean = (mean * total + before * heavier) / (total + heavier)
            total, count = total + heavier, count + more
        blocks.append((mean, total, count))
    return [mean for mean, _, count in blocks for _ in range(count)]


def fit(cosines: NDArray[np.float32], scores: NDArray[np.float64]) -> list[float]:
    """Return the similarities at `KNOTS`: 0 at the first, 1 at the last."""
    values, weights = [], []
    for before, knot, behind in zip(KNOTS, KNOTS[1:], KNOTS[2:], strict=False):
        near = np.interp(cosines, (before, knot, behind), (0.0, 1.0, 0.0))
        values.append(quantile(scores, near))
        weights.append(float(near.sum()))
    return [0.0, *(round(value, 3) for value in pooled(values, weights)), 1.0]


def main() -> None:
    """Print the scale of the embedder that is named, else of the default one."""
    name = sys.argv[1] if len(sys.argv) > 1 else "static"
    pairs = read_pairs(Path(os.environ["COMMONPLACE_DATA"]) / "stsb" / "train.jsonl")
    scores = np.array([pair.score for pair in pairs])
    print(name, fit(cosines_of(open_embedder(name), pairs), scores))


if __name__ == "__main__":
    main()
