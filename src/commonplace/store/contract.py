"""What every store promises: the truth about owners and passages, by namespace, along one change sequence.

A store knows nothing of indexes, embedders or files. Vectors and token ids are bytes to it. Driver errors never
leave it: they arrive as `StoreError` and its kin. Every method may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from commonplace.store.memory_contract import MemoryStore
from commonplace.store.reembedding_contract import ReembeddingStore
from commonplace.types import (
    Embedding,
    FileStamp,
    Filter,
    IndexEntry,
    Kind,
    Owner,
    OwnerWrite,
    Passage,
    TokenEntry,
)


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

        Blocks may stand inside one another: the outermost one's state counts. A process forked inside the block has
        lost that state.

        Raises:
            StoreError: this thread writes inside the block, or reads in a process forked inside it.
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
