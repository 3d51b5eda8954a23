"""Values of the graph: episodes, entities, relations, mentions.

Times are seconds since the epoch. A fact has two of them: when it was true in the world (`valid_from`, `valid_to`) and
when we knew it (`created_at`, `expired_at`); intervals are half-open, None is open.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from commonplace.dataclasses import dataclass
from commonplace.types import Origin

ENTITY_TYPES: Final = tuple("file concept person project decision organization place event preference tool".split())
RELATION_TYPES: Final = tuple(
    "DEPENDS_ON PART_OF CAUSED_BY SIMILAR_TO USES IMPLEMENTS WORKS_FOR LOCATED_IN LIVES_IN PREFERS DECIDED RELATED_TO "
    "CONTRADICTS OCCURRED_AFTER".split()
)

EpisodeSource = Literal["text", "message", "json", "memory"]
EPISODE_SOURCES: Final[tuple[EpisodeSource, ...]] = ("text", "message", "json", "memory")

Subject = Literal["entity", "relation"]


@dataclass(frozen=True, slots=True)
class Episode:
    """Something that was said or happened.

    Attributes:
        content: the text as it is stored, secrets replaced; "" if a memory holds it.
        group: a label within the namespace, as Graphiti's group_id; "" is none.
        trust: 0–1.
        reference_time: when it was said or happened; dates in the content are relative to it.
        memory, version: the memory and version that the episode stands for; "" and 0 without one.
    """

    id: str
    content: str
    reference_time: float
    created_at: float
    name: str = ""
    source: EpisodeSource = "text"
    source_description: str = ""
    origin: Origin = "agent"
    trust: float = 1.0
    group: str = ""
    memory: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that has a name.

    Attributes:
        type: one of `ENTITY_TYPES`, or the user's own.
        attributes: a JSON object as text, keys sorted.
        group: of the episode that named it first.
        expired_at: when it was merged into another entity, or None.
        merged_into: the id of that other entity, or "".
    """

    id: str
    name: str
    type: str
    created_at: float
    summary: str = ""
    attributes: str = "{}"
    trust: float = 1.0
    group: str = ""
    valid_from: float | None = None
    valid_to: float | None = None
    expired_at: float | None = None
    merged_into: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """A name of an entity; its own name is one of them.

    Attributes:
        normal: the form by which names are compared.
        episode: the id of the episode that used it first, or "" if a person gave it.
    """

    entity: str
    name: str
    normal: str
    created_at: float
    episode: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A fact about two entities.

    Attributes:
        source, target: ids of entities.
        type: one of `RELATION_TYPES`, or the user's own.
        fact: a sentence that states it.
        stated_to: the end of its validity as its episodes stated it: what `valid_to` was before `expired_at`.
        valid_to: the end as we know it now.
        expired_at: when we learnt that it had ended, or that it was never true; None while it stands as stated.
        is_retracted: it was never true.
        dispute: an id shared by the facts that cannot all be true; "" if it is undisputed.
        disputed_at: since when it is disputed.
        confidence, trust: 0–1: how surely the text says it, and how far the text is trusted.
        attributes: a JSON object as text, keys sorted.
    """

    id: str
    source: str
    target: str
    type: str
    fact: str
    created_at: float
    valid_from: float | None = None
    valid_to: float | None = None
    stated_to: float | None = None
    expired_at: float | None = None
    is_retracted: bool = False
    dispute: str = ""
    disputed_at: float | None = None
    confidence: float = 1.0
    trust: float = 1.0
    group: str = ""
    attributes: str = "{}"


class Edge(NamedTuple):
    """The part of a relation that following it takes: thousands are read to show a few."""

    id: str
    source: str
    target: str
    created_at: float
    confidence: float
    is_disputed: bool


@dataclass(frozen=True, slots=True)
class Mention:
    """Where an episode mentions an entity or states a fact: characters of its content, half-open.

    Attributes:
        name: the entity's name there; "" for a fact.
    """

    episode: str
    kind: Subject
    subject: str
    start: int
    end: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """What happened to an entity or a relation.

    Attributes:
        what: created, renamed, confirmed, ended, reopened, disputed, settled, retracted, merged, split, ….
        reason: one sentence, for people.
        episode: the id of the episode that brought it about, or "".
        detail: a JSON object as text: what is needed to undo it.
    """

    kind: Subject
    subject: str
    at: float
    what: str
    reason: str = ""
    episode: str = ""
    detail: str = "{}"


@dataclass(frozen=True, slots=True)
class GraphFilter:
    """Which facts or episodes are meant. Empty means no restriction; values of one field are alternatives.

    Attributes:
        valid_at: only what was true in the world at this time; None: at any time.
        open_at: without `valid_at`, only what has not ended by this time, whether it has begun or not; None: only what
            has not expired.
        known_at: as it was known at this time; None: as it is known now.
        with_past: also facts that have ended or were retracted, and entities that were merged into others; without
            effect if one of the times is given.
    """

    types: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    valid_at: float | None = None
    known_at: float | None = None
    with_past: bool = False
    open_at: float | None = None


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """How much a graph holds; expired entities, such as those merged into others, do not count."""

    episodes: int = 0
    entities: int = 0
    relations: int = 0
    disputed: int = 0
