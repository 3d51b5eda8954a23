"""Find pairs of related memories by shared names, tags and vector similarity, and cluster them.

Names and tags that very many memories share (hubs), such as the speakers of a conversation, are ignored.

A pair is one number, first · n + second, the first row before the second.

Clusters are single-linkage: the maximum spanning forest of the pairs decides them (Gower and Ross, "Minimum spanning
trees and single linkage cluster analysis", 1969). A group above the size limit is split at its weakest links;
singletons are dropped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field
from commonplace.ranking.arrays import within

Calibrated = Callable[[NDArray[Any]], NDArray[Any]]
"""Maps cosines to similarities, 0–1, and never a higher one to a lower similarity."""


class Sharing:
    """Tells of any stretch of rows which pairs begin there and share a word, and how many each shares.

    Args:
        rows: the words of each.
        count: how many rows there are; those behind the last of `rows` have no words.
    """

    def __init__(self, rows: Sequence[Collection[str]], count: int) -> None:
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
        behind = np.concatenate([[0], np.cumsum(self._behind[self._places])])
        sizes: NDArray[np.int64] = np.diff(behind[self._begins])
        return sizes

    def between(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs that begin with a row from `first` up to, not including, `last`; and how many each shares.

        They ascend.
        """
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
    sums = np.cumsum(sizes[first:last])
    begin, before = first, 0
    while begin < last:
        end = max(begin + 1, first + int(np.searchsorted(sums, before + most, side="right")))
        yield begin, end
        begin, before = end, int(sums[end - first - 1])


def counted(codes: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes, ascending, each once, and how often each is there."""
    every = np.sort(np.concatenate(codes))
    begins = np.flatnonzero(np.diff(every, prepend=-1))
    return every[begins], np.diff(begins, append=len(every))


def looked_up(codes: NDArray[np.int64], known: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Return the value of each code among the known ones, which ascend; 0 where it is not among them."""
    if not len(known):
        return np.zeros(len(codes), values.dtype)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[place] == codes, values[place], 0)


MAX_PER_ROW: Final = 5
"""So many pairs of one row are returned, the surest: else all of a topic would be linked with all of it."""
MAX_PAIRS: Final = 1_000
"""So many pairs are returned in all."""

MAX_HELD: Final = 1_000_000
"""When so many pairs are held, those are dropped that cannot be chosen any more."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for somebody: how many pairs of each row, and how sure a pair has to be not to wait."""

    pairs: Mapping[int, int] = field(default_factory=dict)
    below: float = 1.0


NOTHING_WAITS: Final = Waiting()


class Ranked(NamedTuple):
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
        return Ranked(*(column[which] for column in self))


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
        self._count = count
        self._waiting = waiting
        self._left = np.full(count, MAX_PER_ROW, np.int64)
        for row, number in waiting.pairs.items():
            self._left[row] -= number
        self._held = [Ranked(np.zeros(0, np.int64), np.zeros(0, np.float64), np.zeros(0, np.bool_))]
        self._most_held = MAX_HELD
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
        taken = Counter[int]()
        found: list[tuple[int, int]] = []
        for place, code in enumerate(held.codes.tolist()):
            if place == acted_on:
                for row, pairs_of_row in self._waiting.pairs.items():
                    taken[row] += pairs_of_row
            pair = divmod(code, self._count)
            if all(taken[row] < MAX_PER_ROW for row in pair):
                found.append(pair)
                for row in pair:
                    taken[row] += 1
                if len(found) == MAX_PAIRS:
                    break
        return found

    def _drop(self) -> None:
        """Drop what comes behind twice as many as are wanted, with no more places than a row has at the very end."""
        held = self._sorted()
        pairs = (divmod(code, self._count) for code in held.codes.tolist())
        if (end := _place_of(2 * MAX_PAIRS, pairs, self._left.tolist())) is not None:
            self._last = float(held.ranks[end]), int(held.codes[end])
            held = held.only(np.arange(end + 1))
        self._held = [held]
        self._most_held = max(MAX_HELD, 2 * len(held.codes))

    def _sorted(self) -> Ranked:
        held = Ranked(*map(np.concatenate, zip(*self._held, strict=True)))
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
_HALVINGS: Final = 40
_DECIMALS: Final = 6
"""Of a cohesion: how sums are rounded differs between machines behind them."""


class Pairs(NamedTuple):
    """Pairs of rows with their cosines: int64 and float32, shape (n,), the first row before the second."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    cosines: NDArray[np.float32]


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
    kept = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        for left, tile in _tiles(vectors, top):
            found = _upper(tile, np.flatnonzero(tile >= least), top, left)
            kept = _joined([kept, found])
            if len(kept.cosines) > _MAX_PAIRS:
                kept = strongest_forest(kept, len(vectors))
    return _parts(strongest_forest(kept, len(vectors)))


def min_cosine(calibrated: Calibrated, similarity: float) -> float:
    """Return the least cosine with at least that similarity, above 1 where none has."""
    low, high = -1.0, 1.0
    if float(calibrated(np.array([high]))[0]) < similarity:
        return 2.0
    if float(calibrated(np.array([low]))[0]) >= similarity:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(calibrated(np.array([middle]))[0]) >= similarity:
            high = middle
        else:
            low = middle
    return high


def strongest_forest(pairs: Pairs, count: int) -> Pairs:
    """Return the pairs of the strongest spanning forest of `count` rows, strongest first (Borůvka, 1926)."""
    order = np.lexsort((pairs.second, pairs.first, -pairs.cosines))
    first, second = pairs.first[order], pairs.second[order]
    tree = np.arange(count)
    ranks = np.arange(len(order))
    taken = [np.empty(0, np.int64)]
    while len(ranks):
        best = np.full(count, len(order))
        np.minimum.at(best, tree[first[ranks]], ranks)
        np.minimum.at(best, tree[second[ranks]], ranks)
        chosen = np.unique(best[best < len(order)])
        taken.append(chosen)
        tree = _united(tree, tree[first[chosen]], tree[second[chosen]])
        ranks = ranks[tree[first[ranks]] != tree[second[ranks]]]
    kept = order[np.sort(np.concatenate(taken))]
    return Pairs(pairs.first[kept], pairs.second[kept], pairs.cosines[kept])


def _united(tree: NDArray[np.int64], ones: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
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


def _joined(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def _tiles(vectors: NDArray[np.float32], top: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the cosines of some rows, from `top` on, with those from `left` on: not all cosines are held at once."""
    for left in range(top, len(vectors), _ROWS_AT_ONCE):
        yield left, vectors[top : top + _ROWS_AT_ONCE] @ vectors[left : left + _ROWS_AT_ONCE].T


def _upper(tile: NDArray[np.float32], places: NDArray[np.int64], top: int, left: int) -> Pairs:
    """Return the pairs at some places of a tile of which the first row comes before the second."""
    first, second = np.divmod(places, tile.shape[1])
    first, second, cosines = first + top, second + left, tile.ravel()[places]
    upper = first < second
    return Pairs(first[upper], second[upper], cosines[upper])


def _parts(forest: Pairs) -> list[tuple[int, ...]]:
    """Return the groups that a forest, strongest pair first, joins without growing too large."""
    parts: dict[int, list[int]] = {}
    part_of: dict[int, int] = {}
    closed: set[int] = set()
    for pair in zip(forest.first.tolist(), forest.second.tolist(), strict=True):
        for row in pair:
            if row not in part_of:
                part_of[row], parts[row] = row, [row]
        one, other = sorted(part_of[row] for row in pair)
        if one in closed or other in closed or len(parts[one]) + len(parts[other]) > MAX_GROUP:
            closed |= {one, other}
            continue
        for row in parts[other]:
            part_of[row] = one
        parts[one] += parts.pop(other)
    return sorted(tuple(sorted(part)) for part in parts.values() if len(part) >= MIN_GROUP)


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

_PAIRS_AT_ONCE: Final = 1_000_000
"""Of one stretch of rows, where one row alone has not more."""
_MAX_SIMILAR: Final = 10
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
        """How sure it is that they are related, 0–1."""
        return float(_confidence(self.names, self.tags, self.similarity))


def _confidence(names: Any, tags: Any, similarity: Any) -> Any:
    """Return how sure it is that pairs are related, 0–1, for single numbers or arrays of them."""
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
    """Tell whether it counts that two are alike: of two turns of conversations only where they share a name or a tag.

    Small talk is alike ("Thanks, I will!") and has nothing to do with each other.
    """
    return not are_turns or names + tags > 0


def hubs(rows: Sequence[Collection[str]]) -> frozenset[str]:
    """Return what so many rows share that it tells nothing."""
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
    waiting: Waiting = NOTHING_WAITS,
) -> list[tuple[int, int]]:
    """Return the pairs of rows that share a name or are alike by 0.40, the first row before the second.

    The surest come first, ties by rows, at most 5 with one row and 1,000 in all. Those less sure than 0.3 come last,
    by rows.

    Args:
        names, tags: of each row, without hubs.
        vectors: of unit length, float32, shape (n, d).
        known: pairs that are left out, the first row before the second.
        turns: rows that are turns of conversations; see `counts_likeness`.
        doubles: of each row, what stands for a name that is a part of another of its names: who shares that shares one
            name less.
        waiting: what was found before and waits: it counts among the 5 with one row.
    """
    found = Shortlist(len(names), waiting)
    rows = _Rows(names, tags, doubles, known, turns)
    for first, alike in enumerate(_alike_pairs(vectors, calibrated)):
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
        self._count = len(names)
        self._names, self._tags, self._doubles = (Sharing(rows, self._count) for rows in (names, tags, doubles))
        self.sizes = self._names.sizes + self._tags.sizes
        self._left_out = np.array(sorted(first * self._count + second for first, second in known), np.int64)
        self._is_turn = np.zeros(self._count, np.bool_)
        self._is_turn[list(turns)] = True

    def weighed(self, begin: int, end: int, alike: _Alike, below: float) -> Ranked:
        """Return the candidates whose first row is one of a stretch; what is less sure than `below` would wait."""
        by_name, in_names = self._names.between(begin, end)
        in_names -= looked_up(by_name, *self._doubles.between(begin, end))
        by_tag, in_tags = self._tags.between(begin, end)
        here = slice(*np.searchsorted(alike.codes, [begin * self._count, end * self._count]))
        similar, similarity = alike.codes[here], alike.similarity[here]
        # One name alone is not enough: most of these pairs are weighed no further.
        single = by_name[in_names <= 1]
        codes, _ = counted([by_name[in_names > 1], similar, single[within(single, by_tag)]])
        codes = codes[~within(codes, self._left_out)]
        named, tagged = looked_up(codes, by_name, in_names), looked_up(codes, by_tag, in_tags)
        likeness = looked_up(codes, similar, similarity)
        are_turns = self._is_turn[codes // self._count] & self._is_turn[codes % self._count]
        likeness[are_turns & (named + tagged == 0)] = 0.0
        is_candidate = (named > 0) | (likeness >= LINKED)
        codes, named, tagged, likeness = (each[is_candidate] for each in (codes, named, tagged, likeness))
        confidence = _confidence(named, tagged, likeness)
        rest = single[~within(single, codes) & ~within(single, self._left_out)]
        ranks = -np.round(confidence, 9) + np.where(confidence < MIN_CONFIDENCE, _UNSURE, 0.0)
        return Ranked(
            codes=np.concatenate([codes, rest]),
            ranks=np.concatenate([ranks, np.full(len(rest), _LAST)]),
            is_acted_on=np.concatenate([confidence >= below, np.zeros(len(rest), np.bool_)]),
        )


class _Alike(NamedTuple):
    """Pairs that are alike enough to count, as first · n + second, ascending, and their similarities."""

    codes: NDArray[np.int64]
    similarity: NDArray[np.float32]


def _alike_pairs(vectors: NDArray[np.float32], calibrated: Calibrated) -> Iterator[_Alike]:
    """Yield the pairs that are alike, those that begin with the first rows, those with the next ones, and so on."""
    least = min_cosine(calibrated, MIN_CONFIDENCE / LIKENESS_WEIGHT)
    for top in range(0, len(vectors), _ROWS_AT_ONCE):
        parts = []
        for left, tile in _tiles(vectors, top):
            if top == left:
                np.fill_diagonal(tile, -1.0)
            parts.append(_upper(tile, _best(tile, least, is_own=top == left), top, left))
        found = _joined(parts)
        codes = found.first * len(vectors) + found.second
        order = np.argsort(codes)
        yield _Alike(codes[order], calibrated(found.cosines[order]))


def _best(tile: NDArray[np.float32], least: float, *, is_own: bool) -> NDArray[np.int64]:
    """Return the places of a tile that are alike, of each row no more than a few where that is true of many."""
    places = np.flatnonzero(tile >= least)
    if len(places) <= _MAX_SIMILAR * sum(tile.shape):
        return places
    if is_own:
        tile[np.tril_indices(len(tile))] = -1.0
    edge = np.partition(tile, -_MAX_SIMILAR, axis=1)[:, -_MAX_SIMILAR, None]
    chosen = tile >= np.maximum(edge, least)
    places = np.flatnonzero(chosen)
    if len(places) <= _MAX_SIMILAR * sum(tile.shape):
        return places
    # Much is exactly the same, and it is all the same which of it is taken.
    return np.flatnonzero(chosen & (np.cumsum(chosen, axis=1, dtype=np.int16) <= _MAX_SIMILAR))
