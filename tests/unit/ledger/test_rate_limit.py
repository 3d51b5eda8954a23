"""No minute has more operations than the limit allows, whoever does them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference_store.store import MemoryStore

from commonplace.ledger import rate_limit


def take(store: MemoryStore, now: float, count: int = 1, limit: int = 3, name: str = "n") -> float:
    with store.change_memories(name) as change:
        return rate_limit.take(change.ledger, now, count, limit)


def test_operations_fit_until_the_window_is_full() -> None:
    """The fourth waits until the first is a minute old; what waits takes nothing."""
    store = MemoryStore()
    assert [take(store, at) for at in (100.0, 110.0, 120.0)] == [0.0, 0.0, 0.0]
    assert take(store, 130.0) == 30.0
    assert take(store, 130.0, count=2) == 40.0
    assert rate_limit.remaining(store.ledger("n"), 130.0, 3) == 0
    assert take(store, 159.9) == pytest.approx(0.1)
    assert take(store, 160.0) == 0.0
    assert rate_limit.remaining(store.ledger("n"), 170.0, 3) == 1


def test_the_window_is_that_of_the_whole_store() -> None:
    """Namespaces share it, and so do processes."""
    store = MemoryStore()
    assert take(store, 100.0, count=2, name="n") == 0.0
    assert take(store, 100.0, count=2, name="m") == 60.0
    assert rate_limit.remaining(store.ledger("nowhere"), 100.0, 3) == 1


def test_without_a_limit_operations_are_counted_all_the_same() -> None:
    """Another process may have one."""
    store = MemoryStore()
    assert take(store, 100.0, count=5, limit=0) == 0.0
    assert rate_limit.remaining(store.ledger("n"), 100.0, 0) is None
    assert rate_limit.remaining(store.ledger("n"), 100.0, 3) == 0
    assert rate_limit.remaining(store.ledger("n"), 100.0, 7) == 2


def test_more_than_the_limit_at_once_goes_alone() -> None:
    """A merge writes several memories in one transaction, which cannot be spread over two minutes."""
    store = MemoryStore()
    assert take(store, 100.0, count=9) == 0.0
    assert take(store, 101.0) == 59.0
    assert take(store, 160.0, count=9) == 0.0


def test_old_operations_are_forgotten() -> None:
    """The table stays as small as the window."""
    store = MemoryStore()
    for at in range(0, 1000, 30):
        take(store, float(at))
    assert [at for at, _ in store.ledger("n").operations_since(0.0)] == [930.0, 960.0, 990.0]


def test_a_clock_that_went_ahead_holds_nobody_up_for_long() -> None:
    """What was counted next week says nothing of this minute."""
    store = MemoryStore()
    take(store, 1_000_000.0, count=3)
    assert take(store, 100.0) == 0.0
    take(store, 130.0, count=2)
    assert take(store, 110.0) == 50.0


@given(
    st.lists(st.tuples(st.floats(0, 40), st.integers(1, 4)), max_size=30),
    st.integers(1, 5),
    st.sampled_from([0.0, 1.7e9]),
)
def test_no_window_ever_holds_more_than_the_limit(steps: list[tuple[float, int]], limit: int, now: float) -> None:
    """Whoever waits as long as they are told gets through, and no minute holds too much."""
    store, taken = MemoryStore(), []
    for pause, count in steps:
        now += pause
        for _ in range(40):
            wait = take(store, now, count, limit)
            if not wait:
                break
            now += wait
        else:
            pytest.fail("it waits for ever")
        taken.append((now, count))
    for end, _ in taken:
        inside = [count for at, count in taken if end - rate_limit.WINDOW_S < at <= end]
        assert sum(inside) <= limit or len(inside) == 1
