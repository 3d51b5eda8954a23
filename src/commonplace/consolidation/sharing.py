"""Count what pairs of rows share, for a stretch of rows at a time: all pairs of many rows do not fit into memory.

It knows rows and words. A pair is one number, first · n + second, the first row before the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sharing:
    """Tells of any stretch of rows which pairs begin there and share a word, and how many each shares.

    Args:
        rows: the words of each.
        count: how many rows there are; those behind the last of `rows` have no words.
    """

    def __init__(self, rows: Sequence[Collection[str]], count: int) -> None:
        import numpy as np

        numbers: dict[str, int] = {}
        of_row = [np.array([numbers.setdefault(word, len(numbers)) for word in {*words}], np.int64) for words in rows]
        word = np.concatenate([np.zeros(0, np.int64), *of_row])
        row = np.repeat(np.arange(len(of_row)), [len(words) for words in of_row])
        order = np.lexsort((row, word))
        word, row = word[order], row[order]
        ends = np.searchsorted(word, word, side="right")
        self._count = count
        self._row = row
        """The rows of every word, ascending, word by word; each word of a row is one place here."""
        self._behind = ends - np.arange(len(row)) - 1
        """How many rows have the same word further down, by place."""
        self._places = np.argsort(row, kind="stable")
        self._begins = np.searchsorted(row[self._places], np.arange(count + 1))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many pairs begin with each row, one that shares several words as often."""
        import numpy as np

        behind = np.concatenate([[0], np.cumsum(self._behind[self._places])])
        sizes: NDArray[np.int64] = np.diff(behind[self._begins])
        return sizes

    def between(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs that begin with a row from `first` up to, not including, `last`; and how many each shares.

        They ascend.
        """
        import numpy as np

        places = self._places[self._begins[first] : self._begins[last]]
        behind = self._behind[places]
        # Of each place the ones behind it, which stand in one row without gaps.
        steps = np.arange(behind.sum()) - np.repeat(np.cumsum(behind) - behind, behind)
        second = self._row[np.repeat(places + 1, behind) + steps]
        return counted([np.repeat(self._row[places] * self._count, behind) + second])


def stretches(sizes: NDArray[np.int64], first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of the rows from `first` up to, not including, `last`, whose sizes sum up to `most` at most.

    A row that is larger alone is a stretch of its own.
    """
    import numpy as np

    sums = np.cumsum(sizes[first:last])
    begin, before = first, 0
    while begin < last:
        end = max(begin + 1, first + int(np.searchsorted(sums, before + most, side="right")))
        yield begin, end
        begin, before = end, int(sums[end - first - 1])


def counted(codes: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes, ascending, each once, and how often each is there."""
    import numpy as np

    every = np.sort(np.concatenate(codes))
    begins = np.flatnonzero(np.diff(every, prepend=-1))
    return every[begins], np.diff(begins, append=len(every))


def looked_up(codes: NDArray[np.int64], known: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Return the value of each code among the known ones, which ascend; 0 where it is not among them."""
    import numpy as np

    if not len(known):
        return np.zeros(len(codes), values.dtype)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[place] == codes, values[place], 0)


def is_among(codes: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell of each code whether it is among the known ones, which ascend."""
    import numpy as np

    found: NDArray[np.bool_] = looked_up(codes, known, np.ones(len(known), np.bool_)).astype(np.bool_)
    return found
