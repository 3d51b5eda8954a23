"""Read pages, artifacts and memories, and follow links."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.engine.runtime import Runtime
from commonplace.errors import NotFoundError
from commonplace.memory.view import Memory
from commonplace.redaction import redact
from commonplace.types import RULE, Filter, Link, Selection, StoredMemory

MAX_DEPTH: Final = 4
MAX_NEIGHBOURS: Final = 500

LIVE: Final = ("active", "promoted")


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """Live memories by tier, archived ones, and links."""

    ultra: int
    short: int
    medium: int
    long: int
    archived: int
    links: int


@dataclass(frozen=True, slots=True)
class MemoryFacets:
    """Numbers of memories by the values of their fields."""

    total: int
    counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Fading:
    """The retention of a memory at a time."""

    at: datetime
    retention: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Linked memories, nearest first, with their links."""

    memories: tuple[Memory, ...]
    links: tuple[Link, ...]


_REFERENCE = re.compile(r"@?(?P<path>.+?)(?::(?P<first>[1-9][0-9]{0,8})-[0-9]+)?", re.DOTALL)

MEMORY_PREFIX = "memory:"
"""Prefix of `memory:ID`, which names a memory that is on no page, or another owner without a file."""

ARTIFACT_PREFIX = "./"
"""Prefix of `./MEMORY.md`, which names an artifact whose path is also a page's name."""

LINES = 200
MAX_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a text, secrets replaced.

    Attributes:
        first_line, last_line: from 1, both included; an empty text has one line.
        total_lines: of the whole text.
    """

    path: str
    text: str
    first_line: int
    last_line: int
    total_lines: int


def neighbourhood(runtime: Runtime, id_: str, depth: int, limit: int) -> Neighbourhood:
    """Follow links from a memory, nearest first; equally near memories by strongest link, ties by id."""
    store, namespace = runtime.store, runtime.namespace

    def live(ids: Sequence[str]) -> dict[str, StoredMemory]:
        memories = store.memories(namespace, Selection(ids=tuple(ids), statuses=LIVE, order="id"))
        return {memory.owner.id: memory for memory in memories if memory.expired_at is None}

    reached = live([id_])
    if not reached:
        raise runtime.not_found(id_)
    links: dict[tuple[str, str, str], Link] = {}
    frontier = [id_]
    for _ in range(depth):
        strength: dict[str, float] = {}
        for link in store.links(namespace, frontier) if frontier else ():
            if link.origin == RULE:
                continue  # judged by a rule, not linked by a caller
            links[link.source, link.target, link.type] = link
            for end in (link.source, link.target):
                strength[end] = max(strength.get(end, 0.0), link.strength)
        candidates = sorted(strength.keys() - reached.keys(), key=lambda end: (-strength[end], end))
        frontier = []
        while candidates and len(reached) < limit:  # a hub may have any number of neighbours
            nearest, candidates = candidates[:MAX_NEIGHBOURS], candidates[MAX_NEIGHBOURS:]
            neighbours = live(nearest)
            new_ids = [end for end in nearest if end in neighbours][: limit - len(reached)]
            reached |= {end: neighbours[end] for end in new_ids}
            frontier += new_ids
    inner_links = [link for link in links.values() if link.source in reached and link.target in reached]
    inner_links.sort(key=lambda link: (-link.strength, link.source, link.target, link.type))
    return Neighbourhood(tuple(map(runtime.view, reached.values())), tuple(inner_links))


def read(runtime: Runtime, path: str, first: int, lines: int, *, touch: bool) -> Excerpt:
    """Return lines of a page, an artifact or a memory; see `Engine.read`."""
    text = _text(runtime, path)
    match = _REFERENCE.fullmatch(path) if text is None else None
    for candidate in (match["path"], f"{MEMORY_PREFIX}{match['path']}") if match else ():
        text = _text(runtime, candidate)
        if text is not None and match is not None:
            path, first = candidate, max(first, int(match["first"] or 1))
            break
    if text is None:
        raise NotFoundError(
            f"there is no page, artifact or memory {path!r:.200}", remedy="name a path that a search returned"
        )
    from commonplace.ingest.read import normalise

    # Redact the whole text: the middle of a key cannot be recognised alone. Placeholders keep the line breaks.
    all_lines = redact(normalise(text)).text.removesuffix("\n").split("\n")
    if first > len(all_lines):
        raise NotFoundError(
            f"{path!r:.200} ends with line {len(all_lines):,}, line {first:,} was asked for",
            remedy="begin at a line that it has",
        )
    if touch:
        is_memory = path.startswith(MEMORY_PREFIX)
        id_ = path.removeprefix(MEMORY_PREFIX) if is_memory else runtime.pages.memory_at(path, first)
        runtime.count_uses([id_] if id_ else [])
    excerpt = all_lines[first - 1 : first - 1 + lines]
    return Excerpt(path, "\n".join(excerpt), first, first - 1 + len(excerpt), len(all_lines))


def _text(runtime: Runtime, path: str) -> str | None:
    store, namespace = runtime.store, runtime.namespace
    if path.startswith(MEMORY_PREFIX):
        id_ = path.removeprefix(MEMORY_PREFIX)
        if (stored := runtime.find(id_)) is not None:
            return stored.record.content
        owners = store.owners(namespace, store.matching_owners(namespace, Filter(kinds=("knowledge", "artifact"))))
        owner_numbers = [number for number, owner in owners.items() if owner.id == id_]
    else:
        page = None if path.startswith(ARTIFACT_PREFIX) else runtime.pages.text(path)
        if page is not None:
            return page
        path = path.removeprefix(ARTIFACT_PREFIX)
        owner_numbers = [number for number, owner in store.artifacts(namespace) if owner.path == path]
    if not owner_numbers:
        return None
    lines: dict[int, str] = {}
    for passage in store.passages(namespace, store.passages_of(namespace, owner_numbers)).values():
        for line_number, line in enumerate(passage.chunk.text.split("\n"), passage.chunk.start_line):
            # A line that was too long for one passage continues in the next.
            text = lines.get(line_number, "")
            lines[line_number] = text if text.endswith(line) else text + line
    return "\n".join(lines.get(line_number, "") for line_number in range(1, max(lines, default=0) + 1))
