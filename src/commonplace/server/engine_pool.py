"""The engines of one store by namespace, opened when a request needs one; they share store, index and models."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from commonplace.dataclasses import dataclass

if TYPE_CHECKING:
    from commonplace.engine import Engine


MAX_OPEN: Final = 64
"""More namespaces than that are closed, those first that were used longest ago, unless a request is using them."""


@dataclass(slots=True)
class _Open:
    engine: Engine
    uses: int = 0


class EnginePool:
    """Engines by namespace. Safe for threads.

    Args:
        open_engine: opens the store, and is called once, with the first request.
    """

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open_engine = open_engine
        self._lock = threading.Lock()
        self._root: Engine | None = None
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def root(self) -> Engine:
        """Return the engine of the store as it was opened, in the namespace of the settings."""
        with self._lock:
            if self._root is None:
                self._root = self._open_engine()
            return self._root

    @contextmanager
    def use(self, namespace: str) -> Iterator[Engine]:
        """Yield the engine of a namespace; it stays open meanwhile.

        Raises:
            UsageError: the name is none.
        """
        root = self.root()
        with self._lock:
            entry = self._open.get(namespace)
            if entry is None:
                entry = self._open[namespace] = _Open(root.in_namespace(namespace, is_served=True))
            entry.uses += 1
            self._open.move_to_end(namespace)
            surplus = self._surplus()
        for engine in surplus:
            engine.close()
        try:
            yield entry.engine
        finally:
            with self._lock:
                entry.uses -= 1

    def close(self) -> None:
        """Close all; requests are over by then."""
        with self._lock:
            for entry in self._open.values():
                entry.engine.close()
            self._open.clear()
            if self._root is not None:
                self._root.close()
                self._root = None

    def _surplus(self) -> list[Engine]:
        idle = [name for name, entry in self._open.items() if not entry.uses]
        return [self._open.pop(name).engine for name in idle[: max(0, len(self._open) - MAX_OPEN)]]
