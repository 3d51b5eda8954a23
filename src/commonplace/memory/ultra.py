"""The ultra tier: a bounded set of memories in this process, never written to disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.dataclasses import replace
from commonplace.ingest.passages import Destination
from commonplace.memory.service import MemoryService
from commonplace.memory.usage import Use, write_uses
from commonplace.memory.view import Memory, RetentionPolicy
from commonplace.search.request import Request
from commonplace.search.result import SearchResult
from commonplace.search.retrieve import Searcher
from commonplace.store.store import Store
from commonplace.types import Selection, StoredMemory

MAX_TOKENS = 8_000
"""Tokens that the ultra tier holds; the oldest memories leave first."""


class Ultra:
    """Memories in this process. They fade, are found and are touched like others. Safe for threads.

    Attributes:
        store: holds them; it has no file.
    """

    def __init__(
        self,
        destination: Destination,
        policy: RetentionPolicy,
        now: Callable[[], float],
        search: Callable[[Store], Searcher],
        count_tokens: Callable[[str], int],
    ) -> None:
        """Begin with none.

        Args:
            search: makes the searcher over a store that has no index.
            count_tokens: of a text, for the bound.
        """
        self._count_tokens = count_tokens
        self.store = Store.in_memory()
        self._destination = replace(destination, store=self.store, later_above=None)
        self._namespace = destination.namespace
        self._policy = policy
        self._lock = threading.Lock()
        self.store.set_embedding(destination.embedder.stamp)
        self._service = MemoryService(self._destination, policy, now, has_ultra=True)
        self._searcher = search(self.store)

    def remember(self, items: Sequence[Mapping[str, Any]], *, force: bool) -> list[Memory]:
        """Take memories in, and let the oldest go where there are too many."""
        with self._lock:
            kept = self._service.remember(items, force=force)
            self._shrink()
        return kept

    def touch(self, id_: str, *, reinforce: bool) -> Memory:
        """Count one more use; where that earns a tier, the memory says so, and its place is no longer here."""
        return self._service.touch([id_], reinforce=reinforce)[0]

    def count_uses(self, uses: Sequence[Use]) -> list[StoredMemory]:
        """Count uses, of what is here, and return the memories whose place is no longer here."""
        write_uses(self.store, self._namespace, self._policy, uses)
        found = map(self.find, dict.fromkeys(use.id for use in uses))
        return [each for each in found if each is not None and each.record.tier != "ultra"]

    def search(self, request: Request) -> SearchResult:
        """Answer a request from what is here."""
        return self._searcher.search(request)

    def find(self, id_: str) -> StoredMemory | None:
        """Return a memory that is here."""
        found = self.store.memory(self._namespace, id_)
        return found if found is not None and found.expired_at is None else None

    def all(self, selection: Selection) -> list[StoredMemory]:
        """Return the memories that a selection chooses."""
        return self.store.memories(self._namespace, selection)

    def erase(self, ids: Sequence[str]) -> int:
        """Let memories go; return how many were here."""
        with self._lock, self.store.change_memories(self._namespace) as change:
            return change.erase([id_ for id_ in ids if self.find(id_) is not None])

    def _shrink(self) -> None:
        total, leaving = 0, []
        for stored in self.store.memories(self._namespace, Selection()):
            total += self._count_tokens(stored.record.content)
            if total > MAX_TOKENS:
                leaving.append(stored.owner.id)
        if leaving:
            with self.store.change_memories(self._namespace) as change:
                change.erase(leaving)
