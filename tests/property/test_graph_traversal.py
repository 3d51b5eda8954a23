"""Neighbourhoods and shortest ways agree with the plainest search there is, on any small graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.traversal import Adjacent, outward, shortest_path
from commonplace.types.graph import Edge

IDS = st.sampled_from("abcdefgh")
EDGES = st.lists(st.tuples(IDS, IDS), max_size=14)
PLENTY = 1000


def graph(edges: Sequence[tuple[str, str]]) -> Adjacent:
    def adjacent(ids: Sequence[str]) -> Mapping[str, Iterable[Edge]]:
        return {
            id_: [
                Edge(str(number), source, target, 0.0, 1.0, False)
                for number, (source, target) in enumerate(edges)
                if id_ in (source, target)
            ]
            for id_ in ids
        }

    return adjacent


def distances(edges: Sequence[tuple[str, str]], start: str) -> dict[str, int]:
    """Return how far each id is, by going over all edges until nothing changes."""
    found = {start: 0}
    while True:
        before = dict(found)
        for one, other in [*edges, *((other, one) for one, other in edges)]:
            if one in found and found[one] + 1 < found.get(other, PLENTY):
                found[other] = found[one] + 1
        if found == before:
            return found


@given(EDGES, IDS, st.integers(0, 5))
def test_what_is_reached_is_what_is_near_enough(edges: list[tuple[str, str]], start: str, depth: int) -> None:
    found = outward([start], graph(edges), depth=depth, limit=PLENTY, fan_out=PLENTY)
    near = {id_: distance for id_, distance in distances(edges, start).items() if distance <= depth}
    assert found.distances == near
    assert list(found.distances.values()) == sorted(near.values())
    between = {
        str(number)
        for number, (one, other) in enumerate(edges)
        if one in near and other in near and min(near[one], near[other]) < depth
    }
    assert set(found.edges) == between
    assert not found.is_capped


@given(EDGES, IDS, st.integers(0, 5), st.integers(1, 6), st.integers(1, 4))
def test_no_limit_is_passed_and_what_is_left_out_is_said(
    edges: list[tuple[str, str]], start: str, depth: int, limit: int, fan_out: int
) -> None:
    found = outward([start], graph(edges), depth=depth, limit=limit, fan_out=fan_out)
    whole = outward([start], graph(edges), depth=depth, limit=PLENTY, fan_out=PLENTY)
    assert len(found.distances) <= limit
    assert found.distances.keys() <= whole.distances.keys()
    if not found.is_capped:
        assert found == whole


@given(EDGES, IDS, IDS, st.integers(0, 7))
def test_a_way_is_as_short_as_can_be(edges: list[tuple[str, str]], start: str, goal: str, max_depth: int) -> None:
    path = shortest_path(start, goal, graph(edges), max_depth=max_depth, max_visited=PLENTY, fan_out=PLENTY)
    far = distances(edges, goal)
    if far.get(start, PLENTY) > max_depth:
        assert not path.ids
        assert path.is_capped or start not in far
        return
    assert (path.ids[0], path.ids[-1], len(path.edges)) == (start, goal, far[start])
    assert [set(edges[int(edge)]) for edge in path.edges] == [
        {one, other} for one, other in zip(path.ids, path.ids[1:], strict=False)
    ]


@given(EDGES, IDS, IDS, st.integers(1, 9), st.integers(1, 4))
def test_a_capped_search_finds_a_real_way_or_says_that_it_may_have_missed_one(
    edges: list[tuple[str, str]], start: str, goal: str, max_visited: int, fan_out: int
) -> None:
    path = shortest_path(start, goal, graph(edges), max_depth=PLENTY, max_visited=max_visited, fan_out=fan_out)
    far = distances(edges, goal)
    if path.ids:
        assert (path.ids[0], path.ids[-1]) == (start, goal)
        assert len(path.ids) == len(set(path.ids)) == len(path.edges) + 1
        for one, other, edge in zip(path.ids, path.ids[1:], path.edges, strict=False):
            assert {one, other} == set(edges[int(edge)])
    if not path.is_capped:
        assert bool(path.ids) == (start in far)
        assert not path.ids or len(path.edges) == far[start]
