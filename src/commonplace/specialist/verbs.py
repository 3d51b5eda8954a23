"""The verbs: recall, temporal_query, get, stats, store, link, decay, promote, forget and query_graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import accumulate, combinations, islice
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import Moment, iso
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.csp import NONE, CspLink, Reference, Response, Snippet, format_response, write_relation
from commonplace.graph.names import MAX_NAME_CHARACTERS
from commonplace.graph.text import statement, when
from commonplace.graph.views import EntityView, FoundRelations, RelationView
from commonplace.memory.validate import boolean, int_in
from commonplace.memory.view import Memory
from commonplace.specialist.request import ENTITY, EPISODE, FACT, MEMORY, Parts
from commonplace.text.budget import MAX_TOKENS, has_room, largest
from commonplace.text.snippet import snippet
from commonplace.text.tokens import analyse
from commonplace.types import Hit

DISPUTED: Final = "DISPUTED"
Facts = tuple[tuple[str, str], ...]
"""Lines of a response, by their keys."""


def facts_of(
    engine: Engine, topic: str, limit: int, floor: float, *, as_of: Moment | None = None, valid_at: Moment | None = None
) -> FoundRelations:
    """Return the facts that are relevant to a topic, best first."""
    edges = engine.graph.search_edges(topic, limit, as_of=as_of, valid_at=valid_at)
    relevant = tuple(fact for fact in edges if fact.score >= floor)
    return FoundRelations(topic, relevant, edges.degraded, edges.notices)


def relation_of(fact: RelationView, strength: float | None = None, *, is_directed: bool = True) -> CspLink:
    """Return a fact as a link between the names of its ends."""
    return CspLink(fact.source_name, fact.target_name, is_directed, strength)


def disputed(relations: Iterable[CspLink]) -> Facts:
    """Return the DISPUTED line that names disputed links, or no line."""
    names = dict.fromkeys(write_relation(CspLink(link.source, link.target, link.is_directed)) for link in relations)
    return ((DISPUTED, ",".join(names)),) if names else ()


def fits(engine: Engine, response: Response) -> bool:
    """Return whether a response fits in `MAX_TOKENS` tokens."""
    return has_room(format_response(response), engine.count_tokens)


MAX_LINKS: Final = 5
"""Maximum number of links in a response."""


def ends(relation: CspLink) -> frozenset[str]:
    """Return the two ends of a link, without their order."""
    return frozenset((relation.source, relation.target))


MAX_RESULTS: Final = 5
MIN_RELEVANCE: Final = 0.3
SNIPPET_CHARACTERS: Final = 200
MAX_TOPICS: Final = 10
CONFIDENCE: Final = "CONFIDENCE"
ONLY_WEAK: Final = "all that was found is weak: perhaps nothing here is about it"
MAX_TOPIC_LENGTH: Final = 60
"""Length above which tags and entities are left out: ten longer ones would leave no room for hits."""


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """A memory or a fact that answers a request.

    Attributes:
        passage: the part of its text to show.
        scope: names of what it is about.
        links, pairs: its links, and pairs of entities that it names together.
        confidence: "sure", "likely" or "weak"; "none" for a fact or if unknown.
    """

    reference: Reference
    relevance: float
    passage: Snippet
    scope: Sequence[str]
    links: Sequence[CspLink] = ()
    pairs: Sequence[CspLink] = ()
    confidence: str = NONE


def recall(engine: Engine, parts: Parts) -> Response:
    """Find the memories that answer a topic."""
    return _search(engine, parts, None, None)


def temporal_query(engine: Engine, parts: Parts) -> Response:
    """Find what was known of a topic, or true in the world, at a time."""
    as_of, valid_at = parts.param("as_of"), parts.param("valid_at")
    if as_of is None and valid_at is None:
        raise UsageError(
            "temporal_query needs a time",
            remedy='add PARAMS {"as_of": "2026-01-29"} for what was known then, or "valid_at" for what was true then',
        )
    return _search(engine, parts, as_of, valid_at)


def _search(engine: Engine, parts: Parts, as_of: Moment | None, valid_at: Moment | None) -> Response:
    """Return the memories that answer a topic, with their links; if a time is given, also the facts that answer it."""
    topic, limit, floor = parts.topic(), parts.most_results(MAX_RESULTS), parts.share("min_relevance", MIN_RELEVANCE)
    also = parts.param("also")
    parts.finish()
    is_now = as_of is None and valid_at is None
    result = engine.recall(topic, limit, as_of=as_of, valid_at=valid_at, min_score=floor, also=also)
    engine.log_retrieval(result, "recall")
    facts = facts_of(engine, topic, MAX_LINKS if is_now else limit, floor, as_of=as_of, valid_at=valid_at)
    answers = [_memory(engine, hit, topic, None if is_now else result.wanted.as_of) for hit in result.hits]
    if not is_now:
        # A memory stays before those that it was ranked before, which it may supersede, whatever its relevance.
        ranks = list(accumulate((hit.relevance for hit in reversed(answers)), max))[::-1]
        ranked = list(zip(ranks, answers, strict=True))
        for fact in facts:
            state = f" ({'disputed, ' if fact.disputed else ''}{when(fact)})"
            passage = Snippet(fact.uuid, snippet(fact.fact, topic, limit=SNIPPET_CHARACTERS - len(state)).text + state)
            scope = (fact.source_name, fact.target_name)
            ranked.append((fact.score, RankedAnswer(Reference(FACT, fact.uuid), fact.score, passage, scope)))
        ranked.sort(key=lambda pair: (-pair[0], pair[1].reference.kind != MEMORY))  # ties keep the order of the search
        answers = [answer for _, answer in ranked[:limit]]

    def part(size: int) -> Response:
        response = _response(answers[:size], facts)
        left_out = f"{size} of {len(answers)} hits shown (limit {MAX_TOKENS} tokens)"
        return replace(response, rationale="; ".join(filter(None, (left_out, response.rationale))))

    response = _response(answers, facts)
    if not fits(engine, response):
        size = largest(len(answers) - 1, lambda size: fits(engine, part(size)))
        # Even the best hit alone may be too long if its names have hundreds of characters: drop its scope and links.
        response = part(size) if size else replace(part(1), scope=(), links=None)
    if result.degraded or facts.degraded:
        told = (response.rationale, *result.notices, *facts.notices)
        response = replace(response, status="PARTIAL", rationale=rationale_of(filter(None, told)))
    return response


def topics(memory: Memory) -> tuple[str, ...]:
    """Return the tags and entities of a memory, each once, in their order."""
    names = (name for name in (*memory.tags, *memory.entities) if len(name) <= MAX_TOPIC_LENGTH)
    return tuple(islice(dict.fromkeys(names), MAX_TOPICS))


def rationale_of(notices: Iterable[str]) -> str:
    """Join the reasons why an answer may be incomplete."""
    return "; ".join(dict.fromkeys(notices)) or "a part of the search could not be used"


def _memory(engine: Engine, hit: Hit, topic: str, as_of: float | None) -> RankedAnswer:
    id_ = hit.owner_id
    passage = Snippet(id_, snippet(hit.text, topic, limit=SNIPPET_CHARACTERS).text)
    links = [CspLink(link.source, link.target, True, link.strength) for link in engine.links(id_)]
    scope: tuple[str, ...] = ()
    pairs: list[CspLink] = []
    with suppress(NotFoundError):  # another process may have deleted it meanwhile
        memory = engine.get(id_, as_of=as_of, touch=False)
        scope = topics(memory)
        together = islice(combinations(memory.entities, 2), MAX_LINKS)
        pairs = [CspLink(*pair, strength=hit.score) for pair in together]
    return RankedAnswer(Reference(MEMORY, id_), hit.score, passage, scope, links, pairs, hit.confidence or NONE)


def _response(answers: Sequence[RankedAnswer], facts: FoundRelations) -> Response:
    # Facts of the graph come first, then links of the memories, then pairs of entities that a memory names.
    chosen: dict[frozenset[str], CspLink] = {}
    for relation in (
        *(relation_of(fact, fact.score, is_directed=False) for fact in facts),
        *(link for answer in answers for link in answer.links),
        *(pair for answer in answers for pair in answer.pairs),
    ):
        chosen.setdefault(ends(relation), relation)
    links = tuple(islice(chosen.values(), MAX_LINKS))
    disputed_ends = {ends(relation_of(fact)) for fact in facts if fact.disputed}
    disputes = disputed(link for link in links if ends(link) in disputed_ends)
    memories_first = sorted(answers, key=lambda answer: answer.reference.kind != MEMORY)
    names = (name for answer in memories_first for name in answer.scope if len(name) <= MAX_TOPIC_LENGTH)
    is_weak = [answer.confidence == "weak" for answer in answers]
    # A hit that may not answer must not look like one that does, so weak hits add a line to the contract's.
    confidence = ((CONFIDENCE, ",".join(answer.confidence for answer in answers)),) if any(is_weak) else ()
    return Response(
        rationale=ONLY_WEAK if is_weak and all(is_weak) else "",
        scope=tuple(islice(dict.fromkeys(names), MAX_TOPICS)),
        data=tuple(answer.reference for answer in answers),
        relevance=tuple(answer.relevance for answer in answers),
        links=links or None,
        snippets=tuple(answer.passage for answer in answers),
        facts=(*confidence, *disputes),
    )


MAX_CHARACTERS: Final = 6_000
"""Maximum characters of content in a response; a longer text is read in parts."""

MAX_OFFSET: Final = 1 << 30

_WORD_END: Final = 40


def _part(whole: Response, offset: int, size: int, *, has_head: bool = True) -> Response:
    """Return the response with part of its text, with or without its scope and links."""
    # Cut between words, unless no word ends nearby.
    text = whole.content
    end = min(offset + size, len(text))
    if end < len(text):
        earliest = max(offset + 1, end - _WORD_END)
        end = next((index for index in range(end, earliest, -1) if text[index].isspace()), end)
    next_offset = (("NEXT_OFFSET", str(end)),) if end < len(text) else ()
    scope, links = (whole.scope, whole.links) if has_head else ((), None)
    return replace(whole, scope=scope, links=links, facts=(*whole.facts, *next_offset), content=text[offset:end])


def get(engine: Engine, parts: Parts) -> Response:
    """Show one memory, episode, entity or fact, as much of its text as there is room for."""
    reference = parts.reference(EPISODE, ENTITY, FACT)
    as_of = parts.param("as_of")
    offset = int_in("offset", parts.param("offset", 0), 0, MAX_OFFSET)
    parts.finish()
    response = _shown(engine, reference, as_of)
    remaining = len(response.content) - offset
    if offset and remaining <= 0:
        raise UsageError(
            f"offset is {offset}, the text has {len(response.content):,} characters", remedy="give a smaller one"
        )
    whole = _part(response, offset, remaining)
    if remaining <= MAX_CHARACTERS and fits(engine, whole):
        return whole
    # No text fits only if tags and links have thousands of characters: drop these then.
    size = largest(min(MAX_CHARACTERS, remaining), lambda size: fits(engine, _part(response, offset, size)))
    return _part(response, offset, max(1, size), has_head=size > 0)


def stats(engine: Engine, parts: Parts) -> Response:
    """Count what is stored."""
    parts.finish()
    counts, graph = engine.memory_counts(), engine.graph.counts()
    live = {"ULTRA": counts.ultra, "SHORT": counts.short, "MEDIUM": counts.medium, "LONG": counts.long}
    memories = {"ENTRIES": sum(live.values()), **live, "ARCHIVED": counts.archived, "MEMORY_LINKS": counts.links}
    graph_counts = {"EPISODES": graph.episodes, "ENTITIES": graph.entities, "RELATIONS": graph.relations}
    disputes = {"DISPUTED": graph.disputed}
    return Response(facts=tuple((key, str(number)) for key, number in (memories | graph_counts | disputes).items()))


def _shown(engine: Engine, reference: Reference, as_of: str | float | None) -> Response:

    def shown(
        kind: str, id_: str, content: str, facts: Facts, scope: Iterable[str] = (), links: Iterable[CspLink] = ()
    ) -> Response:
        data, relations = (Reference(kind, id_),), tuple(links) or None
        return Response(scope=tuple(scope), data=data, relevance=(1.0,), links=relations, facts=facts, content=content)

    id_ = reference.id
    facts: Facts
    if reference.kind == MEMORY:
        memory = engine.get(id_, as_of=as_of)
        engine.log_use(memory.id)
        links = engine.links(memory.id)[:MAX_LINKS]
        facts = (
            ("TIER", memory.tier),
            ("STATE", memory.status),
            ("AT", iso(memory.at)),
            ("ORIGIN", memory.origin),
            ("TRUST", f"{memory.trust:.2f}"),
            ("RETENTION", f"{memory.retention:.2f}"),
        )
        related = (CspLink(link.source, link.target, is_directed=True, strength=link.strength) for link in links)
        return shown(MEMORY, memory.id, memory.content, facts, topics(memory), related)
    if reference.kind == EPISODE:
        episode = engine.graph.episode(id_)
        facts = (("AT", iso(episode.reference_time)), ("ORIGIN", episode.origin), ("TRUST", f"{episode.trust:.2f}"))
        return shown(EPISODE, episode.uuid, episode.content, facts)
    if reference.kind == FACT:
        fact = engine.graph.relation(id_, as_of=as_of)
        state = "retracted" if fact.retracted else "disputed" if fact.disputed else "stated"
        facts = (
            ("RELATION_TYPE", fact.relation_type),
            ("STATE", state),
            *_times(fact.valid_from, fact.valid_to),
            ("TRUST", f"{fact.trust:.2f}"),
        )
        return shown(FACT, fact.uuid, fact.fact, facts, links=[relation_of(fact)])
    entity = engine.graph.entity(id_, as_of=as_of)
    about = engine.graph.neighbourhood(entity.uuid, 1, as_of=as_of).relations
    relations = [fact for fact in about if entity.uuid in (fact.source_node_uuid, fact.target_node_uuid)][:MAX_LINKS]
    names = tuple(name for name in (entity.name, *entity.aliases) if len(name) <= MAX_TOPIC_LENGTH)[:MAX_TOPICS]
    facts = (
        ("ENTITY_TYPE", entity.entity_type),
        *_times(entity.valid_from, entity.valid_to),
        *disputed(relation_of(fact) for fact in relations if fact.disputed),
    )
    return shown(ENTITY, entity.name, entity.summary, facts, names, map(relation_of, relations))


def _times(start: datetime | None, end: datetime | None) -> Iterator[tuple[str, str]]:
    for key, time in (("VALID_FROM", start), ("VALID_TO", end)):
        if time is not None:
            yield key, iso(time)


TIER: Final = "short"
THRESHOLD: Final = 0.3
SCOPE: Final = "short"


def store(engine: Engine, parts: Parts) -> Response:
    """Remember a text in a tier."""
    content = parts.text("CONTENT")
    tier, tags = parts.line("TIER"), parts.line("TAGS", ())
    more = parts.values("category", "source", "entities", "at", "metadata")
    parts.finish()
    if tier == "ultra" and parts.is_last:
        raise UsageError(
            "a memory of the tier ultra ends with its process, and this one ends with the request",
            remedy="give short, medium or long, or send requests on standard input",
        )
    return _memory_response(engine.remember(content, TIER if tier is None else tier, tags, **more))


def link(engine: Engine, parts: Parts) -> Response:
    """Remember how two entities are related: add an episode that states it, and extract what else its text says."""
    names = parts.text("ENTITY1"), parts.text("ENTITY2")
    context = parts.text("CONTEXT")
    parts.finish()
    stated = statement(*names, context, labels=("ENTITY1", "ENTITY2", "CONTEXT"))
    name = f"{stated['source']} → {stated['target']}"[:MAX_NAME_CHARACTERS]
    report = engine.graph.add_episode(stated, name=name, source="json", source_description="link")
    counts = (("ENTITIES_EXTRACTED", len(report.entities)), ("RELATIONS_EXTRACTED", len(report.relations)))
    return Response(
        "PARTIAL" if report.degraded else "OK",
        rationale="; ".join(report.notices),
        data=() if report.episode is None else (Reference(EPISODE, report.episode.uuid),),
        facts=(*((key, str(number)) for key, number in counts), *disputed(map(relation_of, report.disputed))),
    )


def decay(engine: Engine, parts: Parts) -> Response:
    """Lower the scores of a tier, and archive what fell too low."""
    threshold = parts.share("threshold", THRESHOLD)
    scope = parts.param("scope", SCOPE)
    parts.finish()
    report = engine.decay(scope, threshold)
    return Response(
        facts=(("ENTRIES_DECAYED", str(report.lowered)), ("ENTRIES_DELETED", str(len(report.archived)))),
    )


def promote(engine: Engine, parts: Parts) -> Response:
    """Move a memory to a higher tier."""
    reference = parts.reference()
    tier = parts.line("TIER")
    parts.finish()
    return _memory_response(engine.raise_tier(reference.id, tier))


def forget(engine: Engine, parts: Parts) -> Response:
    """Delete a memory with every copy of it."""
    reference = parts.reference(EPISODE)
    dry_run = boolean("dry_run", parts.param("dry_run", False))
    parts.finish()
    if reference.kind == EPISODE:
        engine.graph.episode(reference.id)
    else:
        engine.get(reference.id, touch=False)  # the engine would also forget an artifact of that id
    receipt = engine.forget(reference.id, dry_run=dry_run)
    # A memory is also an episode, but counts as one entry.
    counted = ("episodes",) if reference.kind == EPISODE else ("memories", "in_process")
    deleted = str(sum(receipt.counts.get(kind, 0) for kind in counted))
    data = (reference,)
    if dry_run:
        return Response(data=data, facts=(("ENTRIES_TO_DELETE", deleted),))
    remaining = [f"{file}: {what}" for file, what in receipt.found]
    return Response(
        "OK" if receipt.verified else "PARTIAL",
        rationale="" if receipt.verified else "; ".join((*receipt.waiting, *remaining, *receipt.notices)),
        data=data,
        facts=(("ENTRIES_DELETED", deleted), ("RECEIPT", receipt.id)),
    )


def _memory_response(memory: Memory) -> Response:
    return Response(
        rationale="; ".join(memory.notices),
        data=(Reference(MEMORY, memory.id),),
        facts=(("TIER_WRITTEN", memory.tier),),
    )


MAX_EDGES: Final = 10
_DEPTH, _AROUND = 2, 30
"""Maximum distance of facts from the entity that the query names, and maximum number of entities around it."""
_STEP = 0.8
"""Factor on the relevance for each step away from the named entity; a round guess."""

_ENDING: Final = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,4}$")


def query_graph(engine: Engine, parts: Parts) -> Response:
    """Find entities and how they are related."""
    query = parts.topic()
    limit = parts.most_results(MAX_EDGES)
    floor = parts.share("min_relevance", MIN_RELEVANCE)
    parts.finish()
    entities_found = engine.graph.search_entities(query, limit)
    facts = facts_of(engine, query, max(limit, MAX_LINKS), floor)
    query_terms = frozenset(analyse(query))

    def share(name: str) -> float:
        """Return the share of a name's words that the query has, without the file extension, which many names share."""
        terms = frozenset(analyse(_ENDING.sub("", name)))
        return len(terms & query_terms) / len(terms) if terms else 0.0

    shares = {entity.uuid: max(share(name) for name in (entity.name, *entity.aliases)) for entity in entities_found}
    named = sorted((node for node in entities_found if shares[node.uuid]), key=lambda node: -shares[node.uuid])
    scored = [(fact.score, fact) for fact in facts]
    if named:
        # Add facts around the entity that the query names; their relevance falls with each step away from it.
        neighbourhood = engine.graph.neighbourhood(named[0].uuid, _DEPTH, _AROUND)
        distances = {entity.uuid: entity.distance or 0 for entity in neighbourhood.entities}
        for fact in neighbourhood.relations:
            steps = min(distances.get(end, _DEPTH) for end in (fact.source_node_uuid, fact.target_node_uuid))
            scored.append((named[0].score * _STEP**steps, fact))
    scored.sort(key=lambda pair: (-pair[0], pair[1].source_name, pair[1].target_name))
    chosen: dict[str, tuple[float, RelationView]] = {}
    for pair in scored:  # a fact may both answer the query and be near
        chosen.setdefault(pair[1].uuid, pair)
    best = list(chosen.values())[: min(limit, MAX_LINKS)]
    entities = named or [entity for entity in entities_found if entity.score >= floor]
    size = largest(len(entities), lambda size: fits(engine, _graph_response(entities[:size], best)))
    response = _graph_response(entities[: max(1, size)], best)
    if not (entities_found.degraded or facts.degraded):
        return response
    return replace(response, status="PARTIAL", rationale=rationale_of((*entities_found.notices, *facts.notices)))


def _graph_response(entities: Sequence[EntityView], scored: Sequence[tuple[float, RelationView]]) -> Response:
    names = [entity.name for entity in entities]
    linked = [name for _, fact in scored for name in (fact.source_name, fact.target_name)]
    scope = [name for name in dict.fromkeys((*names, *linked)) if len(name) <= MAX_TOPIC_LENGTH]
    return Response(
        scope=tuple(scope[:MAX_TOPICS]),
        data=tuple(Reference(ENTITY, name) for name in names),
        relevance=None if scored else tuple(entity.score for entity in entities),
        links=tuple(relation_of(fact) for _, fact in scored) or None,
        link_relevance=tuple(relevance for relevance, _ in scored) or None,
        facts=disputed(relation_of(fact) for _, fact in scored if fact.disputed),
    )
