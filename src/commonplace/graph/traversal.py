"""Breadth-first neighbourhoods, shortest paths and communities, bounded by fan-out.

The caller supplies edges in batches, so that the graph need not be held in memory. A hub is expanded up to `fan_out`,
and each result says whether anything was cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.types.graph import Edge

Adjacent = Callable[[Sequence[str]], Mapping[str, Iterable[Edge]]]
"""Returns the edges of each of some ids, the best first, in an order that does not change.

Ids without edges may be absent. An edge is given from both of its ends. No more than `fan_out` + 1 edges of an id are
taken: who gives more does so in vain, who gives fewer hides that there are more.
"""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What surrounds some ids.

    Attributes:
        distances: the starts and what surrounds them, nearest first, with the steps from the nearest start.
        edges: those met between them, each once; those between two at the farthest distance are not met.
        is_capped: there is more, which `limit` or `fan_out` left out.
    """

    distances: dict[str, int]
    edges: tuple[str, ...] = ()
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A shortest way between two ids.

    Attributes:
        ids: from the start to the goal, both included; empty where no way was found.
        edges: the edge of each step, one fewer than ids.
        is_capped: a limit was met. Where no way was found there may be one, else there may be a shorter one.
    """

    ids: tuple[str, ...]
    edges: tuple[str, ...]
    is_capped: bool = False


_Reached = tuple[int, str, str]
"""The distance of an id from where a search began, the id before it on the way, and the edge between them."""


def outward(start: Sequence[str], adjacent: Adjacent, *, depth: int, limit: int, fan_out: int) -> Neighbourhood:
    """Return what surrounds some ids, breadth first.

    Of equally near ids those with the surer edge come first, ties by id. Each is reached once: a ring has an end.
    Ids that nothing is known of are reached and lead nowhere.

    Args:
        depth: how many steps away, at most; 0 returns the starts.
        limit: how many ids, the starts among them.
        fan_out: how many edges of one id are looked at.
    """
    starts = list(dict.fromkeys(start))
    rim = starts[:limit]
    distances = dict.fromkeys(rim, 0)
    ends: dict[str, str] = {}
    is_capped = len(starts) > limit
    for distance in range(1, depth + 1):
        weights: dict[str, float] = {}
        for _, steps, is_cut in _steps(rim, adjacent, fan_out):
            is_capped = is_capped or is_cut
            for to, edge in steps:
                ends.setdefault(edge.id, to)
                if to not in distances:
                    weights[to] = max(weights.get(to, edge.confidence), edge.confidence)
        near = sorted(weights, key=lambda id_: (-weights[id_], id_))
        rim = near[: limit - len(distances)]
        is_capped = is_capped or len(rim) < len(near)
        distances.update(dict.fromkeys(rim, distance))
    return Neighbourhood(distances, tuple(edge for edge, to in ends.items() if to in distances), is_capped)


def shortest_path(start: str, goal: str, adjacent: Adjacent, *, max_depth: int, max_visited: int, fan_out: int) -> Path:
    """Return a way of the fewest steps between two ids, searched from both ends at once; the same for the same graph.

    Args:
        max_depth: how many steps it may have.
        max_visited: how many ids may be reached, from both ends together, before the search ends.
        fan_out: how many edges of one id are looked at; an id is still reached through a hub from its other side.
    """
    if start == goal:
        return Path((start,), ())
    sides: tuple[dict[str, _Reached], dict[str, _Reached]] = ({start: (0, start, "")}, {goal: (0, goal, "")})
    rims, depths, is_cut = [[start], [goal]], [0, 0], False
    while rims[0] and rims[1]:
        room = max_visited - len(sides[0]) - len(sides[1])
        if sum(depths) >= max_depth or room < 0:
            return Path((), (), True)
        at = int((len(rims[1]), depths[1]) < (len(rims[0]), depths[0]))
        reached, other, rim = sides[at], sides[1 - at], list[str]()
        depths[at] += 1
        for source, steps, is_hub in _steps(rims[at], adjacent, fan_out):
            is_cut = is_cut or is_hub
            for to, edge in steps:
                if to in reached:
                    continue
                # What the other side has reached ends the search, so it is always taken.
                if room <= 0 and to not in other:
                    is_cut = True
                    continue
                room -= to not in other
                reached[to] = depths[at], source, edge.id
                rim.append(to)
        rims[at] = rim
        if met := [id_ for id_ in rim if id_ in other]:
            middle = min(met, key=lambda id_: (other[id_][0], id_))
            ways: list[tuple[list[str], list[str]]] = []
            for side in sides:  # back to where each search began
                ids, edges = [middle], []
                while side[ids[-1]][0]:
                    _, before, edge_id = side[ids[-1]]
                    edges.append(edge_id)
                    ids.append(before)
                ways.append((ids, edges))
            (nearer, first), (further, last) = ways
            return Path((*nearer[::-1], *further[1:]), (*first[::-1], *last), is_cut)
    return Path((), (), is_cut)


def _steps(ids: Sequence[str], adjacent: Adjacent, fan_out: int) -> Iterator[tuple[str, list[tuple[str, Edge]], bool]]:
    """Yield each id with the first of its edges, each with its other end, and whether there are more."""
    found = adjacent(ids)
    for id_ in ids:
        edges = list(islice(found.get(id_, ()), fan_out + 1))
        steps = [(each.target if each.source == id_ else each.source, each) for each in edges[:fan_out]]
        yield id_, steps, len(edges) > fan_out


_MAX_LEVELS: Final = 12
_MAX_SWEEPS: Final = 10
"""So often each id is looked at on a level: a graph without communities would never come to rest."""

_Neighbours = list[dict[int, float]]


def communities(ids: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return ids in groups, each id in one: the largest first, ties by their first id; ids in order.

    Edges have no direction; several between the same two ids add up. One of an id with itself does not count.

    Modularity is climbed by moving one id at a time and then taking each community for one id (Blondel et al., "Fast
    unfolding of communities in large networks", 2008). A community that is not connected, as that method may give
    (Traag, Waltman and van Eck, "From Louvain to Leiden", 2019), is parted at the end. The same graph gives the same
    communities, in whatever order it is given: each choice between equals falls to the first in order.
    """
    names = sorted(set(ids))
    places = {name: place for place, name in enumerate(names)}
    rows: _Neighbours = [{} for _ in names]
    for one, other in ((places[one], places[other]) for one, other in edges if one != other):
        rows[one][other] = rows[other][one] = rows[one].get(other, 0.0) + 1.0
    neighbours = [dict(sorted(row.items())) for row in rows]
    # Each level moves single ids, then takes each community for one id of the next level.
    whole, level = list(range(len(names))), neighbours
    for _ in range(_MAX_LEVELS):
        labels = _move(level)
        order = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        if len(order) == len(labels):
            break
        merged_into = [order[label] for label in labels]
        whole = [merged_into[at] for at in whole]
        # What is inside a community is its weight with itself.
        merged: _Neighbours = [{} for _ in order]
        for at, row in enumerate(level):
            into = merged[merged_into[at]]
            for other, weight in row.items():
                into[merged_into[other]] = into.get(merged_into[other], 0.0) + weight
        level = merged
    groups = [tuple(names[at] for at in group) for group in _connected(neighbours, whole)]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _move(neighbours: _Neighbours) -> list[int]:
    """Move each id into the neighbouring community that gains most, until none gains."""
    degrees = [sum(each.values()) for each in neighbours]
    scale = 1.0 / (sum(degrees) or 1.0)
    labels, totals = list(range(len(neighbours))), degrees.copy()
    for _ in range(_MAX_SWEEPS):
        has_moved = False
        for at, near in enumerate(neighbours):
            own, pull = labels[at], degrees[at] * scale
            links = {own: 0.0}
            for other, weight in near.items():
                if other != at:
                    links[labels[other]] = links.get(labels[other], 0.0) + weight
            totals[own] -= degrees[at]
            gains = {label: weight - pull * totals[label] for label, weight in links.items()}
            best = max(gains, key=lambda label: (gains[label], label == own, -label))
            totals[best] += degrees[at]
            has_moved = has_moved or best != own
            labels[at] = best
        if not has_moved:
            break
    return labels


def _connected(neighbours: _Neighbours, labels: Sequence[int]) -> Iterable[list[int]]:
    """Yield the connected parts of each community, ids in order."""
    seen = [False] * len(labels)
    for start in range(len(labels)):
        if seen[start]:
            continue
        seen[start] = True
        part = [start]
        for at in part:
            for other in neighbours[at]:
                if not seen[other] and labels[other] == labels[start]:
                    seen[other] = True
                    part.append(other)
        yield sorted(part)
