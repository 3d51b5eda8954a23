"""The contract's five operations on issues, as functions over an engine or the default store; see `ledger.Ledger`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.consolidation.runtime import Book, runtime_of


def create_consolidation_issue(
    agent: str,
    memory_ids: Sequence[str],
    action: str,
    urgency: str = "medium",
    extra_data: Mapping[str, Any] | None = None,
    *,
    book: Book | None = None,
) -> str:
    """File an issue and return its id; where an unfinished one of the same agent names the same memories, return that.

    Args:
        agent: decay, cluster, merge, promote or relations.
        action: one word: what is to be done.
        urgency: high, medium or low.
        extra_data: what the notes tell besides; JSON.

    Raises:
        NotFoundError: a memory is not there.
        UsageError: there is no such agent or urgency, no memory is named, or what is added is no JSON.
    """
    return runtime_of(book).issues.create(agent, memory_ids, action, urgency, extra_data)


def query_consolidation_issues(
    agent: str | None = None, status: str = "open", urgency: str | None = None, *, book: Book | None = None
) -> list[dict[str, Any]]:
    """Return the issues that pass every filter, the oldest first: id, title, notes, labels, status and more.

    Raises:
        UsageError: there is no such agent, status or urgency.
    """
    return runtime_of(book).issues.query(agent, status, urgency)


def claim_issue(issue_id: str, *, book: Book | None = None) -> bool:
    """Take an open issue to work on; return False where others did, or it is blocked or closed.

    Raises:
        NotFoundError: there is no such issue.
    """
    return runtime_of(book).issues.claim(issue_id)


def close_issue(issue_id: str, reason: str, *, book: Book | None = None) -> None:
    """Close an issue.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: it is closed already, or no reason is given.
    """
    runtime_of(book).issues.close(issue_id, reason)


def block_issue(issue_id: str, error: str, *, book: Book | None = None) -> None:
    """Block an issue and append the error to its notes.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: it is closed, or no error is given.
    """
    runtime_of(book).issues.block(issue_id, error)
