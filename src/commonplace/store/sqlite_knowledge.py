"""Agents' knowledge in the SQLite store: a `KnowledgeReading`, and a `KnowledgeChange` inside a transaction.

It knows tables, no rule about knowledge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from commonplace.store import knowledge_queries as queries
from commonplace.store.batches import check_times
from commonplace.store.knowledge_checks import check_context, check_item
from commonplace.store.knowledge_rows import pack_context, pack_item, unpack_context, unpack_item
from commonplace.store.rows import pack_text, unpack
from commonplace.store.sqlite_space import At, ChangingSpace, SpaceReading, StoredSpace
from commonplace.store.sqlite_writing import Change, numbers_json, read_embedding
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeWrite, StoredKnowledge


class SqliteKnowledgeReading(SpaceReading):
    """What can be read of the knowledge of one namespace, through whatever connection `reading` gives."""

    def items(self, agent: str | None = None, *, deleted: bool = False) -> list[StoredKnowledge]:
        """Return the items of an agent, or of all, by number."""
        if agent is None:
            return [unpack_item(row) for row in self._rows(queries.OF_ALL, deleted=int(deleted))]
        found = self._rows(queries.OF_AGENT, agent=pack_text(agent), deleted=int(deleted))
        return [unpack_item(row) for row in found]

    def of_numbers(self, numbers: Sequence[int]) -> dict[int, StoredKnowledge]:
        """Return items by their owners' numbers, deleted or not; others are absent."""
        return {row[0]: unpack_item(row) for row in self._rows(queries.OF_NUMBERS, numbers=numbers_json(numbers))}

    def agents(self) -> list[AgentCounts]:
        """Return the agents that have items, deleted ones too, by name."""
        found = [AgentCounts(unpack(agent), items, deleted) for agent, items, deleted in self._rows(queries.AGENTS)]
        return sorted(found, key=lambda counts: counts.agent)

    def context(self, name: str) -> ContextRecord | None:
        """Return the context of an agent."""
        found = self._rows(queries.CONTEXT, name=pack_text(name))
        return unpack_context(found[0]) if found else None

    def contexts(self) -> list[ContextRecord]:
        """Return all contexts, by name."""
        return sorted(map(unpack_context, self._rows(queries.CONTEXTS)), key=lambda context: context.name)


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
        self._transaction.db.execute(queries.PUT_CONTEXT, (self._transaction.begin().space, *pack_context(context)))

    def drop_context(self, name: str) -> bool:
        """Delete a context; return whether there was one."""
        change = self._transaction.known()
        if change is None:
            return False
        return bool(self._transaction.db.execute(queries.DROP_CONTEXT, (change.space, pack_text(name))).rowcount)


def insert_item(change: Change, number: int, write: KnowledgeWrite, updated_at: float) -> None:
    """Write what an item has besides its owner and passages."""
    change.db.execute(queries.ADD, (number, change.space, *pack_item(write.record, updated_at)))
