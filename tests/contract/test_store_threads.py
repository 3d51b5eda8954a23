"""What every store promises to threads that use it at once, and after it is closed."""

from __future__ import annotations

import threading

import pytest
from tests.contract.stores import memory

from commonplace.errors import StoreError
from commonplace.store.store import Store


class TestThreadsAndClosing:
    def test_threads_may_write_and_read_at_once(self, store: Store) -> None:
        """Each of the writes must arrive, once, and readers must see whole writes only."""
        broken: list[int] = []

        def write(name: str) -> None:
            for number in range(20):
                store.put_owners("n", [memory(f"{name}{number}", "x", "y")])

        def read() -> None:
            for _ in range(60):
                counts = store.counts("n")
                if counts["passages"] != 2 * counts["owners"]:
                    broken.append(counts["passages"])

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert broken == []
        assert store.change() == 80
        assert store.counts("n")["passages"] == 160
        assert store.check() == []

    def test_closing_twice_is_harmless(self, store: Store) -> None:
        """Cleanup code runs in any order."""
        store.close()
        store.close()
        with pytest.raises(StoreError, match="is closed"):
            store.change()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        """Rather than show what the driver thinks of it."""
        store.close()
        with pytest.raises(StoreError, match="is closed"):
            store.change()
        with pytest.raises(StoreError, match="is closed"):
            store.put_owners("n", [memory("a", "one")])
