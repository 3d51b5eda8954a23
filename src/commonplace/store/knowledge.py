"""Agents' knowledge in the store."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.store.change import ChangingSpace, SpaceReading
from commonplace.store.dialect import SPACE, listed_numbers, unnest
from commonplace.store.rows import Row, check_times, form_of
from commonplace.store.validate import check_recorded
from commonplace.types import Owner, OwnerWrite
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeRecord, KnowledgeWrite, StoredKnowledge

_RECORD = form_of(KnowledgeRecord)
_OWNER = form_of(Owner)
_CONTEXT = form_of(ContextRecord)
_WIDTH = 4 + len(_RECORD.columns)
_COLUMNS = f"o.number, o.created_at, k.updated_at, o.expired_at, {_RECORD.names('k')}, {_OWNER.names('o')}"


def build_item(row: Row) -> StoredKnowledge:
    """Build an item from the columns that all queries for items select."""
    number, created_at, updated_at, deleted_at = row[:4]
    owner, record = _OWNER.build(row[_WIDTH:]), _RECORD.build(row[4:_WIDTH])
    return StoredKnowledge(number, owner, record, created_at, updated_at, deleted_at)


class KnowledgeReading(SpaceReading):
    """The knowledge of one namespace, as it is at each call."""

    def items(self, agent: str | None = None, *, deleted: bool = False) -> list[StoredKnowledge]:
        """Return the items of an agent, or of all agents, by number.

        Args:
            deleted: return the deleted items instead of the others.
        """
        of_agent = "" if agent is None else "AND k.agent = :agent"
        sql = f"""
            SELECT {_COLUMNS}
            FROM knowledge_items k INDEXED BY knowledge_items_by_agent
                CROSS JOIN owners o ON o.namespace = k.namespace AND o.number = k.owner
            WHERE k.namespace = {SPACE} {of_agent} AND (o.expired_at IS NOT NULL) = :deleted
            ORDER BY o.number
        """
        return [build_item(row) for row in self._rows(sql, agent=agent, deleted=deleted)]

    def of_numbers(self, numbers: Sequence[int]) -> dict[int, StoredKnowledge]:
        """Return items by their owners' numbers, deleted or not; unknown numbers are absent."""
        sql = f"""
            SELECT {_COLUMNS}
            FROM {unnest("numbers")} j
                CROSS JOIN knowledge_items k ON k.owner = j.value
                CROSS JOIN owners o ON o.namespace = k.namespace AND o.number = k.owner
            WHERE k.namespace = {SPACE}
        """
        return {row[0]: build_item(row) for row in self._rows(sql, numbers=listed_numbers(numbers))}

    def agents(self) -> list[AgentCounts]:
        """Return the counts of the agents with items, including deleted ones, sorted by name."""
        sql = f"""
            SELECT k.agent, count(*) FILTER (WHERE o.expired_at IS NULL),
                count(*) FILTER (WHERE o.expired_at IS NOT NULL)
            FROM knowledge_items k INDEXED BY knowledge_items_by_agent
                CROSS JOIN owners o ON o.namespace = k.namespace AND o.number = k.owner
            WHERE k.namespace = {SPACE}
            GROUP BY k.agent
        """
        unsorted = [AgentCounts(*row) for row in self._rows(sql)]
        return sorted(unsorted, key=lambda counts: counts.agent)

    def context(self, name: str) -> ContextRecord | None:
        """Return the context with this name; None if there is none."""
        return next(iter(self._find(_CONTEXT, {"name": name})), None)

    def contexts(self) -> list[ContextRecord]:
        """Return all contexts, by name."""
        return self._find(_CONTEXT, clause="ORDER BY name")


class KnowledgeChange(ChangingSpace, KnowledgeReading):
    """The knowledge of one namespace inside one write transaction.

    Adding, deleting or erasing an item takes a change number; a context takes none.
    """

    def put(
        self, write: KnowledgeWrite, *, created_at: float, updated_at: float, deleted_at: float | None = None
    ) -> int:
        """Write an item, replacing the live owner of that kind with its id, and return its number.

        With `deleted_at` it is past from the start and replaces nothing.
        """
        times = created_at, updated_at, deleted_at
        change = self._change
        stored = check_recorded(write, "knowledge", "a knowledge item", change.embedding, *times)
        if deleted_at is None:
            number = change.put_owner(OwnerWrite(stored.owner, stored.passages), created_at)
        else:
            number = change.add_owner(stored.owner, stored.passages, created_at=created_at, expired_at=deleted_at)
        change.write(stored.record, owner=number, updated_at=updated_at)
        return number

    def expire(self, numbers: Sequence[int], at: float) -> int:
        """Delete live items softly, from `at` on; return how many there were."""
        check_times("a deletion", at)
        return sum(self._change.expire_owner(number, at) for number in self.of_numbers(numbers))

    def erase(self, numbers: Sequence[int]) -> int:
        """Delete items, live or past, with their dependent rows; return how many there were."""
        return sum(self._change.remove_owner(number) for number in self.of_numbers(numbers))

    def put_context(self, context: ContextRecord) -> None:
        """Write a context, replacing the one with the same name."""
        self._change.put(context)

    def drop_context(self, name: str) -> bool:
        """Delete a context; return whether there was one."""
        return bool(self._change.drop("agent_contexts", name=name).rowcount)
