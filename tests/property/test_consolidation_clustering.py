"""Groups are what cutting the weakest links leaves, in whatever order vectors are given."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from commonplace.consolidation.pairs import LARGEST, LINKED, cohesion, groups, similarities
from commonplace.models.calibration import scale_of

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
        if len(part) <= LARGEST:
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
    assert all(2 <= len(group) <= LARGEST for group in found)


@given(SEEDS, st.integers(2, 10))
def test_cohesion_is_a_share_and_its_order_does_not_matter(seed: int, count: int) -> None:
    vectors = _vectors(seed, count)
    forward, backward = (cohesion(similarities(some, PLAIN)) for some in (vectors, vectors[::-1]))
    assert 0 <= forward <= 1
    assert abs(forward - backward) <= 2e-6
