"""A write transaction of a namespace, and how a namespace is read inside and outside of one."""

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

_PLACED = 16 * 1024
"""Characters of the longest content in which passages are placed: each is read by way of all before it, so that those
of a long one take the square of its length."""
_BESIDE = {"memory": ("memory_bands", "memory_dates", "memories"), "knowledge": ("knowledge_items",)}
"""The tables that hold more of an owner, by its kind."""


ALL_HEADS: Final = f"""
    SELECT n.name, n.number, c.number, {", ".join(f"c.{name}" for name in COUNTERS)}
    FROM namespaces n LEFT JOIN changes c
        ON c.namespace = n.number AND c.number = (SELECT max(x.number) FROM changes x WHERE x.namespace = n.number)
"""


def heads_of(namespace: str) -> Read:
    """Return the statement that a change begins with, and its values."""
    names = [namespace, *(texts_of(namespace, kind) for kind in GRAPH_KINDS)]
    return f"{ALL_HEADS} WHERE n.name IN {among('names')}", {"names": listed(names)}


def next_change(space: int, last: int | None = None, *counters: int) -> Values:
    """Return the row of the change that follows the last one of a namespace, None where there is none."""
    counted = counters if last is not None else [numbers_after(space) + 1] * len(COUNTERS)
    row = {"namespace": space, "number": (last or 0) + 1, "token": os.urandom(8).hex()}
    return row | dict(zip(COUNTERS, counted, strict=True))


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


def _with_parents(table: str) -> frozenset[str]:
    parents = {column.refers for column in SCHEMA[table].columns if column.is_enforced}
    return frozenset({table}.union(*map(_with_parents, parents)))


_BEFORE: Final = {name: _with_parents(name) for name in SCHEMA}
"""Each table with those whose rows must be there before its own."""
_IN_ORDER: Final = sorted(SCHEMA, key=lambda name: len(_BEFORE[name]))


class Change:
    """A write transaction of a namespace, which sees what it wrote, and the change of the namespace that it makes.

    New rows wait. Those of a table are written when a statement names it, in one statement for all of them.

    A change number is taken where something came, went or changed that a search or the graph could show. The namespace
    is made by the first write.

    Attributes:
        spaces: the numbers of this namespace and of those with the texts of its graph, as far as they are there.
        last_event: the number of the last event on an issue that it wrote, 0 before the first.
    """

    def __init__(self, db: Database, namespace: str) -> None:
        """Go on in a transaction of a connection."""
        self._db = db
        # By table, the columns of the rows that wait and what a conflict does, and these rows.
        self._waiting: dict[str, tuple[tuple[tuple[str, ...], Conflict], dict[object, Values]]] = {}
        self.namespace = namespace
        self.is_over = False
        self.last_event = 0
        self.graph = GraphMemo()
        found = db.execute(*heads_of(namespace)).fetchall()
        self.spaces: dict[str, int] = {name: space for name, space, *_ in found}
        self._rows = {space: next_change(space, *last) for _, space, *last in found}
        self._space = self.spaces.get(namespace, 0)
        self._tallies: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        self._added: dict[tuple[int, Kind, str], int] = {}
        self._due: set[int] = set()
        self._dropped: list[tuple[int, Written]] = []

    @property
    def space(self) -> int:
        """The number of the namespace that is written to, which is made where it is not there.

        Raises:
            UsageError: its name holds what no database keeps.
        """
        if not self._space:
            self._space = self.make(self.namespace)
        return self._space

    @cached_property
    def embedding(self) -> Embedding | None:
        """The stamp of the stored vectors, which stays while this transaction writes."""
        return read_embedding(self)

    def execute(self, sql: str, values: Mapping[str, Any] = NO_VALUES, /) -> Rows:
        """Run a statement, which sees all that was added."""
        self.flush(named_in(sql))
        return self.peek(sql, values)

    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]], /) -> object:
        """Run a statement for each of several values."""
        self.flush(named_in(sql))
        return self._db.executemany(sql, rows)

    def peek(self, sql: str, values: Mapping[str, Any], /) -> Rows:
        """Run a statement that does not see what waits."""
        self._refuse_over()
        return self._db.execute(sql, values)

    def add_rows(self, table: Table, rows: Sequence[Values], conflict: Conflict = "refuse") -> None:
        """Take new rows of one form."""
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
            # A statement may not replace what it has written itself.
            waiting[tuple(row[name] for name in key) if conflict == "replace" else len(waiting)] = row

    def flush(self, tables: Collection[str] = tuple(SCHEMA)) -> None:
        """Write the rows that wait for some tables, those of the tables that they refer to first."""
        # Most statements name no table of which rows wait: nothing is ordered for them.
        for name in _IN_ORDER if self._waiting and not self._waiting.keys().isdisjoint(tables) else ():
            if name in self._waiting and any(name in _BEFORE[each] for each in tables):
                (_, conflict), rows = self._waiting.pop(name)
                insert_rows(self._db, SCHEMA[name], list(rows.values()), conflict)

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        """Return what a query finds."""
        return self.execute(sql, values).fetchall()

    def reading(self, namespace: str) -> AbstractContextManager[Database]:  # noqa: ARG002 - it is of one
        """Give the transaction itself."""
        return nullcontext(self)

    def make(self, namespace: str) -> int:
        """Return the number of one of `spaces`, which is made where it is not there."""
        if namespace not in self.spaces:
            refuse_unstorable("the namespace", namespace)
            sql = "INSERT INTO namespaces (name) VALUES (:name) RETURNING number"
            ((space,),) = self.rows(sql, {"name": namespace})
            self.spaces[namespace], self._rows[space] = space, next_change(space)
        return self.spaces[namespace]

    def put(self, *records: Any) -> None:
        """Write records in the places of those with their keys; all are checked before any is written."""
        for record in [checked(each) for each in records]:
            self.write(record)

    def write(self, record: Any, **beside: Any) -> None:
        """Write a record that `checked` has returned in the place of the one with its key.

        Args:
            beside: columns that hold none of its fields.
        """
        form = form_of(type(record))
        row = {"namespace": self.space, **beside, **form.row(record)}
        is_numbered = form.table.is_numbered
        if is_numbered and form.table.key[-1] not in row:
            row["number"] = self.take("next_row")
        self.add_rows(form.table, [row], "refuse" if is_numbered and not form.table.unique else "replace")
        if form.table.is_sequenced:
            self.mark()

    def drop(self, table: str, **key: Any) -> Written:
        """Delete the rows of the namespace that have these values, or one of a list; see `drop`."""
        self._refuse_over()
        gone = drop(self, table, namespace=self._space, **key)
        if SCHEMA[table].is_sequenced:
            self._dropped.append((self._space, gone))
        return gone

    def finish(self) -> int:
        """Write what waits, and a record of the change in each namespace that is due; return the last change here."""
        # Only now is a server asked how many rows a deletion found: each answer would be waited for.
        self._due |= {space for space, gone in self._dropped if gone.rowcount}
        self.add_rows(SCHEMA["changes"], [self._rows[space] for space in sorted(self._due)])
        self.write_counts()
        self.flush()
        if (changed := getattr(self._db, "changed", None)) is not None:
            changed.update(self._due)  # what a server searches in these namespaces follows before the commit
        last = self._rows.get(self._space)
        return int(last["number"]) - (self._space not in self._due) if last else 0

    def write_counts(self) -> None:
        """Add to the counts of each namespace and kind what came and went."""
        counts = [
            {"namespace": space, "kind": kind, **{name: tally[name] for name in ("owners", "passages", "text_bytes")}}
            for (space, kind), tally in self._tallies.items()
        ]
        self.add_rows(SCHEMA["counts"], counts, "add")
        self._tallies.clear()

    @property
    def number(self) -> int:
        """The number that it takes in the namespace that it writes to."""
        return int(self._rows[self.space]["number"])

    def take(self, counter: str) -> int:
        """Return the next number of an owner, a passage or a row of the graph."""
        row = self._rows[self.space]
        row[counter] += 1
        return int(row[counter]) - 1

    def put_owner(self, write: OwnerWrite, at: float = 0.0) -> int:
        """Write one owner in the place of those with its id or path, and return its number; it counts from `at` on."""
        owner = write.owner
        number, other = self._find(owner)
        if other is not None and other != number:  # a file was renamed, or its id was given to another one
            if number is None:
                number = other
            else:
                self.remove_owner(other)
        if number is None:
            return self.add_owner(owner, write.passages, created_at=at)
        self._clear(number)
        own = {"namespace": self.space, "number": number, "change": self.number, "created_at": at}
        self.execute(SQL["update_owner"], {**own, **_OWNERS.row(owner)})
        self._fill(number, owner, write.passages, is_past=False)
        return number

    def put_owners(self, writes: Sequence[OwnerWrite], at: float = 0.0) -> None:
        """Write owners that `settle` has returned, each as `put_owner` does; which of them are new is read once."""
        held: set[tuple[str, str, str]] = set()
        for kind in {write.owner.kind for write in writes}:
            owners = [write.owner for write in writes if write.owner.kind == kind]
            ids, paths = (each.id for each in owners), (each.path for each in owners if each.path)
            asked = {"namespace": self.space, "kind": kind, "ids": listed(ids), "paths": listed(paths)}
            for id_, path in self.execute(SQL["held"], asked):
                held |= names_of_owner(kind, id_, path)
        for write in writes:
            if held.isdisjoint(names_of_owner(write.owner.kind, write.owner.id, write.owner.path)):
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
            content: of a memory. The texts of its passages that are parts of it are not stored a second time.
        """
        number = self.take("next_owner")
        row = {"number": number, "namespace": self.space, "change": self.number, "expired_at": expired_at}
        self.add_rows(_OWNERS.table, [{**row, "created_at": created_at, **_OWNERS.row(owner)}])
        if expired_at is None:
            self._added[self.space, owner.kind, owner.id] = number
        self._fill(number, owner, passages, content, is_past=expired_at is not None)
        return number

    def expire_owner(self, number: int, at: float) -> bool:
        """Make a live owner past from `at` on; return whether this namespace has it, live."""
        row = self._row(number)
        if row is None or row[2] is not None:
            return False
        self._leave(number, row[0])
        own = {"namespace": self.space, "owner": number}
        sql = "UPDATE owners SET expired_at = :at WHERE namespace = :namespace AND number = :owner"
        self.execute(sql, {**own, "at": at})
        self.execute(f"UPDATE passage_vectors SET is_past = 1 WHERE {SQL['of_owner']}", own)
        self.mark()
        return True

    def remove_owner(self, number: int) -> bool:
        """Delete one owner with all it has; return whether this namespace had it."""
        if not 0 < number < 2**63 or not self._clear(number):
            return False
        drop(self, "owners", namespace=self.space, number=number)
        self.mark()
        return True

    def drop_owner(self, kind: Kind, id_: str) -> None:
        """Delete the live owner of a kind that has an id, if there is one."""
        number, _ = self._find(Owner(id_, kind))
        if number is not None:
            self.remove_owner(number)

    @contextmanager
    def inside(self, namespace: str) -> Iterator[None]:
        """Write to another namespace until the block ends, one of the texts of this one's graph."""
        home, self._space = self._space, self.make(namespace)
        try:
            yield
        finally:
            self._space = home

    def mark(self) -> None:
        """Say that a search might answer otherwise after this change."""
        self._due.add(self.space)

    def _refuse_over(self) -> None:
        # What is done after the block would belong to no transaction.
        if self.is_over:
            raise StoreError("this change of memories is over", remedy="begin another one")

    def _find(self, owner: Owner) -> tuple[int | None, int | None]:
        """Return the numbers of the live owners that have its id and its path."""
        values = {"namespace": self.space, "kind": owner.kind, "id": owner.id, "path": owner.path}
        added = self._added.get((self.space, owner.kind, owner.id))
        by_id = (added,) if added else self.peek(SQL["by_id"], values).fetchone()
        by_path = owner.path and self.execute(SQL["by_path"], values).fetchone()
        return by_id[0] if by_id else None, by_path[0] if by_path else None

    def _clear(self, number: int) -> bool:
        """Delete what hangs on an owner, but not its own row; return whether this namespace has the owner."""
        row = self._row(number)
        if row is None:
            return False
        kind, tags, expired_at, id_ = row
        own = {"namespace": self.space, "owner": number}
        if expired_at is None:
            self._leave(number, kind)
        for table in ("next_vectors", "passage_vectors"):
            self.execute(f"DELETE FROM {table} WHERE {SQL['of_owner']}", own)
        for table in ("passages", "file_stamps", *_BESIDE.get(kind, ())):
            drop(self, table, **own)
        if tags:
            self.execute(SQL["drop_tags"], {**own, "tags": listed(unlisted(tags))})
        if kind == "memory":  # the version before this one is the latest now
            self.execute(SQL["promote"], {"namespace": self.space, "id": id_})
        return True

    def _row(self, number: int) -> Row | None:
        """Return kind, tags, end and id of an owner that this namespace has."""
        found: Row | None = self.execute(SQL["owner"], {"number": number, "namespace": self.space}).fetchone()
        self._added.clear()  # all owners are written now, and this one may go
        return found

    def _leave(self, number: int, kind: str) -> None:
        """Take a live owner out of the counts, and its passages out of what the index follows."""
        tally = self._tallies[self.space, kind]
        tally["owners"] -= 1
        passages = self.execute(SQL["texts"], {"namespace": self.space, "owner": number}).fetchall()
        tally["passages"] -= len(passages)
        tally["text_bytes"] -= sum(len(text.encode()) for _, text in passages)
        own = {"namespace": self.space, "change": self.number}
        self.add_rows(SCHEMA["deletions"], [{**own, "number": passage} for passage, _ in passages])

    def _fill(
        self, number: int, owner: Owner, passages: Sequence[NewPassage], content: str = "", *, is_past: bool
    ) -> None:
        """Add the rows that hang on an owner."""
        tally = Counter[str]() if is_past else self._tallies[self.space, owner.kind]  # what is past counts nowhere
        tally["owners"] += 1
        own = {"namespace": self.space, "owner": number}
        self.add_rows(SCHEMA["owner_tags"], [{**own, "tag": tag} for tag in set(owner.tags)])
        if owner.stamp:
            self.add_rows(STAMPS.table, [{**own, **STAMPS.row(owner.stamp)}])
        begin, content = 0, content if len(content) <= _PLACED else ""
        for ordinal, passage in enumerate(passages):
            own["number"] = self.take("next_passage")
            row = {**own, "ordinal": ordinal, "id": passage.id, **_CHUNKS.row(passage.chunk), "place": 0, "length": 0}
            place = content.find(passage.chunk.text, begin) if content else -1
            if place >= 0:
                begin, row["text"], row["place"] = place, "", place + 1
                row["length"] = len(passage.chunk.text)
            self.add_rows(_CHUNKS.table, [row])
            arrays = {"token_ids": passage.token_ids, "vector": passage.vector}
            self.add_rows(SCHEMA["passage_vectors"], [{**own, **arrays, "is_past": int(is_past)}])
            tally["passages"] += 1
            tally["text_bytes"] += len(passage.chunk.text.encode())
        self.mark()


def find(
    source: Connections | Change,
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
    chosen = where(form.table, wanted)
    if chosen is None:
        return []
    own = "true" if namespace is None else f"namespace = {SPACE}"
    table = f"{form.table.name} INDEXED BY {by}" if by else form.table.name
    sql = f"SELECT {form.names()} FROM {table} WHERE {own}{' AND ' * bool(wanted)}{chosen[0]} {rest}"
    return [form.build(row) for row in source.rows(sql, {"namespace": namespace, **chosen[1], **values})]


class SpaceReading:
    """Reads one namespace: as the store is when each call is made, or with all that a transaction wrote."""

    def __init__(self, source: Connections | Change, namespace: str) -> None:
        self._source = source
        self._namespace = namespace

    def _rows(self, sql: str, **values: Any) -> list[Row]:
        return self._source.rows(sql, {"namespace": self._namespace, **values})

    def _find(
        self, form: Form[T], wanted: Mapping[str, Any] = NO_VALUES, rest: str = "", *, by: str = "", **values: Any
    ) -> list[T]:
        return find(self._source, self._namespace, form, wanted, rest, by=by, **values)


class ChangingSpace(SpaceReading):
    """A namespace inside a transaction that changes it; it reads its own writes.

    What cannot be written is refused before anything of it is.

    Raises:
        StoreError: it is used after its block has ended, or a vector is not of the store's embedder.
        UsageError: a number or a text does not fit a store, or an owner is of another kind or of a file.
    """

    def __init__(self, change: Change) -> None:
        super().__init__(change, change.namespace)
        self._change = change
