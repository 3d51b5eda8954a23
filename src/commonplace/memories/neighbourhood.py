"""Which memories hang together by links, outward from one of them. It knows links, not why they were made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commonplace.types import Link

MOST_DEPTH: Final = 4
MOST_NEIGHBOURS: Final = 500

_AT_ONCE: Final = 100


def outward(
    start: str,
    links_of: Callable[[Sequence[str]], list[Link]],
    live: Callable[[Sequence[str]], Collection[str]],
    *,
    depth: int,
    limit: int,
) -> tuple[tuple[str, ...], tuple[Link, ...]]:
    """Return the ids that are reached, nearest first, and the links among them.

    Of equally near ones those with the stronger link come first, ties by id. Each is reached once: a ring has an end.
    What is not live takes no place and leads nowhere.

    Args:
        links_of: returns the links that start or end at one of some ids.
        live: returns those of some ids that may be reached; `start` is one.
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
        near = sorted(strength, key=lambda end: (-strength[end], end))
        edge = _first(near, live, limit - len(reached))
        reached.update(dict.fromkeys(edge))
    among = [link for link in links.values() if link.source in reached and link.target in reached]
    among.sort(key=lambda link: (-link.strength, link.source, link.target, link.type))
    return tuple(reached), tuple(among)


def _first(ids: Sequence[str], live: Callable[[Sequence[str]], Collection[str]], count: int) -> list[str]:
    """Return the first live ones of some ids; of many, ask about no more than that takes."""
    found: list[str] = []
    done = 0
    while done < len(ids) and len(found) < count:
        some = ids[done : done + max(_AT_ONCE, count - len(found))]
        alive = live(some)
        found += [each for each in some if each in alive]
        done += len(some)
    return found[:count]
