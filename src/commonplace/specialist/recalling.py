"""The verbs that find: recall and temporal_query. They ask the engine, and write what it found as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.csp_response import Passage, Reference, Relation, Response
from commonplace.specialist.asked import MEMORY
from commonplace.specialist.fitting import fits, largest
from commonplace.specialist.relations import MOST_LINKS, ends, relations
from commonplace.text.budget import MOST_TOKENS
from commonplace.text.snippets import snippet

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory
    from commonplace.memories.times import Moment
    from commonplace.search.result import SearchResult
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book
    from commonplace.types import Hit, Link

MAX_RESULTS: Final = 5
MIN_RELEVANCE: Final = 0.3
SNIPPET_CHARACTERS: Final = 200
MOST_TOPICS: Final = 10
LONGEST_TOPIC: Final = 60
"""A longer tag or entity is no topic: ten of them would leave no room for what was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """A hit with the part of it to be shown, its memory, None where that went meanwhile, and the memory's links."""

    hit: Hit
    passage: Passage
    memory: Memory | None
    links: tuple[Link, ...]


def recall(book: Book, asked: Asked) -> Response:
    """Find the memories that answer a topic."""
    return _find(book, asked, None)


def temporal_query(book: Book, asked: Asked) -> Response:
    """Find what was known of a topic at a time."""
    as_of = asked.moment("as_of")
    if as_of is None:
        raise UsageError("temporal_query is not told of which time", remedy='add PARAMS {"as_of": "2026-01-29"}')
    return _find(book, asked, as_of)


def topics(memories: Iterable[Memory]) -> tuple[str, ...]:
    """Return the tags and entities of memories, each once, in their order."""
    named = (name for memory in memories for name in (*memory.tags, *memory.entities))
    return tuple(islice(dict.fromkeys(name for name in named if len(name) <= LONGEST_TOPIC), MOST_TOPICS))


def memory_of(book: Book, id_: str, as_of: float | None = None) -> Memory | None:
    """Return a memory that a hit or a link names; None where it went meanwhile."""
    try:
        return book.get(id_, as_of=as_of)
    except NotFoundError:
        return None


def rationale_of(result: SearchResult) -> str:
    """Return why an answer is only a part of what there may be."""
    return "; ".join(result.notices) or "a part of the search could not be used"


def _find(book: Book, asked: Asked, as_of: Moment | None) -> Response:
    topic = asked.topic()
    limit = asked.most_results(MAX_RESULTS)
    floor = asked.share("min_relevance", MIN_RELEVANCE)
    asked.finish()
    result = book.recall(topic, limit, as_of=as_of, min_score=floor)
    found = [_found(book, hit, topic, result.wanted.as_of) for hit in result.hits]
    response = _within_budget(book, found)
    if result.degraded:
        response = replace(response, status="PARTIAL", rationale=rationale_of(result))
    return response


def _found(book: Book, hit: Hit, topic: str, as_of: float | None) -> Found:
    id_ = hit.owner_id
    shown = snippet(hit.text, topic, limit=SNIPPET_CHARACTERS).text
    return Found(hit, Passage(id_, shown), memory_of(book, id_, as_of), tuple(book.links(id_)))


def _within_budget(book: Book, found: Sequence[Found]) -> Response:
    """Return the response with as many of the best hits as there is room for."""
    whole = _response(found)
    if fits(book, whole):
        return whole
    size = largest(book, lambda size: _told(found, size), len(found) - 1)
    if size:
        return _told(found, size)
    # Even the best hit alone is too long, which takes names and ids of hundreds of characters: what is said about it
    # goes first.
    return replace(_told(found, 1), scope=(), links=None)


def _told(found: Sequence[Found], size: int) -> Response:
    rationale = f"{size} of {len(found)} hits have room in {MOST_TOKENS} tokens"
    return replace(_response(found[:size]), rationale=rationale)


def _response(found: Sequence[Found]) -> Response:
    return Response(
        scope=topics(each.memory for each in found if each.memory is not None),
        data=tuple(Reference(MEMORY, each.hit.owner_id) for each in found),
        relevance=tuple(each.hit.score for each in found),
        links=_links(found) or None,
        snippets=tuple(each.passage for each in found),
    )


def _links(found: Sequence[Found]) -> tuple[Relation, ...]:
    """Return what the memories state, then how they are linked, then which entities they name together."""
    chosen: dict[frozenset[str], Relation] = {}
    for relation in (*_stated(found, is_directed=True), *_between(found), *_stated(found, is_directed=False)):
        chosen.setdefault(ends(relation), relation)
    return tuple(islice(chosen.values(), MOST_LINKS))


def _stated(found: Sequence[Found], *, is_directed: bool) -> Iterator[Relation]:
    for each in found:
        for relation in relations(each.memory) if each.memory is not None else ():
            if relation.is_directed == is_directed:
                yield replace(relation, is_directed=False, strength=each.hit.score)


def _between(found: Sequence[Found]) -> Iterator[Relation]:
    for each in found:
        for link in each.links:
            yield Relation(link.source, link.target, is_directed=True, strength=link.strength)
