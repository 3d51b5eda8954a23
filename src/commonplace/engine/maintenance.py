"""Keep a store's index up to date, and report its status."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, StoreError
from commonplace.index.files import MISSING
from commonplace.index.generations import Generation
from commonplace.ingest.index_update import IndexUpdate, bring_up_to_date
from commonplace.journal.folder import DEFAULT
from commonplace.redaction import redact
from commonplace.settings.paths import DATABASE, INDEX, INDEXING_LOCK, project_of
from commonplace.store.store import UPTO_DATE
from commonplace.text.tokens import clear_cache
from commonplace.types import LEFT_OUT, FileProblem, IndexReport, LeftOut, Note, Progress, Reembedding
from commonplace.types.graph import GraphCounts

if TYPE_CHECKING:
    from commonplace.engine.runtime import Runtime

PENDING_LIMIT = 2_000
"""Maximum passages missing from the index, or wrongly in it, in a search; with more, the index is updated first."""

MIN_FOR_WORKER = 300
"""Minimum of pending passages for which a process that must stay small leaves the index update to another one."""

_MAX_PROBLEMS = 50
INDEXING = "indexing"
"""Kind of the notes that record the progress of an indexing run, one for each root."""

LOCK_S = 0.1
"""Seconds to wait for the indexing lock: a search that checks whether it is held holds it itself for an instant."""

MAX_WAIT_S = 60.0
"""Seconds that a writer, or a search that needs the index, waits for another process to finish with it."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What the store and its index hold.

    Attributes:
        counts: of the namespace: owners, passages, text_bytes, artifacts, memories, knowledge.
        graph: of the namespace: episodes, entities, relations, disputed.
        change, indexed_change: number of the namespace's last change, in the store and in the index.
        waiting: passages of the namespace that are searched directly because the index lacks them.
        fault: why the stored index cannot be used, or "".
        store_bytes, index_bytes: size of the files on disk.
        upgrade: a change of embedder that is under way, or was interrupted.
        unembedded: passages of the store that wait for their vectors, and are found by their words meanwhile.
        notices: for people: which indexing runs are under way, or were interrupted.
        left_out: what the last indexing run of each root left out; dropped when something is forgotten.
    """

    store: str
    store_id: str
    namespace: str
    embedder: str
    counts: dict[str, int]
    graph: GraphCounts
    change: int
    indexed_change: int
    waiting: int
    fault: str
    store_bytes: int
    index_bytes: int
    upgrade: Reembedding | None
    unembedded: int = 0
    notices: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class IndexMaintenance:
    """Updates and repairs the index of a store, for one namespace. Safe for threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._store, self._index = runtime, runtime.store, runtime.index
        self._directory, self._namespace = runtime.directory, runtime.namespace
        self._ahead = threading.Lock()

    def update_index(self) -> tuple[str, ...]:
        """Bring the index up to date, waiting for another process that writes it; return notices."""
        if self._store.is_on_server:
            return ()
        report = bring_up_to_date(self._store, self._index, timeout_s=MAX_WAIT_S, progress=self._runtime.progress)
        clear_cache()
        return () if report else ("another process is writing the index; what was stored is found all the same",)

    def update_during_writes(self) -> None:
        """Update the index now and then during a long write, so that other processes have little to score directly.

        The larger the index, the more may be pending, since the cost of an update grows with its size. A first build is
        left alone: there is no index to lose yet, and building it in parts would take a third longer.
        """
        if self._store.is_on_server:
            return
        generation = self.reader()
        pending, _ = self._store.pending(self._namespace, generation.head(self._namespace).change)
        if generation.documents and pending > max(PENDING_LIMIT, generation.documents // 8):
            self._bring_up_to_date(pending, 0.0, None)

    def indexed_change(self, generation: Generation) -> int:
        """Return the last change of the namespace that a generation covers; on a server it covers all."""
        return UPTO_DATE if self._store.is_on_server else generation.head(self._namespace).change

    def is_fresh(self, generation: Generation) -> bool:
        """Return whether a search may read a generation as it is; if much is pending, start a background update.

        It reads nothing from the store beyond what a snapshot of the namespace holds.
        """
        pending = max(self._store.pending(self._namespace, self.indexed_change(generation)))
        if self._fault(generation) or pending > PENDING_LIMIT:
            return False
        worker = self._runtime.worker
        if worker is None or pending < MIN_FOR_WORKER or self._store.is_read_only:
            return True

        def catch_up() -> None:
            try:
                with suppress(CommonplaceError):  # the next search that needs the update reports the error
                    worker.run("project", lambda: None)
            finally:
                self._ahead.release()

        if self._ahead.acquire(blocking=False):  # one background update at a time
            threading.Thread(target=catch_up, name="index", daemon=True).start()
        return True

    def freshen(self) -> tuple[tuple[str, ...], bool]:
        """Rebuild an unusable index, and update one that has too much pending.

        While another process writes the index, a search reads the store directly; it waits only if too much is pending.

        Returns:
            Notices for the search's result, and whether the result is degraded.
        """
        if self._store.is_on_server:
            return (), False
        generation = self.reader()
        if self.is_fresh(generation):
            return (), False
        fault = self._fault(generation)
        pending = max(self._store.pending(self._namespace, 0 if fault else generation.head(self._namespace).change))
        if fault and not generation.fault:
            self._index.condemn(fault, generation)
        wait_s = MAX_WAIT_S if pending > PENDING_LIMIT else 0.0
        try:
            report = self._bring_up_to_date(pending, wait_s, self._runtime.progress)
        except CommonplaceError as error:
            return (f"the index cannot be written, the store was searched directly: {error}",), True
        clear_cache()
        if report is None:
            return ("another process is writing the index, the store was searched directly",), True
        if not report.rebuilt or not fault or self.is_first(generation):
            return (), False
        return (f"the index {fault}; it was rebuilt from the store in {report.seconds:.1f} s",), False

    @contextmanager
    def indexing(self, root: Path, at: float) -> Iterator[Callable[[int, int], None]]:
        """Yield a function that records an indexing run's progress, for searches during it and after an interruption.

        Raises:
            KeyboardInterrupt: a note on the exception says what is kept and how to continue.
        """
        lock = self._store.lock(self._directory / INDEXING_LOCK)
        lock.acquire(LOCK_S)  # if another run holds it, searches see that one at work
        came = (0, 0)

        def stored(count: int, total: int) -> None:
            nonlocal came
            came = count, total
            if count < total:
                with self._store.change_memories(self._namespace) as change:
                    change.put(Note(INDEXING, self._named(root), at, json.dumps({"done": count, "total": total})))

        try:
            yield stored
            notes = self._store.notes(self._namespace, INDEXING)
            if finished := [note.id for note in notes if self._root(note).is_relative_to(root)]:
                with self._store.change_memories(self._namespace) as change:
                    for id_ in finished:
                        change.drop(Note, kind=INDEXING, id=id_)
        except KeyboardInterrupt as stopped:
            command = self._build_command(root)
            stopped.add_note(
                f"{came[0]:,} of {came[1]:,} files are in the store and are kept; {command} continues with the rest"
                if came[1]
                else f"nothing was changed; {command} begins again"
            )
            raise
        finally:
            lock.release()

    def keep_left_out(self, root: Path, report: IndexReport, at: float) -> None:
        """Record what an indexing run left out, in place of the previous record."""
        name = self._named(root)
        problems = [(redact(file.path).text, redact(file.reason).text) for file in report.problems[:_MAX_PROBLEMS]]
        left_out = {"skipped": dict(report.skipped), "problems": problems}
        body = json.dumps(left_out) if any(left_out.values()) else ""
        if body != "".join(note.body for note in self._store.notes(self._namespace, LEFT_OUT, name)):
            with self._store.change_memories(self._namespace) as change:
                if body:
                    change.put(Note(LEFT_OUT, name, at, body))
                else:
                    change.drop(Note, kind=LEFT_OUT, id=name)

    def incomplete_notices(self) -> tuple[str, ...]:
        """Return a notice for each indexing run that is under way or was interrupted, with how much of it can be found.

        Roots that no longer exist are left out: no run can continue there.
        """
        notes = [note for note in self._store.notes(self._namespace, INDEXING) if self._root(note).exists()]
        if not notes:
            return ()
        is_running = False
        with suppress(StoreError):  # where no lock can be made, no run is under way
            is_running = self._store.lock(self._directory / INDEXING_LOCK).is_held()
        notices = []
        for note in notes:
            state, root = json.loads(note.body), self._root(note)
            remainder = "the rest is being read" if is_running else f"{self._build_command(root)} reads the rest"
            files = f"{state['done']:,} of {state['total']:,} files of {root}"
            notices.append(f"the index is incomplete: it has {files}; {remainder}")
        return tuple(notices)

    def _named(self, root: Path) -> str:
        """Return a root's name in a note: inside a project it is relative, so that the project can be moved."""
        project = project_of(self._directory)
        return str(root.relative_to(project) if project and root.is_relative_to(project) else root)

    def _root(self, note: Note) -> Path:
        return (project_of(self._directory) or Path()) / note.id

    def _build_command(self, root: Path) -> str:
        option = "" if self._namespace == DEFAULT else f" --namespace {shlex.quote(self._namespace)}"
        argument = "" if root == project_of(self._directory) else f" {shlex.quote(str(root))}"
        return f"`commonplace index build{argument}{option}`"

    def reader(self) -> Generation:
        """Return the current generation of the index, for the store's current embedder."""
        embedding = self._store.embedding()
        if embedding is not None:
            self._index.follow(embedding)
        return self._index.reader()

    def _bring_up_to_date(self, pending: int, timeout_s: float, progress: Progress | None) -> IndexUpdate | None:
        in_process = partial(bring_up_to_date, self._store, self._index, timeout_s=timeout_s, progress=progress)
        if self._runtime.worker is None or pending < MIN_FOR_WORKER or self._store.is_read_only:
            return in_process()
        return self._runtime.worker.run("project", in_process, timeout_s=timeout_s)

    def is_first(self, generation: Generation) -> bool:
        """Return whether a missing index is normal: a store of memories alone is made without one."""
        counts = self._store.counts()
        return generation.fault == MISSING and not counts["artifacts"] and not counts["knowledge"]

    def status(self) -> IndexStatus:
        """Return what the store and its index hold, read from one state of the store."""
        generation, store, namespace = self.reader(), self._store, self._namespace
        with store.snapshot():
            embedding, change = store.embedding(), store.change(namespace)
            indexed = change if store.is_on_server else generation.head(namespace).change
            left_out = []
            for note in store.notes(namespace, LEFT_OUT):
                recorded = json.loads(note.body)
                problems = tuple(FileProblem(*fields) for fields in recorded["problems"])
                left_out.append(LeftOut(str(self._root(note)), recorded["skipped"], problems))
            return IndexStatus(
                store=store.place or str(self._directory),
                store_id=store.id,
                namespace=namespace,
                embedder="none yet" if embedding is None else embedding.described(),
                counts=store.counts(namespace),
                graph=store.graph(namespace).counts(),
                change=change,
                indexed_change=indexed,
                waiting=store.pending(namespace, indexed)[0],
                fault=self._fault(generation),
                store_bytes=sum(size(path) for path in self._directory.glob(f"{DATABASE}*")),
                index_bytes=size(self._directory / INDEX),
                upgrade=store.reembedding(),
                unembedded=store.count_pending(),
                notices=self.incomplete_notices(),
                left_out=tuple(left_out),
            )

    def _fault(self, generation: Generation) -> str:
        """Return why a generation cannot be used, a clause that continues "the index …", or ""."""
        if self._store.is_on_server:
            return ""
        if generation.fault:
            return generation.fault if self._store.change(self._namespace) else ""
        head = generation.head(self._namespace)
        is_ours = self._store.token(self._namespace, head.change) == head.token
        return "" if is_ours else "belongs to another history of its store"


def size(path: Path) -> int:
    """Return the bytes of a file or of all files below a directory; files that vanish meanwhile count as 0."""
    try:
        if path.is_dir():
            return sum(size(child) for child in path.iterdir())
        return path.stat().st_size
    except OSError:
        return 0
