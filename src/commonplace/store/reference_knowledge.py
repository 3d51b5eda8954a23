"""Agents' knowledge in the in-memory store: every answer by looking at all there is. It knows no lock and no rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from commonplace.store.batches import check_times
from commonplace.store.knowledge_checks import check_context, check_item
from commonplace.store.reference_state import KnowledgeRow, Row
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeWrite, StoredKnowledge

if TYPE_CHECKING:
    from commonplace.store.reference_state import Space
    from commonplace.store.reference_transaction import ReferenceTransaction


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
        owned = check_item(write, self._transaction.embedding, created_at, updated_at, deleted_at)
        number = None if deleted_at is not None else change.space.by_id.get((owned.owner.kind, owned.owner.id))
        if number is not None:
            change.remove(number)
        row = Row(
            owned.owner,
            change.number,
            change.next_passage,
            owned.passages,
            created_at,
            deleted_at,
            knowledge=KnowledgeRow(write.record, updated_at),
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
        check_context(context)
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
