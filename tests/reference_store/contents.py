"""A whole store as a value, and how it becomes a SQLite store with the same id, numbers and changes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.reference_store.graph import GraphState
from tests.reference_store.ledger import LedgerState
from tests.reference_store.state import KnowledgeRow, Space, State

from commonplace.store.change import Change, next_change
from commonplace.store.database import begin_store, connect, driver_errors, prepare_writer, refuse_existing
from commonplace.store.graph import GraphChange
from commonplace.store.ledger import LedgerChange
from commonplace.store.memories import MemoryChange, insert_version
from commonplace.store.validate import NEXT, set_embedding
from commonplace.types import Embedding, JournalBlock, JournalPage, Link, MemoryWrite, Note, OwnerWrite
from commonplace.types.knowledge import ContextRecord, KnowledgeWrite


@dataclass(frozen=True, slots=True)
class StoredOwner:
    """An owner with its numbers.

    Attributes:
        change: the change that wrote it and its passages.
        first_passage: number of its first passage; the others follow without a gap.
        created_at, expired_at: when it was what we knew; it is past where the latter is a time.
        memory: where it is a version of a memory, what it was written from, with its present record.
        is_latest: it is the last version of a memory.
        knowledge: where it is an item of an agent's knowledge.
    """

    namespace: str
    number: int
    change: int
    first_passage: int
    write: OwnerWrite
    created_at: float
    expired_at: float | None
    memory: MemoryWrite | None
    is_latest: bool
    knowledge: KnowledgeRow | None


@dataclass(frozen=True, slots=True)
class StoredEntries:
    """What one namespace holds besides owners.

    Attributes:
        number: of the namespace.
        changes: by change number, from 0, the next owner and passage numbers and the token; that of 0 is "".
        deletions: (change, passage number).
    """

    namespace: str
    number: int
    links: tuple[Link, ...]
    blocks: tuple[JournalBlock, ...]
    pages: tuple[JournalPage, ...]
    notes: tuple[Note, ...]
    due: tuple[str, ...]
    graph: GraphState
    contexts: tuple[ContextRecord, ...]
    ledger: LedgerState
    changes: tuple[tuple[int, int, str], ...]
    deletions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything that a store holds.

    Attributes:
        next_embedding, next_vectors: of a change of embedder under way; the vectors by passage number.
        operations: (time, how many).
    """

    store_id: str
    embedding: Embedding | None
    namespaces: tuple[StoredEntries, ...]
    owners: tuple[StoredOwner, ...]
    next_embedding: Embedding | None
    next_vectors: tuple[tuple[int, bytes], ...]
    operations: tuple[tuple[float, int], ...]


def contents_of(store_id: str, state: State) -> Contents:
    """Return the contents of an in-memory store; they do not change with it."""
    existing = {number for space in state.spaces.values() for number in space.owner_of}
    return Contents(
        store_id,
        state.embedding,
        tuple(_entries(name, space) for name, space in state.spaces.items()),
        tuple(owner for name, space in state.spaces.items() for owner in _owners(name, space)),
        state.next_embedding,
        tuple(item for item in state.next_vectors.items() if item[0] in existing),
        tuple(state.operations.items()),
    )


def write_store(contents: Contents, target: Path) -> None:
    """Write the contents to a new SQLite store.

    Raises:
        StoreError: the target exists or cannot be written.
    """
    refuse_existing(target)
    with driver_errors(target), closing(connect(target, 0, "rwc")) as db:
        prepare_writer(db)
        begin_store(db, contents.store_id)
        db.execute("BEGIN IMMEDIATE")
        _fill(db, contents)
        db.execute("COMMIT")


def _entries(namespace: str, space: Space) -> StoredEntries:
    return StoredEntries(
        namespace,
        space.number,
        tuple(space.links.values()),
        tuple(space.blocks.values()),
        tuple(space.pages.values()),
        tuple(space.notes.values()),
        tuple(space.due),
        space.graph.copy(),
        tuple(space.contexts.values()),
        space.ledger.copy(),
        tuple(space.changes),
        tuple(space.deletions),
    )


def _owners(namespace: str, space: Space) -> list[StoredOwner]:
    latest = {stored.owner.id: stored.number for stored in space.memories()}
    return [
        StoredOwner(
            namespace,
            number,
            row.change,
            row.first_passage,
            OwnerWrite(row.owner, row.passages),
            row.created_at,
            row.expired_at,
            row.memory,
            row.memory is not None and latest[row.owner.id] == number,
            row.knowledge,
        )
        for number, row in space.rows.items()
    ]


def _fill(db: sqlite3.Connection, contents: Contents) -> None:
    if contents.embedding:
        set_embedding(db, contents.embedding)
    spaces = {entries.namespace: entries.number for entries in contents.namespaces}
    db.executemany("INSERT INTO namespaces (name, number) VALUES (?, ?)", spaces.items())
    for entries in contents.namespaces:
        _fill_beside(db, entries)
    for stored in contents.owners:
        space, numbers = spaces[stored.namespace], (stored.number, stored.first_passage, 0)
        change = Change(db, stored.namespace)
        change._rows[space] = next_change(space, stored.change - 1, *numbers)
        write, memory = stored.write, stored.memory
        change.add_owner(write.owner, write.passages, created_at=stored.created_at, expired_at=stored.expired_at)
        if memory is not None:
            is_live = stored.expired_at is None
            insert_version(change, stored.number, memory, is_latest=stored.is_latest, is_live=is_live)
        if stored.knowledge is not None:
            item = KnowledgeWrite(write.owner, write.passages, stored.knowledge.record)
            change.write(item.record, owner=stored.number, updated_at=stored.knowledge.updated_at)
        change.write_counts()
        change.flush()
    if contents.next_embedding:
        set_embedding(db, contents.next_embedding, NEXT)
    db.executemany(
        "INSERT INTO next_vectors SELECT number, namespace, ?2 FROM passages WHERE number = ?1", contents.next_vectors
    )
    db.executemany("INSERT INTO operations VALUES (?, ?)", contents.operations)


def _fill_beside(db: sqlite3.Connection, entries: StoredEntries) -> None:
    space = entries.number
    written = Change(db, entries.namespace)
    change = MemoryChange(written)
    for link in entries.links:
        change.link(link)
    for block in entries.blocks:
        change.put(block)
    for page in entries.pages:
        change.put(page)
    for note in entries.notes:
        change.put(note)
    _fill_graph(change.graph, entries.graph)
    for context in entries.contexts:
        change.knowledge.put_context(context)
    _fill_ledger(change.ledger, entries.ledger)
    written.flush()
    row = written.take("next_row")
    changes = [
        (space, number, owner, passage, row, token) for number, (owner, passage, token) in enumerate(entries.changes)
    ]
    db.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)", changes[1:])
    db.executemany("INSERT INTO deletions VALUES (?, ?, ?)", [(space, *each) for each in entries.deletions])
    db.executemany("INSERT INTO mirror_due VALUES (?, ?)", [(space, id_) for id_ in entries.due])


def _fill_graph(change: GraphChange, graph: GraphState) -> None:
    """Write a graph but for its texts, which are owners of other namespaces."""
    for episode in graph.episodes.values():
        change.put(episode)
    for entity in graph.entities.values():
        change.put_entity(entity)
    for relation in graph.relations.values():
        change.put_relation(relation)
    for alias in graph.aliases.values():
        change.put(alias)
    change.put(*list(graph.mentions))
    for happening in graph.happenings:
        change.put(happening)


def _fill_ledger(change: LedgerChange, ledger: LedgerState) -> None:
    for issue in ledger.issues.values():
        change.put_issue(issue)
    for event in ledger.events:
        change.add_event(event)
    for reversal in ledger.reversals.values():
        change.put_reversal(reversal)
