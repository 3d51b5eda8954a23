"""The ledger of the reference store, in dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.store.ledger import chosen, order
from commonplace.store.rows import check_times, checked, refuse_wide
from commonplace.types.ledger import UNFINISHED, Issue, IssueEvent, IssueSelection, Reversal, RunChanges

if TYPE_CHECKING:
    from tests.reference_store.state import ReferenceTransaction


@dataclass(slots=True)
class LedgerState:
    """The ledger of one namespace.

    Attributes:
        reversals: by issue.
    """

    issues: dict[str, Issue] = field(default_factory=dict)
    events: list[IssueEvent] = field(default_factory=list)
    reversals: dict[str, Reversal] = field(default_factory=dict)

    def copy(self) -> LedgerState:
        """Return a ledger that can be changed without changing this one."""
        return LedgerState(dict(self.issues), list(self.events), dict(self.reversals))


Opened = tuple[LedgerState, dict[float, int]]
"""The ledger of a namespace, and the operations of the whole store by time."""


class ReferenceLedger:
    """A `LedgerReading` of whatever `opened` gives, for as long as each call lasts."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Opened]]) -> None:
        self._opened = opened

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        with self._opened() as (ledger, _):
            return ledger.issues.get(id_)

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        with self._opened() as (ledger, _):
            return chosen(ledger.issues.values(), selection)

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id."""
        with self._opened() as (ledger, _):
            found = sorted(ledger.issues.items())
        return [(id_, (issue.notes, issue.dependencies, issue.comments, issue.rest)) for id_, issue in found]

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        with self._opened() as (ledger, _):
            return dict(Counter((issue.agent, issue.status) for issue in ledger.issues.values()))

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        found = self.issues(IssueSelection(agents=(agent,), statuses=UNFINISHED))
        return min((issue for issue in found if set(issue.memory_ids) == set(memory_ids)), key=order, default=None)

    def memories_named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that issues of an agent with one of these statuses name."""
        found = self.issues(IssueSelection(agents=(agent,), statuses=tuple(statuses))) if statuses else []
        return {id_ for issue in found for id_ in issue.memory_ids}

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        with self._opened() as (ledger, _):
            return [event for event in ledger.events if issue in (None, event.issue)]

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        with self._opened() as (ledger, _):
            return ledger.reversals.get(issue)

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        with self._opened() as (ledger, _):
            found = sorted(ledger.reversals.values(), key=lambda reversal: reversal.number)
        return [
            reversal
            for reversal in found
            if reversal.number > after
            and run in (None, reversal.run)
            and (not memory_ids or not set(reversal.memory_ids).isdisjoint(memory_ids))
        ]

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        by_run: dict[str, list[Reversal]] = {}
        for reversal in self.reversals():
            by_run.setdefault(reversal.run, []).append(reversal)
        found = [
            RunChanges(run, min(each.at for each in held), len(held), sum(each.undone_at is not None for each in held))
            for run, held in by_run.items()
        ]
        return sorted(found, key=lambda each: (-each.at, each.run))

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time."""
        with self._opened() as (_, operations):
            return sorted(item for item in operations.items() if item[0] >= at)


class ReferenceLedgerChange(ReferenceLedger):
    """A `LedgerChange` on the copy of a namespace."""

    def __init__(self, transaction: ReferenceTransaction) -> None:
        self._transaction = transaction
        super().__init__(self._reading)

    @contextmanager
    def _reading(self) -> Iterator[Opened]:
        yield self._ledger, self._transaction.operations

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        ledger = self._ledger
        issue = checked(issue)
        ledger.issues[issue.id] = issue
        self._transaction.is_written = True

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one."""
        ledger = self._ledger
        was_there = ledger.issues.pop(id_, None) is not None
        kept = [event for event in ledger.events if event.issue != id_]
        is_changed = was_there or len(kept) < len(ledger.events)
        ledger.events = kept
        self.drop_reversal(id_)
        self._transaction.is_written |= is_changed
        return was_there

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        ledger = self._ledger
        event = checked(event)
        ledger.events.append(event)
        self._transaction.is_written = True

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had."""
        ledger = self._ledger
        holders = {held.number: held.issue for held in ledger.reversals.values()}
        reversal = checked(reversal)
        number, holder = reversal.number, holders.get(reversal.number)
        if number < 0 or holder not in (None, reversal.issue):
            problem = "below 0" if number < 0 else f"that of issue {holder!r}"
            raise UsageError(
                f"the number {number} of what undoes issue {reversal.issue!r} is {problem}",
                remedy="give 0 for the next one",
            )
        if not reversal.number:
            reversal = replace(reversal, number=max(holders, default=0) + 1)
        ledger.reversals[reversal.issue] = reversal
        self._transaction.is_written = True

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        is_gone = self._ledger.reversals.pop(issue, None) is not None
        self._transaction.is_written |= is_gone
        return is_gone

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        operations = self._transaction.operations
        check_times("operations", at, keep_since)
        refuse_wide("operations", count)
        if count < 0:
            raise UsageError(f"{count} operations cannot be counted", remedy="give 0 or more")
        if count:
            operations[at] = operations.get(at, 0) + count
        for time in [time for time in operations if time < keep_since]:
            del operations[time]

    @property
    def _ledger(self) -> LedgerState:
        return self._transaction.change.space.ledger
