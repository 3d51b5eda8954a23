"""The ledger in the SQLite store: a `LedgerReading`, and a `LedgerChange` inside a transaction.

It knows tables, no rule about issues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from commonplace.store import ledger_queries as queries
from commonplace.store.ledger_rows import (
    pack_event,
    pack_issue,
    pack_reversal,
    unpack_event,
    unpack_issue,
    unpack_reversal,
)
from commonplace.store.ledger_rules import (
    check_event,
    check_issue,
    check_operations,
    check_reversal,
    chosen,
    order,
    refuse_taken,
)
from commonplace.store.rows import Row, pack_id, pack_text, unpack
from commonplace.store.sqlite_space import At, ChangingSpace, SpaceReading, StoredSpace, rows_of
from commonplace.types.ledger import UNFINISHED, Issue, IssueEvent, IssueSelection, Reversal, RunChanges


class SqliteLedgerReading(SpaceReading):
    """What can be read of the ledger of one namespace, through whatever connection `reading` gives."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        found = self._rows(queries.ISSUE, id=pack_id(id_))
        return unpack_issue(found[0]) if found else None

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        with self.reading() as at:
            return chosen(map(unpack_issue, _candidates(at, selection)), selection)

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id."""
        return sorted((unpack(id_), tuple(map(unpack, texts))) for id_, *texts in self._rows(queries.BODIES))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        return {(unpack(agent), unpack(status)): count for agent, status, count in self._rows(queries.COUNTS)}

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        wanted = set(memory_ids)
        with self.reading() as at:
            if wanted:
                found = _of_memories(at, [min(wanted)])
            else:
                found = [row for status in UNFINISHED for row in _of_agent(at, status, agent)]
            issues = [unpack_issue(row) for row in found]
        alike = [
            issue
            for issue in issues
            if issue.agent == agent and issue.status in UNFINISHED and set(issue.memory_ids) == wanted
        ]
        return min(alike, key=order, default=None)

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that issues of an agent with one of these statuses name."""
        with self.reading() as at:
            return {
                unpack(memory)
                for status in dict.fromkeys(statuses)
                for (memory,) in rows_of(at, queries.NAMED, status=pack_text(status), agent=pack_text(agent))
            }

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        if issue is None:
            return [unpack_event(row) for row in self._rows(queries.EVENTS)]
        return [unpack_event(row) for row in self._rows(queries.EVENTS_OF, issue=pack_id(issue))]

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        found = self._rows(queries.REVERSAL, issue=pack_id(issue))
        return unpack_reversal(found[0]) if found else None

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        with self.reading() as at:
            found = [unpack_reversal(row) for row in _reversals(at, run, memory_ids, after)]
        kept = [one for one in found if one.number > after and run in (None, one.run)]
        return sorted(kept, key=lambda one: one.number)

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        found = [RunChanges(unpack(run), *told) for run, *told in self._rows(queries.RUNS)]
        return sorted(found, key=lambda each: (-each.at, each.run))

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time."""
        with self.reading() as (db, _):
            return db.execute(queries.OPERATIONS, (at,)).fetchall()


class SqliteLedger(StoredSpace, SqliteLedgerReading):
    """The ledger of one namespace as it is when each call is made."""


class SqliteLedgerChange(ChangingSpace, SqliteLedgerReading):
    """Reads and writes the ledger of one namespace inside a transaction."""

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        db = self._transaction.db
        check_issue(issue)
        space, id_ = self._transaction.begin().space, pack_id(issue.id)
        db.execute(queries.PUT_ISSUE, (space, *pack_issue(issue)))
        db.execute(queries.CLEAR_ISSUE_MEMORIES, (space, id_))
        db.executemany(queries.ADD_ISSUE_MEMORY, _named(space, id_, issue.memory_ids))

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one."""
        change = self._transaction.known()
        if change is None:
            return False
        key = (change.space, pack_id(id_))
        self._transaction.db.execute(queries.CLEAR_ISSUE_MEMORIES, key)
        self._transaction.db.execute(queries.DROP_EVENTS, key)
        self.drop_reversal(id_)
        return bool(self._transaction.db.execute(queries.DROP_ISSUE, key).rowcount)

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        db = self._transaction.db
        check_event(event)
        db.execute(queries.ADD_EVENT, (self._transaction.begin().space, *pack_event(event)))

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had."""
        db = self._transaction.db
        check_reversal(reversal)
        taken = self._rows(queries.HOLDER, number=reversal.number)
        refuse_taken(reversal, unpack(taken[0][0]) if taken else None)
        space, issue = self._transaction.begin().space, pack_id(reversal.issue)
        if not reversal.number:
            ((last,),) = self._rows(queries.LAST_REVERSAL)
            reversal = replace(reversal, number=last + 1)
        self.drop_reversal(reversal.issue)
        db.execute(queries.ADD_REVERSAL, (space, *pack_reversal(reversal)))
        db.executemany(queries.ADD_REVERSAL_MEMORY, _named(space, issue, reversal.memory_ids))

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        change = self._transaction.known()
        if change is None:
            return False
        key = (change.space, pack_id(issue))
        self._transaction.db.execute(queries.CLEAR_REVERSAL_MEMORIES, key)
        return bool(self._transaction.db.execute(queries.DROP_REVERSAL, key).rowcount)

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        db = self._transaction.db
        check_operations(at, count, keep_since)
        self._transaction.begin()
        if count:
            db.execute(queries.ADD_OPERATIONS, (at, count))
        db.execute(queries.DROP_OPERATIONS, (keep_since,))


def _candidates(at: At, selection: IssueSelection) -> list[Row]:
    """Return rows among which those are that a selection chooses, and few others."""
    if selection.ids:
        return [row for id_ in dict.fromkeys(selection.ids) for row in rows_of(at, queries.ISSUE, id=pack_id(id_))]
    if selection.memory_ids:
        return _of_memories(at, selection.memory_ids)
    if selection.statuses:
        statuses, agents = dict.fromkeys(selection.statuses), dict.fromkeys(selection.agents)
        if agents:
            return [row for status in statuses for agent in agents for row in _of_agent(at, status, agent)]
        return [row for status in statuses for row in rows_of(at, queries.OF_STATUS, status=pack_text(status))]
    return rows_of(at, queries.ISSUES)


def _of_memories(at: At, memory_ids: Iterable[str]) -> list[Row]:
    named = {
        issue: None
        for id_ in dict.fromkeys(memory_ids)
        for (issue,) in rows_of(at, queries.OF_MEMORY, memory=pack_id(id_))
    }
    return [row for issue in named for row in rows_of(at, queries.ISSUE, id=issue)]


def _of_agent(at: At, status: str, agent: str) -> list[Row]:
    return rows_of(at, queries.OF_AGENT, status=pack_text(status), agent=pack_text(agent))


def _reversals(at: At, run: str | None, memory_ids: Sequence[str], after: int) -> list[Row]:
    if memory_ids:
        named = {
            issue: None
            for id_ in dict.fromkeys(memory_ids)
            for (issue,) in rows_of(at, queries.REVERSALS_OF_MEMORY, memory=pack_id(id_))
        }
        return [row for issue in named for row in rows_of(at, queries.REVERSAL, issue=issue)]
    if run is not None:
        return rows_of(at, queries.REVERSALS_OF_RUN, run=pack_id(run), after=after)
    return rows_of(at, queries.REVERSALS, after=after)


def _named(space: int, issue: str | bytes, memory_ids: Sequence[str]) -> list[Row]:
    return [(space, pack_id(id_), issue) for id_ in dict.fromkeys(memory_ids)]
