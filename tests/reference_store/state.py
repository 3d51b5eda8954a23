"""Everything that the reference store holds, and the transactions that change it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.reference_store.graph import GraphState
from tests.reference_store.ledger import LedgerState

from commonplace.errors import StoreError
from commonplace.store.filters import path_matcher
from commonplace.store.rows import refuse_unstorable
from commonplace.store.schema import is_reserved, numbers_after
from commonplace.types import (
    Embedding,
    Filter,
    Head,
    IndexEntry,
    JournalBlock,
    JournalPage,
    Link,
    MemoryWrite,
    NewPassage,
    Note,
    Owner,
    StoredMemory,
    TokenEntry,
)
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord, StoredKnowledge


@dataclass(frozen=True, slots=True)
class KnowledgeRow:
    """What an item of an agent's knowledge has besides its owner and passages."""

    record: KnowledgeRecord
    updated_at: float


@dataclass(frozen=True, slots=True)
class Row:
    """An owner, live or past, with its passages.

    Attributes:
        change: the change of its namespace that wrote it.
        first_passage: number of its first passage; the others follow without a gap.
        memory: what it was written from where it is a version of a memory; its record is the present one.
        knowledge: where it is an item of an agent's knowledge.
    """

    owner: Owner
    change: int
    first_passage: int
    passages: tuple[NewPassage, ...]
    created_at: float
    expired_at: float | None = None
    memory: MemoryWrite | None = None
    knowledge: KnowledgeRow | None = None

    @property
    def numbers(self) -> range:
        """The numbers of its passages."""
        return range(self.first_passage, self.first_passage + len(self.passages))

    def was_live(self, as_of: float) -> bool:
        """Return whether it is past and was what we knew at a time."""
        return self.expired_at is not None and self.created_at <= as_of < self.expired_at

    def counts(self, as_of: float | None) -> bool:
        """Return whether it is what we know, or with a time: whether it was that then."""
        if self.expired_at is None:
            return as_of is None or self.created_at <= as_of
        return as_of is not None and self.was_live(as_of)


@dataclass(slots=True)
class Space:
    """What one namespace holds.

    Attributes:
        number: which the numbers of its rows hold in their upper half.
        rows: by owner number; every version of a memory is one.
        contexts: by the agent's name.
        owner_of: owner number by passage number.
        by_id, by_path: numbers of live owners, by kind and id or non-empty path.
        changes: by change number, from 0, the next owner and passage numbers and the token; that of 0 is "".
        deletions: (change, passage number).
        next_owner, next_passage: the numbers that come next.
    """

    number: int = 1
    rows: dict[int, Row] = field(default_factory=dict)
    owner_of: dict[int, int] = field(default_factory=dict)
    by_id: dict[tuple[str, str], int] = field(default_factory=dict)
    by_path: dict[tuple[str, str], int] = field(default_factory=dict)
    links: dict[tuple[str, str, str], Link] = field(default_factory=dict)
    blocks: dict[str, JournalBlock] = field(default_factory=dict)
    pages: dict[str, JournalPage] = field(default_factory=dict)
    notes: dict[tuple[str, str], Note] = field(default_factory=dict)
    due: set[str] = field(default_factory=set)
    graph: GraphState = field(default_factory=GraphState)
    contexts: dict[str, ContextRecord] = field(default_factory=dict)
    ledger: LedgerState = field(default_factory=LedgerState)
    changes: list[tuple[int, int, str]] = field(default_factory=lambda: [(0, 0, "")])
    deletions: list[tuple[int, int]] = field(default_factory=list)
    next_owner: int = 0
    next_passage: int = 0

    def __post_init__(self) -> None:
        self.next_owner = self.next_owner or numbers_after(self.number) + 1
        self.next_passage = self.next_passage or numbers_after(self.number) + 1

    @property
    def head(self) -> Head:
        """The last change."""
        return Head(len(self.changes) - 1, self.changes[-1][2])

    def copy(self) -> Space:
        """Return a space that can be changed without changing this one."""
        return Space(
            self.number,
            dict(self.rows),
            dict(self.owner_of),
            dict(self.by_id),
            dict(self.by_path),
            dict(self.links),
            dict(self.blocks),
            dict(self.pages),
            dict(self.notes),
            set(self.due),
            self.graph.copy(),
            dict(self.contexts),
            self.ledger.copy(),
            list(self.changes),
            list(self.deletions),
            self.next_owner,
            self.next_passage,
        )

    def live(self) -> Iterator[tuple[int, Row]]:
        """Yield the live owners with their numbers."""
        return ((number, row) for number, row in self.rows.items() if row.expired_at is None)

    def passages(self, numbers: Sequence[int]) -> Iterator[tuple[int, Row, NewPassage]]:
        """Yield those of the passages that are here, with their owners."""
        for number in map(int, numbers):
            if number in self.owner_of:
                row = self.rows[self.owner_of[number]]
                yield number, row, row.passages[number - row.first_passage]

    def token_entries(self, numbers: Sequence[int]) -> list[TokenEntry]:
        """Return what scoring needs of those passages that are here, in the order given."""
        return [
            TokenEntry(
                number,
                self.owner_of[number],
                new.token_ids,
                new.vector,
                row.owner.kind,
                row.owner.at,
                row.owner.session,
            )
            for number, row, new in self.passages(numbers)
        ]

    def last_position(self, session: str) -> int:
        """Return the highest position of live owners in a session, -1 where there are none."""
        owners = [row.owner for _, row in self.live()]
        return max((owner.position for owner in owners if session and owner.session == session), default=-1)

    def versions(self, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        return [stored for stored in self.memories() if stored.owner.id == id_]

    def latest(self, id_: str) -> StoredMemory | None:
        """Return the version of a memory that was written last."""
        return next(iter(reversed(self.versions(id_))), None)

    def memories(self) -> list[StoredMemory]:
        """Return every version of every memory, by number."""
        return [
            StoredMemory(number, row.owner, row.memory.record, row.created_at, row.expired_at)
            for number, row in sorted(self.rows.items())
            if row.memory is not None
        ]

    def knowledge(self) -> list[StoredKnowledge]:
        """Return every item of an agent's knowledge, live or past, by number."""
        return [
            StoredKnowledge(
                number, row.owner, row.knowledge.record, row.created_at, row.knowledge.updated_at, row.expired_at
            )
            for number, row in sorted(self.rows.items())
            if row.knowledge is not None
        ]


@dataclass(slots=True)
class State:
    """Everything that the store holds.

    Attributes:
        next_embedding, next_vectors: of the embedder that is to come; by passage number, some of which may be gone.
        operations: of all work on the store, by time.
        last_space: the highest number of a namespace.
    """

    embedding: Embedding | None = None
    next_embedding: Embedding | None = None
    next_vectors: dict[int, bytes] = field(default_factory=dict)
    spaces: dict[str, Space] = field(default_factory=dict)
    operations: dict[float, int] = field(default_factory=dict)
    last_space: int = 0

    @property
    def change(self) -> int:
        """The numbers of the last changes of all namespaces but those of texts, added up."""
        return sum(space.head.change for name, space in self.spaces.items() if not is_reserved(name))

    def space(self, namespace: str) -> Space:
        """Return what a namespace holds; nothing of one that is not there."""
        return self.spaces.get(namespace) or Space()

    def draft(self, namespace: str, beside: int = 0) -> Space:
        """Return what a namespace will hold, one that is not there with the next number after some others."""
        known = self.spaces.get(namespace)
        return Space(self.last_space + 1 + beside) if known is None else known.copy()

    def put(self, spaces: Mapping[str, Space]) -> None:
        """Let namespaces hold what was drafted."""
        self.spaces.update(spaces)
        self.last_space = max([self.last_space, *(space.number for space in spaces.values())])

    def begin(self, space: Space) -> Change:
        """Start the next change of one namespace."""
        return Change(space)

    def record(self, change: Change) -> int:
        """Let a change take its number in each namespace that it touched, and return that in its own."""
        touched = {id(space): space for space in (change.space, *change.touched)}
        for space in touched.values():
            space.changes.append((space.next_owner, space.next_passage, os.urandom(8).hex()))
        return change.space.head.change


@dataclass(slots=True)
class Change:
    """One change under way: it hands out numbers and collects what is deleted, until the state records it."""

    space: Space
    touched: list[Space] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The number that it takes in the namespace that it writes to."""
        return len(self.space.changes)

    def put(self, owner: Owner, passages: tuple[NewPassage, ...], at: float) -> None:
        """Write one owner in the place of the live ones with the same id or path."""
        by_id = self.space.by_id.get((owner.kind, owner.id))
        by_path = self.space.by_path.get((owner.kind, owner.path))
        for number in {by_id, by_path}:
            if number is not None:
                self.remove(number)
        self.add(Row(owner, self.number, self.space.next_passage, passages, at), by_path if by_id is None else by_id)

    def add(self, row: Row, number: int | None = None) -> int:
        """Write an owner under a number that is free, or the next one, and return the number."""
        if number is None:
            number = self.space.next_owner
            self.space.next_owner += 1
        self.space.next_passage += len(row.passages)
        self.touched.append(self.space)
        self.space.rows[number] = row
        self.space.owner_of.update(dict.fromkeys(row.numbers, number))
        if row.expired_at is None:
            self.space.by_id[row.owner.kind, row.owner.id] = number
            if row.owner.path:
                self.space.by_path[row.owner.kind, row.owner.path] = number
        return number

    def remove(self, number: int) -> bool:
        """Delete one owner with its passages; return whether it was there."""
        row = self.space.rows.get(number)
        if row is None:
            return False
        self.touched.append(self.space)
        if row.expired_at is None:
            self._leave(row)
        for passage in row.numbers:
            del self.space.owner_of[passage]
        del self.space.rows[number]
        return True

    def renumber(self, owner: int, vectors: Mapping[int, bytes]) -> None:
        """Give the named passages of an owner their vectors, and where it is live all of them new numbers."""
        space = self.space
        self.touched.append(space)
        row = space.rows[owner]
        passages = tuple(
            replace(passage, vector=vectors.get(number, passage.vector))
            for number, passage in zip(row.numbers, row.passages, strict=True)
        )
        memory = None if row.memory is None else replace(row.memory, passages=passages)
        if row.expired_at is not None:
            space.rows[owner] = replace(row, passages=passages, memory=memory)
            return
        moved = replace(row, change=self.number, first_passage=space.next_passage, passages=passages, memory=memory)
        for number in row.numbers:
            del space.owner_of[number]
        self._delete(row)
        space.next_passage += len(passages)
        space.owner_of.update(dict.fromkeys(moved.numbers, owner))
        space.rows[owner] = moved

    def expire(self, number: int, at: float) -> bool:
        """Make a live owner past; return whether it was one."""
        row = self.space.rows.get(number)
        if row is None or row.expired_at is not None:
            return False
        self.touched.append(self.space)
        self._leave(row)
        self.space.rows[number] = replace(row, expired_at=at)
        return True

    def _leave(self, row: Row) -> None:
        """Take a live owner out of what is found, and its passages out of what the index follows."""
        del self.space.by_id[row.owner.kind, row.owner.id]
        self.space.by_path.pop((row.owner.kind, row.owner.path), None)
        self._delete(row)

    def _delete(self, row: Row) -> None:
        self.space.deletions += [(self.number, number) for number in row.numbers]


def index_entry(namespace: str, number: int, owner_number: int, owner: Owner, new: NewPassage) -> IndexEntry:
    """Return what an index needs of a passage."""
    return IndexEntry(
        number=number,
        owner_number=owner_number,
        namespace=namespace,
        kind=owner.kind,
        type=owner.type,
        phase=owner.phase,
        tags=owner.tags,
        title=owner.title,
        path=owner.path,
        heading=new.chunk.heading,
        summary=owner.summary,
        text=new.chunk.text,
        token_ids=new.token_ids,
        vector=new.vector,
    )


class ReferenceTransaction:
    """The copies of a namespace, and of those that are written beside it, until its block ends.

    Attributes:
        is_over: its block has ended.
        is_written: something is different from what it was.
        is_counted: it is to take a number of the change sequence.
    """

    def __init__(self, state: State, namespace: str) -> None:
        self.is_over = False
        self.is_written = False
        self.is_counted = False
        self._operations = dict(state.operations)
        self._state = state
        refuse_unstorable("the namespace", namespace)
        self._namespace = namespace
        self._copies = {namespace: state.draft(namespace)}
        self._change = state.begin(self._copies[namespace])

    @property
    def change(self) -> Change:
        """The change under way.

        Raises:
            StoreError: the block has ended.
        """
        if self.is_over:
            raise StoreError("this change of memories is over", remedy="begin another one")
        return self._change

    @property
    def operations(self) -> dict[float, int]:
        """The operations of all work on the store, by time: a copy, until the block ends.

        Raises:
            StoreError: the block has ended.
        """
        if self.is_over:
            raise StoreError("this change of memories is over", remedy="begin another one")
        return self._operations

    @property
    def embedding(self) -> Embedding | None:
        """The stamp of the store's vectors."""
        return self._state.embedding

    @property
    def namespace(self) -> str:
        """The name of the namespace, whether it is there yet or not."""
        return self._namespace

    def has(self, namespace: str) -> bool:
        """Return whether a namespace is there, or was made in this transaction."""
        return namespace in self._copies or namespace in self._state.spaces

    @contextmanager
    def inside(self, namespace: str) -> Iterator[Change]:
        """Go on in another namespace, which is made if need be, until the block ends."""
        change = self.change
        home: Space = change.space
        beside = sum(each not in self._state.spaces for each in self._copies)
        change.space = self._copies.setdefault(namespace, self._state.draft(namespace, beside))
        try:
            yield change
        finally:
            change.space = home

    def mark(self) -> None:
        """Say that something was written that takes a number."""
        self.is_written = self.is_counted = True

    def finish(self) -> None:
        """Let what was written take its place, and the change its number."""
        self._state.operations = self._operations  # of no namespace
        if self.is_written:
            self._state.put(self._copies)
        if self.is_counted:
            self._state.record(self._change)


def matching_owners(space: Space, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    is_wanted_path = path_matcher(wanted.paths) if wanted.paths else None
    valid_at = wanted.valid_at
    earlier = () if valid_at is None else earlier_versions(space, wanted.as_of, valid_at)
    return sorted(
        number
        for number, row in space.rows.items()
        if (number in earlier or (row.counts(wanted.as_of) and (valid_at is None or happened_at(row) <= valid_at)))
        and _passes(row.owner, wanted, is_wanted_path)
        and _passes_as_memory(row, wanted)
        and (not wanted.agents or (row.knowledge is not None and row.knowledge.record.agent in wanted.agents))
    )


def happened_at(row: Row) -> float:
    """Return when what a memory tells of happened; what is no memory tells of no time."""
    if row.memory is None:
        return math.nan
    return row.memory.record.born_at if row.owner.at is None else row.owner.at


def earlier_versions(space: Space, as_of: float | None, valid_at: float) -> set[int]:
    """Return for each known version that tells of later the latest one before it that tells of what had happened."""
    found, latest = set(), {}
    for number, row in sorted(space.rows.items()):
        if row.memory is None:
            continue
        if happened_at(row) <= valid_at:
            latest[row.owner.id] = number
        elif row.counts(as_of) and row.owner.id in latest:
            found.add(latest[row.owner.id])
    return found


def _passes(owner: Owner, wanted: Filter, is_wanted_path: Callable[[str], bool] | None) -> bool:
    return bool(
        (not wanted.kinds or owner.kind in wanted.kinds)
        and (not wanted.types or owner.type in wanted.types)
        and (not wanted.phases or not owner.phase or owner.phase in wanted.phases)
        and (not wanted.tags or owner.type in wanted.untagged_types or not set(owner.tags).isdisjoint(wanted.tags))
        and (is_wanted_path is None or (owner.kind == "artifact" and owner.path and is_wanted_path(owner.path)))
    )


def _passes_as_memory(row: Row, wanted: Filter) -> bool:
    if row.memory is None:
        return not (wanted.tiers or wanted.sessions or wanted.sources)
    record = row.memory.record
    return (
        (not wanted.tiers or record.tier in wanted.tiers)
        and (not wanted.sessions or row.owner.session in wanted.sessions)
        and (not wanted.sources or record.source in wanted.sources)
        and (not wanted.min_trust or record.trust >= wanted.min_trust)
    )
