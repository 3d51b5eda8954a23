"""Breadth-first neighbourhoods and shortest paths, bounded by fan-out.

The caller supplies neighbours in batches, so that the graph need not be held in memory. A hub is expanded up to
`fan_out`, and each result says whether anything was cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple

from commonplace.dataclasses import dataclass

_AT_ONCE: Final = 400
"""How many ids are asked about in one call, which databases limit."""


class Step(NamedTuple):
    """An edge as seen from one of its ends.

    Attributes:
        to: the other end.
        edge: what the edge is called; the same from both of its ends.
        weight: of steps to equally near ids the heavier comes first.
    """

    to: str
    edge: str
    weight: float = 1.0


Adjacent = Callable[[Sequence[str]], Mapping[str, Iterable[Step]]]
"""Returns the steps from each of some ids, the best first, in an order that does not change.

Ids without steps may be absent. An edge is given from both of its ends. No more than `fan_out` + 1 steps of an id are
taken: who gives more does so in vain, who gives fewer hides that there are more.
"""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What lies about some ids.

    Attributes:
        distances: the starts and what lies about them, nearest first, with the steps from the nearest start.
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


def outward(start: Sequence[str], adjacent: Adjacent, *, depth: int, limit: int, fan_out: int) -> Neighbourhood:
    """Return what lies about some ids, breadth first.

    Of equally near ids those with the heavier step come first, ties by id. Each is reached once: a ring has an end.
    Ids that nothing is known of are reached and lead nowhere.

    Args:
        depth: how many steps away, at most; 0 returns the starts.
        limit: how many ids, the starts among them.
        fan_out: how many steps of one id are looked at.
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
            for step in steps:
                ends.setdefault(step.edge, step.to)
                if step.to not in distances:
                    weights[step.to] = max(weights.get(step.to, step.weight), step.weight)
        near = sorted(weights, key=lambda id_: (-weights[id_], id_))
        rim = near[: limit - len(distances)]
        is_capped = is_capped or len(rim) < len(near)
        distances.update(dict.fromkeys(rim, distance))
    return Neighbourhood(distances, tuple(edge for edge, to in ends.items() if to in distances), is_capped)


def shortest_path(start: str, goal: str, adjacent: Adjacent, *, max_depth: int, max_visited: int, fan_out: int) -> Path:
    """Return a way of the fewest steps between two ids, searched from both ends at once.

    Of equally short ways it is the one whose ids come first in order; of several edges between the same two ids the
    one that `adjacent` gives first.

    Args:
        max_depth: how many steps it may have.
        max_visited: how many ids may be reached, from both ends together, before the search ends.
        fan_out: how many steps of one id are looked at; an id is still reached through a hub from its other side.
    """
    if start == goal:
        return Path((start,), ())
    near, far = _Side(start), _Side(goal)
    is_cut = False
    while near.rim and far.rim:
        room = max_visited - len(near.distances) - len(far.distances)
        if near.depth + far.depth >= max_depth or room < 0:
            return Path((), (), True)
        side, other = (near, far) if (len(near.rim), near.depth) <= (len(far.rim), far.depth) else (far, near)
        is_cut = side.expand(adjacent, other, fan_out, room) or is_cut
        met = {id_: near.distances[id_] + far.distances[id_] for id_ in side.rim if id_ in other.distances}
        if met:
            shortest = min(met.values())
            return _join(near, far, {id_ for id_ in met if met[id_] == shortest}, is_capped=is_cut)
    return Path((), (), is_cut)


class _Side:
    """What a search has reached from one of its two ends, and by which steps."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.distances = {root: 0}
        self.before: dict[str, dict[str, str]] = {root: {}}
        self.rim = [root]
        self.depth = 0

    def expand(self, adjacent: Adjacent, other: _Side, fan_out: int, room: int) -> bool:
        """Go one step further everywhere; return whether anything was left out.

        Args:
            other: what it has reached is always taken, since that ends the search.
            room: how many ids may be added beside.
        """
        self.depth += 1
        found: dict[str, None] = {}
        is_cut = False
        for source, steps, is_hub in _steps(self.rim, adjacent, fan_out):
            is_cut = is_cut or is_hub
            for step in steps:
                if step.to not in self.distances:
                    if room <= 0 and step.to not in other.distances:
                        is_cut = True
                        continue
                    room -= step.to not in other.distances
                    self.distances[step.to] = self.depth
                    self.before[step.to] = {}
                    found[step.to] = None
                if self.distances[step.to] == self.depth:
                    self.before[step.to].setdefault(source, step.edge)
        self.rim = sorted(found)
        return is_cut

    def leading(self, ids: Iterable[str]) -> set[str]:
        """Return the ids that lie on a shortest way from the root to some ids, these included."""
        leading = set(ids)
        waiting = list(leading)
        while waiting:
            new = self.before[waiting.pop()].keys() - leading
            leading |= new
            waiting.extend(new)
        return leading


def _join(near: _Side, far: _Side, met: Set[str], *, is_capped: bool) -> Path:
    """Return the first in order of the ways through the ids at which two searches have met."""
    ahead: dict[str, dict[str, str]] = {}
    for id_ in near.leading(met):
        for before, edge in near.before[id_].items():
            ahead.setdefault(before, {})[id_] = edge
    ids = [near.root]
    edges: list[str] = []
    has_met = near.root in met
    while ids[-1] != far.root:
        ways = far.before[ids[-1]] if has_met else ahead[ids[-1]]
        ids.append(min(ways))
        edges.append(ways[ids[-1]])
        has_met = has_met or ids[-1] in met
    return Path(tuple(ids), tuple(edges), is_capped)


def _steps(ids: Sequence[str], adjacent: Adjacent, fan_out: int) -> Iterable[tuple[str, Sequence[Step], bool]]:
    """Yield each id with the first of its steps, and whether there are more."""
    for first in range(0, len(ids), _AT_ONCE):
        some = ids[first : first + _AT_ONCE]
        found = adjacent(some)
        for id_ in some:
            steps = list(islice(found.get(id_, ()), fan_out + 1))
            yield id_, steps[:fan_out], len(steps) > fan_out
