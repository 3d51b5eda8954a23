from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.journal.book import Book, zone


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with zone("UTC"):
        yield Book(tmp_path)
