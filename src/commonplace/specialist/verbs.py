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
from commonplace.formats.csp import NONE, Passage, Reference, Relation, Response, format_response, write_relation
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
    found = engine.graph.search_edges(topic, limit, as_of=as_of, valid_at=valid_at)
    relevant = tuple(fact for fact in found if fact.score >= floor)
    return FoundRelations(topic, relevant, found.degraded, found.notices)


def relation_of(fact: RelationView, strength: float | None = None, *, is_directed: bool = True) -> Relation:
    """Return a fact as a link between the names of its ends."""
    return Relation(fact.source_name, fact.target_name, is_directed, strength)


def disputed(relations: Iterable[Relation]) -> Facts:
    """Return the line that names disputed links, if there are any."""
    told = dict.fromkeys(write_relation(Relation(each.source, each.target, each.is_directed)) for each in relations)
    return ((DISPUTED, ",".join(told)),) if told else ()


def fits(engine: Engine, response: Response) -> bool:
    """Return whether a response has at most 2500 tokens."""
    return has_room(format_response(response), engine.count_tokens)


MAX_LINKS: Final = 5
"""In one response."""


def ends(relation: Relation) -> frozenset[str]:
    """Return the two ends, whichever comes first."""
    return frozenset((relation.source, relation.target))


MAX_RESULTS: Final = 5
MIN_RELEVANCE: Final = 0.3
SNIPPET_CHARACTERS: Final = 200
MAX_TOPICS: Final = 10
CONFIDENCE: Final = "CONFIDENCE"
ONLY_WEAK: Final = "all that was found is weak: perhaps nothing here is about it"
MAX_TOPIC_LENGTH: Final = 60
"""Longer tags and entities are left out: ten of them would leave no room for hits."""


@dataclass(frozen=True, slots=True)
class Found:
    """A memory or a fact that answers.

    Attributes:
        passage: the part of it to be shown.
        scope: the names that it is about.
        links, pairs: how it is linked, and which entities it names together.
        confidence: "sure", "likely" or "weak"; "none" of a fact, or if unknown.
    """

    reference: Reference
    relevance: float
    passage: Passage
    scope: Sequence[str]
    links: Sequence[Relation] = ()
    pairs: Sequence[Relation] = ()
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
    """Return the memories that answer a topic, with how they are linked; at a time, facts that answer it as well."""
    topic, limit, floor = parts.topic(), parts.most_results(MAX_RESULTS), parts.share("min_relevance", MIN_RELEVANCE)
    also = parts.param("also")
    parts.finish()
    is_now = as_of is None and valid_at is None
    result = engine.recall(topic, limit, as_of=as_of, valid_at=valid_at, min_score=floor, also=also)
    engine.log_retrieval(result, "recall")
    facts = facts_of(engine, topic, MAX_LINKS if is_now else limit, floor, as_of=as_of, valid_at=valid_at)
    found = [_memory(engine, hit, topic, None if is_now else result.wanted.as_of) for hit in result.hits]
    if not is_now:
        # A memory ranked before one that it may have overtaken stays there, whatever its own relevance.
        places = list(accumulate((each.relevance for each in reversed(found)), max))[::-1]
        placed = list(zip(places, found, strict=True))
        for fact in facts:
            state = f" ({'disputed, ' if fact.disputed else ''}{when(fact)})"
            passage = Passage(fact.uuid, snippet(fact.fact, topic, limit=SNIPPET_CHARACTERS - len(state)).text + state)
            scope = (fact.source_name, fact.target_name)
            placed.append((fact.score, Found(Reference(FACT, fact.uuid), fact.score, passage, scope)))
        placed.sort(key=lambda each: (-each[0], each[1].reference.kind != MEMORY))  # else as they were found
        found = [each for _, each in placed[:limit]]

    def part(size: int) -> Response:
        response = _response(found[:size], facts)
        left_out = f"{size} of {len(found)} hits shown (limit {MAX_TOKENS} tokens)"
        return replace(response, rationale="; ".join(filter(None, (left_out, response.rationale))))

    response = _response(found, facts)
    if not fits(engine, response):
        size = largest(len(found) - 1, lambda size: fits(engine, part(size)))
        # Even the best hit alone may be too long, which takes names and ids of hundreds of characters: what is said
        # about it goes first.
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
    """Return why an answer is only a part of what there may be."""
    return "; ".join(dict.fromkeys(notices)) or "a part of the search could not be used"


def _memory(engine: Engine, hit: Hit, topic: str, as_of: float | None) -> Found:
    id_ = hit.owner_id
    passage = Passage(id_, snippet(hit.text, topic, limit=SNIPPET_CHARACTERS).text)
    links = [Relation(each.source, each.target, True, each.strength) for each in engine.links(id_)]
    scope: tuple[str, ...] = ()
    pairs: list[Relation] = []
    with suppress(NotFoundError):  # another process may have deleted it meanwhile
        memory = engine.get(id_, as_of=as_of, touch=False)
        scope = topics(memory)
        together = islice(combinations(memory.entities, 2), MAX_LINKS)
        pairs = [Relation(*pair, strength=hit.score) for pair in together]
    return Found(Reference(MEMORY, id_), hit.score, passage, scope, links, pairs, hit.confidence or NONE)


def _response(found: Sequence[Found], facts: FoundRelations) -> Response:
    # What the graph knows comes first, then how the memories are linked, then which entities they name together.
    chosen: dict[frozenset[str], Relation] = {}
    for relation in (
        *(relation_of(fact, fact.score, is_directed=False) for fact in facts),
        *(link for each in found for link in each.links),
        *(pair for each in found for pair in each.pairs),
    ):
        chosen.setdefault(ends(relation), relation)
    links = tuple(islice(chosen.values(), MAX_LINKS))
    own = {ends(relation_of(fact)) for fact in facts if fact.disputed}
    disputes = disputed(link for link in links if ends(link) in own)
    memories_first = sorted(found, key=lambda each: each.reference.kind != MEMORY)
    names = (name for each in memories_first for name in each.scope if len(name) <= MAX_TOPIC_LENGTH)
    weak = [each.confidence == "weak" for each in found]
    # The contract's lines are enough for what answers; what may only be near must not look like it.
    confidence = ((CONFIDENCE, ",".join(each.confidence for each in found)),) if any(weak) else ()
    return Response(
        rationale=ONLY_WEAK if weak and all(weak) else "",
        scope=tuple(islice(dict.fromkeys(names), MAX_TOPICS)),
        data=tuple(each.reference for each in found),
        relevance=tuple(each.relevance for each in found),
        links=links or None,
        snippets=tuple(each.passage for each in found),
        facts=(*confidence, *disputes),
    )


MAX_CHARACTERS: Final = 6_000
"""Of a content in one response; a longer text is read in parts."""

MAX_OFFSET: Final = 1 << 30

_WORD_END: Final = 40


def _part(whole: Response, offset: int, size: int, *, has_head: bool = True) -> Response:
    """Return a part of a response's text, with the names that belong to it or without."""
    # No word is cut, unless none ends near.
    text = whole.content
    end = min(offset + size, len(text))
    if end < len(text):
        near = max(offset + 1, end - _WORD_END)
        end = next((at for at in range(end, near, -1) if text[at].isspace()), end)
    more = (("NEXT_OFFSET", str(end)),) if end < len(text) else ()
    scope, links = (whole.scope, whole.links) if has_head else ((), None)
    return replace(whole, scope=scope, links=links, facts=(*whole.facts, *more), content=text[offset:end])


def get(engine: Engine, parts: Parts) -> Response:
    """Show one memory, episode, entity or fact, as much of its text as there is room for."""
    reference = parts.reference(EPISODE, ENTITY, FACT)
    as_of = parts.param("as_of")
    offset = int_in("offset", parts.param("offset", 0), 0, MAX_OFFSET)
    parts.finish()
    shown = _shown(engine, reference, as_of)
    rest = len(shown.content) - offset
    if offset and rest <= 0:
        raise UsageError(
            f"offset is {offset}, the text has {len(shown.content):,} characters", remedy="give a smaller one"
        )
    whole = _part(shown, offset, rest)
    if rest <= MAX_CHARACTERS and fits(engine, whole):
        return whole
    # Nothing fits only beside tags and links of thousands of characters: these go then.
    size = largest(min(MAX_CHARACTERS, rest), lambda size: fits(engine, _part(shown, offset, size)))
    return _part(shown, offset, max(1, size), has_head=size > 0)


def stats(engine: Engine, parts: Parts) -> Response:
    """Count what is stored."""
    parts.finish()
    counts, graph = engine.memory_counts(), engine.graph.counts()
    live = {"ULTRA": counts.ultra, "SHORT": counts.short, "MEDIUM": counts.medium, "LONG": counts.long}
    memories = {"ENTRIES": sum(live.values()), **live, "ARCHIVED": counts.archived, "MEMORY_LINKS": counts.links}
    known = {"EPISODES": graph.episodes, "ENTITIES": graph.entities, "RELATIONS": graph.relations}
    disputes = {"DISPUTED": graph.disputed}
    return Response(facts=tuple((key, str(number)) for key, number in (memories | known | disputes).items()))


def _shown(engine: Engine, reference: Reference, as_of: str | float | None) -> Response:

    def shown(
        kind: str, id_: str, content: str, facts: Facts, scope: Iterable[str] = (), links: Iterable[Relation] = ()
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
        related = (Relation(each.source, each.target, is_directed=True, strength=each.strength) for each in links)
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
    own = [each for each in about if entity.uuid in (each.source_node_uuid, each.target_node_uuid)][:MAX_LINKS]
    names = tuple(each for each in (entity.name, *entity.aliases) if len(each) <= MAX_TOPIC_LENGTH)[:MAX_TOPICS]
    facts = (
        ("ENTITY_TYPE", entity.entity_type),
        *_times(entity.valid_from, entity.valid_to),
        *disputed(relation_of(each) for each in own if each.disputed),
    )
    return shown(ENTITY, entity.name, entity.summary, facts, names, map(relation_of, own))


def _times(start: datetime | None, end: datetime | None) -> Iterator[tuple[str, str]]:
    for key, at in (("VALID_FROM", start), ("VALID_TO", end)):
        if at is not None:
            yield key, iso(at)


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
    return _kept(engine.remember(content, TIER if tier is None else tier, tags, **more))


def link(engine: Engine, parts: Parts) -> Response:
    """Keep how two entities are related: an episode that states it, and what its words say beside."""
    given = parts.text("ENTITY1"), parts.text("ENTITY2")
    context = parts.text("CONTEXT")
    parts.finish()
    stated = statement(*given, context, called=("ENTITY1", "ENTITY2", "CONTEXT"))
    name = f"{stated['source']} → {stated['target']}"[:MAX_NAME_CHARACTERS]
    added = engine.graph.add_episode(stated, name=name, source="json", source_description="link")
    counts = (("ENTITIES_EXTRACTED", len(added.entities)), ("RELATIONS_EXTRACTED", len(added.relations)))
    return Response(
        "PARTIAL" if added.degraded else "OK",
        rationale="; ".join(added.notices),
        data=() if added.episode is None else (Reference(EPISODE, added.episode.uuid),),
        facts=(*((key, str(number)) for key, number in counts), *disputed(map(relation_of, added.disputed))),
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
    return _kept(engine.raise_tier(reference.id, tier))


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


MAX_EDGES: Final = 10
_DEPTH, _AROUND = 2, 30
"""Maximum distance from the entity that the query names, and number of entities, of facts that are returned."""
_STEP = 0.8
"""What is left of the relevance with each fact between; a round guess."""

_ENDING: Final = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,4}$")


def query_graph(engine: Engine, parts: Parts) -> Response:
    """Find entities and how they are related."""
    query = parts.topic()
    limit = parts.most_results(MAX_EDGES)
    floor = parts.share("min_relevance", MIN_RELEVANCE)
    parts.finish()
    found = engine.graph.search_entities(query, limit)
    facts = facts_of(engine, query, max(limit, MAX_LINKS), floor)
    wanted = frozenset(analyse(query))

    def share(name: str) -> float:
        """Return the share of a name's words that the query has, without a file's extension, which many files share."""
        terms = frozenset(analyse(_ENDING.sub("", name)))
        return len(terms & wanted) / len(terms) if terms else 0.0

    shares = {each.uuid: max(share(name) for name in (each.name, *each.aliases)) for each in found}
    named = sorted((each for each in found if shares[each.uuid]), key=lambda each: -shares[each.uuid])
    told = [(fact.score, fact) for fact in facts]
    if named:
        # The facts about the entity that the query names, whose relevance falls with each step away from it.
        near = engine.graph.neighbourhood(named[0].uuid, _DEPTH, _AROUND)
        distances = {entity.uuid: entity.distance or 0 for entity in near.entities}
        for fact in near.relations:
            steps = min(distances.get(end, _DEPTH) for end in (fact.source_node_uuid, fact.target_node_uuid))
            told.append((named[0].score * _STEP**steps, fact))
    told.sort(key=lambda each: (-each[0], each[1].source_name, each[1].target_name))
    chosen: dict[str, tuple[float, RelationView]] = {}
    for each in told:  # a fact may answer the query and be near
        chosen.setdefault(each[1].uuid, each)
    best = list(chosen.values())[: min(limit, MAX_LINKS)]
    entities = named or [each for each in found if each.score >= floor]
    size = largest(len(entities), lambda size: fits(engine, _graph_response(entities[:size], best)))
    response = _graph_response(entities[: max(1, size)], best)
    if not (found.degraded or facts.degraded):
        return response
    return replace(response, status="PARTIAL", rationale=rationale_of((*found.notices, *facts.notices)))


def _graph_response(entities: Sequence[EntityView], told: Sequence[tuple[float, RelationView]]) -> Response:
    names = [entity.name for entity in entities]
    linked = [name for _, fact in told for name in (fact.source_name, fact.target_name)]
    scope = [name for name in dict.fromkeys((*names, *linked)) if len(name) <= MAX_TOPIC_LENGTH]
    return Response(
        scope=tuple(scope[:MAX_TOPICS]),
        data=tuple(Reference(ENTITY, name) for name in names),
        relevance=None if told else tuple(each.score for each in entities),
        links=tuple(relation_of(fact) for _, fact in told) or None,
        link_relevance=tuple(relevance for relevance, _ in told) or None,
        facts=disputed(relation_of(fact) for _, fact in told if fact.disputed),
    )
