"""The verbs that change memories: store, link, decay, promote and forget. What they do is in the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.formats.csp_response import Reference, Response
from commonplace.specialist.asked import EPISODE, MEMORY
from commonplace.specialist.relations import metadata_of

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book

TIER: Final = "short"
EPISODE_TIER: Final = "medium"
THRESHOLD: Final = 0.3
SCOPE: Final = "short"

_ENDS: Final = 2


def store(book: Book, asked: Asked) -> Response:
    """Remember a text in a tier."""
    content = asked.text("CONTENT")
    tier = asked.text_or_none("TIER")
    tags = asked.tags()
    more = asked.values("category", "source", "entities", "at", "metadata")
    asked.finish()
    return _kept(book.remember(content, TIER if tier is None else tier, tags, **more))


def link(book: Book, asked: Asked) -> Response:
    """Remember how two entities hang together, as an episode that states it."""
    given = asked.text("ENTITY1"), asked.text("ENTITY2")
    context = asked.text("CONTEXT")
    asked.finish()
    source, target = (" ".join(name.split()) for name in given)
    if source == target:
        raise UsageError(f"ENTITY1 and ENTITY2 are both {source!r:.60}", remedy="name two entities")
    memory = book.remember(
        f"{source} → {target}: {context}",
        EPISODE_TIER,
        metadata=metadata_of(source, target),
        entities=(source, target),
    )
    # Counted in what was stored: names that were replaced as secrets may have become one.
    entities = min(_ENDS, len(set(memory.entities)))
    return Response(
        rationale="; ".join(memory.notices),
        data=(Reference(EPISODE, memory.id),),
        facts=(("ENTITIES_EXTRACTED", str(entities)), ("RELATIONS_EXTRACTED", str(int(entities == _ENDS)))),
    )


def decay(book: Book, asked: Asked) -> Response:
    """Lower the scores of a tier, and archive what fell too low."""
    threshold = asked.share("threshold", THRESHOLD)
    scope = asked.values("scope").get("scope", SCOPE)
    asked.finish()
    report = book.decay(scope, threshold)
    return Response(
        facts=(("ENTRIES_DECAYED", str(report.lowered)), ("ENTRIES_DELETED", str(len(report.archived)))),
    )


def promote(book: Book, asked: Asked) -> Response:
    """Move a memory to a higher tier."""
    reference = asked.reference()
    tier = asked.text_or_none("TIER")
    asked.finish()
    return _kept(book.raise_tier(reference.id, tier))


def forget(book: Book, asked: Asked) -> Response:
    """Delete a memory with every copy of it."""
    reference = asked.reference()
    dry_run = asked.flag("dry_run")
    asked.finish()
    book.get(reference.id)  # the engine would also forget an artifact of that id
    receipt = book.forget(reference.id, dry_run=dry_run)
    gone = str(receipt.counts.get("memories", 0) + receipt.counts.get("in_process", 0))
    data = (Reference(MEMORY, reference.id),)
    if dry_run:
        return Response(data=data, facts=(("ENTRIES_TO_DELETE", gone),))
    left = [f"{file}: {what}" for file, what in receipt.found]
    return Response(
        "OK" if receipt.verified else "PARTIAL",
        rationale="" if receipt.verified else "; ".join((*receipt.waiting, *left, *receipt.notices)),
        data=data,
        facts=(("ENTRIES_DELETED", gone), ("RECEIPT", receipt.id)),
    )


def _kept(memory: Memory) -> Response:
    return Response(
        rationale="; ".join(memory.notices),
        data=(Reference(MEMORY, memory.id),),
        facts=(("TIER_WRITTEN", memory.tier),),
    )
