"""Memories inside one write transaction of the SQLite store: a `MemoryChange`. It knows tables, no connections."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from commonplace.store import memory_queries, queries
from commonplace.store.batches import (
    check_entry,
    check_memory,
    check_record,
    check_times,
    live_version_exists,
    not_latest,
    refuse_wide,
)
from commonplace.store.memory_contract import MirroredBlock, MirroredPage, Note
from commonplace.store.memory_rows import pack_record, unpack_link, unpack_memory
from commonplace.store.rows import pack_hash, pack_id, pack_text, unpack
from commonplace.store.sqlite_transaction import Transaction
from commonplace.store.sqlite_writing import Change, read_embedding
from commonplace.types import Chunk, Link, MemoryRecord, MemoryWrite, NewPassage, StoredMemory

if TYPE_CHECKING:
    from commonplace.store.graph_contract import GraphChange
    from commonplace.store.knowledge_contract import KnowledgeChange
    from commonplace.store.ledger_contract import LedgerChange

_SEARCHED = ("tier", "trust", "source")
"""What a filter of a search asks of a record."""


class SqliteMemoryChange:
    """Reads and writes the memories of one namespace inside a transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows
        self._begin = transaction.begin

    @property
    def graph(self) -> GraphChange:
        """The graph of the same namespace, in the same transaction."""
        from commonplace.store.sqlite_graph_change import SqliteGraphChange

        return SqliteGraphChange(self._transaction)

    @property
    def knowledge(self) -> KnowledgeChange:
        """The knowledge of the agents of the same namespace, in the same transaction."""
        from commonplace.store.sqlite_knowledge import SqliteKnowledgeChange

        return SqliteKnowledgeChange(self._transaction)

    @property
    def ledger(self) -> LedgerChange:
        """The ledger of the same namespace, in the same transaction."""
        from commonplace.store.sqlite_ledger import SqliteLedgerChange

        return SqliteLedgerChange(self._transaction)

    def find(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        row = self._rows(memory_queries.LATEST, id=pack_id(id_))
        return unpack_memory(row[0]) if row else None

    def alike(self, digest: str, bands: Sequence[int]) -> list[StoredMemory]:
        """Return the live memories with that digest or any of those bands, by number."""
        return [
            unpack_memory(row)
            for row in self._rows(memory_queries.ALIKE, digest=pack_text(digest), bands=json.dumps(list(bands)))
        ]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that start or end at one of these memories; sorted by source, target, type."""
        found = {
            unpack_link(row)
            for id_ in dict.fromkeys(ids)
            for row in self._rows(memory_queries.LINKS_OF, id=pack_id(id_))
        }
        return sorted(found, key=lambda link: (link.source, link.target, link.type))

    def add(self, write: MemoryWrite, *, created_at: float, expired_at: float | None = None) -> int:
        """Write a new version of a memory and return its number."""
        owner = write.owner
        if owner.session and not write.is_placed:
            write = replace(write, owner=replace(owner, position=self._next_position(owner.session)))
        check_memory(write, read_embedding(self._db), created_at, expired_at)
        if self._rows(queries.PLACE, kind="memory", id=pack_id(owner.id)):
            raise live_version_exists(owner.id)
        change = self._begin()
        self._db.execute(memory_queries.OUTDATE, (change.space, pack_id(owner.id)))
        number = change.add(write.owner, write.passages, created_at=created_at, expired_at=expired_at)
        insert_version(change, number, write, is_latest=True, is_live=expired_at is None)
        self._mark(owner.id)
        return number

    def revise(self, number: int, record: MemoryRecord, *, is_shown: bool = True) -> None:
        """Set the record of a version; its text, tags and passages stay as they are."""
        old = self._version(number)
        if old is not None:
            check_record(old.owner.id, record)
            self._db.execute(memory_queries.REVISE, (*pack_record(record), number))
            if any(getattr(old.record, name) != getattr(record, name) for name in _SEARCHED):
                self._begin().mark()
            if is_shown:
                self._mark(old.owner.id)

    def expire(self, number: int, record: MemoryRecord, at: float) -> None:
        """Make a live version past from `at` on, with this record."""
        old = self._version(number)
        if old is not None:
            check_times(f"memory {old.owner.id!r}", at)
            check_record(old.owner.id, record)
            if old.expired_at is None:
                self._begin().expire(number, at)
                self._db.execute("DELETE FROM memory_bands WHERE owner = ?", (number,))
                self.revise(number, record)

    def revive(self, number: int, record: MemoryRecord, *, bands: Sequence[int] = ()) -> int:
        """Make the latest version of a memory, which is past, live again, and return its new number."""
        old = self._version(number)
        latest = None if old is None else self.find(old.owner.id)
        if old is None or latest is None or latest.number != old.number:
            raise not_latest(number)
        check_record(old.owner.id, record)
        if old.expired_at is None:
            self.revise(number, record)
            return number
        refuse_wide(f"memory {old.owner.id!r}", *bands)
        if self._rows(queries.PLACE, kind="memory", id=pack_id(old.owner.id)):
            raise live_version_exists(old.owner.id)
        write = replace(read_version(self._db, old), record=record, bands=tuple(bands))
        change = self._begin()
        change.remove(number)
        self._db.execute(memory_queries.OUTDATE, (change.space, pack_id(old.owner.id)))
        revived = change.add(write.owner, write.passages, created_at=old.created_at)
        insert_version(change, revived, write, is_latest=True, is_live=True)
        self._mark(old.owner.id)
        return revived

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with all that hangs on them; return how many versions went."""
        gone = 0
        for id_ in dict.fromkeys(ids):
            key = pack_id(id_)
            for row in self._rows(memory_queries.VERSIONS, id=key):
                gone += self._begin().remove(row[0])
            self._delete("DELETE FROM links WHERE namespace = ? AND (source = ? OR target = ?)", key, key)
            self.drop_block(id_)
            self.settle_due([id_])
        return gone

    def link(self, link: Link) -> None:
        """Write a link in the place of the one with the same ends and type."""
        check_entry(link)
        self._db.execute(
            "INSERT OR REPLACE INTO links VALUES (?, ?, ?, ?, ?, ?)",
            (
                self._begin().space,
                pack_id(link.source),
                pack_id(link.target),
                pack_text(link.type),
                link.strength,
                link.created_at,
            ),
        )
        self._mark_known(link.source)

    def unlink(self, source: str, target: str, type_: str | None = None) -> int:
        """Delete the links from one memory to another, of one type or of all, and return how many there were."""
        ends = (pack_id(source), pack_id(target))
        if type_ is None:
            gone = self._delete("DELETE FROM links WHERE namespace = ? AND source = ? AND target = ?", *ends)
        else:
            one = "DELETE FROM links WHERE namespace = ? AND source = ? AND target = ? AND type = ?"
            gone = self._delete(one, *ends, pack_text(type_))
        if gone:
            self._mark_known(source)
        return gone

    def set_block(self, block: MirroredBlock) -> None:
        """Record what both sides agree on for one memory."""
        row = (self._begin().space, pack_id(block.id), pack_text(block.page), pack_hash(block.digest))
        self._db.execute("INSERT OR REPLACE INTO mirror_blocks VALUES (?, ?, ?, ?)", row)

    def drop_block(self, id_: str) -> None:
        """Forget that a memory has a block."""
        self._delete("DELETE FROM mirror_blocks WHERE namespace = ? AND id = ?", pack_id(id_))

    def set_page(self, page: MirroredPage) -> None:
        """Record the state of a page."""
        check_entry(page)
        row = (self._begin().space, pack_text(page.page), page.size, page.mtime_ns, pack_hash(page.sha256))
        self._db.execute("INSERT OR REPLACE INTO mirror_pages VALUES (?, ?, ?, ?, ?)", row)

    def drop_page(self, page: str) -> None:
        """Forget a page."""
        self._delete("DELETE FROM mirror_pages WHERE namespace = ? AND page = ?", pack_text(page))

    def settle_due(self, ids: Sequence[str]) -> None:
        """Say that the Markdown of these memories is as it should be."""
        for id_ in ids:
            self._delete("DELETE FROM mirror_due WHERE namespace = ? AND id = ?", pack_id(id_))

    def put_note(self, note: Note) -> None:
        """Write a note in the place of the one with the same kind and id."""
        check_entry(note)
        row = (self._begin().space, pack_text(note.kind), pack_text(note.id), note.at, pack_text(note.body))
        self._db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?)", row)

    def drop_note(self, kind: str, id_: str) -> None:
        """Delete a note."""
        self._delete("DELETE FROM notes WHERE namespace = ? AND kind = ? AND id = ?", pack_text(kind), pack_text(id_))

    @property
    def _db(self) -> sqlite3.Connection:
        return self._transaction.db

    def _version(self, number: int) -> StoredMemory | None:
        found = self._rows(memory_queries.OF_NUMBERS, numbers=json.dumps([int(number)]))
        return unpack_memory(found[0]) if found else None

    def _delete(self, sql: str, *values: str | bytes) -> int:
        change = self._transaction.known()
        return self._db.execute(sql, (change.space, *values)).rowcount if change else 0

    def _mark(self, id_: str) -> None:
        self._db.execute("INSERT OR IGNORE INTO mirror_due VALUES (?, ?)", (self._begin().space, pack_id(id_)))

    def _mark_known(self, id_: str) -> None:
        if self.find(id_) is not None:
            self._mark(id_)

    def _next_position(self, session: str) -> int:
        ((position,),) = self._rows(queries.LAST_POSITION, session=pack_id(session))
        return 0 if position is None else int(position) + 1


def insert_version(change: Change, number: int, write: MemoryWrite, *, is_latest: bool, is_live: bool) -> None:
    """Write what a version of a memory has besides its owner and passages."""
    db, space = change.db, change.space
    values = (pack_id(write.owner.id), int(is_latest), pack_text(write.digest), *pack_record(write.record))
    db.execute(memory_queries.ADD, (number, space, *values))
    if is_live:
        bands = [(space, band, number) for band in set(write.bands)]
        db.executemany("INSERT INTO memory_bands VALUES (?, ?, ?)", bands)
    dates = [(space, number, since, until) for since, until in set(write.dates)]
    db.executemany("INSERT INTO memory_dates VALUES (?, ?, ?, ?)", dates)


def read_version(db: sqlite3.Connection, stored: StoredMemory) -> MemoryWrite:
    """Return what a version of a memory was written from, but for its bands, which a past one has not kept."""
    found = db.execute(memory_queries.WRITTEN, (stored.number,)).fetchall()
    passages = tuple(
        NewPassage(unpack(id_), Chunk(unpack(text), start, end, unpack(heading)), token_ids, vector)
        for id_, text, start, end, heading, token_ids, vector in found
    )
    dates = db.execute("SELECT since, until FROM memory_dates WHERE owner = ?", (stored.number,)).fetchall()
    ((digest,),) = db.execute("SELECT digest FROM memories WHERE owner = ?", (stored.number,)).fetchall()
    return MemoryWrite(stored.owner, passages, stored.record, unpack(digest), (), tuple(dates), is_placed=True)
