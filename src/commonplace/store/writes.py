"""Write owners, passages and embeddings in a transaction, with the checks on each."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import urandom
from typing import Final, TypeVar

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import EmbedderMismatchError, StoreError, UsageError
from commonplace.store.dialect import Database, Read, among, listed
from commonplace.store.graph_rules import texts_of
from commonplace.store.owners import TEXT
from commonplace.store.rows import (
    Row,
    Values,
    WriteBuffer,
    add_rows,
    check_times,
    checked,
    drop,
    form_of,
    refuse_unstorable,
    refuse_wide,
    unlisted,
)
from commonplace.store.schema import COUNTERS, SCHEMA, numbers_after
from commonplace.types import GRAPH_KINDS, Chunk, Embedding, FileStamp, Kind, MemoryWrite, NewPassage, Owner, OwnerWrite
from commonplace.types.knowledge import KnowledgeWrite


def settle(writes: Sequence[OwnerWrite], embedding: Embedding | None) -> list[OwnerWrite]:
    """Return the writes that are to happen, as they are kept, in the order given.

    Of writes with the same kind and id, or the same kind and non-empty path, the last one counts.

    Args:
        embedding: the stamp of the store; with it, each vector must have one byte a dimension.

    Raises:
        UsageError: a number does not fit a store (a time that is not a number, an integer beyond 64 bits).
        StoreError: a vector is not of the store's embedder.
    """
    seen: set[tuple[str, str, str]] = set()
    kept: list[OwnerWrite] = []
    for write in reversed(writes):
        owner = write.owner
        names = _names(owner.kind, owner.id, owner.path)
        if seen.isdisjoint(names):
            seen |= names
            kept.append(check_write(write, embedding))
    kept.reverse()
    return kept


def _names(kind: str, id_: str, path: str) -> set[tuple[str, str, str]]:
    """Return what tells a live owner apart from others of its namespace."""
    return {("id", kind, id_)} | ({("path", kind, path)} if path else set())


def upgrade_command(name: str) -> str:
    """Return the command that changes a store's embedder, for messages."""
    return f"`commonplace index upgrade --embedder {name}`"


def refuse_reembedding(held: Embedding | None, wanted: Embedding, passages: int) -> None:
    """Refuse to stamp a store with an embedder that did not make its vectors.

    Raises:
        StoreError: the store holds passages, and `held` is not `wanted`.
    """
    if passages and held != wanted:
        maker = f"made by {held}" if held else "of an unknown embedder"
        raise StoreError(
            f"the store holds {passages} passages {maker}, not by {wanted}",
            remedy=f"open it with the embedder it was built with, or run {upgrade_command(wanted.name)}",
        )


def refuse_other_maker(held: Embedding | None, made_by: Embedding | None) -> None:
    """Refuse vectors of another embedder than made the stored ones; without a stamp, or without vectors, refuse none.

    Raises:
        EmbedderMismatchError: the store changed its embedder after they were made.
    """
    if held is not None and made_by is not None and held != made_by:
        raise EmbedderMismatchError(
            f"the store changed its embedder from {made_by} to {held} meanwhile, and nothing was written",
            remedy="try again",
        )


def refuse_same_embedding(held: Embedding | None, wanted: Embedding) -> None:
    """Refuse to change an embedder to itself.

    Raises:
        StoreError: the store's vectors are of that embedder.
    """
    if held == wanted:
        raise StoreError(f"the vectors of the store are made by {wanted} already")


def refuse_other_reembedding(under_way: Embedding | None, wanted: Embedding) -> None:
    """Refuse vectors for a change of embedder that is not under way.

    Raises:
        StoreError: another one is, or none.
    """
    if under_way != wanted:
        found = f"is under way to {under_way}" if under_way else "is over"
        raise StoreError(f"a change of the store's embedder {found}, not to {wanted}", remedy="begin it again")


def refuse_unfit_vectors(embedding: Embedding, vectors: Sequence[bytes]) -> None:
    """Refuse vectors of another length than an embedder's.

    Raises:
        StoreError: naming the length.
    """
    for vector in vectors:
        if len(vector) not in {space.dimensions for space in embedding.spaces}:
            raise StoreError(
                f"a vector has {len(vector)} dimensions, those of {embedding.name} have {embedding.dimensions}"
            )


def snapshot_is_written() -> StoreError:
    """Return the error for a write inside a snapshot of the same thread: nobody could say which state it would see."""
    return StoreError("a thread that reads from a snapshot cannot write", remedy="write after the snapshot's block")


def change_is_under_way() -> StoreError:
    """Return the error for a write beside a change of memories of the same thread: it would wait for itself."""
    return StoreError(
        "a thread that changes memories cannot write in another way", remedy="write after the change's block"
    )


def change_is_over() -> StoreError:
    """Return the error for a use of a change of memories after its block: it would belong to no transaction."""
    return StoreError("this change of memories is over", remedy="begin another one")


def live_version_exists(id_: str) -> StoreError:
    """Return the error for a version of a memory beside a live one: nobody could say which is the truth."""
    return StoreError(f"there is a live version of memory {id_!r}", remedy="expire it first")


def not_latest(number: int) -> StoreError:
    """Return the error for the revival of what is not the latest version of a memory here."""
    return StoreError(f"version {number} is not the latest of a memory", remedy="revive the latest one")


Recorded = TypeVar("Recorded", MemoryWrite, KnowledgeWrite)


def check_recorded(
    write: Recorded, kind: Kind, what: str, embedding: Embedding | None, *times: float | None
) -> Recorded:
    """Return a version of a memory or an item of knowledge as it is kept.

    Raises:
        UsageError: its owner is of another kind or of a file, or a number or name does not fit a store.
        StoreError: a vector is not of the store's embedder.
    """
    owner = write.owner
    if owner.kind != kind or owner.path or owner.stamp:
        found = f"of the file {owner.path!r}" if owner.kind == kind else f"of the kind {owner.kind!r}"
        raise UsageError(f"{owner.id!r} is {found}, not {what}", remedy="put it as an owner")
    kept = check_write(OwnerWrite(owner, write.passages), embedding)
    name = f"{kind} {owner.id!r}"
    check_times(name, *times)
    if isinstance(write, MemoryWrite):
        refuse_wide(name, *write.bands)
        check_times(name, *(end for date in write.dates for end in date))
    return replace(write, owner=kept.owner, passages=kept.passages, record=checked(write.record, name))


def check_write(write: OwnerWrite, embedding: Embedding | None) -> OwnerWrite:
    """Return an owner with passages as it is kept; an empty vector is made later.

    Raises:
        UsageError: a number or a name does not fit a store.
        StoreError: a vector is not of the store's embedder.
    """
    owner = write.owner
    name = f"{owner.kind} {owner.id!r}"
    kept = checked(owner, name)
    if owner.stamp:
        checked(owner.stamp, name)
    own = embedding.of(owner.kind) if embedding else None
    for passage in write.passages:
        refuse_unstorable("the id of passage", passage.id)
        if own and passage.vector and len(passage.vector) != own.dimensions:
            raise StoreError(
                f"the vector of passage {passage.id!r} has {len(passage.vector)} dimensions, the store's embedder"
                f" {own.name} has {own.dimensions}",
                remedy="embed with the embedder of the store",
            )
    chunks = [checked(passage.chunk, name) for passage in write.passages]
    if all(chunk is passage.chunk for chunk, passage in zip(chunks, write.passages, strict=True)):
        return write if kept is owner else replace(write, owner=kept)
    passages = [replace(passage, chunk=chunk) for chunk, passage in zip(chunks, write.passages, strict=True)]
    return OwnerWrite(kept, tuple(passages))


STAMP_KEYS: Final = ("embedder", "embedder_version", "dimensions", "embedders_of_kinds")
META: Final = "SELECT key, value FROM meta"
NEXT: Final = "next_"
"""Begins the names under which `meta` keeps the stamp of the embedder that is to come."""


def namespace_number(db: Database, namespace: str) -> int | None:
    """Return the number of a namespace, None when there is none of that name."""
    row = db.execute("SELECT number FROM namespaces WHERE name = :name", {"name": namespace}).fetchone()
    return row and int(row[0])


def create_namespace(db: Database, namespace: str) -> int:
    """Make a namespace that is not there, and return its number.

    Raises:
        UsageError: its name holds what no database keeps.
    """
    refuse_unstorable("the namespace", namespace)
    sql = "INSERT INTO namespaces (name) VALUES (:name) RETURNING number"
    return int(db.execute(sql, {"name": namespace}).fetchone()[0])


def read_embedding(db: Database, which: str = "") -> Embedding | None:
    """Return the stamp of the stored vectors, or with `NEXT` of those that are to take their place."""
    return embedding_of(dict(db.execute(META)), which)


def embedding_of(values: Mapping[str, str], which: str = "") -> Embedding | None:
    """Return the stamp that rows of `meta` tell; see `read_embedding`."""
    if f"{which}embedder" not in values:
        return None
    name, version, dimensions = (values[f"{which}{key}"] for key in STAMP_KEYS[:3])
    others = json.loads(values.get(f"{which}{STAMP_KEYS[3]}", "[]"))
    return Embedding(name, version, int(dimensions), tuple((kind, Embedding(*stamp)) for kind, stamp in others))


def set_embedding(db: Database, embedding: Embedding, which: str = "") -> None:
    """Write the stamp of the stored vectors, or with `NEXT` of those that are to take their place."""
    others = [(kind, (each.name, each.version, each.dimensions)) for kind, each in embedding.others]
    values = (embedding.name, embedding.version, str(embedding.dimensions), json.dumps(others))
    for key, value in zip(STAMP_KEYS, values, strict=True):
        refuse_unstorable("the embedder", value)
        add_rows(db, SCHEMA["meta"], [{"key": f"{which}{key}", "value": value}], "replace")


_OWNERS = form_of(Owner)
STAMPS = form_of(FileStamp)
_CHUNKS = form_of(Chunk)

_BY_ID = """
    SELECT number FROM owners
    WHERE namespace = :namespace AND kind = :kind AND id = :id AND expired_at IS NULL
"""
_HELD = f"""
    SELECT id, path FROM owners
    WHERE namespace = :namespace AND kind = :kind AND id IN {among("ids")} AND expired_at IS NULL
    UNION ALL SELECT id, path FROM owners
    WHERE namespace = :namespace AND kind = :kind AND path IN {among("paths")} AND path != '' AND expired_at IS NULL
"""
_BY_PATH = """
    SELECT number FROM owners
    WHERE namespace = :namespace AND kind = :kind AND path = :path AND path != '' AND expired_at IS NULL
"""
_OWNER = "SELECT kind, tags, expired_at, id FROM owners WHERE number = :number AND namespace = :namespace"
_OF_OWNER = """
    namespace = :namespace AND number IN (SELECT number FROM passages WHERE namespace = :namespace AND owner = :owner)
"""
_PLACED = 16 * 1024
"""Characters of the longest content in which passages are placed: each is read by way of all before it, so that those
of a long one take the square of its length."""
_TEXTS = f"SELECT p.number, {TEXT} FROM passages p WHERE p.namespace = :namespace AND p.owner = :owner"
_BESIDE = {"memory": ("memory_bands", "memory_dates", "memories"), "knowledge": ("knowledge_items",)}
"""The tables that hold more of an owner, by its kind."""
_DROP_TAGS = f"DELETE FROM owner_tags WHERE namespace = :namespace AND owner = :owner AND tag IN {among('tags')}"
_PROMOTE = """
    UPDATE memories SET is_latest = 1
    WHERE namespace = :namespace
        AND owner = (SELECT max(owner) FROM memories WHERE namespace = :namespace AND id = :id)
"""
_UPDATE_OWNER = f"""
    UPDATE owners SET {", ".join(f'"{column.name}" = :{column.name}' for column in _OWNERS.columns)},
        change = :change, created_at = :created_at
    WHERE namespace = :namespace AND number = :number
"""


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
    row = {"namespace": space, "number": (last or 0) + 1, "token": urandom(8)}
    return row | dict(zip(COUNTERS, counted, strict=True))


@dataclass(slots=True)
class Change:
    """One change under way: it hands out numbers, adds rows, and `finish` writes what waits.

    Attributes:
        space: the number of the namespace that it writes to.
        spaces: the numbers of this namespace and of those with the texts of its graph, as far as they are there.
    """

    db: WriteBuffer
    space: int
    spaces: dict[str, int]
    _rows: dict[int, Values]
    _tallies: defaultdict[tuple[int, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _added: dict[tuple[int, Kind, str], int] = field(default_factory=dict)
    _due: set[int] = field(default_factory=set)

    @classmethod
    def begin(cls, db: Database, namespace: str) -> Change | None:
        """Start the next change of a namespace, None where there is none of that name."""
        change = cls._of(db, namespace)
        return change if namespace in change.spaces else None

    @classmethod
    def create(cls, db: Database, namespace: str) -> Change:
        """Start the next change of a namespace, which is made where there is none of that name.

        Raises:
            UsageError: its name holds what no database keeps.
        """
        change = cls._of(db, namespace)
        change.space = change.make(namespace)
        return change

    @classmethod
    def _of(cls, db: Database, namespace: str) -> Change:
        found = db.execute(*heads_of(namespace)).fetchall()
        spaces, rows = {row[0]: row[1] for row in found}, {row[1]: next_change(*row[1:]) for row in found}
        writer = db if isinstance(db, WriteBuffer) else WriteBuffer(db)
        return cls(writer, spaces.get(namespace, 0), spaces, rows)

    def make(self, namespace: str) -> int:
        """Return the number of one of `spaces`, which is made where it is not there."""
        if namespace not in self.spaces:
            space = self.spaces[namespace] = create_namespace(self.db, namespace)
            self._rows[space] = next_change(space)
        return self.spaces[namespace]

    @property
    def number(self) -> int:
        """The number that it takes in the namespace that it writes to."""
        return int(self._rows[self.space]["number"])

    def take(self, counter: str) -> int:
        """Return the next number of an owner, a passage or a row of the graph."""
        row = self._rows[self.space]
        row[counter] += 1
        return int(row[counter]) - 1

    def put(self, write: OwnerWrite, at: float = 0.0) -> int:
        """Write one owner in the place of those with its id or path, and return its number; it counts from `at` on."""
        owner = write.owner
        number, other = self._find(owner)
        if other is not None and other != number:
            if number is None:
                number = other
            else:
                self.remove(other)
        if number is None:
            return self.add(owner, write.passages, created_at=at)
        self._clear(number)
        own = {"namespace": self.space, "number": number, "change": self.number, "created_at": at}
        self.db.execute(_UPDATE_OWNER, {**own, **_OWNERS.row(owner)})
        self._fill(number, owner, write.passages, is_past=False)
        return number

    def put_all(self, writes: Sequence[OwnerWrite], at: float = 0.0) -> None:
        """Write owners that `settle` has returned, each as `put` does: which of them are new is asked for once."""
        held: set[tuple[str, str, str]] = set()
        for kind in {write.owner.kind for write in writes}:
            owners = [write.owner for write in writes if write.owner.kind == kind]
            ids, paths = (each.id for each in owners), (each.path for each in owners if each.path)
            asked = {"namespace": self.space, "kind": kind, "ids": listed(ids), "paths": listed(paths)}
            for id_, path in self.db.execute(_HELD, asked):
                held |= _names(kind, id_, path)
        for write in writes:
            if held.isdisjoint(_names(write.owner.kind, write.owner.id, write.owner.path)):
                self.add(write.owner, write.passages, created_at=at)
            else:
                self.put(write, at)

    def add(
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
            content: of a memory, where its passages stand: their texts are not written a second time.
        """
        number = self.take("next_owner")
        row = {"number": number, "namespace": self.space, "change": self.number, "expired_at": expired_at}
        add_rows(self.db, _OWNERS.table, [{**row, "created_at": created_at, **_OWNERS.row(owner)}])
        if expired_at is None:
            self._added[self.space, owner.kind, owner.id] = number
        self._fill(number, owner, passages, content, is_past=expired_at is not None)
        return number

    def expire(self, number: int, at: float) -> bool:
        """Make a live owner past from `at` on; return whether this namespace has it, live."""
        row = self._row(number)
        if row is None or row[2] is not None:
            return False
        self._leave(number, row[0])
        own = {"namespace": self.space, "owner": number}
        sql = "UPDATE owners SET expired_at = :at WHERE namespace = :namespace AND number = :owner"
        self.db.execute(sql, {**own, "at": at})
        self.db.execute(f"UPDATE passage_vectors SET is_past = 1 WHERE {_OF_OWNER}", own)
        self.mark()
        return True

    def remove(self, number: int) -> bool:
        """Delete one owner with all it has; return whether this namespace had it."""
        if not 0 < number < 2**63 or not self._clear(number):
            return False
        drop(self.db, "owners", namespace=self.space, number=number)
        self.mark()
        return True

    def drop(self, kind: Kind, id_: str) -> None:
        """Delete the live owner of a kind that has an id, if there is one."""
        number, _ = self._find(Owner(id_, kind))
        if number is not None:
            self.remove(number)

    @contextmanager
    def inside(self, space: int) -> Iterator[None]:
        """Go on in another namespace until the block ends, of which it is a change too."""
        home, self.space = self.space, space
        try:
            yield
        finally:
            self.space = home

    def renumber(self, old: int) -> int:
        """Return a number for a passage that leaves its old one, which counts as deleted."""
        self._delete([old])
        return self.take("next_passage")

    def mark(self) -> None:
        """Say that a search might answer otherwise after this change."""
        self._due.add(self.space)

    @property
    def is_due(self) -> bool:
        """True where something happened that must take a number."""
        return bool(self._due)

    def finish(self) -> int:
        """Write what waits, and a record of the change in each namespace that is due; return its number here."""
        add_rows(self.db, SCHEMA["changes"], [self._rows[space] for space in sorted(self._due)])
        self.flush()
        self.db.follow(self._due)
        return self.number

    def flush(self) -> None:
        """Write what waits."""
        counts = [
            {"namespace": space, "kind": kind, **{name: tally[name] for name in ("owners", "passages", "text_bytes")}}
            for (space, kind), tally in self._tallies.items()
        ]
        add_rows(self.db, SCHEMA["counts"], counts, "add")
        self._tallies.clear()
        self.db.flush()

    def _find(self, owner: Owner) -> tuple[int | None, int | None]:
        """Return the numbers of the live owners that have its id and its path."""
        values = {"namespace": self.space, "kind": owner.kind, "id": owner.id, "path": owner.path}
        added = self._added.get((self.space, owner.kind, owner.id))
        by_id = (added,) if added else self.db.peek(_BY_ID, values).fetchone()
        by_path = owner.path and self.db.execute(_BY_PATH, values).fetchone()
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
            self.db.execute(f"DELETE FROM {table} WHERE {_OF_OWNER}", own)
        for table in ("passages", "file_stamps", *_BESIDE.get(kind, ())):
            drop(self.db, table, **own)
        if tags:
            self.db.execute(_DROP_TAGS, {**own, "tags": listed(unlisted(tags))})
        if kind == "memory":
            self.db.execute(_PROMOTE, {"namespace": self.space, "id": id_})
        return True

    def _row(self, number: int) -> Row | None:
        """Return kind, tags, end and id of an owner that this namespace has."""
        found: Row | None = self.db.execute(_OWNER, {"number": number, "namespace": self.space}).fetchone()
        self._added.clear()  # all owners are written now, and this one may go
        return found

    def _leave(self, number: int, kind: str) -> None:
        """Take a live owner out of the counts, and its passages out of what the index follows."""
        tally = self._tallies[self.space, kind]
        tally["owners"] -= 1
        passages = self.db.execute(_TEXTS, {"namespace": self.space, "owner": number}).fetchall()
        tally["passages"] -= len(passages)
        tally["text_bytes"] -= sum(len(text.encode()) for _, text in passages)
        self._delete([passage for passage, _ in passages])

    def _delete(self, passages: Sequence[int]) -> None:
        own = {"namespace": self.space, "change": self.number}
        add_rows(self.db, SCHEMA["deletions"], [{**own, "number": passage} for passage in passages])

    def _fill(
        self, number: int, owner: Owner, passages: Sequence[NewPassage], content: str = "", *, is_past: bool
    ) -> None:
        """Add the rows that hang on an owner."""
        if not is_past:
            self._tallies[self.space, owner.kind]["owners"] += 1
        own = {"namespace": self.space, "owner": number}
        add_rows(self.db, SCHEMA["owner_tags"], [{**own, "tag": tag} for tag in set(owner.tags)])
        if owner.stamp:
            add_rows(self.db, STAMPS.table, [{**own, **STAMPS.row(owner.stamp)}])
        begin, content = 0, content if len(content) <= _PLACED else ""
        for ordinal, passage in enumerate(passages):
            own["number"] = self.take("next_passage")
            row = {**own, "ordinal": ordinal, "id": passage.id, **_CHUNKS.row(passage.chunk), "place": 0, "length": 0}
            place = content.find(passage.chunk.text, begin) if content else -1
            if place >= 0:
                begin, row["text"], row["place"] = place, "", place + 1
                row["length"] = len(passage.chunk.text)
            add_rows(self.db, _CHUNKS.table, [row])
            arrays = {"token_ids": passage.token_ids, "vector": passage.vector}
            add_rows(self.db, SCHEMA["passage_vectors"], [{**own, **arrays, "is_past": int(is_past)}])
            if not is_past:
                self._tallies[self.space, owner.kind]["passages"] += 1
                self._tallies[self.space, owner.kind]["text_bytes"] += len(passage.chunk.text.encode())
        self.mark()
