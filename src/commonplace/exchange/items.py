"""Items: what a namespace holds, each with all that hangs on it.

An export writes their lines, an import reads them, and `doctor --secrets` cleans them where they stand. Each class says
how its items are read from a store, checked, compared and written; fields that go into a line are described by the
schema. Episodes come first, then entities, then facts: an item refers only to earlier ones or to the store. Vectors
and texts are computed anew.
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
    as_given,
    fraction,
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
"""Characters of the sentence that says a fact; one that was given has at most 1,000."""

GRAPH: Final = "graph"
LEDGER: Final = "ledger"
EXPORTED: Final = (*KINDS, GRAPH, LEDGER)
"""What an export may be of."""

_AT_ONCE: Final = 500
_MAX_PAGES: Final = 20
"""Each page costs a look at all before it: with a million memories a page holds more of them."""
_EVER: Final = GraphFilter(with_past=True)
_IDS: Final = ("id", "source", "target", "memory_ids")
"""Columns of ids that must be there; `source` of anything but a link or relation is a label."""
_RANGES: Final = {
    **dict.fromkeys(("use_count", "review_count", "retries"), (0, 2**63)),
    "version": (1, 2**63),
    "priority": (0, 4),
}
_SHORT_TEXTS: Final = ("name", "source_description", "reason", "what")
"""Texts of a graph that are of a label's length."""

Outcome = Literal["added", "unchanged", "conflict"]


class Known:
    """What a namespace holds, as far as items are compared with it.

    Args:
        change: a write transaction, whose writes count too.
    """

    def __init__(self, store: Store, namespace: str, change: MemoryChange | None = None) -> None:
        self.store = store
        self.namespace = namespace
        self.graph: GraphReading = store.graph(namespace) if change is None else change.graph
        self.knowledge: KnowledgeReading = store.knowledge(namespace) if change is None else change.knowledge
        self.ledger: LedgerReading = store.ledger(namespace) if change is None else change.ledger

    def has(self, kind: str, id_: str) -> bool:
        """Return whether there is a memory, live or archived, an entity, be it merged, or an episode of that id."""
        if kind == "memory":
            return self.store.memory(self.namespace, id_) is not None
        return id_ in (self.graph.entities([id_]) if kind == "entity" else self.graph.episodes([id_]))

    @cached_property
    def items(self) -> dict[str, StoredKnowledge]:
        """The items of knowledge by id; of several with one id the live one."""
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
    """The items of one class that a namespace holds, and how many they are."""

    cls: type[Item]
    total: int
    items: Iterable[Item]


def parts_of(store: Store, namespace: str, wanted: Collection[str] = EXPORTED) -> list[Part]:
    """Return all items of a namespace, in the order of an export.

    Args:
        wanted: some of `EXPORTED`.
    """
    parts = []
    if "memory" in wanted:
        total = store.count_memories(namespace, Selection())
        latest = _paged(lambda **page: store.memories(namespace, Selection(order="id", **page)), total)
        versions = (store.versions(namespace, each.owner.id) for each in latest)
        parts.append(Part(MemoryItem, total, (MemoryItem(tuple(version)) for version in versions)))
        links = [LinkItem(link) for link in store.links(namespace, past=True)]
        parts.append(Part(LinkItem, len(links), links))
    kinds = tuple(kind for kind in KINDS if kind in wanted)
    owners = plain_owners(store, namespace, Filter(kinds=kinds)) if kinds else ()
    numbers = [number for number, owner in sorted(owners, key=lambda each: (KINDS.index(each[1].kind), each[1].id))]
    cut = (OwnerItem(owner, chunks, number=number) for number, owner, chunks in cut_owners(store, namespace, numbers))
    parts.append(Part(OwnerItem, len(numbers), cut))
    if "knowledge" in wanted:
        knowledge = store.knowledge(namespace)
        stored = [*knowledge.items(), *knowledge.items(deleted=True)]
        items = [KnowledgeItem.of(each) for each in sorted(stored, key=lambda each: (each.record.agent, each.number))]
        contexts = [ContextItem(context) for context in knowledge.contexts()]
        parts += [Part(KnowledgeItem, len(items), items), Part(ContextItem, len(contexts), contexts)]
    if GRAPH in wanted:
        graph = store.graph(namespace)
        counts, entities = graph.counts(), _merged_last(graph.list_entities(_EVER))
        listed: tuple[tuple[type[GraphItem], int, Iterable[Any]], ...] = (
            (EpisodeItem, counts.episodes, _paged(partial(graph.list_episodes, _EVER), counts.episodes)),
            (EntityItem, len(entities), entities),
            (RelationItem, counts.relations, _paged(partial(graph.list_relations, _EVER), counts.relations)),
        )
        parts += [Part(cls, total, cls.read(graph, records)) for cls, total, records in listed]
    if LEDGER in wanted:
        ledger = store.ledger(namespace)
        # Of an issue that another program keeps, only what was done on it is here.
        elsewhere = sorted({*(event.issue for event in ledger.events()), *(each.issue for each in ledger.reversals())})
        ids = dict.fromkeys((*(issue.id for issue in ledger.issues(IssueSelection())), *elsewhere))
        parts.append(Part(IssueItem, len(ids), (IssueItem.read(ledger, id_) for id_ in ids)))
    return parts


def _paged(read: Callable[..., list[Any]], total: int) -> Iterator[Any]:
    size = max(_AT_ONCE, -(-total // _MAX_PAGES))
    for offset in range(0, total, size):
        yield from read(limit=size, offset=offset)


def _merged_last(entities: Iterable[Entity]) -> list[Entity]:
    """Put every entity behind the one that it was merged into."""
    known = {entity.id: entity for entity in entities}
    ordered = dict[str, Entity]()
    for each in known.values():
        chain, entity = dict[str, Entity](), each
        while entity and entity.id not in ordered and entity.id not in chain:
            chain[entity.id] = entity
            entity = known.get(entity.merged_into)  # type: ignore[assignment] # the end of the chain
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


@dataclass(frozen=True)
class Item(ABC):
    """Something that a namespace holds; the fields that are not listed here are the entries of its line.

    Attributes:
        kind: the type of its line.
        counted: the entry of a report under which it is counted.
        called: what it is called in messages.
        place: where it was read.
        secrets: the kinds of those that were replaced in it.
        number: of an owner, where it was read from a store.
        made: what takes long to make for its writing.
    """

    kind: ClassVar[str]
    counted: ClassVar[str]
    called: ClassVar[str] = "{0.kind} {0.key!r}"
    place: str = field(default="", kw_only=True)
    secrets: tuple[str, ...] = field(default=(), kw_only=True)
    number: int = field(default=0, kw_only=True)
    made: Any = field(default=None, kw_only=True)

    @property
    def key(self) -> str:
        """The id that distinguishes it from others of its kind."""
        return str(getattr(self, "id", "") or getattr(self, self.kind).id)

    @property
    def name(self) -> str:
        return self.called.format(self)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """What no two items of an import may have in common."""
        return [(self.kind, self.key)]

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The (kind, id) of what must be there, each once."""
        return []

    def records(self) -> Iterator[Any]:
        """Yield the records in its line."""
        for name in shape_of(type(self)).types:
            value = getattr(self, name)
            yield from filter(is_dataclass, value if isinstance(value, tuple) else (value,))

    def names(self) -> set[str]:
        """Return the names in it, which cannot be changed without making it another thing."""
        return {name for record in self.records() for name in names_of(record)}

    def checked(self, max_bytes: int) -> Self:
        """Return it as it may be stored.

        Args:
            max_bytes: the most bytes of UTF-8 that the content of a memory or an episode may have.

        Raises:
            UsageError: a value is of the wrong kind, empty, too large or out of its range.
        """
        del max_bytes
        for record in self.records():
            refuse_odd(record)
        return self

    def cleaned(self, cleaner: Cleaner) -> Self:
        """Return it without secrets."""
        values = {name: getattr(self, name) for name in shape_of(type(self)).types}
        return replace(self, **{name: _cleaned(value, cleaner) for name, value in values.items()})

    @abstractmethod
    def stored(self, known: Known) -> Self | None:
        """Return what is stored in its place, None where nothing is.

        Raises:
            UsageError: it cannot be kept beside what is there.
        """

    def compared(self, stored: Self | None) -> Outcome:
        """Compare it with what is stored."""
        return "added" if stored is None else "unchanged" if self.is_said_by(stored) else "conflict"

    def is_said_by(self, stored: Self) -> bool:
        """Return whether what is stored says what it says."""
        return list(map(comparable, self.records())) == list(map(comparable, stored.records()))

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:  # noqa: ARG003
        """Return items ready to be written, what takes long done; best before a transaction begins."""
        return items


class ChangeItem(Item):
    """An item that a change of the store writes; owners and facts have writers of their own."""

    @abstractmethod
    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:
        """Write it, prepared, in the place of what is stored; what hangs on that goes."""

    def mend(self, change: MemoryChange, texts: Texts, was: Self) -> None:
        """Write it, prepared, in the place of what it was with its secrets; what hangs on that stays."""
        self.put(change, texts, was)


def _cleaned(value: Any, cleaner: Cleaner) -> Any:
    if isinstance(value, tuple):
        return tuple(_cleaned(each, cleaner) for each in value)
    return cleaner.record(value) if is_dataclass(value) else value


def comparable(record: Any) -> tuple[object, ...]:
    """Return the values of a record, JSON in the one form in which two of them are compared."""
    objects = shape_of(type(record)).objects
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    return tuple(json.dumps(json.loads(v), sort_keys=True) if name in objects else v for name, v in values.items())


def refuse_odd(record: Any) -> None:
    """Refuse a value that no record of this class has, by the role of its column."""
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
    """Return a version of a memory as it may be stored: what `remember` would refuse is refused here."""
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
    new = validate_memory(as_given(owner, record), max_bytes=max_bytes, force=record.is_forced)
    if new.tier == "ultra":
        raise UsageError("tier is 'ultra', which is never stored", remedy="give short, medium or long")
    kept = {name: getattr(new, name) for name in ("category", "entities", "source", "metadata", "derived_from")}
    return replace(version, owner=replace(owner, tags=new.tags), record=replace(record, **kept))


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
        versions = (replace(each, owner=clean(each.owner), record=clean(each.record)) for each in self.versions)
        return replace(self, versions=tuple(versions))

    def stored(self, known: Known) -> Self | None:
        versions = known.store.versions(known.namespace, self.key)
        if not versions and known.store.places(known.namespace, "memory", [self.key]):
            raise UsageError(f"a document of the kind memory has the id {self.key!r:.80}", remedy="give it another one")
        return replace(self, versions=tuple(versions)) if versions else None

    def is_said_by(self, stored: Self) -> bool:
        """Compare the words and what was said about them, not how they were used since."""

        def said(version: StoredMemory) -> tuple[object, ...]:
            owner, record = version.owner, version.record
            about = (record.category, record.entities, record.source, record.origin, record.derived_from)
            words = (record.content, json.loads(record.metadata))
            return (*words, *about, owner.tags, owner.session, owner.at, owner.title, owner.summary)

        return said(self.latest) == said(stored.latest)

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        versions = [(version.owner, version.record) for item in items for version in item.versions]
        writes = (replace(write, is_placed=True) for write in writes_of(texts.destination, versions))
        return [replace(item, made=[next(writes) for _ in item.versions]) for item in items]

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        if was is not None:
            change.erase([self.key])
        for version, write in zip(self.versions, self.made, strict=True):
            change.add(write, created_at=version.created_at, expired_at=version.expired_at)

    def mend(self, change: MemoryChange, texts: Texts, was: Self) -> None:
        store, namespace = texts.destination.store, texts.destination.namespace
        links, blocks = store.links(namespace, [self.key], past=True), store.blocks(namespace, [self.key])
        self.put(change, texts, was)
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

    kind, counted, called = "link", "links", "link from {0.link.source!r} to {0.link.target!r} ({0.link.type!r})"
    link: Link

    @property
    def key(self) -> str:
        return f"{self.link.source}\0{self.link.target}\0{self.link.type}"

    @property
    def needs(self) -> list[tuple[str, str]]:
        return [("memory", self.link.source), ("memory", self.link.target)]

    def names(self) -> set[str]:
        return set()  # those of its memories

    def checked(self, max_bytes: int) -> Self:
        link = super().checked(max_bytes).link
        if link.source == link.target or not short_text("type", link.type).strip():
            raise UsageError(
                "the link leads to itself, or has no type",
                remedy="name two different memories and the type of the link",
            )
        return self

    def stored(self, known: Known) -> Self | None:
        link = known.links.get((self.link.source, self.link.target, self.link.type))
        return None if link is None else replace(self, link=link)

    def is_said_by(self, stored: Self) -> bool:
        return stored.link.strength == self.link.strength

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        if was is not None:
            change.unlink(was.link.source, was.link.target, was.link.type)
        change.link(self.link)


@dataclass(frozen=True)
class OwnerItem(Item):
    """An artifact or a document with what it was cut into."""

    kind, counted, called = "owner", "owners", "{0.owner.kind} {0.key!r}"
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

    def stored(self, known: Known) -> Self | None:
        owner = self.owner
        if owner.kind == "memory" and known.has("memory", owner.id):
            raise UsageError(f"a memory has the id {owner.id!r:.80}", remedy="give the document another one")
        number: Any = self.number or known.store.owner_numbers(known.namespace, owner.kind, [owner.id]).get(owner.id)
        by_path = known.paths.get((owner.kind, owner.path)) if owner.path and not self.number else None
        if by_path not in (None, number):
            return replace(self, owner=Owner("", owner.kind), passages=())  # another, whose place it would take
        found = cut_owners(known.store, known.namespace, [] if number is None else [number])
        return next((replace(self, owner=held, passages=cut, number=number) for _, held, cut in found), None)

    def put_owner(self, texts: Texts) -> None:
        """Write it in a transaction of its own, in the place of the one that it was, whose stamp and time stay."""
        destination = texts.destination
        maker = PassageMaker(destination)
        writes = maker.complete([maker.keep(self.owner, self.passages)])
        store, namespace = destination.store, destination.namespace
        [(_, row)] = store.rows_of([(SCHEMA["owners"], {"number": [self.number]})], namespace)
        store.put_owners(namespace, writes, at=row["created_at"], made_by=destination.embedder.stamp)


def clean_passages(chunks: Sequence[Chunk], cleaner: Cleaner) -> tuple[Chunk, ...]:
    """Return the passages of one text without secrets, also without one that goes from a passage to the next."""
    cleaned = list(chunks)
    while True:
        before = cleaned
        whole, spans = _laid_out(before)
        secrets, cleaned = cleaner.find(whole), []
        for chunk, (begin, end) in zip(before, spans, strict=True):
            inside = [
                Secret(secret.kind, max(secret.start, begin) - begin, min(secret.end, end) - begin)
                for secret in secrets
                if secret.start < end and secret.end > begin
            ]
            text = cleaner.text(with_placeholders(chunk.text, inside))
            cleaned.append(replace(chunk, text=text, heading=cleaner.text(chunk.heading)))
        if cleaned == before:
            return tuple(cleaned)


def _laid_out(chunks: Sequence[Chunk]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text that chunks were cut from, blank lines left out, and where each of them is in it."""
    whole, spans, last_line = "", list[tuple[int, int]](), 0
    for chunk in chunks:
        shared = 0
        if chunk.start_line > last_line:
            whole += "\n" if whole else ""
        elif chunk.text:  # it may begin with the end of the one before it
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
    """A map of an agent's knowledge, deleted or not."""

    kind, counted, called = "knowledge", "knowledge", "knowledge {0.id!r} of agent {0.record.agent!r}"
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
        [made], secrets, _ = checked_maps(agent, [json.loads(self.record.metadata)])
        if not made.content:
            raise UsageError("the map holds no text", remedy="leave it out")
        seconds("updated_at", self.updated_at)
        _refuse_early("deleted_at", self.deleted_at, seconds("created_at", self.created_at))
        return replace(self, record=made, secrets=secrets)

    def cleaned(self, cleaner: Cleaner) -> Self:
        record = cleaner.record(self.record)
        return replace(self, record=replace(record, digest=digest_of(record.agent, record.metadata)))

    def stored(self, known: Known) -> Self | None:
        stored = known.knowledge.of_numbers([self.number]).get(self.number) if self.number else known.items.get(self.id)
        if stored is None and known.store.places(known.namespace, "knowledge", [self.id]):
            raise UsageError(f"a document of the kind knowledge has the id {self.id!r:.80}", remedy="forget that one")
        return None if stored is None else KnowledgeItem.of(stored)  # type: ignore[return-value] # Self

    def is_said_by(self, stored: Self) -> bool:
        """Compare what two items hold; whether one was deleted since does not count."""
        own, other = self.record, stored.record
        return (own.agent, own.metadata) == (other.agent, other.metadata)

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        destination, embedder = texts.destination, str(texts.destination.embedder.stamp.of("knowledge"))
        if all(each.number and not each.record.embedder for each in items):  # stored where vectorEnabled was false
            destination, embedder = replace(destination, embedder=NoVectors(destination.embedder.stamp)), ""
        maker = PassageMaker(destination)
        cut = [maker.prepare(Owner(each.id, "knowledge"), normalise(each.record.content), "text") for each in items]
        made = zip(items, maker.complete(cut), strict=True)
        return [
            replace(each, record=replace(each.record, embedder=embedder, vector=b""), made=write)
            for each, write in made
        ]

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        if was is not None:
            change.knowledge.erase([was.number])
        times = {name: getattr(self, name) for name in ("created_at", "updated_at", "deleted_at")}
        change.knowledge.put(KnowledgeWrite(self.made.owner, self.made.passages, self.record), **times)


@dataclass(frozen=True)
class ContextItem(ChangeItem):
    """The context of an agent."""

    kind, counted, called = "context", "contexts", "the context of agent {0.key!r}"
    context: ContextRecord

    @property
    def key(self) -> str:
        return self.context.name

    def checked(self, max_bytes: int) -> Self:  # noqa: ARG002
        given = self.context
        updated_at = seconds("updated_at", given.updated_at)
        context = AgentContext(checked_name(given.name), given.last_cursor, json.loads(given.metadata))
        return replace(self, context=record_of(context, updated_at))

    def stored(self, known: Known) -> Self | None:
        context = known.knowledge.context(self.key)
        return None if context is None else replace(self, context=context)

    def is_said_by(self, stored: Self) -> bool:
        return replace(stored.context, updated_at=self.context.updated_at) == self.context

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        change.knowledge.put_context(self.context)


@dataclass(frozen=True)
class IssueItem(ChangeItem):
    """An issue with its history.

    Attributes:
        issue: None where another program keeps it.
    """

    kind, counted = "issue", "issues"
    id: str
    issue: Issue | None
    events: tuple[IssueEvent, ...]
    reversal: Reversal | None

    @classmethod
    def read(cls, ledger: LedgerReading, id_: str) -> Self:
        """Return what a ledger has under an id."""
        return cls(id_, ledger.issue(id_), tuple(ledger.events(id_)), ledger.reversal(id_))

    def checked(self, max_bytes: int) -> Self:
        reject_invalid_id(self.id)
        issue, reversal = self.issue, self.reversal
        if issue is not None:
            if issue.id != self.id:
                raise UsageError(f"the line of {self.name:.80} holds issue {issue.id!r:.80}", remedy="give one id")
            for name, sort in (("dependencies", list), ("comments", list), ("rest", dict)):
                _parsed(name, getattr(issue, name), sort)
        # Steps are taken one day: none may reach beyond the vault.
        for step in _parsed("steps", reversal.steps, list) if reversal is not None else ():
            path = step.get("path") if isinstance(step, dict) else None
            if path is not None and not (isinstance(path, str) and _is_in_vault(path)):
                raise UsageError(f"a step has the path {path!r:.80}", remedy=f"give a path below {VAULT}/")
        return super().checked(max_bytes)

    def cleaned(self, cleaner: Cleaner) -> Self:
        issue = None if self.issue is None else cleaned_issue(self.issue, cleaner.text, cleaner.value)
        return replace(self, issue=issue, events=_cleaned(self.events, cleaner))

    def stored(self, known: Known) -> Self | None:
        stored = self.read(known.ledger, self.id)
        return None if (stored.issue, stored.events, stored.reversal) == (None, (), None) else stored

    def is_said_by(self, stored: Self) -> bool:
        unnumbered = [each and replace(each, number=0) for each in (self.reversal, stored.reversal)]
        return (self.issue, self.events, unnumbered[0]) == (stored.issue, stored.events, unnumbered[1])

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        rewrite(change.ledger, self.id, self.issue, self.events)  # what undoes its change stays


def _parsed(name: str, text: str, sort: type) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is {text!r:.80}", remedy="give JSON as text") from error
    if not isinstance(found, sort):
        raise UsageError(f"{name} is {text!r:.80}", remedy="give " + ("an array" if sort is list else "an object"))
    return found


@dataclass(frozen=True)
class FactItem(Item):
    """A fact of another system between two things that are given by their names; `types`: of these."""

    kind, counted = "fact", "relations"
    fact: Assertion
    types: tuple[str, str]

    @property
    def key(self) -> str:
        return self.fact.text

    def stored(self, known: Known) -> Self | None:
        """Return it where things of these names are in a fact of this type that somebody gave in the same words."""
        graph, fact = known.graph, self.fact
        ends = normal(fact.source), normal(fact.target)
        named = graph.named(ends)
        sources, targets = ([each.id for each in named.get(end, ())] for end in ends)
        is_said = any(
            evidence is not None and not evidence.episode and evidence.text == fact.text
            for one, other in (*product(sources, targets), *product(targets, sources))
            for relation in graph.facts(one, fact.type, other)
            for evidence in map(assertion_of, graph.happenings("relation", relation.id))
        )
        return self if is_said else None

    def is_said_by(self, stored: Self) -> bool:
        return stored is self

    @classmethod
    def prepared(cls, items: Sequence[Self], texts: Texts) -> Sequence[Self]:
        names = sorted({name for each in items for name in (each.fact.source, each.fact.target)})
        texts.prepare([*names, *(fact_text(each.fact.text, each.fact.type) for each in items)])
        return items


@dataclass(frozen=True)
class GraphItem(ChangeItem):
    """A part of a graph: an episode, an entity or a fact.

    An entity or a fact grows with later episodes: where the store already holds all of an imported one, the stored
    state is the same or newer, and stays.
    """

    @classmethod
    def read(cls, graph: GraphReading, records: Iterable[Any]) -> Iterator[Self]:
        """Yield records of a graph with what hangs on them."""
        waiting, names, make = iter(records), shape_of(cls).types, cast("Callable[..., Self]", cls)
        while some := list(islice(waiting, _AT_ONCE)):
            ids, kind = [each.id for each in some], cast("Subject", cls.kind)
            aliases = graph.aliases(ids) if "aliases" in names else {}
            mentions = graph.mentions(kind, ids) if "mentions" in names else {}
            for each in some:
                found: dict[str, Any] = {"aliases": aliases.get(each.id, ()), "mentions": mentions.get(each.id, ())}
                if "happenings" in names:
                    found["happenings"] = graph.happenings(kind, each.id)
                yield make(each, **{name: tuple(rows) for name, rows in found.items() if name in names})

    def stored(self, known: Known) -> Self | None:
        found = getattr(known.graph, self.counted)([self.key])  # the method of that name
        return next(self.read(known.graph, found.values()), None)

    def names(self) -> set[str]:
        return {self.key}  # the others are those of what it names

    @property
    def text(self) -> str:
        """What it is found by, "" where it is not."""
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

    def is_said_by(self, stored: Self) -> bool:
        # A version of a memory that says what the one before it said is the same episode.
        own = self.episode
        return replace(stored.episode, created_at=own.created_at, version=own.version) == own

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        change.graph.drop(Mention, episode=self.key)
        change.graph.put(self.episode)

    def mend(self, change: MemoryChange, texts: Texts, was: Self) -> None:  # noqa: ARG002
        change.graph.put(self.episode)


@dataclass(frozen=True)
class EntityItem(GraphItem):
    """An entity with its names, where it is mentioned, and what happened to it."""

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
        names = [each.name for each in names_among(self.aliases)]
        return "" if self.entity.merged_into else names_text(self.entity.name, names)

    def checked(self, max_bytes: int) -> Self:
        if not self.entity.name.strip() or not self.entity.type.strip():
            raise UsageError("the entity has no name, or no type", remedy="give both")
        if not all(
            isinstance(each, str)
            for each in _readable("attributes", lambda entity: [*merged_into(entity)], self.entity)
        ):
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

    def is_said_by(self, stored: Self) -> bool:
        """Return whether it is the stored one, or was before that was named and mentioned further."""
        names, known = ({alias.normal for alias in each.aliases} for each in (self, stored))
        is_earlier = bool(names) and stored.entity.created_at == self.entity.created_at
        return names <= known and _is_within(self, stored, comparable, is_earlier=is_earlier)

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        names = names_among(self.aliases)
        change.graph.erase_entities([self.key])
        change.graph.put_entity(self.entity, texts.of_entity(self.entity, names) if self.text else ())
        change.graph.put(*self.aliases, *self.mentions, *self.happenings)


@dataclass(frozen=True)
class RelationItem(GraphItem):
    """A fact with where it is said, and what happened to it."""

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

    def is_said_by(self, stored: Self) -> bool:
        """Compare what is said of a fact, for the rest follows from that, and from what its entities are now."""
        return _is_within(self, stored, assertion_of)

    def put(self, change: MemoryChange, texts: Texts, was: Self | None) -> None:  # noqa: ARG002
        change.graph.erase_relations([self.key])
        change.graph.put_relation(self.relation, texts.of_relation(self.relation))
        change.graph.put(*self.mentions, *self.happenings)


def _episodes_of(mentions: Iterable[Mention]) -> list[tuple[str, str]]:
    return [("episode", id_) for id_ in dict.fromkeys(mention.episode for mention in mentions)]


def _is_within(
    own: EntityItem | RelationItem, stored: Any, told: Callable[[Happening], object], *, is_earlier: bool = False
) -> bool:
    """Return whether what is stored has what hangs on an item, or is the same where `told` finds nothing to compare."""
    said = set(map(told, own.happenings)) - {None}
    return (
        (bool(said) or is_earlier or comparable(getattr(own, own.kind)) == comparable(getattr(stored, own.kind)))
        and said <= set(map(told, stored.happenings))
        and set(own.mentions) <= set(stored.mentions)
    )


Told = TypeVar("Told", bound=EntityItem | RelationItem)


def _with_clean_history(item: Told, cleaner: Cleaner) -> Told:
    return replace(item, mentions=cleaner.mentions(item.mentions), happenings=cleaner.happenings(item.happenings))


def _refuse_odd_history(mentions: Iterable[Mention], happenings: Iterable[Happening]) -> None:
    for mention in mentions:
        if not 0 <= mention.start <= mention.end:
            raise UsageError(f"a mention is of the characters {mention.start}-{mention.end}", remedy="count from 0")
    for happening in happenings:
        _readable("detail", refuse_odd_detail, happening)


def _readable(name: str, read: Callable[[Any], Any], what: object) -> Any:
    """Return what `read` makes of a JSON text; one that does not follow our rules is refused."""
    try:
        return read(what)
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
"""The classes by the type of their line."""
