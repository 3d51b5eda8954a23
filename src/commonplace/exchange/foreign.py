"""Convert memories and facts of other systems to items of an import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.errors import UsageError
from commonplace.exchange.items import FactItem, Item, LinkItem, MemoryItem, Problem, Remark, version_of
from commonplace.formats.foreign.reader import Foreign, ForeignFact, ForeignLink, ForeignMemory
from commonplace.graph.episodes import FactInput, itself
from commonplace.graph.kinds import Kinds
from commonplace.graph.model_extraction import entity_type, relation_type
from commonplace.graph.names import checked, normal
from commonplace.memory.validate import TRUST, json_object
from commonplace.redaction import redact
from commonplace.types import Link, MemoryRecord, Owner, Tier

TIER: Final[Tier] = "medium"
"""What another system kept is worth more than a day's note, and not for ever."""


def items_of(
    foreign: Foreign, format_: str, *, kinds: Kinds, now: float, max_bytes: int
) -> Iterator[Item | Problem | Remark]:
    """Yield what was read as items, memories before links and facts.

    A memory without a time has none here either, so that it is the same whenever it is imported; it is known from `now`
    on. A title that the content does not begin with becomes its first line.

    Args:
        format_: the source of memories that name none.
        kinds: the types of entities and facts that there are.
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
    for fact in foreign.facts:
        try:
            yield _fact(fact, kinds)
        except UsageError as error:
            yield Problem(fact.place, "", str(error))


def _memory(memory: ForeignMemory, format_: str, now: float, max_bytes: int) -> MemoryItem:
    at = memory.updated_at if memory.created_at is None else memory.created_at
    known_at = now if at is None else at
    last_known = max(known_at, memory.last_used or known_at, memory.updated_at or known_at)
    is_told = memory.last_used is not None or memory.status == "archived"
    # A file that tells of no use is one of years ago as a whole: without this, the first decay would archive all of it.
    last_used = last_known if is_told else max(last_known, now)
    owner = Owner(memory.id, "memory", tags=memory.tags, session=memory.session, position=memory.position, at=at)
    record = MemoryRecord(
        content=_content(memory),
        tier=memory.tier or TIER,
        status=memory.status,
        category=memory.category,
        entities=memory.entities,
        source=memory.source or format_,
        origin=memory.origin,
        trust=TRUST[memory.origin],
        metadata=json_object("metadata", memory.metadata),
        born_at=known_at,
        last_used=last_used,
        use_count=memory.use_count,
        strength=memory.strength,
    )
    expired_at = last_known if memory.status == "archived" else None
    version = version_of(owner, record, known_at, expired_at, max_bytes=max_bytes)
    return MemoryItem(format_, (version,), secrets=version.secrets)


def _content(memory: ForeignMemory) -> str:
    title, content = memory.title.strip(), memory.content
    first = content.lstrip("# \n").partition("\n")[0]
    return content if not title or first.strip().casefold() == title.casefold() else f"{title}\n\n{content}"


def _link(link: ForeignLink, now: float) -> Link:
    return Link(link.source, link.target, " ".join(link.type.split()) or "related", link.strength, now)


def _fact(fact: ForeignFact, kinds: Kinds) -> FactItem:
    """Return a fact of a type of ours; the sentence that says it keeps the other system's word for the relation."""
    ends = [redact(checked(name, each)) for name, each in (("source", fact.source), ("target", fact.target))]
    source, target = (each.text for each in ends)
    if normal(source) == normal(target):
        raise itself(source)
    words = redact(" ".join(fact.type.replace("_", " ").split()) or "is related to")
    given = FactInput(
        source,
        relation_type(fact.type, kinds),
        target,
        source_type=entity_type(fact.source_type, kinds) if fact.source_type else "",
        target_type=entity_type(fact.target_type, kinds) if fact.target_type else "",
        fact=f"{source} {words.text} {target}",
        valid_from=fact.valid_from,
        trust=TRUST["document"],
    )
    return FactItem(fact.place, given, secrets=tuple(kind for each in (*ends, words) for kind in each.kinds))
