"""What can be wrong with the ledger in a SQLite store, told in sentences. It mends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

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
