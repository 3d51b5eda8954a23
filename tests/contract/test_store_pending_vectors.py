"""Every backend takes passages without vectors, says which they are, and takes their vectors later."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.memories import add, expire, written
from tests.contract.stores import file

from commonplace.errors import EmbedderMismatchError, StoreError
from commonplace.store.store import Store
from commonplace.types import Embedding, MemoryWrite, OwnerWrite

FILES = Embedding("files", "1", 6)
MIXED = Embedding("minds", "1", 4, (("artifacts", FILES),))
MADE = bytes([1, 2, 3, 4])


def without_vectors(write: MemoryWrite) -> MemoryWrite:
    return replace(write, passages=tuple(replace(each, vector=b"") for each in write.passages))


@pytest.fixture
def waiting(store: Store) -> Store:
    """A store with an embedded memory (passage 1), and one of two passages (2, 3) that wait for their vectors."""
    store.set_embedding(MIXED)
    add(store, written("a", "one"))
    add(store, without_vectors(written("b", "two", "three")))
    return store


class TestPendingVectors:
    def test_what_has_no_vector_is_counted_and_listed_by_number(self, waiting: Store) -> None:
        """Whoever embeds takes a slice at a time."""
        assert waiting.count_pending() == 2
        assert [entry.number for entry in waiting.pending_vectors(10)] == [2, 3]
        assert [(entry.number, entry.kind, entry.text) for entry in waiting.pending_vectors(1)] == [
            (2, "memory", "two")
        ]

    def test_a_filled_memory_has_new_numbers_and_its_old_ones_are_deleted(self, waiting: Store) -> None:
        """The index and every other process follow the numbers: what is changed in place they would never see."""
        before = waiting.change()
        assert waiting.fill_vectors(MIXED, [(3, MADE)]) == 1
        assert waiting.change() == before + 1
        assert waiting.deleted_since("n", before, before + 1) == [2, 3]
        found = waiting.tokens("n", [2, 3, 4, 5])
        assert [(number, entry.vector) for number, entry in found.items()] == [(4, b""), (5, MADE)]
        assert [entry.text for entry in waiting.entries_since("n", before, before + 1)] == ["two", "three"]
        assert waiting.count_pending() == 1
        assert waiting.check() == []

    def test_the_ids_and_texts_of_passages_stay(self, waiting: Store) -> None:
        """A hit of before can be asked about afterwards."""
        before = [replace(each, number=0) for each in waiting.passages("n", [2, 3]).values()]
        waiting.fill_vectors(MIXED, [(2, MADE), (3, MADE)])
        assert [replace(each, number=0) for each in waiting.passages("n", [4, 5]).values()] == before

    def test_what_is_gone_or_has_a_vector_is_passed_over(self, waiting: Store) -> None:
        """Between taking a slice and writing it a memory may be forgotten, or embedded by another process."""
        change = waiting.change()
        assert (waiting.fill_vectors(MIXED, [(1, MADE), (99, MADE)]), waiting.change()) == (0, change)
        assert waiting.tokens("n", [1])[1].vector != MADE

    def test_a_past_version_is_filled_in_place(self, waiting: Store) -> None:
        """No index holds it: it needs no new number."""
        expire(waiting, "b", 20.0)
        assert [entry.number for entry in waiting.pending_vectors(10)] == [2, 3]
        waiting.fill_vectors(MIXED, [(2, MADE), (3, MADE)])
        assert [entry.vector for entry in waiting.tokens("n", [2, 3]).values()] == [MADE, MADE]
        assert waiting.check() == []

    def test_another_embedders_vectors_are_refused(self, waiting: Store) -> None:
        """The embedder may have been changed since the slice was taken."""
        with pytest.raises(EmbedderMismatchError, match="changed its embedder"):
            waiting.fill_vectors(Embedding("minds", "2", 4), [(2, MADE)])
        with pytest.raises(StoreError, match="5 dimensions"):
            waiting.fill_vectors(MIXED, [(2, bytes(5))])
        assert waiting.count_pending() == 2


class TestEmbeddersOfKinds:
    def test_the_stamp_comes_back_with_those_of_its_kinds(self, waiting: Store) -> None:
        """Vectors of a file and of a memory are never compared."""
        assert waiting.embedding() == MIXED
        assert (MIXED.of("artifact"), MIXED.of("memory")) == (FILES, Embedding("minds", "1", 4))
        assert MIXED.spaces == (Embedding("minds", "1", 4), FILES)

    def test_a_vector_has_the_length_of_its_kinds_embedder(self, waiting: Store) -> None:
        """One of another length was made by another embedder."""
        right = file("f", "a.py", "four")
        right = OwnerWrite(right.owner, tuple(replace(each, vector=bytes(6)) for each in right.passages))
        waiting.put_owners("n", [right], made_by=MIXED)
        with pytest.raises(StoreError, match="4 dimensions, the store's embedder files has 6"):
            waiting.put_owners("n", [file("g", "b.py", "five")], made_by=MIXED)
        assert waiting.check() == []

    def test_no_stamp_is_a_part_of_another_one(self) -> None:
        """In the recipes of files one is replaced by the next, wherever it stands."""
        parts = [str(each) for each in (MIXED, MIXED.of("memory"), FILES)]
        assert not [one for one in parts for other in parts if one != other and one in other]
