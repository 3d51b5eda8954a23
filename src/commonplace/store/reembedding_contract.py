"""What every store promises of vectors that come later: those of texts just stored, and those of another embedder.

A passage without a vector is found by its words until it gets one. To change the embedder, new vectors are made beside
the old ones, and then all take their place at once.

The old vectors answer until the change is finished. What was made survives the process that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from commonplace.types import Embedding, IndexEntry


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
