"""The part of the in-memory store that holds memories. It knows dictionaries and a lock, no rule about memories."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from commonplace.errors import StoreError
from commonplace.store import memory_contract
from commonplace.store.batches import change_is_under_way, refuse_other_maker, snapshot_is_written
from commonplace.store.graph_contract import GraphReading, texts_of
from commonplace.store.knowledge_contract import KnowledgeReading
from commonplace.store.ledger_contract import LedgerReading
from commonplace.store.memory_contract import MirroredBlock, MirroredPage, Note
from commonplace.store.reference_filtering import earlier_versions
from commonplace.store.reference_graph import GraphState, ReferenceGraph
from commonplace.store.reference_knowledge import ReferenceKnowledge
from commonplace.store.reference_ledger import Opened, ReferenceLedger
from commonplace.store.reference_memory_change import ReferenceMemoryChange
from commonplace.store.reference_reembedding import ReferenceReembedding
from commonplace.store.reference_state import Space, State
from commonplace.store.reference_transaction import ReferenceTransaction
from commonplace.types import GRAPH_KINDS, Embedding, Link, Selection, StoredMemory, TokenEntry


class ReferenceMemories(ReferenceReembedding):
    """Memories in dictionaries under one lock."""

    def __init__(self, id_: str) -> None:
        self._id = id_
        self._lock = threading.RLock()
        self._is_closed = False
        self._snapshots = 0
        self._is_changing = False
        self._state = State()

    @contextmanager
    def change_memories(
        self, namespace: str, *, made_by: Embedding | None = None
    ) -> Iterator[memory_contract.MemoryChange]:
        """Begin a write transaction over the memories of a namespace: on a copy, that takes its place at the end."""
        with self._writing():
            refuse_other_maker(self._state.embedding, made_by)
            transaction = ReferenceTransaction(self._state, namespace)
            self._is_changing = True
            try:
                yield ReferenceMemoryChange(transaction)
            finally:
                self._is_changing = False
                transaction.is_over = True
            transaction.finish()

    def memory(self, namespace: str, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        with self._open():
            return self._state.space(namespace).latest(id_)

    def memories(self, namespace: str, selection: Selection) -> list[StoredMemory]:
        """Return the latest versions that a selection chooses, in its order."""
        chosen = sorted(self._selected(namespace, selection), key=lambda stored: stored.owner.id)
        if selection.order == "newest":
            chosen.sort(key=_time, reverse=True)
        end = None if selection.limit is None else selection.offset + selection.limit
        return chosen[selection.offset : end]

    def count_memories(self, namespace: str, selection: Selection) -> int:
        """Return how many a selection chooses, its limit and offset left out of account."""
        return len(self._selected(namespace, selection))

    def versions(self, namespace: str, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        with self._open():
            return self._state.space(namespace).versions(id_)

    def memory_digests(self, namespace: str) -> list[tuple[int, str, str]]:
        """Return (number, id, digest) of the latest versions, by number."""
        with self._open():
            rows = self._state.space(namespace).rows
            found = [
                (number, row.owner.id, row.memory.digest) for number, row in rows.items() if row.memory is not None
            ]
        return sorted({each[1]: each for each in sorted(found)}.values())

    def memory_records(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the versions with these numbers, live or past; others, and owners that are no memory, are absent."""
        wanted = set(map(int, owner_numbers))
        with self._open():
            return {
                stored.number: stored for stored in self._state.space(namespace).memories() if stored.number in wanted
            }

    def links(self, namespace: str, ids: Sequence[str] | None = None) -> list[Link]:
        """Return the links that start or end at one of these memories, or all; sorted by source, target, type."""
        with self._open():
            links = sorted(self._state.space(namespace).links.items())
        return [link for (source, target, _), link in links if ids is None or not {source, target}.isdisjoint(ids)]

    def dated(
        self, namespace: str, since: float, until: float, *, as_of: float | None = None
    ) -> list[tuple[int, float, float]]:
        """Return (owner number, since, until) of the dates in live memories that overlap an interval, sorted."""
        found: set[tuple[int, float, float]] = set()
        with self._open():
            for number, row in self._state.space(namespace).rows.items():
                if row.owner.kind == "memory" and row.counts(as_of):
                    dates = row.memory.dates if row.memory is not None else ()
                    found |= {(number, *date) for date in dates if date[0] < until and date[1] > since}
                    if row.owner.at is not None and since <= row.owner.at < until:
                        found.add((number, row.owner.at, row.owner.at))
        return sorted(found)

    def past(self, namespace: str, as_of: float | None, valid_at: float | None = None) -> list[TokenEntry]:
        """Return the passages of past versions that were live, or true in the world, at a time, by number."""
        with self._open():
            space = self._state.space(namespace)
            owners = {number for number, row in space.rows.items() if as_of is not None and row.was_live(as_of)}
            if valid_at is not None:
                owners |= earlier_versions(space, as_of, valid_at)
            return space.token_entries(sorted(number for owner in owners for number in space.rows[owner].numbers))

    def due(self, namespace: str) -> list[str]:
        """Return the ids of the memories whose Markdown is due, sorted."""
        with self._open():
            return sorted(self._state.space(namespace).due)

    def blocks(self, namespace: str, ids: Sequence[str] | None = None) -> list[MirroredBlock]:
        """Return what is known of the blocks of these memories in Markdown, or of all, by id."""
        with self._open():
            blocks = self._state.space(namespace).blocks
            return [block for id_, block in sorted(blocks.items()) if ids is None or id_ in ids]

    def pages(self, namespace: str) -> list[MirroredPage]:
        """Return what is known of pages, by name."""
        with self._open():
            return [page for _, page in sorted(self._state.space(namespace).pages.items())]

    def notes(self, namespace: str | None, kind: str) -> list[Note]:
        """Return the notes of one kind, of one namespace or of all, by time, ties by id, then by body."""
        with self._open():
            spaces = self._state.spaces.values() if namespace is None else [self._state.space(namespace)]
            notes = [note for space in spaces for note in space.notes.values() if note.kind == kind]
        return sorted(notes, key=lambda note: (note.at, note.id, note.body))

    def erase_namespace(self, namespace: str) -> int:
        """Delete everything that a namespace holds, and its name, as one change; return how many owners went."""
        with self._writing():
            space = self._state.spaces.pop(namespace, None)
            if space is None:
                return 0
            change = self._state.begin(space)
            gone = [change.remove(number) for number in list(space.rows)]
            for kind in GRAPH_KINDS:
                change.space = self._state.spaces.pop(texts_of(namespace, kind), Space())
                for number in list(change.space.rows):
                    change.remove(number)
            self._state.record(change)
            return len(gone)

    def graph(self, namespace: str) -> GraphReading:
        """Return the graph of a namespace; one that is not there is empty."""

        @contextmanager
        def opened() -> Iterator[GraphState]:
            with self._open():
                yield self._state.space(namespace).graph

        return ReferenceGraph(opened)

    def knowledge(self, namespace: str) -> KnowledgeReading:
        """Return the knowledge of the agents of a namespace; of one that is not there nothing."""

        @contextmanager
        def opened() -> Iterator[Space]:
            with self._open():
                yield self._state.space(namespace)

        return ReferenceKnowledge(opened)

    def ledger(self, namespace: str) -> LedgerReading:
        """Return the ledger of a namespace; of one that is not there an empty one."""

        @contextmanager
        def opened() -> Iterator[Opened]:
            with self._open():
                yield self._state.space(namespace).ledger, self._state.operations

        return ReferenceLedger(opened)

    def compact(self, *, thorough: bool = False) -> bool:  # noqa: ARG002 - there is no file to rewrite
        """Return True: what is deleted from a dictionary is in no file."""
        with self._writing():
            return True

    def files(self) -> list[str]:
        """Return nothing: the data stand in no file."""
        with self._open():
            return []

    def _selected(self, namespace: str, wanted: Selection) -> list[StoredMemory]:
        with self._open():
            latest = {stored.owner.id: stored for stored in self._state.space(namespace).memories()}
        return [stored for stored in latest.values() if _is_selected(stored, wanted)]

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise StoreError(f"the store {self._id} in memory is closed", remedy="make a new one")
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._open():
            if self._snapshots:
                raise snapshot_is_written()
            if self._is_changing:
                raise change_is_under_way()
            yield


def _time(stored: StoredMemory) -> float:
    return stored.record.born_at if stored.owner.at is None else stored.owner.at


def _is_selected(stored: StoredMemory, wanted: Selection) -> bool:
    owner, record, time = stored.owner, stored.record, _time(stored)
    alternatives = (
        (wanted.ids, owner.id),
        (wanted.tiers, record.tier),
        (wanted.statuses, record.status),
        (wanted.sources, record.source),
        (wanted.sessions, owner.session),
        (wanted.categories, record.category),
    )
    return (
        all(not values or value in values for values, value in alternatives)
        and (not wanted.tags or not set(owner.tags).isdisjoint(wanted.tags))
        and (wanted.since is None or time >= wanted.since)
        and (wanted.until is None or time < wanted.until)
    )
