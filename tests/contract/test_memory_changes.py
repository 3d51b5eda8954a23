"""What every store promises of memories that are written: whole changes, numbers, places, and what is erased."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.memories import FULL_RECORD, add, everything, expire, latest, update, written
from tests.contract.stores import FULL_OWNER, NOTHING, UUID, file, memory

from commonplace.errors import StoreError, UsageError
from commonplace.store.store import Store
from commonplace.types import Filter, JournalBlock, JournalPage, Link, MemoryRecord, Note, OwnerWrite, Selection


class TestOneChange:
    def test_it_reads_its_own_writes_and_nobody_else_does(self, store: Store) -> None:
        """What is a duplicate is decided while nothing can come between; readers see it when it is whole."""
        with store.change_memories("n") as change:
            change.add(written("a", "one", digest="d", bands=(1,)), created_at=1.0)
            found = change.find("a")
            assert found is not None
            assert [same.number for same in change.alike("d", [])] == [1]
            change.revise(1, FULL_RECORD)
            change.expire(1, replace(FULL_RECORD, version=4), 2.0)
            assert change.alike("d", [1]) == []
            again = change.find("a")
            assert again is not None
            assert (again.record.version, again.expired_at) == (4, 2.0)
            assert change.add(written("a", "two"), created_at=2.0) == 2
            assert store.memory("n", "a") is None
            assert store.change() == 0
        assert latest(store, "a").number == 2
        assert store.change() == 1

    def test_a_change_that_fails_leaves_nothing(self, store: Store) -> None:
        """Half a change would be worse than none: neither rows nor numbers nor marks may stay."""
        add(store, written("a", "one", session="s"), written("b", "two"))
        with store.change_memories("n") as change:
            change.put(JournalPage("p", 1, 1, ""))
            change.link(Link("a", "b"))
            change.settle_due(["b"])
        before, count = everything(store, "n", ["a", "b", "c"], ["s"]), store.change()
        with pytest.raises(KeyError), store.change_memories("n") as change:
            change.expire(1, FULL_RECORD, 20.0)
            change.add(written("a", "three", session="s"), created_at=20.0)
            change.revise(2, FULL_RECORD)
            change.erase(["b"])
            change.unlink("a", "b")
            change.drop(JournalPage, page="p")
            change.put(JournalBlock("a", "p", ""))
            change.put(Note("k", "i", 0.0, ""))
            raise KeyError
        assert everything(store, "n", ["a", "b", "c"], ["s"]) == before
        assert store.notes("n", "k") == store.deleted_since("n", 0, 99) == []
        assert store.change() == count
        (number,) = add(store, written("c", "four"))  # PostgreSQL gives no number twice that a failed change had
        assert list(store.passages("n", range(99))) == [1, 2, number]

    def test_a_namespace_that_a_failed_change_would_have_made_is_not_there(self, store: Store) -> None:
        """It appears with the first thing that is written in it."""
        with pytest.raises(KeyError), store.change_memories("n") as change:
            change.add(written("a"), created_at=1.0)
            raise KeyError
        assert store.namespaces() == []

    @pytest.mark.parametrize("what", ["note", "page", "block", "link"])
    def test_whatever_is_written_first_makes_the_namespace(self, store: Store, what: str) -> None:
        """A backup is noted before the first memory is kept."""
        with store.change_memories("n") as change:
            if what == "note":
                change.put(Note("k", "i", 0.0, ""))
            elif what == "page":
                change.put(JournalPage("p", 1, 1, ""))
            elif what == "block":
                change.put(JournalBlock("a", "p", ""))
            else:
                change.link(Link("a", "b"))
        assert store.namespaces() == ["n"]
        assert store.change() == 0

    def test_a_change_that_is_over_can_do_nothing(self, store: Store) -> None:
        """Its transaction has ended: a write through it would belong to none."""
        with store.change_memories("n") as change:
            change.add(written("a", "one"), created_at=1.0)
        for use in (
            lambda: change.find("a"),
            lambda: change.add(written("b", "two"), created_at=1.0),
            lambda: change.erase(["a"]),
            lambda: change.put(Note("k", "i", 0.0, "")),
        ):
            with pytest.raises(StoreError, match="change of memories is over; begin another one"):
                use()
        assert [found.owner.id for found in store.memories("n", Selection())] == ["a"]

    def test_a_thread_writes_nothing_beside_its_change(self, store: Store) -> None:
        """It would wait for itself."""
        with store.change_memories("n") as change:
            change.add(written("a", "one"), created_at=1.0)
            for write in (
                lambda: store.put_owners("n", [memory("b", "two")]),
                lambda: store.delete_owners("n", [1]),
                lambda: store.erase_namespace("n"),
                lambda: store.change_memories("n").__enter__(),
            ):
                with pytest.raises(StoreError, match="that changes memories cannot write in another way; write after"):
                    write()
        assert latest(store, "a").number == 1

    def test_a_snapshot_refuses_a_change_and_sees_none(self, store: Store) -> None:
        """A search asks several times, and its answers must fit together."""
        add(store, written("a", "one"))
        writer = threading.Thread(target=update, args=(store, written("a", "two"), 20.0))
        with store.snapshot():
            before = everything(store, "n", ["a"])
            writer.start()
            with pytest.raises(StoreError, match="a thread that reads from a snapshot cannot write"):
                store.change_memories("n").__enter__()
            with pytest.raises(StoreError, match="a thread that reads from a snapshot cannot write"):
                store.erase_namespace("n")
            assert everything(store, "n", ["a"]) == before
        writer.join()
        assert latest(store, "a").number == 2

    def test_a_revised_time_is_that_by_which_a_memory_is_listed(self, store: Store) -> None:
        add(store, written("a", born_at=1.0), written("b", born_at=2.0), written("told", at=1.5))
        with store.change_memories("n") as change:
            change.revise(1, MemoryRecord("", born_at=3.0))
            change.revise(3, MemoryRecord("", born_at=3.0))
        assert [each.owner.id for each in store.memories("n", Selection())] == ["a", "b", "told"]
        assert store.check() == []


class TestNumbers:
    def test_a_number_is_taken_where_a_search_might_answer_otherwise(self, store: Store) -> None:
        """Else what is kept of answers would be thrown away for nothing, or kept though it is wrong."""
        add(store, written("a", "one"), written("b", "two"))
        assert store.change() == 1
        with store.change_memories("n") as change:
            change.find("a")
            change.revise(1, MemoryRecord("one", use_count=3, last_used=9.0, status="promoted", category="fact"))
            change.link(Link("a", "b"))
            change.put(JournalPage("p", 1, 1, ""))
            change.settle_due(["a"])
            change.put(Note("k", "i", 0.0, ""))
            change.expire(99, FULL_RECORD, 1.0)
            change.erase(["unknown"])
        assert store.change() == 1
        for number, record in enumerate(
            [MemoryRecord("", tier="long"), MemoryRecord("", tier="long", trust=0.5), MemoryRecord("", source="x")], 2
        ):
            with store.change_memories("n") as change:
                change.revise(1, record)
            assert store.change() == number
        expire(store, "b", 20.0)
        assert store.change() == 5
        add(store, written("b", "three"), at=1.0, until=2.0)
        assert store.change() == 6
        with store.change_memories("n") as change:
            change.erase(["a"])
        assert store.change() == 7
        assert len({store.token("n", change) for change in range(8)}) == 8

    def test_deletions_and_tails_follow_versions(self, store: Store) -> None:
        """The index takes what came and drops what went; what is erased later was dropped long ago."""
        add(store, written("a", "1", "2"), written("b", "3"))
        update(store, written("a", "4"), 20.0)
        assert store.deleted_since("n", 1, 2) == [1, 2]
        assert [entry.number for entry in store.tail("n", 1)] == [4]
        assert [entry.text for entry in store.entries_since("n", 0, 1)] == ["3"]
        assert store.pending("n", 0) == (2, 2)
        with store.change_memories("n") as change:
            assert change.erase(["a"]) == 2
        assert store.deleted_since("n", 2, 3) == [4]
        assert store.deleted_since("n", 0, 99) == [1, 2, 4]
        assert list(store.passages("n", range(9))) == [3]
        assert store.check() == []

    def test_what_comes_and_goes_in_one_change_is_not_there(self, store: Store) -> None:
        """Its numbers are not used again."""
        with store.change_memories("n") as change:
            assert change.add(written("a", "one"), created_at=1.0) == 1
            assert change.erase(["a"]) == 1
            assert change.add(written("a", "two"), created_at=1.0) == 2
        assert list(store.passages("n", range(9))) == [2]
        assert store.counts("n")["passages"] == 1
        assert store.check() == []


class TestAlike:
    def test_alike_are_live_memories_by_digest_or_band(self, store: Store) -> None:
        """A duplicate of what was forgotten or archived is no duplicate; no digest is no likeness."""
        add(store, written("a", digest="d", bands=(1, 2, 2)), written("b", digest="e", bands=(2, 3)), written("c"))
        add(store, written("x", digest="d", bands=(1,)), written("y", digest="e", bands=(3,)))
        expire(store, "x", 20.0)
        add(store, written("z", digest="d", bands=(1,)), at=1.0, until=2.0)
        add(store, written("a", digest="d", bands=(1,)), name="other")
        with store.change_memories("n") as change:
            for digest, bands, numbers in (
                ("d", (), [1]),
                ("e", (), [2, 5]),
                ("", (2,), [1, 2]),
                ("d", (3, 2), [1, 2, 5]),
                ("", (), []),
                ("D", (9,), []),
            ):
                assert [found.number for found in change.alike(digest, bands)] == numbers

    def test_revising_leaves_likeness_tags_and_text(self, store: Store) -> None:
        """A memory that is touched says what it said."""
        add(store, written("a", "one", digest="d", bands=(1,), tags=("t",)))
        with store.change_memories("n") as change:
            change.revise(1, FULL_RECORD)
            assert [found.record for found in change.alike("d", [])] == [FULL_RECORD]
        assert latest(store, "a").record == FULL_RECORD
        assert store.matching_owners("n", Filter(tags=("t",))) == [1]
        assert store.passages("n", [1])[1].chunk.text == "one"


class TestPlaces:
    def test_the_store_gives_the_next_place_of_the_session(self, store: Store) -> None:
        """Two hooks that remember at once must not take one place."""
        store.put_owners("n", [memory("x", session="s", position=4)])
        with store.change_memories("n") as change:
            for id_, session in (("a", "s"), ("b", "s"), ("c", UUID), ("d", "")):
                change.add(written(id_, session=session), created_at=1.0)
        add(store, written("e", session="s"), written("f", session="s", position=2), written("g", session="s"))
        add(store, written("a", session="s"), name="other")
        places = store.places("n", "memory", "abcdefg")
        assert [places[id_][1] for id_ in "abcdefg"] == [5, 6, 0, 0, 7, 2, 8]
        assert store.places("other", "memory", ["a"]) == {"a": ("s", 0)}

    def test_a_place_of_no_session_is_kept(self, store: Store) -> None:
        """There is nothing to count."""
        write = written("a")
        add(store, replace(write, owner=replace(write.owner, position=7)))
        assert latest(store, "a").owner.position == 7

    def test_a_session_that_is_full_says_so(self, store: Store) -> None:
        """The highest place that a store can hold is taken."""
        add(store, written("a", session="s", position=2**63 - 1))
        with pytest.raises(UsageError, match="needs more than 64 bits"):
            add(store, written("b", session="s"))
        assert store.counts("n")["memories"] == 1

    def test_threads_lose_no_place(self, store: Store) -> None:
        """Changes come one after another, each as a whole."""
        broken: list[int] = []

        def write(name: str) -> None:
            for number in range(15):
                with store.change_memories("n") as change:
                    change.add(written(f"{name}{number}", "x", session="s"), created_at=1.0)
                    change.add(written(f"{name}{number}b", "y", session="s"), created_at=1.0)

        def read() -> None:
            for _ in range(40):
                count = store.count_memories("n", Selection())
                if count % 2:
                    broken.append(count)

        threads = [threading.Thread(target=write, args=(name,)) for name in "ab"] + [threading.Thread(target=read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = {stored.owner.id: stored.owner.position for stored in store.memories("n", Selection())}
        assert sorted(found.values()) == list(range(60))
        assert all(found[f"{id_}b"] == position + 1 for id_, position in found.items() if not id_.endswith("b"))
        assert store.change() == 30
        assert broken == store.check() == []


class TestMarkdownDue:
    def test_whatever_changes_a_memory_makes_it_due(self, store: Store) -> None:
        """Its block is written again, and again after a crash, until both sides agree."""
        add(store, written("a", "one"), written("b"), written(UUID))
        add(store, written("c"), at=1.0, until=2.0)
        assert store.due("n") == sorted(["a", "b", "c", UUID])
        for act in (
            lambda change: change.revise(1, FULL_RECORD),
            lambda change: change.expire(1, FULL_RECORD, 20.0),
            lambda change: change.revise(1, FULL_RECORD),
            lambda change: change.add(written("a"), created_at=30.0),
            lambda change: change.link(Link("a", "unknown")),
            lambda change: change.unlink("a", "unknown"),
        ):
            with store.change_memories("n") as change:
                change.settle_due(["a", "b", "c", UUID, "unknown"])
                assert store.due("n") != []
            assert store.due("n") == []
            with store.change_memories("n") as change:
                act(change)
            assert store.due("n") == ["a"]

    def test_what_changes_nothing_makes_nothing_due(self, store: Store) -> None:
        """Else a sync would never come to rest."""
        add(store, written("a", "one"))
        expire(store, "a", 20.0)
        with store.change_memories("n") as change:
            change.settle_due(["a"])
        with store.change_memories("n") as change:
            change.expire(1, FULL_RECORD, 30.0)
            change.revise(99, FULL_RECORD)
            change.link(Link("unknown", "a"))
            change.unlink("a", "unknown")
            change.put(JournalBlock("a", "p", ""))
        assert store.due("n") == []
        assert (latest(store, "a").expired_at, latest(store, "a").record.content) == (20.0, "one")


class TestErasing:
    def test_erasing_leaves_nothing_that_any_method_can_see(self, store: Store) -> None:
        """Forgetting is built on it."""
        add(store, written("b", "stays", session="s", at=5.0))
        with store.change_memories("n") as change:
            change.link(Link("b", "c"))
            change.settle_due(["b"])
        before = everything(store, "n", ["a", "b"], ["s"])
        add(store, written("a", "one", session="s", at=5.0, tags=("t",), dates=((1.0, 2.0),), digest="d", bands=(1,)))
        update(store, written("a", "two", session="s", dates=((1.0, 2.0),), digest="d", bands=(1,), source="x"), 20.0)
        with store.change_memories("n") as change:
            change.link(Link("a", "b"))
            change.link(Link("b", "a"))
            change.put(JournalBlock("a", "p", ""))
            change.settle_due(["b"])
        with store.change_memories("n") as change:
            assert change.erase(["a", "unknown", "a"]) == 2
            assert change.find("a") is None
            assert change.alike("d", [1]) == []
        assert everything(store, "n", ["a", "b"], ["s"]) == before
        assert store.deleted_since("n", 0, 99) == [2, 3]
        assert store.matching_owners("n", Filter(tags=("t",), as_of=15.0)) == []
        assert store.matching_owners("n", Filter(sources=("x",))) == []
        assert store.check() == []

    def test_an_erased_id_may_be_given_again(self, store: Store) -> None:
        """Nothing of its former life comes with it."""
        add(store, written("a", "one"))
        with store.change_memories("n") as change:
            change.erase(["a"])
        assert add(store, written("a", "two")) == [2]
        assert [found.number for found in store.versions("n", "a")] == [2]

    def test_erasing_takes_marks_of_what_is_no_memory_too(self, store: Store) -> None:
        """A link to what was never here names it all the same."""
        with store.change_memories("n") as change:
            change.link(Link("a", "ghost"))
            change.put(JournalBlock("ghost", "p", ""))
            assert change.erase(["ghost"]) == 0
        assert store.links("n") == store.blocks("n") == []

    def test_a_namespace_is_erased_with_its_name(self, store: Store) -> None:
        """And the others keep all they have, under the numbers they had."""
        for name in ("m", "n"):
            store.put_owners(name, [file("a", "x.py", "one"), OwnerWrite(replace(FULL_OWNER, session="s"), ())])
            add(
                store, written("a", "two", session="s", at=5.0, tags=("t",), bands=(1,), dates=((1.0, 2.0),)), name=name
            )
            update(store, written("a", "three", digest="d"), 20.0, name=name)
            with store.change_memories(name) as change:
                change.link(Link("a", "b"))
                change.put(JournalPage("p", 1, 1, ""))
                change.put(JournalBlock("a", "p", ""))
                change.put(Note("k", "i", 0.0, ""))
        kept, nothing = everything(store, "m", ["a"], ["s"]), everything(store, "unknown", ["a"], ["s"])
        assert store.erase_namespace("n") == 4
        assert store.namespaces() == ["m"]
        assert everything(store, "m", ["a"], ["s"]) == kept
        assert everything(store, "n", ["a"], ["s"]) == nothing
        assert store.notes("n", "k") == []
        assert len(store.notes(None, "k")) == 1
        assert store.counts() == store.counts("m")
        assert (store.change(), store.change("n"), store.deleted_since("n", 0, 99)) == (store.change("m"), 0, [])
        assert store.check() == []
        assert store.put_owners("n", [memory("a", "four")]) == 1
        assert store.versions("n", "a") == []
        assert store.counts("n") == NOTHING | {"owners": 1, "passages": 1, "text_bytes": 4, "memories": 1}

    def test_a_namespace_that_is_not_there_is_not_erased(self, store: Store) -> None:
        """And takes no number."""
        assert store.erase_namespace("n") == store.change() == 0

    def test_a_namespace_without_owners_is_erased_too(self, store: Store) -> None:
        """A name is something to forget."""
        with store.change_memories("n") as change:
            change.put(Note("k", "i", 0.0, ""))
        assert store.erase_namespace("n") == 0
        assert store.namespaces() == store.notes(None, "k") == []
        assert store.change() == 0

    def test_what_was_deleted_is_in_no_file(self, store: Store) -> None:
        """The promise of forgetting, as far as a store can keep it."""
        secret = "unmistakable " * 50
        add(store, written("a", secret, source=secret), written("b", "two"))
        with store.change_memories("n") as change:
            change.erase(["a"])
        assert store.compact() is True
        assert store.compact(thorough=True) is True
        assert not [name for name in store.files() if b"unmistakable" in Path(name).read_bytes()]
        assert latest(store, "b").record.content == "two"
        assert all(Path(name).is_absolute() for name in store.files())
