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
"""Maximum number of tokens in the ultra tier; the oldest memories are dropped first."""


class Ultra:
    """Memories of this process. They fade, are found and are touched like others. Safe for threads.

    Args:
        search: makes a searcher over a store without an index.
        count_tokens: returns the number of tokens of a text.

    Attributes:
        store: holds them; it has no file.
        service: changes them; a memory returned in another tier has earned it, and must be moved to the real store.
        searcher: searches them.
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
        own_destination = replace(destination, store=self.store, later_above=None)
        self.service = MemoryService(own_destination, policy, now, has_ultra=True)
        self.searcher = search(self.store)
        self._namespace = destination.namespace
        self._count_tokens = count_tokens
        self._lock = threading.Lock()

    def remember(self, items: Sequence[Mapping[str, Any]], *, force: bool) -> list[Memory]:
        """Store memories, and drop the oldest if there are too many."""
        with self._lock:
            memories = self.service.remember(items, force=force)
            total, dropped_ids = 0, []
            for stored in self.all(Selection()):
                total += self._count_tokens(stored.record.content)
                if total > MAX_TOKENS:
                    dropped_ids.append(stored.owner.id)
            if dropped_ids:
                with self.store.change_memories(self._namespace) as change:
                    change.erase(dropped_ids)
        return memories

    def find(self, id_: str) -> StoredMemory | None:
        memory = self.store.memory(self._namespace, id_)
        return memory if memory is not None and memory.expired_at is None else None

    def all(self, selection: Selection) -> list[StoredMemory]:
        return self.store.memories(self._namespace, selection)

    def erase(self, ids: Sequence[str]) -> int:
        """Delete memories; return how many there were."""
        with self._lock, self.store.change_memories(self._namespace) as change:
            return change.erase([id_ for id_ in ids if self.find(id_) is not None])
