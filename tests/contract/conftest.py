"""Every backend in turn, for the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.stores import BACKENDS

from commonplace.store.store import Store


@pytest.fixture(params=sorted(BACKENDS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store."""
    store = BACKENDS[request.param](tmp_path)
    yield store
    store.close()
