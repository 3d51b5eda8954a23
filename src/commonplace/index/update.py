"""Build the next generation of an index beside the current one and publish it; knows files, and asks for no lock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from commonplace.files import sync
from commonplace.index.dense import DEAD, FREQUENCIES
from commonplace.index.dense_writer import DenseWriter
from commonplace.index.files import OpenFiles, empty_and_remove, record, remove_unless_open
from commonplace.index.lexical import LEXICAL
from commonplace.index.lexical_writer import COPIED, LexicalWriter
from commonplace.index.manifest import (
    CURRENT,
    FileRecord,
    Manifest,
    encode,
    generation_path,
    published_generation,
    replace_file,
)
from commonplace.text.analysis import many_words
from commonplace.types import IndexEntry

_PROGRESS_STEP = 500
_COPIED = tuple(f"{LEXICAL}/{name}" for name in COPIED)
_REWRITTEN = {*_COPIED, DEAD, FREQUENCIES}


class Update:
    """One step from a generation to the next; the caller is the only writer."""

    def __init__(
        self, directory: Path, base: Manifest, progress: Callable[[int], None], checkpoint: Callable[[str], None]
    ) -> None:
        """Prepare to build upon `base`; a base without files begins with nothing."""
        self._directory = directory
        self._base = base
        self._progress = progress
        self._checkpoint = checkpoint
        numbers = [_number(path) for path in directory.glob("g*")]
        self._manifest = replace(base, generation=max([base.generation, *numbers]) + 1)
        self._draft = generation_path(directory, self._manifest.generation)

    def run(self, entries: Iterable[IndexEntry], deleted: Iterable[int], upto: int, token: str) -> tuple[int, int]:
        """Build and publish; return how many passages were added and deleted."""
        self._manifest = replace(self._manifest, change=upto, token=token)
        gone, coming = set(deleted), iter(entries)
        first = next(coming, None)
        if first is None and not gone and self._base.files:
            replace_file(self._directory / CURRENT, encode(replace(self._base, change=upto, token=token)))
            return 0, 0
        self._remove_leftovers()
        try:
            with many_words():
                changed = self._build(chain(() if first is None else (first,), coming), gone)
            self._publish()
        finally:
            self._remove_leftovers()
        return changed

    def _build(self, entries: Iterable[IndexEntry], deleted: set[int]) -> tuple[int, int]:
        self._checkpoint("link")
        self._link()
        self._checkpoint("open")
        dense = DenseWriter(self._draft, self._manifest)
        lexical = LexicalWriter(self._draft / LEXICAL, self._manifest, is_rebuild=not self._base.files)
        try:
            self._checkpoint("add")
            dropped = dense.delete(sorted(deleted))
            for number in deleted:
                lexical.delete(number)
            added, replaced = self._add(entries, deleted, lexical, dense)
            self._checkpoint("commit")
            mean_lengths = lexical.finish()
        except BaseException:
            lexical.abandon()
            raise
        self._checkpoint("dense")
        chunks, counted = dense.finish()
        self._manifest = replace(
            self._manifest,
            documents=self._manifest.documents + added - replaced - dropped,
            counted=counted,
            mean_lengths=mean_lengths,
            chunks=chunks,
        )
        return added, dropped

    def _add(
        self, entries: Iterable[IndexEntry], deleted: set[int], lexical: LexicalWriter, dense: DenseWriter
    ) -> tuple[int, int]:
        """Add the entries that are not deleted; return how many, and how many of them were held before."""
        codes = {name: code for code, name in enumerate(self._manifest.namespaces)}
        added = replaced = 0
        last = self._manifest.last_number
        for entry in entries:
            if entry.number in deleted:
                continue
            is_new = entry.number > last
            if not is_new:
                replaced += dense.delete([entry.number])
            code = codes.setdefault(entry.namespace, len(codes))
            lexical.add(entry, code, is_new=is_new)
            dense.add(entry, code, is_new=is_new)
            last = max(last, entry.number)
            added += 1
            if added % _PROGRESS_STEP == 0:
                self._progress(added)
        self._manifest = replace(self._manifest, last_number=last, namespaces=tuple(codes))
        self._progress(added)
        return added, replaced

    def _link(self) -> None:
        """Give the draft the files of the base: links where a file never changes, copies where Tantivy replaces it."""
        before = generation_path(self._directory, self._base.generation)
        OpenFiles(before, self._base.files)
        for part in (LEXICAL, "dense"):
            (self._draft / part).mkdir(parents=True)
        for name in self._base.files:
            source, target = before / name, self._draft / name
            if name in _COPIED:
                shutil.copyfile(source, target)
                continue
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)  # some file systems have no links; the time must stay the recorded one

    def _publish(self) -> None:
        self._checkpoint("record")
        files: dict[str, FileRecord] = {}
        for path in sorted(self._draft.glob("*/*")):
            name = path.relative_to(self._draft).as_posix()
            known = None if name in _REWRITTEN else self._base.files.get(name)
            stat = path.stat()
            if known is None or (known.size, known.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
                known = record(path)
            files[name] = known
        # The files themselves are on disk already: both writers wait for that. Their names may not be.
        for directory in (*self._draft.iterdir(), self._draft):
            sync(directory)
        self._manifest = replace(self._manifest, files=files)
        self._checkpoint("publish")
        replace_file(self._directory / CURRENT, encode(self._manifest))
        self._checkpoint("sweep")

    def _remove_leftovers(self) -> None:
        """Remove every generation but the published one and the one before it, which others may be opening.

        What somebody still has open stays until he lets go, so that nobody takes for gone what is on the disk.
        """
        published = published_generation(self._directory)
        earlier = sorted(number for path in self._directory.glob("g*") if (number := _number(path)) <= published)
        for path in self._directory.glob("g*"):
            if _number(path) not in earlier[-2:]:
                remove_unless_open(path)


def remove_older(directory: Path) -> list[str]:
    """Empty and remove every generation but the published one; return the names of those that are read at this moment.

    Whoever is about to open or to read one of them finds it missing, and looks again. The caller is the only writer.
    """
    published = published_generation(directory)
    return [
        path.name
        for path in sorted(directory.glob("g*"))
        if path.is_dir() and _number(path) != published and not empty_and_remove(path)
    ]


def _number(path: Path) -> int:
    digits = path.name[1:]
    return int(digits) if digits.isdecimal() else 0
