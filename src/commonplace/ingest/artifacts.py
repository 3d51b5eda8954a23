"""Index the files of a directory incrementally, reading only those that changed.

A file whose size and time match its stamp costs one `stat`. A file whose time changed is hashed; it is chunked,
embedded and written only if its bytes or the recipe changed. Each batch is one transaction, so an interruption leaves
every file whole, old or new.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Set
from typing import Final

from commonplace.dataclasses import replace
from commonplace.errors import CommonplaceError, NotFoundError, RemovalError
from commonplace.ingest.discover import Discovery, FoundFile, Selection, discover
from commonplace.ingest.metadata import RULES, describe
from commonplace.ingest.passages import WORDING, Destination, PassageWriter
from commonplace.ingest.read import Refusal, looks_generated, looks_like_data, read_bytes, to_text
from commonplace.text.chunk import CHUNKER
from commonplace.text.languages import PROSE, Language, language_of
from commonplace.text.tokens import many_words
from commonplace.types import FileProblem, FileStamp, IndexReport, Owner, Progress

ARTIFACT_IDS: Final = uuid.UUID("0b9a4f4e-5f0c-5c1e-8d7b-7a2c9f6e3d10")
"""UUIDv5 namespace of artifact ids; it never changes, so that a rebuild gives the same ids."""

RACY_NS: Final = 2_000_000_000
"""Age below which a file may change again with the same time: some file systems store times to two seconds."""

_BY_GLOB: Final = "/asked"
"""Suffix of the recipe of a text indexed only because a glob matched it; a run without globs drops such texts."""

_BATCH: Final = 1000
_PROGRESS_STEP: Final = 64
_log = logging.getLogger(__name__)


def artifact_id(namespace: str, path: str) -> str:
    """Return the id of the artifact at a path; it stays the same when the file is indexed again."""
    return str(uuid.uuid5(ARTIFACT_IDS, f"{namespace}\n{path}"))


def recipe(destination: Destination) -> str:
    """Return what an artifact depends on besides its file's bytes; runs that would write the same return the same."""
    limits, stamp = destination.limits, destination.embedder.stamp.of("artifact")
    return f"{CHUNKER}.{RULES}.{WORDING}/{limits.chunk_tokens}/{limits.chunk_overlap}/{stamp}"


@many_words()
def index_root(
    destination: Destination,
    selection: Selection,
    *,
    force: bool = False,
    spares_all: bool = False,
    keep_most: bool = False,
    progress: Progress | None = None,
    stored: Callable[[int, int], None] | None = None,
    clock: Callable[[], int] = time.time_ns,
) -> IndexReport:
    """Index the files of a selection and remove the artifacts that are gone.

    An artifact belongs to the root of the last run that selected its file; a file indexed by its own name is its own
    root. An artifact of this root is gone if this run did not select it. An artifact of another root inside this one
    is gone if its file no longer exists, or if the file or a directory between its root and the file is refused
    (ignored, secret, too large). An artifact of another root stays if only this run's globs leave it out. Artifacts
    whose path could not be read stay as well.

    Args:
        spares_all: fail if no file is visible any more, instead of removing all artifacts of the root.
        keep_most: refuse to remove more than half of the artifacts below the root.
        progress: called with a phrase, the files processed and the files found.
        stored: called with how many of the found files the store already holds or rejects, and how many were found;
            before many new files, after each transaction, and when the run is interrupted.

    Returns:
        A report. An unusable file is counted in `skipped` or named in `problems`; none is fatal.

    Raises:
        NotFoundError: the root does not exist; or, with `spares_all`, none of its indexed files is visible.
        RemovalError: more than half would be removed and `keep_most` is set; nothing was changed.
        UsageError: a glob is not valid, or the chunk limits are impossible.
    """
    started = time.perf_counter()
    run = _Run(destination, selection, force=force, clock=clock)
    found = run.found
    if spares_all and not found.files and any(owner.root == found.root for _, owner in run.stored.values()):
        raise NotFoundError(
            f"none of the files of {str(selection.root)!r} is visible any more, so nothing was removed from the store",
            remedy="bring them back, or run `commonplace index build`, which removes what is gone",
        )
    if keep_most:
        removed, indexed = run.loss()
        if 2 * removed > indexed:
            raise RemovalError(
                f"{removed:,} of the {indexed:,} files that are indexed below {selection.root} would be removed from "
                "the index",
                removed=removed,
                indexed=indexed,
                remedy="check the directory and the globs, or pass --yes to remove them",
            )
    run.take_all(progress, stored or (lambda _done, _total: None))
    return IndexReport(
        added=run.counts["added"],
        changed=run.counts["changed"],
        unchanged=run.counts["unchanged"],
        removed=run.counts["removed"],
        passages=run.writer.passages,
        skipped=dict(sorted(found.skipped.items())),
        problems=tuple(sorted(found.problems, key=lambda problem: (problem.path, problem.reason))),
        seconds=time.perf_counter() - started,
        change=destination.store.change(destination.namespace),
    )


class _Run:
    """One run: the stored artifacts, the found files, and the changes between them."""

    def __init__(
        self, destination: Destination, selection: Selection, *, force: bool, clock: Callable[[], int]
    ) -> None:
        self._destination = destination
        self._selection = selection
        self._force = force
        self._clock = clock
        self._recipe = recipe(destination)
        self._by_glob = self._recipe + _BY_GLOB
        self._project = "" if selection.project is None else os.path.realpath(selection.project)
        self.stored = {
            owner.path: (number, owner) for number, owner in destination.store.artifacts(destination.namespace)
        }
        self.found: Discovery = discover(selection)
        self._paths: Set[str] = {file.path for file in self.found.files}
        self._all_paths: Set[str] = self._paths | self.stored.keys()
        self._restamped: list[tuple[str, str, FileStamp]] = []
        self._removed: list[int] = []
        self.writer = PassageWriter(destination)
        self.counts: Counter[str] = Counter()
        # How many files the store lacks, and how many of these the current batch adds.
        self._missing = sum(file.path not in self.stored for file in self.found.files)
        self._coming = 0

    def loss(self) -> tuple[int, int]:
        """Return how many artifacts this run would remove, and how many belong to this root or lie inside it."""
        below = os.path.realpath(self._selection.root)
        indexed = [
            (path, owner)
            for path, (_, owner) in self.stored.items()
            if owner.root == self.found.root or _holds(below, self._location(path))
        ]
        return sum(self._is_gone(path, owner) for path, owner in indexed), len(indexed)

    def take_all(self, progress: Progress | None, stored: Callable[[int, int], None]) -> None:
        files, store, namespace = self.found.files, self._destination.store, self._destination.namespace
        try:
            if self._missing > self._destination.limits.batch_owners:
                stored(*self._stored_of_all())
            for number, file in enumerate(files):
                if progress and number % _PROGRESS_STEP == 0:
                    progress("Indexing files", number, len(files))
                written = self.writer.passages
                self._update(file)
                if self.writer.passages != written:
                    stored(*self._stored_of_all())
            self.writer.flush()
            for begin in range(0, len(self._restamped), _BATCH):
                store.restamp_artifacts(namespace, self._restamped[begin : begin + _BATCH])
            self._removed.extend(number for path, (number, owner) in self.stored.items() if self._is_gone(path, owner))
            for begin in range(0, len(self._removed), _BATCH):
                store.delete_owners(namespace, self._removed[begin : begin + _BATCH])
            self.counts["removed"] = len(self._removed)
        except BaseException:
            stored(*self._stored_of_all())
            raise
        if progress:
            progress("Indexing files", len(files), len(files))

    def _stored_of_all(self) -> tuple[int, int]:
        if not self.writer.pending:
            self._missing, self._coming = self._missing - self._coming, 0
        return len(self.found.files) - self._missing, len(self.found.files)

    def _update(self, file: FoundFile) -> None:
        """Bring one found file up to date; read errors are reported."""
        stored = self.stored.get(file.path)
        self._coming += stored is None
        # The stored stamp, if this run would make the same passages.
        current = stored[1].stamp if stored and not self._force else None
        has_globs = self._selection.include is not None
        if current and current.recipe != self._recipe and not (current.recipe == self._by_glob and has_globs):
            current = None
        if stored and current and current.mtime_ns == file.mtime_ns and current.size == file.size:
            self._keep(stored[1], current)
            return
        try:
            self._read(file, stored, current)
        except OSError as error:
            self.found.skipped["unreadable"] += 1
            self._report(file, f"cannot be read: {error.strerror or error}")

    def _read(self, file: FoundFile, stored: tuple[int, Owner] | None, current: FileStamp | None) -> None:
        content = read_bytes(file.location, self._selection.max_file_bytes)
        if isinstance(content, Refusal):
            self._refuse(file, content, stored)
            return
        data, read_stamp = content
        # The time of a file this young proves nothing, as in git: store none.
        is_young = read_stamp.mtime_ns > self._clock() - RACY_NS
        stamp = replace(read_stamp, mtime_ns=0 if is_young else read_stamp.mtime_ns, recipe=self._recipe)
        if stored and current and current.sha256 == stamp.sha256:
            self._keep(stored[1], replace(stamp, recipe=current.recipe))
            return
        decoded = to_text(data)
        if isinstance(decoded, Refusal):
            self._refuse(file, decoded, stored)
            return
        text, note = decoded
        language = language_of(os.path.basename(file.path)) or "text"  # noqa: PTH119 -- paths are strings here
        if reason := _unwanted(text, language):
            if self._selection.include is None:
                # Keep it if a run of another root selected it by a glob.
                before = stored[1] if stored and stored[1].root != self.found.root else None
                is_kept = before is not None and before.stamp is not None and before.stamp.recipe.endswith(_BY_GLOB)
                self._refuse(file, Refusal(reason), None if is_kept else stored)
                return
            stamp = replace(stamp, recipe=self._by_glob)
        if note:
            self._report(file, note)
        owner = Owner(
            id=artifact_id(self._destination.namespace, file.path),
            kind="artifact",
            path=file.path,
            root=self._root_of(file.path, stored[1].root if stored else ""),
            at=read_stamp.mtime_ns / 1e9,
            stamp=stamp,
        )
        try:
            owner, faults = describe(owner, text, language, self._all_paths)
            prepared = self.writer.prepare(owner, text, language)
        except CommonplaceError:
            raise
        except Exception as error:
            # A bug of ours costs only this file.
            _log.exception("indexing of one file failed", extra={"fields": {"path": file.path}})
            self.found.skipped["failed"] += 1
            self._report(file, f"cannot be indexed: {type(error).__name__}: {error}; please report this")
            return
        for fault in faults:
            self._report(file, fault)
        self.writer.add(prepared)
        self.counts["changed" if stored else "added"] += 1

    def _keep(self, owner: Owner, stamp: FileStamp) -> None:
        self.counts["unchanged"] += 1
        root = self._root_of(owner.path, owner.root)
        if (owner.root, owner.stamp) != (root, stamp):
            self._restamped.append((owner.path, root, stamp))

    def _root_of(self, path: str, before: str) -> str:
        """Return the root that a selected file belongs to: this run's, unless the file is its own root."""
        return before if before and path in {before, self.found.root} else self.found.root

    def _refuse(self, file: FoundFile, refusal: Refusal, stored: tuple[int, Owner] | None) -> None:
        self.found.skipped[refusal.reason] += 1
        if refusal.detail:
            self._report(file, refusal.detail)
        if stored:
            self._removed.append(stored[0])

    def _report(self, file: FoundFile, reason: str) -> None:
        self.found.problems.append(FileProblem(file.path, reason))

    def _is_gone(self, path: str, owner: Owner) -> bool:
        if path in self._paths or any(path == unseen or _holds(unseen, path) for unseen in self.found.unseen):
            return False
        if owner.root == self.found.root:
            return True
        location = self._location(path)
        if not _holds(os.path.realpath(self._selection.root), location):
            return False
        if not os.path.lexists(location):
            return True
        # The file, or a directory between its root and the file, may be refused.
        while path not in {owner.root, self.found.root, ""}:
            if path in self.found.refused:
                return True
            path = path.rpartition("/")[0]
        return False

    def _location(self, path: str) -> str:
        return os.path.join(self._project, path)  # noqa: PTH118 -- keeps absolute paths


def _unwanted(text: str, language: Language) -> str:
    """Return why a text is indexed only if a glob matches it, or ""."""
    if language in {"python", "code"}:
        return "generated" if looks_generated(text) else ""
    return "data" if language in PROSE and looks_like_data(text) else ""


def _holds(directory: str, path: str) -> bool:
    """Return whether a path is inside a directory; both are absolute, or both artifact paths."""
    if directory == ".":
        return not path.startswith("/")
    return path.startswith(directory.rstrip("/") + "/")
