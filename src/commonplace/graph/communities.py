"""Detect communities (Louvain).

Modularity is climbed by moving one id at a time and then taking each community for one id (Blondel et al., "Fast
unfolding of communities in large networks", 2008). A community that is not connected, as that method may give (Traag,
Waltman and van Eck, "From Louvain to Leiden", 2019), is parted at the end.

The same graph gives the same communities, in whatever order it is given: sums are of whole numbers, and each choice
between equals falls to the first in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

_MAX_LEVELS: Final = 12
_MAX_SWEEPS: Final = 10
"""So often each id is looked at on a level: a graph without communities would never come to rest."""

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
