"""What can be wrong with agents' knowledge in a SQLite store, told in sentences. It mends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_CLAIMS = (
    (
        "knowledge items in another namespace than their owner, or of another kind",
        """
        SELECT count(*) FROM knowledge_items k LEFT JOIN owners o ON o.number = k.owner
        WHERE o.number IS NULL OR o.namespace != k.namespace OR o.kind != 'knowledge'
        """,
    ),
    (
        "owners that are past and have no record",
        """
        SELECT count(*) FROM owners
        WHERE expired_at IS NOT NULL AND number NOT IN (SELECT owner FROM memories)
            AND number NOT IN (SELECT owner FROM knowledge_items)
        """,
    ),
    (
        "contexts of agents in a namespace that is gone",
        "SELECT count(*) FROM agent_contexts WHERE namespace NOT IN (SELECT number FROM namespaces)",
    ),
)


def knowledge_problems(db: sqlite3.Connection) -> list[str]:
    """Return one sentence for each claim that fails."""
    counted = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in _CLAIMS]
    return [f"There are {claim}: {count}." for claim, count in counted if count]
