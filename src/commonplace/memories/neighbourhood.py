"""Which memories hang together by links, outward from one of them. It knows links, not why they were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commonplace.types import Link

MOST_DEPTH: Final = 4
MOST_NEIGHBOURS: Final = 500


def outward(
    start: str, links_of: Callable[[Sequence[str]], list[Link]], *, depth: int, limit: int
) -> tuple[tuple[str, ...], tuple[Link, ...]]:
    """Return the ids that are reached, nearest first, and the links among them.

    Of equally near ones those with the stronger link come first, ties by id. Each is reached once: a ring has an end.

    Args:
        links_of: returns the links that start or end at one of some ids.
        depth: how many links away, at most.
        limit: how many ids, the first among them.
    """
    reached: dict[str, None] = {start: None}
    edge = [start]
    links: dict[tuple[str, str, str], Link] = {}
    for _ in range(depth):
        found = links_of(edge) if edge else []
        links.update({(link.source, link.target, link.type): link for link in found})
        strength: dict[str, float] = {}
        for link in found:
            for end in (link.source, link.target):
                if end not in reached:
                    strength[end] = max(strength.get(end, 0.0), link.strength)
        edge = sorted(strength, key=lambda end: (-strength[end], end))[: limit - len(reached)]
        reached.update(dict.fromkeys(edge))
    among = [link for link in links.values() if link.source in reached and link.target in reached]
    among.sort(key=lambda link: (-link.strength, link.source, link.target, link.type))
    return tuple(reached), tuple(among)
