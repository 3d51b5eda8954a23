"""Detect communities (Louvain).

Modularity is climbed by moving one id at a time and then taking each community for one id (the Louvain method:
Blondel et al., "Fast unfolding of communities in large networks", 2008), with a queue of those whose surroundings
changed (Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", 2019). What
that paper shows to go wrong, a community that is not connected, is mended at the end: its parts become communities.

The same graph gives the same communities, in whatever order it is given: sums are of whole numbers, and each choice
between equals falls to the first in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

_MAX_LEVELS: Final = 12
_VISITS, _FREE_VISITS = 4, 20_000
"""How many times each id is looked at on a level, on average, and what a small graph may take in all.

A level that is not at rest by then ends: a graph that has communities is at rest before, one that has none never ends.
"""

_Neighbours = list[dict[int, float]]


def communities(ids: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return ids in groups, each id in one: the largest first, ties by their first id; ids in order.

    Edges have no direction; several between the same two ids add up. One of an id with itself does not count.
    """
    names = sorted(set(ids))
    places = {name: place for place, name in enumerate(names)}
    rows: _Neighbours = [{} for _ in names]
    for one, other in ((places[one], places[other]) for one, other in edges if one != other):
        rows[one][other] = rows[other][one] = rows[one].get(other, 0.0) + 1.0
    neighbours = [dict(sorted(row.items())) for row in rows]
    groups = [tuple(names[at] for at in group) for group in _connected(neighbours, _climb(neighbours))]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _climb(neighbours: _Neighbours) -> list[int]:
    whole = list(range(len(neighbours)))
    for _ in range(_MAX_LEVELS):
        labels = _move(neighbours)
        order = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        if len(order) == len(labels):
            break
        level = [order[label] for label in labels]
        whole = [level[at] for at in whole]
        # Each community is one id of the next level; what is inside it is its weight with itself.
        merged: _Neighbours = [{} for _ in order]
        for at, row in enumerate(neighbours):
            into = merged[level[at]]
            for other, weight in row.items():
                into[level[other]] = into.get(level[other], 0.0) + weight
        neighbours = merged
    return whole


def _move(neighbours: _Neighbours) -> list[int]:
    """Move each id into the neighbouring community that gains most, until none gains or the visits are used up."""
    degrees = [sum(each.values()) for each in neighbours]
    scale = 1.0 / (sum(degrees) or 1.0)
    labels = list(range(len(neighbours)))
    totals = degrees.copy()
    waiting = deque(at for at, each in enumerate(neighbours) if each)
    is_waiting = [bool(each) for each in neighbours]
    visits = max(_FREE_VISITS, _VISITS * len(waiting))
    while waiting and visits:
        visits -= 1
        at = waiting.popleft()
        is_waiting[at] = False
        own, near = labels[at], neighbours[at]
        links = {own: 0.0}
        for other, weight in near.items():
            if other != at:
                links[labels[other]] = links.get(labels[other], 0.0) + weight
        totals[own] -= degrees[at]
        pull = degrees[at] * scale
        best, most = own, links[own] - pull * totals[own]
        for label, weight in links.items():
            gain = weight - pull * totals[label]
            if gain > most or (gain == most and label < best and best != own):
                best, most = label, gain
        totals[best] += degrees[at]
        if best != own:
            labels[at] = best
            for other in near:
                if not is_waiting[other] and labels[other] != best:
                    is_waiting[other] = True
                    waiting.append(other)
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
