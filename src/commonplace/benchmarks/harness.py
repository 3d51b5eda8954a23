"""Build the store of a benchmark, run its queries, and measure the time, memory and disk that they take."""

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
"""Number of hits retrieved for a quality measurement: the greatest depth of any measure."""
WARM_UP = "open the files and fill the caches before the clock starts"


def check_counts(**counts: int) -> None:
    """Reject numbers below 1, naming the argument."""
    for name, value in counts.items():
        if value < 1:
            raise UsageError(f"{name} is {value}", remedy="give at least 1")


def last_line(complaint: str) -> str:
    """Return the last line that a process wrote before it failed."""
    return (complaint.strip().splitlines() or ["it said nothing"])[-1]


@contextmanager
def workspace(keep: Path | None) -> Iterator[Path]:
    """Yield an empty or new directory for a store: `keep` itself, or a temporary one that is removed at the end."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="commonplace-benchmark-") as name:
            yield Path(name) / "store"
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep} is not an empty directory", remedy="name a new one to keep the store in")
    yield keep


class Metered:
    """An iterable of documents that counts the documents, their bytes and the time spent on producing them."""

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
    """The cost of building a store.

    Attributes:
        seconds: time to a complete, durable index, without the time spent on reading or generating the documents.
        store_bytes, index_bytes: size on disk afterwards, of the store and of the index derived from it.
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
    """Index the documents into a new store, close it, and measure it. Closing checkpoints SQLite's write-ahead log."""
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
    """Return a document as an item of `remember_many`."""
    fields = {name: getattr(document, name) for name in ("id", "session", "at", "tags")}
    return {"content": document.text, **fields}


def open_engine(
    store: Path | str | None,
    *,
    namespace: str = "default",
    embedder: str | None = None,
    progress: Progress | None = None,
    now: float | None = None,
) -> Engine:
    """Open a store as any user of the library does; `now` fixes its clock, in seconds since the epoch."""
    clock = None if now is None else lambda: now
    return commonplace.open(store, namespace=namespace, embedder=embedder, progress=progress, clock=clock)


@dataclass(frozen=True, slots=True)
class QueryRun:
    """The result of one question.

    Attributes:
        ranking: distinct ids of the hits, best first.
        scores, probabilities: those of the best hit of each id, in the same order, 0–1.
        ms: duration of the call in milliseconds.
        stages: the stages of the search, as the engine timed them.
    """

    ranking: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    ms: float = 0.0
    stages: tuple[Stage, ...] = ()


def owner_of(hit: Hit) -> str:
    """Return the id of a hit's document."""
    return hit.owner_id


def path_of(hit: Hit) -> str:
    """Return the path of an artifact, or the owner's id if there is no file."""
    return hit.path or hit.owner_id


def check_methods(methods: Sequence[str]) -> tuple[Method, ...]:
    """Check the names of methods, and return them without repetitions, in the same order."""
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
) -> Iterator[QueryRun]:
    """Yield the answer to each question in order. They are asked one at a time, in one thread, without a threshold."""
    engine.search(WARM_UP, limit=limit, method=method, min_score=0.0)
    for number, question in enumerate(questions):
        if progress is not None:
            progress(f"asking, {method}", number, len(questions))
        if not question.strip():
            yield QueryRun()
            continue
        start = time.perf_counter()
        result = engine.search(question, limit=limit, method=method, min_score=0.0)
        ms = (time.perf_counter() - start) * 1000
        best: dict[str, Hit] = {}
        for hit in result.hits:
            best.setdefault(identity(hit), hit)
        scores = tuple(hit.score for hit in best.values())
        yield QueryRun(tuple(best), scores, tuple(hit.probability or 0.0 for hit in best.values()), ms, result.stages)
    if progress is not None:
        progress(f"asking, {method}", len(questions), len(questions))


def latency(times_ms: Sequence[float]) -> dict[str, float]:
    """Summarise latencies as JSON: `p50_ms`, `p95_ms`, `max_ms`."""
    return {
        "p50_ms": round(percentile(times_ms, 0.5), 3),
        "p95_ms": round(percentile(times_ms, 0.95), 3),
        "max_ms": round(max(times_ms, default=0.0), 3),
    }


def describe() -> dict[str, Any]:
    """Return versions and the number of processors, so that figures are never quoted without them."""
    return {
        "commonplace": commonplace.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or 0,
    }


def peak_memory_bytes() -> int:
    """Return the peak resident memory of this process; 0 if the system does not report it (no /proc)."""
    return memory_of(os.getpid()).get("peak_bytes", 0)


def memory_of(pid: int) -> dict[str, int]:
    """Return the memory use of a process; {} if the system does not report it (no /proc).

    Returns:
        `resident_bytes` (RSS), `proportional_bytes` (PSS, which divides shared pages among the processes that share
        them), `anonymous_bytes` (not backed by a file) and `peak_bytes` (the highest RSS so far).
    """
    # A line reads "VmRSS:     1234 kB".
    values: dict[str, int] = {}
    for name in ("status", "smaps_rollup"):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/{name}").read_text(encoding="ascii", errors="replace").splitlines()
            fields = (line.partition(":") for line in lines if line.endswith(" kB"))
            values |= {key: int(size.split()[0]) * 1024 for key, _, size in fields}
    names = {"resident": "VmRSS", "proportional": "Pss", "anonymous": "Anonymous", "peak": "VmHWM"}
    return {f"{name}_bytes": values[key] for name, key in names.items() if key in values}


def size_bytes(*paths: Path) -> int:
    """Return the total size of files and of all files in directories; a missing path counts as 0."""
    files = (file for path in paths for file in (path, *path.rglob("*")) if file.is_file())
    return sum(file.stat().st_size for file in files)
