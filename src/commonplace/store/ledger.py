"""The ledger in the store."""

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
    """Return the issues that a selection chooses, in `order`."""
    issues = [
        issue
        for issue in found
        if (not wanted.ids or issue.id in wanted.ids)
        and (not wanted.agents or issue.agent in wanted.agents)
        and (not wanted.statuses or issue.status in wanted.statuses)
        and (not wanted.memory_ids or not set(issue.memory_ids).isdisjoint(wanted.memory_ids))
    ]
    return sorted(issues, key=order)


def order(issue: Issue) -> tuple[float, str]:
    """Return the sort key of an issue: creation, ties by id."""
    return issue.created_at, issue.id


class LedgerReading(SpaceReading):
    """The ledger of one namespace, as it is at each call."""

    def issue(self, id_: str) -> Issue | None:
        """Return an issue by id."""
        return next(iter(self._find(_ISSUES, {"id": id_})), None)

    def issues(self, selection: IssueSelection) -> list[Issue]:
        """Return the issues that a selection chooses, in `order`."""
        filters = {"id": selection.ids, "status": selection.statuses, "agent": selection.agents}
        criteria: dict[str, Any] = {name: values for name, values in filters.items() if values}
        if selection.memory_ids and not selection.ids:
            criteria["id"] = self._of_memories("issue_memories", selection.memory_ids)
        by = "issues_by_status" if "status" in criteria and "id" not in criteria else ""
        return chosen(self._find(_ISSUES, criteria, by=by), selection)

    def bodies(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return (id, (notes, dependencies, comments, rest)) of every issue, by id; reads less than `issues`."""
        sql = f"SELECT id, notes, dependencies, comments, rest FROM issues WHERE namespace = {SPACE}"
        return sorted((id_, tuple(texts)) for id_, *texts in self._rows(sql))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of issues by (agent, status)."""
        sql = f"SELECT agent, status, count(*) FROM issues WHERE namespace = {SPACE} GROUP BY agent, status"
        return {(agent, status): count for agent, status, count in self._rows(sql)}

    def unfinished(self, agent: str, memory_ids: Sequence[str]) -> Issue | None:
        """Return the first unfinished issue of an agent about exactly this set of memories."""
        memories = set(memory_ids)
        about = (min(memories),) if memories else ()
        issues = self.issues(IssueSelection(agents=(agent,), statuses=UNFINISHED, memory_ids=about))
        return next((issue for issue in issues if set(issue.memory_ids) == memories), None)

    def memories_named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that an agent's issues with one of these statuses name."""
        sql = f"""
            SELECT m.memory FROM issues AS i INDEXED BY issues_by_status
                JOIN issue_memories AS m INDEXED BY issue_memories_by_issue
                    ON m.namespace = i.namespace AND m.issue = i.id
            WHERE i.namespace = {SPACE} AND i.status IN {among("statuses")} AND i.agent = :agent
        """
        return {memory for (memory,) in self._rows(sql, statuses=listed(statuses), agent=agent)}

    def events(self, issue: str | None = None) -> list[IssueEvent]:
        """Return the events on an issue, or on all issues, in the order of writing."""
        return self._find(_EVENTS, {} if issue is None else {"issue": issue}, "ORDER BY number")

    def reversal(self, issue: str) -> Reversal | None:
        """Return the reversal of the change that an issue made."""
        return next(iter(self._find(_REVERSALS, {"issue": issue})), None)

    def reversals(self, *, run: str | None = None, memory_ids: Sequence[str] = (), after: int = 0) -> list[Reversal]:
        """Return the reversals numbered above `after` of a run and of any of these memories, if given; by number."""
        criteria: dict[str, Any] = {} if run is None else {"run": run}
        if memory_ids:
            criteria["issue"] = self._of_memories("reversal_memories", memory_ids)
        by = "reversals_by_run" if criteria.keys() == {"run"} else ""
        return self._find(_REVERSALS, criteria, "AND number > :after ORDER BY number", by=by, after=after)

    def runs(self) -> list[RunChanges]:
        """Return the changes of each run, the latest run first, ties by run."""
        sql = f"SELECT run, min(at), count(*), count(undone_at) FROM reversals WHERE namespace = {SPACE} GROUP BY run"
        by_run = [RunChanges(*row) for row in self._rows(sql)]
        return sorted(by_run, key=lambda changes: (-changes.at, changes.run))

    def operations_since(self, at: float) -> list[tuple[float, int]]:
        """Return (time, count) of the operations on the whole store at or after a time, by time.

        They belong to no namespace: a rate limit applies to all users of a store.
        """
        return self._rows("SELECT at, count FROM operations WHERE at >= :at ORDER BY at", at=at)

    def _of_memories(self, table: str, memory_ids: Sequence[str]) -> list[str]:
        """Return the ids of the issues that a table lists with any of these memories."""
        sql = f"SELECT DISTINCT issue FROM {table} WHERE namespace = {SPACE} AND memory IN {among('memories')}"
        return [issue for (issue,) in self._rows(sql, memories=listed(memory_ids))]


class LedgerChange(ChangingSpace, LedgerReading):
    """The ledger of one namespace inside one write transaction; it takes no change number."""

    def put_issue(self, issue: Issue) -> None:
        """Write an issue, replacing the one with the same id."""
        self._change.put(issue)
        self._list_memories("issue_memories", issue.id, issue.memory_ids)

    def drop_issue(self, id_: str) -> bool:
        """Delete an issue with its events and reversal; return whether there was one.

        Events and reversal are deleted even if another program stores the issue itself.
        """
        self._change.drop("issue_memories", issue=id_)
        self._change.drop("issue_events", issue=id_)
        self.drop_reversal(id_)
        return bool(self._change.drop("issues", id=id_).rowcount)

    def add_event(self, event: IssueEvent) -> None:
        """Append an event."""
        stored, change = checked(event), self._change
        if not change.last_event:
            # PostgreSQL types a small parameter as smallint, and the shift would lose all of its bits.
            sql = """
                SELECT coalesce(max(number), (CAST(:space AS BIGINT) - 1) << 32) FROM issue_events
                WHERE namespace = :space AND number > (CAST(:space AS BIGINT) - 1) << 32
                    AND number < CAST(:space AS BIGINT) << 32
            """
            ((change.last_event,),) = change.rows(sql, {"space": change.namespace_id})
        change.last_event += 1
        change.write(stored, number=change.last_event)

    def put_reversal(self, reversal: Reversal) -> None:
        """Write the reversal of an issue's change, replacing the issue's previous one.

        A reversal without a number gets the next one; a reversal with a number keeps it.
        """
        reversal = checked(reversal)
        number, existing = reversal.number, self._find(_REVERSALS, {"number": reversal.number})
        if number < 0 or (existing and existing[0].issue != reversal.issue):
            problem = "below 0" if number < 0 else f"that of issue {existing[0].issue!r}"
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
        self._list_memories("reversal_memories", reversal.issue, reversal.memory_ids)

    def drop_reversal(self, issue: str) -> bool:
        """Delete the reversal of an issue's change; return whether there was one."""
        self._change.drop("reversal_memories", issue=issue)
        return bool(self._change.drop("reversals", issue=issue).rowcount)

    def add_operations(self, at: float, count: int, *, keep_since: float) -> None:
        """Add to the operations at a time, and delete those before `keep_since`."""
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

    def _list_memories(self, table: str, issue: str, memory_ids: Sequence[str]) -> None:
        self._change.drop(table, issue=issue)
        key = {"namespace": self._change.namespace_id, "issue": issue}
        self._change.add_rows(SCHEMA[table], [{**key, "memory": id_} for id_ in dict.fromkeys(memory_ids)])
