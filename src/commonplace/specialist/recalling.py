"""The verbs that find: recall and temporal_query. They ask the engine, and write what it found as lines.

Recall finds memories, and tells as links what the graph knows of the topic. What was known or true at a time, memories
and facts tell side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.csp_response import NONE, Passage, Reference, Relation, Response
from commonplace.specialist.asked import FACT, MEMORY
from commonplace.specialist.facts import disputed, facts_of, passage_of, relation_of
from commonplace.specialist.fitting import fits, largest
from commonplace.specialist.relations import MOST_LINKS, ends, relations
from commonplace.text.budget import MOST_TOKENS
from commonplace.text.snippets import snippet

if TYPE_CHECKING:
    from commonplace.graph.views import FoundRelations, RelationView
    from commonplace.memories.memory import Memory
    from commonplace.search.result import SearchResult
    from commonplace.specialist.asked import Asked
    from commonplace.specialist.book import Book
    from commonplace.types import Hit, Link

MAX_RESULTS: Final = 5
MIN_RELEVANCE: Final = 0.3
SNIPPET_CHARACTERS: Final = 200
MOST_TOPICS: Final = 10
CONFIDENCE: Final = "CONFIDENCE"
ONLY_WEAK: Final = "all that was found is weak: perhaps nothing here is about it"
LONGEST_TOPIC: Final = 60
"""A longer tag or entity is no topic: ten of them would leave no room for what was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """What answers, with the part of it to be shown.

    Attributes:
        memory: None of a fact, and of a memory that went meanwhile.
        fact: None of a memory.
        links: of the memory.
        confidence: "sure", "likely" or "weak"; "none" of a fact, and where nothing is known of it.
    """

    reference: Reference
    relevance: float
    passage: Passage
    memory: Memory | None = None
    fact: RelationView | None = None
    links: tuple[Link, ...] = ()
    confidence: str = NONE


def recall(book: Book, asked: Asked) -> Response:
    """Find the memories that answer a topic."""
    topic, limit, floor = _asked(asked)
    also = asked.values("also").get("also")
    asked.finish()
    result = book.recall(topic, limit, as_of=None, min_score=floor, also=also)
    book.log_retrieval(result, "recall")
    facts = facts_of(book, topic, MOST_LINKS, floor)
    return _told(book, [_memory(book, hit, topic, None) for hit in result.hits], result, facts)


def temporal_query(book: Book, asked: Asked) -> Response:
    """Find what was known of a topic, or true in the world, at a time."""
    as_of, valid_at = asked.moment("as_of"), asked.moment("valid_at")
    if as_of is None and valid_at is None:
        raise UsageError(
            "temporal_query is not told of which time",
            remedy='add PARAMS {"as_of": "2026-01-29"} for what was known then, or "valid_at" for what was true then',
        )
    topic, limit, floor = _asked(asked)
    also = asked.values("also").get("also")
    asked.finish()
    result = book.recall(topic, limit, as_of=as_of, valid_at=valid_at, min_score=floor, also=also)
    book.log_retrieval(result, "recall")
    facts = facts_of(book, topic, limit, floor, as_of=as_of, valid_at=valid_at)
    memories = [_memory(book, hit, topic, result.wanted.as_of) for hit in result.hits]
    # A memory that stands before one it may have overtaken keeps its place, whatever its own relevance.
    places = list(accumulate((each.relevance for each in reversed(memories)), max))[::-1]
    placed = [*zip(places, memories, strict=True), *((fact.score, _fact(fact, topic)) for fact in facts)]
    placed.sort(key=lambda each: (-each[0], each[1].reference.kind != MEMORY))  # else as they were found
    return _told(book, [each for _, each in placed[:limit]], result, facts)


def topics(memories: Iterable[Memory]) -> tuple[str, ...]:
    """Return the tags and entities of memories, each once, in their order."""
    named = (name for memory in memories for name in (*memory.tags, *memory.entities))
    return tuple(islice(dict.fromkeys(name for name in named if len(name) <= LONGEST_TOPIC), MOST_TOPICS))


def memory_of(book: Book, id_: str, as_of: float | None = None) -> Memory | None:
    """Return a memory that a hit or a link names; None where it went meanwhile."""
    try:
        return book.get(id_, as_of=as_of, touch=False)
    except NotFoundError:
        return None


def rationale_of(notices: Iterable[str]) -> str:
    """Return why an answer is only a part of what there may be."""
    return "; ".join(dict.fromkeys(notices)) or "a part of the search could not be used"


def _asked(asked: Asked) -> tuple[str, int, float]:
    return asked.topic(), asked.most_results(MAX_RESULTS), asked.share("min_relevance", MIN_RELEVANCE)


def _memory(book: Book, hit: Hit, topic: str, as_of: float | None) -> Found:
    id_ = hit.owner_id
    passage = Passage(id_, snippet(hit.text, topic, limit=SNIPPET_CHARACTERS).text)
    links = tuple(book.links(id_))
    return Found(
        Reference(MEMORY, id_), hit.score, passage, memory_of(book, id_, as_of), None, links, hit.confidence or NONE
    )


def _fact(fact: RelationView, topic: str) -> Found:
    return Found(Reference(FACT, fact.uuid), fact.score, passage_of(fact, topic, SNIPPET_CHARACTERS), fact=fact)


def _told(book: Book, found: Sequence[Found], result: SearchResult, facts: FoundRelations) -> Response:
    """Return the response with as many of the best hits as there is room for."""
    response = _response(found, facts)
    if not fits(book, response):
        size = largest(book, lambda size: _part(found, facts, size), len(found) - 1)
        # Even the best hit alone may be too long, which takes names and ids of hundreds of characters: what is said
        # about it goes first.
        response = _part(found, facts, size) if size else replace(_part(found, facts, 1), scope=(), links=None)
    if result.degraded or facts.degraded:
        told = (response.rationale, *result.notices, *facts.notices)
        response = replace(response, status="PARTIAL", rationale=rationale_of(filter(None, told)))
    return response


def _part(found: Sequence[Found], facts: FoundRelations, size: int) -> Response:
    response = _response(found[:size], facts)
    left_out = f"{size} of {len(found)} hits have room in {MOST_TOKENS} tokens"
    return replace(response, rationale="; ".join(filter(None, (left_out, response.rationale))))


def _response(found: Sequence[Found], facts: FoundRelations) -> Response:
    links = _links(found, facts)
    own = {ends(relation_of(fact)) for fact in facts if fact.disputed}
    disputes = disputed(link for link in links if ends(link) in own)
    weak = [each.confidence == "weak" for each in found]
    # The contract's lines are enough for what answers; what may only be near must not look like it.
    confidence = ((CONFIDENCE, ",".join(each.confidence for each in found)),) if any(weak) else ()
    return Response(
        rationale=ONLY_WEAK if weak and all(weak) else "",
        scope=_scope(found),
        data=tuple(each.reference for each in found),
        relevance=tuple(each.relevance for each in found),
        links=links or None,
        snippets=tuple(each.passage for each in found),
        facts=(*confidence, *disputes),
    )


def _scope(found: Sequence[Found]) -> tuple[str, ...]:
    named = [topics([each.memory]) for each in found if each.memory is not None]
    named += [(each.fact.source_name, each.fact.target_name) for each in found if each.fact is not None]
    names = (name for some in named for name in some if len(name) <= LONGEST_TOPIC)
    return tuple(islice(dict.fromkeys(names), MOST_TOPICS))


def _links(found: Sequence[Found], facts: FoundRelations) -> tuple[Relation, ...]:
    """Return what the graph knows, then how the memories are linked, then which entities they name together."""
    chosen: dict[frozenset[str], Relation] = {}
    known = [relation_of(fact, fact.score, is_directed=False) for fact in facts]
    for relation in (*known, *_between(found), *_together(found)):
        chosen.setdefault(ends(relation), relation)
    return tuple(islice(chosen.values(), MOST_LINKS))


def _together(found: Sequence[Found]) -> Iterator[Relation]:
    for each in found:
        for relation in relations(each.memory) if each.memory is not None else ():
            yield replace(relation, strength=each.relevance)


def _between(found: Sequence[Found]) -> Iterator[Relation]:
    for each in found:
        for link in each.links:
            yield Relation(link.source, link.target, is_directed=True, strength=link.strength)
