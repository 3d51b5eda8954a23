"""The store contract: owners, passages, embeddings and memories by namespace, along one change sequence.

Vectors and token ids are bytes to a store. Driver errors are raised as `StoreError` or a subclass. Every method may be
called from several threads at once.

A passage without a vector is found by its words until it gets one. When the embedder changes, new vectors are written
beside the old ones, which answer until all are replaced at once; a change survives the process that began it.

A memory is an owner of the kind "memory" with a `MemoryRecord`. Each version is an owner row of its own, with its own
number and passages. Only the current version is live: listed among owners, counted, and followed by the index. A
replaced or archived version is past: readable by number, by `versions` and by `past`, until it is erased.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from commonplace.types import (
    Embedding,
    FileStamp,
    Filter,
    IndexEntry,
    Kind,
    Link,
    MemoryRecord,
    MemoryWrite,
    Owner,
    OwnerWrite,
    Passage,
    Selection,
    StoredMemory,
    TokenEntry,
)

if TYPE_CHECKING:
    from commonplace.store.graph_contract import (
        GraphChange,
        GraphReading,
        KnowledgeChange,
        KnowledgeReading,
        LedgerChange,
        LedgerReading,
    )
    from commonplace.store.schema import Table


@dataclass(frozen=True, slots=True)
class Reembedding:
    """A change of embedder under way: `done` of `total` passages, past versions included, have their new vector."""

    embedding: Embedding
    done: int
    total: int


class ReembeddingStore(Protocol):
    """The part of a store that takes vectors later, and changes its embedder."""

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        ...

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        ...

    def fill_vectors(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> int:
        """Give passages without a vector theirs, by passage number, as one change, and return its number.

        All passages of live owners get new numbers, so that whatever follows the sequence sees them. Passages that
        are gone or have a vector are passed over; where all are, the current number is returned.

        Raises:
            EmbedderMismatchError: the store's vectors are another's.
            StoreError: a vector has another length.
        """
        ...

    def reembedding(self) -> Reembedding | None:
        """Return the change of embedder under way, None where there is none."""
        ...

    def begin_reembedding(self, embedding: Embedding) -> None:
        """Begin to change the embedder, or go on with that; what was made for another one is dropped.

        One process at a time does so: whoever calls sees to that.

        Raises:
            StoreError: the store's vectors are of that embedder.
        """
        ...

    def drop_reembedding(self) -> None:
        """Give up the change of embedder under way, if there is one, with all that was made for it."""
        ...

    def unembedded(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no new vector yet, by number ascending.

        Each has its old vector. Without a change of embedder under way there are none.
        """
        ...

    def put_reembedded(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep new vectors, by passage number; passages that are gone are passed over. It takes no change number.

        Raises:
            StoreError: another change of embedder is under way, or none, or a vector has another length.
        """
        ...

    def finish_reembedding(self, embedding: Embedding) -> bool:
        """Let all new vectors count in the place of the old ones and stamp the store, as one change.

        It writes a few rows, however many passages there are: nobody who writes waits for it. What is to be done
        besides is for `settle_reembedding`.

        Returns:
            False, and nothing is changed, where a passage has no new vector yet.

        Raises:
            StoreError: another change of embedder is under way, or none.
        """
        ...

    def settle_reembedding(self, limit: int) -> bool:
        """Put some of what a finished change left to be done where it belongs, in one short transaction.

        New vectors go to where the old ones are, at most `limit` of them; so many recipes of files and records of
        knowledge that name the old embedder's stamp name the new one's, each. Nothing that is read changes by it, and
        it takes no change number. The next change of embedder does it first, where nobody did.

        Returns:
            False where nothing is left.
        """
        ...


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

    def table_rows(self, table: Table, **among: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table in this namespace whose columns have one of the given values."""
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

    def table_rows(
        self, table: Table, namespace: str | None = None, **among: Sequence[Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, of one namespace or of all, whose columns have one of the given values."""
        ...

    def hanging_rows(self, table: Table, numbers: Sequence[int]) -> Iterator[tuple[Table, dict[str, Any]]]:
        """Yield the rows with these numbers, and all that hangs on them through a number, each with its table."""
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


class Store(MemoryStore, ReembeddingStore, Protocol):
    """One durable collection of namespaces.

    Writes are transactions: all or nothing, durable when the call returns, visible to every later read of any
    process. Each write that changes something takes the next number of the change sequence, returns it, and
    stamps with it what it wrote; a write that changes nothing returns the current number.
    """

    @property
    def id(self) -> str:
        """UUID given at creation; a backup keeps it."""
        ...

    @property
    def is_read_only(self) -> bool:
        """True where the store stands in a place that cannot be written: every write raises `StoreError`."""
        ...

    def change(self) -> int:
        """Return the last number of the change sequence, 0 for a fresh store."""
        ...

    def token(self, change: int) -> str:
        """Return the random token that the given change got when it was written, "" for 0 or a change that is not.

        Two histories that share a number (one of them a restored backup) differ in its token.
        """
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Let every read of this thread inside the `with` block see the store as it was when the block began.

        Blocks may stand inside one another: the outermost one's state counts.

        Raises:
            StoreError: this thread writes inside the block.
        """
        ...

    def close(self) -> None:
        """Release every resource; calling twice is harmless."""
        ...

    # -- embedder --------------------------------------------------------------------------------------------

    def embedding(self) -> Embedding | None:
        """Return the stamp of the vectors in this store, None before the first was set."""
        ...

    def set_embedding(self, embedding: Embedding) -> None:
        """Record which embedder makes this store's vectors.

        Raises:
            StoreError: the store holds passages made by another embedder.
        """
        ...

    # -- writing ---------------------------------------------------------------------------------------------

    def put_owners(
        self, namespace: str, writes: Sequence[OwnerWrite], *, at: float = 0.0, made_by: Embedding | None = None
    ) -> int:
        """Write owners with their passages in one transaction and return its change number.

        An owner replaces the one with the same kind and id, or (for a non-empty path) the same kind and path;
        its old passages go and the new ones get new numbers, in the order given. Creates the namespace.

        Args:
            at: from when on they count for a filter's `as_of`, seconds since the epoch.
            made_by: the embedder of their vectors, where that is known.

        Raises:
            EmbedderMismatchError: the store's vectors are another's.
        """
        ...

    def restamp_artifacts(self, namespace: str, stamps: Sequence[tuple[str, str, FileStamp]]) -> None:
        """Set root and file stamp of artifacts, by (path, root, stamp); their text is the same, no number is taken."""
        ...

    def delete_owners(self, namespace: str, owner_numbers: Sequence[int]) -> int:
        """Delete owners and their passages in one transaction; unknown numbers are passed over."""
        ...

    # -- reading owners and passages -------------------------------------------------------------------------

    def namespaces(self, *, with_texts: bool = False) -> list[str]:
        """Return the names, sorted.

        Args:
            with_texts: also those that hold the texts of graphs, which no user can name; see `graph_contract`.
        """
        ...

    def artifacts(self, namespace: str) -> list[tuple[int, Owner]]:
        """Return (owner number, owner) of every artifact that came from a file, by path."""
        ...

    def artifact_types(self, namespace: str) -> dict[str, bool]:
        """Return of what types the artifacts are, and whether some artifact of the type has tags."""
        ...

    def owners(self, namespace: str, owner_numbers: Sequence[int]) -> dict[int, Owner]:
        """Return the owners that exist in this namespace, by number; others are absent."""
        ...

    def passages(self, namespace: str, numbers: Sequence[int]) -> dict[int, Passage]:
        """Return the passages that exist in this namespace, by number; others are absent."""
        ...

    def passages_of(self, namespace: str, owner_numbers: Sequence[int]) -> list[int]:
        """Return the numbers of the passages of owners, live or past, ascending; unknown owners have none."""
        ...

    def repeated_headings(self, namespace: str, numbers: Sequence[int]) -> set[int]:
        """Return those of the passages whose heading does not name one section of their owner.

        A section that was cut gives all its pieces its heading, but only the first holds it.
        """
        ...

    def tokens(self, namespace: str, numbers: Sequence[int]) -> dict[int, TokenEntry]:
        """Return token ids and vectors of the passages that exist in this namespace, by number."""
        ...

    def entries(self, namespace: str, numbers: Sequence[int]) -> dict[int, IndexEntry]:
        """Return what the index needs of the passages that exist in this namespace, by number."""
        ...

    def neighbours(self, namespace: str, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """Return (number, neighbour's number) for passages whose owners stand next to each other in a session.

        Neighbours are the owners with the nearest lower and the nearest higher position in the same session.
        Sorted; passages outside a session have none.
        """
        ...

    def places(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return session and position of the owners of one kind that exist in this namespace, by id."""
        ...

    def owner_numbers(self, namespace: str, kind: Kind, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the live owners of one kind that exist in this namespace, by id."""
        ...

    def last_position(self, namespace: str, session: str) -> int:
        """Return the highest position in a session, -1 when the namespace has no such session; "" is none."""
        ...

    def matching_owners(self, namespace: str, wanted: Filter) -> list[int]:
        """Return the numbers of the owners that pass the filter, ascending."""
        ...

    def counts(self, namespace: str | None = None) -> dict[str, int]:
        """Return `owners`, `passages`, `text_bytes`, `artifacts`, `memories`, `knowledge`.

        None counts everything; the first three then hold the texts of graphs too.
        """
        ...

    # -- what the index follows ------------------------------------------------------------------------------

    def entries_since(self, change: int, upto: int) -> Iterator[IndexEntry]:
        """Yield the passages that exist now and were written in change numbers (change, upto], by number ascending."""
        ...

    def tail(self, namespace: str, change: int) -> list[TokenEntry]:
        """Return the passages of a namespace written after `change`, by number ascending."""
        ...

    def pending(self, namespace: str, change: int) -> tuple[int, int]:
        """Return how many passages were written to a namespace, and how many were deleted in all, after `change`.

        Counts without reading them; passages that are gone again may be counted.
        """
        ...

    def deleted_since(self, change: int, upto: int) -> list[int]:
        """Return the numbers of passages deleted in change numbers (change, upto], ascending."""
        ...

    # -- keeping ---------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Return what is wrong with the stored data, one sentence each; empty when all is well."""
        ...

    def backup(self, target: Path) -> None:
        """Write a complete copy to a new file while others read and write.

        Raises:
            StoreError: the target exists or cannot be written.
        """
        ...

    def scratch_copy(self) -> AbstractContextManager[Store]:
        """Give a private copy of the store as it is now: nobody else sees what is written to it, and none of it stays.

        Others read and write the store meanwhile. It leaves no file behind, however the process ends.
        """
        ...
