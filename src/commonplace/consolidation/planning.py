"""What an agent would do with an item, made without writing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from commonplace.consolidation.acting import Acts
    from commonplace.consolidation.results import Result
    from commonplace.types import StoredMemory
    from commonplace.types.ledger import Agent, Urgency

T = TypeVar("T", bound="Result")


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """What an agent would do with an item.

    Attributes:
        result: what a dry run returns.
        basis: the versions that it rests on.
        agent: whose the issue is: of the one that is to act on it.
        action: one word.
        why: the reason, one line, without words of a memory.
        extra: what the issue's notes tell besides: scores and the like, no words of a memory.
        apply: does it, and returns the result; None where there is nothing to do but to tell.
        needs_a_person: done only when somebody asks for it by its issue, however sure the agent is.
        is_filed: whether an issue tells of it.
    """

    result: T
    basis: tuple[StoredMemory, ...]
    agent: Agent
    action: str
    confidence: float
    urgency: Urgency = "medium"
    why: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    apply: Callable[[Acts], T] | None = None
    needs_a_person: bool = False
    is_filed: bool = True

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids that the issue names, sorted."""
        return tuple(sorted({memory.owner.id for memory in self.basis}))

    @property
    def notes(self) -> dict[str, object]:
        """What the issue's notes tell besides what all notes do."""
        return {"confidence": round(self.confidence, 4), "why": self.why, **self.extra}
