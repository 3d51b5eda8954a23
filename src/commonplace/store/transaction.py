"""A write transaction over one namespace of the SQLite store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from commonplace.store.connection import Connections
from commonplace.store.dialect import Database
from commonplace.store.graph_rules import texts_of
from commonplace.store.rows import Row, WriteBuffer, checked, drop, put
from commonplace.store.writes import Change, change_is_over, create_namespace, namespace_number, read_embedding
from commonplace.types import Embedding
from commonplace.types.graph import Subject


class Transaction:
    """The writing connection until its block ends, and the change that begins with the first write.

    Attributes:
        is_over: its block has ended.
    """

    def __init__(self, db: Database, namespace: str) -> None:
        self.is_over = False
        self._writer = WriteBuffer(db)
        self._namespace = namespace
        self._change: Change | None = None
        self._embedding: tuple[Embedding | None] | None = None
        self._texts: dict[Subject, int] = {}

    @property
    def db(self) -> WriteBuffer:
        """The writing connection.

        Raises:
            StoreError: the block has ended.
        """
        if self.is_over:
            raise change_is_over()
        return self._writer

    @property
    def namespace(self) -> str:
        """The name of the namespace, whether it is there yet or not."""
        return self._namespace

    @property
    def embedding(self) -> Embedding | None:
        """The stamp of the stored vectors, which stays while this transaction writes."""
        if self._embedding is None:
            self._embedding = (read_embedding(self.db),)
        return self._embedding[0]

    def texts_number(self, kind: Subject, *, create: bool = False) -> int | None:
        """Return the number of the namespace with the texts of entities or relations, None where there is none."""
        number = self._texts.get(kind)
        if number is None:
            name = texts_of(self._namespace, kind)
            number = self._change.spaces.get(name) if self._change else None
            if number is None:
                number = create_namespace(self.db, name) if create else namespace_number(self.db, name)
            if number is not None:
                self._texts[kind] = number
        return number

    def known(self) -> Change | None:
        """Return the change under way, None where there is no namespace to change."""
        if self._change is None:
            self._change = Change.begin(self.db, self._namespace)
        return self._change

    def begin(self) -> Change:
        """Return the change under way, in a namespace that is made if need be."""
        if self._change is None:
            self._change = Change.create(self.db, self._namespace)
        return self._change

    def put(self, record: Any, **beside: Any) -> None:
        """Write a record of this namespace in the place of the one with its key; see `rows.put`."""
        kept = checked(record)  # before a namespace is made for it
        put(self.db, self.begin().space, kept, **beside)

    def drop(self, table: str, **key: Any) -> int:
        """Delete the rows of this namespace that have these values; return how many there were."""
        change = self.known()
        return drop(self.db, table, namespace=change.space, **key) if change else 0

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """Return what a query finds, with all that was written in this transaction."""
        return self.db.execute(sql, {"namespace": self._namespace, **values}).fetchall()

    def finish(self) -> None:
        """Write what waits, and the record of the change where it needs one."""
        if self._change is not None and self._change.is_due:
            self._change.finish()
        self.db.flush()


NO_SPACE: Final = -1
_SPACE: Final = "SELECT number FROM namespaces WHERE name = :name"

At = tuple[Database, int]
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
        self._name = namespace

    @contextmanager
    def reading(self) -> Iterator[At]:
        """Give a reading connection, and the number of the namespace, -1 where it is not there."""
        with self._connections.reading(self._name) as db:
            row = db.execute(_SPACE, {"name": self._name}).fetchone()
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
