"""A write transaction over one namespace of the SQLite store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from typing import Any, TypeVar

from commonplace.dataclasses import dataclass, field
from commonplace.store.connection import Connections
from commonplace.store.dialect import SPACE, Database, Shape, bound, condition, is_none, shape_of
from commonplace.store.rows import NO_VALUES, Form, Row, WriteBuffer, checked, drop, put
from commonplace.store.writes import Change, change_is_over, read_embedding
from commonplace.types import Embedding
from commonplace.types.graph import Entity


@dataclass(slots=True)
class GraphMemo:
    """What a transaction knows of a graph without reading it again.

    Attributes:
        named: by normal name, how many live entities at most were read that have it, and their ids, sorted.
        entities: those of them, and those that were not there before, as they are now.
        made: the ids of entities that were not there before.
        untold: those of them that no fact is about.
        unwritten: ids of what was not there before and has no text yet.
    """

    named: dict[str, tuple[int | None, list[str]]] = field(default_factory=dict)
    entities: dict[str, Entity] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    untold: set[str] = field(default_factory=set)
    unwritten: set[str] = field(default_factory=set)


T = TypeVar("T")


class Transaction:
    """The writing connection until its block ends, and the change that begins with the first write.

    Attributes:
        namespace: its name, whether it is there yet or not.
        is_over: its block has ended.
        last_event: the number of the last event on an issue that it wrote, 0 before the first.
    """

    def __init__(self, db: Database, namespace: str) -> None:
        """Go on in a transaction."""
        self.is_over = False
        self.last_event = 0
        self._writer = WriteBuffer(db)
        self.namespace = namespace
        self._change: Change | None = None
        self.graph = GraphMemo()

    @property
    def db(self) -> WriteBuffer:
        """The writing connection.

        Raises:
            StoreError: the block has ended.
        """
        if self.is_over:
            raise change_is_over()
        return self._writer

    @cached_property
    def embedding(self) -> Embedding | None:
        """The stamp of the stored vectors, which stays while this transaction writes."""
        return read_embedding(self.db)

    def known(self) -> Change | None:
        """Return the change under way, None where there is no namespace to change."""
        if self._change is None:
            self._change = Change.begin(self.db, self.namespace)
        return self._change

    def begin(self) -> Change:
        """Return the change under way, in a namespace that is made if need be."""
        if self._change is None:
            self._change = Change.create(self.db, self.namespace)
        return self._change

    def put(self, record: Any, **beside: Any) -> None:
        """Write a record of this namespace in the place of the one with its key; see `rows.put`."""
        kept = checked(record)  # before a namespace is made for it
        put(self.db, self.begin().space, kept, **beside)

    def drop(self, table: str, **key: Any) -> int:
        """Delete the rows of this namespace that have these values; return how many there were."""
        change = self.known()
        return drop(self.db, table, namespace=change.space, **key) if change else 0

    def reading(self, namespace: str) -> AbstractContextManager[Database]:  # noqa: ARG002 - it is of one
        """Give the writing connection."""
        return nullcontext(self.db)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        """Return what a query finds, with all that was written in this transaction."""
        return self.db.execute(sql, values).fetchall()

    def finish(self) -> None:
        """Write what waits, and the record of the change where it needs one."""
        if self._change is not None and self._change.is_due:
            self._change.finish()
        self.db.flush()


def find(
    source: Connections | Transaction,
    namespace: str | None,
    form: Form[T],
    wanted: Mapping[str, Any] = NO_VALUES,
    rest: str = "",
    *,
    by: str = "",
    **values: Any,
) -> list[T]:
    """Return the records of a namespace, or of all, whose columns have some values.

    Args:
        wanted: of each column the value, or a list of which it must have one.
        rest: what else the statement says, which may name other `values`.
        by: the index by which they are found, where SQLite would take another one.
    """
    if is_none(wanted):
        return []
    sql = _find_sql(form, shape_of(wanted), rest, by, is_of_one=namespace is not None)
    return [form.build(row) for row in source.rows(sql, {"namespace": namespace, **bound(wanted), **values})]


@cache
def _find_sql(form: Form[Any], wanted: Shape, rest: str, by: str, *, is_of_one: bool) -> str:
    terms = [*([f"namespace = {SPACE}"] if is_of_one else []), *([condition(form.table, wanted)] if wanted else [])]
    table = f"{form.table.name} INDEXED BY {by}" if by else form.table.name
    return f"SELECT {form.names()} FROM {table} WHERE {' AND '.join(terms)} {rest}"


class SpaceReading:
    """Reads one namespace: as the store is when each call is made, or with all that a transaction wrote."""

    def __init__(self, source: Connections | Transaction, namespace: str) -> None:
        self._source = source
        self._namespace = namespace

    def _rows(self, sql: str, **values: Any) -> list[Row]:
        return self._source.rows(sql, {"namespace": self._namespace, **values})

    def _find(
        self, form: Form[T], wanted: Mapping[str, Any] = NO_VALUES, rest: str = "", *, by: str = "", **values: Any
    ) -> list[T]:
        return find(self._source, self._namespace, form, wanted, rest, by=by, **values)


class ChangingSpace(SpaceReading):
    """A namespace inside a transaction that changes it."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, transaction.namespace)
        self._transaction = transaction
