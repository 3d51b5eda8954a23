"""Look up the ids of pieces of words, in a seventh of the memory of a dict; it knows no tokenizer and no file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BUCKETS = 32_749  # a prime, so that all bytes of a piece take part in its remainder


class Vocabulary:
    """Pieces by the number of their line, from 0. Safe to share between threads.

    The pieces stand as they are in the text, and their ids by the pieces' remainders, read as numbers; most strings
    that are no piece fall into an empty bucket. 30,522 pieces take 0.5 MB, and a look-up half a microsecond.

    Attributes:
        longest: no piece has more characters.
    """

    def __init__(self, text: bytes) -> None:
        """Take at most 65,536 different pieces: UTF-8, one a line."""
        import numpy as np

        self._text = text.removesuffix(b"\n") + b"\n" if text else b""
        ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord("\n"))
        lengths = np.diff(ends, prepend=-1) - 1
        self.longest = int(lengths.max(initial=0))
        buckets = _buckets(np.frombuffer(self._text, np.uint8), ends - lengths, lengths)
        by_bucket = np.argsort(buckets, kind="stable")
        firsts = np.searchsorted(buckets[by_bucket], np.arange(_BUCKETS + 1))
        self._ids = array("H", by_bucket.astype(np.uint16).tobytes())
        self._firsts = array("I", firsts.astype(np.uint32).tobytes())
        self._ends = array("I", ends.astype(np.uint32).tobytes())

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces by id."""
        return iter(self._text.decode().split("\n")[:-1])

    def __getitem__(self, piece: str) -> int:
        known = self.get(piece)
        if known is None:
            raise KeyError(piece)
        return known

    def get(self, piece: str) -> int | None:
        """Return the id of a piece, None for any other string."""
        data = piece.encode("utf-8", "surrogatepass")
        bucket = int.from_bytes(data, "little") % _BUCKETS
        ids, ends = self._ids, self._ends
        for place in range(self._firsts[bucket], self._firsts[bucket + 1]):
            known = ids[place]
            if self._text[ends[known - 1] + 1 if known else 0 : ends[known]] == data:
                return known
        return None


def _buckets(text: NDArray[np.uint8], starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return for each piece the remainder of its bytes, read as one little-endian number: int64, shape (n,)."""
    import numpy as np

    remainders = np.zeros(len(starts), np.int64)
    pieces = np.arange(len(starts))
    place, worth = 0, 1
    while len(pieces := pieces[lengths[pieces] > place]):
        remainders[pieces] += text[starts[pieces] + place].astype(np.int64) * worth
        place, worth = place + 1, worth * 256 % _BUCKETS
    return remainders % _BUCKETS
