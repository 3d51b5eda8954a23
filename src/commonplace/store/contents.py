"""A whole store as a value, and how it becomes a SQLite store with the same id, numbers and changes."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from commonplace.store.database_files import build, refuse_existing
from commonplace.store.sqlite_writing import Change, create_namespace, set_embedding
from commonplace.types import Embedding, OwnerWrite


@dataclass(frozen=True, slots=True)
class StoredOwner:
    """An owner with its numbers.

    Attributes:
        change: the change that wrote it and its passages.
        first_passage: number of its first passage; the others follow without a gap.
    """

    namespace: str
    number: int
    change: int
    first_passage: int
    write: OwnerWrite


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything that a store holds.

    Attributes:
        next_numbers: by change number, from 0, the owner and the passage number that come next.
        tokens: by change number, from 0, the change's token; that of 0 is "".
        deletions: (change, passage number).
    """

    store_id: str
    embedding: Embedding | None
    namespaces: tuple[str, ...]
    owners: tuple[StoredOwner, ...]
    next_numbers: tuple[tuple[int, int], ...]
    tokens: tuple[str, ...]
    deletions: tuple[tuple[int, int], ...]


def write_store(contents: Contents, target: Path) -> None:
    """Write the contents to a new SQLite store.

    Raises:
        StoreError: the target exists or cannot be written.
    """
    refuse_existing(target)
    build(target, contents.store_id, lambda db: _fill(db, contents))


def _fill(db: sqlite3.Connection, contents: Contents) -> None:
    if contents.embedding:
        set_embedding(db, contents.embedding)
    for namespace in contents.namespaces:
        create_namespace(db, namespace)
    for stored in contents.owners:
        space = create_namespace(db, stored.namespace)
        change = Change(db, space, stored.change, stored.number, stored.first_passage)
        change.put(stored.write)
        change.flush()
    db.executemany("INSERT INTO deletions VALUES (?, ?)", contents.deletions)
    db.executemany(
        "INSERT INTO changes VALUES (?, ?, ?, ?)",
        [
            (number, *following, bytes.fromhex(token))
            for number, (following, token) in enumerate(zip(contents.next_numbers, contents.tokens, strict=True))
            if number
        ],
    )
