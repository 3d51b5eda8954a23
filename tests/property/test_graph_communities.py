"""Communities of any graph: each id in one, each connected, the same in whatever order the graph is given."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.communities import communities

IDS = st.sampled_from("abcdefghijkl")
EDGES = st.lists(st.tuples(IDS, IDS, st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5])), max_size=30)
LIMITS = st.fixed_dictionaries({"fan_out": st.integers(1, 6), "resolution": st.sampled_from([0.5, 1.0, 3.0])})


@given(st.sets(IDS), EDGES, LIMITS)
def test_each_id_is_in_one_community_the_larger_come_first(
    ids: set[str], edges: list[tuple[str, str, float]], limits: dict[str, int]
) -> None:
    groups = communities(ids, edges, **limits).groups
    assert sorted(id_ for group in groups for id_ in group) == sorted(ids)
    assert [(-len(group), group[0]) for group in groups] == sorted((-len(group), group[0]) for group in groups)
    assert all(list(group) == sorted(group) for group in groups)


@given(EDGES, LIMITS)
def test_a_community_is_connected(edges: list[tuple[str, str, float]], limits: dict[str, int]) -> None:
    for group in communities("abcdefghijkl", edges, **limits).groups:
        reached, size = {group[0]}, 0
        while len(reached) > size:
            size = len(reached)
            for one, other, weight in edges:
                if weight and {one, other} <= set(group) and {one, other} & reached:
                    reached |= {one, other}
        assert reached == set(group)


@given(EDGES, LIMITS, st.randoms(use_true_random=False))
def test_the_order_in_which_a_graph_is_given_does_not_matter(
    edges: list[tuple[str, str, float]], limits: dict[str, int], chance: random.Random
) -> None:
    mixed = [(other, one, weight) if chance.random() < 0.5 else (one, other, weight) for one, other, weight in edges]
    chance.shuffle(mixed)
    assert communities("abcdefghijkl", edges, **limits) == communities("lkjihgfedcba", mixed, **limits)
