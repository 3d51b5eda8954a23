"""Which ids hang together: the same groups for the same graph, none broken, and no limit passed in silence."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from math import inf, nan

import pytest

from commonplace.errors import UsageError
from commonplace.graph.communities import Communities, communities

Edges = list[tuple[str, str, float]]


def clique(members: str | list[str], weight: float = 1.0) -> Edges:
    return [(one, other, weight) for one, other in combinations(members, 2)]


def groups(edges: Edges, ids: str = "", **limits: float) -> list[str]:
    found = communities([*ids, *(end for edge in edges for end in edge[:2])], edges, **limits)  # type: ignore[arg-type]
    return ["".join(group) for group in found.groups]


TWO = [*clique("abcd"), *clique("efg"), ("a", "e", 1.0)]


def test_two_groups_with_one_edge_between_them_are_two_communities_the_larger_first() -> None:
    assert groups(TWO) == ["abcd", "efg"]


def test_equally_large_communities_are_ordered_by_their_first_id() -> None:
    assert groups([*clique("xyz"), *clique("abc"), *clique("mno")]) == ["abc", "mno", "xyz"]


def test_an_id_without_edges_is_alone() -> None:
    assert groups(TWO, ids="zk") == ["abcd", "efg", "k", "z"]


def test_an_empty_graph_has_no_communities() -> None:
    assert communities([], []) == Communities(())
    assert communities(["a"], []) == Communities((("a",),))


def test_edges_that_say_nothing_do_not_count() -> None:
    nothing = [("a", "a", 9.0), ("a", "unknown", 9.0), ("nobody", "no one", 9.0), ("a", "b", 0.0)]
    assert communities(["a", "b"], nothing) == Communities((("a",), ("b",)))


def test_weights_decide_where_the_edges_alone_would_not() -> None:
    square = [("a", "b", 5.0), ("b", "c", 1.0), ("c", "d", 5.0), ("d", "a", 1.0)]
    assert groups(square) == ["ab", "cd"]
    assert groups([(one, other, 6.0 - weight) for one, other, weight in square]) == ["ad", "bc"]


def test_several_edges_between_two_add_up_in_either_direction() -> None:
    square = [("a", "b", 1.0), ("b", "c", 1.0), ("c", "d", 1.0), ("d", "a", 1.0)]
    assert groups([*square, ("b", "a", 2.0), ("a", "b", 2.0), ("d", "c", 4.0)]) == ["ab", "cd"]


def test_a_higher_resolution_gives_smaller_communities() -> None:
    """Of a ring of thirty cliques modularity takes two and two at 1 (Fortunato and Barthélemy, 2007)."""
    cliques = [[f"{number:02}{member}" for member in range(5)] for number in range(30)]
    edges = [edge for members in cliques for edge in clique(members)]
    edges += [(cliques[at][0], cliques[(at + 1) % 30][1], 1.0) for at in range(30)]
    ids = [id_ for members in cliques for id_ in members]
    assert {len(group) for group in communities(ids, edges, resolution=4.0).groups} == {5}
    assert len(communities(ids, edges).groups) < 30


def test_the_karate_club_is_parted_about_as_well_as_is_known_to_be_possible() -> None:
    """The best modularity of Zachary's club (1977) is 0.4198 (Brandes et al., "On modularity clustering", 2008)."""
    friends = {
        1: "2 3 4 5 6 7 8 9 11 12 13 14 18 20 22 32",
        2: "3 4 8 14 18 20 22 31",
        3: "4 8 9 10 14 28 29 33",
        4: "8 13 14",
        5: "7 11",
        6: "7 11 17",
        7: "17",
        9: "31 33 34",
        10: "34",
        14: "34",
        15: "33 34",
        16: "33 34",
        19: "33 34",
        20: "34",
        21: "33 34",
        23: "33 34",
        24: "26 28 30 33 34",
        25: "26 28 32",
        26: "32",
        27: "30 34",
        28: "34",
        29: "32 34",
        30: "33 34",
        31: "33 34",
        32: "33 34",
        33: "34",
    }
    edges = [(str(one), other, 1.0) for one, others in friends.items() for other in others.split()]
    assert len(edges) == 78
    found = communities([str(number) for number in range(1, 35)], edges)
    assert not found.is_capped
    assert modularity(found, edges) > 0.41


def modularity(found: Communities, edges: Edges) -> float:
    home = {id_: number for number, group in enumerate(found.groups) for id_ in group}
    degrees = [0.0] * len(found.groups)
    within = 0.0
    for one, other, weight in edges:
        degrees[home[one]] += weight
        degrees[home[other]] += weight
        within += 2 * weight * (home[one] == home[other])
    total = sum(degrees)
    return within / total - sum((degree / total) ** 2 for degree in degrees)


def test_fan_out_counts_the_heaviest_edges_and_says_that_it_left_some_out() -> None:
    """The light edges of `a` and of `b` are strong at neither end."""
    edges = [("a", "m", 3.0), ("a", "n", 3.0), ("b", "x", 3.0), ("b", "y", 3.0), ("a", "b", 1.0)]
    found = communities("abmnxy", edges, fan_out=2)
    assert found == Communities((("a", "m", "n"), ("b", "x", "y")), is_capped=True)
    assert not communities("abmnxy", edges, fan_out=3).is_capped


def test_the_leaves_of_a_hub_stay_with_it_though_the_hub_has_more_edges_than_count() -> None:
    leaves = [f"leaf{number:05}" for number in range(3000)]
    found = communities(["hub", *leaves], [("hub", leaf, 1.0) for leaf in leaves], fan_out=10)
    assert [len(group) for group in found.groups] == [3001]


@pytest.mark.parametrize("weight", [-1.0, nan, inf, -inf, 2e6])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(UsageError, match=r"the edge from 'a' to 'b' weighs .*; give 0 to 1,000,000"):
        communities("ab", [("a", "b", weight)])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"fan_out": 0}, "fan_out is 0, it must be a whole number of at least 1"),
        ({"fan_out": True}, "fan_out is True"),
        ({"resolution": 0}, "resolution is 0, it must be a number between 0.01 and 100"),
        ({"resolution": nan}, "resolution is nan"),
    ],
)
def test_a_limit_that_is_none_is_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        communities("ab", [], **limits)


def test_a_large_graph_without_communities_ends_and_says_that_it_was_not_at_rest() -> None:
    """What has no structure would be shifted about for long; each id is looked at a few times on a level."""
    choice = random.Random(7)

    def edges() -> Iterator[tuple[str, str, float]]:
        for _ in range(100_000):
            yield f"{choice.randrange(20_000)}", f"{choice.randrange(20_000)}", 1.0

    found = communities(map(str, range(20_000)), edges())
    assert sum(map(len, found.groups)) == 20_000
    assert found.is_capped
