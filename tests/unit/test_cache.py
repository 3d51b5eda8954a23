"""The aging cache, with a clock of its own."""

from __future__ import annotations

from commonplace.search.cache import AgingCache


def test_a_value_is_gone_after_its_time_and_the_least_used_one_beyond_the_size() -> None:
    """A cache that keeps stale or endless values would lie or leak."""
    now = [0.0]
    cache: AgingCache[int] = AgingCache(2, 10.0, clock=lambda: now[0])
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    now[0] = 10.5
    assert cache.get("a") is None


def test_a_cache_of_size_0_keeps_nothing_and_clear_forgets() -> None:
    """Size 0 is how a user turns a cache off."""
    off: AgingCache[int] = AgingCache(0, 10.0)
    off.put("a", 1)
    assert off.get("a") is None
    on: AgingCache[int] = AgingCache(1, 10.0)
    on.put("a", 1)
    on.clear()
    assert on.get("a") is None
