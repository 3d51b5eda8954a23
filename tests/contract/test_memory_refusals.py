"""What no store takes as a memory, and what owners that are memories are to the rest of the contract."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest
from tests.contract.memories import FULL_RECORD, add, expire, latest, update, written
from tests.contract.stores import STAMP, file, memory

from commonplace.errors import StoreError, UsageError
from commonplace.store.store import Store
from commonplace.types import Embedding, JournalPage, Link, MemoryRecord, Note, Selection


class TestOwnersThatAreMemories:
    def test_deleting_a_live_version_leaves_the_past_ones(self, store: Store) -> None:
        """A number names one version."""
        add(store, written("a", "one", tags=("t",)))
        update(store, written("a", "two", dates=((1.0, 2.0),), bands=(1,)), 20.0)
        assert store.delete_owners("n", [2]) == 3
        assert (latest(store, "a").number, len(store.versions("n", "a"))) == (1, 1)
        assert store.memories("n", Selection()) == store.versions("n", "a")
        assert store.dated("n", -inf, inf) == []
        assert store.deleted_since("n", 0, 99) == [1, 2]
        assert store.check() == []
        assert add(store, written("a", "three")) == [3]

    def test_deleting_a_past_version_deletes_nothing_live(self, store: Store) -> None:
        """Its passages were deleted when it expired."""
        add(store, written("a", "one"))
        update(store, written("a", "two"), 20.0)
        store.delete_owners("n", [1])
        assert [found.number for found in store.versions("n", "a")] == [2]
        assert store.deleted_since("n", 0, 99) == [1]
        assert store.past("n", 15.0) == []
        assert store.check() == []

    def test_putting_replaces_a_live_version_but_never_a_past_one(self, store: Store) -> None:
        """What is put is an owner that was not remembered."""
        add(store, written("a", "one"))
        update(store, written("a", "two", tags=("t",), dates=((1.0, 2.0),)), 20.0)
        store.put_owners("n", [memory("a", "three")], at=30.0)
        assert store.places("n", "memory", ["a"]) == {"a": ("", 0)}
        assert list(store.owners("n", range(9))) == [1, 2]
        assert [found.number for found in store.versions("n", "a")] == [1]
        assert latest(store, "a").number == 1
        assert store.memories("n", Selection()) == store.versions("n", "a")
        assert [entry.text for entry in store.entries_since("n", 0, 99)] == ["three"]
        assert store.dated("n", -inf, inf) == []
        assert store.check() == []

    def test_an_owner_that_is_no_memory_is_not_changed_as_one(self, store: Store) -> None:
        """A number that leaked must not be a key."""
        store.put_owners("n", [memory("a", "one"), file("b", "x.py", "two")])
        with store.change_memories("n") as change:
            for number in (1, 2, 99, -1):
                change.revise(number, FULL_RECORD)
                change.expire(number, FULL_RECORD, 5.0)
            assert change.erase(["a", "b"]) == 0
        assert store.counts("n")["owners"] == 2
        assert store.due("n") == []
        assert store.change() == 1


class TestRefusing:
    def test_a_version_beside_a_live_one_is_refused(self, store: Store) -> None:
        """The live one is always the latest; the change may go on without what was refused."""
        add(store, written("a", "one"))
        store.put_owners("n", [memory("b", "two")])
        with store.change_memories("n") as change:
            for id_ in ("a", "b"):
                for until in (None, 2.0):
                    with pytest.raises(StoreError, match=f"there is a live version of memory '{id_}'; expire it first"):
                        change.add(written(id_, "more", session="s"), created_at=1.0, expired_at=until)
            assert change.add(written("c", "three"), created_at=1.0) == 3
        assert [found.number for found in store.versions("n", "a")] == [1]
        assert list(store.passages("n", range(9))) == [1, 2, 3]
        assert store.due("n") == ["a", "c"]
        assert store.check() == []

    @pytest.mark.parametrize(
        ("fields", "named"),
        [
            ({"at": nan}, "memory 'b'"),
            ({"dates": ((1.0, nan),)}, "memory 'b'"),
            ({"dates": ((nan, 1.0),)}, "memory 'b'"),
            ({"born_at": nan}, "memory 'b'"),
            ({"last_used": nan}, "memory 'b'"),
            ({"uses": (1.0, nan)}, "memory 'b'"),
            ({"promoted_at": nan}, "memory 'b'"),
            ({"trust": nan}, "memory 'b'"),
            ({"strength": nan}, "memory 'b'"),
            ({"bands": (2**63,)}, "9223372036854775808 in memory 'b'"),
            ({"position": -(2**63) - 1}, "-9223372036854775809 in memory 'b'"),
            ({"use_count": 2**63}, "memory 'b'"),
            ({"version": 2**63}, "memory 'b'"),
            ({"review_count": 2**63}, "memory 'b'"),
        ],
        ids=repr,
    )
    def test_numbers_that_do_not_fit_are_refused(self, store: Store, fields: dict[str, Any], named: str) -> None:
        """A store that cannot compare a time cannot find by it."""
        write = written("b", "two", **fields)
        with store.change_memories("n") as change:
            with pytest.raises(UsageError, match=named):
                change.add(write, created_at=1.0)
            change.add(written("b"), created_at=1.0)
            if not {"at", "dates", "bands", "position"} & set(fields):
                with pytest.raises(UsageError, match=named):
                    change.revise(1, write.record)
                with pytest.raises(UsageError, match=named):
                    change.expire(1, write.record, 2.0)
        assert latest(store, "b").expired_at is None
        assert latest(store, "b").record == MemoryRecord("")

    def test_times_and_numbers_of_what_is_kept_beside_are_refused_too(self, store: Store) -> None:
        """Wherever they stand."""
        with store.change_memories("n") as change:
            for write in (
                lambda: change.add(written("a"), created_at=nan),
                lambda: change.add(written("a"), created_at=1.0, expired_at=nan),
                lambda: change.link(Link("a", "b", strength=nan)),
                lambda: change.link(Link("a", "b", created_at=nan)),
                lambda: change.put(Note("k", "i", nan, "")),
                lambda: change.put(JournalPage("p", 2**63, 0, "")),
                lambda: change.put(JournalPage("p", 0, 2**63, "")),
            ):
                with pytest.raises(UsageError):
                    write()
            change.add(written("a"), created_at=1.0)
            with pytest.raises(UsageError, match="memory 'a'"):
                change.expire(1, MemoryRecord(""), nan)
        with pytest.raises(UsageError):
            store.put_owners("n", [memory("b")], at=nan)
        assert store.counts("n")["owners"] == 1

    def test_a_memory_is_of_its_kind_and_of_no_file(self, store: Store) -> None:
        """Two memories with one path would be one owner."""
        write = written("a")
        for owner, named in (
            (replace(write.owner, kind="artifact"), "'a' is of the kind 'artifact', not a memory"),
            (replace(write.owner, path="x.py"), r"'a' is of the file 'x\.py', not a memory"),
            (replace(write.owner, stamp=STAMP), "not a memory; put it as an owner"),
        ):
            with pytest.raises(UsageError, match=named):
                add(store, replace(write, owner=owner))
        assert store.namespaces() == []

    def test_a_vector_of_another_embedder_is_refused(self, store: Store) -> None:
        """It would damage the dense index, now or when a version is asked for by time."""
        store.set_embedding(Embedding("static", "1", 3))
        for until in (None, 20.0):
            with pytest.raises(StoreError, match="has 4 dimensions, the store's embedder static has 3"):
                add(store, written("a", "one"), until=until)
        assert (store.change(), store.namespaces()) == (0, [])

    def test_past_passages_bind_the_store_to_their_embedder(self, store: Store) -> None:
        """A question about the past compares with their vectors."""
        store.set_embedding(Embedding("static", "1", 4))
        add(store, written("a", "one"))
        expire(store, "a", 20.0)
        with pytest.raises(StoreError, match="holds 1 passages made by static@1/4"):
            store.set_embedding(Embedding("static", "2", 4))

    def test_a_closed_store_says_so(self, store: Store) -> None:
        """Rather than show what the driver thinks of it."""
        store.close()
        for use in (
            lambda: store.memory("n", "a"),
            lambda: store.change_memories("n").__enter__(),
            lambda: store.erase_namespace("n"),
            store.compact,
        ):
            with pytest.raises(StoreError, match="is closed"):
                use()
