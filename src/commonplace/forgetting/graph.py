"""What of a graph a forgetting takes, and what would betray it. How a graph does without it is told in `graph`.

* With an episode goes what only it supported: facts, entities, names. With a memory go the episodes that it is.
* With an entity goes every fact about it, with a fact all that is said of it. The episodes that speak of them stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commonplace.forgetting.needles import TOKENS, VECTOR, Collector, Needles
from commonplace.graph.deleting import take_out
from commonplace.graph.evidence import evidence_of
from commonplace.graph.facts import fact_of, shown_attributes
from commonplace.graph.ground import Texts
from commonplace.graph.naming import KEY
from commonplace.graph.removing import facts_about, families, remove_entities, remove_facts
from commonplace.graph.slots import Slots, facts_of
from commonplace.logs import query_hash
from commonplace.store.graph_contract import texts_of
from commonplace.text.analysis import possible_terms
from commonplace.text.within import strings
from commonplace.types import GRAPH_KINDS, Filter
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground
    from commonplace.store.contract import Store
    from commonplace.store.graph_contract import GraphChange, GraphReading
    from commonplace.types.graph import Happening, Subject

_AT_ONCE = 500
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Parts:
    """Ids of parts of a graph."""

    episodes: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.episodes, *self.entities, *self.relations)


@dataclass(frozen=True, slots=True)
class Gone:
    """What went of a graph, and what would betray it.

    Attributes:
        terms: the words under which the index had it.
        vectors: int8, of its texts.
        passages: by namespace of texts, the passages of all that was looked at; those that went are among them.
        told: (id, group) of the episodes that went and are no memories: an outside graph may have been told of them.
    """

    parts: Parts = field(default_factory=Parts)
    needles: Needles = field(default_factory=lambda: Needles({}))
    terms: tuple[str, ...] = ()
    vectors: tuple[bytes, ...] = ()
    passages: tuple[tuple[str, tuple[int, ...]], ...] = ()
    too_short: int = 0
    told: tuple[tuple[str, str], ...] = ()


def choose_parts(graph: GraphReading, ids: Sequence[str], memories: Sequence[str]) -> Parts:
    """Return what goes of a graph because of these ids, and of these memories that go."""
    found = graph.counts()
    asked = [id_ for id_ in ids if id_ in graph.episodes([id_])] if found.episodes else []
    of_memories = [
        episode.id for id_ in (memories if found.episodes else ()) for episode in graph.episodes_of_memory(id_)
    ]
    return Parts(
        tuple(dict.fromkeys((*asked, *of_memories))),
        tuple(graph.entities(ids)),
        tuple(graph.relations(ids)),
    )


def notices_of(graph: GraphReading, chosen: Parts) -> tuple[str, ...]:
    """Say which episodes speak of what was asked for, and stay."""
    found = [
        *graph.mentions("entity", families(graph, chosen.entities)).values(),
        *graph.mentions("relation", chosen.relations).values(),
    ]
    staying = {mention.episode for some in found for mention in some} - set(chosen.episodes)
    if not staying:
        return ()
    more = len(staying) - _NAMED
    listed = ", ".join(sorted(staying)[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    return (f"episodes that speak of it stay, with what else they say; forget them by their ids: {listed}",)


def erase(store: Store, graph: GraphChange, ground: Ground, chosen: Parts) -> Gone:
    """Take parts out of a graph under change; return what went, and what would betray that.

    Args:
        store: what it reads is as it was before the change.
    """
    looked_at = _looked_at(graph, ground, chosen)
    before, texts = _Read(graph, looked_at), Texts(ground.destination)
    got = _Collected()
    for kind, ids in (("entity", looked_at.entities), ("relation", looked_at.relations)):
        got.add_texts(store, texts_of(ground.namespace, kind), kind, ids)  # type: ignore[arg-type]
    if chosen.episodes:
        take_out(graph, ground, texts, chosen.episodes)
    remove_facts(graph, ground, texts, chosen.relations)
    remove_entities(graph, ground, texts, chosen.entities)
    after = _Read(graph, looked_at)
    return got.gone(before, after)


def rehearse(store: Store, namespace: str, ground: Callable[[], Ground], chosen: Parts) -> Gone:
    """Return what `erase` would, and change nothing: it is rolled back."""
    gone = Gone()
    with suppress(_RehearsedError), store.change_memories(namespace) as change:
        # Asked for here, where nobody else can change the store's embedder any more.
        gone = erase(store, change.graph, ground(), chosen)
        raise _RehearsedError
    return gone


def everything(store: Store, namespace: str) -> Gone:
    """Return the whole graph of a namespace as what is to go."""
    graph, ever = store.graph(namespace), GraphFilter(with_past=True)
    parts = Parts(
        tuple(each.id for each in graph.list_episodes(ever)),
        tuple(each.id for each in graph.list_entities(ever)),
        tuple(each.id for each in graph.list_relations(ever)),
    )
    got = _Collected()
    for kind in GRAPH_KINDS:
        space = texts_of(namespace, kind)
        got.add_passages(store, space, store.matching_owners(space, Filter()))
    return got.gone(_Read(graph, parts), None)


def held_texts(graph: GraphReading) -> Iterator[str]:
    """Yield every text that a graph holds."""
    ever = GraphFilter(with_past=True)
    for episode in graph.list_episodes(ever):
        yield from (episode.id, episode.content, episode.name, episode.source_description, episode.group)
        yield episode.memory
    entities = graph.list_entities(ever)
    for begin in range(0, len(entities), _AT_ONCE):
        some = entities[begin : begin + _AT_ONCE]
        yield from _names(graph, [entity.id for entity in some])
        for entity in some:
            yield from (entity.id, entity.name, entity.type, entity.summary, entity.attributes, entity.group)
            yield from strings(json.loads(entity.attributes))
            yield from _happened(graph, "entity", entity.id)
    for relation in graph.list_relations(ever):
        yield from (relation.id, relation.type, relation.fact, relation.attributes, relation.group, relation.dispute)
        yield from strings(json.loads(relation.attributes))
        yield from _happened(graph, "relation", relation.id)


class _RehearsedError(Exception):
    """Raised in a change that is to be rolled back."""


@dataclass(slots=True)
class _Read:
    """What some parts of a graph say at one moment."""

    parts: Parts
    contents: set[str]
    labels: set[str]
    told: dict[str, str]

    def __init__(self, graph: GraphReading, looked_at: Parts) -> None:
        episodes, entities = graph.episodes(looked_at.episodes), graph.entities(looked_at.entities)
        relations = graph.relations(looked_at.relations)
        self.parts = Parts(tuple(episodes), tuple(entities), tuple(relations))
        self.contents, self.labels = set(), set()
        self.told = {episode.id: episode.group for episode in episodes.values() if not episode.memory}
        for episode in episodes.values():
            self.contents.add(episode.content)
            self.labels |= {episode.name, episode.source_description, episode.group}
        for entity in entities.values():
            self.contents.add(entity.summary)
            self.labels |= {entity.name, entity.group, *strings(shown_attributes(entity.attributes))}
        self.labels.update(_names(graph, list(entities)))
        for relation in relations.values():
            self.contents.add(relation.fact)
            self.labels |= {relation.group, fact_of(relation).topic, *strings(shown_attributes(relation.attributes))}
        for kind, ids in (("entity", entities), ("relation", relations)):
            for id_ in ids:
                for each in graph.happenings(kind, id_):  # type: ignore[arg-type]
                    self._add_happening(each)

    def _add_happening(self, happening: Happening) -> None:
        self.contents.add(happening.reason)
        said = evidence_of(happening)
        if said is None:
            self.labels.update(strings(json.loads(happening.detail)))
        else:
            self.contents |= {said.text, said.reason}
            self.labels |= {said.group, *strings(json.loads(said.attributes))}


@dataclass(slots=True)
class _Collected:
    collector: Collector = field(default_factory=Collector)
    vectors: list[bytes] = field(default_factory=list)
    passages: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def add_texts(self, store: Store, space: str, kind: Subject, ids: Sequence[str]) -> None:
        """Take the texts by which some parts of a graph are found."""
        self.add_passages(store, space, list(store.owner_numbers(space, kind, ids).values()))

    def add_passages(self, store: Store, space: str, owners: Sequence[int]) -> None:
        """Take the passages of owners of texts."""
        for begin in range(0, len(owners), _AT_ONCE):
            numbers = store.passages_of(space, owners[begin : begin + _AT_ONCE])
            self.passages.append((space, tuple(numbers)))
            for tokens in store.tokens(space, numbers).values():
                self.collector.add_array(tokens.vector, VECTOR)
                self.collector.add_array(tokens.token_ids, TOKENS)
                if tokens.vector:
                    self.vectors.append(tokens.vector)

    def gone(self, before: _Read, after: _Read | None) -> Gone:
        """Return what was there before and is there no more."""
        left = Parts() if after is None else after.parts
        parts = Parts(
            _without(before.parts.episodes, left.episodes),
            _without(before.parts.entities, left.entities),
            _without(before.parts.relations, left.relations),
        )
        for id_ in parts.ids:
            self.collector.add_id(id_)
        contents = before.contents - (set() if after is None else after.contents)
        labels = before.labels - (set() if after is None else after.labels)
        for text in sorted(filter(str.strip, contents)):
            self.collector.add_content(text)
            self.collector.add_digest(query_hash(text))
        for text in sorted(filter(str.strip, labels)):
            self.collector.add_label(text)
        return Gone(
            parts,
            self.collector.needles(),
            tuple(sorted({term for text in (*contents, *labels) for term in possible_terms(text)})),
            tuple(self.vectors),
            tuple(self.passages),
            self.collector.too_short,
            tuple((id_, before.told[id_]) for id_ in parts.episodes if id_ in before.told),
        )


def _looked_at(graph: GraphChange, ground: Ground, chosen: Parts) -> Parts:
    """Return all that may change when parts of a graph go."""
    mentioned = [mention for some in graph.mentioned(chosen.episodes).values() for mention in some]
    subjects: dict[Subject, list[str]] = {
        kind: [mention.subject for mention in mentioned if mention.kind == kind] for kind in GRAPH_KINDS
    }
    entities = families(graph, [*subjects["entity"], *chosen.entities])
    asked = [*chosen.relations, *facts_about(graph, families(graph, chosen.entities))]
    slots = Slots(graph, ground, Texts(ground.destination))
    facts = graph.relations(list(dict.fromkeys([*subjects["relation"], *asked]))).values()
    wanted = dict.fromkeys(slots.slot_of(each.source, each.type, each.target) for each in facts)
    relations = dict.fromkeys(each.id for slot in wanted for each in facts_of(graph, slot))
    return Parts(chosen.episodes, tuple(dict.fromkeys(entities)), tuple(relations))


def _names(graph: GraphReading, entities: Sequence[str]) -> Iterator[str]:
    """Yield the names of entities, in every form that is kept, and what they are called where they are mentioned."""
    for aliases in graph.aliases(entities).values():
        for alias in aliases:
            yield from (alias.name, alias.normal.removeprefix(KEY).split(":", 1)[-1])
            yield alias.normal.removeprefix(KEY)
    for mentions in graph.mentions("entity", entities).values():
        yield from (mention.name for mention in mentions)


def _happened(graph: GraphReading, kind: Subject, id_: str) -> Iterator[str]:
    for happening in graph.happenings(kind, id_):
        yield from (happening.what, happening.reason, happening.detail, *strings(json.loads(happening.detail)))


def _without(before: Iterable[str], left: Iterable[str]) -> tuple[str, ...]:
    known = set(left)
    return tuple(id_ for id_ in before if id_ not in known)
