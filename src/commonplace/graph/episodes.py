"""Add and remove episodes: resolve their entities, record their mentions and assert their facts.

An episode holds no text; its memory does. It is removed when the memory is archived and added again when its text
changes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.extract.model import SENSITIVE, UNSURE, Claim, Departure, ExtractedEntity, Extraction
from commonplace.graph.entities import Entities
from commonplace.graph.extraction import understand
from commonplace.graph.fact_keys import Changed, FactKeys
from commonplace.graph.facts import MIN_CONFIDENCE, Assertion, fact_of, key_of
from commonplace.graph.names import clipped, has_extension
from commonplace.graph.runtime import GraphRuntime, Texts, fact_text, made_id, names_text, roots, subjects_of
from commonplace.ingest.passages import Destination
from commonplace.lazy_regex import lazy_pattern
from commonplace.store.graph import GraphChange
from commonplace.store.memories import MemoryChange
from commonplace.types import RULE, SUPERSEDES, MemoryRecord, MemoryWrite, Owner, StoredMemory
from commonplace.types.graph import Entity, Episode, EpisodeSource, GraphFilter, Mention, Relation

if TYPE_CHECKING:
    from commonplace.graph.views import AdditionOutcome


def take_out(
    graph: GraphChange, runtime: GraphRuntime, episodes: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Delete episodes, and the names, facts and entities that only they support; undo what they ended or disputed.

    Return the ids of the entities and of the facts deleted, sorted, and of the facts that hold again or are undisputed.
    """
    entities, facts = subjects_of(graph, episodes)
    deleted, gone, keys, count = set(episodes), set(episodes), FactKeys(graph, runtime), 0
    while len(facts) > count:
        # What a departure says of a fact, or a person decided, goes with the last source that states the fact.
        count, said = len(facts), keys.said_of(facts)
        stating = ((id_, item) for id_, item in said if item.episode or item.saying == "said")
        gone |= facts.keys() - {id_ for id_, item in stating if not gone & {item.episode, item.of} and item.of != id_}
        facts |= subjects_of(graph, [item.episode for _, item in said if item.of in gone])[1]
    stated = graph.relations(list(facts)).values()
    before, erased = keys.revise(stated, lambda id_, item: None if gone & {id_, item.episode, item.of} else item)
    graph.erase_episodes(episodes)
    after, reopened = graph.relations(list(before)), []
    for id_, old in before.items():
        if (new := after.get(id_)) is not None:
            holds_longer = new.expired_at is None and (old.expired_at is not None or old.valid_to != new.valid_to)
            if holds_longer or (old.dispute and not new.dispute):
                reopened.append(id_)
    mend = Entities(graph, runtime).mend
    root_entities = graph.entities(list(dict.fromkeys(roots(graph, entities).values())))
    removed = [id_ for entity in root_entities.values() for id_ in mend(entity, deleted)]
    return tuple(sorted(removed)), tuple(sorted(erased)), tuple(reopened)


@dataclass(frozen=True, slots=True)
class Added:
    episode: Episode
    entities: tuple[str, ...]
    changed: Changed
    outcome: AdditionOutcome = "added"
    notices: tuple[str, ...] = ()


def prepare(texts: Texts, extraction: Extraction) -> None:
    """Embed the texts that an extraction will most likely write, before the transaction begins."""
    facts = [fact_text(claim.fact, claim.type, claim.aspect) for claim in extraction.claims]
    names = [(clipped(entity.name), entity.aliases) for entity in extraction.entities]
    texts.prepare([*facts, *itertools.starmap(names_text, names)])


def add_episode(
    graph: GraphChange,
    runtime: GraphRuntime,
    episode: Episode,
    extraction: Extraction,
    content: str = "",
    *,
    is_new: bool = False,
    leaving: Sequence[str] = (),
) -> Added:
    """Write an episode with its entities, mentions and facts.

    A stored episode with the same id is deleted first, unless the id is new; an identical one is left unchanged. The
    text of the extraction is in `content` if the episode itself holds none; the episodes `leaving` are taken out next.
    """
    stored = None if is_new else graph.episodes([episode.id]).get(episode.id)
    if stored is not None:
        if replace(stored, created_at=episode.created_at) == episode:
            entities, facts = subjects_of(graph, [episode.id])
            return Added(stored, tuple(entities), Changed(facts), "unchanged")
        take_out(graph, runtime, [episode.id])
    graph.put(episode)
    writer = _EpisodeWriter(graph, runtime, replace(episode, content=content or episode.content), leaving)
    resolved = writer.entities(extraction.entities)
    statements: list[Claim | Departure] = [*extraction.claims, *extraction.departures]
    # Departures go first: a claim in the same place states the successor for the same aspect of the same entity.
    for statement in sorted(statements, key=lambda item: (item.span[0], not isinstance(item, Departure))):
        if isinstance(statement, Departure):
            writer.depart(statement, resolved)
        else:
            writer.claim(statement, resolved)
    ids = dict.fromkeys(entity.id for entity in resolved)
    outcome: AdditionOutcome = "added" if stored is None else "replaced"
    return Added(episode, tuple(ids), writer.facts.finish(), outcome, tuple(dict.fromkeys(writer.notices)))


class _EpisodeWriter:
    def __init__(self, graph: GraphChange, runtime: GraphRuntime, episode: Episode, leaving: Sequence[str]) -> None:
        self.notices: list[str] = []
        self._graph = graph
        self._runtime = runtime
        self._episode = episode
        self._entities = Entities(graph, runtime, leaving)
        self.facts = FactKeys(graph, runtime)

    def entities(self, extracted: Sequence[ExtractedEntity]) -> list[Entity]:
        """Return the entities that an episode names; record the first mention of each of their names."""
        self._entities.expect(extracted)
        resolved = []
        for named in extracted:
            entity = self._entities.of_name(named.name, named.type, self._episode, named.aliases)
            resolved.append(entity)
            # An entity whose name does not occur gets a mention too: mentions record which episodes support an entity.
            spans, id_ = reversed(named.spans or ((0, 0),)), self._episode.id
            by_name = {clipped(self._episode.content[slice(*span)]): span for span in spans}
            self._graph.put(*(Mention(id_, "entity", entity.id, *span, name) for name, span in by_name.items()))
        return resolved

    def claim(self, claim: Claim, entities: Sequence[Entity]) -> None:
        source, target = entities[claim.source], entities[claim.target]
        if source.id == target.id:
            self.notices.append(f"a fact that relates {source.name!r:.80} to itself was skipped")
            return
        saying = "denied" if claim.is_end else "once" if claim.is_former else "said"
        more = {"saying": saying, "valid_from": claim.valid_from, "confidence": claim.confidence}
        assertion = self._assertion(claim, source=source.id, target=target.id, **more)
        keys = {(claim.type, claim.aspect)}
        if not claim.aspect and not self._runtime.kinds.is_single(claim.type):
            # A claim without an aspect applies to all stored aspects of the fact.
            types, is_past = (_LEFT, True) if claim.is_return else ((claim.type,), claim.is_end)
            stored = [fact for type_ in types for fact in self._graph.facts(source.id, type_, target.id)]
            keys = {(fact.type, fact_of(fact).aspect) for fact in stored if is_past or fact.valid_to is None} or keys
        for type_, aspect in sorted(keys):
            home = self._graph.make_id(made_id(), "relation")
            self.facts.say(replace(assertion, home=home, type=type_, aspect=aspect))

    def _assertion(self, statement: Claim | Departure, **values: Any) -> Assertion:
        episode, (start, end) = self._episode, statement.span
        values = {"home": "", "valid_to": statement.valid_to, "doubt": statement.doubt, **values}
        values |= {"trust": episode.trust, "group": episode.group, "episode": episode.id, "start": start, "end": end}
        return Assertion(text=statement.fact, at=episode.created_at, told=episode.reference_time, **values)

    def depart(self, departure: Departure, entities: Sequence[Entity]) -> None:
        """Apply that something was left or ceased: end the current facts about it and begin those of its successor."""
        target = entities[departure.target]
        if target.type == "person" and not departure.type:
            return
        others = departure.source, departure.successor
        source, successor = ("" if index is None else entities[index].id for index in others)
        only = GraphFilter(types=(departure.type,) if departure.type else _LEFT)
        relations = self._graph.relations_of([target.id], only, limit=None).get(target.id, [])
        for relation in relations:
            if relation.target != target.id or relation.valid_to is not None:
                continue
            doubt = self._doubt_of(departure, relation, source)
            if doubt is None:
                continue
            fact = fact_of(relation)
            if departure.aspect and fact.aspect != departure.aspect:
                continue
            doubt = SENSITIVE if fact.doubt == SENSITIVE else doubt
            ends = {"source": relation.source, "target": target.id, "type": relation.type, "aspect": fact.aspect}
            ended = self._assertion(departure, home=relation.id, saying="denied", doubt=doubt, of=relation.id, **ends)
            self.facts.say(ended)
            if successor and successor not in (relation.source, target.id) and doubt != UNSURE:
                begun = replace(ended, saying="said", valid_from=departure.valid_to, valid_to=None)
                self.facts.say(replace(begun, home=made_id(), target=successor))

    def _doubt_of(self, departure: Departure, fact: Relation, source: str) -> str | None:
        """Return why a fact may still hold, "" if it has ended, None if the departure does not concern it.

        The speaker's departure applies to the speaker and to what is theirs; anybody else's only to themselves.
        """
        if fact.source == source or not departure.is_own:
            return departure.doubt if fact.source == source else None
        head = self._graph.entities([fact.source]).get(fact.source)
        if head is None or head.type in ("person", "place") or (head.type in _NAMED and not head.name.islower()):
            return None
        return departure.doubt if _OURS.search(fact.fact) else departure.doubt or UNSURE


_LEFT: Final = ("RELATED_TO", "USES")
"""Relation types that end when their target is left."""
_NAMED: Final = ("organization", "tool")
"""Types whose entities are not the speaker's own if they have a capitalised name."""
_OURS: Final = lazy_pattern(r"\b(?:our|my|we|i|the team)\b", re.IGNORECASE)


MAX_ENTITIES: Final = 1_000
MAX_FACTS: Final = 1_000
"""Limits of one episode; a longer text is better added in parts."""


def bounded(extraction: Extraction) -> tuple[Extraction, tuple[str, ...]]:
    """Cut an extraction to its first facts, their entities, and those named most often, with notices of each cut."""
    entities, claims = extraction.entities, extraction.claims
    if len(entities) <= MAX_ENTITIES and len(claims) <= MAX_FACTS:
        return extraction, ()
    selected: list[Claim] = []
    ends: set[int] = set()
    for claim in claims:
        new_ends = {claim.source, claim.target} - ends
        if len(selected) < MAX_FACTS and len(ends) + len(new_ends) <= MAX_ENTITIES:
            selected.append(claim)
            ends |= new_ends
    ranked = sorted(range(len(entities)), key=lambda index: (index not in ends, -len(entities[index].spans), index))
    indexes = ranked[:MAX_ENTITIES]
    notices = [
        f"the graph took {count:,} of the {total:,} {noun} in it: give it in parts to have them all"
        for noun, count, total in (("facts", len(selected), len(claims)), ("entities", len(indexes), len(entities)))
        if count < total
    ]
    return replace(extraction, claims=tuple(selected)).only(indexes), tuple(notices)


MAX_KEPT: Final = 500
"""Maximum number of embedded texts that are cached between reads; recent names tend to recur."""

_Key = tuple[str, float, bool]


@dataclass(frozen=True, slots=True)
class Readings:
    """Extractions of memories, read before the transaction that writes them."""

    runtime: GraphRuntime
    extractions: dict[_Key, tuple[Extraction, tuple[str, ...]]] = field(default_factory=dict)

    def read(self, owner: Owner, record: MemoryRecord) -> tuple[Extraction, tuple[str, ...]]:
        """Return the extraction of a memory and its notices, cached; embed the texts that it will write."""
        key = _key(owner, record)
        if key not in self.extractions:
            # A turn of a conversation may begin with the name of its speaker.
            source: EpisodeSource = "message" if owner.session else "text"
            extraction = understand(record.content, source, _reference_time(owner, record), self.runtime.kinds)
            if owner.session:
                # Talk names hundreds of things without stating a fact; a search for their names finds the memories.
                extraction = extraction.only(extraction.stated)
            self.extractions[key] = bounded(extraction)
            prepare(self.runtime.texts, self.extractions[key][0])
        return self.extractions[key]

    def notices(self, owner: Owner, record: MemoryRecord) -> tuple[str, ...]:
        """Return the notices about a memory that exceeds the limits of an episode."""
        return self.extractions.get(_key(owner, record), (None, ()))[1]


class MemoryFeed:
    """Updates the graph from memories, in the transactions that change them. Safe for threads.

    A destination for its runtime is that of the memories' writer.
    """

    def __init__(self, runtime: Callable[[Destination | None], GraphRuntime]) -> None:
        self._runtime = runtime
        self._recent_texts: Texts | None = None

    def read(self, memories: Iterable[MemoryWrite] = (), destination: Destination | None = None) -> Readings:
        """Extract memories that are about to be written, and embed the texts of their entities and facts."""
        runtime, texts = self._runtime(destination), self._recent_texts
        is_same = texts is not None and texts.destination.embedder is runtime.destination.embedder
        readings = Readings(replace(runtime, texts=texts) if texts is not None and is_same else runtime)
        for memory in memories:
            readings.read(memory.owner, memory.record)
        self._recent_texts = readings.runtime.texts if len(readings.runtime.texts) <= MAX_KEPT else None
        return readings

    def add(self, change: MemoryChange, memory: StoredMemory, readings: Readings, leaving: Sequence[str] = ()) -> None:
        """Add the episode of a new memory, in the transaction that adds the memory."""
        owner, record = memory.owner, memory.record
        extraction, _ = readings.read(owner, record)
        if not extraction.entities:
            return
        episode = self._episode(memory)
        add_episode(change.graph, readings.runtime, episode, extraction, record.content, is_new=True, leaving=leaving)

    def add_earlier(self, change: MemoryChange, memory: StoredMemory, at: float, readings: Readings) -> None:
        """Add an episode for the earlier time at which the same was said, unless it is known from before then."""
        if all(episode.reference_time > at for episode in change.graph.episodes_of_memory(memory.owner.id)):
            self.add(change, replace(memory, owner=replace(memory.owner, at=at)), readings)

    def _episode(self, memory: StoredMemory) -> Episode:
        owner, record = memory.owner, memory.record
        return Episode(
            made_id(),
            "",
            _reference_time(owner, record),
            memory.created_at,
            source="memory",
            source_description=record.source,
            origin=record.origin,
            trust=record.trust,
            memory=owner.id,
            version=record.version,
        )

    def overtake(self, change: MemoryChange, older: str, newer: str, confidence: float) -> None:
        """End the fact of an older memory after somebody linked a newer one as superseding it, if it states only one.

        With several, it is unclear which is meant. A fact that the newer memory states too still holds, as does one
        that is sensitive or trusted more. Links found by rules must not be passed: they are wrong too often.
        """
        graph, memory = change.graph, change.find(newer)
        stated = self._stated(graph, older)
        if memory is None or memory.expired_at is not None or len(stated) != 1:
            return
        if stated[0].home in {assertion.home for assertion in self._stated(graph, newer)}:
            return
        fact = fact_of(graph.relations([stated[0].home])[stated[0].home])
        if fact.doubt == SENSITIVE or fact.trust > memory.record.trust or confidence < MIN_CONFIDENCE:
            return  # it would be disputed, and raise a new question for a person who has just answered one
        runtime = self.read().runtime
        episodes = graph.episodes_of_memory(newer)
        episode = max(episodes, key=lambda each: each.reference_time, default=self._episode(memory))
        if fact.is_retracted or (fact.valid_from is not None and episode.reference_time <= fact.valid_from):
            return  # nothing ends before it began
        if not episodes:
            graph.put(episode)
        denial = replace(
            stated[0],
            saying="denied",
            at=runtime.now(),
            told=episode.reference_time,
            valid_from=None,
            valid_to=None,
            trust=episode.trust,
            confidence=confidence,
            episode=episode.id,
            start=0,
            end=0,
            reason="somebody linked the memory that states it as overtaken",
            doubt="",
            of=stated[0].episode,
        )
        facts = FactKeys(graph, runtime)
        facts.say(denial)
        facts.finish()

    def hold_again(self, change: MemoryChange, older: str, newer: str) -> None:
        """Undo `overtake` and what a person settled between the facts of two memories, after their link is removed."""
        graph, runtime = change.graph, self.read().runtime
        older_ids, newer_ids = ({episode.id for episode in graph.episodes_of_memory(id_)} for id_ in (older, newer))
        sides = [graph.relations([*subjects_of(graph, [*ids])[1]]) for ids in (older_ids, newer_ids)]
        keys = [{key_of(fact, runtime.kinds) for fact in side.values()} for side in sides]
        facts = {**sides[0], **sides[1]}
        contested = {id_ for id_, fact in facts.items() if key_of(fact, runtime.kinds) in keys[0] & keys[1]}

        def kept(id_: str, item: Assertion) -> Assertion | None:
            is_settled = id_ in contested and not item.episode and item.saying != "said"
            return None if is_settled or (item.of in older_ids and item.episode in newer_ids) else item

        if older_ids and newer_ids:
            FactKeys(graph, runtime).revise(facts.values(), kept)

    def _stated(self, graph: GraphChange, memory: str) -> list[Assertion]:
        """Return the positive assertions of a memory, with the ids of their facts as their homes."""
        ids = {episode.id for episode in graph.episodes_of_memory(memory)}
        stated = FactKeys(graph, self.read().runtime).said_of(subjects_of(graph, [*ids])[1])
        facts = {id_: replace(item, home=id_) for id_, item in stated if item.episode in ids and item.saying == "said"}
        return [*facts.values()]

    def let_go(self, change: MemoryChange, id_: str) -> None:
        """Delete the episodes of a memory, in the transaction that changes it; `add` writes its new state."""
        episodes = [episode.id for episode in change.graph.episodes_of_memory(id_)]
        if episodes:
            take_out(change.graph, self.read().runtime, episodes)

    def follow(
        self,
        change: MemoryChange,
        ids: Iterable[str],
        readings: Readings | None = None,
        before: Iterable[StoredMemory] = (),
    ) -> None:
        """Bring the graph up to date with memories, in the transaction that changed them.

        The episode of a memory stays if the newest of its versions before says the same.
        """
        previous = {old.owner.id: _graph_fields(old) for old in before}
        for id_ in dict.fromkeys(ids):
            memory, episodes = change.find(id_), change.graph.episodes_of_memory(id_)
            live = memory if memory is not None and memory.expired_at is None else None
            version = 0 if live is None else live.record.version
            if version in [episode.version for episode in episodes]:
                continue
            if live is not None and previous.get(id_) == _graph_fields(live):
                for episode in episodes:
                    change.graph.put(replace(episode, version=version))
                continue
            if live is None and not episodes:
                continue
            readings, leaving = readings or self.read(), [episode.id for episode in episodes]
            if live is not None:  # first, so that what others say of facts that it states as well stays
                self.add(change, live, readings, leaving)
            if leaving:
                take_out(change.graph, readings.runtime, leaving)
            for link in change.links([id_]):
                if link.type == SUPERSEDES and link.origin != RULE:
                    self.overtake(change, link.target, link.source, link.strength)


def _key(owner: Owner, record: MemoryRecord) -> _Key:
    return record.content, _reference_time(owner, record), bool(owner.session)


def _graph_fields(memory: StoredMemory) -> tuple[object, ...]:
    """Return the fields of a memory on which its episode depends."""
    owner, record = memory.owner, memory.record
    return *_key(owner, record), record.source, record.origin, record.trust


def _reference_time(owner: Owner, record: MemoryRecord) -> float:
    """Return the time to which relative dates in a memory refer."""
    return record.born_at if owner.at is None else owner.at


_ID: Final = lazy_pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENDS: Final = {
    "LIVES_IN": ("person", "place"),
    "WORKS_FOR": ("person", "organization"),
    "LOCATED_IN": ("concept", "place"),
    "DECIDED": ("concept", "decision"),
}
"""Likely entity types of the source and target of a relation, used where none are given."""


def itself(name: str) -> UsageError:
    problem = f"source and target both mean {name!r:.80}"
    return UsageError(problem, remedy="a fact is about two things; name another one", parameters=("source", "target"))


def add_fact(graph: GraphChange, runtime: GraphRuntime, fact: Assertion, types: tuple[str, str] = ("", "")) -> Added:
    """Write a fact that was given directly, not by an episode.

    Args:
        fact: the fact, with names or ids as its ends; without a text, one is made from them.
        types: entity types of new ends; "" chooses by the relation.

    Raises:
        NotFoundError: an id does not exist.
        UsageError: both ends are the same entity.
    """
    # A stand-in without an id for the giver, so that no deletion of an episode removes the fact.
    giver = Episode("", fact.text, fact.told, fact.at, trust=fact.trust, group=fact.group)
    entities, likely = Entities(graph, runtime), _ENDS.get(fact.type, ("concept", "concept"))
    ends = zip((fact.source, fact.target), types, likely, strict=True)
    source, target = (_end(graph, entities, *end, giver) for end in ends)
    if source.id == target.id:
        raise itself(source.name)
    text = fact.text or f"{source.name} {fact.type.replace('_', ' ').lower()} {target.name}"
    facts = FactKeys(graph, runtime)
    facts.say(replace(fact, home=made_id(), source=source.id, target=target.id, text=text))
    return Added(giver, (source.id, target.id), facts.finish())


def _end(graph: GraphChange, entities: Entities, name: str, type_: str, likely: str, giver: Episode) -> Entity:
    root = roots(graph, [name])[name]
    stored = graph.entities([root]).get(root)
    if stored is not None:
        return entities.keep(stored, giver)
    if _ID.fullmatch(name):
        raise NotFoundError(f"there is no entity {name!r}", remedy="see `commonplace graph entities QUERY`")
    likely = "file" if likely == "concept" and has_extension(name) else likely
    return entities.of_name(name, type_ or likely, giver)
