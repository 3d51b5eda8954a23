"""One change to the memories of the in-memory store. It works on a copy and knows no lock, no rule about memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.store.batches import (
    check_entry,
    check_memory,
    check_record,
    check_times,
    live_version_exists,
    not_latest,
    refuse_wide,
)
from commonplace.store.graph_contract import GraphChange
from commonplace.store.knowledge_contract import KnowledgeChange
from commonplace.store.ledger_contract import LedgerChange
from commonplace.store.memory_contract import MirroredBlock, MirroredPage, Note
from commonplace.store.reference_graph_change import ReferenceGraphChange
from commonplace.store.reference_knowledge import ReferenceKnowledgeChange
from commonplace.store.reference_ledger import ReferenceLedgerChange
from commonplace.store.reference_state import Change, Row, Space
from commonplace.store.reference_transaction import ReferenceTransaction
from commonplace.types import Link, MemoryRecord, MemoryWrite, StoredMemory


class ReferenceMemoryChange:
    """A `MemoryChange` on the copy of a namespace."""

    def __init__(self, transaction: ReferenceTransaction) -> None:
        self._transaction = transaction

    @property
    def graph(self) -> GraphChange:
        """The graph of the same namespace, in the same transaction."""
        return ReferenceGraphChange(self._transaction)

    @property
    def knowledge(self) -> KnowledgeChange:
        """The knowledge of the agents of the same namespace, in the same transaction."""
        return ReferenceKnowledgeChange(self._transaction)

    @property
    def ledger(self) -> LedgerChange:
        """The ledger of the same namespace, in the same transaction."""
        return ReferenceLedgerChange(self._transaction)

    def find(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        return self._space.latest(id_)

    def alike(self, digest: str, bands: Sequence[int]) -> list[StoredMemory]:
        """Return the live memories with that digest or any of those bands, by number."""
        space = self._space
        numbers = {
            number
            for number, row in space.live()
            if row.memory and ((digest and row.memory.digest == digest) or not set(bands).isdisjoint(row.memory.bands))
        }
        return [stored for stored in space.memories() if stored.number in numbers]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that start or end at one of these memories; sorted by source, target, type."""
        return [link for ends, link in sorted(self._space.links.items()) if not set(ids).isdisjoint(ends[:2])]

    def add(self, write: MemoryWrite, *, created_at: float, expired_at: float | None = None) -> int:
        """Write a new version of a memory and return its number."""
        space, owner = self._space, write.owner
        if owner.session and not write.is_placed:
            write = replace(write, owner=replace(owner, position=space.last_position(owner.session) + 1))
        check_memory(write, self._transaction.embedding, created_at, expired_at)
        if ("memory", owner.id) in space.by_id:
            raise live_version_exists(owner.id)
        change = self._change
        row = Row(write.owner, change.number, change.next_passage, write.passages, created_at, expired_at, write)
        self._mark(owner.id, is_counted=True)
        return change.add(row)

    def revise(self, number: int, record: MemoryRecord, *, is_shown: bool = True) -> None:
        """Set the record of a version; its text, tags and passages stay as they are."""
        row = self._space.rows.get(number)
        if row is None or row.memory is None:
            return
        check_record(row.owner.id, record)
        old, memory = row.memory.record, replace(row.memory, record=record)
        self._space.rows[number] = replace(row, memory=memory)
        is_counted = (old.tier, old.trust, old.source) != (record.tier, record.trust, record.source)
        self._mark(row.owner.id, is_counted=is_counted, is_due=is_shown)

    def expire(self, number: int, record: MemoryRecord, at: float) -> None:
        """Make a live version past from `at` on, with this record; nothing happens to one that is past already."""
        row = self._space.rows.get(number)
        if row is None or row.memory is None:
            return
        check_times(f"memory {row.owner.id!r}", at)
        check_record(row.owner.id, record)
        if self._change.expire(number, at):
            self.revise(number, record)
            self._mark(row.owner.id, is_counted=True)

    def revive(self, number: int, record: MemoryRecord, *, bands: Sequence[int] = ()) -> int:
        """Make the latest version of a memory, which is past, live again, and return its new number."""
        space = self._space
        row = space.rows.get(number)
        latest = None if row is None else space.latest(row.owner.id)
        if row is None or row.memory is None or latest is None or latest.number != number:
            raise not_latest(number)
        check_record(row.owner.id, record)
        if row.expired_at is None:
            self.revise(number, record)
            return number
        refuse_wide(f"memory {row.owner.id!r}", *bands)
        if ("memory", row.owner.id) in space.by_id:
            raise live_version_exists(row.owner.id)
        change = self._change
        change.remove(number)
        memory = replace(row.memory, record=record, bands=tuple(bands))
        self._mark(row.owner.id, is_counted=True)
        first = change.next_passage
        return change.add(replace(row, change=change.number, first_passage=first, expired_at=None, memory=memory))

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with all that hangs on them; return how many versions went."""
        space = self._space
        numbers = [stored.number for id_ in set(ids) for stored in space.versions(id_)]
        for number in numbers:
            self._change.remove(number)
        self._transaction.is_counted |= bool(numbers)
        self._transaction.is_written |= bool(numbers)
        self._drop(space.links, *[ends for ends in space.links if not set(ids).isdisjoint(ends[:2])])
        self._drop(space.blocks, *ids)
        self.settle_due(ids)
        return len(numbers)

    def link(self, link: Link) -> None:
        """Write a link in the place of the one with the same ends and type."""
        check_entry(link)
        self._set(self._space.links, (link.source, link.target, link.type), link)
        self._mark_known(link.source)

    def unlink(self, source: str, target: str, type_: str | None = None) -> int:
        """Delete the links from one memory to another, of one type or of all, and return how many there were."""
        links = self._space.links
        gone = self._drop(links, *[ends for ends in links if ends[:2] == (source, target) and type_ in (None, ends[2])])
        if gone:
            self._mark_known(source)
        return gone

    def set_block(self, block: MirroredBlock) -> None:
        """Record what both sides agree on for one memory."""
        self._set(self._space.blocks, block.id, block)

    def drop_block(self, id_: str) -> None:
        """Forget that a memory has a block."""
        self._drop(self._space.blocks, id_)

    def set_page(self, page: MirroredPage) -> None:
        """Record the state of a page."""
        check_entry(page)
        self._set(self._space.pages, page.page, page)

    def drop_page(self, page: str) -> None:
        """Forget a page."""
        self._drop(self._space.pages, page)

    def settle_due(self, ids: Sequence[str]) -> None:
        """Say that the Markdown of these memories is as it should be."""
        self._transaction.is_written |= not self._space.due.isdisjoint(ids)
        self._space.due.difference_update(ids)

    def put_note(self, note: Note) -> None:
        """Write a note in the place of the one with the same kind and id."""
        check_entry(note)
        self._set(self._space.notes, (note.kind, note.id), note)

    def drop_note(self, kind: str, id_: str) -> None:
        """Delete a note."""
        self._drop(self._space.notes, (kind, id_))

    @property
    def _space(self) -> Space:
        return self._change.space

    @property
    def _change(self) -> Change:
        return self._transaction.change

    def _set(self, entries: dict[Any, Any], key: object, value: object) -> None:
        entries[key] = value
        self._transaction.is_written = True

    def _drop(self, entries: dict[Any, Any], *keys: object) -> int:
        gone = [entries.pop(key) for key in keys if key in entries]
        self._transaction.is_written |= bool(gone)
        return len(gone)

    def _mark(self, id_: str, *, is_counted: bool, is_due: bool = True) -> None:
        """Note that a memory is written, and make its Markdown due."""
        if is_due:
            self._space.due.add(id_)
        self._transaction.is_written = True
        self._transaction.is_counted |= is_counted

    def _mark_known(self, id_: str) -> None:
        if self.find(id_) is not None:
            self._mark(id_, is_counted=False)
