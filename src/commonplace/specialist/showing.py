"""The verbs that show what is there: get and stats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.formats.csp_response import Reference, Relation, Response
from commonplace.specialist.asked import MEMORY
from commonplace.specialist.fitting import fits, largest
from commonplace.specialist.recalling import topics
from commonplace.specialist.relations import MOST_LINKS

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book
    from commonplace.types import Link

MOST_CHARACTERS: Final = 6_000
"""Of a content in one response; a text without spaces has few tokens and may still be long."""

MOST_OFFSET: Final = 1 << 30

_WORD_END: Final = 40


def get(book: Book, asked: Asked) -> Response:
    """Show one memory, as much of its text as there is room for."""
    reference = asked.reference()
    as_of = asked.moment("as_of")
    offset = asked.whole("offset", 0, 0, MOST_OFFSET)
    asked.finish()
    memory = book.get(reference.id, as_of=as_of)
    if offset and offset >= len(memory.content):
        raise UsageError(
            f"offset is {offset}, the text has {len(memory.content):,} characters", remedy="give a smaller one"
        )
    links = book.links(memory.id)[:MOST_LINKS]
    whole = _response(memory, links, offset, len(memory.content) - offset)
    if len(memory.content) - offset <= MOST_CHARACTERS and fits(book, whole):
        return whole
    most = min(MOST_CHARACTERS, len(memory.content) - offset)
    # Nothing fits only beside tags and links of thousands of characters: these go then.
    size = largest(book, lambda size: _response(memory, links, offset, size), most)
    return _response(memory, links if size else (), offset, max(1, size), has_topics=size > 0)


def stats(book: Book, asked: Asked) -> Response:
    """Count what is stored."""
    asked.finish()
    counts = book.memory_counts()
    live = {"ULTRA": counts.ultra, "SHORT": counts.short, "MEDIUM": counts.medium, "LONG": counts.long}
    facts = {"ENTRIES": sum(live.values()), **live, "ARCHIVED": counts.archived, "RELATIONS": counts.links}
    return Response(facts=tuple((key, str(number)) for key, number in facts.items()))


def _response(
    memory: Memory, links: list[Link] | tuple[()], offset: int, size: int, *, has_topics: bool = True
) -> Response:
    end = _word_end(memory.content, offset, offset + size)
    facts = [
        ("TIER", memory.tier),
        ("STATE", memory.status),
        ("AT", memory.at.isoformat()),
        ("ORIGIN", memory.origin),
        ("TRUST", f"{memory.trust:.2f}"),
        ("RETENTION", f"{memory.retention:.2f}"),
    ]
    facts += [("NEXT_OFFSET", str(end))] if end < len(memory.content) else []
    return Response(
        scope=topics([memory]) if has_topics else (),
        data=(Reference(MEMORY, memory.id),),
        relevance=(1.0,),
        links=tuple(Relation(each.source, each.target, is_directed=True, strength=each.strength) for each in links)
        or None,
        facts=tuple(facts),
        content=memory.content[offset:end],
    )


def _word_end(text: str, start: int, end: int) -> int:
    """Return where to cut so that no word is cut, unless none ends near."""
    if end >= len(text):
        return len(text)
    near = max(start + 1, end - _WORD_END)
    return next((at for at in range(end, near, -1) if text[at].isspace()), end)
