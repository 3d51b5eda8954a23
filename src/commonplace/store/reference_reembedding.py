"""The part of the in-memory store that takes vectors later, and changes its embedder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from commonplace.store.batches import (
    refuse_other_maker,
    refuse_other_reembedding,
    refuse_same_embedding,
    refuse_unfit_vectors,
)
from commonplace.store.reembedding_contract import Reembedding
from commonplace.store.reference_state import Row, Space, State, index_entry

if TYPE_CHECKING:
    from commonplace.types import Embedding, IndexEntry


class ReferenceReembedding(ABC):
    """Vectors that come later, in dictionaries."""

    _state: State

    @abstractmethod
    def _open(self) -> AbstractContextManager[None]:
        """Let the block read the state."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Let the block write the state."""

    def count_pending(self) -> int:
        """Return how many passages of all namespaces, live and past, have no vector yet."""
        with self._open():
            return len(self._pending())

    def pending_vectors(self, limit: int) -> list[IndexEntry]:
        """Return passages of any namespace, live and past, that have no vector yet, by number ascending."""
        with self._open():
            return self._pending()[:limit]

    def fill_vectors(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> int:
        """Give passages without a vector theirs, as one change, and return its number."""
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._writing():
            refuse_other_maker(self._state.embedding, embedding)
            wanted = {entry.number: entry for entry in self._pending()}
            made = {number: vector for number, vector in vectors if number in wanted}
            if not made:
                return self._state.change
            change = self._state.begin(Space())
            owners = sorted({(wanted[number].owner_number, wanted[number].namespace) for number in made})
            for owner, namespace in owners:
                change.renumber(self._state.spaces[namespace], owner, made)
            return self._state.record(change)

    def _pending(self) -> list[IndexEntry]:
        found = (
            index_entry(name, number, space.owner_of[number], row.owner, new)
            for name, space in self._state.spaces.items()
            for number, row, new in space.passages(list(space.owner_of))
            if not new.vector
        )
        return sorted(found, key=lambda entry: entry.number)

    def reembedding(self) -> Reembedding | None:
        """Return the change of embedder under way, None where there is none."""
        with self._open():
            if self._state.next_embedding is None:
                return None
            missing, total = _missing(self._state), sum(len(space.owner_of) for space in self._state.spaces.values())
            return Reembedding(self._state.next_embedding, total - len(missing), total)

    def begin_reembedding(self, embedding: Embedding) -> None:
        """Begin to change the embedder, or go on with that."""
        with self._writing():
            refuse_same_embedding(self._state.embedding, embedding)
            if self._state.next_embedding != embedding:
                self._state.next_embedding = embedding
                self._state.next_vectors.clear()

    def drop_reembedding(self) -> None:
        """Give up the change of embedder under way, if there is one."""
        with self._writing():
            self._drop()

    def unembedded(self, limit: int) -> list[IndexEntry]:
        """Return passages that have no new vector yet, by number ascending."""
        with self._open():
            if self._state.next_embedding is None:
                return []
            return [
                index_entry(name, number, space.owner_of[number], row.owner, new)
                for number, name in sorted(_missing(self._state).items())[:limit]
                for space in [self._state.spaces[name]]
                for _, row, new in space.passages([number])
            ]

    def put_reembedded(self, embedding: Embedding, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep new vectors, by passage number."""
        refuse_unfit_vectors(embedding, [vector for _, vector in vectors])
        with self._writing():
            refuse_other_reembedding(self._state.next_embedding, embedding)
            self._state.next_vectors.update(vectors)

    def finish_reembedding(self, embedding: Embedding) -> bool:
        """Put all new vectors in the place of the old ones and stamp the store, as one change."""
        with self._writing():
            refuse_other_reembedding(self._state.next_embedding, embedding)
            if _missing(self._state):
                return False
            stamps = (self._state.embedding, embedding)
            for space in self._state.spaces.values():
                space.rows = {
                    number: _switched(row, self._state.next_vectors, stamps) for number, row in space.rows.items()
                }
            self._state.embedding = embedding
            self._drop()
            self._state.record(self._state.begin(Space()))
            return True

    def settle_reembedding(self, limit: int) -> bool:  # noqa: ARG002 - all is where it belongs
        """Leave nothing to be done."""
        return False

    def _drop(self) -> None:
        self._state.next_embedding = None
        self._state.next_vectors.clear()


def _missing(state: State) -> dict[int, str]:
    """Return the namespaces of the passages without a new vector, by number."""
    return {
        number: name
        for name, space in state.spaces.items()
        for number in space.owner_of
        if number not in state.next_vectors
    }


def _switched(row: Row, vectors: dict[int, bytes], stamps: tuple[Embedding | None, Embedding]) -> Row:
    """Return a row with its new vectors, and the new stamp where it names the old one."""
    old, new = ("" if stamp is None else str(stamp.of(row.owner.kind)) for stamp in stamps)
    passages = tuple(
        replace(passage, vector=vectors[number]) for number, passage in zip(row.numbers, row.passages, strict=True)
    )
    owner, memory, knowledge = row.owner, row.memory, row.knowledge
    if owner.stamp is not None and old:
        owner = replace(owner, stamp=replace(owner.stamp, recipe=owner.stamp.recipe.replace(old, new)))
    if memory is not None:
        memory = replace(memory, passages=passages)
    if knowledge is not None and knowledge.record.embedder == old:
        knowledge = replace(knowledge, record=replace(knowledge.record, embedder=new))
    return replace(row, owner=owner, passages=passages, memory=memory, knowledge=knowledge)
