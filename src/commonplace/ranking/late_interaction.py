"""Late interaction over static token vectors: how well a passage covers each token of a query."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matches:
    """Tokens of n passages that are like a token of the query, passage by passage.

    Attributes:
        similarities: to each token of the query; float32, shape (m, q).
        places: how many tokens precede each in its passage; int64, shape (m,).
        starts, passages: where the matches of a passage begin, and which one it is; int64, shape (p,), ascending.
    """

    similarities: NDArray[np.float32]
    places: NDArray[np.int64]
    starts: NDArray[np.int64]
    passages: NDArray[np.int64]
    count: int

    def best(self, fading: float = inf) -> NDArray[np.float32]:
        """Return for each passage and query token the highest similarity, float32, shape (n, q), zeros for no match.

        The maxima of ColBERT's late interaction (Khattab & Zaharia 2020).

        Args:
            fading: a token with p others before it counts (1 + p / fading)^−½ of its similarity; all count wholly by
                default.
        """
        best = np.zeros((self.count, self.similarities.shape[1]), dtype=np.float32)
        if len(self.starts):
            position_weights = (1 / np.sqrt(1 + self.places / fading)).astype(np.float32)
            weighted = self.similarities if fading == inf else self.similarities * position_weights[:, np.newaxis]
            best[self.passages] = np.maximum.reduceat(weighted, self.starts, axis=0)
        return best


def find_matches(
    similarities: NDArray[np.float32], token_ids: NDArray[np.uint16], lengths: NDArray[np.int64]
) -> Matches:
    """Return the tokens of passages that are like a token of the query.

    Args:
        similarities: float32, shape (q, vocabulary), 0–1.
        token_ids: the passages' tokens one after the other; uint16, shape (sum of lengths,).
        lengths: how many of them belong to each passage; int64, shape (n,); 0 is allowed.
    """
    # Of all tokens only some hundred are like any token of the query; gathering just those is eight times faster.
    positions = np.flatnonzero(similarities.any(axis=0).take(token_ids))
    ends = np.cumsum(lengths)
    passages = np.searchsorted(ends, positions, side="right")
    starts = np.flatnonzero(np.concatenate(([True], passages[1:] != passages[:-1]))[: len(positions)])
    offsets = positions - (ends - lengths)[passages]
    return Matches(similarities[:, token_ids[positions]].T, offsets, starts, passages[starts], len(lengths))


def weighted_share(values: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the weighted mean of each row; zeros where the weights add up to nothing.

    Args:
        values: float32, shape (n, q).
        weights: float32, shape (q,), not negative.
    """
    total = float(weights.sum())
    if total <= 0.0:
        return np.zeros(len(values), dtype=np.float32)
    with np.errstate(invalid="ignore"):  # some kernels of OpenBLAS raise this flag over finite values
        return (values @ (weights / np.float32(total))).astype(np.float32)
