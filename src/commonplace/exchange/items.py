"""Items of an import: how each is read from a line, checked, cleaned of secrets and compared with what is stored.

Episodes come first, then entities, then facts: an item may refer only to earlier ones or to the store. An entity or a
fact grows with later episodes: where the store already holds all of an imported one, the stored state is the same or
newer, and stays. Vectors and texts are computed anew. An issue comes with its events and the record that undoes its
change.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

from commonplace.dataclasses import dataclass, field, fields, replace
from commonplace.dates.time import seconds
from commonplace.errors import ConfigError, UsageError
from commonplace.exchange.codec import built, built_list, refuse_other_entries, time_of
from commonplace.graph.entities import merged_into
from commonplace.graph.episodes import FactInput
from commonplace.graph.facts import assertion_of, fact_of
from commonplace.graph.names import KEY, normal
from commonplace.graph.redact import Cleaner, refuse_many_names, refuse_odd_detail
from commonplace.graph.runtime import Texts
from commonplace.knowledge.maps import AgentContext, KnowledgeMap, checked_maps, checked_name, record_of
from commonplace.ledger.erase import cleaned as cleaned_issue
from commonplace.memory.validate import (
    as_given,
    fraction,
    reject_invalid,
    reject_invalid_id,
    short_text,
    validate_memory,
)
from commonplace.retention import MAX_STRENGTH, RECENT_USES
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.store.knowledge import KnowledgeReading
from commonplace.store.ledger import LedgerReading
from commonplace.store.owners import cut_owners
from commonplace.store.schema import table_of
from commonplace.store.store import Store
from commonplace.types import KINDS, Chunk, Filter, Kind, Link, MemoryRecord, Owner, StoredMemory
from commonplace.types.graph import Alias, Entity, Episode, Happening, Mention, Relation, Subject
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, StoredKnowledge
from commonplace.types.ledger import Issue, IssueEvent, Reversal

MAX_PER_FACT: Final = 65_536
"""Characters of the sentence that says a fact; one that was given has at most 1,000."""

_AT_ONCE: Final = 500
_PRIORITIES: Final = range(5)
_VAULT: Final = "vault"
_SHORT_TEXTS: Final = ("name", "source_description", "reason", "what")
"""Texts of a graph that are of a label's length."""

Outcome = Literal["added", "unchanged", "conflict"]
Entries = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cannot be kept.

    Attributes:
        place: the line, and the file where there are several.
        name: what it is about, as far as that can be told.
        reason: the value, the limit and what to do.
    """

    place: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} ({self.name}): {self.reason}" if self.name else f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that somebody may want to know of what is imported, and that nothing is lost by."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


@dataclass(slots=True)
class Redactor(Cleaner):
    """Cleans what is imported.

    Attributes:
        max_bytes: the most bytes of UTF-8 that the content of a memory or an episode may have.
    """

    max_bytes: int


class Known:
    """What a namespace holds, as far as items are compared with it."""

    def __init__(self, store: Store, namespace: str) -> None:
        self.store = store
        self.namespace = namespace

    def has(self, kind: str, id_: str) -> bool:
        """Return whether there is a memory, live or archived, an entity, be it merged, or an episode of that id."""
        if kind == "memory":
            return self.store.memory(self.namespace, id_) is not None
        return id_ in (self.graph.entities([id_]) if kind == "entity" else self.graph.episodes([id_]))

    def has_namesake(self, entity: Entity) -> bool:
        """Return whether another live entity has the name of a live one."""
        form = normal(entity.name)
        named = self.graph.named([form]).get(form, ())
        return entity.expired_at is None and any(each.id != entity.id for each in named)

    def refuse_document(self, kind: Kind, id_: str, remedy: str) -> None:
        """Refuse the id of a document for what is to be more than one."""
        if self.store.places(self.namespace, kind, [id_]):
            raise UsageError(f"a document of the kind {kind} has the id {id_!r:.80}", remedy=remedy)

    @cached_property
    def graph(self) -> GraphReading:
        """The graph of the namespace."""
        return self.store.graph(self.namespace)

    @cached_property
    def knowledge(self) -> dict[str, StoredKnowledge]:
        """The items of knowledge by id."""
        return knowledge_by_id(self.store.knowledge(self.namespace))

    @cached_property
    def links(self) -> dict[tuple[str, str, str], Link]:
        """The links by their ends and type."""
        return {(link.source, link.target, link.type): link for link in self.store.links(self.namespace)}

    @cached_property
    def numbers(self) -> dict[tuple[Kind, str, str], int]:
        """Owner numbers by kind and id, and by kind and path."""
        found: dict[tuple[Kind, str, str], int] = {}
        numbers = self.store.matching_owners(self.namespace, Filter(kinds=KINDS))
        for begin in range(0, len(numbers), _AT_ONCE):
            for number, owner in self.store.owners(self.namespace, numbers[begin : begin + _AT_ONCE]).items():
                found[owner.kind, "id", owner.id] = number
                if owner.path:
                    found[owner.kind, "path", owner.path] = number
        return found


def knowledge_by_id(knowledge: KnowledgeReading) -> dict[str, StoredKnowledge]:
    """Return items of knowledge by id; of several with one id the live one."""
    return {item.owner.id: item for item in (*knowledge.items(deleted=True), *knowledge.items())}


@dataclass(frozen=True)
class Item(ABC):
    """Something to import.

    Attributes:
        kind: what it is called in messages.
        counted: the entry of the report under which it is counted.
        place: where it was read.
        record: what is imported; other entries hang on it.
        secrets: the kinds of those that were replaced in it.
    """

    kind: ClassVar[str]
    counted: ClassVar[str]
    place: str
    record: Any
    secrets: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.record.id)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.kind} {self.id!r:.80}"

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """What no two items of an import may have in common."""
        return [(self.kind, self.id)]

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The (kind, id) of what must be there, each once."""
        return []

    @abstractmethod
    def stored(self, known: Known) -> Any:
        """Return what is stored in its place, None where nothing is.

        Raises:
            UsageError: it cannot be kept beside what is there.
        """

    @abstractmethod
    def is_same(self, stored: Any) -> bool:
        """Return whether what is stored says what it says."""

    def compared(self, stored: Any) -> Outcome:
        """Compare it with what is stored."""
        return "added" if stored is None else "unchanged" if self.is_same(stored) else "conflict"

    def outcome(self, known: Known) -> Outcome:
        """Compare it with what a namespace holds; raises what `stored` does."""
        return self.compared(self.stored(known))


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder to import.

    Attributes:
        format: its name.
        items: reads it from the start, each time it is called. What is wrong with one item is a `Problem` among them,
            what is to be told is a `Remark`; a file that is damaged as a whole raises.
    """

    format: str
    items: Callable[[], Iterator[Item | Problem | Remark]]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory."""

    owner: Owner
    record: MemoryRecord
    created_at: float
    expired_at: float | None
    secrets: tuple[str, ...] = ()


class MemoryItem(Item):
    """A memory with its versions, oldest first; only the last one may be live."""

    kind, counted = "memory", "memories"
    record: tuple[Version, ...]

    @property
    def versions(self) -> tuple[Version, ...]:
        """What is imported."""
        return self.record

    @property
    def latest(self) -> Version:
        """The last version."""
        return self.versions[-1]

    @property
    def id(self) -> str:
        """Its id, which all versions have."""
        return self.latest.owner.id

    def stored(self, known: Known) -> StoredMemory | None:
        stored = known.store.memory(known.namespace, self.id)
        if stored is None:
            known.refuse_document("memory", self.id, "give it another one")
        return stored

    def is_same(self, stored: StoredMemory) -> bool:
        """Compare the words and what was said about them, not how they were used since."""
        return _said(self.latest.owner, self.latest.record) == _said(stored.owner, stored.record)


def _said(owner: Owner, record: MemoryRecord) -> tuple[object, ...]:
    about = (record.category, record.entities, record.source, record.origin, record.derived_from)
    words = (record.content, json.loads(record.metadata))
    return (*words, *about, owner.tags, owner.session, owner.at, owner.title, owner.summary)


class LinkItem(Item):
    """A link between two memories."""

    kind, counted = "link", "links"
    record: Link

    @property
    def name(self) -> str:
        return f"link from {self.record.source!r:.80} to {self.record.target!r:.80} ({self.record.type!r:.80})"

    @property
    def keys(self) -> list[tuple[str, ...]]:
        return [("link", self.record.source, self.record.target, self.record.type)]

    @property
    def needs(self) -> list[tuple[str, str]]:
        return [("memory", self.record.source), ("memory", self.record.target)]

    def stored(self, known: Known) -> Link | None:
        return known.links.get((self.record.source, self.record.target, self.record.type))

    def is_same(self, stored: Link) -> bool:
        return stored.strength == self.record.strength


@dataclass(frozen=True)
class OwnerItem(Item):
    """An artifact or a document with what it was cut into."""

    counted = "owners"
    record: Owner
    chunks: tuple[Chunk, ...]

    @property
    def name(self) -> str:
        return f"{self.record.kind} {self.id!r:.80}"

    @property
    def keys(self) -> list[tuple[str, ...]]:
        owner = self.record
        return [(owner.kind, owner.id), *([("path", owner.kind, owner.path)] if owner.path else [])]

    def stored(self, known: Known) -> tuple[Owner | None, tuple[Chunk, ...]] | None:
        owner = self.record
        if owner.kind == "memory" and known.has("memory", owner.id):
            raise UsageError(f"a memory has the id {owner.id!r:.80}", remedy="give the document another one")
        by_id = known.numbers.get((owner.kind, "id", owner.id))
        by_path = known.numbers.get((owner.kind, "path", owner.path)) if owner.path else None
        if by_id is None:
            return None if by_path is None else (None, ())
        for _, stored, chunks in cut_owners(known.store, known.namespace, [by_id]):
            return stored if by_path in (None, by_id) else None, chunks
        return None, ()

    def is_same(self, stored: tuple[Owner | None, tuple[Chunk, ...]]) -> bool:
        return stored == (self.record, self.chunks)


@dataclass(frozen=True)
class KnowledgeItem(Item):
    """A map of an agent's knowledge."""

    kind, counted = "knowledge", "knowledge"
    record: Owner
    agent: str
    map: KnowledgeMap
    created_at: float
    updated_at: float
    deleted_at: float | None

    @property
    def name(self) -> str:
        return f"knowledge {self.id!r:.80} of agent {self.agent!r:.80}"

    def stored(self, known: Known) -> StoredKnowledge | None:
        stored = known.knowledge.get(self.id)
        if stored is None:
            known.refuse_document("knowledge", self.id, "forget that one")
        return stored

    def is_same(self, stored: StoredKnowledge) -> bool:
        """Compare what two items hold; whether one was deleted since does not count."""
        return (stored.record.agent, stored.record.metadata) == (self.agent, self.map.metadata)


class ContextItem(Item):
    """The context of an agent."""

    kind, counted = "the context of agent", "contexts"
    record: ContextRecord

    @property
    def id(self) -> str:
        """The name of the agent."""
        return self.record.name

    def stored(self, known: Known) -> ContextRecord | None:
        return known.store.knowledge(known.namespace).context(self.id)

    def is_same(self, stored: ContextRecord) -> bool:
        return replace(stored, updated_at=self.record.updated_at) == self.record


@dataclass(frozen=True)
class IssueItem(Item):
    """An issue with its history.

    Attributes:
        record: None where another program keeps it.
    """

    kind, counted = "issue", "issues"
    record: Issue | None
    issue: str
    events: tuple[IssueEvent, ...]
    reversal: Reversal | None

    @property
    def id(self) -> str:
        """Its id, wherever it is kept."""
        return self.issue

    def stored(self, known: Known) -> tuple[object, ...] | None:
        return self.stored_in(known.store.ledger(known.namespace))

    def stored_in(self, ledger: LedgerReading) -> tuple[object, ...] | None:
        """Return what a ledger has under its id."""
        here = (ledger.issue(self.id), tuple(ledger.events(self.id)), _unnumbered(ledger.reversal(self.id)))
        return None if here == (None, (), None) else here

    def is_same(self, stored: tuple[object, ...]) -> bool:
        return stored == (self.record, self.events, _unnumbered(self.reversal))


def _unnumbered(reversal: Reversal | None) -> Reversal | None:
    return None if reversal is None else replace(reversal, number=0)


class FactItem(Item):
    """A fact between two things that are given by their names."""

    kind, counted = "fact", "relations"
    record: FactInput

    @property
    def id(self) -> str:
        """The sentence that says it."""
        return self.record.fact

    def stored(self, known: Known) -> FactInput | None:
        return self.record if is_said(known.graph, self.record) else None

    def is_same(self, stored: FactInput) -> bool:
        return stored == self.record


def is_said(graph: GraphReading, fact: FactInput) -> bool:
    """Return whether things of these names are in a fact of this type that somebody gave in the same words."""
    ends = normal(fact.source), normal(fact.target)
    named = graph.named(ends)
    sources, targets = ([each.id for each in named.get(end, ())] for end in ends)
    return any(
        evidence is not None and not evidence.episode and evidence.text == fact.fact
        for one, other in (*product(sources, targets), *product(targets, sources))
        for relation in graph.facts(one, fact.type, other)
        for evidence in map(assertion_of, graph.happenings("relation", relation.id))
    )


@dataclass(frozen=True)
class GraphItem(Item):
    """A part of a graph: an episode, an entity or a fact.

    Attributes:
        mentions, happenings: where it is mentioned, and what happened to it.
    """

    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()

    @classmethod
    @abstractmethod
    def of(cls, graph: GraphReading, id_: str) -> Self | None:
        """Return what a graph has under an id, with what hangs on it."""

    def cleaned(self, cleaner: Cleaner) -> Self:
        """Return it without secrets."""
        mentions, happenings = cleaner.mentions(self.mentions), cleaner.happenings(self.happenings)
        return replace(self, mentions=mentions, happenings=happenings)

    def says(self, stored: Self, told: Callable[[Happening], object], *, is_earlier: bool = False) -> bool:
        """Return whether what is stored has what hangs on it, or is the same where `told` finds nothing to compare."""
        said = set(map(told, self.happenings)) - {None}
        return (
            (bool(said) or is_earlier or _comparable(stored.record) == _comparable(self.record))
            and said <= set(map(told, stored.happenings))
            and set(self.mentions) <= set(stored.mentions)
        )

    @abstractmethod
    def put(self, graph: GraphChange, texts: Texts) -> None:
        """Write it in the place of what has its id."""

    def put_hanging(self, graph: GraphChange) -> None:
        """Write where it is mentioned, and what happened to it."""
        graph.put_mentions(self.mentions)
        for happening in self.happenings:
            graph.put_happening(happening)

    def stored(self, known: Known) -> Self | None:
        return self.of(known.graph, self.id)

    @property
    def text(self) -> tuple[Entity, Sequence[Alias]] | Relation | None:
        """What its text is made of; None where it has none."""
        return None

    def missing(self, graph: GraphReading) -> bool:
        entities, episodes = ([id_ for kind, id_ in self.needs if kind == each] for each in ("entity", "episode"))
        return len(graph.entities(entities)) < len(entities) or len(graph.episodes(episodes)) < len(episodes)


class EpisodeItem(GraphItem):
    """An episode."""

    kind, counted = "episode", "episodes"
    record: Episode

    @classmethod
    def of(cls, graph: GraphReading, id_: str) -> Self | None:
        known = graph.episodes([id_]).get(id_)
        return None if known is None else cls("", known)

    def cleaned(self, cleaner: Cleaner) -> Self:
        return replace(self, record=cleaner.record(self.record))

    def put(self, graph: GraphChange, texts: Texts) -> None:  # noqa: ARG002
        graph.drop_mentions(graph.mentioned([self.id]).get(self.id, []))
        graph.put_episode(self.record)

    def is_same(self, stored: Self) -> bool:
        # A version of a memory that says what the one before it said is the same episode.
        return replace(stored.record, created_at=self.record.created_at, version=self.record.version) == self.record


@dataclass(frozen=True)
class EntityItem(GraphItem):
    """An entity with its names, where it is mentioned, and what happened to it."""

    kind, counted = "entity", "entities"
    record: Entity
    aliases: tuple[Alias, ...] = ()

    @property
    def needs(self) -> list[tuple[str, str]]:
        into = [("entity", self.record.merged_into)] if self.record.merged_into else []
        return [*into, *_episodes_of(self.mentions)]

    @property
    def text(self) -> tuple[Entity, Sequence[Alias]] | None:
        if self.record.merged_into:
            return None
        return self.record, [alias for alias in self.aliases if not alias.normal.startswith(KEY)]

    @classmethod
    def of(cls, graph: GraphReading, id_: str) -> Self | None:
        known = graph.entities([id_]).get(id_)
        if known is None:
            return None
        aliases, mentions = graph.aliases([id_]).get(id_, ()), graph.mentions("entity", [id_]).get(id_, ())
        return cls("", known, tuple(mentions), tuple(graph.happenings("entity", id_)), tuple(aliases))

    def cleaned(self, cleaner: Cleaner) -> Self:
        entity = cleaner.entity(self.record)
        return replace(super().cleaned(cleaner), record=entity, aliases=cleaner.aliases(entity, self.aliases))

    def put(self, graph: GraphChange, texts: Texts) -> None:
        graph.erase_entities([self.id])
        graph.put_entity(self.record, () if self.text is None else texts.of_entity(*self.text))
        for alias in self.aliases:
            graph.put_alias(alias)
        self.put_hanging(graph)

    def is_same(self, stored: Self) -> bool:
        names, known = ({alias.normal for alias in each.aliases} for each in (self, stored))
        is_earlier = bool(names) and stored.record.created_at == self.record.created_at
        return names <= known and self.says(stored, _comparable, is_earlier=is_earlier)


class RelationItem(GraphItem):
    """A fact with where it is said, and what happened to it."""

    kind, counted = "relation", "relations"
    record: Relation

    @property
    def needs(self) -> list[tuple[str, str]]:
        ends = dict.fromkeys((self.record.source, self.record.target))
        return [*(("entity", id_) for id_ in ends), *_episodes_of(self.mentions)]

    @property
    def text(self) -> Relation:
        return self.record

    @classmethod
    def of(cls, graph: GraphReading, id_: str) -> Self | None:
        known = graph.relations([id_]).get(id_)
        mentions = graph.mentions("relation", [id_]).get(id_, ())
        return None if known is None else cls("", known, tuple(mentions), tuple(graph.happenings("relation", id_)))

    def cleaned(self, cleaner: Cleaner) -> Self:
        return replace(super().cleaned(cleaner), record=cleaner.relation(self.record))

    def put(self, graph: GraphChange, texts: Texts) -> None:
        graph.erase_relations([self.id])
        graph.put_relation(self.record, texts.of_relation(self.record))
        self.put_hanging(graph)

    def is_same(self, stored: Self) -> bool:
        """Compare what is said of a fact, for the rest follows from that, and from what its entities are now."""
        return self.says(stored, assertion_of)


def _episodes_of(mentions: Iterable[Mention]) -> list[tuple[str, str]]:
    return [("episode", id_) for id_ in dict.fromkeys(mention.episode for mention in mentions)]


def _comparable(record: Entity | Relation | Happening) -> tuple[object, ...]:
    """Return the values of a record, a JSON object in the one form in which two of them are compared."""
    objects = {column.name for column in table_of(type(record)).record_columns if column.role == "json"}
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return tuple(json.dumps(json.loads(v), sort_keys=True) if name in objects else v for name, v in values.items())


def version_of(
    owner: Owner, record: MemoryRecord, created_at: float, expired_at: float | None, *, max_bytes: int
) -> Version:
    """Return a version of a memory that may be stored: what `remember` would refuse is refused here.

    Raises:
        UsageError: a value is of the wrong kind, empty, too large or out of its range.
    """
    if owner.kind != "memory":
        raise UsageError(f"the kind of a memory is {owner.kind!r}", remedy="give it as an owner")
    if owner.path or owner.stamp is not None:
        raise UsageError(f"a memory has the path {owner.path!r:.80}", remedy="a memory is of no file: leave it out")
    _refuse_odd_record(record)
    seconds("created_at", created_at)
    _refuse_odd(record)
    if expired_at is not None:
        seconds("expired_at", expired_at)
    elif record.status == "archived":
        raise UsageError("status is 'archived', but expired_at is empty", remedy="give the time when it was archived")
    if expired_at is not None and expired_at < created_at:
        raise UsageError(f"expired_at is {expired_at}, before created_at, {created_at}", remedy="give a later time")
    new = validate_memory(as_given(owner, record), max_bytes=max_bytes, force=record.is_forced)
    if new.tier == "ultra":
        raise UsageError("tier is 'ultra', which is never stored", remedy="give short, medium or long")
    cleaner = Cleaner()
    kept = {name: getattr(new, name) for name in ("category", "entities", "source", "metadata", "derived_from")}
    clean = cleaner.record(replace(owner, tags=new.tags)), cleaner.record(replace(record, **kept))
    return Version(*clean, created_at, expired_at, cleaner.taken())


def _refuse_odd_record(record: MemoryRecord) -> None:
    for name, low in (("version", 1), ("use_count", 0), ("review_count", 0)):
        number = getattr(record, name)
        if number < low:
            raise UsageError(f"{name} is {number}", remedy=f"give a whole number from {low}")
    if not 0.0 <= record.strength <= MAX_STRENGTH:
        raise UsageError(f"strength is {record.strength}", remedy=f"give a number from 0 to {MAX_STRENGTH:g}")
    if len(record.uses) > RECENT_USES:
        raise UsageError(f"uses holds {len(record.uses)} times, the limit is {RECENT_USES}", remedy="give the latest")
    if record.vault_path and not _is_in_vault(record.vault_path):
        raise UsageError(f"vault_path is {record.vault_path!r:.80}", remedy=f"give a path below {_VAULT}/, or none")


def _is_in_vault(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return parts[:1] == (_VAULT,) and ".." not in parts and "\0" not in path and "\\" not in path


def _refuse_odd(record: object) -> None:
    """Refuse a time that is none, a share that is not from 0 to 1, and in a graph a label that is too long."""
    table = table_of(type(record))
    is_of_graph = isinstance(record, Episode | Entity | Relation | Alias | Mention | Happening)
    for column in table.record_columns:
        value = getattr(record, column.name)
        if column.role in ("time", "times") and value is not None:
            for time in value if column.is_list else (value,):
                seconds(column.name, time)
        elif column.name in ("trust", "confidence"):
            fraction(column.name, value)
        elif is_of_graph and (column.role == "label" or column.name in _SHORT_TEXTS):
            short_text(column.name, value)


def link_item(place: str, entries: Entries, _: Redactor | None = None) -> LinkItem:
    """Return the link that stands in a line."""
    link = built(Link, entries["link"])
    for id_ in (link.source, link.target):
        reject_invalid_id(id_)
    if link.source == link.target or not short_text("type", link.type).strip():
        raise UsageError(
            "the link leads to itself, or has no type", remedy="name two different memories and the type of the link"
        )
    fraction("strength", link.strength)
    _refuse_odd(link)
    return LinkItem(place, link)


def owner_item(place: str, owner: Owner, chunks: tuple[Chunk, ...]) -> OwnerItem:
    """Return an owner that may be stored.

    Raises:
        UsageError: it has no id, or a passage's lines are none.
    """
    if not owner.id:
        raise UsageError("the id is ''", remedy="give each owner an id of its own")
    cleaner = Cleaner()
    clean = cleaner.record(owner)
    for chunk in chunks:
        if not 1 <= chunk.start_line <= chunk.end_line:
            raise UsageError(f"a passage has the lines {chunk.start_line}-{chunk.end_line}", remedy="count from 1")
    return OwnerItem(place, clean, tuple(map(cleaner.record, chunks)), secrets=cleaner.taken())


def _owner_item(place: str, entries: Entries, _: Redactor) -> OwnerItem:
    return owner_item(place, built(Owner, entries["owner"]), built_list(Chunk, "passages", entries["passages"]))


def _knowledge_item(place: str, entries: Entries, _: Redactor) -> KnowledgeItem:
    record, id_, deleted_at = (
        _object(KnowledgeRecord, "record", entries["record"]),
        entries["id"],
        entries["deleted_at"],
    )
    reject_invalid_id(id_)
    agent = checked_name(record["agent"])
    checked = checked_maps(agent, [record["metadata"]])
    if not checked.maps[0].content:
        raise UsageError("the map holds no text", remedy="leave it out")
    created_at, updated_at = (seconds(name, time_of(name, entries[name])) for name in ("created_at", "updated_at"))
    if deleted_at is not None:
        deleted_at = seconds("deleted_at", time_of("deleted_at", deleted_at))
        if deleted_at < created_at:
            raise UsageError(f"deleted_at is {deleted_at}, before created_at, {created_at}", remedy="give a later time")
    times = (created_at, updated_at, deleted_at)
    return KnowledgeItem(place, Owner(id_, "knowledge"), agent, checked.maps[0], *times, secrets=checked.secrets)


def _context_item(place: str, entries: Entries, _: Redactor) -> ContextItem:
    given = _object(ContextRecord, "context", entries["context"])
    updated_at = seconds("updated_at", time_of("updated_at", given["updated_at"]))
    context = AgentContext(checked_name(given["name"]), given["last_cursor"], given["metadata"])
    return ContextItem(place, record_of(context, updated_at))


def _object(cls: type, what: str, given: object) -> Entries:
    """Return the entries of an agent's record, which are checked as those that an agent gives."""
    names = [column.name for column in table_of(cls).exported]
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} is {given!r:.80}", remedy="give an object")
    refuse_other_entries(what, given, names, names)
    return given


def _episode_item(place: str, entries: Entries, cleaner: Redactor) -> EpisodeItem:
    episode = built(Episode, entries["episode"])
    reject_invalid_id(episode.id)
    if not episode.memory or episode.content:
        reject_invalid(episode.content, max_bytes=cleaner.max_bytes)
    _refuse_odd(episode)
    return EpisodeItem(place, episode)


def _entity_item(place: str, entries: Entries, _: Redactor) -> EntityItem:
    entity = built(Entity, entries["entity"])
    reject_invalid_id(entity.id)
    _refuse_odd(entity)
    if not entity.name.strip() or not entity.type.strip():
        raise UsageError("the entity has no name, or no type", remedy="give both")
    _readable("attributes", _refuse_odd_merged, entity)
    names = built_list(Alias, "aliases", entries["aliases"], entity=entity.id)
    refuse_many_names(names)
    for alias in names:
        _refuse_odd(alias)
    return EntityItem(place, entity, *_hanging(entries, "entity", entity.id), names)


def _relation_item(place: str, entries: Entries, _: Redactor) -> RelationItem:
    relation = built(Relation, entries["relation"])
    for id_ in (relation.id, relation.source, relation.target):
        reject_invalid_id(id_)
    _refuse_odd(relation)
    if not relation.type.strip() or len(relation.fact) > MAX_PER_FACT:
        raise UsageError(
            f"the fact has no type, or {len(relation.fact):,} characters",
            remedy=f"give its type, and a sentence of at most {MAX_PER_FACT:,} characters",
        )
    _readable("attributes", fact_of, relation)
    return RelationItem(place, relation, *_hanging(entries, "relation", relation.id))


def _hanging(entries: Entries, kind: Subject, subject: str) -> tuple[tuple[Mention, ...], tuple[Happening, ...]]:
    mentions = built_list(Mention, "mentions", entries["mentions"], kind=kind, subject=subject)
    for mention in mentions:
        reject_invalid_id(mention.episode)
        _refuse_odd(mention)
        if not 0 <= mention.start <= mention.end:
            raise UsageError(f"a mention is of the characters {mention.start}-{mention.end}", remedy="count from 0")
    happenings = built_list(Happening, "happenings", entries["happenings"], kind=kind, subject=subject)
    for happening in happenings:
        _refuse_odd(happening)
        _readable("detail", refuse_odd_detail, happening)
    return mentions, happenings


def _refuse_odd_merged(entity: Entity) -> None:
    if not all(isinstance(each, str) for each in merged_into(entity)):
        raise TypeError("what was merged into it is named otherwise than by ids")


def _readable(name: str, read: Callable[[Any], Any], what: object) -> None:
    """Refuse a JSON text that does not follow the rules of ours by which it is read."""
    try:
        read(what)
    except (ConfigError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise UsageError(f"{name} cannot be read: {error!s:.80}", remedy="export again") from error


def _issue_item(place: str, entries: Entries, cleaner: Redactor) -> IssueItem:
    id_ = entries["id"]
    reject_invalid_id(id_)
    issue = None if entries["issue"] is None else built(Issue, entries["issue"])
    events = built_list(IssueEvent, "events", entries["events"], issue=id_)
    reversal = None if entries["reversal"] is None else built(Reversal, entries["reversal"], issue=id_)
    for event in events:
        _refuse_odd(event)
    if reversal is not None:
        _refuse_odd_reversal(reversal)
    if issue is not None:
        _refuse_odd_issue(issue, id_)
        issue = cleaned_issue(issue, cleaner.text, cleaner.value)
        issue = replace(issue, labels=tuple(map(cleaner.text, issue.labels)))
    return IssueItem(place, issue, id_, tuple(map(cleaner.record, events)), reversal, secrets=cleaner.taken())


def _refuse_odd_issue(issue: Issue, id_: str) -> None:
    for each in issue.memory_ids:
        reject_invalid_id(each)
    if issue.id != id_:
        raise UsageError(f"the line of issue {id_!r:.80} holds issue {issue.id!r:.80}", remedy="give one id")
    if issue.priority not in _PRIORITIES or issue.retries < 0:
        raise UsageError(
            f"priority is {issue.priority}, retries is {issue.retries}", remedy="give 0 to 4, and 0 or more"
        )
    _refuse_odd(issue)
    for name, sort in (("dependencies", list), ("comments", list), ("rest", dict)):
        _parsed(name, getattr(issue, name), sort)


def _refuse_odd_reversal(reversal: Reversal) -> None:
    """Refuse steps that would reach beyond the vault when they are taken."""
    for each in reversal.memory_ids:
        reject_invalid_id(each)
    _refuse_odd(reversal)
    for step in _parsed("steps", reversal.steps, list):
        path = step.get("path") if isinstance(step, dict) else None
        if path is not None and not (isinstance(path, str) and _is_in_vault(path)):
            raise UsageError(f"a step has the path {path!r:.80}", remedy=f"give a path below {_VAULT}/")


def _parsed(name: str, text: str, sort: type) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is {text!r:.80}", remedy="give JSON as text") from error
    if not isinstance(found, sort):
        raise UsageError(f"{name} is {text!r:.80}", remedy="give " + ("an array" if sort is list else "an object"))
    return found


READERS: Final[Mapping[str, Callable[[str, Entries, Redactor], Item]]] = {
    "link": link_item,
    "owner": _owner_item,
    "knowledge": _knowledge_item,
    "context": _context_item,
    "episode": _episode_item,
    "entity": _entity_item,
    "relation": _relation_item,
    "issue": _issue_item,
}
"""How the item of a line is read, by its type; a UsageError says what of it cannot be kept."""
