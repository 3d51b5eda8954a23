"""What lies about an id and the shortest way between two: nearest first, each once, never beyond a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from commonplace.graph.traversal import Adjacent, Neighbourhood, Path, outward, shortest_path
from commonplace.types.graph import Edge


def graph(*edges: tuple[str, str] | tuple[str, str, float]) -> Adjacent:
    """Return what gives the steps of some edges, each called after its ends: `a-b`."""
    found: dict[str, list[Edge]] = {}
    for source, target, *weight in edges:
        for one in dict.fromkeys((source, target)):
            found.setdefault(one, []).append(step(source, target, f"{source}-{target}", *weight))
    return lambda ids: {id_: found[id_] for id_ in ids if id_ in found}


def step(one: str, other: str, name: str, weight: float = 1.0) -> Edge:
    return Edge(name, one, other, 0.0, weight, False)


def about(*start: str, adjacent: Adjacent, depth: int = 2, limit: int = 100, fan_out: int = 100) -> Neighbourhood:
    return outward(start, adjacent, depth=depth, limit=limit, fan_out=fan_out)


def way(
    start: str, goal: str, adjacent: Adjacent, max_depth: int = 10, max_visited: int = 1000, fan_out: int = 100
) -> Path:
    return shortest_path(start, goal, adjacent, max_depth=max_depth, max_visited=max_visited, fan_out=fan_out)


def ids(found: Neighbourhood) -> str:
    return " ".join(f"{id_}{distance}" for id_, distance in found.distances.items())


RING = graph(("a", "b", 0.5), ("b", "c", 1.0), ("c", "a", 0.9), ("c", "d", 0.2), ("d", "e", 1.0))


def test_the_nearest_come_first_and_of_these_those_with_the_heaviest_step() -> None:
    assert ids(about("a", adjacent=RING, depth=1)) == "a0 c1 b1"
    assert ids(about("a", adjacent=RING)) == "a0 c1 b1 d2"
    assert ids(about("e", adjacent=RING, depth=4)) == "e0 d1 c2 b3 a3"


def test_equally_heavy_steps_are_ordered_by_id() -> None:
    assert ids(about("x", adjacent=graph(("x", "c"), ("x", "a"), ("x", "b")))) == "x0 a1 b1 c1"


def test_several_starts_are_all_at_distance_0_and_each_counts_once() -> None:
    assert ids(about("e", "a", "e", adjacent=RING, depth=1)) == "e0 a0 d1 c1 b1"


def test_depth_0_returns_the_starts_and_asks_nothing() -> None:
    def adjacent(ids: Sequence[str]) -> Mapping[str, Iterable[Edge]]:
        raise AssertionError(ids)

    assert about("a", adjacent=adjacent, depth=0) == Neighbourhood({"a": 0})


def test_an_edge_comes_once_and_only_where_both_of_its_ends_were_reached() -> None:
    found = about("a", adjacent=RING, depth=1, limit=2)
    assert list(found.distances) == ["a", "c"]
    assert found.edges == ("c-a",)
    assert found.is_capped
    assert about("a", adjacent=RING).edges == ("a-b", "c-a", "b-c", "c-d")


def test_an_edge_of_an_id_with_itself_is_met_and_leads_nowhere() -> None:
    found = about("a", adjacent=graph(("a", "a"), ("a", "b")))
    assert ids(found) == "a0 b1"
    assert found.edges == ("a-a", "a-b")


def test_two_edges_between_the_same_two_are_both_met() -> None:
    both = [step("a", "b", "one"), step("b", "a", "two")]
    found = about("a", adjacent=lambda ids: dict.fromkeys(ids, both))
    assert found.edges == ("one", "two")


def test_an_unknown_id_and_an_empty_graph_lead_nowhere() -> None:
    assert about("nobody", adjacent=RING) == Neighbourhood({"nobody": 0})
    assert about(adjacent=RING) == Neighbourhood({})
    assert way("a", "nobody", RING) == Path((), ())
    assert way("nobody", "no one", graph()) == Path((), ())


def test_more_starts_than_the_limit_is_said() -> None:
    found = about("a", "b", "c", adjacent=RING, depth=0, limit=2)
    assert ids(found) == "a0 b0"
    assert found.is_capped


class Hub:
    """One id with a million steps, which are made when they are taken."""

    def __init__(self) -> None:
        self.taken = 0

    def steps(self) -> Iterator[Edge]:
        for number in range(1_000_000):
            self.taken += 1
            yield step("hub", f"leaf{number:06}", f"edge{number:06}")

    def __call__(self, ids: Sequence[str]) -> Mapping[str, Iterable[Edge]]:
        leaves = {id_: [step("hub", id_, f"edge{id_[4:]}")] for id_ in ids if id_.startswith("leaf")}
        return {**leaves, "hub": self.steps()} if "hub" in ids else leaves


def test_a_hub_costs_no_more_than_its_fan_out() -> None:
    hub = Hub()
    found = about("hub", adjacent=hub, depth=3, fan_out=20)
    assert len(found.distances) == 21
    assert hub.taken == 21
    assert found.is_capped


def test_a_hub_that_gives_just_its_fan_out_is_not_cut() -> None:
    found = about("x", adjacent=graph(("x", "a"), ("x", "b")), fan_out=2)
    assert not found.is_capped


def test_two_leaves_of_a_hub_meet_in_it_though_it_names_neither() -> None:
    hub = Hub()
    path = way("leaf900000", "leaf800000", hub, fan_out=5)
    assert path == Path(("leaf900000", "hub", "leaf800000"), ("edge900000", "edge800000"))
    assert hub.taken == 0


def test_the_shortest_way_has_the_fewest_steps_whatever_they_weigh() -> None:
    assert way("a", "e", RING) == Path(("a", "c", "d", "e"), ("c-a", "c-d", "d-e"))
    assert way("e", "a", RING).ids == ("e", "d", "c", "a")
    assert way("a", "b", RING) == Path(("a", "b"), ("a-b",))


def test_a_way_from_an_id_to_itself_has_no_step() -> None:
    assert way("a", "a", RING) == Path(("a",), ())
    assert way("a", "a", graph(("a", "a")), max_depth=0).ids


def test_of_equally_short_ways_one_is_taken_the_same_each_time() -> None:
    edges = [("s", "b"), ("s", "a"), ("b", "c"), ("a", "d"), ("c", "g"), ("d", "g")]
    assert len(way("s", "g", graph(*edges)).ids) == 4
    assert way("s", "g", graph(*edges)) == way("s", "g", graph(*edges))


def test_of_several_edges_between_two_the_first_given_is_taken() -> None:
    both = [step("a", "b", "new"), step("a", "b", "old")]
    assert way("a", "b", lambda ids: dict.fromkeys(ids, both)).edges == ("new",)


def test_a_way_longer_than_the_depth_is_not_found_and_that_is_said() -> None:
    line = graph(*((f"{number}", f"{number + 1}") for number in range(8)))
    assert way("0", "5", line, max_depth=5).ids
    assert way("0", "5", line, max_depth=4) == Path((), (), is_capped=True)


def test_no_way_at_all_is_no_limit() -> None:
    parted = graph(("a", "b"), ("c", "d"))
    assert way("a", "d", parted) == Path((), ())


def test_a_search_without_end_ends_at_what_it_may_visit() -> None:
    """Each id leads to two that nobody has seen, from both ends."""
    fresh = count()
    asked: list[str] = []

    def adjacent(ids: Sequence[str]) -> Mapping[str, Iterable[Edge]]:
        asked.extend(ids)
        return {id_: [step(id_, f"{id_}{next(fresh)}", f"{next(fresh)}") for _ in range(2)] for id_ in ids}

    assert way("a", "z", adjacent, max_depth=1000, max_visited=50) == Path((), (), is_capped=True)
    assert len(asked) <= 50


def test_a_way_that_is_found_where_a_limit_was_met_says_so() -> None:
    spokes = [("s", f"n{number}") for number in range(5)]
    path = way("s", "g", graph(*spokes, ("n0", "m"), ("m", "g"), ("g", "k"), ("g", "l"), ("g", "o")), fan_out=2)
    assert path == Path(("s", "n0", "m", "g"), ("s-n0", "n0-m", "m-g"), is_capped=True)
