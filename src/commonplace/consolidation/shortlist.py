"""Choose the first of very many pairs, few with one row, and hold few of them meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_PER_ROW: Final = 5
"""So many pairs of one row are returned, the surest: else all of a topic would be linked with all of it."""
MOST_PAIRS: Final = 1_000
"""So many pairs are returned in all."""

HELD: Final = 1_000_000
"""When so many pairs are held, those are dropped that cannot be chosen any more."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for somebody: how many pairs of each row, and how sure a pair has to be not to wait."""

    pairs: Mapping[int, int] = field(default_factory=dict)
    below: float = 1.0


NOTHING_WAITS: Final = Waiting()


@dataclass(frozen=True, slots=True)
class Ranked:
    """Pairs with what puts them in order.

    Attributes:
        codes: each pair as first · n + second.
        ranks: the lowest comes first, ties by code.
        is_acted_on: whether it would not wait; those that would have higher ranks than any that would not.
    """

    codes: NDArray[np.int64]
    ranks: NDArray[np.float64]
    is_acted_on: NDArray[np.bool_]

    def only(self, which: NDArray[Any]) -> Ranked:
        """Return some of them: those at these places, or for which it is true."""
        return Ranked(self.codes[which], self.ranks[which], self.is_acted_on[which])


class Shortlist:
    """Takes pairs of rows in any order, and chooses the first: by rank, the lowest first, ties by rows.

    What it chooses is what one would choose who held all pairs. Whoever goes through pairs in order and takes each
    whose rows have a place left takes at least half as many as can be taken at all, since a pair that is taken keeps
    two others out at most. So where twice as many as are wanted can be taken among those up to some rank, nothing
    beyond is chosen, whatever else comes; and it is dropped.

    Args:
        count: of rows; a pair is the number first · count + second.
    """

    def __init__(self, count: int, waiting: Waiting = NOTHING_WAITS) -> None:
        import numpy as np

        self._count = count
        self._waiting = waiting
        self._left = np.full(count, MOST_PER_ROW, np.int64)
        for row, number in waiting.pairs.items():
            self._left[row] -= number
        self._held = [Ranked(np.zeros(0, np.int64), np.zeros(0, np.float64), np.zeros(0, np.bool_))]
        self._most_held = HELD
        self._last: tuple[float, int] | None = None

    def add(self, more: Ranked) -> None:
        """Take pairs, each once in all."""
        # What would wait has no place with a row for which enough waits.
        is_full = self._left <= 0
        kept = more.is_acted_on | ~(is_full[more.codes // self._count] | is_full[more.codes % self._count])
        if self._last is not None:
            rank, code = self._last
            kept &= (more.ranks < rank) | ((more.ranks == rank) & (more.codes <= code))
        self._held.append(more.only(kept))
        if sum(len(each.codes) for each in self._held) > self._most_held:
            self._drop()

    def chosen(self) -> list[tuple[int, int]]:
        """Return the first pairs; what waits takes no place from those that are acted on, which come first."""
        held = self._sorted()
        acted_on = int(held.is_acted_on.sum())
        taken: dict[int, int] = defaultdict(int)
        found: list[tuple[int, int]] = []
        for place, code in enumerate(held.codes.tolist()):
            if place == acted_on:
                for row, pairs_of_row in self._waiting.pairs.items():
                    taken[row] += pairs_of_row
            pair = divmod(code, self._count)
            if all(taken[row] < MOST_PER_ROW for row in pair):
                found.append(pair)
                for row in pair:
                    taken[row] += 1
                if len(found) == MOST_PAIRS:
                    break
        return found

    def _drop(self) -> None:
        """Drop what comes behind twice as many as are wanted, with no more places than a row has at the very end."""
        import numpy as np

        held = self._sorted()
        pairs = (divmod(code, self._count) for code in held.codes.tolist())
        end = _place_of(2 * MOST_PAIRS, pairs, self._left.tolist())
        if end is not None:
            self._last = float(held.ranks[end]), int(held.codes[end])
            held = held.only(np.arange(end + 1))
        self._held = [held]
        self._most_held = max(HELD, 2 * len(held.codes))

    def _sorted(self) -> Ranked:
        import numpy as np

        held = Ranked(
            np.concatenate([each.codes for each in self._held]),
            np.concatenate([each.ranks for each in self._held]),
            np.concatenate([each.is_acted_on for each in self._held]),
        )
        return held.only(np.lexsort((held.codes, held.ranks)))


def _place_of(wanted: int, pairs: Iterable[tuple[int, int]], left: list[int]) -> int | None:
    """Return at which place so many pairs were taken, where each row has so many places; None where fewer can be."""
    for place, (one, other) in enumerate(pairs):
        if left[one] > 0 and left[other] > 0:
            left[one] -= 1
            left[other] -= 1
            wanted -= 1
            if not wanted:
                return place
    return None
