"""One namespace of the SQLite store: where it is read, and the number by which its rows know it. It knows no rows."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from commonplace.store.rows import Row, pack_text

if TYPE_CHECKING:
    from commonplace.store.connections import Connections
    from commonplace.store.sqlite_transaction import Transaction

NO_SPACE: Final = -1
_SPACE: Final = "SELECT number FROM namespaces WHERE name = ?"

At = tuple[sqlite3.Connection, int]
"""A connection inside a transaction, and the number of the namespace there."""


class SpaceReading(ABC):
    """Reads one namespace, through whatever connection `reading` gives."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[At]:
        """Give a connection inside a transaction, and the number of the namespace, -1 where it is not there."""

    def _rows(self, sql: str, **values: Any) -> list[Row]:
        with self.reading() as at:
            return rows_of(at, sql, **values)


class StoredSpace(SpaceReading):
    """A namespace as it is when each call is made."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self._connections = connections
        self._name = pack_text(namespace)

    @contextmanager
    def reading(self) -> Iterator[At]:
        """Give a reading connection, and the number of the namespace, -1 where it is not there."""
        with self._connections.reading() as db:
            row = db.execute(_SPACE, (self._name,)).fetchone()
            yield db, row[0] if row else NO_SPACE


class ChangingSpace(SpaceReading):
    """A namespace inside a transaction that changes it."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @contextmanager
    def reading(self) -> Iterator[At]:
        """Give the writing connection, and the number of the namespace, -1 where it is not there."""
        change = self._transaction.known()
        yield self._transaction.db, NO_SPACE if change is None else change.space


def rows_of(at: At, sql: str, **values: Any) -> list[Row]:
    """Return what a statement gives for a namespace, which it calls `:space`."""
    db, space = at
    return db.execute(sql, {"space": space, **values}).fetchall()
