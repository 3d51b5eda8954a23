"""The ledger in the SQLite store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from commonplace.errors import UsageError
from commonplace.store.rows import Row, add_rows, check_times, checked, form_of, refuse_wide
from commonplace.store.schema import SCHEMA
from commonplace.store.transaction import At, ChangingSpace, SpaceReading, StoredSpace, rows_of
from commonplace.types.ledger import UNFINISHED, Issue, IssueEvent, IssueSelection, Reversal, RunChanges

_ISSUES = form_of(Issue)
_EVENTS = form_of(IssueEvent)
_REVERSALS = form_of(Reversal)
_ISSUE = f"SELECT {_ISSUES.names()} FROM issues"

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

EVENTS = f"SELECT {_EVENTS.names()} FROM issue_events WHERE namespace = :space ORDER BY number"

EVENTS_OF = f"""
    SELECT {_EVENTS.names()} FROM issue_events WHERE namespace = :space AND issue = :issue ORDER BY number
"""

_REVERSAL = f"SELECT {_REVERSALS.names()} FROM reversals"

REVERSALS = f"{_REVERSAL} WHERE namespace = :space AND number > :after"

REVERSALS_OF_RUN = (
    f"{_REVERSAL} INDEXED BY reversals_by_run WHERE namespace = :space AND run = :run AND number > :after"
)

RUNS = "SELECT run, min(at), count(*), count(undone_at) FROM reversals WHERE namespace = :space GROUP BY run"

REVERSAL = f"{_REVERSAL} WHERE namespace = :space AND issue = :issue"

REVERSALS_OF_MEMORY = "SELECT issue FROM reversal_memories WHERE namespace = :space AND memory = :memory"

LAST_REVERSAL = "SELECT coalesce(max(number), 0) FROM reversals WHERE namespace = :space"

HOLDER = "SELECT issue FROM reversals WHERE namespace = :space AND number = :number"

OPERATIONS = "SELECT at, count FROM operations WHERE at >= :at ORDER BY at"

ADD_OPERATIONS = """
    INSERT INTO operations (at, count) VALUES (:at, :count)
    ON CONFLICT (at) DO UPDATE SET count = operations.count + excluded.count
"""

DROP_OPERATIONS = "DELETE FROM operations WHERE at < :before"


def check_reversal(reversal: Reversal) -> Reversal:
    """Return a reversal as it is kept; refuse one with a number below 0.

    Raises:
        UsageError: its number is below 0, or `checked` refuses it.
    """
    if reversal.number < 0:
        raise UsageError(
            f"the number {reversal.number} of what undoes issue {reversal.issue!r} is below 0",
            remedy="give 0 for the next one",
        )
    return checked(reversal, f"what undoes issue {reversal.issue!r}")


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


class LedgerReading(SpaceReading):
    """The ledger of one namespace, as it is when each call is made."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        found = self._rows(ISSUE, id=id_)
        return _ISSUES.build(found[0]) if found else None

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        with self.reading() as at:
            return chosen(map(_ISSUES.build, _candidates(at, selection)), selection)

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id.

        It reads less than `issues` does, where those texts alone are looked through.
        """
        return sorted((id_, tuple(texts)) for id_, *texts in self._rows(BODIES))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        return {(agent, status): count for agent, status, count in self._rows(COUNTS)}

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        wanted = set(memory_ids)
        with self.reading() as at:
            if wanted:
                found = _of_memories(at, [min(wanted)])
            else:
                found = [row for status in UNFINISHED for row in _of_agent(at, status, agent)]
            issues = [_ISSUES.build(row) for row in found]
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
                memory
                for status in dict.fromkeys(statuses)
                for (memory,) in rows_of(at, NAMED, status=status, agent=agent)
            }

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        if issue is None:
            return [_EVENTS.build(row) for row in self._rows(EVENTS)]
        return [_EVENTS.build(row) for row in self._rows(EVENTS_OF, issue=issue)]

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        found = self._rows(REVERSAL, issue=issue)
        return _REVERSALS.build(found[0]) if found else None

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        with self.reading() as at:
            found = [_REVERSALS.build(row) for row in _reversals(at, run, memory_ids, after)]
        kept = [one for one in found if one.number > after and run in (None, one.run)]
        return sorted(kept, key=lambda one: one.number)

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        found = [RunChanges(*row) for row in self._rows(RUNS)]
        return sorted(found, key=lambda each: (-each.at, each.run))

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time.

        They are of no namespace: a rate limits all that work on a store.
        """
        with self.reading() as (db, _):
            return db.execute(OPERATIONS, {"at": at}).fetchall()


class LedgerReader(StoredSpace, LedgerReading):
    """The ledger of one namespace as it is when each call is made."""


class LedgerChange(ChangingSpace, LedgerReading):
    """The ledger of one namespace inside one write transaction; it reads its own writes. It takes no change number.

    Raises:
        StoreError: it is used after its block has ended.
        UsageError: a number or a text does not fit a store.
    """

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        self._transaction.put(issue)
        self._name_memories("issue_memories", issue.id, issue.memory_ids)

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one.

        Events and what undoes a change go also where the issue itself is kept by another program.
        """
        self._transaction.drop("issue_memories", issue=id_)
        self._transaction.drop("issue_events", issue=id_)
        self.drop_reversal(id_)
        return bool(self._transaction.drop("issues", id=id_))

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        self._transaction.put(event)

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had.

        One without a number gets the next; one with a number keeps it.
        """
        reversal = check_reversal(reversal)
        taken = self._rows(HOLDER, number=reversal.number)
        refuse_taken(reversal, taken[0][0] if taken else None)
        if not reversal.number:
            ((last,),) = self._rows(LAST_REVERSAL)
            reversal = replace(reversal, number=last + 1)
        self.drop_reversal(reversal.issue)
        self._transaction.put(reversal)
        self._name_memories("reversal_memories", reversal.issue, reversal.memory_ids)

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        self._transaction.drop("reversal_memories", issue=issue)
        return bool(self._transaction.drop("reversals", issue=issue))

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        db = self._transaction.db
        check_operations(at, count, keep_since)
        self._transaction.begin()
        if count:
            db.execute(ADD_OPERATIONS, {"at": at, "count": count})
        db.execute(DROP_OPERATIONS, {"before": keep_since})

    def _name_memories(self, table: str, issue: str, memory_ids: Sequence[str]) -> None:
        """Note which memories an issue names, in the place of what was noted."""
        self._transaction.drop(table, issue=issue)
        own = {"namespace": self._transaction.begin().space, "issue": issue}
        rows = [{**own, "memory": id_} for id_ in dict.fromkeys(memory_ids)]
        add_rows(self._transaction.db, SCHEMA[table], rows)


def _candidates(at: At, selection: IssueSelection) -> list[Row]:
    """Return rows among which those are that a selection chooses, and few others."""
    if selection.ids:
        return [row for id_ in dict.fromkeys(selection.ids) for row in rows_of(at, ISSUE, id=id_)]
    if selection.memory_ids:
        return _of_memories(at, selection.memory_ids)
    if selection.statuses:
        statuses, agents = dict.fromkeys(selection.statuses), dict.fromkeys(selection.agents)
        if agents:
            return [row for status in statuses for agent in agents for row in _of_agent(at, status, agent)]
        return [row for status in statuses for row in rows_of(at, OF_STATUS, status=status)]
    return rows_of(at, ISSUES)


def _of_memories(at: At, memory_ids: Iterable[str]) -> list[Row]:
    named = {issue: None for id_ in dict.fromkeys(memory_ids) for (issue,) in rows_of(at, OF_MEMORY, memory=id_)}
    return [row for issue in named for row in rows_of(at, ISSUE, id=issue)]


def _of_agent(at: At, status: str, agent: str) -> list[Row]:
    return rows_of(at, OF_AGENT, status=status, agent=agent)


def _reversals(at: At, run: str | None, memory_ids: Sequence[str], after: int) -> list[Row]:
    if memory_ids:
        named = {
            issue: None
            for id_ in dict.fromkeys(memory_ids)
            for (issue,) in rows_of(at, REVERSALS_OF_MEMORY, memory=id_)
        }
        return [row for issue in named for row in rows_of(at, REVERSAL, issue=issue)]
    if run is not None:
        return rows_of(at, REVERSALS_OF_RUN, run=run, after=after)
    return rows_of(at, REVERSALS, after=after)
