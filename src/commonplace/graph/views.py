"""Public values of the graph: episodes, entities, facts and the results of each call, with their JSON.

Times are aware, in UTC. The JSON forms have the fields of the memory specialist's contract under its names (`uuid`,
`entity_type`, `source_node_uuid`, `relation_type`, `fact`, …), and further fields of this package.
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
Viewed = TypeVar("Viewed", bound="View")
SUMMARY_FACTS, SUMMARY_CHARACTERS, _SUMMARY_CANDIDATES = 3, 300, 24
_FIELD_OF: Final = {
    "uuid": "id",
    "group_id": "group",
    "entity_type": "type",
    "relation_type": "type",
    "source_node_uuid": "source",
    "target_node_uuid": "target",
    "retracted": "is_retracted",
}
"""Fields of records by the fields of views, where the names differ."""


class View(json_values.View):
    """Base of the views in this module: a frozen dataclass with a JSON form."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; times are ISO 8601 strings that end in Z, floats are rounded to four decimals."""
        values = json_values.View.to_dict(self)
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class EpisodeView(View):
    """A source of facts, as it came in: a text, a message, JSON or a memory.

    Attributes:
        content: the text, secrets replaced; for the episode of a memory, the text of that memory.
        memory: the id of the memory that the episode stands for, or "".
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
    """A person, place, project or other thing that has a name.

    Attributes:
        valid_from, valid_to: when it is known to exist in the world: from its first fact or mention to its end.
        expired_at, merged_into: when it was merged, and into which entity; None and "" while it is not merged.
        aliases: its other names, oldest first.
        score: 0–1, how well it answers the query; 0 without a query.
        distance: number of facts between it and the centre; None if there is no centre or no path.
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
        valid_from, valid_to: when it is true in the world, half-open; None is unknown or open.
        expired_at: when the graph learnt that it had ended or was never true; None while it holds as stated.
        retracted: it was never true.
        disputed: it conflicts with other facts, and it is open which holds; `dispute` is the id that they share.
        confidence, trust: 0–1, how certain the text is of it, and how far the source of the text is trusted.
        episodes: the ids of the episodes that state it, oldest first.
        score: 0–1, how well it answers the query; 0 without a query.
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
    """What an added episode or fact changed in the graph.

    Attributes:
        episode: None if a fact was added directly.
        entities: the entities that it names, new or stored, in the order of the text; without summaries of their facts.
        relations: the facts that it states, new or confirmed, in the order of the text.
        ended: facts that ended because of it.
        disputed: facts that are in conflict because of it, its own among them.
        outcome: "unchanged" if the same episode, word for word, was in the graph already.
        degraded: the language model failed, or an outside backend lacks it or reports no result; see `notices`.
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
    """What was deleted with an episode.

    Attributes:
        entities, relations: the ids of the entities and facts that only it supported, sorted.
        reopened: facts that had ended or were disputed only because of it.
        degraded: an outside backend still has it; see `notices`.
    """

    episode: str
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    reopened: tuple[RelationView, ...] = ()
    degraded: bool = False
    notices: tuple[str, ...] = ()


class _Listed(View, Sequence[Item]):
    """A view that is also the sequence in its second field."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[1].name))  # type: ignore[arg-type]

    def __getitem__(self, index: Any) -> Any:
        return getattr(self, fields(self)[1].name)[index]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class FoundEntities(_Listed[EntityView]):
    """The entities that match a query, best first, ties in the order of the search; a sequence of them.

    `degraded` means that a part of the search could not be used; `notices` says which.
    """

    query: str
    entities: tuple[EntityView, ...]
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundRelations(_Listed[RelationView]):
    """The facts that match a query, best first, ties in the order of the search; a sequence of them."""

    query: str
    relations: tuple[RelationView, ...]
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphContext(View):
    """What the graph knows about entities, as text for a model.

    Attributes:
        text: fenced and labelled data; "" if nothing is known.
        entities, facts: those in the text, nearest and best first.
        tokens: number of tokens of the text in the vocabulary of the default embedder.
        missing: the requested names that no entity has.
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
        centre: the id of the entity at the centre.
        entities: the centre and the others, nearest first, ties by id; with distances, without summaries of facts.
        relations: the facts between them, by the distance of the nearer end, most recently learnt first.
        is_capped: the limits left something out.
        degraded: an outside backend did not answer, so the local graph did; see `notices`.
    """

    centre: str
    entities: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    is_capped: bool = False
    degraded: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing(View):
    """A drawing of the neighbourhood of an entity, its number of entities and facts, and whether limits cut it."""

    entity: str
    format: str
    entities: int
    facts: int
    is_capped: bool
    drawing: str


@dataclass(frozen=True, slots=True)
class GraphPath(View):
    """A shortest path between two entities, both included; empty if there is none within the depth.

    It has one fact for each step; `is_capped` says that the limits may have hidden a path.
    """

    entities: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class TimelineEntry(View):
    """The beginning or end of a fact about an entity; entries at an unknown time, None, come first."""

    at: datetime | None
    what: Literal["began", "ended"]
    relation: RelationView


@dataclass(frozen=True, slots=True)
class Timeline(View):
    entity: EntityView
    entries: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True)
class HistoryEntry(View):
    """One change of an entity or a fact in the graph.

    Attributes:
        what: created, confirmed, renamed, ended, reopened, disputed, settled, retracted, merged, split, ….
        reason, episode: a sentence for people, and the id of the episode that caused the change; "" for none.
    """

    at: datetime
    what: str
    reason: str = ""
    episode: str = ""


@dataclass(frozen=True, slots=True)
class History(View):
    """All changes of an entity or a fact, oldest first."""

    uuid: str
    kind: Subject
    entries: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class Community(View):
    """Entities that are more closely related to each other than to others.

    Attributes:
        uuid: derived from its members; the same members have the same id.
        name: that of its member with the most facts.
        entities: its members, those with the most facts first; may be cut.
        size, facts: number of its members, and of the facts between them.
    """

    uuid: str
    name: str
    entities: tuple[EntityView, ...]
    size: int
    facts: int


@dataclass(frozen=True, slots=True)
class Dispute(View):
    """Facts in conflict, oldest first."""

    uuid: str
    since: datetime
    relations: tuple[RelationView, ...]


@dataclass(frozen=True, slots=True)
class Settlement(View):
    """How a dispute was settled: the fact that holds, and the others that ended or were retracted."""

    relation: RelationView
    ended: tuple[RelationView, ...]
    retracted: tuple[RelationView, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Merging(View):
    """A merge of two entities: the one that remains, the one merged into it, and the facts that moved to the former."""

    entity: EntityView
    merged: EntityView
    relations: tuple[RelationView, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Splitting(View):
    """A split of an entity: it, those split off, new or as they were before their merge, and the facts about these."""

    entity: EntityView
    parted: tuple[EntityView, ...]
    relations: tuple[RelationView, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueryFilters:
    """The filters of a query. Empty means no restriction.

    Attributes:
        now: the time, seconds since the epoch.
        as_of, valid_at: only what was known, or true, at that time; None is now.
        with_past: include what has ended or was retracted.
        centre: the id of the entity near which results rank higher.
    """

    now: float
    as_of: float | None = None
    valid_at: float | None = None
    with_past: bool = False
    groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    centre: str = ""

    def filter(self) -> GraphFilter:
        """Return the filter of the store for these facts, of any type."""
        filter_ = GraphFilter((), self.groups, self.valid_at, self.as_of)
        if self.valid_at is not None:
            return filter_
        if self.with_past:
            return replace(filter_, with_past=True) if self.as_of is None else replace(filter_, open_at=-math.inf)
        # A fact that will end later still holds; one that begins later is included.
        return replace(filter_, open_at=self.now if self.as_of is None else self.as_of)

    def shows(self, relation: Relation) -> bool:
        """Return whether a fact passes the filters of time, of any type and group."""
        if self.as_of is not None and relation.created_at > self.as_of:
            return False
        fact = self.known(relation)
        if self.valid_at is not None:
            has_begun = fact.valid_from is None or fact.valid_from <= self.valid_at
            return not fact.is_retracted and has_begun and (fact.valid_to is None or self.valid_at < fact.valid_to)
        at = self.now if self.as_of is None else self.as_of
        return self.with_past or (not fact.is_retracted and (fact.valid_to is None or at < fact.valid_to))

    def known(self, relation: Relation) -> Relation:
        """Return a fact as known at `as_of`."""
        at = math.inf if self.as_of is None else self.as_of
        if relation.expired_at is not None and relation.expired_at > at:
            relation = replace(relation, valid_to=relation.stated_to, expired_at=None, is_retracted=False)
        if relation.disputed_at is not None and relation.disputed_at > at:
            relation = replace(relation, dispute="", disputed_at=None)
        return relation

    def has(self, entity: Entity) -> bool:
        at = math.inf if self.as_of is None else self.as_of
        return entity.created_at <= at and (entity.expired_at is None or entity.expired_at > at)


class ViewBuilder:
    """Makes views of one reading of a graph.

    Methods take records or ids; unknown ids are left out.
    """

    def __init__(self, graph: GraphReading, filters: QueryFilters) -> None:
        self._graph = graph
        self.filters = filters
        self._stored: dict[str, Entity] = {}

    def relations(
        self, records: Iterable[Relation | str], scores: Mapping[str, float] | None = None
    ) -> tuple[RelationView, ...]:
        relations = _records(records, self._graph.relations)
        # Entities that were read for an earlier view are not read again.
        ids = dict.fromkeys(end for fact in relations for end in (fact.source, fact.target))
        self._stored.update(self._graph.entities([id_ for id_ in ids if id_ not in self._stored]))
        names = {id_: self._stored[id_].name for id_ in ids if id_ in self._stored}
        mentions = self._graph.mentions("relation", [relation.id for relation in relations])
        sources = {id_: list(dict.fromkeys(mention.episode for mention in rows)) for id_, rows in mentions.items()}
        multiple = [group for group in sources.values() if len(group) > 1]
        times = self._graph.reference_times([id_ for group in multiple for id_ in group])
        for group in multiple:
            group.sort(key=lambda id_: (times[id_], id_) if id_ in times else (0.0, id_))
        return tuple(
            _view(
                RelationView,
                fact,
                source_name=names.get(fact.source, ""),
                target_name=names.get(fact.target, ""),
                disputed=bool(fact.dispute),
                episodes=tuple(sources.get(fact.id, ())),
                score=(scores or {}).get(fact.id, 0.0),
            )
            for fact in map(self.filters.known, relations)
        )

    def entities(
        self,
        records: Iterable[Entity | str],
        scores: Mapping[str, float] | None = None,
        distances: Mapping[str, int] | None = None,
        *,
        has_summaries: bool = True,
    ) -> tuple[EntityView, ...]:
        """Return the views of entities; one without a stored summary gets the text of its newest facts."""
        entities = _records(records, self._graph.entities)
        self._stored.update((record.id, record) for record in entities)
        aliases = self._graph.aliases([entity.id for entity in entities])
        summaries = self._summaries([record.id for record in entities if not record.summary]) if has_summaries else {}
        at, has, views = math.inf if self.filters.as_of is None else self.filters.as_of, self.filters.has, []
        for record in entities:
            names = shown_names(record, [alias for alias in aliases.get(record.id, ()) if alias.created_at <= at])
            view = _view(
                EntityView,
                replace(record, expired_at=None, merged_into="") if record.expired_at and has(record) else record,
                summary=record.summary or summaries.get(record.id, ""),
                aliases=names[1:],
                score=(scores or {}).get(record.id, 0.0),
                distance=(distances or {}).get(record.id),
            )
            views.append(view)
        return tuple(views)

    def episode(self, episode: Episode, content: str = "") -> EpisodeView:
        """Return the view of an episode. `content`: the text of its memory."""
        return _view(EpisodeView, episode, content=episode.content or content)

    def _summaries(self, ids: Sequence[str]) -> dict[str, str]:
        """Return up to `SUMMARY_FACTS` facts of each entity as text, by id; those with it as source first."""
        edges_by_id = self._graph.edges_of(ids, replace(self.filters, groups=()).filter(), limit=_SUMMARY_CANDIDATES)
        chosen = {
            id_: sorted(edges, key=lambda edge: (edge.source != id_, edge.is_disputed))[:SUMMARY_FACTS]
            for id_, edges in edges_by_id.items()
        }
        relations = self._graph.relations([link.id for edges in chosen.values() for link in edges])
        summaries = {}
        for id_, edges in chosen.items():
            facts = (relations[link.id].fact.strip() for link in edges if link.id in relations)
            text = " ".join(dict.fromkeys(one if one.endswith((".", "!", "?", "…")) else f"{one}." for one in facts))
            summaries[id_] = text if len(text) <= SUMMARY_CHARACTERS else f"{text[: SUMMARY_CHARACTERS - 1].rstrip()}…"
        return summaries


def _records(refs: Iterable[Item | str], read: Callable[[Sequence[str]], Mapping[str, Item]]) -> list[Item]:
    items = list(refs)
    stored = read([item for item in items if isinstance(item, str)])
    records = (stored.get(item) if isinstance(item, str) else item for item in items)
    return [record for record in records if record is not None]


def _view(view: type[Viewed], record: Relation | Entity | Episode, **values: Any) -> Viewed:
    """Return the view of a record: the fields that both have, except those in `values`, and these."""
    for item in fields(view):  # type: ignore[arg-type]
        name = _FIELD_OF.get(item.name, item.name)
        if item.name not in values and hasattr(record, name):
            value = getattr(record, name)
            if "datetime" in str(item.type):
                value = None if value is None else moment_of(value)
            values[item.name] = shown_attributes(value) if name == "attributes" else value
    return view(**values)
