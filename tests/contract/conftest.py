"""Every backend in turn, for the contract of stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.stores import BACKENDS, PARTITIONED

from commonplace.store.store import Store

_ON_PARTITIONS = (
    "test_store",
    "test_store_reembedding",
    "test_store_pending_vectors",
    "test_memory_changes",
    "test_store_graph_changes",
)
"""The modules of the contract that write to each table and cross namespaces."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a store on every backend."""
    if "store" in metafunc.fixturenames:
        is_cut = metafunc.module.__name__.rpartition(".")[2] in _ON_PARTITIONS
        names = [*sorted(BACKENDS), *(PARTITIONED if is_cut else ())]
        metafunc.parametrize("store", names, indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store."""
    store = (BACKENDS | PARTITIONED)[request.param](tmp_path)
    yield store
    store.close()
