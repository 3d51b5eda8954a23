"""How the ledger stands in the columns of the SQLite store, both ways. It knows bytes and tuples, no SQL."""

from __future__ import annotations

from commonplace.store.rows import Row, pack_id, pack_text, pack_texts, unpack, unpack_texts
from commonplace.types.ledger import Issue, IssueEvent, Reversal


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
