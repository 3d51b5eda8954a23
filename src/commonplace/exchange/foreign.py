"""Make memories of what other systems remember. It knows no file and none of those systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.exchange.items import Item, LinkItem, MemoryItem, Problem, Remark, version_of
from commonplace.memories.intake import TRUST, json_object
from commonplace.types import Link, MemoryRecord, Origin, Owner, Tier

if TYPE_CHECKING:
    from commonplace.formats.foreign.records import Foreign, ForeignLink, ForeignMemory

ORIGIN: Final[Origin] = "document"
TIER: Final[Tier] = "medium"
"""What another system kept is worth more than a day's note, and not for ever."""


def items_of(foreign: Foreign, format_: str, *, now: float, max_bytes: int) -> Iterator[Item | Problem | Remark]:
    """Yield what was read as items, memories before links.

    A memory without a time has none here either, so that it is the same whenever it is imported; it is known from `now`
    on. A title that the content does not begin with becomes its first line.

    Args:
        format_: the source of memories that name none.
        max_bytes: the most bytes of UTF-8 that the content of a memory may have.
    """
    for problem in foreign.problems:
        yield Problem(problem.path, "", problem.reason)
    for notice in foreign.notices:
        yield Remark(notice.path, notice.reason)
    for memory in foreign.memories:
        try:
            yield _memory(memory, format_, now, max_bytes)
        except UsageError as error:
            yield Problem(format_, f"memory {memory.id!r:.80}", str(error))
    for link in foreign.links:
        yield LinkItem(format_, _link(link, now))


def _memory(memory: ForeignMemory, format_: str, now: float, max_bytes: int) -> MemoryItem:
    at = memory.updated_at if memory.created_at is None else memory.created_at
    known_at = now if at is None else at
    last_used = max(known_at, memory.last_used or known_at, memory.updated_at or known_at)
    owner = Owner(memory.id, "memory", tags=memory.tags, at=at)
    record = MemoryRecord(
        content=_content(memory),
        tier=memory.tier or TIER,
        status=memory.status,
        category=memory.category,
        entities=memory.entities,
        source=memory.source or format_,
        origin=ORIGIN,
        trust=TRUST[ORIGIN],
        metadata=json_object("metadata", memory.metadata),
        born_at=known_at,
        last_used=last_used,
        use_count=memory.use_count,
        strength=memory.strength,
    )
    expired_at = last_used if memory.status == "archived" else None
    return MemoryItem(format_, (version_of(owner, record, known_at, expired_at, max_bytes=max_bytes),))


def _content(memory: ForeignMemory) -> str:
    title, content = memory.title.strip(), memory.content
    first = content.lstrip("# \n").partition("\n")[0]
    return content if not title or first.strip().casefold() == title.casefold() else f"{title}\n\n{content}"


def _link(link: ForeignLink, now: float) -> Link:
    return Link(link.source, link.target, " ".join(link.type.split()) or "related", link.strength, now)
