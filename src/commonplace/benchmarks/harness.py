"""Build the store that a benchmark asks, ask it, and say what that took of the machine: time, memory, disk."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import commonplace
from commonplace.dataclasses import dataclass
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.search.retrieval_log import percentile
from commonplace.types import METHODS, Document, Hit, Method, Progress, Stage

DEPTH = 100
"""How many hits a question about quality asks for, and the deepest that any measure looks."""
WARM_UP = "open the files and fill the caches before the clock starts"


def check_counts(**counts: int) -> None:
    """Refuse numbers below 1."""
    for name, value in counts.items():
        if value < 1:
            raise UsageError(f"{name} is {value}", remedy="give at least 1")


def last_line(complaint: str) -> str:
    """Return the last line that a process wrote before it failed."""
    return (complaint.strip().splitlines() or ["it said nothing"])[-1]


@contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """Give an empty directory for a store: `keep` itself, or a temporary one that is removed at the end."""
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

    documents: int = 0
    passages: int = 0
    text_bytes: int = 0
    seconds: float = 0.0
    store_bytes: int = 0
    index_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
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
    """Index the documents into a new store, close it, and measure it; closing folds SQLite's log into the database."""
    with open_engine(directory, embedder=embedder, progress=progress) as engine:
        start = time.perf_counter()
        if as_memories:
            engine.remember_many(map(as_memory, documents))
        else:
            engine.index_documents(documents)
        seconds = time.perf_counter() - start - documents.seconds
        passages = engine.index_status().counts["passages"]
    index = size_bytes(directory / "index")
    store = size_bytes(directory) - index
    return Build(documents.documents, passages, documents.text_bytes, seconds, store, index)


def as_memory(document: Document) -> dict[str, Any]:
    """Return a document as `remember_many` takes a memory."""
    same = {name: getattr(document, name) for name in ("id", "session", "at", "tags")}
    return {"content": document.text, **same}


def open_engine(
    store: Path | str | None,
    *,
    namespace: str = "default",
    embedder: str | None = None,
    progress: Progress | None = None,
    now: float | None = None,
) -> Engine:
    """Open a store as any user of the library does; with `now` its clock stands still, in seconds since the epoch."""
    clock = None if now is None else lambda: now
    return commonplace.open(store, namespace=namespace, embedder=embedder, progress=progress, clock=clock)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question found.

    Attributes:
        ranking: ids of what was found, best first, each once.
        scores, probabilities: the best of each, in the same order, 0–1.
        ms: from the call to its return.
        stages: the engine's own account of it.
    """

    ranking: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    ms: float = 0.0
    stages: tuple[Stage, ...] = ()


def owner_of(hit: Hit) -> str:
    """Return the id under which a document was given."""
    return hit.owner_id


def path_of(hit: Hit) -> str:
    """Return the path of an artifact, or the owner's id where there is no file."""
    return hit.path or hit.owner_id


def check_methods(methods: Sequence[str]) -> tuple[Method, ...]:
    """Return the methods, each once, in the order given."""
    for name in methods:
        if name not in METHODS:
            raise UsageError(f"method {name!r} is unknown", remedy=f"use some of {', '.join(METHODS)}")
    if not methods:
        raise UsageError("no method was named", remedy=f"use some of {', '.join(METHODS)}")
    return tuple(method for method in dict.fromkeys(methods) if method in METHODS)


def ask(
    engine: Engine,
    questions: Sequence[str],
    method: Method,
    identity: Callable[[Hit], str],
    progress: Progress | None = None,
    *,
    limit: int = DEPTH,
) -> Iterator[Answer]:
    """Yield the answer to each question in turn, one at a time, from one thread and without a threshold."""
    engine.search(WARM_UP, limit=limit, method=method, min_score=0.0)
    for number, question in enumerate(questions):
        if progress is not None:
            progress(f"asking, {method}", number, len(questions))
        if not question.strip():
            yield Answer()
            continue
        start = time.perf_counter()
        result = engine.search(question, limit=limit, method=method, min_score=0.0)
        ms = (time.perf_counter() - start) * 1000
        best: dict[str, Hit] = {}
        for hit in result.hits:
            best.setdefault(identity(hit), hit)
        scores = tuple(hit.score for hit in best.values())
        yield Answer(tuple(best), scores, tuple(hit.probability or 0.0 for hit in best.values()), ms, result.stages)
    if progress is not None:
        progress(f"asking, {method}", len(questions), len(questions))


def latency(times_ms: Sequence[float]) -> dict[str, float]:
    """Return the JSON form of many latencies: `p50_ms`, `p95_ms`, `max_ms`."""
    return {
        "p50_ms": round(percentile(times_ms, 0.5), 3),
        "p95_ms": round(percentile(times_ms, 0.95), 3),
        "max_ms": round(max(times_ms, default=0.0), 3),
    }


def describe() -> dict[str, Any]:
    """Return versions and processor count, so that figures are never quoted without them."""
    return {
        "commonplace": commonplace.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or 0,
    }


def peak_memory_bytes() -> int:
    """Return the most memory that this process ever had resident; 0 where the system does not tell (no /proc)."""
    return memory_of(os.getpid()).get("peak_bytes", 0)


def memory_of(pid: int) -> dict[str, int]:
    """Return what a process has in memory; {} where the system does not tell (no /proc).

    Returns:
        `resident_bytes` (RSS), `proportional_bytes` (PSS, where what several processes share is divided among them),
        `anonymous_bytes` (what is its own and in no file) and `peak_bytes`, the most that it ever had resident.
    """
    # Written as "VmRSS:     1234 kB".
    written: dict[str, int] = {}
    for name in ("status", "smaps_rollup"):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace").splitlines()
            fields = (line.partition(":") for line in lines if line.endswith(" kB"))
            written |= {what: int(size.split()[0]) * 1024 for what, _, size in fields}
    names = {"resident": "VmRSS", "proportional": "Pss", "anonymous": "Anonymous", "peak": "VmHWM"}
    return {f"{name}_bytes": written[what] for name, what in names.items() if what in written}


def size_bytes(*paths: Path) -> int:
    """Return the sizes of files and of all files in directories, added; what is missing counts nothing."""
    files = (file for path in paths for file in (path, *path.rglob("*")) if file.is_file())
    return sum(file.stat().st_size for file in files)
