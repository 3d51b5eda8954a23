"""Write owners, passages and embeddings in a transaction, with the checks on each."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from commonplace.errors import EmbedderMismatchError, StoreError, UsageError
from commonplace.store.contract import MirroredPage, Note
from commonplace.store.rows import Row, pack_id, pack_owner, pack_stamp, pack_text, text_bytes, unpack, unpack_texts
from commonplace.types import Embedding, FileStamp, Kind, Link, MemoryRecord, MemoryWrite, NewPassage, Owner, OwnerWrite

_INT64 = 2**63


def settle(writes: Sequence[OwnerWrite], embedding: Embedding | None) -> list[OwnerWrite]:
    """Return the writes that are to happen, in the order given.

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
        keys = {("id", owner.kind, owner.id)} | ({("path", owner.kind, owner.path)} if owner.path else set())
        if seen.isdisjoint(keys):
            seen |= keys
            check_write(write, embedding)
            kept.append(write)
    kept.reverse()
    return kept


def check_write(write: OwnerWrite, embedding: Embedding | None) -> None:
    """Refuse a write that cannot be kept; see `settle`."""
    _check_owner(write.owner, write.passages)
    _refuse_foreign_vectors(write, embedding)


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


def new_token() -> bytes:
    """Return eight random bytes that tell a change from any other one with its number."""
    return os.urandom(8)


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


def check_memory(write: MemoryWrite, embedding: Embedding | None, created_at: float, expired_at: float | None) -> None:
    """Refuse a version of a memory that a store cannot keep; its position must be the one that it will have.

    Raises:
        UsageError: its owner is of another kind or of a file, or a number does not fit a store.
        StoreError: a vector is not of the store's embedder.
    """
    owner = write.owner
    if owner.kind != "memory" or owner.path or owner.stamp:
        what = f"of the file {owner.path!r}" if owner.kind == "memory" else f"of the kind {owner.kind!r}"
        raise UsageError(f"{owner.id!r} is {what}, not a memory", remedy="put it as an owner")
    check_write(OwnerWrite(owner, write.passages), embedding)
    check_record(owner.id, write.record)
    name = f"memory {owner.id!r}"
    refuse_wide(name, *write.bands)
    check_times(name, created_at, expired_at, *(end for date in write.dates for end in date))


def check_record(name: str, record: MemoryRecord) -> None:
    """Refuse a record with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    name = f"memory {name!r}"
    refuse_wide(name, record.version, record.use_count, record.review_count)
    check_times(name, record.born_at, record.last_used, record.promoted_at, *record.uses)
    if math.isnan(record.trust) or math.isnan(record.strength):
        raise UsageError(f"trust or strength of {name} is not a number", remedy="give numbers")


def check_entry(entry: Link | MirroredPage | Note) -> None:
    """Refuse a link, page or note with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    if isinstance(entry, MirroredPage):
        refuse_wide(f"page {entry.page!r}", entry.size, entry.mtime_ns)
    elif isinstance(entry, Note):
        check_times(f"{entry.kind} {entry.id!r}", entry.at)
    else:
        name = f"the link from {entry.source!r} to {entry.target!r}"
        check_times(name, entry.created_at)
        if math.isnan(entry.strength):
            raise UsageError(f"the strength of {name} is not a number", remedy="give a number")


def check_times(name: object, *times: float | None) -> None:
    """Refuse a time that is not a number; None and the infinities are times.

    Args:
        name: what it is of, put into words only where it is refused.

    Raises:
        UsageError: one is NaN.
    """
    if any(time is not None and math.isnan(time) for time in times):
        raise UsageError(f"a time of {name} is not a number", remedy="give seconds since the epoch")


def _check_owner(owner: Owner, passages: Sequence[NewPassage]) -> None:
    name = f"{owner.kind} {owner.id!r}"
    check_times(name, owner.at)
    refuse_wide(name, owner.position)
    if owner.stamp:
        refuse_wide(name, owner.stamp.size, owner.stamp.mtime_ns)
    for passage in passages:
        refuse_wide(name, passage.chunk.start_line, passage.chunk.end_line)


def refuse_wide(name: object, *integers: int) -> None:
    """Refuse an integer beyond 64 bits.

    Raises:
        UsageError: naming it.
    """
    for integer in integers:
        if not -_INT64 <= integer < _INT64:
            raise UsageError(f"{integer} in {name} needs more than 64 bits; the limit is 2^63 - 1")


def _refuse_foreign_vectors(write: OwnerWrite, embedding: Embedding | None) -> None:
    """Refuse a vector of another length than the embedder's; an empty one is made later."""
    if embedding is None:
        return
    own = embedding.of(write.owner.kind)
    for passage in write.passages:
        if passage.vector and len(passage.vector) != own.dimensions:
            raise StoreError(
                f"the vector of passage {passage.id!r} has {len(passage.vector)} dimensions, the store's embedder"
                f" {own.name} has {own.dimensions}",
                remedy="embed with the embedder of the store",
            )


STAMP_KEYS: Final = ("embedder", "embedder_version", "dimensions", "embedders_of_kinds")
NEXT: Final = "next_"
"""Begins the names under which `meta` keeps the stamp of the embedder that is to come."""


def current_change(db: sqlite3.Connection) -> int:
    """Return the last number of the change sequence."""
    return int(db.execute("SELECT max(number) FROM changes").fetchone()[0])


def namespace_number(db: sqlite3.Connection, namespace: str) -> int | None:
    """Return the number of a namespace, None when there is none of that name."""
    row = db.execute("SELECT number FROM namespaces WHERE name = ?", (pack_text(namespace),)).fetchone()
    return row and int(row[0])


def create_namespace(db: sqlite3.Connection, namespace: str) -> int:
    """Return the number of a namespace, new or old."""
    db.execute("INSERT OR IGNORE INTO namespaces (name) VALUES (?)", (pack_text(namespace),))
    number = namespace_number(db, namespace)
    assert number is not None
    return number


def read_embedding(db: sqlite3.Connection, which: str = "") -> Embedding | None:
    """Return the stamp of the stored vectors, or with `NEXT` of those that are to take their place."""
    values = dict(db.execute("SELECT key, value FROM meta"))
    if f"{which}embedder" not in values:
        return None
    name, version, dimensions = (values[f"{which}{key}"] for key in STAMP_KEYS[:3])
    others = json.loads(unpack(values.get(f"{which}{STAMP_KEYS[3]}", "[]")))
    return Embedding(
        unpack(name), unpack(version), int(dimensions), tuple((kind, Embedding(*stamp)) for kind, stamp in others)
    )


def set_embedding(db: sqlite3.Connection, embedding: Embedding, which: str = "") -> None:
    """Write the stamp of the stored vectors, or with `NEXT` of those that are to take their place."""
    others = [(kind, (each.name, each.version, each.dimensions)) for kind, each in embedding.others]
    values = (
        pack_text(embedding.name),
        pack_text(embedding.version),
        str(embedding.dimensions),
        pack_text(json.dumps(others)),
    )
    db.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)",
        [(f"{which}{key}", value) for key, value in zip(STAMP_KEYS, values, strict=True)],
    )


@dataclass(slots=True)
class _Tally:
    owners: int = 0
    passages: int = 0
    text_bytes: int = 0


@dataclass(slots=True)
class Change:
    """One change under way: it hands out numbers, collects rows, and `finish` writes what was collected."""

    db: sqlite3.Connection
    space: int
    number: int
    next_owner: int
    next_passage: int
    _tallies: defaultdict[tuple[int, str], _Tally] = field(default_factory=lambda: defaultdict(_Tally))
    _passages: list[Row] = field(default_factory=list)
    _vectors: list[Row] = field(default_factory=list)
    _tags: list[Row] = field(default_factory=list)
    _stamps: list[Row] = field(default_factory=list)
    _deleted: list[int] = field(default_factory=list)
    _is_due: bool = False

    @classmethod
    def begin(cls, db: sqlite3.Connection, space: int) -> Change:
        """Start the next change of the sequence, in the namespace with number `space`."""
        sql = "SELECT number + 1, next_owner, next_passage FROM changes ORDER BY number DESC LIMIT 1"
        return cls(db, space, *db.execute(sql).fetchone())

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
        self._update_owner(number, owner, at)
        self._fill(number, owner, write.passages, is_past=False)
        return number

    def add(
        self,
        owner: Owner,
        passages: Sequence[NewPassage],
        *,
        created_at: float,
        expired_at: float | None = None,
    ) -> int:
        """Write a new owner row, live or past, and return its number."""
        number = self.next_owner
        self.next_owner += 1
        self.db.execute(
            """
            INSERT INTO owners (number, namespace, kind, change, created_at, expired_at, id, type, phase, path, root,
                                session, position, at, title, tags, "references", summary)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (number, self.space, owner.kind, self.number, created_at, expired_at, *pack_owner(owner)),
        )
        self._fill(number, owner, passages, is_past=expired_at is not None)
        return number

    def expire(self, number: int, at: float) -> bool:
        """Make a live owner past from `at` on; return whether this namespace has it, live."""
        row = self.db.execute(
            "SELECT kind FROM owners WHERE number = ? AND namespace = ? AND expired_at IS NULL", (number, self.space)
        ).fetchone()
        if row is None:
            return False
        self._leave(number, row[0])
        self.db.execute("UPDATE owners SET expired_at = ? WHERE number = ?", (at, number))
        self.db.execute(
            "UPDATE passage_vectors SET is_past = 1 WHERE number IN (SELECT number FROM passages WHERE owner = ?)",
            (number,),
        )
        self.mark()
        return True

    def remove(self, number: int) -> bool:
        """Delete one owner with all it has; return whether this namespace had it."""
        if not 0 < number < self.next_owner or not self._clear(number):
            return False
        self.db.execute("DELETE FROM owners WHERE number = ?", (number,))
        self.mark()
        return True

    def drop(self, kind: Kind, id_: str) -> None:
        """Delete the live owner of a kind that has an id, if there is one."""
        number, _ = self._find(Owner(id_, kind))
        if number is not None:
            self.remove(number)

    @contextmanager
    def inside(self, space: int) -> Iterator[None]:
        """Go on in another namespace until the block ends; numbers and the record of the change are shared."""
        home, self.space = self.space, space
        try:
            yield
        finally:
            self.space = home

    def take_passage(self, old: int) -> int:
        """Return a number for a passage that leaves its old one, which counts as deleted."""
        number = self.next_passage
        self.next_passage += 1
        self._deleted.append(old)
        return number

    def mark(self) -> None:
        """Say that a search might answer otherwise after this change."""
        self._is_due = True

    @property
    def is_due(self) -> bool:
        """True where something happened that must take a number."""
        return self._is_due

    def finish(self) -> int:
        """Write what was collected and the record of the change; return its number."""
        self.flush()
        self.db.execute(
            "INSERT INTO changes VALUES (?, ?, ?, ?)",
            (self.number, self.next_owner, self.next_passage, new_token()),
        )
        return self.number

    def flush(self) -> None:
        """Write what was collected, so that it can be read."""
        db = self.db
        db.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._passages)
        db.executemany("INSERT INTO passage_vectors VALUES (?, ?, ?, ?, ?, ?)", self._vectors)
        db.executemany("INSERT INTO owner_tags VALUES (?, ?, ?)", self._tags)
        db.executemany("INSERT INTO file_stamps VALUES (?, ?, ?, ?, ?)", self._stamps)
        db.executemany("INSERT INTO deletions VALUES (?, ?)", [(self.number, number) for number in self._deleted])
        db.executemany(
            """
            INSERT INTO counts VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (namespace, kind) DO UPDATE
            SET owners = owners + excluded.owners, passages = passages + excluded.passages,
                text_bytes = text_bytes + excluded.text_bytes
            """,
            [(*key, t.owners, t.passages, t.text_bytes) for key, t in self._tallies.items()],
        )
        for collected in (self._passages, self._vectors, self._tags, self._stamps, self._deleted, self._tallies):
            collected.clear()

    def _find(self, owner: Owner) -> tuple[int | None, int | None]:
        by_id = self.db.execute(
            "SELECT number FROM owners WHERE namespace = ? AND kind = ? AND id = ? AND expired_at IS NULL",
            (self.space, owner.kind, pack_id(owner.id)),
        ).fetchone()
        by_path = (
            owner.path
            and self.db.execute(
                """
                SELECT number FROM owners
                WHERE namespace = ? AND kind = ? AND path = ? AND path != '' AND expired_at IS NULL
                """,
                (self.space, owner.kind, pack_text(owner.path)),
            ).fetchone()
        )
        return by_id[0] if by_id else None, by_path[0] if by_path else None

    def _clear(self, number: int) -> bool:
        """Delete what hangs on an owner, but not its own row; return whether this namespace has the owner."""
        row = self.db.execute(
            "SELECT kind, tags, expired_at, id FROM owners WHERE number = ? AND namespace = ?", (number, self.space)
        ).fetchone()
        if row is None:
            return False
        kind, tags, expired_at, id_ = row
        if expired_at is None:
            self._leave(number, kind)
        gone = self.db.execute("SELECT number FROM passages WHERE owner = ?", (number,)).fetchall()
        self.db.executemany("DELETE FROM next_vectors WHERE number = ?", gone)
        self.db.executemany("DELETE FROM passage_vectors WHERE number = ?", gone)
        self.db.executemany("DELETE FROM passages WHERE number = ?", gone)
        self.db.execute("DELETE FROM file_stamps WHERE owner = ?", (number,))
        self.db.executemany(
            "DELETE FROM owner_tags WHERE namespace = ? AND tag = ? AND owner = ?",
            [(self.space, pack_text(tag), number) for tag in set(unpack_texts(tags))],
        )
        if kind == "knowledge":
            self.db.execute("DELETE FROM knowledge_items WHERE owner = ?", (number,))
        if kind == "memory":
            for table in ("memory_bands", "memory_dates", "memories"):
                self.db.execute(f"DELETE FROM {table} WHERE owner = ?", (number,))  # noqa: S608 - names of ours
            self.db.execute(
                """
                UPDATE memories SET is_latest = 1
                WHERE owner = (SELECT max(owner) FROM memories WHERE namespace = ? AND id = ?)
                """,
                (self.space, id_),
            )
        return True

    def _leave(self, number: int, kind: str) -> None:
        """Take a live owner out of the counts, and its passages out of what the index follows."""
        tally = self._tallies[self.space, kind]
        tally.owners -= 1
        passages = self.db.execute(
            "SELECT number, length(CAST(text AS BLOB)) - (typeof(text) = 'blob') FROM passages WHERE owner = ?",
            (number,),
        ).fetchall()
        tally.passages -= len(passages)
        tally.text_bytes -= sum(length for _, length in passages)
        self._deleted += [passage for passage, _ in passages]

    def _update_owner(self, number: int, owner: Owner, at: float) -> None:
        self.db.execute(
            """
            UPDATE owners SET id = ?, type = ?, phase = ?, path = ?, root = ?, session = ?, position = ?, at = ?,
                              title = ?, tags = ?, "references" = ?, summary = ?, change = ?, created_at = ?
            WHERE number = ?
            """,
            (*pack_owner(owner), self.number, at, number),
        )

    def _fill(self, number: int, owner: Owner, passages: Sequence[NewPassage], *, is_past: bool) -> None:
        """Collect the rows that hang on an owner."""
        if not is_past:
            self._tallies[self.space, owner.kind].owners += 1
        self._tags += [(self.space, pack_text(tag), number) for tag in set(owner.tags)]
        if owner.stamp:
            self._stamps.append((number, *pack_stamp(owner.stamp)))
        for ordinal, passage in enumerate(passages):
            self._add_passage(number, ordinal, passage, is_past=is_past)
            if not is_past:
                self._tallies[self.space, owner.kind].passages += 1
                self._tallies[self.space, owner.kind].text_bytes += text_bytes(passage.chunk.text)
        self.mark()

    def _add_passage(self, owner: int, ordinal: int, passage: NewPassage, *, is_past: bool) -> None:
        chunk, number = passage.chunk, self.next_passage
        self.next_passage += 1
        self._passages.append(
            (
                number,
                self.space,
                owner,
                ordinal,
                pack_id(passage.id),
                chunk.start_line,
                chunk.end_line,
                pack_text(chunk.heading),
                pack_text(chunk.text),
            )
        )
        self._vectors.append((number, self.space, owner, passage.token_ids, passage.vector, int(is_past)))


def restamp(db: sqlite3.Connection, space: int, stamps: Sequence[tuple[str, str, FileStamp]]) -> None:
    """Set root and stamp of the artifacts with the given paths; paths that are not there are passed over."""
    for path, root, stamp in stamps:
        found = db.execute(
            """
            SELECT number FROM owners
            WHERE namespace = ? AND kind = 'artifact' AND path = ? AND path != '' AND expired_at IS NULL
            """,
            (space, pack_text(path)),
        ).fetchone()
        if found:
            db.execute("UPDATE owners SET root = ? WHERE number = ?", (pack_text(root), found[0]))
            db.execute("INSERT OR REPLACE INTO file_stamps VALUES (?, ?, ?, ?, ?)", (found[0], *pack_stamp(stamp)))


def numbers_json(numbers: Iterable[int]) -> str:
    """Return numbers as the JSON that `json_each` takes: one parameter, however many numbers, in the order of pages."""
    return json.dumps(sorted(map(int, numbers)))
