"""What every store promises about memories: versions through time, links, dates, and what Markdown lacks of them.

A memory is an owner of the kind "memory" with a `MemoryRecord`. Each of its versions is an owner row of its own, with
its own number and passages. The current version alone is live: in every list of owners, in counts, and in what the
index follows. A version that was replaced or archived is past: it stays readable by number, by `versions` and by
`past`, until it is erased. No rule about memories lives in a store: what is a duplicate, what fades, what rises a tier
is decided by whoever holds the `MemoryChange`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from commonplace.types import Embedding, Link, MemoryRecord, MemoryWrite, Selection, StoredMemory, TokenEntry

if TYPE_CHECKING:
    from commonplace.store.graph_contract import GraphChange, GraphReading
    from commonplace.store.knowledge_contract import KnowledgeChange, KnowledgeReading
    from commonplace.store.ledger_contract import LedgerChange, LedgerReading


@dataclass(frozen=True, slots=True)
class MirroredPage:
    """A Markdown page as it was when it was last written or read: unchanged while size and time are."""

    page: str
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class MirroredBlock:
    """The block of one memory in Markdown: the page it stands on and the digest of what both sides last agreed on."""

    id: str
    page: str
    digest: str


@dataclass(frozen=True, slots=True)
class Note:
    """A small record that the store keeps about itself: a receipt, a backup that was made.

    Attributes:
        body: a JSON object as text.
    """

    kind: str
    id: str
    at: float
    body: str


class MemoryChange(Protocol):
    """Memories of one namespace inside one write transaction; it reads its own writes.

    It is committed as one change when its block ends and rolled back when that raises; nothing that is read in it can
    be changed by others meanwhile. Whatever adds, replaces, revises or expires a memory makes its Markdown due; a link
    does so for the memory where it starts, when it comes and when it goes. Numbers that are no version here are passed
    over. What cannot be written is refused before anything of it is, and the change may go on without it.

    Raises:
        StoreError: it is used after its block has ended.
        UsageError: a number does not fit a store (a time that is not a number, an integer beyond 64 bits), or an owner
            is of another kind or of a file.
    """

    @property
    def graph(self) -> GraphChange:
        """The graph of the same namespace, in the same transaction."""
        ...

    @property
    def knowledge(self) -> KnowledgeChange:
        """The knowledge of the agents of the same namespace, in the same transaction."""
        ...

    @property
    def ledger(self) -> LedgerChange:
        """The ledger of the same namespace, in the same transaction."""
        ...

    def find(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        ...

    def alike(self, digest: str, bands: Sequence[int]) -> list[StoredMemory]:
        """Return the live memories with that digest or any of those bands, by number."""
        ...

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that start or end at one of these memories; sorted by source, target, type."""
        ...

    def add(self, write: MemoryWrite, *, created_at: float, expired_at: float | None = None) -> int:
        """Write a new version of a memory and return its number; what was the latest version before is that no longer.

        With `expired_at` the version is past from the start. An older version that is still live must have been expired
        before: the live version is always the latest.

        Raises:
            StoreError: a live version of that id exists, or a vector is not of the store's embedder.
        """
        ...

    def revise(self, number: int, record: MemoryRecord, *, is_shown: bool = True) -> None:
        """Set the record of a version; its text, tags and passages stay as they are.

        Args:
            is_shown: False where its Markdown is as it was, and not due.
        """
        ...

    def expire(self, number: int, record: MemoryRecord, at: float) -> None:
        """Make a live version past from `at` on, with this record; nothing happens to one that is past already."""
        ...

    def revive(self, number: int, record: MemoryRecord, *, bands: Sequence[int] = ()) -> int:
        """Make the latest version of a memory live again, as if it had never been past, with this record.

        Its time of creation, words, tags, passages and dates stay; it and its passages get new numbers, since the index
        has let go of the old ones. Return the new number, or the same where the version is live.

        Args:
            bands: those of its text, which a past version has not kept.

        Raises:
            StoreError: it is not the latest version of a memory here, or an owner without a record has its id.
        """
        ...

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories with every version, passage, link, date and Markdown mark; return how many versions went.

        Links and marks go also where nothing but them has that id.
        """
        ...

    def link(self, link: Link) -> None:
        """Write a link in the place of the one with the same ends and type."""
        ...

    def unlink(self, source: str, target: str, type_: str | None = None) -> int:
        """Delete the links from one memory to another, of one type or of all, and return how many there were."""
        ...

    def set_block(self, block: MirroredBlock) -> None:
        """Record what both sides agree on for one memory."""
        ...

    def drop_block(self, id_: str) -> None:
        """Forget that a memory has a block."""
        ...

    def set_page(self, page: MirroredPage) -> None:
        """Record the state of a page."""
        ...

    def drop_page(self, page: str) -> None:
        """Forget a page."""
        ...

    def settle_due(self, ids: Sequence[str]) -> None:
        """Say that the Markdown of these memories is as it should be."""
        ...

    def put_note(self, note: Note) -> None:
        """Write a note in the place of the one with the same kind and id."""
        ...

    def drop_note(self, kind: str, id_: str) -> None:
        """Delete a note."""
        ...


class MemoryStore(Protocol):
    """The part of a store that holds memories."""

    def change_memories(
        self, namespace: str, *, made_by: Embedding | None = None
    ) -> AbstractContextManager[MemoryChange]:
        """Begin a write transaction over the memories of a namespace, which is created where something is written.

        It takes a change number only where versions came or went, or where a record's tier, trust or source changed:
        where a search might answer otherwise. Reads of the store itself do not see it before it is committed.

        Args:
            made_by: the embedder of the vectors that will be written, where any will.

        Raises:
            EmbedderMismatchError: the store's vectors are another's, as the block begins.
            StoreError: this thread writes to the store in another way inside the block.
        """
        ...

    def memory(self, namespace: str, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        ...

    def memories(self, namespace: str, selection: Selection) -> list[StoredMemory]:
        """Return the latest versions that a selection chooses, in its order."""
        ...

    def count_memories(self, namespace: str, selection: Selection) -> int:
        """Return how many a selection chooses, its limit and offset left out of account."""
        ...

    def versions(self, namespace: str, id_: str) -> list[StoredMemory]:
        """Return every version of a memory, oldest first."""
        ...

    def memory_digests(self, namespace: str) -> list[tuple[int, str, str]]:
        """Return (number, id, digest) of the latest versions, by number; the digest is what they were written with."""
        ...

    def memory_records(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, StoredMemory]:
        """Return the versions with these numbers, live or past; others, and owners that are no memory, are absent."""
        ...

    def links(self, namespace: str, ids: Sequence[str] | None = None) -> list[Link]:
        """Return the links that start or end at one of these memories, or all; sorted by source, target, type."""
        ...

    def dated(
        self, namespace: str, since: float, until: float, *, as_of: float | None = None
    ) -> list[tuple[int, float, float]]:
        """Return (owner number, since, until) of the dates in live memories that overlap an interval, sorted.

        Each `at` of an owner of the kind memory counts as the interval from it to it, which overlaps where
        since <= at < until.

        Args:
            as_of: take the versions that were live at this time instead.
        """
        ...

    def past(self, namespace: str, as_of: float | None, valid_at: float | None = None) -> list[TokenEntry]:
        """Return the passages of past versions live at a time, by number: created_at <= as_of < expired_at.

        Args:
            as_of: None is now, when no past version is live.
            valid_at: add those of the versions before these that a filter with this `valid_at` finds in their place.
        """
        ...

    def due(self, namespace: str) -> list[str]:
        """Return the ids of the memories whose Markdown is due, sorted."""
        ...

    def blocks(self, namespace: str, ids: Sequence[str] | None = None) -> list[MirroredBlock]:
        """Return what is known of the blocks of these memories in Markdown, or of all, by id."""
        ...

    def pages(self, namespace: str) -> list[MirroredPage]:
        """Return what is known of pages, by name."""
        ...

    def notes(self, namespace: str | None, kind: str) -> list[Note]:
        """Return the notes of one kind, of one namespace or of all, by time, ties by id, then by body."""
        ...

    def graph(self, namespace: str) -> GraphReading:
        """Return the graph of a namespace; one that is not there is empty."""
        ...

    def knowledge(self, namespace: str) -> KnowledgeReading:
        """Return the knowledge of the agents of a namespace; of one that is not there nothing."""
        ...

    def ledger(self, namespace: str) -> LedgerReading:
        """Return the ledger of a namespace; of one that is not there an empty one."""
        ...

    def erase_namespace(self, namespace: str) -> int:
        """Delete everything that a namespace holds, its graph too, and its name; return how many owners went.

        It is one change. Past versions count, the texts of the graph do not. A namespace that is not there takes no
        change number.
        """
        ...

    def compact(self, *, thorough: bool = False) -> bool:
        """Let nothing that was deleted be left in the store's files; return whether that is so now.

        False means that another process still reads the state before: try again when it has gone on.

        Args:
            thorough: rewrite the whole file, where overwriting on deletion is not enough.
        """
        ...

    def files(self) -> list[str]:
        """Return the absolute paths of the files that the store's data stand in; none for one in memory."""
        ...
