"""Small owners and passages for the contract of stores, and the backends that it binds.

A new backend joins by one entry in `BACKENDS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reference_store.store import MemoryStore

from commonplace.errors import StoreError
from commonplace.store.schema import numbers_after
from commonplace.store.store import Store
from commonplace.types import Chunk, FileStamp, NewPassage, Owner, OwnerWrite

BACKENDS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda directory: MemoryStore(),
    "sqlite in memory": lambda directory: Store.in_memory(),
    "sqlite": lambda directory: Store.create(directory / "store.db"),
    "postgres": lambda directory: _on_server(),
}
PARTITIONED: dict[str, Callable[[Path], Store]] = {"postgres in partitions": lambda directory: _on_server(3)}
"""What differs from `postgres` in where rows lie, so that a part of the contract is enough."""


def _on_server(partitions: int = 0) -> Store:
    from tests import postgres  # others need neither a driver nor a server

    return postgres.empty_store(partitions)


STAMP = FileStamp("ab" * 32, 10, 1_700_000_000_123_456_789, "1/512/50")
SECOND = numbers_after(2)
"""What numbers of rows in the namespace that was made second are counted from."""
UUID = "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"
NOTHING = {"owners": 0, "passages": 0, "text_bytes": 0, "artifacts": 0, "memories": 0, "knowledge": 0}


def passage(text: str, id_: str = "p") -> NewPassage:
    return NewPassage(id_, Chunk(text, 1, 2, "heading"), b"\x01\x00\x02\x00", bytes([len(text) % 256] * 4))


def memory(id_: str, *texts: str, session: str = "", position: int = 0) -> OwnerWrite:
    return OwnerWrite(Owner(id_, "memory", session=session, position=position), tuple(map(passage, texts)))


def file(id_: str, path: str, *texts: str) -> OwnerWrite:
    return OwnerWrite(Owner(id_, "artifact", path=path, root=".", stamp=STAMP), tuple(map(passage, texts)))


FULL_OWNER = Owner(
    UUID,
    "artifact",
    title="Title",
    summary="What it is",
    tags=("b", "a", "b"),
    type="code",
    phase="construction",
    references=("docs/a.md", "b"),
    path="src/a.py",
    root="src",
    session="s",
    position=7,
    at=1.5,
    stamp=STAMP,
)


def read_around_a_fork(store: Store) -> list[tuple[list[str], int]]:
    """Return what a store reads in a snapshot, there when a child forked in it has ended, and after it.

    The child is refused, and leaves the block.
    """
    with store.snapshot():
        before = store.namespaces(), store.change()
        child = os.fork()
        if child == 0:
            with pytest.raises(StoreError, match="was opened before this process forked; open it again"):
                store.change()
        else:
            is_refused = os.waitpid(child, 0)[1] == 0
            inside = store.namespaces(), store.change()
    if child == 0:
        os._exit(0)
    assert is_refused
    return [before, inside, (store.namespaces(), store.change())]
