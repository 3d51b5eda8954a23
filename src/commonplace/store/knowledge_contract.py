"""What every store promises about agents' knowledge: items by agent, soft deletion, and the contexts of agents.

An item is an owner of the kind "knowledge" with a `KnowledgeRecord`. A deleted one is past: in no list of owners, not
in counts, not in what the index follows; it stays readable by number and as of its time, until it is erased. An owner
of that kind without a record is a document, of which none of this knows. Which maps are the same, what is embedded and
when is decided by whoever holds the `KnowledgeChange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeWrite, StoredKnowledge


class KnowledgeReading(Protocol):
    """The knowledge of one namespace, as it is when each call is made."""

    def items(self, agent: str | None = None, *, deleted: bool = False) -> list[StoredKnowledge]:
        """Return the items of an agent, or of all, by number.

        Args:
            deleted: those that were deleted, in place of the others.
        """
        ...

    def of_numbers(self, numbers: Sequence[int]) -> dict[int, StoredKnowledge]:
        """Return items by their owners' numbers, deleted or not; others are absent."""
        ...

    def agents(self) -> list[AgentCounts]:
        """Return the agents that have items, deleted ones too, by name."""
        ...

    def context(self, name: str) -> ContextRecord | None:
        """Return the context of an agent."""
        ...

    def contexts(self) -> list[ContextRecord]:
        """Return all contexts, by name."""
        ...


class KnowledgeChange(KnowledgeReading, Protocol):
    """The knowledge of one namespace inside one write transaction; it reads its own writes.

    What comes, goes or is deleted takes a change number; a context takes none. What cannot be written is refused before
    anything of it is.

    Raises:
        StoreError: it is used after its block has ended, or a vector is not of the store's embedder.
        UsageError: a number does not fit a store, or an owner is of another kind or of a file.
    """

    def put(
        self, write: KnowledgeWrite, *, created_at: float, updated_at: float, deleted_at: float | None = None
    ) -> int:
        """Write an item in the place of the live owner of that kind with its id, and return its number.

        With `deleted_at` it is past from the start and takes nobody's place.
        """
        ...

    def expire(self, numbers: Sequence[int], at: float) -> int:
        """Delete live items softly, from `at` on; return how many there were."""
        ...

    def erase(self, numbers: Sequence[int]) -> int:
        """Delete items, live or past, with all that hangs on them; return how many there were."""
        ...

    def put_context(self, context: ContextRecord) -> None:
        """Write a context in the place of the one with its name."""
        ...

    def drop_context(self, name: str) -> bool:
        """Delete a context; return whether there was one."""
        ...
