"""Public values of the graph: episodes, entities, facts and the results of each call, with their JSON.

Times are aware, in UTC. The JSON forms carry the fields of the memory specialist's contract under its names (`uuid`,
`entity_type`, `source_node_uuid`, `relation_type`, `fact`, …) and ours beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

from commonplace.dataclasses import dataclass, field, fields, replace
from commonplace.dates.time import moment_of
from commonplace.formats import json_values
from commonplace.graph.facts import shown_attributes
from commonplace.graph.names import shown_names
from commonplace.store.graph import GraphReading
from commonplace.types import Origin
from commonplace.types.graph import Entity, Episode, EpisodeSource, GraphFilter, Relation, Subject

AdditionOutcome = Literal["added", "replaced", "unchanged"]
Item = TypeVar("Item")


class View(json_values.View):
    """Whatever this module describes: a frozen dataclass with a JSON form."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; times are ISO 8601 texts that end in Z, numbers have four decimals."""
        found = json_values.View.to_dict(self)
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class EpisodeView(View):
    """Something that was said or happened, as it came.

    Attributes:
        content: secrets replaced; of one that a memory is, the words of that memory.
        memory: the id of the memory that it is, or "".
    """

    uuid: str
    name: str
    content: str
    source: EpisodeSource
    source_description: str
    reference_time: datetime
    created_at: datetime
    origin: Origin
    trust: float
    group_id: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True)
class EntityView(View):
    """Something that has a name.

    Attributes:
        valid_from, valid_to: when it is known to have been, in the world: from its first fact or mention to its end.
        expired_at, merged_into: when it was merged, and into which; None and "" while it is one of ours.
        aliases: its other names, oldest first.
        score: 0–1, how well it answers the question; 0 where nothing was asked.
        distance: how many facts lie between it and the centre; None where there is no centre or no way.
    """

    uuid: str
    name: str
    entity_type: str
    summary: str
    created_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expired_at: datetime | None = None
    merged_into: str = ""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    trust: float = 1.0
    group_id: str = ""
    score: float = 0.0
    distance: int | None = None


@dataclass(frozen=True, slots=True)
class RelationView(View):
    """A fact about two entities.

    Attributes:
        valid_from, valid_to: when it was true in the world, half-open; None is unknown or open.
        expired_at: when we learnt that it had ended or was never true; None while it stands as stated.
        retracted: it was never true.
        disputed: there are other facts that cannot be true beside it; `dispute` is the id that they share.
        confidence, trust: 0–1: how surely the text says it, and how far the text is trusted.
        episodes: the ids of the episodes that say it, oldest first.
        score: 0–1, how well it answers the question; 0 where nothing was asked.
    """

    uuid: str
    source_node_uuid: str
    target_node_uuid: str
    relation_type: str
    fact: str
    created_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expired_at: datetime | None = None
    source_name: str = ""
    target_name: str = ""
    retracted: bool = False
    disputed: bool = False
    dispute: str = ""
    disputed_at: datetime | None = None
    confidence: float = 1.0
    trust: float = 1.0
    group_id: str = ""
    episodes: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Addition(View):
    """What an episode or a fact that was given brought into the graph.

    Attributes:
        episode: None for a fact that was given as such.
        entities: those that it speaks of, new or known, in the order of the text; without summaries of their facts.
        relations: the facts that it says, new or confirmed, in the order of the text.
        ended: facts that ended because of it.
        disputed: facts that cannot all be true since it came, its own among them.
        outcome: "unchanged" where the same episode was known already, word for word.
        degraded: an outside backend has not got it yet, or does not say what it made of it; `notices` says so.
    """

    episode: EpisodeView | None
    entities: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    ended: tuple[RelationView, ...] = ()
    disputed: tuple[RelationView, ...] = ()
    outcome: AdditionOutcome = "added"
    notices: tuple[str, ...] = ()
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Deletion(View):
    """What went with an episode.

    Attributes:
        entities, relations: the ids of what only it supported, sorted.
        reopened: facts that had ended, or were disputed, only because of it.
        degraded: an outside backend has it still; `notices` says so.
    """

    episode: str
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    reopened: tuple[RelationView, ...] = ()
    degraded: bool = False
    notices: tuple[str, ...] = ()


class _Listed(View, Sequence[Item]):
    """A view that is read like the list in its second field."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[1].name))  # type: ignore[arg-type]

    def __getitem__(self, place: Any) -> Any:
        return getattr(self, fields(self)[1].name)[place]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class FoundEntities(_Listed[EntityView]):
    """The entities that answer a question, best first, ties as the search brings them; it is read like a list.

    Where it is `degraded`, a part of the search could not be used; `notices` says which.
    """

    query: str
    entities: tuple[EntityView, ...]
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundRelations(_Listed[RelationView]):
    """The facts that answer a question, best first, ties as the search brings them; it is read like a list."""

    query: str
    relations: tuple[RelationView, ...]
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphContext(View):
    """What the graph knows of some entities, as text for a model.

    Attributes:
        text: fenced and labelled data; "" where nothing is known.
        entities, facts: what it is about, nearest and best first.
        tokens: of the text, counted by the default embedder's vocabulary.
        missing: the names that no entity has.
    """

    text: str
    entities: tuple[EntityView, ...]
    facts: tuple[RelationView, ...]
    tokens: int = 0
    missing: tuple[str, ...] = ()
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subgraph(View):
    """The neighbourhood of an entity.

    Attributes:
        centre: the id of the entity that was asked about.
        entities: it and the others, nearest first, ties by id; each with its distance, without summaries of its facts.
        relations: the facts between them, by the distance of the nearer end, newest knowledge first.
        is_capped: there is more than the limits let through.
        degraded: an outside backend did not answer, so that the local graph did; `notices` says so.
    """

    centre: str
    entities: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    is_capped: bool = False
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing(View):
    """A neighbourhood as it is drawn.

    Attributes:
        entity: the name of what it is about.
        entities, facts: how many it has; `is_capped`: there is more.
        drawing: the text of the file.
    """

    entity: str
    format: str
    entities: int
    facts: int
    is_capped: bool
    drawing: str


@dataclass(frozen=True, slots=True)
class GraphPath(View):
    """A shortest way between two entities.

    Attributes:
        entities: from the one to the other, both included; empty where there is no way within the depth.
        relations: one fact for each step.
        is_capped: there may be a way that the limits did not let through.
    """

    entities: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class TimelineEntry(View):
    """Something that began or ended for an entity.

    Attributes:
        at: None where nobody said when; such entries come first.
        what: "began" or "ended".
    """

    at: datetime | None
    what: Literal["began", "ended"]
    relation: RelationView


@dataclass(frozen=True, slots=True)
class Timeline(View):
    entity: EntityView
    entries: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True)
class HistoryEntry(View):
    """What happened to an entity or a fact in our knowledge.

    Attributes:
        what: created, confirmed, renamed, ended, reopened, disputed, settled, retracted, merged, split, ….
        reason, episode: one sentence, for people, and the id of the episode that brought it about; "" for none.
    """

    at: datetime
    what: str
    reason: str = ""
    episode: str = ""


@dataclass(frozen=True, slots=True)
class History(View):
    """All that happened to an entity or a fact, oldest first."""

    uuid: str
    kind: Subject
    entries: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class Community(View):
    """Entities that are more closely related to each other than to others.

    Attributes:
        uuid: the same whenever its members are.
        name: of its members with the most facts.
        entities: those with the most facts first; perhaps not all of them.
        size, facts: how many entities it has, and how many facts lie within it.
    """

    uuid: str
    name: str
    entities: tuple[EntityView, ...]
    size: int
    facts: int


@dataclass(frozen=True, slots=True)
class Dispute(View):
    """Facts that cannot all be true, oldest first."""

    uuid: str
    since: datetime
    relations: tuple[RelationView, ...]


@dataclass(frozen=True, slots=True)
class Settlement(View):
    """How a dispute was settled: the fact that is right, and what became of the others."""

    relation: RelationView
    ended: tuple[RelationView, ...]
    retracted: tuple[RelationView, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Merging(View):
    """Two entities that are one now.

    Attributes:
        entity: the one that is left.
        merged: the one that went into it.
        relations: the facts that point at the one that is left instead.
    """

    entity: EntityView
    merged: EntityView
    relations: tuple[RelationView, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Splitting(View):
    """An entity that is several now.

    Attributes:
        entity: the one that was split.
        parted: those that are entities of their own now, as they were before they were merged, or new.
        relations: the facts that went with them.
    """

    entity: EntityView
    parted: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    reason: str = ""


SUMMARY_FACTS: Final = 3
SUMMARY_CHARACTERS: Final = 300
_LOOKED_AT: Final = 24


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. Empty means no restriction.

    Attributes:
        now: the time, seconds since the epoch.
        as_of, valid_at: of which time it is asked what was known, and what was true; None is now.
        with_past: what has ended or was retracted, too.
        centre: the id of the entity near to which things are found first.
    """

    now: float
    as_of: float | None = None
    valid_at: float | None = None
    with_past: bool = False
    groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    centre: str = ""

    def filter(self) -> GraphFilter:
        """Return the filter that means the facts that are asked for, of whatever type they are."""
        chosen = GraphFilter((), self.groups, self.valid_at, self.as_of)
        if self.valid_at is not None:
            return chosen
        if self.with_past:
            return replace(chosen, with_past=True) if self.as_of is None else replace(chosen, open_at=-math.inf)
        # What has been said to end later holds still; what begins later is known.
        return replace(chosen, open_at=self.now if self.as_of is None else self.as_of)

    def shows(self, relation: Relation) -> bool:
        """Return whether a fact is asked for, of whatever type and group it is."""
        was_known = self.as_of is None or relation.created_at <= self.as_of
        if not was_known:
            return False
        start, end, is_retracted, _ = self.known(relation)
        if self.valid_at is not None:
            return (
                not is_retracted and (start is None or start <= self.valid_at) and (end is None or self.valid_at < end)
            )
        at = self.now if self.as_of is None else self.as_of
        return self.with_past or (not is_retracted and (end is None or at < end))

    def known(self, relation: Relation) -> tuple[float | None, float | None, bool, float | None]:
        """Return when a fact began and ended, whether it is retracted and since when it is expired, as it is known."""
        if self.as_of is not None and relation.expired_at is not None and relation.expired_at > self.as_of:
            return relation.valid_from, relation.stated_to, False, None
        return relation.valid_from, relation.valid_to, relation.is_retracted, relation.expired_at

    def has(self, entity: Entity) -> bool:
        at = self.as_of
        if at is None:
            return entity.expired_at is None
        return entity.created_at <= at and (entity.expired_at is None or entity.expired_at > at)


class ViewBuilder:
    """Makes views of one reading of a graph.

    It takes records, or ids of which it leaves out those that are not there.
    """

    def __init__(self, graph: GraphReading, wanted: Wanted) -> None:
        self._graph = graph
        self.wanted = wanted
        self._known: dict[str, Entity] = {}

    def relations(
        self, found: Iterable[Relation | str], scores: Mapping[str, float] | None = None
    ) -> tuple[RelationView, ...]:
        relations = _records(found, self._graph.relations)
        # Those that have just been seen are not read again.
        ids = dict.fromkeys(end for each in relations for end in (each.source, each.target))
        self._known.update(self._graph.entities([id_ for id_ in ids if id_ not in self._known]))
        names = {id_: self._known[id_].name for id_ in ids if id_ in self._known}
        mentions = self._graph.mentions("relation", [relation.id for relation in relations])
        said = {id_: list(dict.fromkeys(each.episode for each in some)) for id_, some in mentions.items()}
        several = [some for some in said.values() if len(some) > 1]
        told = self._graph.reference_times([id_ for some in several for id_ in some])
        for some in several:
            some.sort(key=lambda id_: (told[id_], id_) if id_ in told else (0.0, id_))
        at, views = self.wanted.as_of, []
        for each in relations:
            start, end, is_retracted, expired_at = self.wanted.known(each)
            is_disputed = bool(each.dispute) and (at is None or each.disputed_at is None or each.disputed_at <= at)
            views.append(
                RelationView(
                    uuid=each.id,
                    source_node_uuid=each.source,
                    target_node_uuid=each.target,
                    relation_type=each.type,
                    fact=each.fact,
                    created_at=moment_of(each.created_at),
                    valid_from=_moment(start),
                    valid_to=_moment(end),
                    expired_at=_moment(expired_at),
                    source_name=names.get(each.source, ""),
                    target_name=names.get(each.target, ""),
                    retracted=is_retracted,
                    disputed=is_disputed,
                    dispute=each.dispute if is_disputed else "",
                    disputed_at=_moment(each.disputed_at) if is_disputed else None,
                    confidence=each.confidence,
                    trust=each.trust,
                    group_id=each.group,
                    episodes=tuple(said.get(each.id, ())),
                    attributes=shown_attributes(each.attributes),
                    score=(scores or {}).get(each.id, 0.0),
                )
            )
        return tuple(views)

    def entities(
        self,
        found: Iterable[Entity | str],
        scores: Mapping[str, float] | None = None,
        distances: Mapping[str, int] | None = None,
        *,
        has_summaries: bool = True,
    ) -> tuple[EntityView, ...]:
        """Return entities as callers see them; one without a summary of its own gets its newest facts."""
        entities = _records(found, self._graph.entities)
        self._known.update((each.id, each) for each in entities)
        aliases = self._graph.aliases([entity.id for entity in entities])
        summaries = self._summaries([each.id for each in entities if not each.summary]) if has_summaries else {}
        at = self.wanted.as_of
        return tuple(
            EntityView(
                uuid=each.id,
                name=each.name,
                entity_type=each.type,
                summary=each.summary or summaries.get(each.id, ""),
                created_at=moment_of(each.created_at),
                valid_from=_moment(each.valid_from),
                valid_to=_moment(each.valid_to),
                expired_at=_moment(each.expired_at if at is None or not self.wanted.has(each) else None),
                merged_into=each.merged_into if at is None or not self.wanted.has(each) else "",
                aliases=shown_names(
                    each, [alias for alias in aliases.get(each.id, ()) if at is None or alias.created_at <= at]
                )[1:],
                attributes=shown_attributes(each.attributes),
                trust=each.trust,
                group_id=each.group,
                score=(scores or {}).get(each.id, 0.0),
                distance=(distances or {}).get(each.id),
            )
            for each in entities
        )

    def episode(self, found: Episode, content: str = "") -> EpisodeView:
        """Return an episode as callers see it. `content`: the words of the memory that it is."""
        return EpisodeView(
            uuid=found.id,
            name=found.name,
            content=found.content or content,
            source=found.source,
            source_description=found.source_description,
            reference_time=moment_of(found.reference_time),
            created_at=moment_of(found.created_at),
            origin=found.origin,
            trust=found.trust,
            group_id=found.group,
            memory=found.memory,
        )

    def _summaries(self, ids: Sequence[str]) -> dict[str, str]:
        """Return what a few facts say of each entity, those that it is the source of first."""
        found = self._graph.edges_of(ids, replace(self.wanted, groups=()).filter(), limit=_LOOKED_AT)
        chosen = {
            id_: sorted(edges, key=lambda edge: (edge.source != id_, edge.is_disputed))[:SUMMARY_FACTS]
            for id_, edges in found.items()
        }
        relations = self._graph.relations([each.id for edges in chosen.values() for each in edges])
        summaries = {}
        for id_, edges in chosen.items():
            facts = (relations[each.id].fact.strip() for each in edges if each.id in relations)
            text = " ".join(
                dict.fromkeys(each if each.endswith((".", "!", "?", "…")) else f"{each}." for each in facts)
            )
            summaries[id_] = text if len(text) <= SUMMARY_CHARACTERS else f"{text[: SUMMARY_CHARACTERS - 1].rstrip()}…"
        return summaries


def _records(found: Iterable[Item | str], read: Callable[[Sequence[str]], Mapping[str, Item]]) -> list[Item]:
    given = list(found)
    known = read([each for each in given if isinstance(each, str)])
    records = (known.get(each) if isinstance(each, str) else each for each in given)
    return [each for each in records if each is not None]


def _moment(at: float | None) -> datetime | None:
    return None if at is None else moment_of(at)
