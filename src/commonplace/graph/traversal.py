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
"""Returns the edges of each id, best first, in a stable order.

Ids without edges may be absent. An edge is returned for both of its ends. At most `fan_out` + 1 edges of an id are
read; a function that returns fewer must have no more, or the result will not be marked as capped.
"""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The ids around some starts with their distances, nearest first; what `limit` or `fan_out` left out caps it.

    It has the edges between them, each once, except those between two ids at the farthest distance.
    """

    distances: dict[str, int]
    edges: tuple[str, ...] = ()
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A shortest path between two ids, both included, and the edge of each step; empty if none was found.

    If it is capped, a limit was reached: there may be a path though none was found, or a shorter one.
    """

    ids: tuple[str, ...]
    edges: tuple[str, ...]
    is_capped: bool = False


_Reached = tuple[int, str, str]
"""Distance of an id from the start of the search, the id before it on the path, and the edge between them."""


def outward(start: Sequence[str], adjacent: Adjacent, *, depth: int, limit: int, fan_out: int) -> Neighbourhood:
    """Return the ids around some starts, breadth first.

    Of equally near ids those with the more confident edge come first, ties by id. Each is visited once, so cycles end.
    Unknown ids are included and have no edges.

    Args:
        depth: maximum number of steps; 0 returns the starts.
        limit, fan_out: maximum number of ids, the starts included, and of edges followed from one id.
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
            for far_end, edge in steps:
                ends.setdefault(edge.id, far_end)
                if far_end not in distances:
                    weights[far_end] = max(weights.get(far_end, edge.confidence), edge.confidence)
        near = sorted(weights, key=lambda id_: (-weights[id_], id_))
        rim = near[: limit - len(distances)]
        is_capped = is_capped or len(rim) < len(near)
        distances.update(dict.fromkeys(rim, distance))
    return Neighbourhood(distances, tuple(edge for edge, far_end in ends.items() if far_end in distances), is_capped)


def shortest_path(start: str, goal: str, adjacent: Adjacent, *, max_depth: int, max_visited: int, fan_out: int) -> Path:
    """Return a shortest path between two ids, by a search from both ends at once; deterministic.

    Args:
        max_depth: maximum number of steps.
        max_visited: maximum number of ids visited, from both ends together.
        fan_out: maximum number of edges followed from one id; an edge that a hub cuts can be found from its other end.
    """
    if start == goal:
        return Path((start,), ())
    sides: tuple[dict[str, _Reached], dict[str, _Reached]] = ({start: (0, start, "")}, {goal: (0, goal, "")})
    rims, depths, is_cut = [[start], [goal]], [0, 0], False
    while rims[0] and rims[1]:
        room = max_visited - len(sides[0]) - len(sides[1])
        if sum(depths) >= max_depth or room < 0:
            return Path((), (), True)
        turn = int((len(rims[1]), depths[1]) < (len(rims[0]), depths[0]))
        reached, opposite, rim = sides[turn], sides[1 - turn], list[str]()
        depths[turn] += 1
        for source, steps, is_hub in _steps(rims[turn], adjacent, fan_out):
            is_cut = is_cut or is_hub
            for far_end, edge in steps:
                if far_end in reached:
                    continue
                # An id that the other side has reached ends the search, so it is exempt from the limit.
                if room <= 0 and far_end not in opposite:
                    is_cut = True
                    continue
                room -= far_end not in opposite
                reached[far_end] = depths[turn], source, edge.id
                rim.append(far_end)
        rims[turn] = rim
        if met := [id_ for id_ in rim if id_ in opposite]:
            middle = min(met, key=lambda id_: (opposite[id_][0], id_))
            halves: list[tuple[list[str], list[str]]] = []
            for side in sides:  # back to the start of each search
                ids, edges = [middle], []
                while side[ids[-1]][0]:
                    _, previous, edge_id = side[ids[-1]]
                    edges.append(edge_id)
                    ids.append(previous)
                halves.append((ids, edges))
            (nearer, first), (further, last) = halves
            return Path((*nearer[::-1], *further[1:]), (*first[::-1], *last), is_cut)
    return Path((), (), is_cut)


def _steps(ids: Sequence[str], adjacent: Adjacent, fan_out: int) -> Iterator[tuple[str, list[tuple[str, Edge]], bool]]:
    """Yield each id with its first `fan_out` edges, each with its other end, and whether there are more."""
    edges_of = adjacent(ids)
    for id_ in ids:
        edges = list(islice(edges_of.get(id_, ()), fan_out + 1))
        steps = [(edge.target if edge.source == id_ else edge.source, edge) for edge in edges[:fan_out]]
        yield id_, steps, len(edges) > fan_out


_MAX_LEVELS: Final = 12
_MAX_SWEEPS: Final = 10
"""Maximum number of passes over the ids of a level; a graph without communities would not converge."""

_Neighbours = list[dict[int, float]]


def communities(ids: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Partition ids into communities: the largest first, ties by their first id; ids in order.

    Edges have no direction; several between the same two ids add up. Self-loops are ignored.

    The Louvain method: move one id at a time while modularity grows, then merge each community into one id (Blondel et
    al., "Fast unfolding of communities in large networks", 2008). Communities that it leaves disconnected (Traag,
    Waltman and van Eck, "From Louvain to Leiden", 2019) are split at the end. The result does not depend on the order
    of the input: ties go to the first in sorted order.
    """
    names = sorted(set(ids))
    indexes = {name: number for number, name in enumerate(names)}
    rows: _Neighbours = [{} for _ in names]
    for source, target in ((indexes[source], indexes[target]) for source, target in edges if source != target):
        rows[source][target] = rows[target][source] = rows[source].get(target, 0.0) + 1.0
    neighbours = [dict(sorted(row.items())) for row in rows]
    # Each level moves single ids, then merges each community into one id of the next level.
    membership, level = list(range(len(names))), neighbours
    for _ in range(_MAX_LEVELS):
        labels = _move(level)
        number_of = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        if len(number_of) == len(labels):
            break
        community_of = [number_of[label] for label in labels]
        membership = [community_of[node] for node in membership]
        # The edges inside a community become its self-loop.
        merged: _Neighbours = [{} for _ in number_of]
        for node, row in enumerate(level):
            merged_row = merged[community_of[node]]
            for target, weight in row.items():
                merged_row[community_of[target]] = merged_row.get(community_of[target], 0.0) + weight
        level = merged
    groups = [tuple(names[node] for node in group) for group in _connected(neighbours, membership)]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _move(neighbours: _Neighbours) -> list[int]:
    """Move each id into the neighbouring community with the largest gain in modularity, until no move gains."""
    degrees = [sum(row.values()) for row in neighbours]
    scale = 1.0 / (sum(degrees) or 1.0)
    labels, totals = list(range(len(neighbours))), degrees.copy()
    for _ in range(_MAX_SWEEPS):
        has_moved = False
        for node, near in enumerate(neighbours):
            current, pull = labels[node], degrees[node] * scale
            links = {current: 0.0}
            for other, weight in near.items():
                if other != node:
                    links[labels[other]] = links.get(labels[other], 0.0) + weight
            totals[current] -= degrees[node]
            gains = {label: weight - pull * totals[label] for label, weight in links.items()}
            best = max(gains, key=lambda label: (gains[label], label == current, -label))
            totals[best] += degrees[node]
            has_moved = has_moved or best != current
            labels[node] = best
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
        for node in part:
            for other in neighbours[node]:
                if not seen[other] and labels[other] == labels[start]:
                    seen[other] = True
                    part.append(other)
        yield sorted(part)
