"""What every store promises about the times of memories at a time in the past, and about the passages of owners."""

from __future__ import annotations

from math import inf

from tests.contract.memories import add, expire, written
from tests.contract.stores import file, memory

from commonplace.store.store import Store
from commonplace.types import Owner, OwnerWrite


def test_dates_as_of_a_time_are_those_of_the_versions_live_then(store: Store) -> None:
    """A search as of last week must not be led by what was learned since, nor miss what was replaced."""
    add(store, written("a", at=5.0, dates=((1.0, 2.0),)), at=10.0)
    expire(store, "a", 20.0)
    add(store, written("a", at=6.0, dates=((3.0, 4.0),)), at=20.0)
    add(store, written("b", at=7.0), at=30.0)
    add(store, written("c", at=8.0), at=10.0, name="other")
    assert store.dated("n", -inf, inf) == [(2, 3.0, 4.0), (2, 6.0, 6.0), (3, 7.0, 7.0)]
    assert store.dated("n", -inf, inf, as_of=9.0) == []
    assert store.dated("n", -inf, inf, as_of=10.0) == [(1, 1.0, 2.0), (1, 5.0, 5.0)]
    assert store.dated("n", -inf, inf, as_of=20.0) == [(2, 3.0, 4.0), (2, 6.0, 6.0)]
    assert store.dated("n", 5.0, 6.0, as_of=19.0) == [(1, 5.0, 5.0)]
    assert store.dated("n", 2.0, 3.0, as_of=19.0) == []


def test_the_time_of_an_owner_of_the_kind_memory_counts_without_a_record(store: Store) -> None:
    """Turns of a conversation that were indexed as documents happened at a time too; files did not."""
    turn = OwnerWrite(Owner("turn", "memory", at=5.0), ())
    store.put_owners("n", [turn, OwnerWrite(Owner("doc", "artifact", at=5.0), ())], at=10.0)
    assert store.dated("n", 0.0, 9.0) == [(1, 5.0, 5.0)]
    assert store.dated("n", 0.0, 9.0, as_of=9.0) == []


def test_the_passages_of_owners_are_told_by_number(store: Store) -> None:
    """Live or past: whoever names an owner by number knows which version is meant."""
    store.put_owners("n", [memory("1", "a", "b"), file("2", "x.md", "c"), memory("3")])
    add(store, written("4", "d", "e"))
    expire(store, "4", 20.0)
    assert store.passages_of("n", [4, 1, 3, 1]) == [1, 2, 4, 5]
    assert store.passages_of("n", [2, 99, -1]) == [3]
    assert store.passages_of("other", [1]) == store.passages_of("n", []) == []
