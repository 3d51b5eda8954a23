"""Communities of any graph: each id in one, each connected, the same in whatever order the graph is given."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.traversal import communities

IDS = st.sampled_from("abcdefghijkl")
EDGES = st.lists(st.tuples(IDS, IDS), max_size=30)


@given(st.sets(IDS), EDGES)
def test_each_id_is_in_one_community_the_larger_come_first(ids: set[str], edges: list[tuple[str, str]]) -> None:
    ids |= {end for edge in edges for end in edge}
    groups = communities(ids, edges)
    assert sorted(id_ for group in groups for id_ in group) == sorted(ids)
    assert [(-len(group), group[0]) for group in groups] == sorted((-len(group), group[0]) for group in groups)
    assert all(list(group) == sorted(group) for group in groups)


@given(EDGES)
def test_a_community_is_connected(edges: list[tuple[str, str]]) -> None:
    for group in communities("abcdefghijkl", edges):
        reached, size = {group[0]}, 0
        while len(reached) > size:
            size = len(reached)
            for one, other in edges:
                if {one, other} <= set(group) and {one, other} & reached:
                    reached |= {one, other}
        assert reached == set(group)


@given(EDGES, st.randoms(use_true_random=False))
def test_the_order_in_which_a_graph_is_given_does_not_matter(
    edges: list[tuple[str, str]], chance: random.Random
) -> None:
    mixed = [(other, one) if chance.random() < 0.5 else (one, other) for one, other in edges]
    chance.shuffle(mixed)
    assert communities("abcdefghijkl", edges) == communities("lkjihgfedcba", mixed)
