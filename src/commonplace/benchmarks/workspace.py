"""Build the store that a benchmark asks: in a directory that vanishes, or in one that is kept. Knows no question."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import commonplace
from commonplace.benchmarks.machine import size_bytes
from commonplace.errors import UsageError
from commonplace.types import Document, Progress

if TYPE_CHECKING:
    from commonplace.engine import Engine


@contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """Give an empty directory for a store: `keep` itself, or a temporary one that is removed at the end.

    Raises:
        UsageError: `keep` holds something already.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="commonplace-benchmark-") as name:
            yield Path(name) / "store"
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep} is not an empty directory", remedy="name a new one to keep the store in")
    yield keep


class Metered:
    """An iterable of documents that counts what passes through it and the time spent on making it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = documents
        self.documents = 0
        self.text_bytes = 0
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Document]:
        source = iter(self._documents)
        while True:
            start = time.perf_counter()
            document = next(source, None)
            if document is not None:
                self.documents += 1
                self.text_bytes += len(document.text.encode()) + len(document.title.encode())
            self.seconds += time.perf_counter() - start
            if document is None:
                return
            yield document


@dataclass(frozen=True, slots=True)
class Build:
    """What building a store cost.

    Attributes:
        seconds: from the first document to a complete, durable index; reading or making the documents is not in it.
        store_bytes, index_bytes: what lies on disk afterwards, the truth and what is derived from it.
    """

    documents: int
    passages: int
    text_bytes: int
    seconds: float
    store_bytes: int
    index_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the size against the text."""
        total = self.store_bytes + self.index_bytes
        return {
            "documents": self.documents,
            "passages": self.passages,
            "text_bytes": self.text_bytes,
            "build_s": round(self.seconds, 3),
            "documents_per_s": round(self.documents / self.seconds, 1) if self.seconds else 0.0,
            "store_bytes": self.store_bytes,
            "index_bytes": self.index_bytes,
            "size_to_text": round(total / self.text_bytes, 3) if self.text_bytes else 0.0,
        }


def build(
    directory: Path,
    documents: Metered,
    *,
    embedder: str | None = None,
    progress: Progress | None = None,
    as_memories: bool = False,
) -> Build:
    """Index the documents into a new store, close it, and measure it; closing folds SQLite's log into the database.

    Args:
        as_memories: remember them, one after the other, instead of indexing them as documents.
    """
    with open_engine(directory, embedder=embedder, progress=progress) as engine:
        start = time.perf_counter()
        if as_memories:
            engine.remember_many(map(memory_of, documents))
        else:
            engine.index_documents(documents)
        seconds = time.perf_counter() - start - documents.seconds
        passages = engine.index_status().counts["passages"]
    index = size_bytes(directory / "index")
    return Build(
        documents=documents.documents,
        passages=passages,
        text_bytes=documents.text_bytes,
        seconds=seconds,
        store_bytes=size_bytes(directory) - index,
        index_bytes=index,
    )


def memory_of(document: Document) -> dict[str, Any]:
    """Return a document as `remember_many` takes a memory."""
    return {
        "id": document.id,
        "content": document.text,
        "session": document.session,
        "at": document.at,
        "tags": document.tags,
    }


def open_engine(
    directory: Path | None,
    *,
    namespace: str = "default",
    embedder: str | None = None,
    progress: Progress | None = None,
    now: float | None = None,
) -> Engine:
    """Open a store as any user of the library does; with `now` its clock stands still, in seconds since the epoch."""
    clock = None if now is None else lambda: now
    return commonplace.open(directory, namespace=namespace, embedder=embedder, progress=progress, clock=clock)
