"""Where the nodes of a drawing stand: about their centre, the farther the more facts lie between. It knows boxes.

A tree of nearest nodes is laid out radially, each branch in a wedge as wide as it has leaves (Eades, "Drawing free
trees", 1992); branches that have to do with each other are brought together by their barycentres. A node stands at the
first free place on its way outward, so that no box covers another and edges seldom pass behind one. The same drawing
gives the same places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin
from typing import Final

_STRETCH: Final = 1.45
"""Boxes are wider than they are high, and so is a screen."""
_GAP: Final = 34.0
"""Between a box and the next one outward, beside the room for what is written on the edge."""
_ABREAST, _FARTHEST = 26.0, 400.0
"""What is written on the edges of a crowded centre stands where the wedges are so wide, if that is not too far out."""
_MARGIN_X, _MARGIN_Y = 14.0, 12.0
_STRIDE: Final = 16.0
_TURNS: Final = (0.0, 0.2, -0.2, 0.4, -0.4)
"""How far from the middle of its wedge a node may stand, in wedges."""
_PATIENCE: Final = 24
"""How many strides outward are tried for an edge that passes behind nothing."""
_SWEEPS: Final = 12

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle about a middle."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box, spread: float = 1.0) -> bool:
        """Tell whether two boxes are nearer than they should be."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2 + _MARGIN_X * spread
            and abs(self.y - other.y) < (self.height + other.height) / 2 + _MARGIN_Y * spread
        )

    def is_crossed(self, start: Point, end: Point, margin: float = 4.0) -> bool:
        """Tell whether a line passes through it (Liang and Barsky, "A new concept and method for line clipping")."""
        first, last = 0.0, 1.0
        for place, step, low, high in (
            (start[0], end[0] - start[0], self.x - self.width / 2 - margin, self.x + self.width / 2 + margin),
            (start[1], end[1] - start[1], self.y - self.height / 2 - margin, self.y + self.height / 2 + margin),
        ):
            if not step:
                if not low < place < high:
                    return False
                continue
            enter, leave = sorted(((low - place) / step, (high - place) / step))
            first, last = max(first, enter), min(last, leave)
        return first < last

    def border(self, towards: Point, gap: float = 0.0) -> Point:
        """Return where a line from its middle to a point leaves it."""
        across, down = towards[0] - self.x, towards[1] - self.y
        if not across and not down:
            return self.x, self.y
        sides = ((abs(across), self.width / 2), (abs(down), self.height / 2))
        share = min(half / part for part, half in sides if part) + gap / hypot(across, down)
        return self.x + across * share, self.y + down * share


@dataclass(frozen=True, slots=True)
class Item:
    """What has to be placed: how far from the centre, and how large."""

    id: str
    distance: int
    width: float
    height: float


class _Tree:
    """Each node below a nearer one, with the wedge that is its own."""

    def __init__(self, items: Sequence[Item], near: Mapping[str, Mapping[str, float]]) -> None:
        self.near = near
        distances = {item.id: item.distance for item in items}
        self.children: dict[str, list[str]] = {"": []}
        self.parent: dict[str, str] = {}
        # The root "" stands for the middle of the page: there hang the nearest, and those that hang nowhere else.
        for item in sorted(items, key=lambda item: item.distance):
            nearer = [id_ for id_ in near[item.id] if distances[id_] < item.distance]
            parent = max(nearer, key=lambda id_: distances[id_], default="")
            self.parent[item.id] = parent
            self.children[parent].append(item.id)
            self.children[item.id] = []
        self.leaves: dict[str, int] = {}
        for id_ in [*reversed(self.parent), ""]:
            self.leaves[id_] = max(1, sum(self.leaves[child] for child in self.children[id_]))
        self.angles: dict[str, float] = {}
        self.wedges: dict[str, float] = {}

    def turn(self) -> None:
        """Give each node the middle of its wedge, in the order of its siblings."""
        self.wedges[""] = 2 * pi
        # The first branch points to the right, where a wide box has the most room.
        self.angles[""] = pi * (1 - self.leaves[next(iter(self.children[""]), "")] / self.leaves[""])
        for id_ in ["", *self.parent]:
            share = self.wedges[id_] / self.leaves[id_]
            at = self.angles[id_] - self.wedges[id_] / 2
            for child in self.children[id_]:
                self.wedges[child] = share * self.leaves[child]
                self.angles[child] = at + self.wedges[child] / 2
                at += self.wedges[child]

    def untangle(self) -> None:
        """Bring together what has to do with each other: keep the order of which other edges turn least."""
        self.turn()
        best, least = {id_: list(ids) for id_, ids in self.children.items()}, self._turning()
        for _ in range(_SWEEPS if least else 0):
            wanted = {id_: self._wanted(id_) for id_ in self.parent}
            for id_, children in self.children.items():
                middle = self.angles[id_]
                children.sort(key=lambda child: round((wanted[child] - middle + pi) % (2 * pi), 6))
            self.turn()
            turning = self._turning()
            if turning < least - 1e-6:
                best, least = {id_: list(ids) for id_, ids in self.children.items()}, turning
        self.children = best
        self.turn()

    def _wanted(self, id_: str) -> float:
        """Return the mean direction of a branch and of what it has to do with."""
        others = [other for member in self._branch(id_) for other in self.near[member] if self.parent[member] != other]
        angles = [self.angles[id_], *(self.angles[other] for other in others if self.parent[other] != id_)]
        return atan2(sum(map(sin, angles)), sum(map(cos, angles)))

    def _branch(self, id_: str) -> list[str]:
        branch = [id_]
        for member in branch:
            branch += self.children[member]
        return branch

    def _turning(self) -> float:
        return sum(
            abs((self.angles[one] - self.angles[other] + pi) % (2 * pi) - pi)
            for one, others in self.near.items()
            for other in others
            if one < other and self.parent[one] != other and self.parent[other] != one
        )


def place(items: Sequence[Item], links: Iterable[tuple[str, str, float]], spread: float = 1.0) -> dict[str, Box]:
    """Return where each item stands, in the order of the items; the middle of the drawing is at 0, 0.

    Args:
        links: which two items have to do with each other, and how long what is written between them is.
        spread: 1 is as close as can be read; more leaves more room for what is written.
    """
    near: dict[str, dict[str, float]] = {item.id: {} for item in items}
    for one, other, length in links:
        if one != other:
            near[one][other] = near[other][one] = max(length, near[one].get(other, 0.0))
    tree = _Tree(items, near)
    tree.untangle()
    sizes = {item.id: item for item in items}
    boxes: dict[str, Box] = {}
    lines: list[tuple[Point, Point]] = []
    is_alone = len(tree.children[""]) == 1
    for id_ in tree.parent:
        item, parent = sizes[id_], boxes.get(tree.parent[id_])
        if parent is None and is_alone:
            boxes[id_] = Box(0.0, 0.0, item.width, item.height)
            continue
        box = _free(item, parent, tree, boxes, lines, spread)
        boxes[id_] = box
        if parent:
            lines.append(((parent.x, parent.y), (box.x, box.y)))
    return {item.id: boxes[item.id] for item in items}


def _free(
    item: Item,
    parent: Box | None,
    tree: _Tree,
    boxes: Mapping[str, Box],
    lines: Sequence[tuple[Point, Point]],
    spread: float,
) -> Box:
    """Return the first free place outward from a parent; one whose edge passes behind no box, if that is not far."""
    start = hypot(parent.x / _STRETCH, parent.y) if parent else 0.0
    length = tree.near[item.id].get(tree.parent[item.id], 0.0)
    gap = (_GAP + length) * spread
    if length and not start:
        gap = max(gap, min(_ABREAST / tree.wedges[item.id], _FARTHEST) + length / 2)
    fallback: Box | None = None
    stride = 0
    while fallback is None or stride < _PATIENCE:
        for turn in _TURNS:
            angle = tree.angles[item.id] + turn * min(tree.wedges[item.id], pi / 6)
            reach = start + stride * _STRIDE
            box = Box(_STRETCH * reach * cos(angle), reach * sin(angle), item.width, item.height)
            if any(box.overlaps(other, spread) for other in boxes.values()):
                continue
            if parent is None:
                return box
            ends = ((parent.x, parent.y), (box.x, box.y))
            if hypot(*_between(parent.border(ends[1]), box.border(ends[0]))) < gap:
                continue
            fallback = fallback or box
            if not any(other is not parent and other.is_crossed(*ends) for other in boxes.values()) and not any(
                box.is_crossed(*line) for line in lines
            ):
                return box
        stride += 1
    return fallback


def _between(one: Point, other: Point) -> Point:
    return other[0] - one[0], other[1] - one[1]
