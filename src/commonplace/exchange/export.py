"""Export a namespace as JSON lines from one snapshot of the store."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from commonplace.dataclasses import dataclass
from commonplace.exchange.backup import counter
from commonplace.exchange.codec import FORMAT, VERSION, encode_line, shape_of
from commonplace.exchange.items import EXPORTED, ITEMS, MemoryItem, parts_of
from commonplace.files import sync
from commonplace.store.drafts import clear_drafts, draft, file_errors, refuse_occupied
from commonplace.store.store import Store
from commonplace.types import Progress


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The contents of an export.

    Attributes:
        path: absolute; None if it was written to a stream.
        versions: versions of the memories, one line each.
        owners: artifacts and documents.
        knowledge, contexts: of agents; including deleted knowledge.
        episodes, entities, relations: of the graph; including merged entities.
        issues: of the ledger, with their histories.
        lines: number of lines without the last one.
        sha256: digest of all but the last line, which holds it.
    """

    path: Path | None
    memories: int
    versions: int
    links: int
    owners: int
    knowledge: int
    contexts: int
    episodes: int
    entities: int
    relations: int
    issues: int
    lines: int
    size: int
    sha256: str
    seconds: float


COUNTED = tuple(cls.counted for cls in ITEMS.values())
"""Names of the counts in the first line and the report."""


def export(
    store: Store,
    namespace: str,
    target: Path | TextIO,
    *,
    directory: Path | None = None,
    kinds: Sequence[str] = (),
    progress: Progress | None = None,
) -> ExportReport:
    """Write a namespace to a new file, or to a stream of text; see `Engine.export`.

    Args:
        directory: the store's, which notes a new file; None if it has none.
        kinds: subset of `EXPORTED`; empty means all.
        progress: called with numbers of items.
    """
    if isinstance(target, Path):
        path = target.expanduser().absolute()
        with new_file(path, directory) as write:
            return _write(store, namespace, kinds, write, path, progress)
    report = _write(store, namespace, kinds, lambda line: target.write(line.decode("ascii")), None, progress)
    target.flush()
    return report


def _write(
    store: Store,
    namespace: str,
    kinds: Sequence[str],
    write: Callable[[bytes], object],
    path: Path | None,
    progress: Progress | None,
) -> ExportReport:
    from importlib.metadata import version

    begun, selected = time.perf_counter(), set(kinds or EXPORTED)
    digest, size, counts = hashlib.sha256(), 0, Counter[str]()

    def add(line: bytes) -> None:
        nonlocal size
        digest.update(line)
        size += len(line)
        counts["lines"] += 1
        write(line)

    with store.snapshot():
        parts = parts_of(store, namespace, selected)
        totals = dict.fromkeys(COUNTED, 0) | {part.cls.counted: part.total for part in parts}
        about = {"format": FORMAT, "version": VERSION, "commonplace": version("commonplace"), "namespace": namespace}
        add(encode_line({**about, "kinds": sorted(selected, key=EXPORTED.index), "counts": totals}))
        count = counter(progress, "Exporting", sum(totals.values()))
        for part in parts:
            for item in part.items:
                is_memory = isinstance(item, MemoryItem)
                for record in getattr(item, "versions", (item,)):
                    names = shape_of(type(record)).types
                    # Sorted, so that the short entries of a version, its times, come before its owner and record.
                    entries = {name: getattr(record, name) for name in (sorted(names) if is_memory else names)}
                    add(encode_line({"type": item.kind, **entries}, name=item.name))
                    counts["versions"] += is_memory
                count(1)
    sha256 = digest.hexdigest()
    end = encode_line({"type": "end", "lines": counts["lines"], "sha256": sha256})
    write(end)
    return ExportReport(
        path=path,
        versions=counts["versions"],
        lines=counts["lines"],
        size=size + len(end),
        sha256=sha256,
        seconds=time.perf_counter() - begun,
        **totals,
    )


@contextmanager
def new_file(path: Path, directory: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Yield the write method of a file that gets its name only once it is whole and on disk.

    Args:
        directory: directory of the store whose content it holds.
    """
    refuse_occupied(path)
    if directory is not None:
        clear_drafts(directory)
    with draft(directory, path) as base, file_errors(f"cannot write {path}"):
        new = base.with_name(f"{base.name}.new")
        with new.open("xb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        sync(path.parent)
