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
    from commonplace.search.candidates import TokenRows
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
    the best passages of others. Where the request bounds the stage, these take the place of what one owner has most of.

    Args:
        search: returns at most so many passages of a scope, best first.
        owners_of: returns the owner number of each passage, −1 for one that is gone.
    """
    kept: list[Scored] = []
    of_kept: list[NDArray[np.int64]] = []
    owners = np.empty(0, dtype=np.int64)
    size = request.stage1_limit
    for _ in range(ROUNDS):
        found = search(scope, size)
        if not kept and len(found.numbers) < size:
            return found
        belonging = owners_of(found.numbers)
        places = first_places(belonging, request.per_owner, len(belonging)) if kept else np.arange(len(belonging))
        kept.append(Scored(found.numbers[places], found.scores[places]))
        of_kept.append(belonging[places])
        fresh = distinct(belonging[belonging >= 0])
        owners = union(owners, fresh)
        if len(found.numbers) < size or len(owners) >= request.limit or not len(fresh):
            break
        scope = replace(scope, passed_over=owners)
        size = min(size * GROWTH, MAX_STAGE1_LIMIT)
    numbers, scores = (np.concatenate([getattr(each, name) for each in kept]) for name in ("numbers", "scores"))
    if request.is_bounded and len(numbers) > request.stage1_limit:
        first = first_places(np.concatenate(of_kept), 1, request.limit)
        others = np.setdiff1d(np.arange(len(numbers)), first)
        places = np.sort(np.concatenate((first, others))[: request.stage1_limit])
        numbers, scores = numbers[places], scores[places]
    return Scored(numbers, scores)


def best_of_both(
    found: Scored, rows: TokenRows, values: NDArray[np.float32], limit: int
) -> tuple[Scored, NDArray[np.bool_]]:
    """Return the best of what the index and rows beside it hold, at most `limit` together.

    Args:
        values: of the rows, by the measure of `found`; float32, shape (n,).

    Returns:
        What of it the index holds, and whether each row is among it: bool, shape (n,).
    """
    scores = np.concatenate((found.scores, values))
    kept = np.zeros(len(scores), dtype=np.bool_)
    kept[np.lexsort((np.concatenate((found.numbers, rows.numbers)), -scores))[:limit]] = True
    inside = kept[: len(found.numbers)]
    return Scored(found.numbers[inside], found.scores[inside]), kept[len(found.numbers) :]


def first_places(owners: NDArray[np.int64], count: int, most: int) -> NDArray[np.intp]:
    """Return the places, ascending, of the first `count` occurrences of each of the first `most` owners."""
    seen: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners.tolist()):
        if seen[owner] < count and (seen[owner] or len(seen) <= most):
            seen[owner] += 1
            places.append(place)
    return np.array(places, dtype=np.intp)
