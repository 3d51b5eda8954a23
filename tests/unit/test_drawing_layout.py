"""Where boxes stand and how edges run: nothing covers anything, and the same drawing gives the same places."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import hypot

import pytest

from commonplace.formats.drawing_layout import Box, Item, place
from commonplace.formats.drawing_routes import Route, routes, spots

WIDE, HIGH = 100.0, 28.0


def items(*distances: int) -> list[Item]:
    return [Item(str(number), distance, WIDE, HIGH) for number, distance in enumerate(distances)]


def spokes(count: int, length: float = 60.0) -> list[tuple[str, str, float]]:
    return [("0", str(number), length) for number in range(1, count + 1)]


def far(box: Box) -> float:
    return hypot(box.x, box.y)


def test_the_centre_stands_in_the_middle_and_a_single_neighbour_to_its_right() -> None:
    boxes = place(items(0, 1), spokes(1))
    assert (boxes["0"].x, boxes["0"].y) == (0.0, 0.0)
    assert boxes["1"].y == pytest.approx(0.0)
    assert boxes["1"].x - boxes["0"].x >= WIDE + 60


def test_two_neighbours_stand_on_either_side() -> None:
    boxes = place(items(0, 1, 1), spokes(2))
    assert boxes["1"].x == pytest.approx(-boxes["2"].x)


@pytest.mark.parametrize("count", [1, 5, 12, 40, 199])
def test_no_box_covers_another(count: int) -> None:
    boxes = place(items(0, *[1] * count), spokes(count))
    assert not any(one.overlaps(other, 0.99) for one, other in combinations(boxes.values(), 2))


def test_what_is_farther_in_the_graph_stands_farther_out_on_its_branch() -> None:
    boxes = place(items(0, 1, 2, 3), [("0", "1", 40.0), ("1", "2", 40.0), ("2", "3", 40.0)])
    distances = [far(boxes[str(number)]) for number in range(4)]
    assert distances == sorted(distances)


def test_a_branch_stands_near_the_branch_that_it_has_to_do_with() -> None:
    """Of six neighbours the first and the fourth, which would stand across from each other, are brought together."""
    apart = place(items(0, *[1] * 6), spokes(6))
    together = place(items(0, *[1] * 6), [*spokes(6), ("1", "4", 40.0)])

    def between(boxes: dict[str, Box]) -> float:
        return hypot(boxes["1"].x - boxes["4"].x, boxes["1"].y - boxes["4"].y)

    assert between(together) < between(apart) / 1.5


def test_several_centres_and_what_hangs_nowhere_are_placed_too() -> None:
    boxes = place(items(0, 0, 1, 1), [("0", "2", 10.0), ("1", "2", 10.0)])
    assert set(boxes) == {"0", "1", "2", "3"}
    assert not any(one.overlaps(other, 0.99) for one, other in combinations(boxes.values(), 2))


def test_nothing_has_no_places() -> None:
    assert place([], []) == {}


def test_a_ring_and_a_loop_are_no_trouble() -> None:
    links = [("0", "1", 5.0), ("1", "2", 5.0), ("2", "0", 5.0), ("1", "1", 5.0), ("1", "0", 9.0)]
    assert len(place(items(0, 1, 1), links)) == 3


def test_the_same_drawing_gives_the_same_places() -> None:
    links = [*spokes(30), *(("1", str(number), 20.0) for number in range(5, 20))]
    assert place(items(0, *[1] * 30), links) == place(items(0, *[1] * 30), links)


LEFT, RIGHT = Box(0.0, 0.0, WIDE, HIGH), Box(400.0, 0.0, WIDE, HIGH)


def test_a_single_edge_runs_straight_from_border_to_border() -> None:
    (route,) = routes([("a", "b")], {"a": LEFT, "b": RIGHT})
    assert route.points[0] == (50.0, 0.0)
    assert route.points[-1] == (348.0, 0.0)
    assert route.at(0.5) == (199.5, 0.0)


def test_an_edge_goes_round_a_box_that_is_in_its_way() -> None:
    middle = Box(200.0, 0.0, WIDE, HIGH)
    (route,) = routes([("a", "b")], {"a": LEFT, "b": RIGHT, "c": middle})
    line = [route.at(piece / 20) for piece in range(21)]
    assert not any(middle.is_crossed(*piece) for piece in pairwise(line))


@pytest.mark.parametrize("ends", [[("a", "b"), ("a", "b")], [("a", "b"), ("b", "a")], [("b", "a"), ("a", "b")]])
def test_edges_between_the_same_two_run_apart(ends: list[tuple[str, str]]) -> None:
    one, other = routes(ends, {"a": LEFT, "b": RIGHT})
    assert abs(one.at(0.5)[1] - other.at(0.5)[1]) > 30


def test_loops_at_the_same_box_differ_in_size() -> None:
    one, other = routes([("a", "a"), ("a", "a")], {"a": LEFT})
    assert one.at(0.5) != other.at(0.5)
    assert one.points[0] == other.points[0]


def test_boxes_at_the_same_place_still_have_a_route() -> None:
    """The layout never does that; a route must not divide by nothing."""
    (route,) = routes([("a", "b")], {"a": LEFT, "b": LEFT})
    assert len(route.points) == 3


def test_words_stand_on_their_edge_never_upside_down() -> None:
    ways = routes([("a", "b"), ("c", "d")], {"a": LEFT, "b": RIGHT, "c": RIGHT, "d": Box(0.0, 300.0, WIDE, HIGH)})
    one, other = spots(ways, [(80.0, 24.0), (80.0, 24.0)], [LEFT, RIGHT])
    assert one is not None
    assert other is not None
    assert (one.angle, one.is_beside) == (0.0, False)
    assert -90 <= other.angle <= 90


def test_words_that_find_no_room_on_a_short_edge_stand_beside_it_or_nowhere() -> None:
    near = Box(0.0, 70.0, WIDE, HIGH)
    ways = routes([("a", "b")], {"a": LEFT, "b": near})
    (spot,) = spots(ways, [(60.0, 24.0)], [LEFT, near])
    assert spot is not None
    assert (spot.angle, spot.is_beside) == (0.0, True)
    wall = Box(0.0, 35.0, 400.0, 20.0)
    assert spots(ways, [(60.0, 24.0)], [LEFT, near, wall]) == [None]


def test_an_edge_that_says_nothing_takes_no_place() -> None:
    ways = routes([("a", "b")], {"a": LEFT, "b": RIGHT})
    assert spots(ways, [(0.0, 12.0)], [LEFT, RIGHT]) == [None]


def test_words_at_a_crowded_end_move_to_the_other() -> None:
    boxes = place(items(0, *[1] * 10), spokes(10))
    ways = routes([("0", str(number)) for number in range(1, 11)], boxes)
    assert {way.middle for way in ways} == {0.62}
    ways = routes([(str(number), "0") for number in range(1, 11)], boxes)
    assert {way.middle for way in ways} == {0.38}


def test_an_arrow_points_along_the_end_of_its_edge() -> None:
    tip, one, other = Route(((0.0, 0.0), (50.0, 0.0), (100.0, 0.0))).arrow()
    assert tip == (100.0, 0.0)
    assert one[0] == other[0] == pytest.approx(91.0)
    assert one[1] == pytest.approx(-other[1])


def test_a_line_crosses_a_box_only_where_it_passes_through() -> None:
    box = Box(0.0, 0.0, 20.0, 20.0)
    assert box.is_crossed((-50.0, 0.0), (50.0, 0.0))
    assert box.is_crossed((0.0, -50.0), (0.0, 50.0))
    assert not box.is_crossed((-50.0, 0.0), (-30.0, 0.0))
    assert not box.is_crossed((-50.0, 40.0), (50.0, 40.0))
    assert not box.is_crossed((40.0, -50.0), (40.0, 50.0))
    assert not box.is_crossed((-50.0, 0.0), (0.0, 50.0))
