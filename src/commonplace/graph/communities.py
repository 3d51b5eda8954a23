"""Detect communities by weighted edges (Louvain).

Modularity is climbed by moving one id at a time and then taking each community for one id (the Louvain method:
Blondel et al., "Fast unfolding of communities in large networks", 2008), with a queue of those whose surroundings
changed (Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", 2019). What
that paper shows to go wrong, a community that is not connected, is mended at the end: its parts become communities.

The same graph gives the same communities, in whatever order it is given: weights are counted in whole units, so that
no sum depends on its order, and each choice between equals falls to the first in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from commonplace.errors import UsageError

_UNITS: Final = 2**10
_HEAVIEST: Final = 10**6
"""A weight of 1 is counted as so many units, and may be so high: sums of millions of edges are exact in floats."""

_MAX_LEVELS: Final = 12
_VISITS, _FREE_VISITS = 4, 20_000
"""How many times each id is looked at on a level, on average, and what a small graph may take in all.

A level that is not at rest by then ends: a graph that has communities is at rest before, one that has none never ends.
"""

_Neighbours = list[dict[int, float]]


@dataclass(frozen=True, slots=True)
class Communities:
    """Ids in groups, each id in one.

    Attributes:
        groups: the largest first, ties by their first id; ids in order. An id without edges is alone in one.
        is_capped: edges were left out by `fan_out`, or the search ended before it was at rest.
    """

    groups: tuple[tuple[str, ...], ...]
    is_capped: bool = False


def communities(
    ids: Iterable[str], edges: Iterable[tuple[str, str, float]], *, fan_out: int = 200, resolution: float = 1.0
) -> Communities:
    """Return the communities of a graph without directions.

    Edges between the same two ids add up. An edge of an id with itself, one that leads to an id not given, and one of
    weight 0 say nothing and do not count.

    Args:
        edges: two ids and a weight from 0 to a million.
        fan_out: how many edges of an id count, the heaviest, ties by id; an edge counts if one of its ends has it
            among these.
        resolution: above 1 for more and smaller communities, below for fewer and larger ones.

    Raises:
        UsageError: a weight, or a limit, is out of its range.
    """
    if not isinstance(fan_out, int) or isinstance(fan_out, bool) or fan_out < 1:
        raise UsageError(f"fan_out is {fan_out!r}, it must be a whole number of at least 1")
    if not isinstance(resolution, int | float) or isinstance(resolution, bool) or not 0.01 <= resolution <= 100:
        raise UsageError(f"resolution is {resolution!r}, it must be a number between 0.01 and 100")
    names = sorted(set(ids))
    neighbours, is_cut = _read(names, edges, fan_out)
    found, is_at_rest = _climb(neighbours, resolution)
    groups = [tuple(names[at] for at in group) for group in _connected(neighbours, found)]
    groups.sort(key=lambda group: (-len(group), group[0]))
    return Communities(tuple(groups), is_cut or not is_at_rest)


def _read(names: Sequence[str], edges: Iterable[tuple[str, str, float]], fan_out: int) -> tuple[_Neighbours, bool]:
    """Return the neighbours of each id with the weight between them, in order, and whether `fan_out` cut any off."""
    pairs, weights = _count(names, edges)
    codes, which = np.unique(np.array(pairs, dtype=np.int64), return_inverse=True)
    units = np.tile(np.bincount(which, np.array(weights), len(codes)), 2)
    one, other = np.divmod(codes, max(1, len(names)))
    source, target = np.concatenate((one, other)), np.concatenate((other, one))

    # An edge's rank among those of its source, the heaviest first; it is kept if it is high at either end.
    order = np.lexsort((target, -units, source))
    firsts = np.searchsorted(source[order], np.arange(len(names)))
    is_strong = np.empty(len(order), dtype=bool)
    is_strong[order] = np.arange(len(order)) - firsts[source[order]] < fan_out
    is_kept = np.tile(is_strong[: len(codes)] | is_strong[len(codes) :], 2)
    source, target, units = source[is_kept], target[is_kept], units[is_kept]

    order = np.lexsort((target, source))
    ends = np.searchsorted(source[order], np.arange(len(names) + 1)).tolist()
    others, between = target[order].tolist(), units[order].tolist()
    neighbours = [dict(zip(others[start:end], between[start:end], strict=True)) for start, end in pairwise(ends)]
    return neighbours, not bool(is_kept.all())


def _count(names: Sequence[str], edges: Iterable[tuple[str, str, float]]) -> tuple[list[int], list[float]]:
    """Return which two ids each edge that counts is between, as one number, and its weight in units."""
    places = {name: place for place, name in enumerate(names)}
    pairs: list[int] = []
    weights: list[float] = []
    for source, target, weight in edges:
        if not 0 <= weight <= _HEAVIEST:
            raise UsageError(
                f"the edge from {source!r} to {target!r} weighs {weight!r}", remedy=f"give 0 to {_HEAVIEST:,}"
            )
        one, other = places.get(source), places.get(target)
        if one is not None and other is not None and one != other and weight:
            pairs.append(min(one, other) * len(names) + max(one, other))
            weights.append(max(1.0, round(weight * _UNITS)))
    return pairs, weights


def _climb(neighbours: _Neighbours, resolution: float) -> tuple[list[int], bool]:
    """Return the community of each id, and whether nothing was left to move."""
    whole = list(range(len(neighbours)))
    inner = [0.0] * len(neighbours)
    is_at_rest = True
    for _ in range(_MAX_LEVELS):
        labels, is_level_at_rest = _move(neighbours, inner, resolution)
        is_at_rest = is_at_rest and is_level_at_rest
        order = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        if len(order) == len(labels):
            return whole, is_at_rest
        level = [order[label] for label in labels]
        whole = [level[at] for at in whole]
        neighbours, inner = _merge(neighbours, inner, level, len(order))
    return whole, False


def _move(neighbours: _Neighbours, inner: Sequence[float], resolution: float) -> tuple[list[int], bool]:
    """Move each id into the neighbouring community that gains most, until none gains or the visits are used up."""
    degrees = [sum(each.values()) + within for each, within in zip(neighbours, inner, strict=True)]
    scale = resolution / (sum(degrees) or 1.0)
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
            label = labels[other]
            links[label] = links.get(label, 0.0) + weight
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
    return labels, not waiting


def _merge(
    neighbours: _Neighbours, inner: Sequence[float], labels: Sequence[int], count: int
) -> tuple[_Neighbours, list[float]]:
    """Return the graph of which each community is one id; what was inside it is its inner weight."""
    merged: _Neighbours = [{} for _ in range(count)]
    within = [0.0] * count
    for at, label in enumerate(labels):
        within[label] += inner[at]
        row = merged[label]
        for other, weight in neighbours[at].items():
            to = labels[other]
            if to == label:
                within[label] += weight
            else:
                row[to] = row.get(to, 0.0) + weight
    return merged, within


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
