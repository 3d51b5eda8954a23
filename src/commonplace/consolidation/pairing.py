"""Find pairs that hang together: by the names and tags that they share, and by how alike their vectors are.

It knows rows, words and numbers, no memories. A name or a tag that very many share tells nothing of two of them: who
speaks in a conversation is named in every second turn. Such hubs count as if they were not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from commonplace.consolidation.clustering import LINKED, least_cosine

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

MOST_PER_ROW: Final = 5
"""So many pairs of one row are returned, the surest: else all of a topic would be linked with all of it."""
MOST_PAIRS: Final = 1_000
"""So many pairs are returned in all."""

_ROWS_AT_ONCE: Final = 2_048
_MOST_ALIKE: Final = 10
"""Of one row in one tile, where much is alike."""


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


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for somebody: how many pairs of each row, and how sure a pair has to be not to wait."""

    pairs: Mapping[int, int] = field(default_factory=dict)
    below: float = 1.0


NOTHING_WAITS: Final = Waiting()


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
    import numpy as np

    count = len(names)
    by_name, in_names = _sharing(names)
    in_names -= _looked_up(by_name, *_sharing(doubles))
    by_tag, in_tags = _sharing(tags)
    alike, similarity = _alike(vectors, calibrated)
    # One name alone is not enough: most of these pairs are looked at no further.
    single = by_name[in_names <= 1]
    codes, _ = _counted([by_name[in_names > 1], alike, single[_looked_up(single, by_tag, in_tags) > 0]])
    left_out = np.array(sorted(first * count + second for first, second in known), np.int64)
    codes = codes[_looked_up(codes, left_out, np.ones(len(left_out), np.int64)) == 0]
    named, tagged = _looked_up(codes, by_name, in_names), _looked_up(codes, by_tag, in_tags)
    is_turn = np.zeros(count + 1, np.bool_)
    is_turn[list(turns)] = True
    likeness = _looked_up(codes, alike, similarity)
    likeness[is_turn[codes // max(count, 1)] & is_turn[codes % max(count, 1)] & (named + tagged == 0)] = 0.0
    is_candidate = (named > 0) | (likeness >= LINKED)
    codes, named, tagged, likeness = (each[is_candidate] for each in (codes, named, tagged, likeness))
    words = NAMES_WEIGHT * np.minimum(1.0, named / NAMES_ENOUGH) + TAGS_WEIGHT * np.minimum(1.0, tagged / TAGS_ENOUGH)
    confidence = np.maximum(words, LIKENESS_WEIGHT * likeness)
    order = np.lexsort((codes, -np.round(confidence, 9)))
    is_sure = confidence[order] >= LEAST_CONFIDENCE
    ranked = [*codes[order[is_sure]].tolist(), *codes[order[~is_sure]].tolist()]
    seen = {*ranked, *left_out.tolist()}
    acted_on = int(np.count_nonzero(confidence >= waiting.below))
    rest = (code for code in single.tolist() if code not in seen)
    return _first(chain(ranked, rest), count, acted_on, waiting.pairs)


def _first(codes: Iterator[int], count: int, acted_on: int, waiting: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the first pairs; what waits takes no place from those that are acted on, which come first."""
    taken: dict[int, int] = defaultdict(int)
    found: list[tuple[int, int]] = []
    for place, code in enumerate(codes):
        if place == acted_on:
            for row, pairs_of_row in waiting.items():
                taken[row] += pairs_of_row
        pair = divmod(code, count)
        if all(taken[row] < MOST_PER_ROW for row in pair):
            found.append(pair)
            for row in pair:
                taken[row] += 1
            if len(found) == MOST_PAIRS:
                break
    return found


def _places(rows: Sequence[Collection[str]]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for row, words in enumerate(rows):
        for word in set(words):
            places[word].append(row)
    return places


def _sharing(rows: Sequence[Collection[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs that share a word, as first · n + second, ascending, and how many each shares."""
    import numpy as np

    codes = [np.zeros(0, np.int64)]
    for places in _places(rows).values():
        if len(places) > 1:
            place = np.array(places, np.int64)
            first, second = np.triu_indices(len(place), 1)
            codes.append(place[first] * len(rows) + place[second])
    return _counted(codes)


def _alike(vectors: NDArray[np.float32], calibrated: Calibrated) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the pairs that are alike enough to count, as first · n + second, ascending, and their similarities."""
    import numpy as np

    least = least_cosine(calibrated, LEAST_CONFIDENCE / LIKENESS_WEIGHT)
    codes, cosines = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
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
    return found[order], calibrated(similar[order])


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


def _counted(codes: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes, ascending, each once, and how often each is there."""
    import numpy as np

    every = np.sort(np.concatenate(codes))
    begins = np.flatnonzero(np.diff(every, prepend=-1))
    return every[begins], np.diff(begins, append=len(every))


def _looked_up(codes: NDArray[np.int64], known: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Return the value of each code among the known ones, which ascend; 0 where it is not among them."""
    import numpy as np

    if not len(known):
        return np.zeros(len(codes), values.dtype)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[place] == codes, values[place], 0)
