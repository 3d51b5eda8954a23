"""A bounded cache with expiry."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from commonplace.dataclasses import dataclass

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a cache: number of entries, bytes as counted by the caller, and age in seconds."""

    max_entries: int
    max_bytes: int
    ttl_s: float


class AgingCache(Generic[Value]):
    """Keep the most recently used values within bounds. Safe for threads.

    Attributes:
        size_bytes: total size of the cached values, as given to `put`.
    """

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[float, int, Value]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """Return the value, or None if it is absent or expired."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            stored_at, _, value = entry
            if self._clock() - stored_at > self._bounds.ttl_s:
                self._drop(key)
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: Value, size_bytes: int) -> None:
        """Cache a value and evict the least recently used ones beyond the bounds; an oversized value is not cached."""
        with self._lock:
            if key in self._entries:
                self._drop(key)
            if self._bounds.max_entries <= 0 or size_bytes > self._bounds.max_bytes:
                return
            self._entries[key] = (self._clock(), size_bytes, value)
            self.size_bytes += size_bytes
            while len(self._entries) > self._bounds.max_entries or self.size_bytes > self._bounds.max_bytes:
                self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.size_bytes = 0

    def _drop(self, key: Hashable) -> None:
        self.size_bytes -= self._entries.pop(key)[1]
