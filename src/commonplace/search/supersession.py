"""Which of some memories about the same subject is the newer, and the order in which that puts them.

It knows arrays and times, no store. Nothing is hidden, and no score changes: a newer memory is placed before the first
one that it may have overtaken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Placed(NamedTuple):
    """A candidate in its place.

    Attributes:
        place: its index among the candidates.
        before: the index of the older candidate that it was moved before; None of one that was not moved.
    """

    place: int
    before: int | None


def placed(order: Sequence[int], newer: Mapping[int, Sequence[int]]) -> list[Placed]:
    """Return the candidates of an order, each after what is newer than it.

    Args:
        order: indices of candidates, best first.
        newer: of some of them, the indices of their newer competitors, newest first.
    """
    known, done = set(order), set()
    result: list[Placed] = []
    for place in order:
        if place in done:
            continue
        for other in newer.get(place, ()):
            if other in known and other not in done:
                done.add(other)
                result.append(Placed(other, place))
        done.add(place)
        result.append(Placed(place, None))
    return result
