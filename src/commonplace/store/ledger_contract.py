"""What every store promises about the ledger: issues, the events on them, what undoes a change, and the rate of acts.

No rule about issues lives in a store: which are the same, who may claim one and when it is tried again is decided by
whoever holds the `LedgerChange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal, RunChanges


class LedgerReading(Protocol):
    """The ledger of one namespace, as it is when each call is made."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        ...

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        ...

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id.

        It reads less than `issues` does, where those texts alone are looked through.
        """
        ...

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        ...

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        ...

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that issues of an agent with one of these statuses name."""
        ...

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        ...

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        ...

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        ...

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        ...

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time.

        They are of no namespace: a rate limits all that work on a store.
        """
        ...


class LedgerChange(LedgerReading, Protocol):
    """The ledger of one namespace inside one write transaction; it reads its own writes. It takes no change number.

    Raises:
        StoreError: it is used after its block has ended.
        UsageError: a number or a text does not fit a store.
    """

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        ...

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one.

        Events and what undoes a change go also where the issue itself is kept by another program.
        """
        ...

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        ...

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had.

        One without a number gets the next; one with a number keeps it.
        """
        ...

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        ...

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        ...
