"""Index files and documents for an engine, once or whenever they change, here or in a worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import replace
from commonplace.dates.time import iso
from commonplace.engine.runtime import EngineApi
from commonplace.errors import NotFoundError, StoreBusyError, UsageError
from commonplace.ingest.passages import index_documents
from commonplace.locks import FileLock
from commonplace.memory.validate import series
from commonplace.ranking.arrays import restore, units
from commonplace.settings import Settings
from commonplace.settings.paths import directory_of, index_watch_lock
from commonplace.store.filters import path_matcher
from commonplace.store.store import Store
from commonplace.types import Document, IndexReport, Progress

if TYPE_CHECKING:
    from commonplace.ingest.discover import Selection
    from commonplace.ingest.watch import Watch


def refuse_missing(roots: Sequence[Path]) -> None:
    """Raise NotFoundError if one of the roots does not exist."""
    if missing := [root for root in roots if not root.expanduser().exists()]:
        raise NotFoundError(f"there is no file or directory {missing[0]}", remedy="check the path")


def refuse_unfit_roots(roots: Sequence[Path], settings: Settings, include: tuple[str, ...]) -> None:
    """Refuse an indexing run if a root is missing or a glob matches no file, before it removes what is indexed.

    Raises:
        NotFoundError: a root does not exist.
        UsageError: a glob is malformed, or matches no file.
    """
    from commonplace.ingest.discover import Selection, discover

    refuse_missing(roots)
    limit, store = settings.index.max_file_bytes, (directory_of(settings.store.path),)
    places = [root.expanduser().absolute() for root in roots] if include else []
    unmatched = [discover(Selection(settings.project, place, include, limit, store)).unmatched for place in places]
    if unmatched and (missing := sorted(set.intersection(*unmatched))):
        root_names = ", ".join(map(str, roots))
        raise UsageError(
            f"no file below {root_names} that may be indexed matches {missing[0]!r}",
            remedy="correct the glob, which is relative to that directory as in .gitignore",
        )


class IndexApi(EngineApi):
    """Brings files and documents into the store. Safe for threads."""

    def index(self, root: Path, globs: tuple[str, ...], *, force: bool, keep_most: bool) -> IndexReport:
        if off := self._why_off():
            return IndexReport(notices=(f"{off}: no file is indexed, and what was indexed stays as it is",))
        return self._index(self._selection(root, globs), self._runtime.progress, force=force, keep_most=keep_most)

    def _why_off(self) -> str:
        origin = self._settings.origins.get("index.enabled", "default")
        return f"index.enabled is off ({origin})" if self._settings.index.enabled == "off" else ""

    def index_documents(self, documents: Iterable[Document]) -> IndexReport:
        inputs = series("documents", documents)
        report = index_documents(self._runtime.destination(), inputs, progress=self._runtime.progress)
        self._runtime.tokens.release()
        return replace(report, notices=self._runtime.maintenance.update_index())

    def _selection(self, root: Path, globs: tuple[str, ...]) -> Selection:
        from commonplace.ingest.discover import Selection

        index_settings = self._settings.index
        include, excluded = globs or index_settings.include or None, (self._runtime.directory,)
        return Selection(self._runtime.project, root, include, index_settings.max_file_bytes, excluded)

    def _index(self, selection: Selection, progress: Progress | None, **options: Any) -> IndexReport:
        worker, local_run = self._runtime.worker, partial(self.index_in_process, selection, progress, **options)
        if worker is None:
            return local_run()
        return replace(worker, progress=progress).run("index", local_run, selection=selection, **options)

    def index_in_process(self, selection: Selection, progress: Progress | None, **options: Any) -> IndexReport:
        from commonplace.ingest.artifacts import index_root

        runtime, maintenance, root = self._runtime, self._runtime.maintenance, selection.root
        with maintenance.indexing(root, runtime.now()) as stored:
            report = index_root(runtime.destination(), selection, progress=progress, stored=stored, **options)
        maintenance.keep_left_out(root, report, runtime.now())
        runtime.tokens.release()  # or a server keeps memory that only the embedding of many texts needs
        notices = maintenance.update_index()
        if report.removed and not report.added + report.changed + report.unchanged:
            notice = f"no file of {root} was chosen, and the {report.removed} that were indexed are gone"
            notices = (notice, *notices)
        return replace(report, notices=notices)

    def watch(self, root: Path, globs: tuple[str, ...], *, force: bool) -> Watch:
        from commonplace.ingest.discover import look
        from commonplace.ingest.watch import Alarm, Stopped, Watch

        if off := self._why_off():
            raise UsageError(f"{off}, so there is nothing to watch", remedy="set it to on")
        selection = self._selection(root, globs)
        if selection.include:
            path_matcher(selection.include)
        lock = FileLock(self._runtime.directory / index_watch_lock(selection.root.resolve(), self._runtime.namespace))
        if not lock.acquire(0.0):
            raise StoreBusyError(f"{selection.root} is watched already", remedy="stop that first")
        alarm = Alarm(selection.root, selection.excluded)

        def progress(stage: str, completed: int, total: int) -> None:
            if alarm.is_stopped:
                raise Stopped
            if self._runtime.progress is not None:
                self._runtime.progress(stage, completed, total)

        def index(is_first: bool) -> IndexReport:
            # Nobody is watching: a directory that is briefly not mounted must not empty the store.
            return self._index(selection, progress, force=force and is_first, spares_all=True)

        return Watch(lambda: look(selection), index, alarm, lock.release)


EXPORT_VERSION = "1.0.0"


def artifact_index(store: Store, namespace: str) -> dict[str, Any]:
    """Return all artifacts of a namespace, sorted by path, each with the unit mean of its passages' vectors."""
    embedding = store.embedding()
    sums: dict[int, NDArray[np.float32]] = {}
    change = store.change(namespace)
    for entry in store.entries_since(namespace, 0, change):
        if entry.kind == "artifact":
            sums[entry.owner_number] = sums.get(entry.owner_number, np.float32(0)) + restore([entry.vector])
    artifacts = [
        {
            "path": owner.path,
            "embedding": [round(value, 6) for value in units(sums[number])[0].tolist()] if number in sums else [],
            "type": owner.type,
            "last_modified": iso(owner.at),
            "metadata": {
                "title": owner.title,
                "tags": list(owner.tags),
                "phase": owner.phase or None,
                "references": list(owner.references),
                "summary": owner.summary,
                "sha256": owner.stamp.sha256 if owner.stamp else None,
            },
        }
        for number, owner in store.artifacts(namespace)
    ]
    return {
        "version": EXPORT_VERSION,
        "namespace": namespace,
        "change": change,
        "embedding_config": {
            "model": embedding.name if embedding else None,
            "dimensions": embedding.dimensions if embedding else None,
        },
        "artifacts": artifacts,
    }
