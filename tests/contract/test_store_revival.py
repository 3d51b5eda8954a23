"""What every store promises of a memory that was past and is live again: nothing but its numbers tells of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.contract.memories import FULL_MEMORY_OWNER, FULL_RECORD, add, expire, latest, written
from tests.contract.stores import UUID, memory, passage

from commonplace.errors import StoreError, UsageError
from commonplace.store.store import Store
from commonplace.types import Filter, Link, MemoryRecord, MemoryWrite

WRITE = MemoryWrite(
    FULL_MEMORY_OWNER,
    (passage("one"), passage("three", "q")),
    FULL_RECORD,
    digest="ab" * 32,
    bands=(3, 5),
    dates=((1.0, 2.0), (5.0, math.inf)),
    is_placed=True,
)


def revive(store: Store, id_: str, *, bands: tuple[int, ...] = (), name: str = "n") -> int:
    """Make the latest version live again, its record as it is."""
    with store.change_memories(name) as change:
        found = change.find(id_)
        assert found is not None
        return change.revive(found.number, found.record, bands=bands)


def test_a_revived_memory_has_all_that_it_had_and_new_numbers(store: Store) -> None:
    """The index let go of its passages: under their old numbers it would never take them up again."""
    (number,) = add(store, WRITE)
    expire(store, UUID, 20.0)
    revived = revive(store, UUID, bands=(3, 5))
    stored = latest(store, UUID)
    assert (revived, stored.number) == (number + 1, number + 1)
    assert (stored.owner, stored.record) == (WRITE.owner, WRITE.record)
    assert (stored.created_at, stored.expired_at) == (10.0, None)
    assert store.versions("n", UUID) == [stored]
    assert [each.chunk for each in store.passages("n", [3, 4]).values()] == [new.chunk for new in WRITE.passages]
    assert [store.passages("n", [n])[n].id for n in (3, 4)] == ["p", "q"]
    assert store.passages("n", [1, 2]) == {}
    assert store.dated("n", 0.0, 9.0) == [(revived, 1.0, 2.0), (revived, 1.5, 1.5), (revived, 5.0, math.inf)]
    assert store.places("n", "memory", [UUID]) == {UUID: ("s", 7)}
    assert store.due("n") == [UUID]
    assert store.check() == []


def test_the_index_takes_up_what_was_revived(store: Store) -> None:
    """It follows the change sequence: the new passages are in the change, the old ones were deleted before."""
    add(store, WRITE)
    expire(store, UUID, 20.0)
    revive(store, UUID)
    assert (store.change(), store.deleted_since("n", 0, 3)) == (3, [1, 2])
    assert [entry.number for entry in store.entries_since("n", 2, 4)] == [3, 4]
    assert [entry.number for entry in store.tail("n", 2)] == [3, 4]
    assert (store.past("n", 15.0), store.past("n", 25.0)) == ([], [])
    assert store.matching_owners("n", Filter(as_of=15.0)) == store.matching_owners("n", Filter()) == [2]
    assert store.counts("n")["passages"] == 2


def test_a_revived_memory_is_found_by_its_digest_and_the_bands_given(store: Store) -> None:
    """What is remembered again is compared with it."""
    add(store, WRITE)
    expire(store, UUID, 20.0)
    revived = revive(store, UUID, bands=(5, 9))
    with store.change_memories("n") as change:
        for digest, bands in (("ab" * 32, ()), ("", (9,)), ("", (5, 3))):
            assert [each.number for each in change.alike(digest, bands)] == [revived]
        assert change.alike("", (3,)) == []


def test_earlier_versions_stay_past(store: Store) -> None:
    """Only the latest comes back, and it stays the latest."""
    add(store, written("m", "one"), until=12.0)
    add(store, written("m", "two"), at=12.0)
    expire(store, "m", 20.0)
    assert revive(store, "m") == 3
    assert [(each.number, each.expired_at) for each in store.versions("n", "m")] == [(1, 12.0), (3, None)]
    with store.change_memories("n") as change, pytest.raises(StoreError, match="version 1 is not the latest"):
        change.revive(1, MemoryRecord("one"))
    assert store.change() == 4


def test_the_record_is_the_one_given(store: Store) -> None:
    """An archived memory says so in its record."""
    add(store, written("m", "one", status="archived"), until=12.0)
    with store.change_memories("n") as change:
        number = change.revive(1, MemoryRecord("one", status="active", use_count=3))
        found = change.find("m")
        assert found is not None
        assert (found.number, found.record.status, found.record.use_count) == (number, "active", 3)
    assert latest(store, "m").record.status == "active"


def test_a_live_memory_keeps_its_number(store: Store) -> None:
    """It is revised, no more."""
    add(store, written("m", "one"))
    with store.change_memories("n") as change:
        assert change.revive(1, MemoryRecord("one", use_count=3)) == 1
    assert (latest(store, "m").record.use_count, store.change()) == (3, 1)


def test_what_cannot_be_revived_is_refused(store: Store) -> None:
    """No version, nobody's version, one whose id another owner took, and one with numbers that do not fit."""
    add(store, written("m", "one"), until=12.0)
    add(store, written("m", "one"), name="other")
    record = MemoryRecord("one")
    with store.change_memories("n") as change:
        for number in (2, 99, 0, -1):
            with pytest.raises(StoreError, match=f"version {number} is not the latest"):
                change.revive(number, record)
        with pytest.raises(UsageError, match="64 bits"):
            change.revive(1, record, bands=(2**63,))
        with pytest.raises(UsageError, match="is not a number"):
            change.revive(1, replace(record, last_used=math.nan))
    store.put_owners("n", [memory("m", "a document")])
    with store.change_memories("n") as change, pytest.raises(StoreError, match="there is a live version"):
        change.revive(1, record)
    assert latest(store, "m").expired_at == 12.0
    assert store.check() == []


def test_a_revival_that_fails_leaves_the_memory_past(store: Store) -> None:
    """Everything that undoes is one transaction."""
    add(store, written("m", "one"), until=12.0)
    with pytest.raises(KeyError), store.change_memories("n") as change:
        change.revive(1, MemoryRecord("one"))
        raise KeyError
    assert (latest(store, "m").number, latest(store, "m").expired_at, store.change()) == (1, 12.0, 1)


def test_a_change_reads_the_links_of_memories(store: Store) -> None:
    """What is undone is compared with what stands, inside the transaction."""
    links = [Link("a", "b", "x"), Link("b", "c", "x"), Link("b", "c", "y"), Link("d", "e", "x")]
    with store.change_memories("n") as change:
        assert change.links(["a"]) == []
        for link in reversed(links):
            change.link(link)
        assert change.links(["b", "a", "b"]) == links[:3]
        assert change.links(["e"]) == links[3:]
        assert change.links([]) == []
    with store.change_memories("other") as change:
        assert change.links(["a"]) == []
