"""Keep a store's index fit: project, catch up, report, examine, mend."""

from __future__ import annotations

import json
import shlex
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from commonplace.dataclasses import dataclass
from commonplace.dates.time import iso
from commonplace.errors import CommonplaceError, ModelError, StoreDamagedError, StoreError
from commonplace.index.files import MISSING
from commonplace.index.generations import Generation, Index
from commonplace.ingest.projection import ProjectionReport, bring_up_to_date, disagreement
from commonplace.journal.folder import DEFAULT
from commonplace.models.static import verify_data
from commonplace.redaction import redact
from commonplace.settings.paths import DATABASE, INDEX, INDEXING_LOCK, project_of
from commonplace.store.store import UPTO_DATE, Store
from commonplace.text.tokens import clear_cache
from commonplace.types import (
    LEFT_OUT,
    Chunk,
    FileProblem,
    Filter,
    IndexReport,
    LeftOut,
    Note,
    Owner,
    Passage,
    Progress,
    Reembedding,
)
from commonplace.types.graph import GraphCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commonplace.engine.worker import Worker
    from commonplace.ingest.discover import Selection as FileSelection
    from commonplace.journal.sync import JournalSync

PENDING_LIMIT = 2_000
"""A search bears so many passages that the index lacks or wrongly holds; beyond, the index is updated first."""

MIN_FOR_WORKER = 300
"""From so many passages on, a process that is to stay small leaves the index to another one."""

_AT_ONCE = 500
_T = TypeVar("_T")
_MAX_TEXTS, _MAX_PROBLEMS = 20, 50
_UNREADABLE = (StoreDamagedError, ValueError)  # what one changed byte makes of UTF-8, JSON or our own packing
_OTHER_MAP = "has another map than it was written with"
INDEXING = "indexing"
"""The kind of the notes that tell how far an indexing run has come, one for each root."""

LOCK_S = 0.1
"""A search that asks whether somebody holds the lock holds it itself for an instant."""

WAIT_S = 60.0
"""How long a writer, or a search that cannot do without the index, waits for another process to finish with it."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a search should know about the index before it starts."""

    notices: tuple[str, ...] = ()
    is_degraded: bool = False


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
        upgrade: a change of embedder that is under way, or was ended.
        unembedded: passages of the store that wait for their vectors, and are found by their words meanwhile.
        notices: what people should know: which indexing is under way, or was interrupted.
        left_out: of each root what its last indexing run left out, until something is forgotten.
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


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong. `mended` tells whether it has been put right."""

    part: str
    problem: str
    remedy: str
    mended: bool = False


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The result of `doctor`; `checked` names what was examined."""

    checked: tuple[str, ...]
    findings: tuple[Problem, ...]

    @property
    def is_healthy(self) -> bool:
        """True when nothing is wrong, or everything that was has been mended."""
        return all(finding.mended for finding in self.findings)


class IndexMaintenance:
    """Projects a store into its index and looks after both. Safe for threads."""

    def __init__(
        self,
        directory: Path,
        store: Store,
        index: Index,
        tokenize: Callable[[str], NDArray[np.uint16]],
        progress: Progress | None,
        worker: Worker | None = None,
    ) -> None:
        self._directory = directory
        self._tokenize = tokenize
        self._store = store
        self._index = index
        self._progress = progress
        self._worker = worker
        self._ahead = threading.Lock()

    def project(self) -> tuple[str, ...]:
        """Bring the index up to date, waiting for another process that is at it; return what people should know."""
        if self._store.is_on_server:
            return ()
        report = bring_up_to_date(self._store, self._index, timeout_s=WAIT_S, progress=self._progress)
        clear_cache()
        if report is None:
            return ("another process is writing the index; what was stored is found all the same",)
        return ()

    def keep_up(self, namespace: str) -> None:
        """During a long writing, bring the index up to date now and then, so that others have little to score directly.

        The more the index holds, the more may be pending: each time costs a part of what it holds. A first build is
        left alone: nobody has an index to lose, and doing it in parts would make it a third slower.
        """
        if self._store.is_on_server:
            return
        generation = self._reader()
        written, _ = self._store.pending(namespace, generation.head(namespace).change)
        if generation.documents and written > max(PENDING_LIMIT, generation.documents // 8):
            self._bring_up_to_date(written, 0.0, None)

    def held(self, generation: Generation, namespace: str) -> int:
        """Return up to which change of a namespace recall needs nothing beside a generation: all on a server."""
        return UPTO_DATE if self._store.is_on_server else generation.head(namespace).change

    def is_fresh(self, generation: Generation, namespace: str) -> bool:
        """Tell whether a search may read a generation as it is; begin to catch up elsewhere with a tail of some length.

        It asks the store nothing beyond what a snapshot of the namespace knows.
        """
        pending = max(self._store.pending(namespace, self.held(generation, namespace)))
        if self._fault(generation, namespace) or pending > PENDING_LIMIT:
            return False
        if self._worker is not None and pending >= MIN_FOR_WORKER and not self._store.is_read_only:
            self._catch_up_in_worker()
        return True

    def freshen(self, namespace: str) -> Freshness:
        """Rebuild an unusable index and catch up with a long tail; tell in one line what was mended.

        A search that must not wait gets its answer from the store directly: only a store too large for that waits.
        """
        if self._store.is_on_server:
            return Freshness()
        generation = self._reader()
        if self.is_fresh(generation, namespace):
            return Freshness()
        fault = self._fault(generation, namespace)
        pending = max(self._store.pending(namespace, 0 if fault else generation.head(namespace).change))
        if fault and not generation.fault:
            self._index.condemn(fault, generation)
        wait_s = WAIT_S if pending > PENDING_LIMIT else 0.0
        try:
            report = self._bring_up_to_date(pending, wait_s, self._progress)
        except CommonplaceError as error:
            return Freshness((f"the index cannot be written, the store was searched directly: {error}",), True)
        clear_cache()
        if report is None:
            return Freshness(("another process is writing the index, the store was searched directly",), True)
        if not report.rebuilt or not fault or self._is_first(generation):
            return Freshness()
        return Freshness((f"the index {fault}; it was rebuilt from the store in {report.seconds:.1f} s",))

    @contextmanager
    def indexing(self, namespace: str, selection: FileSelection, at: float) -> Iterator[Callable[[int, int], None]]:
        """Give what notes how far an indexing run has come, for searches meanwhile and after it was interrupted.

        Raises:
            KeyboardInterrupt: a note on it says what is kept and how to go on.
        """
        root, lock = selection.root, self._store.lock(self._directory / INDEXING_LOCK)
        lock.acquire(LOCK_S)  # where another run has it, that one tells searches that somebody is at work
        came = (0, 0)

        def stored(done: int, total: int) -> None:
            nonlocal came
            came = done, total
            if done < total:
                with self._store.change_memories(namespace) as change:
                    change.put_note(Note(INDEXING, self._named(root), at, json.dumps({"done": done, "total": total})))

        try:
            yield stored
            notes = self._store.notes(namespace, INDEXING)
            if done := [note.id for note in notes if self._root(note.id).is_relative_to(root)]:
                with self._store.change_memories(namespace) as change:
                    for each in done:
                        change.drop_note(INDEXING, each)
        except KeyboardInterrupt as stopped:
            command = self._build_command(namespace, root)
            stopped.add_note(
                f"{came[0]:,} of {came[1]:,} files are in the store and are kept; {command} goes on with the rest"
                if came[1]
                else f"nothing was changed; {command} begins again"
            )
            raise
        finally:
            lock.release()

    def keep_left_out(self, namespace: str, root: Path, report: IndexReport, at: float) -> None:
        """Note what an indexing run left out, in the place of what the one before did."""
        name = self._named(root)
        problems = [(redact(each.path).text, redact(each.reason).text) for each in report.problems[:_MAX_PROBLEMS]]
        told = {"skipped": dict(report.skipped), "problems": problems}
        body = json.dumps(told) if any(told.values()) else ""
        if body != "".join(note.body for note in self._store.notes(namespace, LEFT_OUT, name)):
            with self._store.change_memories(namespace) as change:
                if body:
                    change.put_note(Note(LEFT_OUT, name, at, body))
                else:
                    change.drop_note(LEFT_OUT, name)

    def _left_out(self, note: Note) -> LeftOut:
        told = json.loads(note.body)
        problems = tuple(FileProblem(*each) for each in told["problems"])
        return LeftOut(str(self._root(note.id)), told["skipped"], problems)

    def incomplete(self, namespace: str) -> tuple[str, ...]:
        """Say of each indexing run that is under way, or was interrupted, which part of its files can be found.

        Where a root is gone, no run can go on.
        """
        notes = [note for note in self._store.notes(namespace, INDEXING) if self._root(note.id).exists()]
        if not notes:
            return ()
        is_running = False
        with suppress(StoreError):  # nobody runs one where no lock can be made
            is_running = self._store.lock(self._directory / INDEXING_LOCK).is_held()
        return tuple(self._incomplete(namespace, note, is_running) for note in notes)

    def _incomplete(self, namespace: str, note: Note, is_running: bool) -> str:
        told, root = json.loads(note.body), self._root(note.id)
        rest = "the rest is being read" if is_running else f"{self._build_command(namespace, root)} reads the rest"
        return f"the index is incomplete: it has {told['done']:,} of {told['total']:,} files of {root}; {rest}"

    def _named(self, root: Path) -> str:
        """Return a root's name in a note: inside a project it is relative, so that the project can be moved."""
        project = project_of(self._directory)
        return str(root.relative_to(project) if project and root.is_relative_to(project) else root)

    def _root(self, named: str) -> Path:
        return (project_of(self._directory) or Path()) / named

    def _build_command(self, namespace: str, root: Path) -> str:
        option = "" if namespace == DEFAULT else f" --namespace {shlex.quote(namespace)}"
        place = "" if root == project_of(self._directory) else f" {shlex.quote(str(root))}"
        return f"`commonplace index build{place}{option}`"

    def _reader(self) -> Generation:
        """Return the current generation of the index, as the store's embedder of now has it."""
        embedding = self._store.embedding()
        if embedding is not None:
            self._index.follow(embedding)
        return self._index.reader()

    def _bring_up_to_date(self, pending: int, timeout_s: float, progress: Progress | None) -> ProjectionReport | None:
        """Bring the index up to date: here, or in a worker where this process is to stay small and has much to do."""

        def here() -> ProjectionReport | None:
            return bring_up_to_date(self._store, self._index, timeout_s=timeout_s, progress=progress)

        if self._worker is None or pending < MIN_FOR_WORKER or self._store.is_read_only:
            return here()
        return self._worker.run("project", here, timeout_s=timeout_s)

    def _catch_up_in_worker(self) -> None:
        """Begin to bring the index up to date, unless that is under way; nobody waits for it."""
        worker = self._worker
        if worker is None or not self._ahead.acquire(blocking=False):
            return

        def work() -> None:
            try:
                with suppress(CommonplaceError):  # the next search that cannot do without says what is wrong
                    worker.run("project", lambda: None)
            finally:
                self._ahead.release()

        threading.Thread(target=work, name="index", daemon=True).start()

    def _is_first(self, generation: Generation) -> bool:
        """Tell whether nobody can miss an index: memories are stored without one, files are indexed with it."""
        counts = self._store.counts()
        return generation.fault == MISSING and not counts["artifacts"] and not counts["knowledge"]

    def status(self, namespace: str) -> IndexStatus:
        """Return the state of store and index."""
        generation = self._reader()
        with self._store.snapshot():
            embedding = self._store.embedding()
            indexed = generation.head(namespace).change
            if self._store.is_on_server:
                indexed = self._store.change(namespace)
            return IndexStatus(
                store=self._store.place or str(self._directory),
                store_id=self._store.id,
                namespace=namespace,
                embedder="none yet" if embedding is None else embedding.described(),
                counts=self._store.counts(namespace),
                graph=self._store.graph(namespace).counts(),
                change=self._store.change(namespace),
                indexed_change=indexed,
                waiting=self._store.pending(namespace, indexed)[0],
                fault=self._fault(generation, namespace),
                store_bytes=sum(size(path) for path in self._directory.glob(f"{DATABASE}*")),
                index_bytes=size(self._directory / INDEX),
                upgrade=self._store.reembedding(),
                unembedded=self._store.count_pending(),
                notices=self.incomplete(namespace),
                left_out=tuple(self._left_out(note) for note in self._store.notes(namespace, LEFT_OUT)),
            )

    def examine(self, *, mend: bool, pages: JournalSync | None = None) -> DoctorReport:
        """Check everything; with `mend`, rebuild an index that is faulty, and finish what forgetting had to leave."""
        from commonplace.store.check import COUNTS

        findings = self._examine_store(mend)
        # A text of another length than it had lets its bytes be counted wrong, too.
        if all(finding.mended or COUNTS in finding.problem for finding in findings):
            findings += self._examine_texts()
        try:
            verify_data()
        except ModelError as error:
            findings.append(Problem("model", str(error), "reinstall commonplace"))
        findings += self._examine_index(mend)
        findings += self._drafts(mend)
        findings += self._unfinished(mend, pages)
        return DoctorReport(("store", "model", "index", "drafts", "forgetting"), tuple(findings))

    def _examine_store(self, mend: bool) -> list[Problem]:
        """Return what is wrong with the stored data.

        What hangs on nothing in a graph is let go of, and what a server's searches read is made anew, no more.
        """
        from commonplace.store.check import LOOSE_ENDS

        problems = self._store.check()
        reader = self._store.postings
        loose = {problem for problem in problems if any(claim in problem for claim in LOOSE_ENDS)}
        stale = {problem for problem in problems if reader and any(claim in problem for claim, _ in reader.claims)}
        left, remedy = problems, "run `commonplace doctor` where the store can be written"
        if mend and (loose or stale) and not self._store.is_read_only:
            try:
                if reader and stale:
                    reader.rebuild()
                for namespace in self._store.namespaces() if loose else ():
                    with self._store.change_memories(namespace) as change:
                        change.graph.drop_loose_ends()
                left = self._store.check()
            except CommonplaceError as error:
                remedy = str(error)
        return [
            Problem("store", problem, remedy if problem in loose | stale else "restore a backup", problem not in left)
            for problem in dict.fromkeys((*problems, *left))
        ]

    def _drafts(self, mend: bool) -> list[Problem]:
        """Return what killed backups, restores and exports left elsewhere."""
        from commonplace.erasure.resume import LEFT_OF_DRAFT
        from commonplace.store.drafts import clear_drafts

        return [
            Problem(
                "drafts",
                f"{each.path} was {LEFT_OF_DRAFT}; it {each.why or 'holds what the store held'}",
                each.remedy or "run `commonplace doctor`",
                each.state == "removed",
            )
            for each in clear_drafts(self._directory, remove=mend)
            if each.state != "live"
        ]

    def _examine_texts(self) -> list[Problem]:
        """Return which memories and items of knowledge do not say what they said when they were written.

        A failing disk, or a program that is none of ours, changes a text but not its digest and its passages' tokens.
        """
        found: list[Problem] = []
        for namespace in self._store.namespaces():
            with self._store.snapshot():
                digests = self._store.memory_digests(namespace)
                found += _in_parts(
                    digests,
                    partial(self._differing, namespace),
                    partial(_unreadable_memory, namespace),
                )
                found += _differing_knowledge(self._store, namespace)
        if len(found) > _MAX_TEXTS:
            rest = len(found) - _MAX_TEXTS
            found[_MAX_TEXTS:] = [Problem("store", f"{rest:,} more texts differ like these", "restore a backup")]
        return found

    def _differing(self, namespace: str, digests: Sequence[tuple[int, str, str]]) -> list[Problem]:
        """Return what is wrong with the texts of some memories, by number, id and digest."""
        from commonplace.ingest.read import normalise
        from commonplace.text.similarity import digest as digest_of_text

        numbers = [number for number, _, _ in digests]
        passages: dict[int, list[Passage]] = defaultdict(list)
        found_by = self._store.passages_of(namespace, numbers)
        for passage in self._store.passages(namespace, found_by).values():
            passages[passage.owner_number].append(passage)
        tokens = self._store.tokens(namespace, found_by)
        stored = self._store.memory_records(namespace, numbers)
        found = []
        for number, id_, digest in digests:
            if number in stored:
                content, title = stored[number].record.content, stored[number].owner.title
                as_written = not digest or digest_of_text(content) == digest
                is_found = _is_cut_from(normalise(content), [each.chunk for each in passages[number]]) and all(
                    tokens[each.number].token_ids == self._token_ids(title, each.chunk) for each in passages[number]
                )
                if not (as_written and is_found):
                    is_live = stored[number].expired_at is None
                    problem = _OTHER_WORDS[digest != "", as_written]
                    found.append(_differs(id_, namespace, problem, is_live=is_live))
        return found

    def _token_ids(self, title: str, piece: Chunk) -> bytes:
        from commonplace.ingest.passages import passage_text

        return self._tokenize(passage_text(title, piece.heading, piece.text)).astype("<u2", copy=False).tobytes()

    def _unfinished(self, mend: bool, pages: JournalSync | None) -> list[Problem]:
        """Return what forgetting had to leave, because it was ended or another process held something open."""
        from commonplace.erasure.resume import ErasureRuntime, finish_waiting

        place = ErasureRuntime(self._directory, self._store, self._index, pages=pages, progress=self._progress)
        try:
            found = finish_waiting(place, mend=mend)
        except CommonplaceError as error:
            return [Problem("forgetting", error.args[0], error.remedy)]
        return [Problem("forgetting", each.problem, each.remedy, each.mended) for each in found]

    def _examine_index(self, mend: bool) -> list[Problem]:
        """Return what is wrong with the index. That it cannot be read or mended is a finding too, not an error."""
        if self._store.is_on_server:
            return []
        try:
            problems = self._index_problems()
        except CommonplaceError as error:
            return [Problem("index", error.args[0], error.remedy)]
        remedy, is_mended = "rebuild it from the store", False
        if problems and mend:
            if self._store.is_read_only:
                remedy = "make the store writable, it is read-only; then rebuild the index from it"
            else:
                try:
                    is_mended = self._rebuild()
                except CommonplaceError as error:
                    remedy = str(error)
        return [Problem("index", problem, remedy, is_mended) for problem in problems]

    def _fault(self, generation: Generation, namespace: str) -> str:
        """Return why a generation cannot be used for a namespace, a clause that continues "the index …", or ""."""
        if self._store.is_on_server:
            return ""
        if generation.fault:
            return generation.fault if self._store.change(namespace) else ""
        held = generation.head(namespace)
        if self._store.token(namespace, held.change) != held.token:
            return "belongs to another history of its store"
        return ""

    def _index_problems(self) -> list[str]:
        generation = self._reader()
        with self._store.snapshot():
            heads, _ = self._store.heads()
            fault = (generation.fault if heads else "") or disagreement(self._store, generation, heads)
        if fault:
            return [] if self._is_first(generation) else [f"the index {fault}"]
        problems = [f"the index {problem}" for problem in self._index.verify()] if generation.heads else []
        with self._store.snapshot():
            stored = self._store.counts()["passages"]
            is_held = generation.heads == self._store.heads()[0]
            if not problems and is_held and generation.documents != stored:
                problems.append(f"the index holds {generation.documents} passages where the store has {stored}")
        return problems

    def _rebuild(self) -> bool:
        report = bring_up_to_date(self._store, self._index, rebuild=True, timeout_s=WAIT_S, progress=self._progress)
        return report is not None and not self._index_problems()


_OTHER_WORDS: Final = {
    (False, True): "has other words than those it is found by",
    (True, True): "is found by other words than it has: its digest fits its own",
    (True, False): "has other words than it was written with",
}
"""What is said of a memory by whether it has a digest, and whether its text fits it."""


def _is_cut_from(text: str, chunks: Sequence[Chunk]) -> bool:
    """Return whether these chunks stand in a text at their lines, and leave none out but blank ones."""
    lines = text.split("\n")
    covered = {number for each in chunks for number in range(each.start_line, each.end_line + 1)}
    return all(number in covered for number, line in enumerate(lines, 1) if line.strip()) and all(
        each.text in "\n".join(lines[each.start_line - 1 : each.end_line]) for each in chunks
    )


def _differing_knowledge(store: Store, namespace: str) -> list[Problem]:
    """Return the items of agents' knowledge whose map is not the one that their digest is of."""
    return _in_parts(
        store.matching_owners(namespace, Filter(kinds=("knowledge",))),
        partial(_with_other_maps, store, namespace),
        lambda number, error: _damaged_item(f"{number} of the agents' knowledge", namespace, _unreadable(error)),
    )


def _in_parts(
    items: Sequence[_T], check: Callable[[Sequence[_T]], list[Problem]], damaged: Callable[[_T, Exception], Problem]
) -> list[Problem]:
    """Return what is wrong with many items; of some that cannot be read, each is looked at by itself."""
    found: list[Problem] = []
    for begin in range(0, len(items), _AT_ONCE):
        some = items[begin : begin + _AT_ONCE]
        try:
            found += check(some)
        except _UNREADABLE as error:
            if len(some) == 1:
                found.append(damaged(some[0], error))
            else:
                for each in some:
                    found += _in_parts([each], check, damaged)
    return found


def _with_other_maps(store: Store, namespace: str, numbers: Sequence[int]) -> list[Problem]:
    from commonplace.knowledge.maps import digest_of

    return [
        _damaged_item(f"{item.number} of the agent {item.record.agent!r:.80}", namespace, _OTHER_MAP)
        for item in store.knowledge(namespace).of_numbers(numbers).values()
        if digest_of(item.record.agent, item.record.metadata) != item.record.digest
    ]


def _damaged_item(named: str, namespace: str, problem: str) -> Problem:
    remedy = "index the knowledge of that agent again, or restore a backup"
    return Problem("store", f"item {named}{_in(namespace)} {problem}", remedy)


def _unreadable_memory(namespace: str, digest: tuple[int, str, str], error: Exception) -> Problem:
    return _differs(digest[1], namespace, _unreadable(error), is_live=False)


def _unreadable(error: Exception) -> str:
    return f"cannot be read ({error.args[0] if isinstance(error, CommonplaceError) else error})"


def _differs(id_: str, namespace: str, problem: str, *, is_live: bool) -> Problem:
    remedy = "restore a backup"
    if is_live:
        remedy = f"write it as it should be with `commonplace update {shlex.quote(id_)} TEXT`, or {remedy}"
    return Problem("store", f"memory {id_!r:.80}{_in(namespace)} {problem}", remedy)


def _in(namespace: str) -> str:
    return "" if namespace == DEFAULT else f" of the namespace {namespace!r:.80}"


def size(path: Path) -> int:
    """Return the bytes of a file or of all files below a directory; files that vanish meanwhile count nothing."""
    try:
        if path.is_dir():
            return sum(size(child) for child in path.iterdir())
        return path.stat().st_size
    except OSError:
        return 0


EXPORT_VERSION = "1.0.0"


def artifact_index(store: Store, namespace: str) -> dict[str, Any]:
    """Return all artifacts of a namespace, by path, each with the unit mean of its passages' vectors."""
    embedding = store.embedding()
    sums: dict[int, NDArray[np.float32]] = {}
    for entry in store.entries_since(0, store.heads()[1]):
        if entry.namespace == namespace and entry.kind == "artifact":
            vector = np.frombuffer(entry.vector, dtype=np.int8).astype(np.float32)
            sums[entry.owner_number] = sums.get(entry.owner_number, np.float32(0)) + _unit(vector)
    return {
        "version": EXPORT_VERSION,
        "namespace": namespace,
        "change": store.change(namespace),
        "embedding_config": {
            "model": embedding.name if embedding else None,
            "dimensions": embedding.dimensions if embedding else None,
        },
        "artifacts": [_artifact(owner, sums.get(number)) for number, owner in store.artifacts(namespace)],
    }


def _artifact(owner: Owner, total: NDArray[np.float32] | None) -> dict[str, Any]:
    return {
        "path": owner.path,
        "embedding": [] if total is None else [round(float(value), 6) for value in _unit(total)],
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


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = float(np.linalg.norm(vector))
    return (vector / np.float32(norm)).astype(np.float32) if norm else vector
