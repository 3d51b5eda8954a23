from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """An engine over nine memories, with the embedder that people have."""
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        book.remember_many([{"content": f"Kettle {n} boils in {n + 2} minutes", "id": f"kettle {n}"} for n in range(9)])
        yield book
