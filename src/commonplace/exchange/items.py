"""Items: the content of a namespace, each item with everything that belongs to it.

An export writes items as lines, an import reads them, and `doctor --secrets` cleans them in the store. Each class
defines how its items are read from a store, checked, compared and written; the schema describes the fields of a line.
Episodes come first, then entities, then facts: an item refers only to earlier ones or to the store. Vectors and texts
are computed anew.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice, product
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeVar, cast

from commonplace.dataclasses import dataclass, field, fields, is_dataclass, replace
from commonplace.dates.time import seconds
from commonplace.errors import ConfigError, UsageError
from commonplace.exchange.codec import shape_of
from commonplace.graph.facts import Assertion, assertion_of, fact_of
from commonplace.graph.names import names_among, normal
from commonplace.graph.redact import Cleaner, refuse_many_names, refuse_odd_detail
from commonplace.graph.runtime import Texts, fact_text, merged_into, names_text
from commonplace.ingest.passages import PassageMaker
from commonplace.ingest.read import normalise
from commonplace.knowledge.config import NoVectors
from commonplace.knowledge.maps import AgentContext, checked_maps, checked_name, digest_of, record_of
from commonplace.ledger.erase import cleaned as cleaned_issue
from commonplace.ledger.erase import rewrite
from commonplace.memory.admission import writes_of
from commonplace.memory.validate import (
    MAX_METADATA_BYTES,
    fraction,
    input_fields,
    int_in,
    invalid,
    reject_invalid,
    reject_invalid_id,
    short_text,
    validate_memory,
)
from commonplace.redaction import Secret, with_placeholders
from commonplace.retention import MAX_STRENGTH, RECENT_USES
from commonplace.settings.paths import VAULT
from commonplace.store.graph import GraphReading
from commonplace.store.knowledge import KnowledgeReading
from commonplace.store.ledger import LedgerReading
from commonplace.store.memories import MemoryChange
from commonplace.store.owners import cut_owners, plain_owners
from commonplace.store.rows import names_of
from commonplace.store.schema import SCHEMA, table_of
from commonplace.store.store import Store
from commonplace.types import KINDS, Chunk, Filter, Link, MemoryRecord, Owner, Selection, StoredMemory
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation, Subject
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, KnowledgeWrite, StoredKnowledge
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal

MAX_PER_FACT: Final = 65_536
"""Maximum characters of the sentence of a fact; one that a user states has at most 1,000."""

GRAPH: Final = "graph"
LEDGER: Final = "ledger"
EXPORTED: Final = (*KINDS, GRAPH, LEDGER)
"""Kinds of items that an export can hold."""

_AT_ONCE: Final = 500
_MAX_PAGES: Final = 20
"""Maximum number of pages: each page scans all before it, so pages of a large namespace are larger."""
_EVER: Final = GraphFilter(with_past=True)
_IDS: Final = ("id", "source", "target", "memory_ids")
"""Columns of required ids; `source` is an id only in a link or a relation, elsewhere a label."""
_RANGES: Final = {
    **dict.fromkeys(("use_count", "review_count", "retries"), (0, 2**63)),
    "version": (1, 2**63),
    "priority": (0, 4),
}
_SHORT_TEXTS: Final = ("name", "source_description", "reason", "what")
"""Texts of a graph that are limited to the length of a label."""

Outcome = Literal["added", "unchanged", "conflict"]


class NamespaceReader:
    """The content of a namespace that items are compared with.

    Args:
        change: a write transaction, whose writes are seen too.
    """

    def __init__(self, store: Store, namespace: str, change: MemoryChange | None = None) -> None:
        self.store = store
        self.namespace = namespace
        self.graph: GraphReading = store.graph(namespace) if change is None else change.graph
        self.knowledge: KnowledgeReading = store.knowledge(namespace) if change is None else change.knowledge
        self.ledger: LedgerReading = store.ledger(namespace) if change is None else change.ledger

    def has(self, kind: str, id_: str) -> bool:
        """Return whether a memory (live or archived), an entity (merged or not) or an episode has this id."""
        if kind == "memory":
            return self.store.memory(self.namespace, id_) is not None
        return id_ in (self.graph.entities([id_]) if kind == "entity" else self.graph.episodes([id_]))

    @cached_property
    def items(self) -> dict[str, StoredKnowledge]:
        """The items of knowledge by id; of several with one id, the live one."""
        found = (*self.knowledge.items(deleted=True), *self.knowledge.items())
        return {item.owner.id: item for item in found}

    @cached_property
    def links(self) -> dict[tuple[str, str, str], Link]:
        return {(link.source, link.target, link.type): link for link in self.store.links(self.namespace, past=True)}

    @cached_property
    def paths(self) -> dict[tuple[str, str], int]:
        owners = plain_owners(self.store, self.namespace, Filter(kinds=KINDS))
        return {(owner.kind, owner.path): number for number, owner in owners if owner.path}


class Part(NamedTuple):
    """The items of one class in a namespace, and their number."""

    cls: type[Item]
    total: int
    items: Iterable[Item]


def parts_of(store: Store, namespace: str, kinds: Collection[str] = EXPORTED) -> list[Part]:
    """Return all items of a namespace, in the order of an export.

    Args:
        kinds: subset of `EXPORTED`.
    """
    parts = []
    if "memory" in kinds:
        total = store.count_memories(namespace, Selection())
        latest = _paged(lambda **page: store.memories(namespace, Selection(order="id", **page)), total)
        versions = (store.versions(namespace, memory.owner.id) for memory in latest)
        parts.append(Part(MemoryItem, total, (MemoryItem(tuple(version)) for version in versions)))
        links = [LinkItem(link) for link in store.links(namespace, past=True)]
        parts.append(Part(LinkItem, len(links), links))
    owner_kinds = tuple(kind for kind in KINDS if kind in kinds)
    owners = plain_owners(store, namespace, Filter(kinds=owner_kinds)) if owner_kinds else ()
    numbers = [number for number, owner in sorted(owners, key=lambda pair: (KINDS.index(pair[1].kind), pair[1].id))]
    cut = (OwnerItem(owner, chunks, number=number) for number, owner, chunks in cut_owners(store, namespace, numbers))
    parts.append(Part(OwnerItem, len(numbers), cut))
    if "knowledge" in kinds:
        knowledge = store.knowledge(namespace)
        stored = [*knowledge.items(), *knowledge.items(deleted=True)]
        items = [KnowledgeItem.of(item) for item in sorted(stored, key=lambda item: (item.record.agent, item.number))]
        contexts = [ContextItem(context) for context in knowledge.contexts()]
        parts += [Part(KnowledgeItem, len(items), items), Part(ContextItem, len(contexts), contexts)]
    if GRAPH in kinds:
        graph = store.graph(namespace)
        counts, entities = graph.counts(), _merged_last(graph.list_entities(_EVER))
        listed: tuple[tuple[type[GraphItem], int, Iterable[Any]], ...] = (
            (EpisodeItem, counts.episodes, _paged(partial(graph.list_episodes, _EVER), counts.episodes)),
            (EntityItem, len(entities), entities),
            (RelationItem, counts.relations, _paged(partial(graph.list_relations, _EVER), counts.relations)),
        )
        parts += [Part(cls, total, cls.read(graph, records)) for cls, total, records in listed]
    if LEDGER in kinds:
        ledger = store.ledger(namespace)
        # Of an issue that another program keeps, only the history is here.
        changed = sorted({*(event.issue for event in ledger.events()), *(item.issue for item in ledger.reversals())})
        ids = dict.fromkeys((*(issue.id for issue in ledger.issues(IssueSelection())), *changed))
        parts.append(Part(IssueItem, len(ids), (IssueItem.read(ledger, id_) for id_ in ids)))
    return parts


def _paged(read: Callable[..., list[Any]], total: int) -> Iterator[Any]:
    size = max(_AT_ONCE, -(-total // _MAX_PAGES))
    for offset in range(0, total, size):
        yield from read(limit=size, offset=offset)


def _merged_last(entities: Iterable[Entity]) -> list[Entity]:
    """Sort entities so that each comes after the one that it was merged into."""
    by_id = {entity.id: entity for entity in entities}
    ordered = dict[str, Entity]()
    for start in by_id.values():
        chain, entity = dict[str, Entity](), start
        while entity and entity.id not in ordered and entity.id not in chain:
            chain[entity.id] = entity
            entity = by_id.get(entity.merged_into)  # type: ignore[assignment] # the end of the chain
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


@dataclass(frozen=True)
class Item(ABC):
    """An item of a namespace; the fields that are not listed here are the entries of its line.

    Attributes:
        kind: type of its line.
        counted: entry of a report that counts it.
        name_format: format of its name in messages.
        place: where it was read.
        secrets: kinds of the secrets that were replaced in it.
        number: number of its owner, if it was read from a store.
        made: what `prepared` computed for writing it.
    """

    kind: ClassVar[str]
    counted: ClassVar[str]
    name_format: ClassVar[str] = "{0.kind} {0.key!r}"
    place: str = field(default="", kw_only=True)
    secrets: tuple[str, ...] = field(default=(), kw_only=True)
    number: int = field(default=0, kw_only=True)
    made: Any = field(default=None, kw_only=True)

    @property
    def key(self) -> str:
        """The id of the item, unique among those of its kind."""
        return str(getattr(self, "id", "") or getattr(self, self.kind).id)

    @property
    def name(self) -> str:
        return self.name_format.format(self)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """Keys that no two items of an import may share."""
        return [(self.kind, self.key)]

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The (kind, id) of what the item refers to and must exist, without duplicates."""
        return []

    def records(self) -> Iterator[Any]:
        """Yield the records in the item's line."""
        for name in shape_of(type(self)).types:
            value = getattr(self, name)
            yield from filter(is_dataclass, value if isinstance(value, tuple) else (value,))

    def names(self) -> set[str]:
        """Return the names that identify the item, so that changing one makes it another item."""
        return {name for record in self.records() for name in names_of(record)}

    def checked(self, max_bytes: int) -> Self:
        """Validate the item; return it normalised, as it may be stored.

        Args:
            max_bytes: maximum bytes of UTF-8 of the content of a memory or an episode.

        Raises:
            UsageError: a value has the wrong type, is empty, too large or out of range.
        """
        del max_bytes
        for record in self.records():
            refuse_odd(record)
        return self

    def cleaned(self, cleaner: Cleaner) -> Self:
        """Return the item without secrets."""
        values = {name: getattr(self, name) for name in shape_of(type(self)).types}
        return replace(self, **{name: _cleaned(value, cleaner) for name, value in values.items()})

    @abstractmethod
    def stored(self, reader: NamespaceReader) -> Self | None:
        """Return the stored item of the same key, or None.

        Raises:
            UsageError: the item cannot be stored beside what the store holds.
        """

    def compared(self, stored: Self | None) -> Outcome:
        """Compare the item with the stored one."""
        return "added" if stored is None else "unchanged" if self.is_covered_by(stored) else "conflict"

    def is_covered_by(self, stored: Self) -> bool:
        """Return whether the stored item has the same content."""
        return list(map(comparable, self.records())) == list(map(comparable, stored.records()))

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:  # noqa: ARG003
        """Do the slow work of writing items and return them; best called before a transaction begins."""
        return items


class ChangeItem(Item):
    """An item that a write transaction of the store writes; owners and facts have their own writers."""

    @abstractmethod
    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:
        """Write the prepared item over the stored one, `previous`, and drop what belongs to that."""

    def mend(self, change: MemoryChange, texts: Texts, previous: Self) -> None:
        """Write the prepared, cleaned item over `previous`, which has secrets, and keep what belongs to that."""
        self.put(change, texts, previous)


def _cleaned(value: Any, cleaner: Cleaner) -> Any:
    if isinstance(value, tuple):
        return tuple(_cleaned(element, cleaner) for element in value)
    return cleaner.record(value) if is_dataclass(value) else value


def comparable(record: Any) -> tuple[object, ...]:
    """Return the values of a record for comparison, with JSON in a canonical form."""
    objects = shape_of(type(record)).objects
    values = {column.name: getattr(record, column.name) for column in fields(record)}
    return tuple(json.dumps(json.loads(v), sort_keys=True) if name in objects else v for name, v in values.items())


def refuse_odd(record: Any) -> None:
    """Refuse a value that is invalid for the role of its column."""
    is_of_graph = isinstance(record, Episode | Entity | Relation | Alias | Mention | Happening)
    for column in table_of(type(record)).record_columns:
        name, value = column.name, getattr(record, column.name)
        if column.role in ("time", "times") and value is not None:
            for time in value if column.is_list else (value,):
                seconds(name, time)
        elif name in ("trust", "confidence") or (name == "strength" and isinstance(record, Link)):
            fraction(name, value)
        elif name in _RANGES and isinstance(record, MemoryRecord | Issue):
            int_in(name, value, *_RANGES[name])
        elif name in _IDS and column.is_name:
            for id_ in value if column.is_list else (value,):
                reject_invalid_id(id_)
        elif is_of_graph and (column.role == "label" or name in _SHORT_TEXTS):
            short_text(name, value)
        elif is_of_graph and column.role == "json" and len(value) > MAX_METADATA_BYTES:
            raise UsageError(f"{name} has {len(value):,} bytes, the limit is {MAX_METADATA_BYTES:,}")


def checked_version(version: StoredMemory, max_bytes: int) -> StoredMemory:
    """Validate a version of a memory as `remember` does; return it normalised, as it may be stored."""
    owner, record = version.owner, version.record
    if owner.kind != "memory" or owner.path or owner.stamp is not None:
        raise UsageError(
            f"a memory has the kind {owner.kind!r} and the path {owner.path!r:.80}",
            remedy="a memory is of no file: give anything else as an owner",
        )
    refuse_odd(record)
    if not 0.0 <= record.strength <= MAX_STRENGTH:
        raise invalid("strength", record.strength, f"give a number from 0 to {MAX_STRENGTH:g}")
    if len(record.uses) > RECENT_USES:
        raise UsageError(f"uses holds {len(record.uses)} times, the limit is {RECENT_USES}", remedy="give the latest")
    if record.vault_path and not _is_in_vault(record.vault_path):
        raise invalid("vault_path", record.vault_path, f"give a path below {VAULT}/, or none")
    created_at = seconds("created_at", version.created_at)
    if version.expired_at is None and record.status == "archived":
        raise UsageError("status is 'archived', but expired_at is empty", remedy="give the time when it was archived")
    _refuse_early("expired_at", version.expired_at, created_at)
    memory = validate_memory(input_fields(owner, record), max_bytes=max_bytes, force=record.is_forced)
    if memory.tier == "ultra":
        raise UsageError("tier is 'ultra', which is never stored", remedy="give short, medium or long")
    kept = {name: getattr(memory, name) for name in ("category", "entities", "source", "metadata", "derived_from")}
    return replace(version, owner=replace(owner, tags=memory.tags), record=replace(record, **kept))


@dataclass(frozen=True)
class MemoryItem(ChangeItem):
    """A memory with its versions, oldest first; only the last one may be live. Each version is a line of an export."""

    kind, counted = "memory", "memories"
    versions: tuple[StoredMemory, ...]

    @property
    def latest(self) -> StoredMemory:
        return self.versions[-1]

    @property
    def key(self) -> str:
        return self.latest.owner.id

    def records(self) -> Iterator[Any]:
        return (record for version in self.versions for record in (version.owner, version.record))

    def checked(self, max_bytes: int) -> Self:
        for before, after in zip(self.versions, self.versions[1:], strict=False):
            if before.expired_at is None:
                raise UsageError("an older version has no expired_at", remedy="only the last version may be live")
            if after.record.version <= before.record.version:
                raise UsageError(
                    f"version {after.record.version} follows version {before.record.version}",
                    remedy="give the oldest first",
                )
        return replace(self, versions=tuple(checked_version(version, max_bytes) for version in self.versions))

    def cleaned(self, cleaner: Cleaner) -> Self:
        clean = cleaner.record
        versions = (replace(entry, owner=clean(entry.owner), record=clean(entry.record)) for entry in self.versions)
        return replace(self, versions=tuple(versions))

    def stored(self, reader: NamespaceReader) -> Self | None:
        versions = reader.store.versions(reader.namespace, self.key)
        if not versions and reader.store.places(reader.namespace, "memory", [self.key]):
            raise UsageError(f"a document of the kind memory has the id {self.key!r:.80}", remedy="give it another one")
        return replace(self, versions=tuple(versions)) if versions else None

    def is_covered_by(self, stored: Self) -> bool:
        """Compare the latest versions' content and attributes, not their use."""

        def content(version: StoredMemory) -> tuple[object, ...]:
            owner, record = version.owner, version.record
            attributes = (record.category, record.entities, record.source, record.origin, record.derived_from)
            texts = (record.content, json.loads(record.metadata))
            return (*texts, *attributes, owner.tags, owner.session, owner.at, owner.title, owner.summary)

        return content(self.latest) == content(stored.latest)

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        versions = [(version.owner, version.record) for item in items for version in item.versions]
        writes = (replace(write, is_placed=True) for write in writes_of(texts.destination, versions))
        return [replace(item, made=[next(writes) for _ in item.versions]) for item in items]

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        if previous is not None:
            change.erase([self.key])
        for version, write in zip(self.versions, self.made, strict=True):
            change.add(write, created_at=version.created_at, expired_at=version.expired_at)

    def mend(self, change: MemoryChange, texts: Texts, previous: Self) -> None:
        store, namespace = texts.destination.store, texts.destination.namespace
        links, blocks = store.links(namespace, [self.key], past=True), store.blocks(namespace, [self.key])
        self.put(change, texts, previous)
        for link in links:
            change.link(link)
        for block in blocks:
            change.put(block)


def _refuse_early(name: str, time: float | None, created_at: float) -> None:
    if time is not None and seconds(name, time) < created_at:
        raise UsageError(f"{name} is {time}, before created_at, {created_at}", remedy="give a later time")


def _is_in_vault(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return parts[:1] == (VAULT,) and ".." not in parts and "\0" not in path and "\\" not in path


@dataclass(frozen=True)
class LinkItem(ChangeItem):
    """A link between two memories."""

    kind, counted, name_format = "link", "links", "link from {0.link.source!r} to {0.link.target!r} ({0.link.type!r})"
    link: Link

    @property
    def key(self) -> str:
        return f"{self.link.source}\0{self.link.target}\0{self.link.type}"

    @property
    def needs(self) -> list[tuple[str, str]]:
        return [("memory", self.link.source), ("memory", self.link.target)]

    def names(self) -> set[str]:
        return set()  # its names are those of its memories

    def checked(self, max_bytes: int) -> Self:
        link = super().checked(max_bytes).link
        if link.source == link.target or not short_text("type", link.type).strip():
            raise UsageError(
                "the link leads to itself, or has no type",
                remedy="name two different memories and the type of the link",
            )
        return self

    def stored(self, reader: NamespaceReader) -> Self | None:
        link = reader.links.get((self.link.source, self.link.target, self.link.type))
        return None if link is None else replace(self, link=link)

    def is_covered_by(self, stored: Self) -> bool:
        return stored.link.strength == self.link.strength

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        if previous is not None:
            change.unlink(previous.link.source, previous.link.target, previous.link.type)
        change.link(self.link)


@dataclass(frozen=True)
class OwnerItem(Item):
    """An artifact or a document with its passages."""

    kind, counted, name_format = "owner", "owners", "{0.owner.kind} {0.key!r}"
    owner: Owner
    passages: tuple[Chunk, ...]

    @property
    def keys(self) -> list[tuple[str, ...]]:
        owner = self.owner
        return [(owner.kind, owner.id), *([("path", owner.kind, owner.path)] if owner.path else [])]

    def checked(self, max_bytes: int) -> Self:  # noqa: ARG002
        if not self.owner.id:
            raise UsageError("the id is ''", remedy="give each owner an id of its own")
        for chunk in self.passages:
            if not 1 <= chunk.start_line <= chunk.end_line:
                raise UsageError(f"a passage has the lines {chunk.start_line}-{chunk.end_line}", remedy="count from 1")
        return self

    def cleaned(self, cleaner: Cleaner) -> Self:
        return replace(self, owner=cleaner.record(self.owner), passages=clean_passages(self.passages, cleaner))

    def stored(self, reader: NamespaceReader) -> Self | None:
        owner = self.owner
        if owner.kind == "memory" and reader.has("memory", owner.id):
            raise UsageError(f"a memory has the id {owner.id!r:.80}", remedy="give the document another one")
        number: Any = self.number or reader.store.owner_numbers(reader.namespace, owner.kind, [owner.id]).get(owner.id)
        by_path = reader.paths.get((owner.kind, owner.path)) if owner.path and not self.number else None
        if by_path not in (None, number):
            return replace(self, owner=Owner("", owner.kind), passages=())  # another owner has the path
        owners = cut_owners(reader.store, reader.namespace, [] if number is None else [number])
        return next((replace(self, owner=match, passages=cut, number=number) for _, match, cut in owners), None)

    def put_owner(self, texts: Texts) -> None:
        """Write the owner over its stored state in a transaction of its own; its stamp and time stay."""
        destination = texts.destination
        maker = PassageMaker(destination)
        writes = maker.complete([maker.keep(self.owner, self.passages)])
        store, namespace = destination.store, destination.namespace
        [(_, row)] = store.rows_of([(SCHEMA["owners"], {"number": [self.number]})], namespace)
        store.put_owners(namespace, writes, at=row["created_at"], made_by=destination.embedder.stamp)


def clean_passages(chunks: Sequence[Chunk], cleaner: Cleaner) -> tuple[Chunk, ...]:
    """Return the passages of one text without secrets, including secrets that span passages."""
    cleaned = list(chunks)
    while True:
        before = cleaned
        whole, spans = _laid_out(before)
        secrets, cleaned = cleaner.find(whole), []
        for chunk, (begin, end) in zip(before, spans, strict=True):
            chunk_secrets = [
                Secret(secret.kind, max(secret.start, begin) - begin, min(secret.end, end) - begin)
                for secret in secrets
                if secret.start < end and secret.end > begin
            ]
            text = cleaner.text(with_placeholders(chunk.text, chunk_secrets))
            cleaned.append(replace(chunk, text=text, heading=cleaner.text(chunk.heading)))
        if cleaned == before:
            return tuple(cleaned)


def _laid_out(chunks: Sequence[Chunk]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text that chunks were cut from, without blank lines, and the (start, end) of each chunk in it."""
    whole, spans, last_line = "", list[tuple[int, int]](), 0
    for chunk in chunks:
        shared = 0
        if chunk.start_line > last_line:
            whole += "\n" if whole else ""
        elif chunk.text:  # it may overlap the chunk before it
            end = whole[spans[-1][0] :][-len(chunk.text) :]
            start = end.find(chunk.text[0])
            while start >= 0 and not chunk.text.startswith(end[start:]):
                start = end.find(chunk.text[0], start + 1)
            shared = len(end) - start if start >= 0 else 0
        begin = len(whole) - shared
        whole += chunk.text[shared:]
        spans.append((begin, begin + len(chunk.text)))
        last_line = chunk.end_line
    return whole, spans


@dataclass(frozen=True)
class KnowledgeItem(ChangeItem):
    """A map of an agent's knowledge, live or deleted."""

    kind, counted, name_format = "knowledge", "knowledge", "knowledge {0.id!r} of agent {0.record.agent!r}"
    id: str
    created_at: float
    updated_at: float
    deleted_at: float | None
    record: KnowledgeRecord

    @classmethod
    def of(cls, stored: StoredKnowledge) -> KnowledgeItem:
        times = (stored.created_at, stored.updated_at, stored.deleted_at)
        return cls(stored.owner.id, *times, stored.record, number=stored.number)

    def names(self) -> set[str]:
        return {self.id, self.record.agent}

    def checked(self, max_bytes: int) -> Self:  # noqa: ARG002
        reject_invalid_id(self.id)
        agent = checked_name(self.record.agent)
        [record], secrets, _ = checked_maps(agent, [json.loads(self.record.metadata)])
        if not record.content:
            raise UsageError("the map holds no text", remedy="leave it out")
        seconds("updated_at", self.updated_at)
        _refuse_early("deleted_at", self.deleted_at, seconds("created_at", self.created_at))
        return replace(self, record=record, secrets=secrets)

    def cleaned(self, cleaner: Cleaner) -> Self:
        record = cleaner.record(self.record)
        return replace(self, record=replace(record, digest=digest_of(record.agent, record.metadata)))

    def stored(self, reader: NamespaceReader) -> Self | None:
        item = reader.knowledge.of_numbers([self.number]).get(self.number) if self.number else reader.items.get(self.id)
        if item is None and reader.store.places(reader.namespace, "knowledge", [self.id]):
            raise UsageError(f"a document of the kind knowledge has the id {self.id!r:.80}", remedy="forget that one")
        return None if item is None else KnowledgeItem.of(item)  # type: ignore[return-value] # Self

    def is_covered_by(self, stored: Self) -> bool:
        """Compare the maps, not whether one was deleted since."""
        record, stored_record = self.record, stored.record
        return (record.agent, record.metadata) == (stored_record.agent, stored_record.metadata)

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        destination, embedder = texts.destination, str(texts.destination.embedder.stamp.of("knowledge"))
        if all(item.number and not item.record.embedder for item in items):  # stored where vectorEnabled was false
            destination, embedder = replace(destination, embedder=NoVectors(destination.embedder.stamp)), ""
        maker = PassageMaker(destination)
        cut = [maker.prepare(Owner(item.id, "knowledge"), normalise(item.record.content), "text") for item in items]
        made = zip(items, maker.complete(cut), strict=True)
        return [
            replace(item, record=replace(item.record, embedder=embedder, vector=b""), made=write)
            for item, write in made
        ]

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        if previous is not None:
            change.knowledge.erase([previous.number])
        times = {name: getattr(self, name) for name in ("created_at", "updated_at", "deleted_at")}
        change.knowledge.put(KnowledgeWrite(self.made.owner, self.made.passages, self.record), **times)


@dataclass(frozen=True)
class ContextItem(ChangeItem):
    """The context of an agent."""

    kind, counted, name_format = "context", "contexts", "the context of agent {0.key!r}"
    context: ContextRecord

    @property
    def key(self) -> str:
        return self.context.name

    def checked(self, max_bytes: int) -> Self:  # noqa: ARG002
        source = self.context
        updated_at = seconds("updated_at", source.updated_at)
        context = AgentContext(checked_name(source.name), source.last_cursor, json.loads(source.metadata))
        return replace(self, context=record_of(context, updated_at))

    def stored(self, reader: NamespaceReader) -> Self | None:
        context = reader.knowledge.context(self.key)
        return None if context is None else replace(self, context=context)

    def is_covered_by(self, stored: Self) -> bool:
        return replace(stored.context, updated_at=self.context.updated_at) == self.context

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        change.knowledge.put_context(self.context)


@dataclass(frozen=True)
class IssueItem(ChangeItem):
    """An issue with its history.

    Attributes:
        issue: None if another program keeps it.
    """

    kind, counted = "issue", "issues"
    id: str
    issue: Issue | None
    events: tuple[IssueEvent, ...]
    reversal: Reversal | None

    @classmethod
    def read(cls, ledger: LedgerReading, id_: str) -> Self:
        """Read the item of an id from a ledger."""
        return cls(id_, ledger.issue(id_), tuple(ledger.events(id_)), ledger.reversal(id_))

    def checked(self, max_bytes: int) -> Self:
        reject_invalid_id(self.id)
        issue, reversal = self.issue, self.reversal
        if issue is not None:
            if issue.id != self.id:
                raise UsageError(f"the line of {self.name:.80} holds issue {issue.id!r:.80}", remedy="give one id")
            for name, sort in (("dependencies", list), ("comments", list), ("rest", dict)):
                _parsed(name, getattr(issue, name), sort)
        # The steps may be executed later: none may reach outside the vault.
        for step in _parsed("steps", reversal.steps, list) if reversal is not None else ():
            path = step.get("path") if isinstance(step, dict) else None
            if path is not None and not (isinstance(path, str) and _is_in_vault(path)):
                raise UsageError(f"a step has the path {path!r:.80}", remedy=f"give a path below {VAULT}/")
        return super().checked(max_bytes)

    def cleaned(self, cleaner: Cleaner) -> Self:
        issue = None if self.issue is None else cleaned_issue(self.issue, cleaner.text, cleaner.value)
        return replace(self, issue=issue, events=_cleaned(self.events, cleaner))

    def stored(self, reader: NamespaceReader) -> Self | None:
        stored = self.read(reader.ledger, self.id)
        return None if (stored.issue, stored.events, stored.reversal) == (None, (), None) else stored

    def is_covered_by(self, stored: Self) -> bool:
        unnumbered = [reversal and replace(reversal, number=0) for reversal in (self.reversal, stored.reversal)]
        return (self.issue, self.events, unnumbered[0]) == (stored.issue, stored.events, unnumbered[1])

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        rewrite(change.ledger, self.id, self.issue, self.events)  # its reversal stays


def _parsed(name: str, text: str, type_: type) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is {text!r:.80}", remedy="give JSON as text") from error
    if not isinstance(value, type_):
        raise UsageError(f"{name} is {text!r:.80}", remedy="give " + ("an array" if type_ is list else "an object"))
    return value


@dataclass(frozen=True)
class FactItem(Item):
    """A fact of another system between two entities given by name; `types`: the types of the two."""

    kind, counted = "fact", "relations"
    fact: Assertion
    types: tuple[str, str]

    @property
    def key(self) -> str:
        return self.fact.text

    def stored(self, reader: NamespaceReader) -> Self | None:
        """Return the item if a fact of its type between entities of its names was stated in the same words."""
        graph, fact = reader.graph, self.fact
        ends = normal(fact.source), normal(fact.target)
        entities = graph.entities_by_name(ends)
        sources, targets = ([entity.id for entity in entities.get(end, ())] for end in ends)
        is_stated = any(
            evidence is not None and not evidence.episode and evidence.text == fact.text
            for left, right in (*product(sources, targets), *product(targets, sources))
            for relation in graph.facts(left, fact.type, right)
            for evidence in map(assertion_of, graph.happenings("relation", relation.id))
        )
        return self if is_stated else None

    def is_covered_by(self, stored: Self) -> bool:
        return stored is self

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        names = sorted({name for item in items for name in (item.fact.source, item.fact.target)})
        texts.prepare([*names, *(fact_text(item.fact.text, item.fact.type) for item in items)])
        return items


@dataclass(frozen=True)
class GraphItem(ChangeItem):
    """An item of the graph: an episode, an entity or a fact.

    An entity or a fact grows with later episodes: if the store already has all of an imported one, the stored state is
    the same or newer, and stays.
    """

    @classmethod
    def read(cls, graph: GraphReading, records: Iterable[Any]) -> Iterator[Self]:
        """Yield the items of records, with their aliases, mentions and happenings."""
        remaining, names, new_item = iter(records), shape_of(cls).types, cast("Callable[..., Self]", cls)
        while batch := list(islice(remaining, _AT_ONCE)):
            ids, kind = [record.id for record in batch], cast("Subject", cls.kind)
            aliases = graph.aliases(ids) if "aliases" in names else {}
            mentions = graph.mentions(kind, ids) if "mentions" in names else {}
            for record in batch:
                parts: dict[str, Any] = {"aliases": aliases.get(record.id, ()), "mentions": mentions.get(record.id, ())}
                if "happenings" in names:
                    parts["happenings"] = graph.happenings(kind, record.id)
                yield new_item(record, **{name: tuple(rows) for name, rows in parts.items() if name in names})

    def stored(self, reader: NamespaceReader) -> Self | None:
        rows = getattr(reader.graph, self.counted)([self.key])  # the method of that name
        return next(self.read(reader.graph, rows.values()), None)

    def names(self) -> set[str]:
        return {self.key}  # its other names belong to what it refers to

    @property
    def text(self) -> str:
        """The text that is indexed for search; "" if none is."""
        return ""

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        texts.prepare(item.text for item in items)
        return items


@dataclass(frozen=True)
class EpisodeItem(GraphItem):
    """An episode."""

    kind, counted = "episode", "episodes"
    episode: Episode

    def checked(self, max_bytes: int) -> Self:
        if not self.episode.memory or self.episode.content:
            reject_invalid(self.episode.content, max_bytes=max_bytes)
        return super().checked(max_bytes)

    def is_covered_by(self, stored: Self) -> bool:
        # A version of a memory with the same content as the version before is the same episode.
        episode = self.episode
        return replace(stored.episode, created_at=episode.created_at, version=episode.version) == episode

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        change.graph.drop(Mention, episode=self.key)
        change.graph.put(self.episode)

    def mend(self, change: MemoryChange, texts: Texts, previous: Self) -> None:  # noqa: ARG002
        change.graph.put(self.episode)


@dataclass(frozen=True)
class EntityItem(GraphItem):
    """An entity with its aliases, mentions and happenings."""

    kind, counted = "entity", "entities"
    entity: Entity
    aliases: tuple[Alias, ...] = ()
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()

    @property
    def needs(self) -> list[tuple[str, str]]:
        into = [("entity", self.entity.merged_into)] if self.entity.merged_into else []
        return [*into, *_episodes_of(self.mentions)]

    @property
    def text(self) -> str:
        names = [alias.name for alias in names_among(self.aliases)]
        return "" if self.entity.merged_into else names_text(self.entity.name, names)

    def checked(self, max_bytes: int) -> Self:
        if not self.entity.name.strip() or not self.entity.type.strip():
            raise UsageError("the entity has no name, or no type", remedy="give both")
        merged_ids = _readable("attributes", lambda entity: [*merged_into(entity)], self.entity)
        if not all(isinstance(id_, str) for id_ in merged_ids):
            raise UsageError(
                "attributes cannot be read: what was merged into it is named otherwise than by ids",
                remedy="export again",
            )
        refuse_many_names(self.aliases)
        _refuse_odd_history(self.mentions, self.happenings)
        return super().checked(max_bytes)

    def cleaned(self, cleaner: Cleaner) -> Self:
        entity = cleaner.of_graph(self.entity)
        clean = replace(self, entity=entity, aliases=cleaner.aliases(entity, self.aliases))
        return _with_clean_history(clean, cleaner)

    def is_covered_by(self, stored: Self) -> bool:
        """Return whether the item is the stored one or an earlier state of it, with fewer names and mentions."""
        names, stored_names = ({alias.normal for alias in item.aliases} for item in (self, stored))
        is_earlier = bool(names) and stored.entity.created_at == self.entity.created_at
        return names <= stored_names and _is_within(self, stored, comparable, is_earlier=is_earlier)

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        names = names_among(self.aliases)
        change.graph.erase_entities([self.key])
        change.graph.put_entity(self.entity, texts.of_entity(self.entity, names) if self.text else ())
        change.graph.put(*self.aliases, *self.mentions, *self.happenings)


@dataclass(frozen=True)
class RelationItem(GraphItem):
    """A fact with its mentions and happenings."""

    kind, counted = "relation", "relations"
    relation: Relation
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()

    @property
    def needs(self) -> list[tuple[str, str]]:
        ends = dict.fromkeys((self.relation.source, self.relation.target))
        return [*(("entity", id_) for id_ in ends), *_episodes_of(self.mentions)]

    @property
    def text(self) -> str:
        return fact_text(self.relation.fact, self.relation.type)

    def checked(self, max_bytes: int) -> Self:
        relation = self.relation
        if not relation.type.strip() or len(relation.fact) > MAX_PER_FACT:
            raise UsageError(
                f"the fact has no type, or {len(relation.fact):,} characters",
                remedy=f"give its type, and a sentence of at most {MAX_PER_FACT:,} characters",
            )
        _readable("attributes", fact_of, relation)
        _refuse_odd_history(self.mentions, self.happenings)
        return super().checked(max_bytes)

    def cleaned(self, cleaner: Cleaner) -> Self:
        return _with_clean_history(replace(self, relation=cleaner.of_graph(self.relation)), cleaner)

    def is_covered_by(self, stored: Self) -> bool:
        """Compare the assertions; everything else follows from them and from the current entities."""
        return _is_within(self, stored, assertion_of)

    def put(self, change: MemoryChange, texts: Texts, previous: Self | None) -> None:  # noqa: ARG002
        change.graph.erase_relations([self.key])
        change.graph.put_relation(self.relation, texts.of_relation(self.relation))
        change.graph.put(*self.mentions, *self.happenings)


def _episodes_of(mentions: Iterable[Mention]) -> list[tuple[str, str]]:
    return [("episode", id_) for id_ in dict.fromkeys(mention.episode for mention in mentions)]


def _is_within(
    item: EntityItem | RelationItem, stored: Any, key: Callable[[Happening], object], *, is_earlier: bool = False
) -> bool:
    """Return whether `stored` has the mentions and happening keys of `item`; if it has no keys, compare the records."""
    keys = set(map(key, item.happenings)) - {None}
    return (
        (bool(keys) or is_earlier or comparable(getattr(item, item.kind)) == comparable(getattr(stored, item.kind)))
        and keys <= set(map(key, stored.happenings))
        and set(item.mentions) <= set(stored.mentions)
    )


HistoryItem = TypeVar("HistoryItem", bound=EntityItem | RelationItem)


def _with_clean_history(item: HistoryItem, cleaner: Cleaner) -> HistoryItem:
    return replace(item, mentions=cleaner.mentions(item.mentions), happenings=cleaner.happenings(item.happenings))


def _refuse_odd_history(mentions: Iterable[Mention], happenings: Iterable[Happening]) -> None:
    for mention in mentions:
        if not 0 <= mention.start <= mention.end:
            raise UsageError(f"a mention is of the characters {mention.start}-{mention.end}", remedy="count from 0")
    for happening in happenings:
        _readable("detail", refuse_odd_detail, happening)


def _readable(name: str, read: Callable[[Any], Any], record: object) -> Any:
    try:
        return read(record)
    except (ConfigError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise UsageError(f"{name} cannot be read: {error!s:.80}", remedy="export again") from error


ITEMS: Final[Mapping[str, type[Item]]] = {
    cls.kind: cls
    for cls in (
        MemoryItem,
        LinkItem,
        OwnerItem,
        KnowledgeItem,
        ContextItem,
        EpisodeItem,
        EntityItem,
        RelationItem,
        IssueItem,
    )
}
"""The classes of items by the type of their line."""
