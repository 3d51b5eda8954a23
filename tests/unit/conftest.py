"""What the unit tests share: a clock that stands still, and an engine that goes by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An engine over an empty store, whose time stands still until it is moved."""
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=clock) as engine:
        yield engine
