"""Which ids are related: the same groups for the same graph, none broken."""

from __future__ import annotations

import random
from itertools import combinations

from commonplace.graph.traversal import communities

Edges = list[tuple[str, str]]


def clique(members: str) -> Edges:
    return [(one, other) for one, other in combinations(members, 2)]


def groups(edges: Edges, ids: str = "") -> list[str]:
    return ["".join(group) for group in communities([*ids, *(end for edge in edges for end in edge)], edges)]


TWO = [*clique("abcd"), *clique("efg"), ("a", "e")]


def test_two_groups_with_one_edge_between_them_are_two_communities_the_larger_first() -> None:
    assert groups(TWO) == ["abcd", "efg"]


def test_equally_large_communities_are_ordered_by_their_first_id() -> None:
    assert groups([*clique("xyz"), *clique("abc"), *clique("mno")]) == ["abc", "mno", "xyz"]


def test_an_id_without_edges_is_alone() -> None:
    assert groups(TWO, ids="zk") == ["abcd", "efg", "k", "z"]


def test_an_empty_graph_has_no_communities() -> None:
    assert communities([], []) == []
    assert communities(["a"], []) == [("a",)]


def test_an_edge_of_an_id_with_itself_does_not_count() -> None:
    assert communities(["a", "b"], [("a", "a")]) == [("a",), ("b",)]


def test_several_edges_between_two_add_up_in_either_direction() -> None:
    square = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    assert groups([*square, ("b", "a"), ("a", "b"), ("d", "c"), ("d", "c")]) == ["ab", "cd"]


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
    edges = [(str(one), other) for one, others in friends.items() for other in others.split()]
    assert len(edges) == 78
    found = communities([str(number) for number in range(1, 35)], edges)
    assert modularity(found, edges) > 0.41


def modularity(found: list[tuple[str, ...]], edges: Edges) -> float:
    home = {id_: number for number, group in enumerate(found) for id_ in group}
    degrees = [0.0] * len(found)
    within = 0.0
    for one, other in edges:
        degrees[home[one]] += 1
        degrees[home[other]] += 1
        within += 2 * (home[one] == home[other])
    total = sum(degrees)
    return within / total - sum((degree / total) ** 2 for degree in degrees)


def test_a_large_graph_without_communities_ends() -> None:
    """What has no structure would be shifted about for long; each id is looked at a few times on a level."""
    choice = random.Random(7)
    edges = [(f"{choice.randrange(5_000)}", f"{choice.randrange(5_000)}") for _ in range(25_000)]
    found = communities(map(str, range(5_000)), edges)
    assert sum(map(len, found)) == 5_000
