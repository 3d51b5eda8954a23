"""The ledger in the SQLite store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.store.change import ChangingSpace, SpaceReading
from commonplace.store.dialect import SPACE, among, listed
from commonplace.store.rows import check_times, checked, form_of, refuse_wide
from commonplace.store.schema import SCHEMA
from commonplace.types.ledger import UNFINISHED, Issue, IssueEvent, IssueSelection, Reversal, RunChanges

_ISSUES = form_of(Issue)
_EVENTS = form_of(IssueEvent)
_REVERSALS = form_of(Reversal)


def chosen(found: Iterable[Issue], wanted: IssueSelection) -> list[Issue]:
    """Return those issues that a selection chooses, by creation, ties by id."""
    kept = [
        issue
        for issue in found
        if (not wanted.ids or issue.id in wanted.ids)
        and (not wanted.agents or issue.agent in wanted.agents)
        and (not wanted.statuses or issue.status in wanted.statuses)
        and (not wanted.memory_ids or not set(issue.memory_ids).isdisjoint(wanted.memory_ids))
    ]
    return sorted(kept, key=order)


def order(issue: Issue) -> tuple[float, str]:
    """Return what issues are ordered by: creation, ties by id."""
    return issue.created_at, issue.id


class LedgerReading(SpaceReading):
    """The ledger of one namespace, as it is when each call is made."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue."""
        return next(iter(self._find(_ISSUES, {"id": id_})), None)

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, by creation, ties by id."""
        given = {"id": selection.ids, "status": selection.statuses, "agent": selection.agents}
        wanted: dict[str, Any] = {name: values for name, values in given.items() if values}
        if selection.memory_ids and not selection.ids:
            wanted["id"] = self._of_memories("issue_memories", selection.memory_ids)
        by = "issues_by_status" if "status" in wanted and "id" not in wanted else ""
        return chosen(self._find(_ISSUES, wanted, by=by), selection)

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, its notes, dependencies, comments and rest) of every issue, by id.

        It reads less than `issues` does, where those texts alone are looked through.
        """
        sql = f"SELECT id, notes, dependencies, comments, rest FROM issues WHERE namespace = {SPACE}"
        return sorted((id_, tuple(texts)) for id_, *texts in self._rows(sql))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many issues there are by (agent, status)."""
        sql = f"SELECT agent, status, count(*) FROM issues WHERE namespace = {SPACE} GROUP BY agent, status"
        return {(agent, status): count for agent, status, count in self._rows(sql)}

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        wanted = set(memory_ids)
        about = (min(wanted),) if wanted else ()
        issues = self.issues(IssueSelection(agents=(agent,), statuses=UNFINISHED, memory_ids=about))
        return next((issue for issue in issues if set(issue.memory_ids) == wanted), None)

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that issues of an agent with one of these statuses name."""
        sql = f"""
            SELECT m.memory FROM issues AS i INDEXED BY issues_by_status
                JOIN issue_memories AS m INDEXED BY issue_memories_by_issue
                    ON m.namespace = i.namespace AND m.issue = i.id
            WHERE i.namespace = {SPACE} AND i.status IN {among("statuses")} AND i.agent = :agent
        """
        return {memory for (memory,) in self._rows(sql, statuses=listed(statuses), agent=agent)}

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all, in the order in which they were written."""
        return self._find(_EVENTS, {} if issue is None else {"issue": issue}, "ORDER BY number")

    def reversal(self, issue: str) -> Reversal | None:
        """Return what undoes the change of an issue."""
        return next(iter(self._find(_REVERSALS, {"issue": issue})), None)

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return reversals by number: of a run, of memories (any of them), and with a higher number than `after`."""
        wanted: dict[str, Any] = {} if run is None else {"run": run}
        if memory_ids:
            wanted["issue"] = self._of_memories("reversal_memories", memory_ids)
        by = "reversals_by_run" if wanted.keys() == {"run"} else ""
        return self._find(_REVERSALS, wanted, "AND number > :after ORDER BY number", by=by, after=after)

    def runs(self) -> list[RunChanges]:
        """Return what each run changed, the latest first, ties by run."""
        sql = f"SELECT run, min(at), count(*), count(undone_at) FROM reversals WHERE namespace = {SPACE} GROUP BY run"
        found = [RunChanges(*row) for row in self._rows(sql)]
        return sorted(found, key=lambda each: (-each.at, each.run))

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, how many) of the operations of the whole store at or after a time, by time.

        They are of no namespace: a rate limits all that work on a store.
        """
        return self._rows("SELECT at, count FROM operations WHERE at >= :at ORDER BY at", at=at)

    def _of_memories(self, table: str, memory_ids: Sequence[str]) -> list[str]:
        """Return the issues that a table lists with any of these memories."""
        sql = f"SELECT DISTINCT issue FROM {table} WHERE namespace = {SPACE} AND memory IN {among('memories')}"
        return [issue for (issue,) in self._rows(sql, memories=listed(memory_ids))]


class LedgerChange(ChangingSpace, LedgerReading):
    """The ledger of one namespace inside one write transaction; it takes no change number."""

    def put_issue(self, issue: Issue) -> None:
        """Write an issue in the place of the one with its id."""
        self._change.put(issue)
        self._name_memories("issue_memories", issue.id, issue.memory_ids)

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and what undoes it; return whether there was one.

        Events and what undoes a change go also where the issue itself is kept by another program.
        """
        self._change.drop("issue_memories", issue=id_)
        self._change.drop("issue_events", issue=id_)
        self.drop_reversal(id_)
        return bool(self._change.drop("issues", id=id_).rowcount)

    def add_event(self, event: IssueEvent) -> None:
        """Write an event after all others."""
        kept, change = checked(event), self._change
        if not change.last_event:
            # PostgreSQL reads a small parameter as a smallint, and shifts all of its bits out.
            sql = """
                SELECT coalesce(max(number), (CAST(:space AS BIGINT) - 1) << 32) FROM issue_events
                WHERE namespace = :space AND number > (CAST(:space AS BIGINT) - 1) << 32
                    AND number < CAST(:space AS BIGINT) << 32
            """
            ((change.last_event,),) = change.rows(sql, {"space": change.space})
        change.last_event += 1
        change.write(kept, number=change.last_event)

    def put_reversal(self, reversal: Reversal) -> None:
        """Write what undoes the change of an issue, in the place of what the issue had.

        One without a number gets the next; one with a number keeps it.
        """
        reversal = checked(reversal)
        number, taken = reversal.number, self._find(_REVERSALS, {"number": reversal.number})
        if number < 0 or (taken and taken[0].issue != reversal.issue):
            problem = "below 0" if number < 0 else f"that of issue {taken[0].issue!r}"
            raise UsageError(
                f"the number {number} of what undoes issue {reversal.issue!r} is {problem}",
                remedy="give 0 for the next one",
            )
        if not reversal.number:
            sql = f"SELECT coalesce(max(number), 0) FROM reversals WHERE namespace = {SPACE}"
            ((last,),) = self._rows(sql)
            reversal = replace(reversal, number=last + 1)
        self.drop_reversal(reversal.issue)
        self._change.put(reversal)
        self._name_memories("reversal_memories", reversal.issue, reversal.memory_ids)

    def drop_reversal(self, issue: str) -> bool:
        """Delete what undoes the change of an issue; return whether there was any."""
        self._change.drop("reversal_memories", issue=issue)
        return bool(self._change.drop("reversals", issue=issue).rowcount)

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Count operations at a time, and forget those before `keep_since`."""
        check_times("operations", at, keep_since)
        refuse_wide("operations", count)
        if count < 0:
            raise UsageError(f"{count} operations cannot be counted", remedy="give 0 or more")
        if count:
            sql = """
                INSERT INTO operations (at, count) VALUES (:at, :count)
                ON CONFLICT (at) DO UPDATE SET count = operations.count + excluded.count
            """
            self._change.execute(sql, {"at": at, "count": count})
        self._change.execute("DELETE FROM operations WHERE at < :before", {"before": keep_since})

    def _name_memories(self, table: str, issue: str, memory_ids: Sequence[str]) -> None:
        self._change.drop(table, issue=issue)
        own = {"namespace": self._change.space, "issue": issue}
        self._change.add_rows(SCHEMA[table], [{**own, "memory": id_} for id_ in dict.fromkeys(memory_ids)])
