"""Map the cosine of two stored vectors to a similarity, 0–1, comparable across embedders.

A similarity is the lower quartile of human judgements for sentence pairs with that cosine, not the mean: a wrong merge
costs more than a missed one. The scales are fitted on STS-B by `scripts/ranking/fit_similarity.py`; `commonplace
benchmark consolidation` measures them on other data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """A line through knots, cosines and the similarities that they stand for, both ascending; level outside of them."""

    cosines: tuple[float, ...]
    similarities: tuple[float, ...]

    def __call__(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the similarities, 0–1, of cosines of any shape; what is not a number is like nothing."""
        known = np.where(np.isnan(cosines), -1.0, cosines)
        return np.interp(known, self.cosines, self.similarities).astype(np.float32)


KNOTS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 1.0)
"""Cosines at which scales are fitted: close together where merging is decided. Equal vectors are alike by 1."""

_MINILM: Final = Scale(KNOTS, (0.0, 0.0, 0.0, 0.08, 0.16, 0.24, 0.32, 0.45, 0.6, 0.68, 0.72, 0.76, 0.88, 1.0))
BY_EMBEDDER: Final[Mapping[str, Scale]] = {
    "static": Scale(KNOTS, (0.0, 0.0, 0.0, 0.04, 0.12, 0.2, 0.32, 0.44, 0.56, 0.64, 0.707, 0.76, 0.92, 1.0)),
    "minilm": _MINILM,
    # It counts the words that two texts share; nobody needs to be asked what that means.
    "hashing": Scale((0.0, 1.0), (0.0, 1.0)),
}


def scale_of(embedder: str) -> Scale:
    """Return the scale of an embedder; an unknown one is taken for a sentence transformer, as MiniLM is."""
    return BY_EMBEDDER.get(embedder, _MINILM)
