"""Whether one method is better than another on more than these questions, by the paired bootstrap; it asks nothing.

Two methods answered the same questions, so what is looked at is the difference in each of them. Questions are drawn
again from those there are, with replacement, as often as there are questions, and the mean difference is noted, many
times. Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), 13.3 (the percentile interval) and 16.4 (the
test, of differences moved to a mean of zero); Sakai, "Evaluating evaluation metrics based on the bootstrap" (2006), has
it for rankings. The share that is the p value counts the sample itself, so that it is never zero: Davison and Hinkley,
"Bootstrap Methods and their Application" (1997), 4.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.output import FILE, json_option, seed_option, show

RESAMPLES: Final = 10_000
CONFIDENCE: Final = 0.95
_DRAWN_AT_ONCE: Final = 4_000_000
_SLACK: Final = 1e-12
"""Means of the same numbers in another order are the same means."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better a method is than another by one measure.

    Attributes:
        difference: of the means; above 0 `method` is better.
        low, high: the interval that holds it with 95 % confidence.
        p: how often a difference at least as large would come up if there were none, two-sided.
        queries: how many questions both answered.
    """

    method: str
    against: str
    measure: str
    difference: float
    low: float
    high: float
    p: float
    queries: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "method": self.method,
            "against": self.against,
            "measure": self.measure,
            "difference": round(self.difference, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "p": round(self.p, 4),
            "queries": self.queries,
            "resamples": RESAMPLES,
        }


def comparisons(
    values: Mapping[str, Mapping[str, Sequence[float]]], seed: int, *, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Compare each method with every one before it, by each measure; the same seed gives the same figures.

    Args:
        values: by method and measure, one value a question, in the same order everywhere.
    """
    results = []
    for against, method in combinations(values, 2):
        for measure, scores in values[method].items():
            differences = np.asarray(scores, np.float64) - np.asarray(values[against][measure], np.float64)
            means = resampled_means(differences, resamples, np.random.default_rng(seed))
            low, high = interval(means)
            mean = float(differences.mean())
            p = p_value(means, mean)
            results.append(Comparison(method, against, measure, mean, low, high, p, len(differences)))
    return results


def resampled_means(
    differences: NDArray[np.float64], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean of each of so many samples, float64, shape (resamples,), drawn with replacement."""
    count = len(differences)
    at_once = max(1, _DRAWN_AT_ONCE // count)
    sizes = (min(at_once, resamples - begin) for begin in range(0, resamples, at_once))
    return np.concatenate([differences[generator.integers(0, count, (size, count))].mean(axis=1) for size in sizes])


def interval(means: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the percentile interval of resampled means."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


def p_value(means: NDArray[np.float64], mean: float) -> float:
    """Return the two-sided p value of a mean difference: moved to zero, how many means are as far away."""
    as_far = int(np.count_nonzero(np.abs(means - mean) >= abs(mean) - _SLACK))
    return (1 + as_far) / (1 + len(means))


def read(path: Path) -> dict[str, dict[str, list[float]]]:
    """Return nDCG@10 and recall@10 of each query, by method, from what `benchmark retrieval --per-query` wrote."""
    values: dict[str, dict[str, list[float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        for method, row in json.loads(line)["methods"].items():
            for measure in ("ndcg@10", "recall@10"):
                values.setdefault(method, {}).setdefault(measure, []).append(row[measure])
    return values


@click.command()
@click.argument("file", type=FILE)
@seed_option
@json_option
def main(*, file: Path, seed: int, as_json: bool) -> None:
    """Tell how sure it is that the methods differ in nDCG@10 and recall@10.

    FILE is what `commonplace benchmark retrieval --per-query FILE` wrote.
    """
    show(lambda: {"differences": [item.to_dict() for item in comparisons(read(file), seed)]}, as_json=as_json)


if __name__ == "__main__":
    main()
