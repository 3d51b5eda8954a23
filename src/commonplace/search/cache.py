"""A bounded cache whose entries age. It knows keys and times, not what it keeps."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class AgingCache(Generic[Value]):
    """Keep the most recently used `max_size` values for at most `ttl_s` seconds. Safe for threads."""

    def __init__(self, max_size: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_size = max_size
        self._ttl_s = ttl_s
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """Return the value, or None when there is none or it is too old."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            born, value = entry
            if self._clock() - born > self._ttl_s:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, dropping the least recently used one beyond the size."""
        if self._max_size <= 0:
            return
        with self._lock:
            self._entries[key] = (self._clock(), value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_size:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
