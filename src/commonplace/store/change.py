"""A write transaction of a namespace, and reading a namespace inside and outside of one."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any, Final, TypeVar

from commonplace.dataclasses import dataclass, field
from commonplace.errors import StoreError
from commonplace.store.connection import Connections
from commonplace.store.dialect import SPACE, Conflict, Database, Read, Rows, Written, among, listed, where
from commonplace.store.rows import (
    NO_VALUES,
    Form,
    Row,
    Values,
    checked,
    drop,
    form_of,
    insert_rows,
    named_in,
    refuse_unstorable,
    unlisted,
)
from commonplace.store.schema import COUNTERS, SCHEMA, Table, numbers_after, texts_of
from commonplace.store.statements import Statements
from commonplace.store.validate import names_of_owner, read_embedding
from commonplace.types import GRAPH_KINDS, Chunk, Embedding, FileStamp, Kind, NewPassage, Owner, OwnerWrite
from commonplace.types.graph import Entity

T = TypeVar("T")

SQL: Final = Statements("change")
_OWNERS = form_of(Owner)
STAMPS = form_of(FileStamp)
_CHUNKS = form_of(Chunk)

_PLACED_LIMIT = 16 * 1024
"""Largest content, in characters, whose passages are stored as a position in it. SQLite reads all text before a
position, so that the passages of a long content would take the square of its length."""
_FURTHER_TABLES = {"memory": ("memory_bands", "memory_dates", "memories"), "knowledge": ("knowledge_items",)}
"""The tables with further rows of an owner, by its kind."""


ALL_HEADS: Final = f"""
    SELECT n.name, n.number, c.number, {", ".join(f"c.{name}" for name in COUNTERS)}
    FROM namespaces n LEFT JOIN changes c
        ON c.namespace = n.number AND c.number = (SELECT max(x.number) FROM changes x WHERE x.namespace = n.number)
"""


def heads_of(namespace: str) -> Read:
    """Return the first statement of a change, and its values."""
    names = [namespace, *(texts_of(namespace, kind) for kind in GRAPH_KINDS)]
    return f"{ALL_HEADS} WHERE n.name IN {among('names')}", {"names": listed(names)}


def next_change(namespace_id: int, last: int | None = None, *counters: int) -> Values:
    """Return the row of the change after the last one of a namespace; `last` is None before the first."""
    numbers = counters if last is not None else [numbers_after(namespace_id) + 1] * len(COUNTERS)
    row = {"namespace": namespace_id, "number": (last or 0) + 1, "token": os.urandom(8).hex()}
    return row | dict(zip(COUNTERS, numbers, strict=True))


@dataclass(slots=True)
class GraphMemo:
    """A transaction's cache of a graph.

    Attributes:
        by_name: by normal name, the limit under which live entities were read (None for none), and their sorted ids.
        entities: the entities in `by_name` and in `created`, as they are now.
        created: the ids of entities that this transaction created.
        without_facts: the ids in `created` that no fact is about yet.
        unwritten: ids of entities and facts that this transaction created and that have no text yet.
    """

    by_name: dict[str, tuple[int | None, list[str]]] = field(default_factory=dict)
    entities: dict[str, Entity] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    without_facts: set[str] = field(default_factory=set)
    unwritten: set[str] = field(default_factory=set)


def _with_parents(table: str) -> frozenset[str]:
    parents = {column.refers for column in SCHEMA[table].columns if column.is_enforced}
    return frozenset({table}.union(*map(_with_parents, parents)))


_PARENTS: Final = {name: _with_parents(name) for name in SCHEMA}
"""By table, the tables whose rows must be written before its own, and the table itself."""
_INSERT_ORDER: Final = sorted(SCHEMA, key=lambda name: len(_PARENTS[name]))


class Change:
    """A write transaction of a namespace, which sees its own writes, and its entry in the change sequence.

    New rows are buffered. The rows of a table are written in one statement when another statement names the table.

    The transaction takes a change number if it adds, deletes or changes anything that a search or the graph can show.
    The first write creates the namespace.

    Attributes:
        namespace_ids: the numbers of this namespace and of those with the texts of its graph, by name, if they exist.
        last_event: the number of the last issue event that the transaction wrote, 0 before the first.
    """

    def __init__(self, db: Database, namespace: str) -> None:
        """Use the open transaction of a connection."""
        self._db = db
        # By table: the columns of the buffered rows and their handling of conflicts; the rows.
        self._waiting: dict[str, tuple[tuple[tuple[str, ...], Conflict], dict[object, Values]]] = {}
        self.namespace = namespace
        self.is_over = False
        self.last_event = 0
        self.graph = GraphMemo()
        rows = db.execute(*heads_of(namespace)).fetchall()
        self.namespace_ids: dict[str, int] = {name: namespace_id for name, namespace_id, *_ in rows}
        self._rows = {namespace_id: next_change(namespace_id, *last) for _, namespace_id, *last in rows}
        self._namespace_id = self.namespace_ids.get(namespace, 0)
        self._tallies: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        self._added: dict[tuple[int, Kind, str], int] = {}
        self._due: set[int] = set()
        self._dropped: list[tuple[int, Written]] = []

    @property
    def namespace_id(self) -> int:
        """The number of the namespace that is written to, which is created if it does not exist.

        Raises:
            UsageError: its name contains characters that no database can store.
        """
        if not self._namespace_id:
            self._namespace_id = self.make(self.namespace)
        return self._namespace_id

    @cached_property
    def embedding(self) -> Embedding | None:
        """The embedder of the stored vectors, which cannot change during this transaction."""
        return read_embedding(self)

    def execute(self, sql: str, values: Mapping[str, Any] = NO_VALUES, /) -> Rows:
        """Run a statement after writing the buffered rows of the tables that it names."""
        self.flush(named_in(sql))
        return self.peek(sql, values)

    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]], /) -> object:
        """Run a statement once per mapping of values."""
        self.flush(named_in(sql))
        return self._db.executemany(sql, rows)

    def peek(self, sql: str, values: Mapping[str, Any], /) -> Rows:
        """Run a statement that does not see buffered rows."""
        self._refuse_over()
        return self._db.execute(sql, values)

    def add_rows(self, table: Table, rows: Sequence[Values], conflict: Conflict = "refuse") -> None:
        """Buffer new rows that have the same columns."""
        self._refuse_over()
        if not rows:
            return
        form = tuple(rows[0]), conflict
        if self._waiting.get(table.name, ((), {}))[0] != form:
            self.flush([table.name])
            self._waiting[table.name] = form, {}
        _, waiting = self._waiting[table.name]
        key = table.unique or table.key
        for row in rows:
            # A statement may not replace a row that it wrote itself.
            waiting[tuple(row[name] for name in key) if conflict == "replace" else len(waiting)] = row

    def flush(self, tables: Collection[str] = tuple(SCHEMA)) -> None:
        """Write the buffered rows of some tables, after those of the tables that they refer to."""
        # Most statements name no table with buffered rows and skip this loop.
        for name in _INSERT_ORDER if self._waiting and not self._waiting.keys().isdisjoint(tables) else ():
            if name in self._waiting and any(name in _PARENTS[table] for table in tables):
                (_, conflict), rows = self._waiting.pop(name)
                insert_rows(self._db, SCHEMA[name], list(rows.values()), conflict)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        """Return the rows of a query."""
        return self.execute(sql, values).fetchall()

    def reading(self, namespace: str) -> AbstractContextManager[Database]:  # noqa: ARG002 - it is of one
        """Provide the transaction itself."""
        return nullcontext(self)

    def make(self, namespace: str) -> int:
        """Return the number of this namespace or one of its graph's texts; create it if it does not exist."""
        if namespace not in self.namespace_ids:
            refuse_unstorable("the namespace", namespace)
            sql = "INSERT INTO namespaces (name) VALUES (:name) RETURNING number"
            ((namespace_id,),) = self.rows(sql, {"name": namespace})
            self.namespace_ids[namespace], self._rows[namespace_id] = namespace_id, next_change(namespace_id)
        return self.namespace_ids[namespace]

    def put(self, *records: Any) -> None:
        """Write records, replacing those with the same keys; check all before writing any."""
        for record in [checked(unchecked) for unchecked in records]:
            self.write(record)

    def write(self, record: Any, **beside: Any) -> None:
        """Write a record that `checked` returned, replacing the one with the same key.

        Args:
            beside: values of columns that hold none of its fields.
        """
        form = form_of(type(record))
        row = {"namespace": self.namespace_id, **beside, **form.row(record)}
        is_numbered = form.table.is_numbered
        if is_numbered and form.table.key[-1] not in row:
            row["number"] = self.take("next_row")
        self.add_rows(form.table, [row], "refuse" if is_numbered and not form.table.unique else "replace")
        if form.table.is_sequenced:
            self.mark()

    def drop(self, table: str, **key: Any) -> Written:
        """Delete the rows of the namespace whose columns have these values, or one of a list; see `drop`."""
        self._refuse_over()
        deleted = drop(self, table, namespace=self._namespace_id, **key)
        if SCHEMA[table].is_sequenced:
            self._dropped.append((self._namespace_id, deleted))
        return deleted

    def finish(self) -> int:
        """Write buffered rows and the change of each namespace that needs one; return this namespace's last change."""
        # The row counts of deletions are read only now: each read waits for a server's response.
        self._due |= {namespace_id for namespace_id, deleted in self._dropped if deleted.rowcount}
        self.add_rows(SCHEMA["changes"], [self._rows[namespace_id] for namespace_id in sorted(self._due)])
        self.write_counts()
        self.flush()
        if (changed := getattr(self._db, "changed", None)) is not None:
            changed.update(self._due)  # a server updates the postings of these namespaces before the commit
        last = self._rows.get(self._namespace_id)
        return int(last["number"]) - (self._namespace_id not in self._due) if last else 0

    def write_counts(self) -> None:
        """Add the differences of this transaction to the counts of each namespace and kind."""
        counts = [
            {"namespace": id_, "kind": kind, **{name: tally[name] for name in ("owners", "passages", "text_bytes")}}
            for (id_, kind), tally in self._tallies.items()
        ]
        self.add_rows(SCHEMA["counts"], counts, "add")
        self._tallies.clear()

    @property
    def number(self) -> int:
        """The change number that the transaction takes in the namespace that is written to."""
        return int(self._rows[self.namespace_id]["number"])

    def take(self, counter: str) -> int:
        """Return the next number of an owner, a passage or a row of the graph."""
        row = self._rows[self.namespace_id]
        row[counter] += 1
        return int(row[counter]) - 1

    def put_owner(self, write: OwnerWrite, at: float = 0.0) -> int:
        """Write one owner, replacing those with its id or path, and return its number; `at` is its creation time."""
        owner = write.owner
        number, other = self._find(owner)
        if other is not None and other != number:  # a file was renamed, or another one got its id
            if number is None:
                number = other
            else:
                self.remove_owner(other)
        if number is None:
            return self.add_owner(owner, write.passages, created_at=at)
        self._clear(number)
        values = {"namespace": self.namespace_id, "number": number, "change": self.number, "created_at": at}
        self.execute(SQL["update_owner"], {**values, **_OWNERS.row(owner)})
        self._fill(number, owner, write.passages, is_past=False)
        return number

    def put_owners(self, writes: Sequence[OwnerWrite], at: float = 0.0) -> None:
        """Write owners that `settle` returned, as `put_owner` does; one query per kind finds those that exist."""
        stored_names: set[tuple[str, str, str]] = set()
        for kind in {write.owner.kind for write in writes}:
            owners = [write.owner for write in writes if write.owner.kind == kind]
            ids, paths = (owner.id for owner in owners), (owner.path for owner in owners if owner.path)
            values = {"namespace": self.namespace_id, "kind": kind, "ids": listed(ids), "paths": listed(paths)}
            for id_, path in self.execute(SQL["held"], values):
                stored_names |= names_of_owner(kind, id_, path)
        for write in writes:
            if stored_names.isdisjoint(names_of_owner(write.owner.kind, write.owner.id, write.owner.path)):
                self.add_owner(write.owner, write.passages, created_at=at)
            else:
                self.put_owner(write, at)

    def add_owner(
        self,
        owner: Owner,
        passages: Sequence[NewPassage],
        *,
        created_at: float,
        expired_at: float | None = None,
        content: str = "",
    ) -> int:
        """Write a new owner row, live or past, and return its number.

        Args:
            content: that of a memory. Texts of passages that are parts of it are not stored a second time.
        """
        number = self.take("next_owner")
        row = {"number": number, "namespace": self.namespace_id, "change": self.number, "expired_at": expired_at}
        self.add_rows(_OWNERS.table, [{**row, "created_at": created_at, **_OWNERS.row(owner)}])
        if expired_at is None:
            self._added[self.namespace_id, owner.kind, owner.id] = number
        self._fill(number, owner, passages, content, is_past=expired_at is not None)
        return number

    def expire_owner(self, number: int, at: float) -> bool:
        """Make a live owner past from `at` on; return whether this namespace had it, live."""
        row = self._row(number)
        if row is None or row[2] is not None:
            return False
        self._leave(number, row[0])
        key = {"namespace": self.namespace_id, "owner": number}
        sql = "UPDATE owners SET expired_at = :at WHERE namespace = :namespace AND number = :owner"
        self.execute(sql, {**key, "at": at})
        self.execute(f"UPDATE passage_vectors SET is_past = 1 WHERE {SQL['of_owner']}", key)
        self.mark()
        return True

    def remove_owner(self, number: int) -> bool:
        """Delete one owner and its dependent rows; return whether this namespace had it."""
        if not 0 < number < 2**63 or not self._clear(number):
            return False
        drop(self, "owners", namespace=self.namespace_id, number=number)
        self.mark()
        return True

    def drop_owner(self, kind: Kind, id_: str) -> None:
        """Delete the live owner with this kind and id, if there is one."""
        number, _ = self._find(Owner(id_, kind))
        if number is not None:
            self.remove_owner(number)

    @contextmanager
    def inside(self, namespace: str) -> Iterator[None]:
        """Write to one of the namespaces with the texts of this one's graph until the block ends."""
        home, self._namespace_id = self._namespace_id, self.make(namespace)
        try:
            yield
        finally:
            self._namespace_id = home

    def mark(self) -> None:
        """Record that searches may return something else after this change, so that it takes a number."""
        self._due.add(self.namespace_id)

    def _refuse_over(self) -> None:
        # A write after the block would belong to no transaction.
        if self.is_over:
            raise StoreError("this change of memories is over", remedy="begin another one")

    def _find(self, owner: Owner) -> tuple[int | None, int | None]:
        """Return the number of the live owner with this id, and that of the one with this path."""
        values = {"namespace": self.namespace_id, "kind": owner.kind, "id": owner.id, "path": owner.path}
        added = self._added.get((self.namespace_id, owner.kind, owner.id))
        by_id = (added,) if added else self.peek(SQL["by_id"], values).fetchone()
        by_path = owner.path and self.execute(SQL["by_path"], values).fetchone()
        return by_id[0] if by_id else None, by_path[0] if by_path else None

    def _clear(self, number: int) -> bool:
        """Delete the rows that depend on an owner, but not its own row; return whether this namespace has the owner."""
        row = self._row(number)
        if row is None:
            return False
        kind, tags, expired_at, id_ = row
        key = {"namespace": self.namespace_id, "owner": number}
        if expired_at is None:
            self._leave(number, kind)
        for table in ("next_vectors", "passage_vectors"):
            self.execute(f"DELETE FROM {table} WHERE {SQL['of_owner']}", key)
        for table in ("passages", "file_stamps", *_FURTHER_TABLES.get(kind, ())):
            drop(self, table, **key)
        if tags:
            self.execute(SQL["drop_tags"], {**key, "tags": listed(unlisted(tags))})
        if kind == "memory":  # the version before this one becomes the latest
            self.execute(SQL["promote"], {"namespace": self.namespace_id, "id": id_})
        return True

    def _row(self, number: int) -> Row | None:
        """Return kind, tags, `expired_at` and id of an owner in this namespace."""
        row: Row | None = self.execute(SQL["owner"], {"number": number, "namespace": self.namespace_id}).fetchone()
        self._added.clear()  # all owners are written by now, and this one may be deleted next
        return row

    def _leave(self, number: int, kind: str) -> None:
        """Remove a live owner from the counts and record its passages as deleted for the index."""
        tally = self._tallies[self.namespace_id, kind]
        tally["owners"] -= 1
        passages = self.execute(SQL["texts"], {"namespace": self.namespace_id, "owner": number}).fetchall()
        tally["passages"] -= len(passages)
        tally["text_bytes"] -= sum(len(text.encode()) for _, text in passages)
        stamp = {"namespace": self.namespace_id, "change": self.number}
        self.add_rows(SCHEMA["deletions"], [{**stamp, "number": passage} for passage, _ in passages])

    def _fill(
        self, number: int, owner: Owner, passages: Sequence[NewPassage], content: str = "", *, is_past: bool
    ) -> None:
        """Add the rows that depend on an owner."""
        tally = Counter[str]() if is_past else self._tallies[self.namespace_id, owner.kind]  # past ones are not counted
        tally["owners"] += 1
        base = {"namespace": self.namespace_id, "owner": number}
        self.add_rows(SCHEMA["owner_tags"], [{**base, "tag": tag} for tag in set(owner.tags)])
        if owner.stamp:
            self.add_rows(STAMPS.table, [{**base, **STAMPS.row(owner.stamp)}])
        begin, content = 0, content if len(content) <= _PLACED_LIMIT else ""
        for ordinal, passage in enumerate(passages):
            base["number"] = self.take("next_passage")
            row = {**base, "ordinal": ordinal, "id": passage.id, **_CHUNKS.row(passage.chunk), "place": 0, "length": 0}
            position = content.find(passage.chunk.text, begin) if content else -1
            if position >= 0:
                begin, row["text"], row["place"] = position, "", position + 1
                row["length"] = len(passage.chunk.text)
            self.add_rows(_CHUNKS.table, [row])
            arrays = {"token_ids": passage.token_ids, "vector": passage.vector}
            self.add_rows(SCHEMA["passage_vectors"], [{**base, **arrays, "is_past": int(is_past)}])
            tally["passages"] += 1
            tally["text_bytes"] += len(passage.chunk.text.encode())
        self.mark()


def find(
    source: Connections | Change,
    namespace: str | None,
    form: Form[T],
    criteria: Mapping[str, Any] = NO_VALUES,
    clause: str = "",
    *,
    by: str = "",
    **values: Any,
) -> list[T]:
    """Return the records of a namespace, or of all, whose columns have the values of `criteria`.

    Args:
        criteria: by column, the value, or a list of alternatives.
        clause: the end of the statement, which may use `values`.
        by: the index to use, if SQLite would choose another one.
    """
    condition = where(form.table, criteria)
    if condition is None:
        return []
    scope = "true" if namespace is None else f"namespace = {SPACE}"
    table = f"{form.table.name} INDEXED BY {by}" if by else form.table.name
    sql = f"SELECT {form.names()} FROM {table} WHERE {scope}{' AND ' * bool(criteria)}{condition[0]} {clause}"
    return [form.build(row) for row in source.rows(sql, {"namespace": namespace, **condition[1], **values})]


class SpaceReading:
    """Reads one namespace: the state of the store at each call, or inside a transaction with its writes."""

    def __init__(self, source: Connections | Change, namespace: str) -> None:
        self._source = source
        self._namespace = namespace

    def _rows(self, sql: str, **values: Any) -> list[Row]:
        return self._source.rows(sql, {"namespace": self._namespace, **values})

    def _find(
        self, form: Form[T], criteria: Mapping[str, Any] = NO_VALUES, clause: str = "", *, by: str = "", **values: Any
    ) -> list[T]:
        return find(self._source, self._namespace, form, criteria, clause, by=by, **values)


class ChangingSpace(SpaceReading):
    """A namespace inside a transaction that changes it and sees its own writes.

    A call checks its whole input before it writes anything.

    Raises:
        StoreError: it is used after its block, or another embedder made a vector.
        UsageError: no store can hold a number or a text, or an owner has another kind or comes from a file.
    """

    def __init__(self, change: Change) -> None:
        super().__init__(change, change.namespace)
        self._change = change
