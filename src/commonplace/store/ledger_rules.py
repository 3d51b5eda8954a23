"""What every store does with the ledger alike: refuse what cannot be kept, choose, order. It knows no backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.store.batches import check_times, refuse_wide

if TYPE_CHECKING:
    from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal


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
