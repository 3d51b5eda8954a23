"""Agents' knowledge in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from commonplace.errors import UsageError
from commonplace.store.rows import LIVE_STAMP, Row, pack_hash, pack_text, unpack, unpack_owner
from commonplace.store.transaction import At, ChangingSpace, SpaceReading, StoredSpace
from commonplace.store.writes import Change, check_times, check_write, numbers_json, read_embedding, refuse_wide
from commonplace.types import Embedding, OwnerWrite
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeRecord, KnowledgeWrite, StoredKnowledge

_COLUMNS = f"""
    o.number, o.created_at, k.updated_at, o.expired_at,
    k.agent, k.content, k.metadata, k.digest, {LIVE_STAMP}, k.vector,
    o.id, o.kind, o.title, o.summary, o.tags, o.type, o.phase, o."references", o.path, o.root, o.session, o.position,
    o.at
"""

OF_AGENT = f"""
    SELECT {_COLUMNS}
    FROM knowledge_items k INDEXED BY knowledge_items_by_agent CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space AND k.agent = :agent AND (o.expired_at IS NOT NULL) = :deleted
    ORDER BY o.number
"""

OF_ALL = f"""
    SELECT {_COLUMNS}
    FROM knowledge_items k INDEXED BY knowledge_items_by_agent CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space AND (o.expired_at IS NOT NULL) = :deleted
    ORDER BY o.number
"""

OF_NUMBERS = f"""
    SELECT {_COLUMNS}
    FROM json_each(:numbers) j
        CROSS JOIN knowledge_items k ON k.owner = j.value
        CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space
"""

AGENTS = """
    SELECT k.agent, sum(o.expired_at IS NULL), sum(o.expired_at IS NOT NULL)
    FROM knowledge_items k INDEXED BY knowledge_items_by_agent CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space
    GROUP BY k.agent
"""

MATCHING = """
    SELECT k.owner FROM knowledge_items k INDEXED BY knowledge_items_by_agent
    WHERE k.namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND k.agent = :agent
"""

ADD = "INSERT INTO knowledge_items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

CONTEXT = "SELECT name, last_cursor, metadata, updated_at FROM agent_contexts WHERE namespace = :space AND name = :name"

CONTEXTS = "SELECT name, last_cursor, metadata, updated_at FROM agent_contexts WHERE namespace = :space"

PUT_CONTEXT = "INSERT OR REPLACE INTO agent_contexts VALUES (?, ?, ?, ?, ?)"

DROP_CONTEXT = "DELETE FROM agent_contexts WHERE namespace = ? AND name = ?"


_NO_STAMP = (None, None, None, None)


def pack_item(record: KnowledgeRecord, updated_at: float) -> Row:
    """Return the columns of an item in the order of `knowledge_queries.ADD`, from `agent` on."""
    return (
        pack_text(record.agent),
        pack_text(record.content),
        pack_text(record.metadata),
        pack_hash(record.digest),
        pack_text(record.embedder),
        record.vector,
        updated_at,
    )


def unpack_item(row: Row) -> StoredKnowledge:
    """Build an item from the columns of `knowledge_queries`."""
    number, created_at, updated_at, deleted_at, agent, content, metadata, digest, embedder, vector = row[:10]
    record = KnowledgeRecord(
        unpack(agent), unpack(content), unpack(metadata), unpack(digest), unpack(embedder), bytes(vector)
    )
    return StoredKnowledge(number, unpack_owner((*row[10:], *_NO_STAMP)), record, created_at, updated_at, deleted_at)


def pack_context(context: ContextRecord) -> Row:
    """Return the columns of a context, from `name` on."""
    return pack_text(context.name), context.last_cursor, pack_text(context.metadata), context.updated_at


def unpack_context(row: Row) -> ContextRecord:
    """Build a context from the columns of `knowledge_queries`."""
    name, last_cursor, metadata, updated_at = row
    return ContextRecord(unpack(name), last_cursor, unpack(metadata), updated_at)


def check_item(write: KnowledgeWrite, embedding: Embedding | None, *times: float | None) -> OwnerWrite:
    """Refuse an item that a store cannot keep, and return its owner as it is to be written.

    Raises:
        UsageError: its owner is of another kind or of a file, or a number does not fit a store.
        StoreError: a vector is not of the store's embedder.
    """
    owner = write.owner
    if owner.kind != "knowledge" or owner.path or owner.stamp:
        what = f"of the file {owner.path!r}" if owner.kind == "knowledge" else f"of the kind {owner.kind!r}"
        raise UsageError(f"{owner.id!r} is {what}, not a knowledge item", remedy="put it as an owner")
    owned = OwnerWrite(owner, write.passages)
    check_write(owned, embedding)
    check_times(f"knowledge {owner.id!r}", *times)
    return owned


def check_context(context: ContextRecord) -> None:
    """Refuse a context with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    name = f"the context of agent {context.name!r}"
    refuse_wide(name, context.last_cursor)
    check_times(name, context.updated_at)


class SqliteKnowledgeReading(SpaceReading):
    """What can be read of the knowledge of one namespace, through whatever connection `reading` gives."""

    def items(self, agent: str | None = None, *, deleted: bool = False) -> list[StoredKnowledge]:
        """Return the items of an agent, or of all, by number."""
        if agent is None:
            return [unpack_item(row) for row in self._rows(OF_ALL, deleted=int(deleted))]
        found = self._rows(OF_AGENT, agent=pack_text(agent), deleted=int(deleted))
        return [unpack_item(row) for row in found]

    def of_numbers(self, numbers: Sequence[int]) -> dict[int, StoredKnowledge]:
        """Return items by their owners' numbers, deleted or not; others are absent."""
        return {row[0]: unpack_item(row) for row in self._rows(OF_NUMBERS, numbers=numbers_json(numbers))}

    def agents(self) -> list[AgentCounts]:
        """Return the agents that have items, deleted ones too, by name."""
        found = [AgentCounts(unpack(agent), items, deleted) for agent, items, deleted in self._rows(AGENTS)]
        return sorted(found, key=lambda counts: counts.agent)

    def context(self, name: str) -> ContextRecord | None:
        """Return the context of an agent."""
        found = self._rows(CONTEXT, name=pack_text(name))
        return unpack_context(found[0]) if found else None

    def contexts(self) -> list[ContextRecord]:
        """Return all contexts, by name."""
        return sorted(map(unpack_context, self._rows(CONTEXTS)), key=lambda context: context.name)


class SqliteKnowledge(StoredSpace, SqliteKnowledgeReading):
    """The knowledge of one namespace as it is when each call is made."""


class SqliteKnowledgeChange(ChangingSpace, SqliteKnowledgeReading):
    """Reads and writes the knowledge of one namespace inside a transaction."""

    @contextmanager
    def reading(self) -> Iterator[At]:
        """Give the writing connection, on which all is written that was to be."""
        change = self._transaction.known()
        if change is not None:
            change.flush()
        with super().reading() as at:
            yield at

    def put(
        self, write: KnowledgeWrite, *, created_at: float, updated_at: float, deleted_at: float | None = None
    ) -> int:
        """Write an item in the place of the live owner of that kind with its id, and return its number."""
        db = self._transaction.db
        owned = check_item(write, read_embedding(db), created_at, updated_at, deleted_at)
        change = self._transaction.begin()
        if deleted_at is None:
            number = change.put(owned, created_at)
        else:
            number = change.add(owned.owner, owned.passages, created_at=created_at, expired_at=deleted_at)
        insert_item(change, number, write, updated_at)
        return number

    def expire(self, numbers: Sequence[int], at: float) -> int:
        """Delete live items softly, from `at` on; return how many there were."""
        check_times("a deletion", at)
        return sum(self._transaction.begin().expire(number, at) for number in self.of_numbers(numbers))

    def erase(self, numbers: Sequence[int]) -> int:
        """Delete items, live or past, with all that hangs on them; return how many there were."""
        return sum(self._transaction.begin().remove(number) for number in self.of_numbers(numbers))

    def put_context(self, context: ContextRecord) -> None:
        """Write a context in the place of the one with its name."""
        check_context(context)
        self._transaction.db.execute(PUT_CONTEXT, (self._transaction.begin().space, *pack_context(context)))

    def drop_context(self, name: str) -> bool:
        """Delete a context; return whether there was one."""
        change = self._transaction.known()
        if change is None:
            return False
        return bool(self._transaction.db.execute(DROP_CONTEXT, (change.space, pack_text(name))).rowcount)


def insert_item(change: Change, number: int, write: KnowledgeWrite, updated_at: float) -> None:
    """Write what an item has besides its owner and passages."""
    change.db.execute(ADD, (number, change.space, *pack_item(write.record, updated_at)))


_CLAIMS = (
    (
        "knowledge items in another namespace than their owner, or of another kind",
        """
        SELECT count(*) FROM knowledge_items k LEFT JOIN owners o ON o.number = k.owner
        WHERE o.number IS NULL OR o.namespace != k.namespace OR o.kind != 'knowledge'
        """,
    ),
    (
        "owners that are past and have no record",
        """
        SELECT count(*) FROM owners
        WHERE expired_at IS NOT NULL AND number NOT IN (SELECT owner FROM memories)
            AND number NOT IN (SELECT owner FROM knowledge_items)
        """,
    ),
    (
        "contexts of agents in a namespace that is gone",
        "SELECT count(*) FROM agent_contexts WHERE namespace NOT IN (SELECT number FROM namespaces)",
    ),
)


def knowledge_problems(db: sqlite3.Connection) -> list[str]:
    """Return one sentence for each claim that fails."""
    counted = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in _CLAIMS]
    return [f"There are {claim}: {count}." for claim, count in counted if count]
