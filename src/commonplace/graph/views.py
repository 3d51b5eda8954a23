"""The graph as callers see it: episodes, entities and facts, and what each call answers. It knows no store and no rule.

Times are aware, in UTC. The JSON forms carry the fields of the memory specialist's contract under its names (`uuid`,
`entity_type`, `source_node_uuid`, `relation_type`, `fact`, …) and ours beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from commonplace.times import iso

if TYPE_CHECKING:
    from commonplace.types import Origin
    from commonplace.types.graph import EpisodeSource, Subject

AdditionOutcome = Literal["added", "replaced", "unchanged"]
Item = TypeVar("Item")


class View:
    """Whatever this module describes: a frozen dataclass with a JSON form."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; times are ISO 8601 texts that end in Z."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]


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
        disputed: other facts stand that cannot be true beside it; `dispute` is the id that they share.
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
        degraded: an outside backend has not got it yet, or does not tell what it made of it; `notices` says so.
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
        return len(self._list)

    def __getitem__(self, place: Any) -> Any:
        return self._list[place]

    @property
    def _list(self) -> tuple[Item, ...]:
        found: tuple[Item, ...] = getattr(self, fields(self)[1].name)  # type: ignore[arg-type]
        return found


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
        entities, facts: what stands in it, nearest and best first.
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
    """What lies about an entity.

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
    """What began and ended for an entity, oldest first."""

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
    """Entities that hang together more closely than with others.

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


@dataclass(frozen=True, slots=True)
class GraphStats(View):
    """What a graph holds.

    Attributes:
        entities: those that were merged into others do not count.
        relations: all facts, past and retracted ones too; `current` are those that stand.
        entity_types, relation_types: how many of each type, the most frequent first.
    """

    episodes: int
    entities: int
    relations: int
    current: int
    disputed: int
    entity_types: Mapping[str, int]
    relation_types: Mapping[str, int]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_dict() if isinstance(value, View) else value
