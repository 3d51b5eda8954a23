"""Index the files of a directory incrementally, reading only those that changed.

A file whose size and time match its stamp costs one `stat`. One whose time changed is hashed; only new bytes, or a new
recipe, are chunked, embedded and written. Each batch is one transaction, so an interruption leaves whole files, old or
new.
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
"""Namespace of the UUIDv5 of artifacts; it never changes, so that a rebuild gives the same ids."""

RACY_NS: Final = 2_000_000_000
"""A file this young may change again without its time moving: some file systems keep times to two seconds."""

_ASKED: Final = "/asked"
"""Ends the recipe of a text that is indexed only because globs named it; a run without globs does not want it."""

_BATCH: Final = 1000
_PROGRESS_STEP: Final = 64
_log = logging.getLogger(__name__)


def artifact_id(namespace: str, path: str) -> str:
    """Return the id of the artifact at a path, the same whenever it is indexed."""
    return str(uuid.uuid5(ARTIFACT_IDS, f"{namespace}\n{path}"))


def recipe(destination: Destination) -> str:
    """Return what besides a file's bytes its artifact depends on: the same for two runs that would write the same."""
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
    """Index the files of a selection and drop the artifacts that are gone.

    An artifact belongs to the root of the last run that chose its file; a file that was indexed by its own name belongs
    to itself. Gone are those of this root that this run did not choose, and those of others inside this root whose file
    does not exist any more, or is passed over (ignored, secret, too large) on the way from their own root to them.
    What merely is not named by this run's globs stays if it belongs to another root; so does what could not be looked
    at.

    Args:
        spares_all: where no file is chosen any more, do not take that for the deletion of all that were indexed.
        keep_most: refuse to remove more than half of what is indexed below the root.
        progress: called with a phrase, the files done and the files found.
        stored: called with how many of the files found the store holds or does not want, and how many were found:
            before many new ones, after each transaction, and when the run is interrupted.

    Returns:
        A report. A file that cannot be used is counted in `skipped` or named in `problems`; none is fatal.

    Raises:
        NotFoundError: there is nothing at the root; or, with `spares_all`, nothing of what was indexed.
        RemovalError: more than half would be removed, and `keep_most` is set; nothing was changed.
        UsageError: a glob is not valid, or the chunk limits are impossible.
    """
    begun = time.perf_counter()
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
        seconds=time.perf_counter() - begun,
        change=destination.store.change(destination.namespace),
    )


class _Run:
    """One run: what is stored, what was found, and what becomes of both."""

    def __init__(
        self, destination: Destination, selection: Selection, *, force: bool, clock: Callable[[], int]
    ) -> None:
        self._destination = destination
        self._selection = selection
        self._force = force
        self._clock = clock
        self._recipe = recipe(destination)
        self._asked = self._recipe + _ASKED
        self._project = "" if selection.project is None else os.path.realpath(selection.project)
        self.stored = {
            owner.path: (number, owner) for number, owner in destination.store.artifacts(destination.namespace)
        }
        self.found: Discovery = discover(selection)
        self._paths: Set[str] = {file.path for file in self.found.files}
        self._known: Set[str] = self._paths | self.stored.keys()
        self._restamped: list[tuple[str, str, FileStamp]] = []
        self._gone: list[int] = []
        self.writer = PassageWriter(destination)
        self.counts: Counter[str] = Counter()
        # How many files the store lacks, and how many of them the batch that is being filled brings.
        self._missing = sum(file.path not in self.stored for file in self.found.files)
        self._coming = 0

    def loss(self) -> tuple[int, int]:
        """Return how many artifacts this run would remove, and how many there are of this root or inside it."""
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
                self._take(file)
                if self.writer.passages != written:
                    stored(*self._stored_of_all())
            self.writer.flush()
            for begin in range(0, len(self._restamped), _BATCH):
                store.restamp_artifacts(namespace, self._restamped[begin : begin + _BATCH])
            self._gone.extend(number for path, (number, owner) in self.stored.items() if self._is_gone(path, owner))
            for begin in range(0, len(self._gone), _BATCH):
                store.delete_owners(namespace, self._gone[begin : begin + _BATCH])
            self.counts["removed"] = len(self._gone)
        except BaseException:
            stored(*self._stored_of_all())
            raise
        if progress:
            progress("Indexing files", len(files), len(files))

    def _stored_of_all(self) -> tuple[int, int]:
        if not self.writer.pending:
            self._missing, self._coming = self._missing - self._coming, 0
        return len(self.found.files) - self._missing, len(self.found.files)

    def _take(self, file: FoundFile) -> None:
        """Bring one found file up to date; what goes wrong with it is reported."""
        stored = self.stored.get(file.path)
        self._coming += stored is None
        # The stamp of passages that this run would make in the same way.
        known = stored[1].stamp if stored and not self._force else None
        is_asked = self._selection.include is not None
        if known and known.recipe != self._recipe and not (known.recipe == self._asked and is_asked):
            known = None
        if stored and known and known.mtime_ns == file.mtime_ns and known.size == file.size:
            self._keep(stored[1], known)
            return
        try:
            self._read(file, stored, known)
        except OSError as error:
            self.found.skipped["unreadable"] += 1
            self._report(file, f"cannot be read: {error.strerror or error}")

    def _read(self, file: FoundFile, stored: tuple[int, Owner] | None, known: FileStamp | None) -> None:
        content = read_bytes(file.location, self._selection.max_file_bytes)
        if isinstance(content, Refusal):
            self._refuse(file, content, stored)
            return
        data, read_stamp = content
        # Of a file so young the time says nothing, as in git, so it is stored without one.
        is_young = read_stamp.mtime_ns > self._clock() - RACY_NS
        stamp = replace(read_stamp, mtime_ns=0 if is_young else read_stamp.mtime_ns, recipe=self._recipe)
        if stored and known and known.sha256 == stamp.sha256:
            self._keep(stored[1], replace(stamp, recipe=known.recipe))
            return
        decoded = to_text(data)
        if isinstance(decoded, Refusal):
            self._refuse(file, decoded, stored)
            return
        text, note = decoded
        language = language_of(os.path.basename(file.path)) or "text"  # noqa: PTH119 -- paths are strings here
        if reason := _unwanted(text, language):
            if self._selection.include is None:
                # It stays if a run of another root asked for it.
                before = stored[1] if stored and stored[1].root != self.found.root else None
                is_asked = before is not None and before.stamp is not None and before.stamp.recipe.endswith(_ASKED)
                self._refuse(file, Refusal(reason), None if is_asked else stored)
                return
            stamp = replace(stamp, recipe=self._asked)
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
            owner, faults = describe(owner, text, language, self._known)
            prepared = self.writer.prepare(owner, text, language)
        except CommonplaceError:
            raise
        except Exception as error:
            # A fault of ours costs this file alone.
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
        """Return whose a chosen file is: this run's, unless it was named by itself, before or now."""
        return before if before and path in {before, self.found.root} else self.found.root

    def _refuse(self, file: FoundFile, refusal: Refusal, stored: tuple[int, Owner] | None) -> None:
        self.found.skipped[refusal.reason] += 1
        if refusal.detail:
            self._report(file, refusal.detail)
        if stored:
            self._gone.append(stored[0])

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
        # The file, or a directory on the way to it from its own root, may not be for indexing.
        while path not in {owner.root, self.found.root, ""}:
            if path in self.found.refused:
                return True
            path = path.rpartition("/")[0]
        return False

    def _location(self, path: str) -> str:
        return os.path.join(self._project, path)  # noqa: PTH118 -- keeps absolute paths


def _unwanted(text: str, language: Language) -> str:
    """Return why a text is indexed only on request, or ""."""
    if language in {"python", "code"}:
        return "generated" if looks_generated(text) else ""
    return "data" if language in PROSE and looks_like_data(text) else ""


def _holds(directory: str, path: str) -> bool:
    """Return whether a path is inside a directory; both absolute, or both artifact paths."""
    if directory == ".":
        return not path.startswith("/")
    return path.startswith(directory.rstrip("/") + "/")
