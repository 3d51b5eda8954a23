"""The ledger in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from commonplace.errors import UsageError
from commonplace.store.rows import Row, pack_id, pack_text, pack_texts, unpack, unpack_texts
from commonplace.store.transaction import At, ChangingSpace, SpaceReading, StoredSpace, rows_of
from commonplace.store.writes import check_times, refuse_wide
from commonplace.types.ledger import UNFINISHED, Issue, IssueEvent, IssueSelection, Reversal, RunChanges

_ISSUE = """
    SELECT id, title, agent, memory_ids, description, notes, status, priority, issue_type, labels, dependencies,
        comments, rest, created_at, updated_at, closed_at, close_reason, retries, retry_at, claimed_by, claimed_at,
        escalated_at
    FROM issues
"""

ISSUES = f"{_ISSUE} WHERE namespace = :space"

ISSUE = f"{ISSUES} AND id = :id"

OF_STATUS = f"{_ISSUE} INDEXED BY issues_by_status WHERE namespace = :space AND status = :status"

OF_MEMORY = "SELECT issue FROM issue_memories WHERE namespace = :space AND memory = :memory"

OF_AGENT = f"{OF_STATUS} AND agent = :agent"

NAMED = """
    SELECT m.memory FROM issues AS i INDEXED BY issues_by_status
        JOIN issue_memories AS m INDEXED BY issue_memories_by_issue ON m.namespace = i.namespace AND m.issue = i.id
    WHERE i.namespace = :space AND i.status = :status AND i.agent = :agent
"""

BODIES = "SELECT id, notes, dependencies, comments, rest FROM issues WHERE namespace = :space"

COUNTS = "SELECT agent, status, count(*) FROM issues WHERE namespace = :space GROUP BY agent, status"

PUT_ISSUE = """
    INSERT OR REPLACE INTO issues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

DROP_ISSUE = "DELETE FROM issues WHERE namespace = ? AND id = ?"

CLEAR_ISSUE_MEMORIES = "DELETE FROM issue_memories WHERE namespace = ? AND issue = ?"

ADD_ISSUE_MEMORY = "INSERT INTO issue_memories VALUES (?, ?, ?)"

EVENTS = "SELECT issue, at, actor, act, why FROM issue_events WHERE namespace = :space ORDER BY number"

EVENTS_OF = """
    SELECT issue, at, actor, act, why FROM issue_events WHERE namespace = :space AND issue = :issue ORDER BY number
"""

ADD_EVENT = "INSERT INTO issue_events (namespace, issue, at, actor, act, why) VALUES (?, ?, ?, ?, ?, ?)"

DROP_EVENTS = "DELETE FROM issue_events WHERE namespace = ? AND issue = ?"

_REVERSAL = "SELECT issue, run, at, memory_ids, steps, number, undone_at FROM reversals"

REVERSALS = f"{_REVERSAL} WHERE namespace = :space AND number > :after"

REVERSALS_OF_RUN = (
    f"{_REVERSAL} INDEXED BY reversals_by_run WHERE namespace = :space AND run = :run AND number > :after"
)

RUNS = "SELECT run, min(at), count(*), count(undone_at) FROM reversals WHERE namespace = :space GROUP BY run"

REVERSAL = f"{_REVERSAL} WHERE namespace = :space AND issue = :issue"

REVERSALS_OF_MEMORY = "SELECT issue FROM reversal_memories WHERE namespace = :space AND memory = :memory"

LAST_REVERSAL = "SELECT coalesce(max(number), 0) FROM reversals WHERE namespace = :space"

HOLDER = "SELECT issue FROM reversals WHERE namespace = :space AND number = :number"

ADD_REVERSAL = "INSERT INTO reversals VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

DROP_REVERSAL = "DELETE FROM reversals WHERE namespace = ? AND issue = ?"

CLEAR_REVERSAL_MEMORIES = "DELETE FROM reversal_memories WHERE namespace = ? AND issue = ?"

ADD_REVERSAL_MEMORY = "INSERT INTO reversal_memories VALUES (?, ?, ?)"

OPERATIONS = "SELECT at, count FROM operations WHERE at >= ? ORDER BY at"

ADD_OPERATIONS = "INSERT INTO operations VALUES (?, ?) ON CONFLICT (at) DO UPDATE SET count = count + excluded.count"

DROP_OPERATIONS = "DELETE FROM operations WHERE at < ?"


def pack_issue(issue: Issue) -> Row:
    """Return the columns of an issue, from `id` on."""
    return (
        pack_id(issue.id),
        pack_text(issue.title),
        pack_text(issue.agent),
        pack_texts(issue.memory_ids),
        pack_text(issue.description),
        pack_text(issue.notes),
        pack_text(issue.status),
        issue.priority,
        pack_text(issue.issue_type),
        pack_texts(issue.labels),
        pack_text(issue.dependencies),
        pack_text(issue.comments),
        pack_text(issue.rest),
        issue.created_at,
        issue.updated_at,
        issue.closed_at,
        pack_text(issue.close_reason),
        issue.retries,
        issue.retry_at,
        pack_text(issue.claimed_by),
        issue.claimed_at,
        issue.escalated_at,
    )


def unpack_issue(row: Row) -> Issue:
    """Build an issue from the columns of `ledger_queries`."""
    id_, title, agent, memory_ids, description, notes, status, priority, issue_type, labels = row[:10]
    dependencies, comments, rest, created_at, updated_at, closed_at, close_reason = row[10:17]
    retries, retry_at, claimed_by, claimed_at, escalated_at = row[17:]
    return Issue(
        id=unpack(id_),
        title=unpack(title),
        agent=unpack(agent),
        memory_ids=unpack_texts(memory_ids),
        description=unpack(description),
        notes=unpack(notes),
        status=unpack(status),
        priority=priority,
        issue_type=unpack(issue_type),
        labels=unpack_texts(labels),
        dependencies=unpack(dependencies),
        comments=unpack(comments),
        rest=unpack(rest),
        created_at=created_at,
        updated_at=updated_at,
        closed_at=closed_at,
        close_reason=unpack(close_reason),
        retries=retries,
        retry_at=retry_at,
        claimed_by=unpack(claimed_by),
        claimed_at=claimed_at,
        escalated_at=escalated_at,
    )


def pack_event(event: IssueEvent) -> Row:
    """Return the columns of an event, from `issue` on."""
    return pack_id(event.issue), event.at, pack_text(event.actor), pack_text(event.act), pack_text(event.why)


def unpack_event(row: Row) -> IssueEvent:
    """Build an event from the columns of `ledger_queries`."""
    issue, at, actor, act, why = row
    return IssueEvent(unpack(issue), at, unpack(actor), unpack(act), unpack(why))


def pack_reversal(reversal: Reversal) -> Row:
    """Return the columns of a reversal, from `number` on."""
    return (
        reversal.number,
        pack_id(reversal.issue),
        pack_id(reversal.run),
        reversal.at,
        pack_texts(reversal.memory_ids),
        pack_text(reversal.steps),
        reversal.undone_at,
    )


def unpack_reversal(row: Row) -> Reversal:
    """Build a reversal from the columns of `ledger_queries`."""
    issue, run, at, memory_ids, steps, number, undone_at = row
    return Reversal(unpack(issue), unpack(run), at, unpack_texts(memory_ids), unpack(steps), number, undone_at)


def check_issue(issue: Issue) -> None:
    """Refuse an issue with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    name = f"issue {issue.id!r}"
    refuse_wide(name, issue.priority, issue.retries)
    check_times(name, issue.created_at, issue.updated_at, issue.closed_at)
    check_times(name, issue.retry_at, issue.claimed_at, issue.escalated_at)


def check_event(event: IssueEvent) -> None:
    """Refuse an event whose time is not a number."""
    check_times(f"an event on issue {event.issue!r}", event.at)


def check_reversal(reversal: Reversal) -> None:
    """Refuse a reversal with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, is below 0, or needs more than 64 bits.
    """
    name = f"what undoes issue {reversal.issue!r}"
    refuse_wide(name, reversal.number)
    check_times(name, reversal.at, reversal.undone_at)
    if reversal.number < 0:
        raise UsageError(f"the number {reversal.number} of {name} is below 0", remedy="give 0 for the next one")


def refuse_taken(reversal: Reversal, holder: str | None) -> None:
    """Refuse a number that the reversal of another issue has.

    Args:
        holder: the issue whose reversal has that number, where one has.

    Raises:
        UsageError: naming both issues.
    """
    if holder not in (None, reversal.issue):
        raise UsageError(
            f"the number {reversal.number} of what undoes issue {reversal.issue!r} is that of issue {holder!r}",
            remedy="give 0 for the next one",
        )


def check_operations(at: float, count: int, keep_since: float) -> None:
    """Refuse a time that is not a number, and a count below 0 or beyond 64 bits."""
    check_times("operations", at, keep_since)
    refuse_wide("operations", count)
    if count < 0:
        raise UsageError(f"{count} operations cannot be counted", remedy="give 0 or more")


def chosen(found: Iterable[Issue], wanted: IssueSelection) -> list[Issue]:
    """Return those issues that a selection chooses, by creation, ties by id, cut to its limit and offset."""
    kept = [issue for issue in found if _is_chosen(issue, wanted)]
    kept.sort(key=order)
    end = None if wanted.limit is None else wanted.offset + wanted.limit
    return kept[wanted.offset : end]


def order(issue: Issue) -> tuple[float, str]:
    """Return what issues are ordered by: creation, ties by id."""
    return issue.created_at, issue.id


def _is_chosen(issue: Issue, wanted: IssueSelection) -> bool:
    fields = ((wanted.ids, issue.id), (wanted.agents, issue.agent), (wanted.statuses, issue.status))
    return (
        all(not values or value in values for values, value in fields)
        and (not wanted.labels or not set(issue.labels).isdisjoint(wanted.labels))
        and (not wanted.memory_ids or not set(issue.memory_ids).isdisjoint(wanted.memory_ids))
    )


class SqliteLedgerReading(SpaceReading):
    """What can be read of the ledger of one namespace, through whatever connection `reading` gives."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        found = self._rows(ISSUE, id=pack_id(id_))
        return unpack_issue(found[0]) if found else None

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        with self.reading() as at:
            return chosen(map(unpack_issue, _candidates(at, selection)), selection)

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id."""
        return sorted((unpack(id_), tuple(map(unpack, texts))) for id_, *texts in self._rows(BODIES))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        return {(unpack(agent), unpack(status)): count for agent, status, count in self._rows(COUNTS)}

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
                for (memory,) in rows_of(at, NAMED, status=pack_text(status), agent=pack_text(agent))
            }

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        if issue is None:
            return [unpack_event(row) for row in self._rows(EVENTS)]
        return [unpack_event(row) for row in self._rows(EVENTS_OF, issue=pack_id(issue))]

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        found = self._rows(REVERSAL, issue=pack_id(issue))
        return unpack_reversal(found[0]) if found else None

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        with self.reading() as at:
            found = [unpack_reversal(row) for row in _reversals(at, run, memory_ids, after)]
        kept = [one for one in found if one.number > after and run in (None, one.run)]
        return sorted(kept, key=lambda one: one.number)

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        found = [RunChanges(unpack(run), *told) for run, *told in self._rows(RUNS)]
        return sorted(found, key=lambda each: (-each.at, each.run))

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time."""
        with self.reading() as (db, _):
            return db.execute(OPERATIONS, (at,)).fetchall()


class SqliteLedger(StoredSpace, SqliteLedgerReading):
    """The ledger of one namespace as it is when each call is made."""


class SqliteLedgerChange(ChangingSpace, SqliteLedgerReading):
    """Reads and writes the ledger of one namespace inside a transaction."""

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        db = self._transaction.db
        check_issue(issue)
        space, id_ = self._transaction.begin().space, pack_id(issue.id)
        db.execute(PUT_ISSUE, (space, *pack_issue(issue)))
        db.execute(CLEAR_ISSUE_MEMORIES, (space, id_))
        db.executemany(ADD_ISSUE_MEMORY, _named(space, id_, issue.memory_ids))

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one."""
        change = self._transaction.known()
        if change is None:
            return False
        key = (change.space, pack_id(id_))
        self._transaction.db.execute(CLEAR_ISSUE_MEMORIES, key)
        self._transaction.db.execute(DROP_EVENTS, key)
        self.drop_reversal(id_)
        return bool(self._transaction.db.execute(DROP_ISSUE, key).rowcount)

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        db = self._transaction.db
        check_event(event)
        db.execute(ADD_EVENT, (self._transaction.begin().space, *pack_event(event)))

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had."""
        db = self._transaction.db
        check_reversal(reversal)
        taken = self._rows(HOLDER, number=reversal.number)
        refuse_taken(reversal, unpack(taken[0][0]) if taken else None)
        space, issue = self._transaction.begin().space, pack_id(reversal.issue)
        if not reversal.number:
            ((last,),) = self._rows(LAST_REVERSAL)
            reversal = replace(reversal, number=last + 1)
        self.drop_reversal(reversal.issue)
        db.execute(ADD_REVERSAL, (space, *pack_reversal(reversal)))
        db.executemany(ADD_REVERSAL_MEMORY, _named(space, issue, reversal.memory_ids))

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        change = self._transaction.known()
        if change is None:
            return False
        key = (change.space, pack_id(issue))
        self._transaction.db.execute(CLEAR_REVERSAL_MEMORIES, key)
        return bool(self._transaction.db.execute(DROP_REVERSAL, key).rowcount)

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        db = self._transaction.db
        check_operations(at, count, keep_since)
        self._transaction.begin()
        if count:
            db.execute(ADD_OPERATIONS, (at, count))
        db.execute(DROP_OPERATIONS, (keep_since,))


def _candidates(at: At, selection: IssueSelection) -> list[Row]:
    """Return rows among which those are that a selection chooses, and few others."""
    if selection.ids:
        return [row for id_ in dict.fromkeys(selection.ids) for row in rows_of(at, ISSUE, id=pack_id(id_))]
    if selection.memory_ids:
        return _of_memories(at, selection.memory_ids)
    if selection.statuses:
        statuses, agents = dict.fromkeys(selection.statuses), dict.fromkeys(selection.agents)
        if agents:
            return [row for status in statuses for agent in agents for row in _of_agent(at, status, agent)]
        return [row for status in statuses for row in rows_of(at, OF_STATUS, status=pack_text(status))]
    return rows_of(at, ISSUES)


def _of_memories(at: At, memory_ids: Iterable[str]) -> list[Row]:
    named = {
        issue: None for id_ in dict.fromkeys(memory_ids) for (issue,) in rows_of(at, OF_MEMORY, memory=pack_id(id_))
    }
    return [row for issue in named for row in rows_of(at, ISSUE, id=issue)]


def _of_agent(at: At, status: str, agent: str) -> list[Row]:
    return rows_of(at, OF_AGENT, status=pack_text(status), agent=pack_text(agent))


def _reversals(at: At, run: str | None, memory_ids: Sequence[str], after: int) -> list[Row]:
    if memory_ids:
        named = {
            issue: None
            for id_ in dict.fromkeys(memory_ids)
            for (issue,) in rows_of(at, REVERSALS_OF_MEMORY, memory=pack_id(id_))
        }
        return [row for issue in named for row in rows_of(at, REVERSAL, issue=issue)]
    if run is not None:
        return rows_of(at, REVERSALS_OF_RUN, run=pack_id(run), after=after)
    return rows_of(at, REVERSALS, after=after)


def _named(space: int, issue: str | bytes, memory_ids: Sequence[str]) -> list[Row]:
    return [(space, pack_id(id_), issue) for id_ in dict.fromkeys(memory_ids)]


_CLAIMS = (
    (
        "memories named beside issues or what undoes them, but not by them",
        """
        SELECT (
            SELECT count(*) FROM issue_memories m LEFT JOIN issues i ON i.namespace = m.namespace AND i.id = m.issue
            WHERE i.id IS NULL OR i.memory_ids = ''
        ) + (
            SELECT count(*) FROM reversal_memories m
                LEFT JOIN reversals r ON r.namespace = m.namespace AND r.issue = m.issue
            WHERE r.issue IS NULL OR r.memory_ids = ''
        )
        """,
    ),
    (
        "issues in a namespace that is gone",
        "SELECT count(*) FROM issues WHERE namespace NOT IN (SELECT number FROM namespaces)",
    ),
)


def ledger_problems(db: sqlite3.Connection) -> list[str]:
    """Return one sentence for each claim that fails; issues may be kept by another program, and only be named here."""
    counted = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in _CLAIMS]
    return [f"There are {claim}: {count}." for claim, count in counted if count]
