"""The ultra tier: a bounded set of memories in this process, never written to disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.dataclasses import replace
from commonplace.ingest.passages import Destination
from commonplace.memory.service import MemoryService
from commonplace.memory.view import Memory
from commonplace.retention import RetentionPolicy
from commonplace.search.retrieve import Searcher
from commonplace.store.store import Store
from commonplace.types import Selection, StoredMemory

MAX_TOKENS = 8_000
"""Tokens that the ultra tier holds; the oldest memories leave first."""


class Ultra:
    """Memories in this process. They fade, are found and are touched like others. Safe for threads.

    Args:
        search: makes the searcher over a store that has no index.
        count_tokens: of a text, for the bound.

    Attributes:
        store: holds them; it has no file.
        service: changes them; a memory that earns another tier says so, and its place is no longer here.
        searcher: finds in them.
    """

    def __init__(
        self,
        destination: Destination,
        policy: RetentionPolicy,
        now: Callable[[], float],
        search: Callable[[Store], Searcher],
        count_tokens: Callable[[str], int],
    ) -> None:
        self.store = Store.in_memory()
        self.store.set_embedding(destination.embedder.stamp)
        here = replace(destination, store=self.store, later_above=None)
        self.service = MemoryService(here, policy, now, has_ultra=True)
        self.searcher = search(self.store)
        self._namespace = destination.namespace
        self._count_tokens = count_tokens
        self._lock = threading.Lock()

    def remember(self, items: Sequence[Mapping[str, Any]], *, force: bool) -> list[Memory]:
        """Store memories, and drop the oldest if there are too many."""
        with self._lock:
            kept = self.service.remember(items, force=force)
            total, leaving = 0, []
            for stored in self.all(Selection()):
                total += self._count_tokens(stored.record.content)
                if total > MAX_TOKENS:
                    leaving.append(stored.owner.id)
            if leaving:
                with self.store.change_memories(self._namespace) as change:
                    change.erase(leaving)
        return kept

    def find(self, id_: str) -> StoredMemory | None:
        found = self.store.memory(self._namespace, id_)
        return found if found is not None and found.expired_at is None else None

    def all(self, selection: Selection) -> list[StoredMemory]:
        return self.store.memories(self._namespace, selection)

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories; return how many there were."""
        with self._lock, self.store.change_memories(self._namespace) as change:
            return change.erase([id_ for id_ in ids if self.find(id_) is not None])
