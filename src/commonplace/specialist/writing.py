"""The verbs that change memories: store, link, decay, promote and forget. What they do is in the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.formats.csp_response import Reference, Response
from commonplace.graph.naming import MAX_NAME_CHARACTERS
from commonplace.graph.stating import statement
from commonplace.specialist.asked import EPISODE, MEMORY
from commonplace.specialist.facts import disputed, relation_of

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book

TIER: Final = "short"
THRESHOLD: Final = 0.3
SCOPE: Final = "short"


def store(book: Book, asked: Asked) -> Response:
    """Remember a text in a tier."""
    content = asked.text("CONTENT")
    tier = asked.text_or_none("TIER")
    tags = asked.tags()
    more = asked.values("category", "source", "entities", "at", "metadata")
    asked.finish()
    if tier == "ultra" and asked.is_last:
        raise UsageError(
            "a memory of the tier ultra ends with its process, and this one ends with the request",
            remedy="give short, medium or long, or send requests on standard input",
        )
    return _kept(book.remember(content, TIER if tier is None else tier, tags, **more))


def link(book: Book, asked: Asked) -> Response:
    """Keep how two entities hang together: an episode that states it, and what its words say beside."""
    given = asked.text("ENTITY1"), asked.text("ENTITY2")
    context = asked.text("CONTEXT")
    asked.finish()
    stated = statement(*given, context, called=("ENTITY1", "ENTITY2", "CONTEXT"))
    name = f"{stated['source']} → {stated['target']}"[:MAX_NAME_CHARACTERS]
    added = book.graph.add_episode(stated, name=name, source="json", source_description="link")
    counts = (("ENTITIES_EXTRACTED", len(added.entities)), ("RELATIONS_EXTRACTED", len(added.relations)))
    return Response(
        "PARTIAL" if added.degraded else "OK",
        rationale="; ".join(added.notices),
        data=() if added.episode is None else (Reference(EPISODE, added.episode.uuid),),
        facts=(*((key, str(number)) for key, number in counts), *disputed(map(relation_of, added.disputed))),
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
    reference = asked.reference(EPISODE)
    dry_run = asked.flag("dry_run")
    asked.finish()
    if reference.kind == EPISODE:
        book.graph.episode(reference.id)
    else:
        book.get(reference.id, touch=False)  # the engine would also forget an artifact of that id
    receipt = book.forget(reference.id, dry_run=dry_run)
    # A memory is an episode too, and one entry all the same.
    counted = ("episodes",) if reference.kind == EPISODE else ("memories", "in_process")
    gone = str(sum(receipt.counts.get(kind, 0) for kind in counted))
    data = (reference,)
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
