"""Find pairs of related memories by shared names, tags and vector similarity, and cluster them.

Names and tags that very many memories share (hubs), such as the speakers of a conversation, are ignored.

A pair is one number, a code: first · n + second, the first row before the second.

Clusters are single-linkage: the maximum spanning forest of the pairs decides them (Gower and Ross, "Minimum spanning
trees and single linkage cluster analysis", 1969). A group above the size limit is split at its weakest links;
singletons are dropped.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import fsum
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.arrays import within

Calibrated = Callable[[NDArray[Any]], NDArray[Any]]
"""Maps cosines to similarities, 0–1, and never a higher one to a lower similarity."""
Codes = NDArray[np.int64]
Action = Literal["merge", "link", "ignore"]

LINKED: Final = 0.40
"""The least similarity that joins, and the least cohesion of a group whose members are linked."""
MERGED: Final = 0.75
"""The least cohesion of a group whose members are merged."""
MIN_GROUP: Final = 2
MAX_GROUP: Final = 10

CLUSTER_IDS: Final = UUID("1f3b0f0a-2c0e-5d6b-8d53-6f0f5c1e7a94")
"""Namespace of the UUIDv5 of groups; it never changes, so that a group has the same id in every run."""

_ROWS_AT_ONCE: Final = 2_048
_MAX_PAIRS: Final = 4_000_000
"""So many pairs are held before those go that decide nothing."""
_BILLION: Final = 10**9
_DECIMALS: Final = 6
"""Of a cohesion: how sums are rounded differs between machines behind them."""


def cluster_id(members: Sequence[str]) -> str:
    """Return the id of a group, the same in whatever order its members are given."""
    return str(uuid5(CLUSTER_IDS, json.dumps(sorted(members))))


def size_factor(size: int) -> float:
    """Return by how much the size of a group makes it surer or less sure."""
    if size <= MIN_GROUP:
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
    cosines = np.clip(vectors @ vectors.T, -1, 1)
    found: list[list[float]] = np.clip(calibrated(cosines), 0, 1).astype(np.float64).tolist()
    return found


def cohesion(similarities: Sequence[Sequence[float]]) -> float:
    """Return the mean similarity of all pairs of two or more."""
    pairs = [row[other] for one, row in enumerate(similarities) for other in range(one + 1, len(row))]
    return round(min(1.0, fsum(pairs) / len(pairs)), _DECIMALS)


def groups(vectors: NDArray[np.float32], calibrated: Calibrated) -> list[tuple[int, ...]]:
    """Return the groups among vectors of unit length, float32, shape (n, d): ascending rows, ordered by the first."""
    least = min_cosine(calibrated, LINKED)
    codes, cosines = np.empty(0, np.int64), np.empty(0, np.float32)
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        for more, their_cosines in _alike_tiles(vectors, top, least):
            codes, cosines = np.concatenate([codes, more]), np.concatenate([cosines, their_cosines])
            if len(codes) > _MAX_PAIRS:
                codes, cosines = strongest_forest(codes, cosines, len(vectors))
    # What the forest, strongest pair first, joins without growing too large.
    parts: dict[int, list[int]] = {}
    part_of: dict[int, int] = {}
    closed: set[int] = set()
    for code in strongest_forest(codes, cosines, len(vectors))[0].tolist():
        pair = divmod(code, len(vectors))
        for row in pair:
            if row not in part_of:
                part_of[row], parts[row] = row, [row]
        one, other = sorted(part_of[row] for row in pair)
        if one in closed or other in closed or len(parts[one]) + len(parts[other]) > MAX_GROUP:
            # Both sides stay as they are: whatever they would take in later is less like them than what had no room.
            closed |= {one, other}
            continue
        for row in parts[other]:
            part_of[row] = one
        parts[one] += parts.pop(other)
    return sorted(tuple(sorted(part)) for part in parts.values() if len(part) >= MIN_GROUP)


def min_cosine(calibrated: Calibrated, similarity: float) -> float:
    """Return the least cosine with at least that similarity, to nine decimals, above 1 where none has."""
    cosines = range(-_BILLION, _BILLION + 1)
    place = bisect_left(cosines, True, key=lambda each: bool(calibrated(np.array([each / _BILLION]))[0] >= similarity))
    return cosines[place] / _BILLION if place < len(cosines) else 2.0


def strongest_forest(codes: Codes, cosines: NDArray[np.float32], count: int) -> tuple[Codes, NDArray[np.float32]]:
    """Return the pairs of the strongest spanning forest of `count` rows, strongest first (Borůvka, 1926)."""
    order = np.lexsort((codes, -cosines))
    first, second = np.divmod(codes[order], max(count, 1))
    tree = np.arange(count)
    ranks = np.arange(len(order))
    taken = [np.empty(0, np.int64)]
    while len(ranks):
        best = np.full(count, len(order))
        np.minimum.at(best, tree[first[ranks]], ranks)
        np.minimum.at(best, tree[second[ranks]], ranks)
        chosen = np.unique(best[best < len(order)])
        taken.append(chosen)
        tree = _joined(tree, tree[first[chosen]], tree[second[chosen]])
        ranks = ranks[tree[first[ranks]] != tree[second[ranks]]]
    kept = order[np.sort(np.concatenate(taken))]
    return codes[kept], cosines[kept]


def _joined(tree: Codes, ones: Codes, others: Codes) -> Codes:
    """Return the number of each row's tree, where trees were joined: the least of them."""
    parent = np.arange(len(tree))
    while True:
        lower = np.minimum(parent[ones], parent[others])
        before = parent.copy()
        np.minimum.at(parent, parent[ones], lower)
        np.minimum.at(parent, parent[others], lower)
        parent = parent[parent]
        if (parent == before).all():
            return parent[tree]


def _alike_tiles(
    vectors: NDArray[np.float32], top: int, least: float, most: int | None = None
) -> Iterator[tuple[Codes, NDArray[np.float32]]]:
    """Yield the pairs that begin with some rows, from `top` on, and have that cosine, with it: a tile at a time.

    Args:
        most: of one row in one tile, where much is alike.
    """
    for left in range(top, len(vectors), _ROWS_AT_ONCE):
        tile = vectors[top : top + _ROWS_AT_ONCE] @ vectors[left : left + _ROWS_AT_ONCE].T
        if left == top:
            tile[np.tri(len(tile), dtype=np.bool_)] = -2.0
        places = np.flatnonzero(tile >= least)
        if most is not None and len(places) > most * sum(tile.shape):
            is_alike = tile >= np.maximum(np.partition(tile, -most, axis=1)[:, -most, None], least)
            # Much may be exactly the same, and it is all the same which of it is taken.
            places = np.flatnonzero(is_alike & (np.cumsum(is_alike, axis=1, dtype=np.int16) <= most))
        first, second = np.divmod(places, tile.shape[1])
        yield (first + top) * len(vectors) + second + left, tile.ravel()[places]


MIN_CONFIDENCE: Final = 0.3
"""Below it nothing is written."""
NAMES_WEIGHT: Final = 0.6
NAMES_ENOUGH: Final = 3
TAGS_WEIGHT: Final = 0.4
TAGS_ENOUGH: Final = 2
LIKENESS_WEIGHT: Final = 0.9

MIN_HUB_SIZE: Final = 20
MAX_PER_NAME: Final = 200
HUB_SHARE: Final = 0.01
"""What more than a hundredth share is a hub, if that is more than 20; what more than 200 share always is."""

MAX_PER_ROW: Final = 5
"""So many pairs of one row are returned, the surest: else all of a topic would be linked with all of it."""
MAX_PAIRS: Final = 1_000
"""So many pairs are returned in all."""
_MAX_HELD: Final = 1_000_000
"""The surest so many candidates are held; what is dropped has its turn in a later scan."""
_ROWS_WEIGHED: Final = 256
"""At a time: each of their names is shared by 200 rows at most, so that their pairs take some megabytes."""
_MAX_SIMILAR: Final = 10
"""Of one row in one tile, where much is alike."""

_UNSURE: Final = 1.0
"""The rank of pairs that are not sure enough; others have their confidence, negative."""


class Waiting(NamedTuple):
    """What waits for somebody: how many pairs of each row, and how sure a pair has to be not to wait."""

    pairs: Mapping[int, int] = MappingProxyType({})
    below: float = 1.0


_NOTHING_WAITS: Final = Waiting()


def confidence(names: Any, tags: Any, similarity: Any) -> Any:
    """Return how sure it is that pairs are related, 0–1, for single numbers or arrays of them.

    Args:
        names, tags: how many they share.
    """
    words = NAMES_WEIGHT * np.minimum(1.0, names / NAMES_ENOUGH) + TAGS_WEIGHT * np.minimum(1.0, tags / TAGS_ENOUGH)
    return np.minimum(1.0, np.maximum(words, LIKENESS_WEIGHT * similarity))


def strength(names: tuple[Collection[str], Collection[str]], tags: tuple[Collection[str], Collection[str]]) -> float:
    """Return how strongly two are linked, 0–1, by the names and the tags of both."""
    return 0.7 * jaccard(*names) + 0.3 * jaccard(*tags)


def jaccard(one: Collection[str], other: Collection[str]) -> float:
    """Return the share of what two have in common among what either has; 0 where neither has anything."""
    either = len(set(one) | set(other))
    return len(set(one) & set(other)) / either if either else 0.0


def counts_likeness(are_turns: bool, names: int, tags: int) -> bool:
    """Return whether it counts that two are alike: of two turns of conversations only where they share a name or a tag.

    Small talk is alike ("Thanks, I will!") and has nothing to do with each other.
    """
    return not are_turns or names + tags > 0


def hubs(rows: Sequence[Collection[str]]) -> frozenset[str]:
    """Return what so many rows share that it says nothing."""
    most = min(MAX_PER_NAME, max(MIN_HUB_SIZE, int(len(rows) * HUB_SHARE)))
    counts = Counter(word for words in rows for word in set(words))
    return frozenset(word for word, count in counts.items() if count > most)


def pairs(
    names: Sequence[Collection[str]],
    tags: Sequence[Collection[str]],
    vectors: NDArray[np.float32],
    calibrated: Calibrated,
    known: Collection[tuple[int, int]] = (),
    turns: Collection[int] = (),
    doubles: Sequence[Collection[str]] = (),
    waiting: Waiting = _NOTHING_WAITS,
) -> list[tuple[int, int]]:
    """Return the pairs of rows that share a name or are alike by 0.40, the first row before the second.

    The surest come first, ties by rows, at most 5 with one row and 1,000 in all. Those less sure than 0.3 come last,
    by rows.

    Args:
        names, tags: of each row, without hubs.
        vectors: of unit length, float32, shape (n, d).
        known: pairs that are left out, the first row before the second.
        turns: rows that are turns of conversations; see `counts_likeness`.
        doubles: of each row, a key for a name that is a part of another of its names: who shares that shares one
            name less.
        waiting: what was found before; it counts among the 5 with one row, but takes no place from what will not wait.
    """
    count = len(names)
    by_names, by_tags, by_doubles = Sharing(names), Sharing(tags), Sharing(doubles or [()] * count)
    left_out = np.array(sorted(first * count + second for first, second in known), np.int64)
    is_turn = np.zeros(count, np.bool_)
    is_turn[list(turns)] = True

    def weighed(
        begin: int, end: int, alike: Codes, similarity: NDArray[np.float32]
    ) -> tuple[Codes, NDArray[np.float64]]:
        """Return the candidates whose first row is one of these, and their ranks: the surest has the lowest.

        Args:
            alike: pairs that are alike enough to count, ascending, and their similarities.
        """
        by_name, in_names = by_names.between(begin, end)
        in_names = in_names - looked_up(by_name, *by_doubles.between(begin, end))
        here = slice(*np.searchsorted(alike, [begin * count, end * count]))
        codes = np.union1d(by_name, alike[here])
        codes = codes[~within(codes, left_out)]
        named, tagged = looked_up(codes, by_name, in_names), looked_up(codes, *by_tags.between(begin, end))
        likeness = looked_up(codes, alike[here], similarity[here])
        likeness[is_turn[codes // count] & is_turn[codes % count] & (named + tagged == 0)] = 0.0
        # Rounded, so that what is equally sure is a tie on every machine.
        sure = np.round(confidence(named, tagged, likeness), 9)
        ranks = np.where(sure < MIN_CONFIDENCE, _UNSURE, -sure)
        is_candidate = (named > 0) | (likeness >= LINKED)
        return codes[is_candidate], ranks[is_candidate]

    least = min_cosine(calibrated, MIN_CONFIDENCE / LIKENESS_WEIGHT)
    codes, ranks = np.zeros(0, np.int64), np.zeros(0)
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        tiles = [np.concatenate(each) for each in zip(*_alike_tiles(vectors, top, least, _MAX_SIMILAR), strict=True)]
        order = np.argsort(tiles[0])
        alike, similarity = tiles[0][order], calibrated(tiles[1][order])
        end = min(top + _ROWS_AT_ONCE, count)
        for begin in range(top, end, _ROWS_WEIGHED):
            more, their_ranks = weighed(begin, min(begin + _ROWS_WEIGHED, end), alike, similarity)
            codes, ranks = np.concatenate([codes, more]), np.concatenate([ranks, their_ranks])
            if len(codes) > 2 * _MAX_HELD:
                kept = np.lexsort((codes, ranks))[:_MAX_HELD]
                codes, ranks = codes[kept], ranks[kept]
    return _surest(codes, ranks, count, waiting)


def _surest(codes: Codes, ranks: NDArray[np.float64], count: int, waiting: Waiting) -> list[tuple[int, int]]:
    """Return the candidates of the lowest ranks, but not too many of one row, nor in all."""
    order = np.lexsort((codes, ranks))
    taken, found, are_acted_on = Counter[int](), list[tuple[int, int]](), True
    for code, rank in zip(codes[order].tolist(), ranks[order].tolist(), strict=True):
        if are_acted_on and rank > -max(waiting.below, MIN_CONFIDENCE):
            taken.update(waiting.pairs)
            are_acted_on = False
        one, other = divmod(code, count)
        if taken[one] < MAX_PER_ROW and taken[other] < MAX_PER_ROW:
            found.append((one, other))
            taken.update((one, other))
            if len(found) == MAX_PAIRS:
                break
    return found


class Sharing:
    """Which pairs of rows share a word.

    Args:
        words: of each row.
    """

    def __init__(self, words: Sequence[Collection[str]]) -> None:
        self._words = [set(some) for some in words]
        rows: dict[str, list[int]] = defaultdict(list)
        for row, some in enumerate(self._words):
            for word in some:
                rows[word].append(row)
        self._rows = {word: np.array(some) for word, some in rows.items() if len(some) > 1}

    def between(self, begin: int, end: int) -> tuple[Codes, Codes]:
        """Return the pairs whose first row is from `begin` up to, not including, `end`, and how many words each shares.

        The pairs ascend.
        """
        codes = [np.zeros(0, np.int64)]
        for row in range(begin, end):
            for word in self._words[row] & self._rows.keys():
                rows = self._rows[word]
                codes.append(row * len(self._words) + rows[rows.searchsorted(row) + 1 :])
        return np.unique(np.concatenate(codes), return_counts=True)


def looked_up(codes: Codes, known: Codes, values: NDArray[Any]) -> NDArray[Any]:
    """Return the value of each code among the known ones, which ascend; 0 where it is not among them."""
    if not len(known):
        return np.zeros(len(codes), values.dtype)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[place] == codes, values[place], 0)
