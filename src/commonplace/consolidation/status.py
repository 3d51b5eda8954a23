"""Say what waits, is in progress or blocked. It only reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.ledger import window
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from commonplace.consolidation.ground import Ground

_COLUMNS = {"open": "pending", "in_progress": "in_progress", "blocked": "blocked"}


@dataclass(frozen=True, slots=True)
class ConsolidationStatus:
    """What waits for agents.

    Attributes:
        agents: by agent, how many issues are `pending`, `in_progress` and `blocked`.
        rate_limit_remaining: how many operations may follow within a minute; None where there is no limit.
    """

    agents: Mapping[str, Mapping[str, int]]
    rate_limit_remaining: int | None

    @property
    def total_pending(self) -> int:
        """How many issues of these agents are pending."""
        return sum(counts["pending"] for counts in self.agents.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as the contract has it."""
        return {
            "agents": {agent: dict(counts) for agent, counts in self.agents.items()},
            "total_pending": self.total_pending,
            "rate_limit_remaining": self.rate_limit_remaining,
        }


def status_of(ground: Ground, agent: str | None, rate_limit: int) -> ConsolidationStatus:
    """Return what waits for one agent, or for all."""
    counted = ground.issues.counts()
    agents: dict[str, Mapping[str, int]] = {
        name: {column: counted.get(name, {}).get(status, 0) for status, column in _COLUMNS.items()}
        for name in AGENTS
        if agent in (None, name)
    }
    left = window.remaining(ground.store.ledger(ground.namespace), ground.now(), rate_limit)
    return ConsolidationStatus(agents, left)
