"""One write transaction over a namespace of the SQLite store, shared by whatever is written in it.

It knows namespaces and changes, no memory and no graph.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from commonplace.store.batches import change_is_over
from commonplace.store.rows import Row, pack_text
from commonplace.store.sqlite_writing import Change, create_namespace, namespace_number


class Transaction:
    """The writing connection until its block ends, and the change that begins with the first write.

    Attributes:
        is_over: its block has ended.
    """

    def __init__(self, db: sqlite3.Connection, namespace: str) -> None:
        self.is_over = False
        self._writer = db
        self._namespace = namespace
        self._name = pack_text(namespace)
        self._change: Change | None = None

    @property
    def db(self) -> sqlite3.Connection:
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

    def known(self) -> Change | None:
        """Return the change under way, None where there is no namespace to change."""
        if self._change is None:
            space = namespace_number(self.db, self._namespace)
            if space is not None:
                self._change = Change.begin(self.db, space)
        return self._change

    def begin(self) -> Change:
        """Return the change under way, in a namespace that is made if need be."""
        change = self.known()
        if change is None:
            change = self._change = Change.begin(self.db, create_namespace(self.db, self._namespace))
        return change

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """Return what a query finds, with all that was written in this transaction."""
        if self._change is not None:
            self._change.flush()
        return self.db.execute(sql, {"namespace": self._name, **values}).fetchall()

    def finish(self) -> None:
        """Write what was collected, and the record of the change where it needs one."""
        if self._change is not None:
            if self._change.is_due:
                self._change.finish()
            else:
                self._change.flush()
