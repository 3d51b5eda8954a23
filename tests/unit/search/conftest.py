from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.stores import BACKENDS
from tests.unit.search.notebook import Notebook, notebook


@pytest.fixture(params=sorted(BACKENDS))
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notebook]:
    """Give an empty notebook over every store in turn."""
    made = notebook(request.param, tmp_path / "store")
    yield made
    made.close()
