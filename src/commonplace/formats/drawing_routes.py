"""How the edges of a drawing run between its boxes, and where there is room to write on them. It knows no markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import atan2, cos, degrees, floor, hypot, pi, sin
from typing import Final

from commonplace.formats.drawing_layout import Box, Point

_APART: Final = 44.0
"""How far from each other edges between the same two boxes run, in their middles."""
_BENDS: Final = (0.0, 1.0, -1.0, 2.0, -2.0, 3.5, -3.5)
_PIECES, _POINTS = 12, 48
_ARROW: Final = 9.0
_PLACES: Final = (0.0, 0.07, -0.07, 0.14, -0.14, 0.21, -0.21, 0.28, -0.28)
_CROWD, _AWAY = 7, 0.12
_SIDES: Final = (0.5, 0.4, 0.6)
_HALF: Final = 12.0
_CUBIC: Final = 4
_TIGHT: Final = 3.0
_CELL: Final = 80.0


@dataclass(frozen=True, slots=True)
class Route:
    """A curve from one box to another: a quadratic one, or for a loop a cubic one.

    Attributes:
        points: the start, one or two points that draw the curve to them, the end.
        middle: about where there is the most room beside it, 0 its start and 1 its end: away from a crowded end.
    """

    points: tuple[Point, ...]
    middle: float = 0.5

    def at(self, share: float) -> Point:
        """Return a point of the curve, 0 its start and 1 its end (de Casteljau)."""
        points = list(self.points)
        while len(points) > 1:
            points = [
                (one[0] + (other[0] - one[0]) * share, one[1] + (other[1] - one[1]) * share)
                for one, other in pairwise(points)
            ]
        return points[0]

    def arrow(self) -> tuple[Point, Point, Point]:
        """Return the corners of its head, the tip first."""
        tip, before = self.points[-1], self.points[-2]
        angle = atan2(tip[1] - before[1], tip[0] - before[0])
        back = tip[0] - _ARROW * cos(angle), tip[1] - _ARROW * sin(angle)
        side = _ARROW * 0.42 * sin(angle), _ARROW * 0.42 * cos(angle)
        return tip, (back[0] + side[0], back[1] - side[1]), (back[0] - side[0], back[1] + side[1])


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something is written: about a middle, turned by degrees, never upside down.

    Attributes:
        is_beside: it stands level beside its route; else the route runs through the middle of it.
    """

    x: float
    y: float
    angle: float
    is_beside: bool = False


def routes(ends: Sequence[tuple[str, str]], boxes: Mapping[str, Box]) -> list[Route]:
    """Return how each edge runs: straight, or bent where others run beside it or a box is in its way."""
    pairs = Counter(frozenset(pair) for pair in ends)
    seen: Counter[frozenset[str]] = Counter()
    crowd = Counter(end for pair in pairs for end in pair)
    found: list[Route] = []
    for source, target in ends:
        pair = frozenset((source, target))
        number = seen[pair]
        seen[pair] += 1
        if source == target:
            found.append(_loop(boxes[source], number))
        elif pairs[pair] > 1:
            bend = (number - (pairs[pair] - 1) / 2) * (1 if source < target else -1)
            found.append(_curve(boxes[source], boxes[target], bend))
        else:
            others = [box for id_, box in boxes.items() if id_ not in pair]
            route = _clear(boxes[source], boxes[target], others)
            crowded = (crowd[source] >= _CROWD) - (crowd[target] >= _CROWD)
            found.append(replace(route, middle=0.5 + crowded * _AWAY))
    return found


def _clear(source: Box, target: Box, others: Sequence[Box]) -> Route:
    """Return the least bent of the curves that pass behind the fewest boxes."""
    best, fewest = _curve(source, target, 0.0), len(others) + 1
    for bend in _BENDS:
        route = _curve(source, target, bend)
        line = [route.at(piece / _PIECES) for piece in range(_PIECES + 1)]
        left, right = min(point[0] for point in line), max(point[0] for point in line)
        top, bottom = min(point[1] for point in line), max(point[1] for point in line)
        near = [
            box
            for box in others
            if left - box.width < box.x < right + box.width and top - box.height < box.y < bottom + box.height
        ]
        crossed = sum(any(box.is_crossed(*piece) for piece in pairwise(line)) for box in near)
        if crossed < fewest:
            best, fewest = route, crossed
        if not crossed:
            break
    return best


def _curve(source: Box, target: Box, bend: float) -> Route:
    across, down = target.x - source.x, target.y - source.y
    length = hypot(across, down) or 1.0
    # The middle of a quadratic curve lies half as far out as the point that draws it.
    out = 2 * bend * min(_APART, length / 3)
    control = ((source.x + target.x) / 2 - out * down / length, (source.y + target.y) / 2 + out * across / length)
    return Route((source.border(control), control, target.border(control, gap=2.0)))


def _loop(box: Box, number: int) -> Route:
    """Return a loop at the upper right corner of a box, each further one larger."""
    size = 34.0 + 16.0 * number
    right, top = box.x + box.width / 2, box.y - box.height / 2
    return Route(((right - 16.0, top), (right - 16.0, top - size), (right + size, box.y - 2.0), (right + 2.0, box.y)))


def spots(routes_: Sequence[Route], sizes: Sequence[Point], boxes: Sequence[Box]) -> list[Spot | None]:
    """Return where each text can be written along its route, covering no box and no other text; None for nowhere.

    Of several places it is the one that the fewest other edges pass through. What finds none stands level beside its
    route, if there is room that no other edge passes through.

    Args:
        sizes: the width and height of each text; an empty one has width 0.
    """
    page = _Page()
    for box in boxes:
        page.cover(_Tilted(box.x, box.y, 0.0, box.width, box.height))
    for number, route in enumerate(routes_):
        page.pass_through(number, [route.at(piece / _POINTS) for piece in range(_POINTS + 1)])
    found: list[Spot | None] = [None] * len(routes_)
    for is_beside, candidates, most in ((False, _along, len(routes_)), (True, _beside, 0)):
        for number, (route, (wide, high)) in enumerate(zip(routes_, sizes, strict=True)):
            best = page.best(number, candidates(route, wide, high), most) if wide and not found[number] else None
            if best:
                page.cover(best)
                found[number] = Spot(best.x, best.y, degrees(best.angle), is_beside)
    return found


def _along(route: Route, wide: float, high: float) -> Iterator[_Tilted]:
    """Yield places for a text on its route, half above it and half below."""
    for place in _PLACES if len(route.points) < _CUBIC else ():
        share = route.middle + place * (1 if route.middle >= 0.5 else -1)
        before, after = route.at(share - 0.08), route.at(share + 0.08)
        angle = atan2(after[1] - before[1], after[0] - before[0])
        if abs(angle) > pi / 2:
            angle -= pi if angle > 0 else -pi
        yield _Tilted(*route.at(share), angle, wide, 2 * max(high / 2, _HALF))


def _beside(route: Route, wide: float, high: float) -> Iterator[_Tilted]:
    """Yield places for a text at the sides of its route, and above a loop."""
    if len(route.points) == _CUBIC:
        (x, _), (_, top) = route.at(0.5), route.at(0.35)
        for shift in (0.0, -0.4, 0.4):
            yield _Tilted(x + shift * wide, top - 2 - high / 2, 0.0, wide, high)
    for share in _SIDES:
        x, y = route.at(share)
        for side in (1, -1):
            yield _Tilted(x + side * (wide / 2 + 7), y, 0.0, wide, high)


class _Tilted:
    """A rectangle about a middle, turned."""

    def __init__(self, x: float, y: float, angle: float, width: float, height: float) -> None:
        self.x, self.y, self.angle = x, y, angle
        self.half = width / 2 + _TIGHT, height / 2 + 1.0
        self.radius = hypot(*self.half)
        self.axes = (cos(angle), sin(angle)), (-sin(angle), cos(angle))

    def touches(self, other: _Tilted) -> bool:
        """Tell whether two of them share a point: no side of either parts them."""
        across, down = other.x - self.x, other.y - self.y
        if hypot(across, down) > self.radius + other.radius:
            return False
        for axis in (*self.axes, *other.axes):
            apart = abs(across * axis[0] + down * axis[1])
            if apart > self._reach(axis) + other._reach(axis):
                return False
        return True

    def holds(self, point: Point) -> bool:
        """Tell whether a point lies in it."""
        across, down = point[0] - self.x, point[1] - self.y
        return all(
            abs(across * axis[0] + down * axis[1]) < half for axis, half in zip(self.axes, self.half, strict=True)
        )

    def cells(self) -> list[tuple[int, int]]:
        """Return the cells of the page in which it may lie."""
        left, top = _cell((self.x - self.radius, self.y - self.radius))
        right, bottom = _cell((self.x + self.radius, self.y + self.radius))
        return [(across, down) for across in range(left, right + 1) for down in range(top, bottom + 1)]

    def _reach(self, axis: Point) -> float:
        return sum(
            half * abs(own[0] * axis[0] + own[1] * axis[1]) for half, own in zip(self.half, self.axes, strict=True)
        )


class _Page:
    """What is drawn already, found by where it lies."""

    def __init__(self) -> None:
        self._covered: dict[tuple[int, int], list[_Tilted]] = {}
        self._passed: dict[tuple[int, int], list[tuple[int, Point]]] = {}

    def cover(self, tilted: _Tilted) -> None:
        """Put a rectangle on the page."""
        for cell in tilted.cells():
            self._covered.setdefault(cell, []).append(tilted)

    def pass_through(self, number: int, points: Iterable[Point]) -> None:
        """Put a line on the page, by its points."""
        for point in points:
            self._passed.setdefault(_cell(point), []).append((number, point))

    def best(self, number: int, candidates: Iterable[_Tilted], most: int) -> _Tilted | None:
        """Return the free place through which the fewest lines pass, at most so many; its own does not count."""
        best, fewest = None, most + 1
        for tilted in candidates:
            cells = tilted.cells()
            if any(tilted.touches(other) for cell in cells for other in self._covered.get(cell, ())):
                continue
            near = [each for cell in cells for each in self._passed.get(cell, ())]
            lines = len({other for other, point in near if other != number and tilted.holds(point)})
            if lines < fewest:
                best, fewest = tilted, lines
            if not lines:
                break
        return best


def _cell(point: Point) -> tuple[int, int]:
    return floor(point[0] / _CELL), floor(point[1] / _CELL)
