"""Find pairs that hang together: by the names and tags that they share, and by how alike their vectors are.

It knows rows, words and numbers, no memories. A name or a tag that very many share tells nothing of two of them: who
speaks in a conversation is named in every second turn. Such hubs count as if they were not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from commonplace.consolidation.clustering import LINKED, least_cosine
from commonplace.consolidation.sharing import Sharing, counted, is_among, looked_up, stretches
from commonplace.consolidation.shortlist import NOTHING_WAITS, Ranked, Shortlist, Waiting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Calibrated = Callable[[NDArray[Any]], NDArray[Any]]

LEAST_CONFIDENCE: Final = 0.3
"""Below it nothing is written."""

NAMES_WEIGHT: Final = 0.6
NAMES_ENOUGH: Final = 3
TAGS_WEIGHT: Final = 0.4
TAGS_ENOUGH: Final = 2
LIKENESS_WEIGHT: Final = 0.9

FEWEST_OF_A_HUB: Final = 20
MOST_OF_A_NAME: Final = 200
HUB_SHARE: Final = 0.01
"""What more than a hundredth share is a hub, if that is more than 20; what more than 200 share always is."""

_ROWS_AT_ONCE: Final = 2_048
_PAIRS_AT_ONCE: Final = 1_000_000
"""Of one stretch of rows, where one row alone has not more."""
_MOST_ALIKE: Final = 10
"""Of one row in one tile, where much is alike."""

_UNSURE: Final = 1.0
_LAST: Final = 2.0
"""Added to the ranks of pairs that are not sure enough, and the rank of those that were weighed no further."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What two rows have in common: how many names and tags, and their calibrated similarity, 0–1."""

    names: int
    tags: int
    similarity: float

    @property
    def confidence(self) -> float:
        """How sure it is that they hang together, 0–1."""
        by_words = NAMES_WEIGHT * min(1.0, self.names / NAMES_ENOUGH) + TAGS_WEIGHT * min(1.0, self.tags / TAGS_ENOUGH)
        return min(1.0, max(by_words, LIKENESS_WEIGHT * self.similarity))


def strength(names: tuple[Collection[str], Collection[str]], tags: tuple[Collection[str], Collection[str]]) -> float:
    """Return how strongly two are linked, 0–1, by the names and the tags of both."""
    return 0.7 * jaccard(*names) + 0.3 * jaccard(*tags)


def jaccard(one: Collection[str], other: Collection[str]) -> float:
    """Return the share of what two have in common among what either has; 0 where neither has anything."""
    either = len(set(one) | set(other))
    return len(set(one) & set(other)) / either if either else 0.0


def counts_likeness(are_turns: bool, names: int, tags: int) -> bool:
    """Tell whether it counts that two are alike: of two turns of conversations only where they share a name or a tag.

    Small talk is alike ("Thanks, I will!") and has nothing to do with each other.
    """
    return not are_turns or names + tags > 0


def hubs(rows: Sequence[Collection[str]]) -> frozenset[str]:
    """Return what so many rows share that it tells nothing."""
    most = min(MOST_OF_A_NAME, max(FEWEST_OF_A_HUB, int(len(rows) * HUB_SHARE)))
    return frozenset(word for word, places in _places(rows).items() if len(places) > most)


def pairs(
    names: Sequence[Collection[str]],
    tags: Sequence[Collection[str]],
    vectors: NDArray[np.float32],
    calibrated: Calibrated,
    known: Collection[tuple[int, int]] = (),
    turns: Collection[int] = (),
    doubles: Sequence[Collection[str]] = (),
    waiting: Waiting = NOTHING_WAITS,
) -> list[tuple[int, int]]:
    """Return the pairs of rows that share a name or are alike by 0.40, the first row before the second.

    The surest come first, ties by rows, at most 5 with one row and 1,000 in all. Those less sure than 0.3 come last,
    by rows.

    Args:
        names, tags: of each row, without hubs.
        vectors: of unit length, float32, shape (n, d).
        calibrated: maps cosines to similarities, 0–1, and never a higher one to a lower similarity.
        known: pairs that are left out, the first row before the second.
        turns: rows that are turns of conversations; see `counts_likeness`.
        doubles: of each row, what stands for a name that is a part of another of its names: who shares that shares one
            name less.
        waiting: what was found before and waits: it counts among the 5 with one row.
    """
    found = Shortlist(len(names), waiting)
    rows = _Rows(names, tags, doubles, known, turns)
    for first, alike in enumerate(_alike(vectors, calibrated)):
        top = first * _ROWS_AT_ONCE
        for begin, end in stretches(rows.sizes, top, min(top + _ROWS_AT_ONCE, len(names)), _PAIRS_AT_ONCE):
            found.add(rows.weighed(begin, end, alike, waiting.below))
    return found.chosen()


class _Rows:
    """What pairs of rows share, for a stretch of rows at a time. The arguments are those of `pairs`."""

    def __init__(
        self,
        names: Sequence[Collection[str]],
        tags: Sequence[Collection[str]],
        doubles: Sequence[Collection[str]],
        known: Collection[tuple[int, int]],
        turns: Collection[int],
    ) -> None:
        import numpy as np

        self._count = len(names)
        self._names, self._tags, self._doubles = (Sharing(rows, self._count) for rows in (names, tags, doubles))
        self.sizes = self._names.sizes + self._tags.sizes
        self._left_out = np.array(sorted(first * self._count + second for first, second in known), np.int64)
        self._is_turn = np.zeros(self._count, np.bool_)
        self._is_turn[list(turns)] = True

    def weighed(self, begin: int, end: int, alike: _Alike, below: float) -> Ranked:
        """Return the candidates whose first row is one of a stretch.

        Args:
            alike: pairs that are alike, among which those of these rows are.
            below: how sure a pair has to be not to wait.
        """
        import numpy as np

        by_name, in_names = self._names.between(begin, end)
        in_names -= looked_up(by_name, *self._doubles.between(begin, end))
        by_tag, in_tags = self._tags.between(begin, end)
        here = slice(*np.searchsorted(alike.codes, [begin * self._count, end * self._count]))
        similar, similarity = alike.codes[here], alike.similarity[here]
        # One name alone is not enough: most of these pairs are weighed no further.
        single = by_name[in_names <= 1]
        codes, _ = counted([by_name[in_names > 1], similar, single[is_among(single, by_tag)]])
        codes = codes[~is_among(codes, self._left_out)]
        named, tagged = looked_up(codes, by_name, in_names), looked_up(codes, by_tag, in_tags)
        likeness = looked_up(codes, similar, similarity)
        are_turns = self._is_turn[codes // self._count] & self._is_turn[codes % self._count]
        likeness[are_turns & (named + tagged == 0)] = 0.0
        is_candidate = (named > 0) | (likeness >= LINKED)
        codes, named, tagged, likeness = (each[is_candidate] for each in (codes, named, tagged, likeness))
        confidence = _confidence(named, tagged, likeness)
        rest = single[~is_among(single, codes) & ~is_among(single, self._left_out)]
        ranks = -np.round(confidence, 9) + np.where(confidence < LEAST_CONFIDENCE, _UNSURE, 0.0)
        return Ranked(
            codes=np.concatenate([codes, rest]),
            ranks=np.concatenate([ranks, np.full(len(rest), _LAST)]),
            is_acted_on=np.concatenate([confidence >= below, np.zeros(len(rest), np.bool_)]),
        )


def _confidence(named: NDArray[np.int64], tagged: NDArray[np.int64], likeness: NDArray[Any]) -> NDArray[np.float64]:
    """Return how sure it is that pairs hang together, 0–1; see `Shared.confidence`."""
    import numpy as np

    words = NAMES_WEIGHT * np.minimum(1.0, named / NAMES_ENOUGH) + TAGS_WEIGHT * np.minimum(1.0, tagged / TAGS_ENOUGH)
    found: NDArray[np.float64] = np.maximum(words, LIKENESS_WEIGHT * likeness)
    return found


def _places(rows: Sequence[Collection[str]]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for row, words in enumerate(rows):
        for word in set(words):
            places[word].append(row)
    return places


@dataclass(frozen=True, slots=True)
class _Alike:
    """Pairs that are alike enough to count, as first · n + second, ascending, and their similarities."""

    codes: NDArray[np.int64]
    similarity: NDArray[np.float32]


def _alike(vectors: NDArray[np.float32], calibrated: Calibrated) -> Iterator[_Alike]:
    """Yield the pairs that are alike, those that begin with the first rows, those with the next ones, and so on."""
    import numpy as np

    least = least_cosine(calibrated, LEAST_CONFIDENCE / LIKENESS_WEIGHT)
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        codes, cosines = [], []
        for left in range(top, len(vectors), _ROWS_AT_ONCE):
            tile = vectors[top : top + _ROWS_AT_ONCE] @ vectors[left : left + _ROWS_AT_ONCE].T
            if top == left:
                np.fill_diagonal(tile, -1.0)
            places = _best(tile, least, is_own=top == left)
            row, column = np.divmod(places, tile.shape[1])
            row, column = row + top, column + left
            upper = row < column
            codes.append((row * len(vectors) + column)[upper])
            cosines.append(tile.ravel()[places[upper]])
        found, similar = np.concatenate(codes), np.concatenate(cosines)
        order = np.argsort(found)
        yield _Alike(found[order], calibrated(similar[order]))


def _best(tile: NDArray[np.float32], least: float, *, is_own: bool) -> NDArray[np.int64]:
    """Return the places of a tile that are alike, of each row no more than a few where that is true of many.

    Args:
        is_own: its rows are its columns.
    """
    import numpy as np

    places = np.flatnonzero(tile >= least)
    if len(places) <= _MOST_ALIKE * sum(tile.shape):
        return places
    if is_own:
        tile[np.tril_indices(len(tile))] = -1.0
    edge = np.partition(tile, -_MOST_ALIKE, axis=1)[:, -_MOST_ALIKE, None]
    chosen = tile >= np.maximum(edge, least)
    places = np.flatnonzero(chosen)
    if len(places) <= _MOST_ALIKE * sum(tile.shape):
        return places
    # Much is exactly the same, and it is all the same which of it is taken.
    return np.flatnonzero(chosen & (np.cumsum(chosen, axis=1, dtype=np.int16) <= _MOST_ALIKE))
