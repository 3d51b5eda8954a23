"""The verbs that show what is there: get and stats. They choose no hits and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.formats.csp_response import Reference, Relation, Response
from commonplace.specialist.asked import ENTITY, EPISODE, FACT, MEMORY
from commonplace.specialist.facts import disputed, relation_of
from commonplace.specialist.fitting import fits, largest
from commonplace.specialist.recalling import LONGEST_TOPIC, MOST_TOPICS, topics
from commonplace.specialist.relations import MOST_LINKS
from commonplace.times import iso

if TYPE_CHECKING:
    from datetime import datetime

    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book

MOST_CHARACTERS: Final = 6_000
"""Of a content in one response; a longer text is read in parts."""

MOST_OFFSET: Final = 1 << 30

_WORD_END: Final = 40


@dataclass(frozen=True, slots=True)
class _Shown:
    """What there is to show of one thing."""

    reference: Reference
    content: str
    scope: tuple[str, ...]
    links: tuple[Relation, ...]
    facts: tuple[tuple[str, str], ...]

    def response(self, offset: int, size: int, *, has_head: bool = True) -> Response:
        """Return a part of the text, with the names that belong to it or without."""
        end = _word_end(self.content, offset, offset + size)
        more = (("NEXT_OFFSET", str(end)),) if end < len(self.content) else ()
        return Response(
            scope=self.scope if has_head else (),
            data=(self.reference,),
            relevance=(1.0,),
            links=(self.links if has_head else ()) or None,
            facts=(*self.facts, *more),
            content=self.content[offset:end],
        )


def get(book: Book, asked: Asked) -> Response:
    """Show one memory, episode, entity or fact, as much of its text as there is room for."""
    reference = asked.reference(EPISODE, ENTITY, FACT)
    as_of = asked.moment("as_of")
    offset = asked.whole("offset", 0, 0, MOST_OFFSET)
    asked.finish()
    shown = _SHOW[reference.kind](book, reference.id, as_of)
    rest = len(shown.content) - offset
    if offset and rest <= 0:
        raise UsageError(
            f"offset is {offset}, the text has {len(shown.content):,} characters", remedy="give a smaller one"
        )
    whole = shown.response(offset, rest)
    if rest <= MOST_CHARACTERS and fits(book, whole):
        return whole
    # Nothing fits only beside tags and links of thousands of characters: these go then.
    size = largest(book, lambda size: shown.response(offset, size), min(MOST_CHARACTERS, rest))
    return shown.response(offset, max(1, size), has_head=size > 0)


def stats(book: Book, asked: Asked) -> Response:
    """Count what is stored."""
    asked.finish()
    counts, graph = book.memory_counts(), book.graph.counts()
    live = {"ULTRA": counts.ultra, "SHORT": counts.short, "MEDIUM": counts.medium, "LONG": counts.long}
    memories = {"ENTRIES": sum(live.values()), **live, "ARCHIVED": counts.archived, "MEMORY_LINKS": counts.links}
    known = {"EPISODES": graph.episodes, "ENTITIES": graph.entities, "RELATIONS": graph.relations}
    disputes = {"DISPUTED": graph.disputed}
    return Response(facts=tuple((key, str(number)) for key, number in (memories | known | disputes).items()))


def _memory(book: Book, id_: str, as_of: str | float | None) -> _Shown:
    memory = book.get(id_, as_of=as_of)
    book.log_use(memory.id)
    links = book.links(memory.id)[:MOST_LINKS]
    facts = (
        ("TIER", memory.tier),
        ("STATE", memory.status),
        ("AT", iso(memory.at)),
        ("ORIGIN", memory.origin),
        ("TRUST", f"{memory.trust:.2f}"),
        ("RETENTION", f"{memory.retention:.2f}"),
    )
    related = (Relation(each.source, each.target, is_directed=True, strength=each.strength) for each in links)
    return _Shown(Reference(MEMORY, memory.id), memory.content, topics([memory]), tuple(related), facts)


def _episode(book: Book, id_: str, _as_of: str | float | None) -> _Shown:
    episode = book.graph.episode(id_)
    facts = (("AT", iso(episode.reference_time)), ("ORIGIN", episode.origin), ("TRUST", f"{episode.trust:.2f}"))
    return _Shown(Reference(EPISODE, episode.uuid), episode.content, (), (), facts)


def _entity(book: Book, name: str, as_of: str | float | None) -> _Shown:
    entity = book.graph.entity(name, as_of=as_of)
    about = book.graph.neighbourhood(entity.uuid, 1, as_of=as_of).relations
    own = [each for each in about if entity.uuid in (each.source_node_uuid, each.target_node_uuid)][:MOST_LINKS]
    names = tuple(each for each in (entity.name, *entity.aliases) if len(each) <= LONGEST_TOPIC)[:MOST_TOPICS]
    facts = (
        ("ENTITY_TYPE", entity.entity_type),
        *_times(entity.valid_from, entity.valid_to),
        *disputed(relation_of(each) for each in own if each.disputed),
    )
    return _Shown(Reference(ENTITY, entity.name), entity.summary, names, tuple(map(relation_of, own)), facts)


def _fact(book: Book, id_: str, as_of: str | float | None) -> _Shown:
    fact = book.graph.relation(id_, as_of=as_of)
    state = "retracted" if fact.retracted else "disputed" if fact.disputed else "stated"
    facts = (
        ("RELATION_TYPE", fact.relation_type),
        ("STATE", state),
        *_times(fact.valid_from, fact.valid_to),
        ("TRUST", f"{fact.trust:.2f}"),
    )
    return _Shown(Reference(FACT, fact.uuid), fact.fact, (), (relation_of(fact),), facts)


_SHOW: Final[Mapping[str, Callable[[Book, str, str | float | None], _Shown]]] = {
    MEMORY: _memory,
    EPISODE: _episode,
    ENTITY: _entity,
    FACT: _fact,
}


def _times(start: datetime | None, end: datetime | None) -> Iterator[tuple[str, str]]:
    for key, at in (("VALID_FROM", start), ("VALID_TO", end)):
        if at is not None:
            yield key, iso(at)


def _word_end(text: str, start: int, end: int) -> int:
    """Return where to cut so that no word is cut, unless none ends near."""
    if end >= len(text):
        return len(text)
    near = max(start + 1, end - _WORD_END)
    return next((at for at in range(end, near, -1) if text[at].isspace()), end)
