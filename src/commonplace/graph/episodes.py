"""Add and remove episodes: resolve their entities, record their mentions and assert their facts.

An episode holds no text; its memory does. It is removed when the memory is archived and added again when its text
changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.extract.model import SENSITIVE, UNSURE, Claim, Departure, Extraction, Found
from commonplace.graph.entities import Entities
from commonplace.graph.extraction import understand
from commonplace.graph.fact_keys import Changed, FactKeys
from commonplace.graph.facts import MIN_CONFIDENCE, Assertion, fact_of
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, has_extension
from commonplace.graph.runtime import GraphRuntime, Texts, fact_text, made_id, names_text, roots
from commonplace.ingest.passages import Destination
from commonplace.lazy_regex import lazy_pattern
from commonplace.store.graph import GraphChange
from commonplace.store.memories import MemoryChange
from commonplace.types import GRAPH_KINDS, RULE, SUPERSEDES, MemoryRecord, MemoryWrite, Owner, StoredMemory
from commonplace.types.graph import Entity, Episode, EpisodeSource, GraphFilter, Mention, Relation

if TYPE_CHECKING:
    from commonplace.graph.views import AdditionOutcome


def take_out(
    graph: GraphChange, runtime: GraphRuntime, episodes: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Delete episodes with what only they said, ended or disputed: names, facts, entities.

    Returns:
        The ids of the entities and of the facts that went, sorted; and of the facts that hold again, or are no longer
        disputed.
    """
    mentioned = [mention for each in graph.mentioned(episodes).values() for mention in each]
    entities, facts = (
        list(dict.fromkeys(each.subject for each in mentioned if each.kind == kind)) for kind in GRAPH_KINDS
    )
    gone = set(episodes)
    before, erased = FactKeys(graph, runtime).revise(
        graph.relations(facts).values(), lambda _, said: None if gone & {said.episode, said.of} else said
    )
    graph.erase_episodes(episodes)
    after, reopened = graph.relations(list(before)), []
    for id_, old in before.items():
        if (new := after.get(id_)) is not None:
            holds_longer = new.expired_at is None and (old.expired_at is not None or old.valid_to != new.valid_to)
            if holds_longer or (old.dispute and not new.dispute):
                reopened.append(id_)
    mend = Entities(graph, runtime).mend
    now = graph.entities(list(dict.fromkeys(roots(graph, entities).values())))
    removed = [id_ for each in now.values() for id_ in mend(each, gone)]
    return tuple(sorted(removed)), tuple(sorted(erased)), tuple(reopened)


@dataclass(frozen=True, slots=True)
class Added:
    episode: Episode
    entities: tuple[str, ...]
    changed: Changed
    outcome: AdditionOutcome = "added"
    notices: tuple[str, ...] = ()


def prepare(texts: Texts, extraction: Extraction) -> None:
    """Embed what an extraction will most likely write, before a transaction begins."""
    texts.prepare(
        [fact_text(claim.fact, claim.type, claim.aspect) for claim in extraction.claims]
        + [names_text(cleaned(found.name)[:MAX_NAME_CHARACTERS], found.aliases) for found in extraction.entities]
    )


def add_episode(
    graph: GraphChange,
    runtime: GraphRuntime,
    episode: Episode,
    extraction: Extraction,
    content: str = "",
    *,
    is_new: bool = False,
) -> Added:
    """Write an episode with all that it says.

    What an episode of the same id had brought goes first; the same episode, word for word, changes nothing.

    Args:
        content: the text that the extraction is of, where the episode itself holds none.
        is_new: its id was made for it, so that there is none of it.
    """
    known = None if is_new else graph.episodes([episode.id]).get(episode.id)
    if known is not None:
        if replace(known, created_at=episode.created_at) == episode:
            mentioned = graph.mentioned([episode.id]).get(episode.id, [])
            entities, facts = (
                dict.fromkeys(each.subject for each in mentioned if each.kind == kind) for kind in GRAPH_KINDS
            )
            return Added(known, tuple(entities), Changed(facts), "unchanged")
        take_out(graph, runtime, [episode.id])
    graph.put(episode)
    run = _Adding(graph, runtime, episode, content or episode.content)
    meant = run.entities(extraction.entities)
    sayings: list[Claim | Departure] = [*extraction.claims, *extraction.departures]
    # What is gone goes first: what takes its place is said of the same aspect of the same thing.
    for each in sorted(sayings, key=lambda saying: (saying.span[0], not isinstance(saying, Departure))):
        if isinstance(each, Departure):
            run.depart(each, meant)
        else:
            run.claim(each, meant)
    return Added(
        episode,
        tuple(dict.fromkeys(entity.id for entity in meant)),
        run.facts.changed,
        "added" if known is None else "replaced",
        tuple(dict.fromkeys(run.notices)),
    )


class _Adding:
    """Writes what one episode says, part by part."""

    def __init__(self, graph: GraphChange, runtime: GraphRuntime, episode: Episode, content: str) -> None:
        self.notices: list[str] = []
        self._graph = graph
        self._runtime = runtime
        self._episode = episode
        self._content = content
        self._entities = Entities(graph, runtime)
        self.facts = FactKeys(graph, runtime)

    def entities(self, found: Sequence[Found]) -> list[Entity]:
        """Return the entities that an episode names, and record where each of their names occurs first."""
        types = [each.type if each.type in self._runtime.kinds.entity_types else "concept" for each in found]
        self._entities.expect(
            [(each.name, type_) for each, type_ in zip(found, types, strict=True)],
            [alias for each in found for alias in each.aliases],
        )
        meant = []
        for each, type_ in zip(found, types, strict=True):
            entity = self._entities.of_name(each.name, type_, self._episode, each.aliases)
            meant.append(entity)
            # One whose name does not occur as such is still mentioned: its mentions say which episodes support it.
            called = {
                cleaned(self._content[slice(*span)])[:MAX_NAME_CHARACTERS]: span
                for span in reversed(each.spans or ((0, 0),))
            }
            self._graph.put(
                *(Mention(self._episode.id, "entity", entity.id, *span, name) for name, span in called.items())
            )
        return meant

    def claim(self, claim: Claim, entities: Sequence[Entity]) -> None:
        source, target = entities[claim.source], entities[claim.target]
        if source.id == target.id:
            self.notices.append(f"a fact that relates {source.name!r:.80} to itself was skipped")
            return
        if claim.type not in self._runtime.kinds.relation_types:
            self.notices.append(f"facts of the type {claim.type!r:.80} are not known, and were skipped")
            return
        said = self._assertion(
            claim,
            home=self._graph.make_id(made_id(), "relation"),
            source=source.id,
            target=target.id,
            saying="denied" if claim.is_end else "once" if claim.is_former else "said",
            valid_from=claim.valid_from,
            valid_to=claim.valid_to,
            confidence=claim.confidence,
            doubt=claim.doubt,
            type=claim.type,
        )
        aspects = {claim.aspect} - {""}
        if not aspects and not self._runtime.kinds.is_single(claim.type):
            # What is said, or ends, without one is of all aspects of which it is known.
            known = self._graph.facts(source.id, claim.type, target.id)
            aspects = {fact_of(each).aspect for each in known if claim.is_end or each.valid_to is None}
        for aspect in sorted(aspects) or [""]:
            self.facts.say(replace(said, aspect=aspect))

    def _assertion(self, said: Claim | Departure, **values: Any) -> Assertion:
        by, (start, end) = self._episode, said.span
        values |= {"trust": by.trust, "group": by.group, "episode": by.id, "start": start, "end": end}
        return Assertion(text=said.fact, at=by.created_at, told=by.reference_time, **values)

    def depart(self, gone: Departure, entities: Sequence[Entity]) -> None:
        """Take in that something is left or no more: what still holds of it ends, and its successor takes its place."""
        target = entities[gone.target]
        if target.type == "person":
            return
        source, successor = ("" if place is None else entities[place].id for place in (gone.source, gone.successor))
        held = self._graph.relations_of([target.id], GraphFilter(types=_LEFT), limit=None).get(target.id, [])
        for each in held:
            if each.target != target.id or each.valid_to is not None:
                continue
            doubt = self._doubt_of(gone, each, source)
            if doubt is None:
                continue
            fact = fact_of(each)
            doubt = SENSITIVE if fact.doubt == SENSITIVE else doubt
            ended = self._assertion(
                gone,
                home=each.id,
                source=each.source,
                target=target.id,
                saying="denied",
                valid_to=gone.valid_to,
                aspect=fact.aspect,
                doubt=doubt,
                type=each.type,
            )
            self.facts.say(ended)
            if successor and successor not in (each.source, target.id) and doubt != UNSURE:
                begun = replace(ended, saying="said", valid_from=gone.valid_to, valid_to=None)
                self.facts.say(replace(begun, home=made_id(), target=successor))

    def _doubt_of(self, gone: Departure, fact: Relation, source: str) -> str | None:
        """Return why a fact may go on although what it names was left, "" where it has ended, None if it is not meant.

        Who speaks leaves a thing for themselves and for what they call theirs; anybody else for themselves alone.
        """
        if fact.source == source or not gone.is_own:
            return gone.doubt if fact.source == source else None
        of = self._graph.entities([fact.source]).get(fact.source)
        if of is None or of.type in ("person", "place") or (of.type in _NAMED and not of.name.islower()):
            return None
        return gone.doubt if _OURS.search(fact.fact) else gone.doubt or UNSURE


_LEFT: Final = ("RELATED_TO", "USES")
"""What ends where what it names is left."""
_NAMED: Final = ("organization", "tool")
"""What of these has a name of its own is somebody else's."""
_OURS: Final = lazy_pattern(r"\b(?:our|my|we|i|the team)\b", re.IGNORECASE)


MAX_ENTITIES: Final = 1_000
MAX_FACTS: Final = 1_000
"""An episode that says more is a document, and its parts say more of each thing."""


def bounded(extraction: Extraction) -> tuple[Extraction, tuple[str, ...]]:
    """Return the first facts of an extraction, with what they are about, and the entities that are named most often.

    With it comes what is to be said of the rest. What is kept stays in its order; of entities that are named equally
    often the first come first.
    """
    entities, claims = extraction.entities, extraction.claims
    if len(entities) <= MAX_ENTITIES and len(claims) <= MAX_FACTS:
        return extraction, ()
    kept: list[Claim] = []
    ends: set[int] = set()
    for claim in claims:
        new = {claim.source, claim.target} - ends
        if len(kept) < MAX_FACTS and len(ends) + len(new) <= MAX_ENTITIES:
            kept.append(claim)
            ends |= new
    often = sorted(range(len(entities)), key=lambda place: (place not in ends, -len(entities[place].spans), place))
    places = often[:MAX_ENTITIES]
    notices = [
        f"the graph took {most:,} of the {found:,} {what} in it: give it in parts to have them all"
        for what, most, found in (("facts", len(kept), len(claims)), ("entities", len(places), len(entities)))
        if most < found
    ]
    return replace(extraction, claims=tuple(kept)).only(places), tuple(notices)


MAX_KEPT: Final = 500
"""So many texts that were embedded stay at hand: what was named lately will be named again."""

_Key = tuple[str, float, bool]


@dataclass(frozen=True, slots=True)
class Readings:
    """What memories say, by content and time, read before the transaction that writes them."""

    runtime: GraphRuntime
    found: dict[_Key, tuple[Extraction, tuple[str, ...]]] = field(default_factory=dict)

    def read(self, owner: Owner, record: MemoryRecord) -> tuple[Extraction, tuple[str, ...]]:
        """Return what a memory says, read once, and embed what that will write."""
        key = _key(owner, record)
        if key not in self.found:
            # A turn of a conversation may begin with who speaks.
            source: EpisodeSource = "message" if owner.session else "text"
            said = understand(record.content, source, _told(owner, record), self.runtime.kinds)
            if owner.session:
                # Talk names hundreds of things of which it says nothing; whoever looks for their names finds the talk.
                said = said.only(said.stated)
            self.found[key] = bounded(said)
            prepare(self.runtime.texts, self.found[key][0])
        return self.found[key]

    def notices(self, owner: Owner, record: MemoryRecord) -> tuple[str, ...]:
        """Return what is to be said of a memory that says more than the graph takes."""
        return self.found.get(_key(owner, record), (None, ()))[1]


class MemoryFeed:
    """Brings what memories say into the graph, in the transactions that change them. Safe for threads.

    Args:
        runtime: returns the runtime of the graph, with the destination of whoever writes the memories if there is one.
    """

    def __init__(self, runtime: Callable[[Destination | None], GraphRuntime]) -> None:
        self._runtime = runtime
        self._kept: Texts | None = None

    def read(self, memories: Iterable[MemoryWrite] = (), destination: Destination | None = None) -> Readings:
        """Read what memories say that are about to be written, and embed what that will write."""
        runtime, kept = self._runtime(destination), self._kept
        is_same = kept is not None and kept.destination.embedder is runtime.destination.embedder
        readings = Readings(replace(runtime, texts=kept) if kept is not None and is_same else runtime)
        for each in memories:
            readings.read(each.owner, each.record)
        self._kept = readings.runtime.texts if len(readings.runtime.texts) <= MAX_KEPT else None
        return readings

    def add(self, change: MemoryChange, memory: StoredMemory, readings: Readings) -> None:
        """Bring in what a memory says that was never there before, in the transaction that added it."""
        owner, record = memory.owner, memory.record
        extraction, _ = readings.read(owner, record)
        if not extraction.entities:
            return
        episode = self._episode(memory)
        add_episode(change.graph, readings.runtime, episode, extraction, record.content, is_new=True)

    def _episode(self, memory: StoredMemory) -> Episode:
        owner, record = memory.owner, memory.record
        return Episode(
            made_id(),
            "",
            _told(owner, record),
            memory.created_at,
            source="memory",
            source_description=record.source,
            origin=record.origin,
            trust=record.trust,
            memory=owner.id,
            version=record.version,
        )

    def overtake(self, change: MemoryChange, older: str, newer: str, confidence: float) -> None:
        """End what an older memory states as somebody says that the newer one overtook it, if it states one thing.

        Of several nobody knows which is meant; what the newer one states as well goes on, as does what is sensitive, or
        trusted more. What a rule finds ends nothing: it is wrong too often.
        """
        graph, memory = change.graph, change.find(newer)
        stated = self._stated(graph, older)
        if memory is None or memory.expired_at is not None or len(stated) != 1:
            return
        if stated[0].home in {each.home for each in self._stated(graph, newer)}:
            return
        fact = fact_of(graph.relations([stated[0].home])[stated[0].home])
        if fact.doubt == SENSITIVE or fact.trust > memory.record.trust or confidence < MIN_CONFIDENCE:
            return  # it would be disputed, and who has just answered one question be asked another
        runtime = self.read().runtime
        known = graph.episodes_of_memory(newer)
        episode = known[-1] if known else self._episode(memory)
        if not known:
            graph.put(episode)
        said = replace(
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
        FactKeys(graph, runtime).say(said)

    def hold_again(self, change: MemoryChange, older: str, newer: str) -> None:
        """Take back that what an older memory states ended with the link between the two."""
        graph = change.graph
        older_ids, newer_ids = ({each.id for each in graph.episodes_of_memory(id_)} for id_ in (older, newer))
        facts = graph.relations([each.home for each in self._stated(graph, older)]) if older_ids and newer_ids else {}
        if facts:
            FactKeys(graph, self.read().runtime).revise(
                facts.values(),
                lambda _, said: None if said.of in older_ids and said.episode in newer_ids else said,
            )

    def _stated(self, graph: GraphChange, memory: str) -> list[Assertion]:
        """Return what a memory states that holds, each with the id of its fact as its home."""
        ids = {each.id for each in graph.episodes_of_memory(memory)}
        mentioned = (each for some in graph.mentioned([*ids]).values() for each in some if each.kind == "relation")
        said = FactKeys(graph, self.read().runtime).said_of(dict.fromkeys(each.subject for each in mentioned))
        found = {id_: replace(each, home=id_) for id_, each in said if each.episode in ids and each.saying == "said"}
        return [*found.values()]

    def let_go(self, change: MemoryChange, id_: str) -> None:
        """Take out what a memory said, in the transaction that changes it; what it says now comes by itself."""
        episodes = [each.id for each in change.graph.episodes_of_memory(id_)]
        if episodes:
            take_out(change.graph, self.read().runtime, episodes)

    def follow(
        self,
        change: MemoryChange,
        ids: Iterable[str],
        readings: Readings | None = None,
        before: Iterable[StoredMemory] = (),
    ) -> None:
        """Bring the graph to what some memories say now, in the transaction that changed them.

        Args:
            before: versions that they had until now; where the newest says the same, the episode stays.
        """
        said = {each.owner.id: _said(each) for each in before}
        for id_ in dict.fromkeys(ids):
            known, episodes = change.find(id_), change.graph.episodes_of_memory(id_)
            live = known if known is not None and known.expired_at is None else None
            version = 0 if live is None else live.record.version
            if version in [each.version for each in episodes]:
                continue
            if live is not None and said.get(id_) == _said(live):
                for each in episodes:
                    change.graph.put(replace(each, version=version))
                continue
            if live is None and not episodes:
                continue
            readings = readings or self.read()
            if episodes:
                take_out(change.graph, readings.runtime, [each.id for each in episodes])
            if live is not None:
                self.add(change, live, readings)
            for link in change.links([id_]):
                if link.type == SUPERSEDES and link.origin != RULE:
                    self.overtake(change, link.target, link.source, link.strength)


def _key(owner: Owner, record: MemoryRecord) -> _Key:
    return record.content, _told(owner, record), bool(owner.session)


def _said(memory: StoredMemory) -> tuple[object, ...]:
    """Return what of a memory counts to the graph."""
    owner, record = memory.owner, memory.record
    return *_key(owner, record), record.source, record.origin, record.trust


def _told(owner: Owner, record: MemoryRecord) -> float:
    """Return the time that dates in a memory are read from."""
    return record.born_at if owner.at is None else owner.at


_ID: Final = lazy_pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENDS: Final = {
    "LIVES_IN": ("person", "place"),
    "WORKS_FOR": ("person", "organization"),
    "LOCATED_IN": ("concept", "place"),
    "DECIDED": ("concept", "decision"),
}
"""What the ends of a relation most likely are, where nobody says so."""


def itself(name: str) -> UsageError:
    return UsageError(
        f"source and target both mean {name!r:.80}",
        remedy="a fact is about two things; name another one",
        parameters=("source", "target"),
    )


def add_fact(graph: GraphChange, runtime: GraphRuntime, given: Assertion, types: tuple[str, str] = ("", "")) -> Added:
    """Write a fact that somebody gives.

    Args:
        given: of names, or ids of entities; without a text one is made of them.
        types: of entities that are made; "" follows from the relation.

    Raises:
        NotFoundError: an id is not there.
        UsageError: its ends are one.
    """
    # Not an episode, but whoever gives the fact: no deletion of an episode removes it.
    giver = Episode("", given.text, given.told, given.at, trust=given.trust, group=given.group)
    entities, likely = Entities(graph, runtime), _ENDS.get(given.type, ("concept", "concept"))
    ends = zip((given.source, given.target), types, likely, strict=True)
    source, target = (_end(graph, entities, *each, giver) for each in ends)
    if source.id == target.id:
        raise itself(source.name)
    text = given.text or f"{source.name} {given.type.replace('_', ' ').lower()} {target.name}"
    facts = FactKeys(graph, runtime)
    facts.say(replace(given, home=made_id(), source=source.id, target=target.id, text=text))
    return Added(giver, (source.id, target.id), facts.changed)


def _end(graph: GraphChange, entities: Entities, name: str, type_: str, likely: str, giver: Episode) -> Entity:
    root = roots(graph, [name])[name]
    known = graph.entities([root]).get(root)
    if known is not None:
        return entities.keep(known, giver)
    if _ID.fullmatch(name):
        raise NotFoundError(f"there is no entity {name!r}", remedy="see `commonplace graph entities QUERY`")
    likely = "file" if likely == "concept" and has_extension(name) else likely
    return entities.of_name(name, type_ or likely, giver)
