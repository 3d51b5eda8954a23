"""Bringing a database to the newest schema: numbered SQL files, each in one transaction with its record.

It knows no table but `schema_versions`, and never changes a file of `schema/` that was released.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from commonplace.errors import StoreDamagedError, StoreVersionError

APPLICATION_ID = 1131245680

MIGRATIONS = (
    "0001_owners_and_passages",
    "0002_memories",
    "0003_graph",
    "0004_knowledge",
    "0005_next_vectors",
    "0006_ledger",
    "0007_graph_lookups",
    "0008_pending_vectors",
)
"""File names in `schema/` without suffix; the first one brings version 1."""

NEWEST = len(MIGRATIONS)


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of a database.

    Raises:
        StoreDamagedError: it is a database of another program, or an empty one.
    """
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreDamagedError(f"{path} is not a Commonplace store", remedy="restore a backup, or name another store")
    return int(db.execute("SELECT max(version) FROM schema_versions").fetchone()[0])


def refuse_newer(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that a newer Commonplace has migrated.

    Raises:
        StoreVersionError: naming the version found and the newest one known here.
    """
    version = version_of(db, path)
    if version > NEWEST:
        raise StoreVersionError(
            f"the store {path} has schema version {version}, this Commonplace knows versions up to {NEWEST}",
            remedy="upgrade Commonplace",
        )


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a database from `version` (0: empty) to the newest. The caller holds the write lock."""
    for number in range(version + 1, NEWEST + 1):
        name = MIGRATIONS[number - 1]
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(name):
                db.execute(statement)
            db.execute("INSERT INTO schema_versions (version, name) VALUES (?, ?)", (number, name))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _statements(name: str) -> list[str]:
    """Split a file into statements; `executescript` would commit the transaction that it runs in."""
    script = Path(__file__).with_name("schema").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
