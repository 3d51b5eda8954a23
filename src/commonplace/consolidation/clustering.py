"""Find groups of vectors that are alike: single linkage, groups of two to ten. It knows numbers, no memories.

Single linkage joins what is alike, pair by pair, the most alike first; the strongest spanning forest of the pairs holds
all that decides it (Gower and Ross, "Minimum spanning trees and single linkage cluster analysis", 1969). A group that
grew beyond the largest size is split at its weakest links until every part fits, which is to say that these are never
joined; what is left alone falls away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID, uuid5

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Calibrated = Callable[[NDArray[Any]], NDArray[Any]]

Action = Literal["merge", "link", "ignore"]

LINKED: Final = 0.40
"""The least similarity that joins, and the least cohesion of a group whose members are linked."""
MERGED: Final = 0.75
"""The least cohesion of a group whose members are merged."""
SMALLEST: Final = 2
LARGEST: Final = 10

CLUSTER_IDS: Final = UUID("1f3b0f0a-2c0e-5d6b-8d53-6f0f5c1e7a94")
"""Namespace of the UUIDv5 of groups; it never changes, so that a group has the same id in every run."""

_ROWS_AT_ONCE: Final = 2_048
_MOST_PAIRS: Final = 4_000_000
"""So many pairs are held before those go that decide nothing."""
_HALVINGS: Final = 40
_DECIMALS: Final = 6
"""Of a cohesion: how sums are rounded differs between machines behind them."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of rows with their cosines: int64 and float32, shape (n,), the first row before the second."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    cosines: NDArray[np.float32]


def cluster_id(members: Sequence[str]) -> str:
    """Return the id of a group, the same in whatever order its members are given."""
    return str(uuid5(CLUSTER_IDS, json.dumps(sorted(members))))


def size_factor(size: int) -> float:
    """Return by how much the size of a group makes it surer or less sure."""
    if size <= SMALLEST:
        return 0.8
    if size <= 5:
        return 1.0
    return 0.9 if size <= 8 else 0.7


def action_of(cohesion: float) -> Action:
    """Return what is to be done with a group."""
    if cohesion >= MERGED:
        return "merge"
    return "link" if cohesion >= LINKED else "ignore"


def similarities(vectors: NDArray[np.float32], calibrated: Calibrated) -> list[list[float]]:
    """Return the similarity of each to each, 0–1, of vectors of unit length, float32, shape (n, d)."""
    import numpy as np

    cosines = np.clip(vectors @ vectors.T, -1, 1)
    found: list[list[float]] = np.clip(calibrated(cosines), 0, 1).astype(np.float64).tolist()
    return found


def cohesion(similarities: Sequence[Sequence[float]]) -> float:
    """Return the mean similarity of all pairs of two or more."""
    pairs = [row[other] for one, row in enumerate(similarities) for other in range(one + 1, len(row))]
    return round(min(1.0, fsum(pairs) / len(pairs)), _DECIMALS)


def groups(vectors: NDArray[np.float32], calibrated: Calibrated) -> list[tuple[int, ...]]:
    """Return the groups among vectors of unit length, float32, shape (n, d): ascending rows, ordered by the first.

    Args:
        calibrated: maps cosines to similarities, 0–1, and never a higher one to a lower similarity.
    """
    least = least_cosine(calibrated, LINKED)
    kept = _empty()
    for found in _alike(vectors, least):
        kept = _joined(kept, found)
        if len(kept.cosines) > _MOST_PAIRS:
            kept = strongest_forest(kept, len(vectors))
    kept = strongest_forest(kept, len(vectors))
    return _parts(kept)


def least_cosine(calibrated: Calibrated, similarity: float) -> float:
    """Return the least cosine with at least that similarity, above 1 where none has."""
    import numpy as np

    low, high = -1.0, 1.0
    if float(calibrated(np.array([high]))[0]) < similarity:
        return 2.0
    if float(calibrated(np.array([low]))[0]) >= similarity:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(calibrated(np.array([middle]))[0]) >= similarity:
            high = middle
        else:
            low = middle
    return high


def strongest_forest(pairs: Pairs, count: int) -> Pairs:
    """Return the pairs of the strongest spanning forest, strongest first, ties by rows (Borůvka, 1926).

    Args:
        count: of rows.
    """
    import numpy as np

    order = np.lexsort((pairs.second, pairs.first, -pairs.cosines))
    first, second = pairs.first[order], pairs.second[order]
    tree = np.arange(count)
    ranks = np.arange(len(order))
    taken = [np.empty(0, np.int64)]
    while len(ranks):
        best = np.full(count, len(order))
        np.minimum.at(best, tree[first[ranks]], ranks)
        np.minimum.at(best, tree[second[ranks]], ranks)
        chosen = np.unique(best[best < len(order)])
        taken.append(chosen)
        tree = _united(tree, tree[first[chosen]], tree[second[chosen]])
        ranks = ranks[tree[first[ranks]] != tree[second[ranks]]]
    kept = order[np.sort(np.concatenate(taken))]
    return Pairs(pairs.first[kept], pairs.second[kept], pairs.cosines[kept])


def _united(tree: NDArray[np.int64], ones: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each row's tree, where trees were joined: the least of them."""
    import numpy as np

    parent = np.arange(len(tree))
    while True:
        lower = np.minimum(parent[ones], parent[others])
        before = parent.copy()
        np.minimum.at(parent, parent[ones], lower)
        np.minimum.at(parent, parent[others], lower)
        parent = parent[parent]
        if (parent == before).all():
            return parent[tree]


def _alike(vectors: NDArray[np.float32], least: float) -> Iterator[Pairs]:
    """Yield the pairs with at least that cosine, tile by tile: not all cosines are held at once."""
    import numpy as np

    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        for left in range(top, len(vectors), _ROWS_AT_ONCE):
            tile = vectors[top : top + _ROWS_AT_ONCE] @ vectors[left : left + _ROWS_AT_ONCE].T
            places = np.flatnonzero(tile >= least)
            first, second = np.divmod(places, tile.shape[1])
            first, second, cosines = first + top, second + left, tile.ravel()[places]
            upper = first < second
            yield Pairs(first[upper], second[upper], cosines[upper])


def _parts(forest: Pairs) -> list[tuple[int, ...]]:
    """Return the groups that a forest, strongest pair first, joins without growing too large."""
    parts: dict[int, list[int]] = {}
    part_of: dict[int, int] = {}
    closed: set[int] = set()
    for pair in zip(forest.first.tolist(), forest.second.tolist(), strict=True):
        for row in pair:
            if row not in part_of:
                part_of[row], parts[row] = row, [row]
        one, other = sorted(part_of[row] for row in pair)
        if one in closed or other in closed or len(parts[one]) + len(parts[other]) > LARGEST:
            closed |= {one, other}
            continue
        for row in parts[other]:
            part_of[row] = one
        parts[one] += parts.pop(other)
    return sorted(tuple(sorted(part)) for part in parts.values() if len(part) >= SMALLEST)


def _joined(one: Pairs, other: Pairs) -> Pairs:
    import numpy as np

    return Pairs(
        np.concatenate([one.first, other.first]),
        np.concatenate([one.second, other.second]),
        np.concatenate([one.cosines, other.cosines]),
    )


def _empty() -> Pairs:
    import numpy as np

    return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
