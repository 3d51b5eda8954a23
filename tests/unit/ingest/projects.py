"""A directory and a store that follows it, for the tests of ingest."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.reference_store.store import MemoryStore

from commonplace.ingest.artifacts import index_root
from commonplace.ingest.discover import Selection
from commonplace.ingest.passages import Destination, Limits
from commonplace.models.hashing import HashingEmbedder
from commonplace.types import Embedding, FileStamp, IndexEntry, IndexReport, Owner, OwnerWrite

LONG_AGO = 1_600_000_000_000_000_000


def tokenize(text: str) -> NDArray[np.uint16]:
    return np.array([zlib.crc32(word.encode()) % 30_000 for word in re.findall(r"\w+|[^\w\s]", text)], np.uint16)


class CountingStore(MemoryStore):
    """A store that remembers how it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.set_embedding(HashingEmbedder().stamp)
        self.batches: list[int] = []
        self.restamped: list[str] = []

    def put_owners(
        self, namespace: str, writes: Sequence[OwnerWrite], *, at: float = 0.0, made_by: Embedding | None = None
    ) -> int:
        self.batches.append(len(writes))
        return super().put_owners(namespace, writes, at=at, made_by=made_by)

    def restamp_artifacts(self, namespace: str, stamps: Sequence[tuple[str, str, FileStamp]]) -> None:
        self.restamped.extend(path for path, *_ in stamps)
        super().restamp_artifacts(namespace, stamps)


class Project:
    """A directory and the store that follows it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = CountingStore()
        self.limits = Limits()

    def write(self, name: str, text: str | bytes = "Some text.\n", mtime_ns: int = LONG_AGO) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, ns=(mtime_ns, mtime_ns))
        return path

    def index(
        self,
        root: str = ".",
        include: tuple[str, ...] | None = None,
        *,
        force: bool = False,
        spares_all: bool = False,
        keep_most: bool = False,
        now: int = 2 * LONG_AGO,
    ) -> IndexReport:
        destination = Destination(self.store, HashingEmbedder(), tokenize, "n", self.limits)
        selection = Selection(self.directory, self.directory / root, include)
        return index_root(
            destination, selection, force=force, spares_all=spares_all, keep_most=keep_most, clock=lambda: now
        )

    def owners(self) -> dict[str, Owner]:
        return {owner.path: owner for _, owner in self.store.artifacts("n")}

    def entries(self) -> list[IndexEntry]:
        return list(self.store.entries_since("n", 0, self.store.change("n")))
