"""Breadth-first neighbourhoods and shortest paths, bounded by fan-out.

The caller supplies edges in batches, so that the graph need not be held in memory. A hub is expanded up to `fan_out`,
and each result says whether anything was cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

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
