"""A store with memories, a clock and a rate limit that pass only when they are told to, and an agent of our own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.engine import Engine
from commonplace.types import Selection

NOW = 1_750_000_000.0


class Clock:
    """Seconds since the epoch, which only pass when somebody waits."""

    def __init__(self) -> None:
        self.now = NOW
        self.waited: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


class Shelf:
    """An engine whose agents wait by a clock of the tests'."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock

    def consolidation_runtime(self) -> ConsolidationRuntime:
        return replace(self.engine.consolidation_runtime(), sleep=self.clock.sleep)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shelf(book: Engine, clock: Clock) -> Shelf:
    return Shelf(book, clock)


def dump(book: Engine) -> list[object]:
    """Return all that the store holds of memories, past versions and links too, without the numbers of rows."""
    store, name = book._runtime.store, book.namespace
    versions = [
        replace(version, number=0)
        for memory in store.memories(name, Selection(order="id"))
        for version in store.versions(name, memory.owner.id)
    ]
    return [*versions, *store.links(name)]
