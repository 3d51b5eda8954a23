"""Every backend changes its embedder alike: beside the old vectors, resumable, and then all at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.graphs import entity
from tests.contract.graphs import put as put_graph
from tests.contract.knowledge import FULL, item
from tests.contract.knowledge import put as put_knowledge
from tests.contract.memories import add, written
from tests.contract.stores import SECOND, file, memory

from commonplace.errors import EmbedderMismatchError, StoreError
from commonplace.store.store import Store
from commonplace.types import Embedding, Filter, Reembedding

OLD = Embedding("old", "1", 4)
NEW = Embedding("new", "2", 6)
OTHER = Embedding("other", "1", 6)


OF_OTHER = SECOND + 1
"""The passage in the other namespace."""


def vector(number: int) -> bytes:
    return bytes([number % 251] * NEW.dimensions)


def reembed(store: Store, limit: int = 100) -> list[int]:
    """Give one batch of passages their new vectors, and return their numbers."""
    numbers = [entry.number for entry in store.unembedded(limit)]
    store.put_reembedded(NEW, [(number, vector(number)) for number in numbers])
    return numbers


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with a memory of two versions (1, 2), a document (3), and a file in another namespace."""
    store.set_embedding(OLD)
    add(store, written("m", "one"), until=20.0)
    add(store, written("m", "two"), at=20.0)
    store.put_owners("n", [memory("d", "three")])
    store.put_owners("other", [file("f", "a.py", "four")])
    return store


class TestChangingTheEmbedder:
    def test_old_vectors_stay_until_all_are_new(self, filled: Store) -> None:
        """Questions are answered meanwhile; past versions and other namespaces belong to it."""
        filled.begin_reembedding(NEW)
        assert filled.reembedding() == Reembedding(NEW, 0, 4)
        before = filled.tokens("n", [1, 2, 3])
        assert reembed(filled, 3) == [1, 2, 3]
        assert filled.tokens("n", [1, 2, 3]) == before
        assert filled.embedding() == OLD
        assert not filled.finish_reembedding(NEW)
        assert filled.reembedding() == Reembedding(NEW, 3, 4)
        assert reembed(filled) == [OF_OTHER]
        heads = filled.heads()
        assert filled.finish_reembedding(NEW)
        assert {name: head.change - 1 for name, head in filled.heads().items()} == {
            name: head.change for name, head in heads.items()
        }
        assert {head.token for head in filled.heads().values()}.isdisjoint(head.token for head in heads.values())
        assert (filled.embedding(), filled.reembedding(), filled.check()) == (NEW, None, [])
        assert filled.tokens("n", [1, 2, 3]) == {
            number: entry._replace(vector=vector(number)) for number, entry in before.items()
        }
        assert filled.tokens("other", [OF_OTHER])[OF_OTHER].vector == vector(OF_OTHER)
        assert filled.past("n", 15.0)[0].vector == vector(1)
        assert filled.check() == []

    @pytest.mark.parametrize("name", ["older", "bold", "old"])
    def test_recipes_are_right_whatever_the_embedders_are_called(self, filled: Store, name: str) -> None:
        """The name of the one may be in that of the other."""
        stamp = Embedding(name, "1" if name != "old" else "12", 6)
        recipe = file("g", "b.py", "six")
        assert recipe.owner.stamp is not None
        named = replace(recipe.owner, stamp=replace(recipe.owner.stamp, recipe=f"3.1/512/50/{OLD}"))
        filled.put_owners("n", [replace(recipe, owner=named)])
        filled.begin_reembedding(stamp)
        filled.put_reembedded(stamp, [(number, vector(number)) for number in (1, 2, 3, 4, OF_OTHER)])
        assert filled.finish_reembedding(stamp)
        (kept,) = [owner.stamp for _, owner in filled.artifacts("n") if owner.stamp]
        assert kept.recipe == f"3.1/512/50/{stamp}"

    def test_passages_are_given_with_all_that_they_have(self, filled: Store) -> None:
        """What of a passage is embedded is not the store's to decide."""
        filled.begin_reembedding(NEW)
        given = filled.unembedded(100)
        assert {entry.number: entry.text for entry in given} == {1: "one", 2: "two", 3: "three", OF_OTHER: "four"}
        assert given[1:3] == [filled.entries("n", [number])[number] for number in (2, 3)]

    def test_it_goes_on_where_it_was(self, filled: Store) -> None:
        """Whoever begins it again, after a crash, loses nothing that was made."""
        filled.begin_reembedding(NEW)
        reembed(filled, 2)
        filled.begin_reembedding(NEW)
        assert [entry.number for entry in filled.unembedded(100)] == [3, OF_OTHER]

    def test_another_embedder_begins_anew(self, filled: Store) -> None:
        """Vectors of two models cannot be compared."""
        filled.begin_reembedding(OTHER)
        filled.put_reembedded(OTHER, [(1, vector(1))])
        filled.begin_reembedding(NEW)
        assert filled.reembedding() == Reembedding(NEW, 0, 4)
        with pytest.raises(StoreError, match="is under way to new@2/6, not to other@1/6; begin it again"):
            filled.put_reembedded(OTHER, [(1, vector(1))])
        with pytest.raises(StoreError, match="is under way to new@2/6"):
            filled.finish_reembedding(OTHER)

    def test_what_comes_and_goes_meanwhile_is_not_forgotten(self, filled: Store) -> None:
        """A passage that is written during it gets a new vector, too; of one that is gone nothing stays."""
        filled.begin_reembedding(NEW)
        reembed(filled)
        filled.delete_owners("n", [3])
        filled.put_owners("n", [memory("e", "five")])
        assert filled.reembedding() == Reembedding(NEW, 3, 4)
        assert not filled.finish_reembedding(NEW)
        filled.put_reembedded(NEW, [(3, vector(3))])
        assert reembed(filled) == [4]
        assert filled.finish_reembedding(NEW)
        assert filled.tokens("n", [3, 4]).keys() == {4}
        assert filled.check() == []

    def test_a_hole_is_found(self, filled: Store) -> None:
        """Vectors are made in order; one that is lacking below the last would hold up the switch for ever."""
        filled.begin_reembedding(NEW)
        filled.put_reembedded(NEW, [(number, vector(number)) for number in (1, 3, OF_OTHER)])
        assert reembed(filled) == [2]
        assert filled.finish_reembedding(NEW)

    def test_it_can_be_given_up(self, filled: Store) -> None:
        filled.begin_reembedding(NEW)
        reembed(filled, 2)
        filled.drop_reembedding()
        filled.drop_reembedding()
        assert (filled.reembedding(), filled.embedding(), filled.unembedded(9)) == (None, OLD, [])
        with pytest.raises(StoreError, match="a change of the store's embedder is over, not to new@2/6"):
            filled.put_reembedded(NEW, [(1, vector(1))])

    def test_what_names_the_embedder_names_the_new_one(self, store: Store) -> None:
        """Files and knowledge are embedded again where another embedder made their vectors: they must not be."""
        store.set_embedding(OLD)
        written_file = file("f", "a.py", "text")
        stamp = written_file.owner.stamp
        assert stamp is not None
        owner = replace(written_file.owner, stamp=replace(stamp, recipe=f"3.1/512/50/{OLD}/asked"))
        store.put_owners("n", [replace(written_file, owner=owner)])
        put_knowledge(store, item("k", embedder=str(OLD)), item("w", content="words"), replace(item("o"), record=FULL))
        store.begin_reembedding(NEW)
        reembed(store)
        store.finish_reembedding(NEW)
        [(_, kept)] = store.artifacts("n")
        assert kept.stamp == replace(stamp, recipe=f"3.1/512/50/{NEW}/asked")
        items = {each.owner.id: each.record for each in store.knowledge("n").items()}
        assert (items["k"].embedder, items["w"].embedder, items["o"]) == (str(NEW), "", FULL)

    def test_texts_of_graphs_and_erased_namespaces_belong_to_it(self, store: Store) -> None:
        """Entities are found by their texts, in namespaces that no user can name."""
        store.set_embedding(OLD)
        put_graph(store, entity("a"))
        store.put_owners("gone", [memory("x", "text")])
        store.begin_reembedding(NEW)
        count = len(reembed(store))
        store.erase_namespace("gone")
        assert store.finish_reembedding(NEW)
        assert count >= 1
        assert store.check() == []

    def test_an_unfinished_one_is_in_a_backup(self, filled: Store, tmp_path: Path) -> None:
        """A restored store goes on with it."""
        filled.begin_reembedding(NEW)
        reembed(filled, 3)
        filled.backup(tmp_path / "copy.db")
        copy = Store.open(tmp_path / "copy.db", create=False)
        assert copy.reembedding() == Reembedding(NEW, 3, 4)
        assert reembed(copy) == [OF_OTHER]
        assert copy.finish_reembedding(NEW)
        assert copy.check() == []
        copy.close()

    def test_unfit_vectors_and_the_present_embedder_are_refused(self, filled: Store) -> None:
        with pytest.raises(StoreError, match="are made by old@1/4 already"):
            filled.begin_reembedding(OLD)
        filled.begin_reembedding(NEW)
        with pytest.raises(StoreError, match="a vector has 4 dimensions, those of new have 6"):
            filled.put_reembedded(NEW, [(1, b"1234")])


class TestWritingDuringAChange:
    def test_vectors_of_another_embedder_are_refused(self, store: Store) -> None:
        """They may have the same length, and nobody could tell them from the right ones ever after."""
        same = replace(NEW, dimensions=OLD.dimensions)
        store.set_embedding(OLD)
        store.put_owners("n", [memory("a", "text")], made_by=OLD)
        store.begin_reembedding(same)
        store.put_reembedded(same, [(1, b"1234")])
        store.finish_reembedding(same)
        change = store.change()
        with pytest.raises(EmbedderMismatchError, match="from old@1/4 to new@2/4 meanwhile, and nothing was written"):
            store.put_owners("n", [memory("b", "text")], made_by=OLD)
        with pytest.raises(EmbedderMismatchError), store.change_memories("n", made_by=OLD):
            raise AssertionError("the block must not begin")
        assert store.change() == change
        store.put_owners("n", [memory("b", "text")], made_by=same)
        with store.change_memories("n", made_by=same) as memories:
            memories.add(written("m", "text"), created_at=1.0)
        assert len(store.matching_owners("n", Filter())) == 3

    def test_a_store_without_vectors_takes_any(self, store: Store) -> None:
        store.put_owners("n", [memory("a")], made_by=OLD)
        assert store.counts("n")["owners"] == 1
