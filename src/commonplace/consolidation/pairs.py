"""Find pairs of related memories by shared names, tags and vector similarity, and cluster them.

Names and tags that very many memories share (hubs), such as the speakers of a conversation, are ignored.

A pair is encoded as one number, its code: first · n + second, where first < second are rows and n is their number.

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
"""Monotonic function from cosines to similarities, 0–1."""
Codes = NDArray[np.int64]
Action = Literal["merge", "link", "ignore"]

LINKED: Final = 0.40
"""Similarity from which two memories are linked, and cohesion from which the members of a group are."""
MERGED: Final = 0.75
"""Cohesion from which the members of a group are merged."""
MIN_GROUP: Final = 2
MAX_GROUP: Final = 10

CLUSTER_IDS: Final = UUID("1f3b0f0a-2c0e-5d6b-8d53-6f0f5c1e7a94")
"""Namespace of the UUIDv5 of groups; it never changes, so that a group has the same id in every run."""

_ROWS_AT_ONCE: Final = 2_048
_MAX_PAIRS: Final = 4_000_000
"""Number of pairs held before they are reduced to their spanning forest."""
_BILLION: Final = 10**9
_DECIMALS: Final = 6
"""Decimals of a cohesion; beyond them rounding differs between machines."""


def cluster_id(members: Sequence[str]) -> str:
    """Return the id of a group, independent of the order of its members."""
    return str(uuid5(CLUSTER_IDS, json.dumps(sorted(members))))


def size_factor(size: int) -> float:
    """Return the factor of a group's size in its confidence."""
    if size <= MIN_GROUP:
        return 0.8
    if size <= 5:
        return 1.0
    return 0.9 if size <= 8 else 0.7


def action_of(cohesion: float) -> Action:
    """Return the action for a group."""
    if cohesion >= MERGED:
        return "merge"
    return "link" if cohesion >= LINKED else "ignore"


def similarities(vectors: NDArray[np.float32], calibrated: Calibrated) -> list[list[float]]:
    """Return the pairwise similarities, 0–1, of vectors of unit length, float32, shape (n, d)."""
    cosines = np.clip(vectors @ vectors.T, -1, 1)
    values: list[list[float]] = np.clip(calibrated(cosines), 0, 1).astype(np.float64).tolist()
    return values


def cohesion(similarities: Sequence[Sequence[float]]) -> float:
    """Return the mean similarity of all pairs, given the matrix of two or more items."""
    pairs = [row[other] for one, row in enumerate(similarities) for other in range(one + 1, len(row))]
    return round(min(1.0, fsum(pairs) / len(pairs)), _DECIMALS)


def groups(vectors: NDArray[np.float32], calibrated: Calibrated) -> list[tuple[int, ...]]:
    """Return the groups among vectors of unit length, float32, shape (n, d): ascending rows, ordered by the first."""
    least = min_cosine(calibrated, LINKED)
    codes, cosines = np.empty(0, np.int64), np.empty(0, np.float32)
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        for tile_codes, tile_cosines in _alike_tiles(vectors, top, least):
            codes, cosines = np.concatenate([codes, tile_codes]), np.concatenate([cosines, tile_cosines])
            if len(codes) > _MAX_PAIRS:
                codes, cosines = strongest_forest(codes, cosines, len(vectors))
    # Join the pairs of the forest, strongest first, unless the result would be too large.
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
            # Both groups are final: later pairs are weaker than the one for which there was no room.
            closed |= {one, other}
            continue
        for row in parts[other]:
            part_of[row] = one
        parts[one] += parts.pop(other)
    return sorted(tuple(sorted(part)) for part in parts.values() if len(part) >= MIN_GROUP)


def min_cosine(calibrated: Calibrated, similarity: float) -> float:
    """Return the least cosine with at least that similarity, to nine decimals; 2 if there is none."""
    cosines = range(-_BILLION, _BILLION + 1)
    index = bisect_left(cosines, True, key=lambda step: bool(calibrated(np.array([step / _BILLION]))[0] >= similarity))
    return cosines[index] / _BILLION if index < len(cosines) else 2.0


def strongest_forest(codes: Codes, cosines: NDArray[np.float32], count: int) -> tuple[Codes, NDArray[np.float32]]:
    """Return the pairs of the strongest spanning forest of `count` rows, strongest first (Kruskal, 1956)."""
    order = np.lexsort((codes, -cosines))
    parents, chosen = list(range(count)), list[int]()

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = row = parents[parents[row]]
        return row

    for rank, code in enumerate(codes[order].tolist()):
        one, other = (root(row) for row in divmod(code, count))
        if one != other:
            parents[one] = other
            chosen.append(rank)
    rows = order[chosen]
    return codes[rows], cosines[rows]


def _alike_tiles(
    vectors: NDArray[np.float32], top: int, least: float, max_per_row: int | None = None
) -> Iterator[tuple[Codes, NDArray[np.float32]]]:
    """Yield the pairs whose first row is in the block from `top` and whose cosine is at least `least`, tile by tile.

    Args:
        most: number of pairs of a row to which a tile with very many pairs is limited.
    """
    for left in range(top, len(vectors), _ROWS_AT_ONCE):
        tile = vectors[top : top + _ROWS_AT_ONCE] @ vectors[left : left + _ROWS_AT_ONCE].T
        if left == top:
            tile[np.tri(len(tile), dtype=np.bool_)] = -2.0
        positions = np.flatnonzero(tile >= least)
        if max_per_row is not None and len(positions) > max_per_row * sum(tile.shape):
            is_alike = tile >= np.maximum(np.partition(tile, -max_per_row, axis=1)[:, -max_per_row, None], least)
            # Many cosines may be equal, and it does not matter which of them are chosen.
            positions = np.flatnonzero(is_alike & (np.cumsum(is_alike, axis=1, dtype=np.int16) <= max_per_row))
        first, second = np.divmod(positions, tile.shape[1])
        yield (first + top) * len(vectors) + second + left, tile.ravel()[positions]


MIN_CONFIDENCE: Final = 0.3
"""Confidence below which no link is written."""
NAMES_WEIGHT: Final = 0.6
NAMES_ENOUGH: Final = 3
TAGS_WEIGHT: Final = 0.4
TAGS_ENOUGH: Final = 2
LIKENESS_WEIGHT: Final = 0.9

MIN_HUB_SIZE: Final = 20
MAX_PER_NAME: Final = 200
HUB_SHARE: Final = 0.01
"""Share of the rows above which a word is a hub if more than 20 rows have it; a word of more than 200 always is."""

MAX_PER_ROW: Final = 5
"""Maximum number of pairs returned for one row, the surest ones; without it all of a topic would be linked."""
MAX_PAIRS: Final = 1_000
"""Maximum number of pairs returned in all."""
_MAX_HELD: Final = 1_000_000
"""Number of candidates held, the surest ones; a dropped one has its turn in a later scan."""
_ROWS_WEIGHED: Final = 256
"""Number of rows weighed at a time; at most 200 rows share a name, so their pairs take a few megabytes."""
_MAX_SIMILAR: Final = 10
"""Number of similar pairs of a row to which a tile with very many of them is limited."""

_UNSURE: Final = 1.0
"""Rank of pairs below `MIN_CONFIDENCE`; the rank of any other pair is its negative confidence."""


class PendingPairs(NamedTuple):
    """Pairs that wait for approval: their number by row, and the confidence `below` which a pair waits."""

    pairs: Mapping[int, int] = MappingProxyType({})
    below: float = 1.0


_NOTHING_WAITS: Final = PendingPairs()


def confidence(names: Any, tags: Any, similarity: Any) -> Any:
    """Return the confidence, 0–1, that pairs are related, for single numbers or arrays.

    Args:
        names, tags: numbers of shared names and tags.
    """
    words = NAMES_WEIGHT * np.minimum(1.0, names / NAMES_ENOUGH) + TAGS_WEIGHT * np.minimum(1.0, tags / TAGS_ENOUGH)
    return np.minimum(1.0, np.maximum(words, LIKENESS_WEIGHT * similarity))


def strength(names: tuple[Collection[str], Collection[str]], tags: tuple[Collection[str], Collection[str]]) -> float:
    """Return the strength of a link, 0–1, from the names and the tags of both memories."""
    return 0.7 * jaccard(*names) + 0.3 * jaccard(*tags)


def jaccard(left: Collection[str], right: Collection[str]) -> float:
    """Return the Jaccard index of two collections; 0 if both are empty."""
    either = len(set(left) | set(right))
    return len(set(left) & set(right)) / either if either else 0.0


def counts_likeness(are_turns: bool, names: int, tags: int) -> bool:
    """Return whether the similarity of a pair counts; that of two turns does only if they share a name or a tag.

    Unrelated small talk is similar ("Thanks, I will!").
    """
    return not are_turns or names + tags > 0


def hubs(rows: Sequence[Collection[str]]) -> frozenset[str]:
    """Return the hubs: words that too many rows share to carry information."""
    most = min(MAX_PER_NAME, max(MIN_HUB_SIZE, int(len(rows) * HUB_SHARE)))
    counts = Counter(word for words in rows for word in set(words))
    return frozenset(word for word, count in counts.items() if count > most)


def pairs(
    names: Sequence[Collection[str]],
    tags: Sequence[Collection[str]],
    vectors: NDArray[np.float32],
    calibrated: Calibrated,
    excluded: Collection[tuple[int, int]] = (),
    turns: Collection[int] = (),
    doubles: Sequence[Collection[str]] = (),
    pending: PendingPairs = _NOTHING_WAITS,
) -> list[tuple[int, int]]:
    """Return the pairs of rows that share a name or have a similarity of 0.40 or more, first row before second.

    The surest come first, ties by rows, at most 5 per row and 1,000 in all. Pairs with confidence below 0.3 come last,
    by rows.

    Args:
        names, tags: those of each row, without hubs.
        vectors: of unit length, float32, shape (n, d).
        excluded: pairs to leave out, first row before second.
        turns: rows that are turns of conversations; see `counts_likeness`.
        doubles: for each row, keys of names that are part of another of its names; each key that two rows share
            reduces their number of shared names by one.
        pending: pairs that wait already; they count towards the 5 per row of pairs that would wait too.
    """
    count = len(names)
    by_names, by_tags, by_doubles = Sharing(names), Sharing(tags), Sharing(doubles or [()] * count)
    left_out = np.array(sorted(first * count + second for first, second in excluded), np.int64)
    is_turn = np.zeros(count, np.bool_)
    is_turn[list(turns)] = True

    def weighed(
        begin: int, end: int, alike: Codes, similarity: NDArray[np.float32]
    ) -> tuple[Codes, NDArray[np.float64]]:
        """Return the candidates whose first row is from `begin` up to, not including, `end`, and their ranks.

        Args:
            alike, similarity: codes of the pairs that are similar enough to count, ascending, and their similarities.
        """
        by_name, in_names = by_names.between(begin, end)
        in_names = in_names - look_up(by_name, *by_doubles.between(begin, end))
        span = slice(*np.searchsorted(alike, [begin * count, end * count]))
        codes = np.union1d(by_name, alike[span])
        codes = codes[~within(codes, left_out)]
        name_counts, tag_counts = look_up(codes, by_name, in_names), look_up(codes, *by_tags.between(begin, end))
        likeness = look_up(codes, alike[span], similarity[span])
        likeness[is_turn[codes // count] & is_turn[codes % count] & (name_counts + tag_counts == 0)] = 0.0
        # Rounded, so that equal confidences are ties on every machine.
        sure = np.round(confidence(name_counts, tag_counts, likeness), 9)
        ranks = np.where(sure < MIN_CONFIDENCE, _UNSURE, -sure)
        is_candidate = (name_counts > 0) | (likeness >= LINKED)
        return codes[is_candidate], ranks[is_candidate]

    least = min_cosine(calibrated, MIN_CONFIDENCE / LIKENESS_WEIGHT)
    codes, ranks = np.zeros(0, np.int64), np.zeros(0)
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        tiles = [np.concatenate(part) for part in zip(*_alike_tiles(vectors, top, least, _MAX_SIMILAR), strict=True)]
        order = np.argsort(tiles[0])
        alike, similarity = tiles[0][order], calibrated(tiles[1][order])
        end = min(top + _ROWS_AT_ONCE, count)
        for begin in range(top, end, _ROWS_WEIGHED):
            new_codes, new_ranks = weighed(begin, min(begin + _ROWS_WEIGHED, end), alike, similarity)
            codes, ranks = np.concatenate([codes, new_codes]), np.concatenate([ranks, new_ranks])
            if len(codes) > 2 * _MAX_HELD:
                best = np.lexsort((codes, ranks))[:_MAX_HELD]
                codes, ranks = codes[best], ranks[best]
    return _surest(codes, ranks, count, pending)


def _surest(codes: Codes, ranks: NDArray[np.float64], count: int, pending: PendingPairs) -> list[tuple[int, int]]:
    """Return the candidates of the lowest ranks, limited to `MAX_PER_ROW` per row and `MAX_PAIRS` in all."""
    order = np.lexsort((codes, ranks))
    per_row, result, are_acted_on = Counter[int](), list[tuple[int, int]](), True
    for code, rank in zip(codes[order].tolist(), ranks[order].tolist(), strict=True):
        if are_acted_on and rank > -max(pending.below, MIN_CONFIDENCE):
            per_row.update(pending.pairs)
            are_acted_on = False
        one, other = divmod(code, count)
        if per_row[one] < MAX_PER_ROW and per_row[other] < MAX_PER_ROW:
            result.append((one, other))
            per_row.update((one, other))
            if len(result) == MAX_PAIRS:
                break
    return result


class Sharing:
    """Index of the pairs of rows that share words.

    Args:
        words: the words of each row.
    """

    def __init__(self, words: Sequence[Collection[str]]) -> None:
        self._words = [set(row_words) for row_words in words]
        rows: dict[str, list[int]] = defaultdict(list)
        for row, row_words in enumerate(self._words):
            for word in row_words:
                rows[word].append(row)
        self._rows = {word: np.array(sharing) for word, sharing in rows.items() if len(sharing) > 1}

    def between(self, begin: int, end: int) -> tuple[Codes, Codes]:
        """Return the pairs whose first row is from `begin` up to, not including, `end`, and their shared word counts.

        The pairs are in ascending order.
        """
        codes = [np.zeros(0, np.int64)]
        for row in range(begin, end):
            for word in self._words[row] & self._rows.keys():
                rows = self._rows[word]
                codes.append(row * len(self._words) + rows[rows.searchsorted(row) + 1 :])
        return np.unique(np.concatenate(codes), return_counts=True)


def look_up(codes: Codes, keys: Codes, values: NDArray[Any]) -> NDArray[Any]:
    """Return the value of each code, 0 for a code that is not in `keys`, which is ascending."""
    if not len(keys):
        return np.zeros(len(codes), values.dtype)
    position = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
    return np.where(keys[position] == codes, values[position], 0)
