"""Memories and agents' knowledge in the reference store."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.reference_store.graph import GraphState, ReferenceGraph, ReferenceGraphChange, facts_of, overtaken_by
from tests.reference_store.ledger import Opened, ReferenceLedger, ReferenceLedgerChange
from tests.reference_store.state import (
    Change,
    KnowledgeRow,
    ReferenceTransaction,
    Row,
    Space,
    State,
    earlier_versions,
    index_entry,
)

from commonplace.errors import StoreError
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.store.knowledge import KnowledgeChange, KnowledgeReading
from commonplace.store.ledger import LedgerChange, LedgerReading
from commonplace.store.memories import Statement
from commonplace.store.rows import check_times, checked, refuse_wide
from commonplace.store.schema import texts_of
from commonplace.store.validate import (
    check_recorded,
    refuse_other_maker,
    refuse_other_reembedding,
    refuse_unfit_vectors,
    refuse_write,
)
from commonplace.types import (
    CONFLICTS,
    DOUBT,
    GRAPH_KINDS,
    HOLDS_BESIDE,
    RULE,
    SUPERSEDES,
    Embedding,
    JournalBlock,
    JournalPage,
    Link,
    MemoryRecord,
    MemoryWrite,
    Note,
    Reembedding,
    Selection,
    StoredMemory,
    TokenEntry,
)
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeWrite, StoredKnowledge

if TYPE_CHECKING:
    from commonplace.types import IndexEntry


class ReferenceKnowledge:
    """A `KnowledgeReading` of whatever namespace `opened` gives, for as long as each call lasts."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Space]]) -> None:
        self._opened = opened

    def items(self, agent: str | None = None, *, deleted: bool = False) -> list[StoredKnowledge]:
        """Return the items of an agent, or of all, by number."""
        with self._opened() as space:
            found = space.knowledge()
        return [
            item for item in found if agent in (None, item.record.agent) and (item.deleted_at is not None) is deleted
        ]

    def of_numbers(self, numbers: Sequence[int]) -> dict[int, StoredKnowledge]:
        """Return items by their owners' numbers, deleted or not; others are absent."""
        wanted = set(map(int, numbers))
        with self._opened() as space:
            return {item.number: item for item in space.knowledge() if item.number in wanted}

    def agents(self) -> list[AgentCounts]:
        """Return the agents that have items, deleted ones too, by name."""
        with self._opened() as space:
            counted = Counter((item.record.agent, item.deleted_at is not None) for item in space.knowledge())
        names = sorted({agent for agent, _ in counted})
        return [AgentCounts(agent, counted[agent, False], counted[agent, True]) for agent in names]

    def context(self, name: str) -> ContextRecord | None:
        """Return the context of an agent."""
        with self._opened() as space:
            return space.contexts.get(name)

    def contexts(self) -> list[ContextRecord]:
        """Return all contexts, by name."""
        with self._opened() as space:
            return [context for _, context in sorted(space.contexts.items())]


class ReferenceKnowledgeChange(ReferenceKnowledge):
    """A `KnowledgeChange` on the copy of a namespace."""

    def __init__(self, transaction: ReferenceTransaction) -> None:
        self._transaction = transaction
        super().__init__(self._reading)

    @contextmanager
    def _reading(self) -> Iterator[Space]:
        yield self._transaction.change.space

    def put(
        self, write: KnowledgeWrite, *, created_at: float, updated_at: float, deleted_at: float | None = None
    ) -> int:
        """Write an item in the place of the live owner of that kind with its id, and return its number."""
        change = self._transaction.change
        owned = check_recorded(
            write, "knowledge", "a knowledge item", self._transaction.embedding, created_at, updated_at, deleted_at
        )
        number = None if deleted_at is not None else change.space.by_id.get((owned.owner.kind, owned.owner.id))
        if number is not None:
            change.remove(number)
        row = Row(
            owned.owner,
            change.number,
            change.space.next_passage,
            owned.passages,
            created_at,
            deleted_at,
            knowledge=KnowledgeRow(owned.record, updated_at),
        )
        self._transaction.mark()
        return change.add(row, number)

    def expire(self, numbers: Sequence[int], at: float) -> int:
        """Delete live items softly, from `at` on; return how many there were."""
        check_times("a deletion", at)
        return self._counted([self._transaction.change.expire(number, at) for number in self.of_numbers(numbers)])

    def erase(self, numbers: Sequence[int]) -> int:
        """Delete items, live or past, with all that hangs on them; return how many there were."""
        return self._counted([self._transaction.change.remove(number) for number in self.of_numbers(numbers)])

    def put_context(self, context: ContextRecord) -> None:
        """Write a context in the place of the one with its name."""
        context = checked(context)
        self._transaction.change.space.contexts[context.name] = context
        self._transaction.is_written = True

    def drop_context(self, name: str) -> bool:
        """Delete a context; return whether there was one."""
        gone = self._transaction.change.space.contexts.pop(name, None)
        self._transaction.is_written |= gone is not None
        return gone is not None

    def _counted(self, done: list[bool]) -> int:
        if any(done):
            self._transaction.mark()
        return sum(done)


class ReferenceMemoryChange:
    """A `MemoryChange` on the copy of a namespace."""

    def __init__(self, transaction: ReferenceTransaction) -> None:
        self._transaction = transaction

    @property
    def graph(self) -> GraphChange:
        """The graph of the same namespace, in the same transaction."""
        return ReferenceGraphChange(self._transaction)

    @property
    def knowledge(self) -> KnowledgeChange:
        """The knowledge of the agents of the same namespace, in the same transaction."""
        return ReferenceKnowledgeChange(self._transaction)

    @property
    def ledger(self) -> LedgerChange:
        """The ledger of the same namespace, in the same transaction."""
        return ReferenceLedgerChange(self._transaction)

    def find(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        return self._space.latest(id_)

    def alike(self, digest: str, bands: Sequence[int]) -> list[StoredMemory]:
        """Return the live memories with that digest or any of those bands, by number."""
        space = self._space
        numbers = {
            number
            for number, row in space.live()
            if row.memory and ((digest and row.memory.digest == digest) or not set(bands).isdisjoint(row.memory.bands))
        }
        return [stored for stored in space.memories() if stored.number in numbers]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that start or end at one of these memories; sorted by source, target, type."""
        links = sorted(self._space.links.items())
        return [link for ends, link in links if not set(ids).isdisjoint(ends[:2]) and link.expired_at is None]

    def add(self, write: MemoryWrite, *, created_at: float, expired_at: float | None = None) -> int:
        """Write a new version of a memory and return its number."""
        space, owner = self._space, write.owner
        if owner.session and not write.is_placed:
            write = replace(write, owner=replace(owner, position=space.last_position(owner.session) + 1))
        write = check_recorded(write, "memory", "a memory", self._transaction.embedding, created_at, expired_at)
        if ("memory", owner.id) in space.by_id:
            raise StoreError(f"there is a live version of memory {owner.id!r}", remedy="expire it first")
        change = self._change
        row = Row(write.owner, change.number, change.space.next_passage, write.passages, created_at, expired_at, write)
        self._mark(owner.id, is_counted=True)
        return change.add(row)

    def revise(self, number: int, record: MemoryRecord, *, is_shown: bool = True) -> None:
        """Set the record of a version; its text, tags and passages stay as they are."""
        row = self._space.rows.get(number)
        if row is None or row.memory is None:
            return
        record = checked(record, f"memory {row.owner.id!r}")
        old, memory = row.memory.record, replace(row.memory, record=record)
        self._space.rows[number] = replace(row, memory=memory)
        is_counted = (old.tier, old.trust, old.source) != (record.tier, record.trust, record.source)
        self._mark(row.owner.id, is_counted=is_counted, is_due=is_shown)

    def expire(self, number: int, record: MemoryRecord, at: float) -> None:
        """Make a live version past from `at` on, with this record; nothing happens to one that is past already."""
        row = self._space.rows.get(number)
        if row is None or row.memory is None:
            return
        check_times(f"memory {row.owner.id!r}", at)
        record = checked(record, f"memory {row.owner.id!r}")
        if self._change.expire(number, at):
            self.revise(number, record)
            self._mark(row.owner.id, is_counted=True)

    def revive(self, number: int, record: MemoryRecord, *, bands: Sequence[int] = ()) -> int:
        """Make the latest version of a memory, which is past, live again, and return its new number."""
        space = self._space
        row = space.rows.get(number)
        latest = None if row is None else space.latest(row.owner.id)
        if row is None or row.memory is None or latest is None or latest.number != number:
            raise StoreError(f"version {number} is not the latest of a memory", remedy="revive the latest one")
        record = checked(record, f"memory {row.owner.id!r}")
        if row.expired_at is None:
            self.revise(number, record)
            return number
        refuse_wide(f"memory {row.owner.id!r}", *bands)
        if ("memory", row.owner.id) in space.by_id:
            raise StoreError(f"there is a live version of memory {row.owner.id!r}", remedy="expire it first")
        change = self._change
        change.remove(number)
        memory = replace(row.memory, record=record, bands=tuple(bands))
        self._mark(row.owner.id, is_counted=True)
        first = change.space.next_passage
        return change.add(replace(row, change=change.number, first_passage=first, expired_at=None, memory=memory))

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with all that hangs on them; return how many versions went."""
        space = self._space
        numbers = [stored.number for id_ in set(ids) for stored in space.versions(id_)]
        for number in numbers:
            self._change.remove(number)
        self._transaction.is_counted |= bool(numbers)
        self._transaction.is_written |= bool(numbers)
        self._drop(space.links, *[ends for ends in space.links if not set(ids).isdisjoint(ends[:2])])
        self._drop(space.blocks, *ids)
        self.settle_due(ids)
        return len(numbers)

    def link(self, link: Link) -> None:
        """Write a link in the place of the one with the same ends and type."""
        link = checked(link)
        self._set(self._space.links, (link.source, link.target, link.type), link)
        self._linked(link.source, link.type)

    def unlink(self, source: str, target: str, type_: str | None = None) -> int:
        """Delete the links from one memory to another, of one type or of all, and return how many there were."""
        links = self._space.links
        gone = self._drop(links, *[ends for ends in links if ends[:2] == (source, target) and type_ in (None, ends[2])])
        if gone:
            self._linked(source, type_)
        return gone

    def put(self, *records: JournalBlock | JournalPage | Note) -> None:
        """Write records in the places of those with their keys."""
        for record in map(checked, records):
            match record:
                case JournalBlock():
                    self._set(self._space.blocks, record.id, record)
                case JournalPage():
                    self._set(self._space.pages, record.page, record)
                case Note():
                    self._set(self._space.notes, (record.kind, record.id), record)

    def drop(self, record: type[JournalBlock | JournalPage | Note], **key: str) -> None:
        """Delete the records of a class that have these values."""
        held = {JournalBlock: self._space.blocks, JournalPage: self._space.pages, Note: self._space.notes}[record]
        self._drop(held, *[place for place, each in held.items() if _has(each, key)])

    def settle_due(self, ids: Sequence[str]) -> None:
        """Say that the Markdown of these memories is as it should be."""
        self._transaction.is_written |= not self._space.due.isdisjoint(ids)
        self._space.due.difference_update(ids)

    @property
    def _space(self) -> Space:
        return self._change.space

    @property
    def _change(self) -> Change:
        return self._transaction.change

    def _set(self, entries: dict[Any, Any], key: object, value: object) -> None:
        entries[key] = value
        self._transaction.is_written = True

    def _drop(self, entries: dict[Any, Any], *keys: object) -> int:
        gone = [entries.pop(key) for key in keys if key in entries]
        self._transaction.is_written |= bool(gone)
        return len(gone)

    def _mark(self, id_: str, *, is_counted: bool, is_due: bool = True) -> None:
        """Note that a memory is written, and make its Markdown due."""
        if is_due:
            self._space.due.add(id_)
        self._transaction.is_written = True
        self._transaction.is_counted |= is_counted

    def _linked(self, source: str, type_: str | None) -> None:
        self._transaction.is_counted |= type_ in (None, SUPERSEDES, CONFLICTS, HOLDS_BESIDE)
        if self.find(source) is not None:
            self._mark(source, is_counted=False)


def _has(record: object, key: dict[str, str]) -> bool:
    return all(getattr(record, name) == value for name, value in key.items())


class ReferenceReembedding(ABC):
    """Vectors that come later, in dictionaries."""

    _state: State

    @abstractmethod
    def _open(self) -> AbstractContextManager[None]:
        """Let the block read the state."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Let the block write the state."""

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        with self._open():
            return len(self._pending())

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        with self._open():
            return self._pending()[:limit]

    def fill_vectors(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> int:
        """Give passages without a vector theirs, as one change of each namespace; return how many."""
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._writing():
            refuse_other_maker(self._state.embedding, embedding)
            wanted = {entry.number: entry for entry in self._pending()}
            made = {number: vector for number, vector in vectors if number in wanted}
            owners = sorted({(wanted[number].owner_number, wanted[number].namespace) for number in made})
            change = self._state.begin(Space())
            for owner, namespace in owners:
                change.space = self._state.spaces[namespace]
                change.renumber(owner, made)
            if owners:
                self._state.record(change)
            return len(made)

    def _pending(self) -> list[IndexEntry]:
        found = (
            index_entry(name, number, space.owner_of[number], row.owner, new)
            for name, space in self._state.spaces.items()
            for number, row, new in space.passages(list(space.owner_of))
            if not new.vector
        )
        return sorted(found, key=lambda entry: entry.number)

    def reembedding(self) -> Reembedding | None:
        """Return the change of embedder under way, None where there is none."""
        with self._open():
            if self._state.next_embedding is None:
                return None
            missing, total = _missing(self._state), sum(len(space.owner_of) for space in self._state.spaces.values())
            return Reembedding(self._state.next_embedding, total - len(missing), total)

    def begin_reembedding(self, embedding: Embedding) -> None:
        """Begin to change the embedder, or go on with that."""
        with self._writing():
            if self._state.embedding == embedding:
                raise StoreError(f"the vectors of the store are made by {embedding} already")
            if self._state.next_embedding != embedding:
                self._state.next_embedding = embedding
                self._state.next_vectors.clear()

    def drop_reembedding(self) -> None:
        """Give up the change of embedder under way, if there is one."""
        with self._writing():
            self._drop()

    def unembedded(self, limit: int) -> list[IndexEntry]:
        """Return passages that have no new vector yet, by number ascending."""
        with self._open():
            if self._state.next_embedding is None:
                return []
            return [
                index_entry(name, number, space.owner_of[number], row.owner, new)
                for number, name in sorted(_missing(self._state).items())[:limit]
                for space in [self._state.spaces[name]]
                for _, row, new in space.passages([number])
            ]

    def put_reembedded(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep new vectors, by passage number."""
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._writing():
            refuse_other_reembedding(self._state.next_embedding, embedding)
            self._state.next_vectors.update(vectors)

    def finish_reembedding(self, embedding: Embedding) -> bool:
        """Put all new vectors in the place of the old ones and stamp the store, as one change."""
        with self._writing():
            refuse_other_reembedding(self._state.next_embedding, embedding)
            if _missing(self._state):
                return False
            stamps = (self._state.embedding, embedding)
            for space in self._state.spaces.values():
                space.rows = {
                    number: _switched(row, self._state.next_vectors, stamps) for number, row in space.rows.items()
                }
            self._state.embedding = embedding
            self._drop()
            for space in self._state.spaces.values():
                if space.head.change:
                    self._state.record(self._state.begin(space))
            return True

    def _drop(self) -> None:
        self._state.next_embedding = None
        self._state.next_vectors.clear()


def _missing(state: State) -> dict[int, str]:
    """Return the namespaces of the passages without a new vector, by number."""
    return {
        number: name
        for name, space in state.spaces.items()
        for number in space.owner_of
        if number not in state.next_vectors
    }


def _switched(row: Row, vectors: dict[int, bytes], stamps: tuple[Embedding | None, Embedding]) -> Row:
    """Return a row with its new vectors, and the new stamp where it names the old one."""
    old, new = ("" if stamp is None else str(stamp.of(row.owner.kind)) for stamp in stamps)
    passages = tuple(
        replace(passage, vector=vectors[number]) for number, passage in zip(row.numbers, row.passages, strict=True)
    )
    owner, memory, knowledge = row.owner, row.memory, row.knowledge
    if owner.stamp is not None and old:
        owner = replace(owner, stamp=replace(owner.stamp, recipe=owner.stamp.recipe.replace(old, new)))
    if memory is not None:
        memory = replace(memory, passages=passages)
    if knowledge is not None and knowledge.record.embedder == old:
        knowledge = replace(knowledge, record=replace(knowledge.record, embedder=new))
    return replace(row, owner=owner, passages=passages, memory=memory, knowledge=knowledge)


class ReferenceMemories(ReferenceReembedding):
    """Memories in dictionaries under one lock."""

    def __init__(self, id_: str) -> None:
        self._id = id_
        self._lock = threading.RLock()
        self._is_closed = False
        self._snapshots = 0
        self._is_changing = False
        self._state = State()

    @contextmanager
    def change_memories(
        self, namespace: str, *, made_by: Embedding | None = None, **_: object
    ) -> Iterator[ReferenceMemoryChange]:
        """Begin a write transaction over the memories of a namespace: on a copy, that takes its place at the end."""
        with self._writing():
            refuse_other_maker(self._state.embedding, made_by)
            transaction = ReferenceTransaction(self._state, namespace)
            self._is_changing = True
            try:
                yield ReferenceMemoryChange(transaction)
            finally:
                self._is_changing = False
                transaction.is_over = True
            transaction.finish()

    def memory(self, namespace: str, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        with self._open():
            return self._state.space(namespace).latest(id_)

    def memories(self, namespace: str, selection: Selection) -> list[StoredMemory]:
        """Return the latest versions that a selection chooses, in its order."""
        chosen = sorted(self._selected(namespace, selection), key=selection.key)
        end = None if selection.limit is None else selection.offset + selection.limit
        return chosen[selection.offset : end]

    def count_memories(self, namespace: str, selection: Selection) -> int:
        """Return how many a selection chooses, its limit and offset left out of account."""
        return len(self._selected(namespace, selection))

    def count_tiers(self, namespace: str) -> dict[tuple[str, str], int]:
        """Return how many memories there are by tier and status."""
        found = self._selected(namespace, Selection())
        return dict(Counter((each.record.tier, each.record.status) for each in found))

    def memory_facets(self, namespace: str, selection: Selection) -> dict[str, dict[str, int]]:
        """Return how many a selection chooses by tier, status, category, source, session, trust and tag."""
        found = self._selected(namespace, selection)
        values: dict[str, Iterable[object]] = {
            "tier": (each.record.tier for each in found),
            "status": (each.record.status for each in found),
            "category": (each.record.category for each in found),
            "source": (each.record.source for each in found),
            "session": (each.owner.session for each in found),
            "trust": (int(each.record.trust * 10) / 10 for each in found),
            "tag": (tag for each in found for tag in each.owner.tags),
        }
        return {name: dict(sorted(Counter(map(str, some)).items())) for name, some in values.items()}

    def versions(self, namespace: str, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        with self._open():
            return self._state.space(namespace).versions(id_)

    def memory_digests(self, namespace: str) -> list[tuple[int, str, str]]:
        """Return (number, id, digest) of the latest versions, by number."""
        with self._open():
            rows = self._state.space(namespace).rows
            found = [
                (number, row.owner.id, row.memory.digest) for number, row in rows.items() if row.memory is not None
            ]
        return sorted({each[1]: each for each in sorted(found)}.values())

    def shared_bands(self, namespace: str, most: int) -> list[tuple[int, int]]:
        """Return (band, number) of live memories whose bands are shared by at most so many, in this order."""
        with self._open():
            rows = self._state.space(namespace).rows.items()
            live = [(number, row.memory) for number, row in rows if row.memory is not None and row.expired_at is None]
            found = sorted((band, number) for number, memory in live for band in set(memory.bands))
        counts = Counter(band for band, _ in found)
        return [each for each in found if 2 <= counts[each[0]] <= most]

    def derivations(self, namespace: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, what it was made from) of each version of a memory that was made from others, by number."""
        with self._open():
            rows = sorted(self._state.space(namespace).rows.items())
            made = [(row.owner.id, row.memory.record.derived_from) for _, row in rows if row.memory is not None]
        return [each for each in made if each[1]]

    def memory_records(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the versions with these numbers, live or past; others, and owners that are no memory, are absent."""
        wanted = set(map(int, owner_numbers))
        with self._open():
            return {
                stored.number: stored for stored in self._state.space(namespace).memories() if stored.number in wanted
            }

    def statements(
        self, namespace: str, owner_numbers: Sequence[int], as_of: float | None = None
    ) -> dict[int, Statement]:
        """Return what overtook the versions with these numbers; owners that are no memory are absent."""
        found = self.memory_records(namespace, owner_numbers)
        with self._open():
            space = self._state.space(namespace)
            said = {}
            for number, each in found.items():
                id_ = each.owner.id
                links = [
                    link
                    for link in space.links.values()
                    if link.target == id_
                    and (as_of is None or link.created_at <= as_of)
                    and (link.expired_at is None or (as_of is not None and as_of < link.expired_at))
                    and (link.type != CONFLICTS or link.origin != RULE or link.strength > DOUBT)
                ]
                ruled = [link for link in links if link.type == CONFLICTS or link.origin == RULE]
                unsure = {link.source for link in ruled if link.type == CONFLICTS}
                beside = {link.source for link in links if link.type == HOLDS_BESIDE}
                judged = {link.source: link.source not in unsure for link in ruled if link.source not in beside}
                told = {link.source for link in links if link.type == SUPERSEDES and link.origin != RULE}
                ended = set() if as_of is not None else {overtaken_by(space.graph, id_) or id_} - {id_} - beside
                said[number] = Statement(id_, each.at, told, ended, judged)
            return said

    def announced(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, float]:
        """Return when the first fact begins of memories that state only what was still to come; others are absent."""
        found, begins = self.memory_records(namespace, owner_numbers), {}
        with self._open():
            graph = self._state.space(namespace).graph
            for number, each in found.items():
                times = [fact.valid_from or 0.0 for fact in facts_of(graph, each.owner.id) if not fact.is_retracted]
                if times and min(times) > each.at:
                    begins[number] = min(times)
        return begins

    def links(self, namespace: str, ids: Sequence[str] | None = None, *, past: bool = False) -> list[Link]:
        """Return the links that start or end at one of these memories, or all; sorted by source, target, type."""
        with self._open():
            links = sorted(self._state.space(namespace).links.items())
        return [
            link
            for (source, target, _), link in links
            if (ids is None or not {source, target}.isdisjoint(ids)) and (past or link.expired_at is None)
        ]

    def dated(
        self, namespace: str, since: float, until: float, *, as_of: float | None = None
    ) -> list[tuple[int, float, float]]:
        """Return (owner number, since, until) of the dates in live memories that overlap an interval, sorted."""
        found: set[tuple[int, float, float]] = set()
        with self._open():
            for number, row in self._state.space(namespace).rows.items():
                if row.owner.kind == "memory" and row.counts(as_of):
                    dates = row.memory.dates if row.memory is not None else ()
                    found |= {(number, *date) for date in dates if date[0] < until and date[1] > since}
                    if row.owner.at is not None and since <= row.owner.at < until:
                        found.add((number, row.owner.at, row.owner.at))
        return sorted(found)

    def past(self, namespace: str, as_of: float | None, valid_at: float | None = None) -> list[TokenEntry]:
        """Return the passages of past versions that were live, or true in the world, at a time, by number."""
        with self._open():
            space = self._state.space(namespace)
            owners = {number for number, row in space.rows.items() if as_of is not None and row.was_live(as_of)}
            if valid_at is not None:
                owners |= earlier_versions(space, as_of, valid_at)
            return space.token_entries(sorted(number for owner in owners for number in space.rows[owner].numbers))

    def due(self, namespace: str) -> list[str]:
        """Return the ids of the memories whose Markdown is due, sorted."""
        with self._open():
            return sorted(self._state.space(namespace).due)

    def blocks(self, namespace: str, ids: Sequence[str] | None = None) -> list[JournalBlock]:
        """Return what is known of the blocks of these memories in Markdown, or of all, by id."""
        with self._open():
            blocks = self._state.space(namespace).blocks
            return [block for id_, block in sorted(blocks.items()) if ids is None or id_ in ids]

    def pages(self, namespace: str) -> list[JournalPage]:
        """Return what is known of pages, by name."""
        with self._open():
            return [page for _, page in sorted(self._state.space(namespace).pages.items())]

    def notes(self, namespace: str | None, kind: str, id_: str | None = None) -> list[Note]:
        """Return the notes of one kind, or the one with an id, of one namespace or of all."""
        with self._open():
            spaces = self._state.spaces.values() if namespace is None else [self._state.space(namespace)]
            notes = [note for space in spaces for note in space.notes.values() if note.kind == kind]
            notes = [note for note in notes if id_ in (None, note.id)]
        return sorted(notes, key=lambda note: (note.at, note.id, note.body))

    def erase_namespace(self, namespace: str) -> int:
        """Delete everything that a namespace holds, and its name, as one change; return how many owners went."""
        with self._writing():
            space = self._state.spaces.pop(namespace, None)
            if space is None:
                return 0
            change = self._state.begin(space)
            gone = [change.remove(number) for number in list(space.rows)]
            for kind in GRAPH_KINDS:
                change.space = self._state.spaces.pop(texts_of(namespace, kind), Space())
                for number in list(change.space.rows):
                    change.remove(number)
            self._state.record(change)
            return len(gone)

    def graph(self, namespace: str) -> GraphReading:
        """Return the graph of a namespace; one that is not there is empty."""

        @contextmanager
        def opened() -> Iterator[GraphState]:
            with self._open():
                yield self._state.space(namespace).graph

        return ReferenceGraph(opened)

    def knowledge(self, namespace: str) -> KnowledgeReading:
        """Return the knowledge of the agents of a namespace; of one that is not there nothing."""

        @contextmanager
        def opened() -> Iterator[Space]:
            with self._open():
                yield self._state.space(namespace)

        return ReferenceKnowledge(opened)

    def ledger(self, namespace: str) -> LedgerReading:
        """Return the ledger of a namespace; of one that is not there an empty one."""

        @contextmanager
        def opened() -> Iterator[Opened]:
            with self._open():
                yield self._state.space(namespace).ledger, self._state.operations

        return ReferenceLedger(opened)

    def compact(self, *, thorough: bool = False) -> bool:
        """Return True: what is deleted from a dictionary is in no file."""
        with self._writing():
            return True

    def files(self) -> list[str]:
        """Return nothing: the data stand in no file."""
        with self._open():
            return []

    def _selected(self, namespace: str, wanted: Selection) -> list[StoredMemory]:
        with self._open():
            latest = {stored.owner.id: stored for stored in self._state.space(namespace).memories()}
        return [stored for stored in latest.values() if _is_selected(stored, wanted)]

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise StoreError(f"the store {self._id} in memory is closed", remedy="make a new one")
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._open():
            refuse_write(in_snapshot=bool(self._snapshots), in_change=self._is_changing)
            yield


def _time(stored: StoredMemory) -> float:
    return stored.record.born_at if stored.owner.at is None else stored.owner.at


def _is_selected(stored: StoredMemory, wanted: Selection) -> bool:
    owner, record, time = stored.owner, stored.record, _time(stored)
    alternatives = (
        (wanted.ids, owner.id),
        (wanted.tiers, record.tier),
        (wanted.statuses, record.status),
        (wanted.sources, record.source),
        (wanted.sessions, owner.session),
        (wanted.categories, record.category),
    )
    return (
        all(not values or value in values for values, value in alternatives)
        and (not wanted.tags or not set(owner.tags).isdisjoint(wanted.tags))
        and record.trust >= wanted.min_trust
        and (wanted.since is None or time >= wanted.since)
        and (wanted.until is None or time < wanted.until)
    )
