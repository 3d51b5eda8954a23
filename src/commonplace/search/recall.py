"""The first stage: so many passages, and enough different owners among them. It knows one ranked list at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.index.contract import Scope, Scored
from commonplace.ranking.arrays import distinct, union
from commonplace.search.request import MAX_STAGE1_LIMIT

if TYPE_CHECKING:
    from commonplace.search.request import Request

ROUNDS, GROWTH = 4, 4
"""A stage that one long text fills is asked again without it, so often at most, for so many times more each time."""


def recall(
    search: Callable[[Scope, int], Scored],
    owners_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    scope: Scope,
    request: Request,
) -> Scored:
    """Return the best passages of one part of the index, of as many owners as there are to be hits.

    The first round is the stage as it was asked for. Only where its passages are of too few owners, further rounds add
    the best passages of others.

    Args:
        search: returns at most so many passages of a scope, best first.
        owners_of: returns the owner number of each passage, −1 for one that is gone.
    """
    kept: list[Scored] = []
    owners = np.empty(0, dtype=np.int64)
    size = request.stage1_limit
    for _ in range(ROUNDS):
        found = search(scope, size)
        if not kept and len(found.numbers) < size:
            return found
        belonging = owners_of(found.numbers)
        kept.append(_first_of_each(found, belonging, request.per_owner) if kept else found)
        fresh = distinct(belonging[belonging >= 0])
        owners = union(owners, fresh)
        if len(found.numbers) < size or len(owners) >= request.limit or not len(fresh):
            break
        scope = replace(scope, passed_over=owners)
        size = min(size * GROWTH, MAX_STAGE1_LIMIT)
    return Scored(np.concatenate([each.numbers for each in kept]), np.concatenate([each.scores for each in kept]))


def first_places(owners: NDArray[np.int64], count: int, most: int) -> NDArray[np.intp]:
    """Return the places, ascending, of the first `count` occurrences of each of the first `most` owners."""
    seen: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners.tolist()):
        if seen[owner] < count and (seen[owner] or len(seen) <= most):
            seen[owner] += 1
            places.append(place)
    return np.array(places, dtype=np.intp)


def _first_of_each(found: Scored, owners: NDArray[np.int64], count: int) -> Scored:
    places = first_places(owners, count, len(owners))
    return Scored(found.numbers[places], found.scores[places])
