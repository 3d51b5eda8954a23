"""What every store promises of the owners and passages that are written, replaced and deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.stores import FULL_OWNER, NOTHING, SECOND, file, memory, passage

from commonplace.errors import StoreError
from commonplace.store.store import Store
from commonplace.types import Embedding, Filter, Head, Link, Owner, OwnerWrite


class TestChangeSequence:
    def test_a_fresh_store_is_at_change_zero_and_empty(self, store: Store) -> None:
        """The index compares its stamp with this number."""
        assert store.change() == 0
        assert store.namespaces() == []
        assert store.counts() == NOTHING
        assert store.embedding() is None

    def test_each_write_takes_the_next_number(self, store: Store) -> None:
        """A gap or a repetition would make an index miss a change."""
        assert store.put_owners("n", [memory("a", "one")]) == 1
        before = store.head("n")
        assert store.put_owners("m", [memory("a", "one")]) == 1
        assert store.head("n") == before == Head(1, store.token("n", 1))
        assert store.delete_owners("n", [1]) == 2
        assert (store.change("n"), store.change("m"), store.change("x"), store.change()) == (2, 1, 0, 3)
        assert store.heads() == {"n": store.head("n"), "m": store.head("m")}

    def test_writes_that_change_nothing_take_no_number(self, store: Store) -> None:
        """An idle loop must not make every index stale."""
        assert store.put_owners("n", []) == 0
        store.put_owners("n", [memory("a", "one")])
        assert store.put_owners("n", []) == 1
        assert store.delete_owners("n", []) == 1
        assert store.delete_owners("n", [99, -1, 2**70]) == 1
        assert store.delete_owners("unknown", [1]) == 0
        assert store.change() == 1

    def test_putting_the_same_again_still_writes(self, store: Store) -> None:
        """The store does not compare texts: who calls it knows whether something changed."""
        store.put_owners("n", [memory("a", "one")])
        assert store.put_owners("n", [memory("a", "one")]) == 2
        assert list(store.passages("n", [1, 2])) == [2]

    def test_putting_nothing_makes_no_namespace(self, store: Store) -> None:
        """A namespace appears with its first owner."""
        store.put_owners("n", [])
        assert store.namespaces() == []

    def test_the_id_is_a_uuid_that_stays(self, store: Store) -> None:
        """An index is bound to its store by this id."""
        assert len(store.id) == 36
        before = store.id
        store.put_owners("n", [memory("a", "one")])
        assert store.id == before


class TestReplacing:
    def test_an_owner_keeps_its_number_and_its_passages_get_new_ones(self, store: Store) -> None:
        """The index takes a new number for a new text; a hit's owner stays the same."""
        store.put_owners("n", [memory("a", "one", "two"), memory("b", "three")])
        store.put_owners("n", [memory("a", "four", "five")])
        assert sorted(store.passages("n", range(1, 9))) == [3, 4, 5]
        assert {n: (p.owner_number, p.ordinal) for n, p in store.passages("n", [4, 5]).items()} == {
            4: (1, 0),
            5: (1, 1),
        }
        assert store.deleted_since("n", 1, 2) == [1, 2]

    def test_an_artifact_replaces_the_one_with_its_path(self, store: Store) -> None:
        """A file is found again by its path, whatever id it is given."""
        store.put_owners("n", [file("a", "x.py", "one")])
        store.put_owners("n", [file("b", "x.py", "two")])
        assert [(number, owner.id) for number, owner in store.artifacts("n")] == [(1, "b")]

    def test_an_owner_that_takes_the_path_of_another_replaces_both(self, store: Store) -> None:
        """Id and path are each unique; the number of the one with the same id stays."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "y.py", "two")])
        store.put_owners("n", [file("a", "y.py", "three")])
        assert [(number, owner.id, owner.path) for number, owner in store.artifacts("n")] == [(1, "a", "y.py")]
        assert store.deleted_since("n", 0, 2) == [1, 2]
        assert store.check() == []

    def test_two_files_can_swap_their_paths_in_one_call(self, store: Store) -> None:
        """Renames come in batches."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "y.py", "two")])
        store.put_owners("n", [file("a", "y.py", "one"), file("b", "x.py", "two")])
        assert [(owner.id, owner.path) for _, owner in store.artifacts("n")] == [("b", "x.py"), ("a", "y.py")]
        assert store.check() == []

    def test_new_and_known_ones_in_one_call_get_numbers_in_the_order_given(self, store: Store) -> None:
        """A session is read by the order of its passages, however it was told."""
        store.put_owners("n", [memory("b", "old"), file("f", "x.py", "old")])
        writes = [memory("a", "1"), memory("b", "2"), file("g", "x.py", "3"), file("h", "y.py", "4"), memory("c", "5")]
        store.put_owners("n", writes)
        assert [store.passages("n", [n])[n].chunk.text for n in range(3, 8)] == ["1", "2", "3", "4", "5"]
        assert [owner.id for owner in store.owners("n", range(1, 9)).values()] == ["b", "g", "a", "h", "c"]
        assert store.check() == []

    def test_one_whose_row_went_to_another_in_the_same_call_is_new(self, store: Store) -> None:
        """What was there before the call does not tell what is there now."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "y.py", "two")])
        store.put_owners("n", [file("c", "y.py", "1"), file("new", "z.py", "2"), file("b", "w.py", "3")])
        owned = {owner.id: owner.path for _, owner in store.artifacts("n")}
        assert owned == {"a": "x.py", "c": "y.py", "new": "z.py", "b": "w.py"}
        assert store.check() == []

    def test_of_one_id_twice_in_a_call_the_last_counts(self, store: Store) -> None:
        """The first one never was: it takes no number."""
        store.put_owners("n", [memory("a", "one"), memory("b", "two"), memory("a", "three")])
        assert {n: p.chunk.text for n, p in store.passages("n", [1, 2, 3]).items()} == {1: "two", 2: "three"}
        assert store.deleted_since("n", 0, 1) == []

    def test_of_one_path_twice_in_a_call_the_last_counts(self, store: Store) -> None:
        """As with ids."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "x.py", "two")])
        assert [(number, owner.id) for number, owner in store.artifacts("n")] == [(1, "b")]

    def test_kinds_and_namespaces_have_ids_of_their_own(self, store: Store) -> None:
        """One agent must never overwrite what another keeps under the same id."""
        store.put_owners("n", [memory("a", "one"), OwnerWrite(Owner("a", "knowledge"), ())])
        store.put_owners("m", [memory("a", "two")])
        assert sorted(store.owners("n", [1, 2, SECOND + 1])) == [1, 2]
        assert sorted(store.owners("m", [1, 2, SECOND + 1])) == [SECOND + 1]

    def test_tags_and_stamp_are_replaced_too(self, store: Store) -> None:
        """Nothing of the old owner may answer a filter."""
        store.put_owners("n", [OwnerWrite(FULL_OWNER, ())])
        store.put_owners("n", [OwnerWrite(replace(FULL_OWNER, tags=("c",), stamp=None), ())])
        assert store.matching_owners("n", Filter(tags=("a",))) == []
        assert store.matching_owners("n", Filter(tags=("c",))) == [1]
        assert store.owners("n", [1])[1].stamp is None

    def test_the_types_of_artifacts_are_told_and_of_which_some_have_tags(self, store: Store) -> None:
        """A strategy must know where there is anything that it could ask for."""
        assert store.artifact_types("n") == {}
        typed = [("a", "code", ()), ("b", "code", ("x",)), ("c", "test", ()), ("d", "", ()), ("e", "odd\x01", ("y",))]
        store.put_owners(
            "n", [OwnerWrite(Owner(name, "artifact", type=type_, tags=tags), ()) for name, type_, tags in typed]
        )
        store.put_owners("n", [OwnerWrite(Owner("f", "knowledge", type="research", tags=("x",)), ())])
        store.put_owners("m", [OwnerWrite(Owner("g", "artifact", type="requirement"), ())])
        assert store.artifact_types("n") == {"code": True, "test": False, "": False, "odd\x01": True}
        store.delete_owners("n", [2, 3])
        assert store.artifact_types("n") == {"code": False, "": False, "odd\x01": True}


class TestDeleting:
    def test_a_deleted_owner_is_absent_everywhere(self, store: Store) -> None:
        """Deletion is what forgetting builds on."""
        store.put_owners("n", [OwnerWrite(FULL_OWNER, (passage("one"),)), memory("b", "two")])
        store.delete_owners("n", [1])
        assert list(store.owners("n", [1, 2])) == [2]
        assert list(store.passages("n", [1, 2])) == list(store.tokens("n", [1, 2])) == [2]
        assert list(store.entries("n", [1, 2])) == [2]
        assert [entry.number for entry in store.entries_since("n", 0, 2)] == [2]
        assert [entry.number for entry in store.tail("n", 0)] == [2]
        assert store.artifacts("n") == []
        assert store.matching_owners("n", Filter(tags=("a",))) == []
        assert store.deleted_since("n", 0, 2) == [1]
        assert store.counts("n") == NOTHING | {"owners": 1, "passages": 1, "text_bytes": 3, "memories": 1}
        assert store.check() == []

    def test_numbers_are_never_used_again(self, store: Store) -> None:
        """An index that still holds an old number must not find another passage under it."""
        store.put_owners("n", [memory("a", "one")])
        store.delete_owners("n", [1])
        store.put_owners("n", [memory("a", "two")])
        assert list(store.owners("n", [1, 2])) == [2]
        assert list(store.passages("n", [1, 2])) == [2]

    def test_an_owner_of_another_namespace_is_not_deleted(self, store: Store) -> None:
        """A number that leaked must not be a key."""
        store.put_owners("n", [memory("a", "one")])
        store.put_owners("m", [memory("a", "two")])
        assert store.delete_owners("m", [1]) == 1
        assert store.delete_owners("m", [1, SECOND + 1, SECOND + 1, 99]) == 2
        assert list(store.owners("n", [1])) == [1]

    def test_a_namespace_stays_when_its_last_owner_goes(self, store: Store) -> None:
        """Its name was made by its user, not by its rows."""
        store.put_owners("n", [memory("a", "one")])
        store.delete_owners("n", [1])
        assert store.namespaces() == ["n"]
        assert store.counts() == NOTHING


class TestNamespaces:
    def test_every_read_is_bound_to_the_namespace_it_names(self, store: Store) -> None:
        """The promise of isolation, kept where the rows are."""
        store.put_owners("n", [memory("a", "one", session="s"), memory("b", "two", session="s", position=1)])
        for name in ("m", "N", ""):
            assert store.owners(name, [1, 2]) == {}
            assert store.passages(name, [1, 2]) == {}
            assert store.tokens(name, [1, 2]) == {}
            assert store.entries(name, [1, 2]) == {}
            assert store.neighbours(name, [1, 2]) == []
            assert store.matching_owners(name, Filter()) == []
            assert store.tail(name, 0) == []
            assert store.artifacts(name) == []
            assert store.counts(name) == NOTHING

    def test_names_are_sorted_by_code_point(self, store: Store) -> None:
        """The order of results is total and does not depend on the backend's collation."""
        for name in ("b", "É", "a", "B", ""):
            store.put_owners(name, [memory("a")])
        assert store.namespaces() == ["", "B", "a", "b", "É"]


class TestCounts:
    def test_counts_follow_writes_replacements_and_deletions(self, store: Store) -> None:
        """They are kept up as rows come and go, and must never drift."""
        store.put_owners("n", [file("a", "x.py", "äb", "\ue000"), memory("b", "two")])
        store.put_owners("m", [OwnerWrite(Owner("k", "knowledge"), (passage("three"),))])
        store.put_owners("n", [file("a", "x.py", "one")])
        assert store.counts("n") == {
            "owners": 2,
            "passages": 2,
            "text_bytes": 6,
            "artifacts": 1,
            "memories": 1,
            "knowledge": 0,
        }
        assert store.counts() == {
            "owners": 3,
            "passages": 3,
            "text_bytes": 11,
            "artifacts": 1,
            "memories": 1,
            "knowledge": 1,
        }
        assert store.check() == []


class TestEmbedding:
    def test_the_stamp_is_kept_and_may_be_set_again(self, store: Store) -> None:
        """Every opening sets it."""
        stamp = Embedding("static", "1", 4)
        store.set_embedding(Embedding("other", "1", 8))
        store.set_embedding(stamp)
        store.put_owners("n", [memory("a", "one")])
        store.set_embedding(stamp)
        assert store.embedding() == stamp

    def test_another_embedder_is_refused_once_there_are_passages(self, store: Store) -> None:
        """Vectors of different embedders must never be compared."""
        store.set_embedding(Embedding("static", "1", 4))
        store.put_owners("n", [memory("a", "one")])
        with pytest.raises(StoreError, match=r"holds 1 passages made by static@1/4, not by static@2/4; open it with"):
            store.set_embedding(Embedding("static", "2", 4))
        assert store.embedding() == Embedding("static", "1", 4)

    def test_a_vector_of_another_length_is_refused(self, store: Store) -> None:
        """It would damage the dense index."""
        store.set_embedding(Embedding("static", "1", 3))
        with pytest.raises(StoreError, match="has 4 dimensions, the store's embedder static has 3"):
            store.put_owners("n", [memory("a", "one")])
        assert store.change() == 0


class TestScratchCopies:
    def test_a_scratch_copy_is_written_alone_and_gone_afterwards(self, store: Store) -> None:
        """What a dry run does on it must reach nobody, and nobody may disturb it."""
        store.put_owners("n", [memory("a", "one")])
        with store.scratch_copy() as copy:
            assert (copy.id, copy.change(), copy.token("n", 1)) == (store.id, 1, store.token("n", 1))
            assert copy.put_owners("n", [memory("b", "two")]) == 2
            assert copy.delete_owners("n", [1]) == 3
            store.put_owners("m", [memory("c", "three")])
            assert (store.change(), store.namespaces(), copy.namespaces()) == (2, ["m", "n"], ["n"])
            assert [owner.id for owner in copy.owners("n", [1, 2]).values()] == ["b"]
            assert copy.check() == []
        assert [owner.id for owner in store.owners("n", [1, 2]).values()] == ["a"]
        with pytest.raises(StoreError):
            copy.change()

    def test_a_change_of_a_scratch_copy_is_all_or_nothing_and_none_in_a_snapshot(self, store: Store) -> None:
        """Agents act on it as on the store itself."""
        with store.scratch_copy() as copy:
            with pytest.raises(ZeroDivisionError), copy.change_memories("n") as change:
                change.link(Link("a", "b", "related", 1.0, 0.0))
                raise ZeroDivisionError
            assert copy.links("n") == []
            with copy.change_memories("n") as change:
                change.link(Link("a", "b", "related", 1.0, 0.0))
            assert [link.target for link in copy.links("n")] == ["b"]
            with copy.snapshot(), pytest.raises(StoreError):
                copy.put_owners("n", [memory("a", "one")])
