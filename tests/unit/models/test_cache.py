"""The aging cache, with a clock of its own, and the bounds of those that a searcher keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.models.cache import AgingCache, Bounds
from commonplace.search.retrieve import QUERY_CACHE, RANKING_CACHE


def test_a_value_is_gone_after_its_time_and_the_least_used_one_beyond_the_number() -> None:
    """A cache that keeps stale or endless values would lie or leak."""
    now = [0.0]
    cache: AgingCache[int] = AgingCache(Bounds(2, 100, 10.0), clock=lambda: now[0])
    cache.put("a", 1, 1)
    cache.put("b", 2, 1)
    assert cache.get("a") == 1
    cache.put("c", 3, 1)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    now[0] = 10.5
    assert cache.get("a") is None
    assert cache.size_bytes == 1


def test_the_least_used_values_go_when_all_together_have_too_many_bytes() -> None:
    """A thousand rankings of a hundred candidates are 25 MB, half of what a process may have."""
    cache: AgingCache[str] = AgingCache(Bounds(1_000, 100, 10.0))
    for key in "abc":
        cache.put(key, key, 40)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, "b", "c")
    assert cache.size_bytes == 80
    cache.put("d", "d", 100)
    assert (len(cache), cache.get("d"), cache.size_bytes) == (1, "d", 100)


def test_a_value_that_is_too_large_alone_is_not_kept_and_drives_nothing_out() -> None:
    """Nor does the value stay that it was to replace."""
    cache: AgingCache[int] = AgingCache(Bounds(10, 100, 10.0))
    cache.put("a", 1, 60)
    cache.put("b", 2, 101)
    assert (cache.get("a"), cache.get("b")) == (1, None)
    cache.put("a", 3, 101)
    assert (cache.get("a"), cache.size_bytes) == (None, 0)


def test_a_value_put_again_counts_once() -> None:
    """Two threads may answer the same question at the same time."""
    cache: AgingCache[int] = AgingCache(Bounds(10, 100, 10.0))
    cache.put("a", 1, 60)
    cache.put("a", 2, 70)
    assert (cache.get("a"), cache.size_bytes) == (2, 70)


@pytest.mark.parametrize("bounds", [Bounds(0, 100, 10.0), Bounds(10, 0, 10.0)])
def test_a_cache_of_size_0_keeps_nothing(bounds: Bounds) -> None:
    """Size 0 is how a cache is turned off."""
    off: AgingCache[int] = AgingCache(bounds)
    off.put("a", 1, 1)
    assert off.get("a") is None


def test_clear_forgets() -> None:
    """What another state of the store answered is of no use."""
    on: AgingCache[int] = AgingCache(Bounds(1, 100, 10.0))
    on.put("a", 1, 1)
    on.clear()
    assert (on.get("a"), len(on), on.size_bytes) == (None, 0, 0)


def test_what_a_searcher_keeps_stays_within_its_bytes(tmp_path: Path) -> None:
    """The two caches are what a server of a year would hold most of."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        for number in range(40):
            book.remember(f"A thing of its own kind, told apart by number {number}", force=True)
        kept, prepared = book._runtime.searcher._rankings, book._runtime.searcher._queries
        for number in range(250):
            book.search(f"which thing has number {number}")
            assert 0 < kept.size_bytes <= RANKING_CACHE.max_bytes
            assert 0 < prepared.size_bytes <= QUERY_CACHE.max_bytes
        assert len(kept) < 250
