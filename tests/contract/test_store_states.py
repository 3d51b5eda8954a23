"""What every store promises of its states: which one a thread sees, how two are told apart, what lies between them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.contract.stores import STAMP, file, memory

from commonplace.errors import StoreError
from commonplace.store.store import Store
from commonplace.types import Embedding, Note


class TestTokens:
    def test_each_change_has_a_token_of_its_own_that_stays(self, store: Store) -> None:
        """An index remembers the token of the change that it holds."""
        for text in ("one", "two", "three"):
            store.put_owners("n", [memory("a", text)])
        store.delete_owners("n", [1])
        tokens = [store.token("n", change) for change in range(1, 5)]
        assert len(set(tokens)) == 4
        assert {len(bytes.fromhex(token)) for token in tokens} == {8}
        assert [store.token("n", change) for change in range(1, 5)] == tokens

    def test_what_is_no_change_has_none(self, store: Store) -> None:
        """A fresh store has no history to tell apart."""
        store.put_owners("n", [memory("a", "one")])
        assert [store.token("n", change) for change in (0, -1, 2, 2**70)] == [""] * 4

    def test_a_restored_backup_goes_on_under_other_tokens(self, store: Store, tmp_path: Path) -> None:
        """Its numbers repeat those of the history that was given up, and an index of that history must notice."""
        store.put_owners("n", [memory("a", "one")])
        store.backup(tmp_path / "copy.db")
        store.put_owners("n", [memory("a", "two")])
        copy = Store.open(tmp_path / "copy.db", create=False)
        assert copy.put_owners("n", [memory("a", "three")]) == store.change()
        assert copy.token("n", 1) == store.token("n", 1)
        assert copy.token("n", 2) != store.token("n", 2)
        copy.close()


class TestSnapshots:
    def test_what_another_thread_writes_is_seen_when_the_block_has_ended(self, store: Store) -> None:
        """A search asks several times, and its answers must fit together."""
        store.put_owners("n", [memory("a", "one")])
        writer = threading.Thread(target=store.put_owners, args=("n", [memory("b", "two"), memory("a", "three")]))
        with store.snapshot():
            writer.start()
            assert store.change() == 1
            assert list(store.passages("n", range(9))) == [1]
            assert store.deleted_since("n", 0, 9) == []
        writer.join()
        assert store.change() == 2
        assert list(store.passages("n", range(9))) == [2, 3]

    def test_what_a_search_asks_first_is_the_same_at_once_as_one_by_one(self, store: Store) -> None:
        """A snapshot of a namespace reads it in one statement."""

        def asked(namespace: str, change: int) -> tuple[object, ...]:
            head, token = store.head(namespace), store.token(namespace, change)
            known = store.counts(namespace), store.pending(namespace, change), store.notes(namespace, "k")
            return store.embedding(), head, token, *known, store.neighbours(namespace, range(9))

        store.put_owners("n", [memory("a", "one", "two", session="s"), memory("b", "three", session="s", position=1)])
        store.put_owners("n", [memory("a", "four")])
        with store.change_memories("n") as change:
            change.put(Note("k", "b", 2.5, "later"))
            change.put(Note("k", "a", 1.5, "first"))
        store.put_owners("m", [memory("c", "five")])
        for namespace in ("n", "m", "none"):
            for number in range(4):
                expected = asked(namespace, number)
                with store.snapshot(namespace, number, "k"):
                    assert asked(namespace, number) == expected

    def test_entries_that_are_followed_are_those_of_one_state(self, store: Store) -> None:
        """They are read in parts, and a part must not lack what an earlier one led to expect."""
        store.put_owners("n", [memory(str(number), "text") for number in range(1200)])
        writer = threading.Thread(target=store.delete_owners, args=("n", range(1100, 1201)))
        with store.snapshot():
            entries = store.entries_since("n", 0, 1200)
            first = next(entries)
            writer.start()
            assert [first.number, *(entry.number for entry in entries)] == list(range(1, 1201))
        writer.join()
        assert len(list(store.entries_since("n", 0, 1200))) == 1099

    def test_blocks_may_stand_inside_one_another(self, store: Store) -> None:
        """What is called inside a block may open one itself; the state is the outer block's."""
        store.put_owners("n", [memory("a", "one")])
        writer = threading.Thread(target=store.put_owners, args=("n", [memory("b", "two")]))
        with store.snapshot():
            writer.start()
            with store.snapshot():
                assert store.change() == 1
            assert store.change() == 1
            with pytest.raises(StoreError, match="cannot write"):
                store.put_owners("n", [])
        writer.join()
        assert store.change() == 2

    def test_writing_inside_the_block_is_refused(self, store: Store) -> None:
        """Else the block would have to show its own write, or hide it from whom it belongs to."""
        store.put_owners("n", [file("a", "x.py", "one")])
        with store.snapshot():
            for write in (
                lambda: store.put_owners("n", [memory("b", "two")]),
                lambda: store.delete_owners("n", [1]),
                lambda: store.restamp_artifacts("n", [("x.py", ".", STAMP)]),
                lambda: store.set_embedding(Embedding("static", "1", 4)),
            ):
                with pytest.raises(StoreError, match="a thread that reads from a snapshot cannot write; write after"):
                    write()
            assert list(store.owners("n", [1, 2])) == [1]
        assert store.put_owners("n", [memory("b", "two")]) == 2

    def test_an_error_in_the_block_ends_it(self, store: Store) -> None:
        """A search that failed must not leave its thread in the past."""
        with pytest.raises(KeyError), store.snapshot():
            raise KeyError
        assert store.put_owners("n", [memory("a", "one")]) == 1
        assert store.change() == 1

    def test_a_backup_inside_the_block_is_one_of_its_state(self, store: Store, tmp_path: Path) -> None:
        """As any other read."""
        store.put_owners("n", [memory("a", "one")])
        writer = threading.Thread(target=store.put_owners, args=("n", [memory("b", "two")]))
        with store.snapshot():
            writer.start()
            store.backup(tmp_path / "copy.db")
        writer.join()
        copy = Store.open(tmp_path / "copy.db", create=False)
        assert (copy.change(), store.change()) == (1, 2)
        copy.close()

    def test_a_store_closed_in_the_block_says_so(self, store: Store) -> None:
        """And the block ends in peace."""
        with store.snapshot():
            store.close()
            with pytest.raises(StoreError, match="is closed"):
                store.change()
        with pytest.raises(StoreError, match="is closed"), store.snapshot():
            pass


class TestPending:
    def test_pending_are_what_was_written_to_the_namespace_and_deleted_from_it(self, store: Store) -> None:
        """A search that waits for a large tail must know its size before it reads it."""
        store.put_owners("n", [memory("a", "one"), memory("b", "two", "three")])
        store.put_owners("m", [memory("a", "four")])
        store.put_owners("n", [memory("c", "five", "six")])
        store.put_owners("m", [memory("a", "seven")])
        assert store.pending("n", 0) == store.pending("n", -1) == (5, 0)
        assert store.pending("n", 1) == (2, 0)
        assert store.pending("n", 2) == (0, 0)
        assert store.pending("m", 0) == store.pending("m", 1) == (1, 1)
        assert store.pending("m", 2) == store.pending("m", 99) == (0, 0)
        assert store.pending("unknown", 0) == (0, 0)


def test_a_store_that_can_be_written_is_not_read_only(store: Store) -> None:
    """Who is told so does not try to index."""
    assert store.is_read_only is False
