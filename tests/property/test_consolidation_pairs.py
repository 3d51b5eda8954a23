"""Groups are what cutting the weakest links leaves, in whatever order vectors are given."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from commonplace.consolidation import pairs as pairing
from commonplace.consolidation.pairs import (
    LINKED,
    MAX_GROUP,
    PendingPairs,
    Sharing,
    cohesion,
    counts_likeness,
    groups,
    pairs,
    similarities,
)
from commonplace.consolidation.runtime import scale_of

PLAIN = scale_of("hashing")
SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(0, 45)


def _vectors(seed: int, count: int) -> NDArray[np.float32]:
    """Return random vectors, in few dimensions, so that many are alike."""
    vectors = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _by_cutting(vectors: NDArray[np.float32]) -> list[tuple[int, ...]]:
    """Return the groups by definition: take the weakest link of an oversized component away, until all parts fit."""
    cosines = vectors @ vectors.T
    links = {
        (one, other): float(cosines[one, other])
        for one in range(len(vectors))
        for other in range(one + 1, len(vectors))
        if cosines[one, other] >= LINKED
    }
    done, waiting = [], _components(list(range(len(vectors))), links)
    while waiting:
        part = waiting.pop()
        if len(part) <= MAX_GROUP:
            done.append(tuple(part))
            continue
        inside = {pair: cosine for pair, cosine in links.items() if pair[0] in part}
        del links[min(inside, key=lambda pair: inside[pair])]
        waiting += _components(part, links)
    return sorted(part for part in done if len(part) > 1)


def _components(rows: list[int], links: dict[tuple[int, int], float]) -> list[list[int]]:
    beside: dict[int, set[int]] = {row: set() for row in rows}
    for one, other in links:
        if one in beside and other in beside:
            beside[one].add(other)
            beside[other].add(one)
    found = []
    while beside:
        reached, edge = set[int](), {min(beside)}
        while edge:
            reached |= edge
            edge = {row for each in edge for row in beside[each]} - reached
        found.append(sorted(reached))
        for row in reached:
            del beside[row]
    return found


@given(SEEDS, st.integers(0, 26))
def test_groups_are_what_cutting_the_weakest_links_leaves(seed: int, count: int) -> None:
    vectors = _vectors(seed, count)
    assert groups(vectors, PLAIN) == _by_cutting(vectors)


@given(SEEDS, COUNTS)
def test_the_order_of_the_vectors_does_not_matter(seed: int, count: int) -> None:
    vectors = _vectors(seed, count)
    order = np.random.default_rng(seed).permutation(count)
    shuffled = [tuple(sorted(int(order[row]) for row in group)) for group in groups(vectors[order], PLAIN)]
    assert sorted(shuffled) == groups(vectors, PLAIN)


@given(SEEDS, COUNTS)
def test_every_group_fits_and_no_vector_is_in_two(seed: int, count: int) -> None:
    found = groups(_vectors(seed, count), scale_of("static"))
    members = [row for group in found for row in group]
    assert len(members) == len(set(members))
    assert all(2 <= len(group) <= MAX_GROUP for group in found)


@given(SEEDS, st.integers(2, 10))
def test_cohesion_is_a_share_and_its_order_does_not_matter(seed: int, count: int) -> None:
    vectors = _vectors(seed, count)
    forward, backward = (cohesion(similarities(some, PLAIN)) for some in (vectors, vectors[::-1]))
    assert 0 <= forward <= 1
    assert abs(forward - backward) <= 2e-6


# Which pairs are related does not depend on how many rows and pairs are looked at, and held, at a time.

MOST_ROWS = 12

words = st.lists(st.sets(st.sampled_from("abcd"), max_size=3), min_size=1, max_size=MOST_ROWS)


def same(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.clip(cosines, 0.0, 1.0).astype(np.float32)


@st.composite
def scans(draw: st.DrawFn) -> tuple[object, ...]:
    """Return the arguments of `pairs`; products of the vectors are quarters, exactly."""
    names = draw(words)
    count = len(names)
    tags = [draw(st.sets(st.sampled_from("xy"), max_size=2)) for _ in names]
    doubles = [{word for word in held if word in "ab" and "c" in held} for held in names]
    vectors = np.zeros((count, 8), np.float32)
    for row in range(count):
        vectors[row, draw(st.lists(st.integers(0, 7), min_size=4, max_size=4, unique=True))] = 0.5
    rows = st.integers(0, count - 1)
    known = [(min(pair), max(pair)) for pair in draw(st.sets(st.tuples(rows, rows), max_size=4)) if pair[0] != pair[1]]
    turns = draw(st.sets(rows, max_size=6))
    waiting = draw(st.dictionaries(rows, st.integers(0, 3), max_size=6))
    below = draw(st.sampled_from([0.1, 0.5, 0.7]))
    return names, tags, vectors, same, known, turns, doubles, PendingPairs(waiting, below)


def plainly(
    names: list[set[str]],
    tags: list[set[str]],
    vectors: NDArray[np.float32],
    _: object,
    known: list[tuple[int, int]],
    turns: set[int],
    doubles: list[set[str]],
    waiting: PendingPairs,
) -> list[tuple[int, int]]:
    """Weigh every pair, and go through them in order."""
    weighed: list[tuple[float, tuple[int, int], bool]] = []
    for pair in combinations(range(len(names)), 2):
        one, other = pair
        by_name = len(names[one] & names[other]) - len(doubles[one] & doubles[other])
        by_tag, likeness = len(tags[one] & tags[other]), float(vectors[one] @ vectors[other])
        if not counts_likeness(one in turns and other in turns, by_name, by_tag) or likeness < 1 / 3:
            likeness = 0.0
        if pair in known or not (names[one] & names[other] or likeness >= 0.4):
            continue
        sure = float(pairing.confidence(by_name, by_tag, likeness))
        weighed.append((-round(sure, 9) if sure >= 0.3 else 1.0, pair, sure >= max(0.3, waiting.below)))
    acted_on = sum(acts for *_, acts in weighed)
    taken: Counter[int] = Counter()
    found = []
    for place, (_rank, pair, _acts) in enumerate(sorted(weighed)):
        if place == acted_on:
            taken.update(waiting.pairs)
        if len(found) < pairing.MAX_PAIRS and all(taken[row] < pairing.MAX_PER_ROW for row in pair):
            found.append(pair)
            taken.update(pair)
    return found


@given(scans())
def test_pairs_are_those_that_one_finds_who_weighs_all_of_them(scan: tuple[object, ...]) -> None:
    assert pairs(*scan) == plainly(*scan)  # type: ignore[arg-type]


@given(scans(), st.integers(1, 5), st.integers(1, 9), st.integers(1, 6), st.integers(1, 3))
def test_pairs_are_the_same_however_few_rows_are_looked_at_at_a_time(
    scan: tuple[object, ...], rows: int, at_once: int, most: int, per_row: int
) -> None:
    with (
        patch.object(pairing, "_ROWS_AT_ONCE", rows),
        patch.object(pairing, "_ROWS_WEIGHED", at_once),
        patch.object(pairing, "MAX_PAIRS", most),
        patch.object(pairing, "MAX_PER_ROW", per_row),
    ):
        assert pairs(*scan) == plainly(*scan)  # type: ignore[arg-type]


@given(scans(), st.integers(1, 9))
def test_what_is_dropped_since_much_is_held_leaves_the_surest_first(scan: tuple[object, ...], held: int) -> None:
    with patch.object(pairing, "_MAX_HELD", held):
        found = pairs(*scan)  # type: ignore[arg-type]
    assert found[:1] == plainly(*scan)[:1]  # type: ignore[arg-type]
    assert len(found) <= 2 * held


@given(words, st.lists(st.integers(0, MOST_ROWS), max_size=4))
def test_some_rows_share_what_all_rows_share(rows: list[set[str]], cuts: list[int]) -> None:
    sharing = Sharing(rows)
    ends = pairwise(sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))}))
    found = [pair for begin, end in ends for pair in zip(*map(list, sharing.between(begin, end)), strict=True)]
    assert found == [
        (one * len(rows) + other, len(rows[one] & rows[other]))
        for one, other in combinations(range(len(rows)), 2)
        if rows[one] & rows[other]
    ]
