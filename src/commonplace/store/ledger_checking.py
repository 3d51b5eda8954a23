"""What can be wrong with the ledger of a store, told in sentences. It mends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from commonplace.store.reference_state import Space

_EVENTS = "events of the ledger on issues that are not there"
_REVERSALS = "records of what undoes the changes of issues that are not there"

_CLAIMS = (
    (
        _EVENTS,
        """
        SELECT count(*) FROM issue_events e
        WHERE NOT EXISTS (SELECT 1 FROM issues WHERE namespace = e.namespace AND id = e.issue)
        """,
    ),
    (
        _REVERSALS,
        """
        SELECT count(*) FROM reversals r
        WHERE NOT EXISTS (SELECT 1 FROM issues WHERE namespace = r.namespace AND id = r.issue)
        """,
    ),
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
    """Return one sentence for each claim about a SQLite store that fails."""
    return _told((claim, db.execute(sql).fetchone()[0]) for claim, sql in _CLAIMS)


def reference_ledger_problems(spaces: Mapping[str, Space]) -> list[str]:
    """Return one sentence for each claim about an in-memory store that fails."""
    ledgers = [space.ledger for space in spaces.values()]
    events = sum(event.issue not in ledger.issues for ledger in ledgers for event in ledger.events)
    reversals = sum(issue not in ledger.issues for ledger in ledgers for issue in ledger.reversals)
    return _told([(_EVENTS, events), (_REVERSALS, reversals)])


def _told(counted: Iterable[tuple[str, int]]) -> list[str]:
    return [f"There are {claim}: {count}." for claim, count in counted if count]
