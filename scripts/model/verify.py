"""Rebuild the static model and compare it with what ships; exit 1 when they differ by more than arithmetic does.

    PYTHONPATH=scripts python -m model.verify --work DIR

The vocabulary and the similar tokens follow from the transformer's package alone. The vectors need the training texts
too: with `--data` or COMMONPLACE_DATA they are trained again, which takes about half an hour of two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from commonplace.errors import ModelError
from commonplace.models import static
from commonplace.models.files import SHIPPED
from commonplace.models.static import ModelData, verify_data
from model.build import build, centred_tokens, token_neighbours
from model.source import Source, fetch
from model.table import Floats, Neighbours, unit

LARGEST_DIFFERENCE = 2
"""In 255ths: a cosine may be rounded either way."""
MIN_AGREEMENT = 0.999
"""Share of list entries that must be found again, and mean cosine of trained rows; sums differ between machines."""


def neighbour_problems(shipped: ModelData, rebuilt: Neighbours) -> list[str]:
    """Return how the shipped lists of similar tokens differ from the rebuilt ones."""
    total = found_again = 0
    worst = 0
    for token in range(shipped.vocabulary_size):
        tokens, shares = shipped.neighbours(token)
        part = slice(int(rebuilt.starts[token]), int(rebuilt.starts[token + 1]))
        expected = dict(zip(rebuilt.tokens[part].tolist(), rebuilt.cosines[part].tolist(), strict=True))
        total += max(len(tokens), len(expected))
        for similar, share in zip(tokens.tolist(), shares.tolist(), strict=True):
            if similar in expected:
                found_again += 1
                worst = max(worst, abs(share - expected[similar]))
    print(f"similar tokens: {found_again} of {total} found again, largest difference {worst}/255")
    problems = []
    if found_again < MIN_AGREEMENT * total:
        problems.append(f"only {found_again} of {total} similar tokens are found again, expected {MIN_AGREEMENT:.1%}")
    if worst > LARGEST_DIFFERENCE:
        problems.append(f"a cosine differs by {worst}/255, at most {LARGEST_DIFFERENCE}/255 is rounding")
    return problems


def table_problems(shipped: ModelData, rebuilt: ModelData) -> list[str]:
    """Return how the shipped vectors differ from the rebuilt ones, in direction and in length."""
    shipped_rows, rebuilt_rows = _vectors(shipped), _vectors(rebuilt)
    present = np.linalg.norm(shipped_rows, axis=1) > 0
    cosines = (unit(shipped_rows[present]) * unit(rebuilt_rows[present])).sum(1)
    lengths = np.linalg.norm(rebuilt_rows[present], axis=1) / np.linalg.norm(shipped_rows[present], axis=1)
    off = float(np.abs(np.log(lengths)).mean())
    print(f"vectors: mean cosine {cosines.mean():.5f}, lowest {cosines.min():.4f}, lengths differ by {off:.2%}")
    if cosines.mean() < MIN_AGREEMENT or off > 1 - MIN_AGREEMENT**10:
        return [
            f"rebuilt vectors have a mean cosine of {cosines.mean():.5f} with the shipped, expected {MIN_AGREEMENT}"
        ]
    return []


def _vectors(data: ModelData) -> Floats:
    return data.table() * data.scales()[:, None]


def problems_found(work: Path, data: Path | None) -> list[str]:
    """Return everything in which the shipped model is not what the scripts build, one sentence each."""
    source: Source = fetch(work)
    verify_data()
    problems = []
    shipped = ModelData()
    if (SHIPPED / static.VOCABULARY).read_bytes() != source.vocabulary.read_bytes():
        problems.append("the shipped vocabulary is not the transformer's")
    problems += neighbour_problems(shipped, token_neighbours(centred_tokens(work, source)))
    if data is None:
        print("vectors: not rebuilt; name the training texts with --data or COMMONPLACE_DATA")
        return problems
    build(work, data, work / "rebuilt")
    return problems + table_problems(shipped, ModelData(work / "rebuilt"))


def main() -> int:
    """Parse the command line, compare and report."""
    parser = argparse.ArgumentParser(description="Rebuild the static model and compare it with what ships.")
    parser.add_argument("--work", type=Path, required=True, help="directory for downloads and slow results")
    parser.add_argument("--data", type=Path, default=os.environ.get("COMMONPLACE_DATA"), help="development data")
    arguments = parser.parse_args()
    try:
        problems = problems_found(arguments.work, arguments.data)
    except (ModelError, ValueError) as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
