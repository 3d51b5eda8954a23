"""Build the next generation of an index and publish it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from stat import S_ISREG

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import IndexFaultError
from commonplace.files import sync
from commonplace.index import chunks, files
from commonplace.ranking.arrays import distinct
from commonplace.ranking.bm25 import NAMES, UNIT, code_of, lengths_of, pack
from commonplace.text.languages import ENGLISH
from commonplace.text.tokens import fields_of, many_words, passage_language
from commonplace.types import Head, IndexEntry

_DEAD_SHARE = 1 / 3  # a chunk with more dead rows is rewritten
_MERGE_RATIO = 2  # a chunk is merged with what comes after it unless it is more than this many times as large


@dataclass(slots=True, eq=False)
class _Chunk:
    """A chunk of the generation that is written; `live` marks the rows that count: bool, shape (rows,)."""

    file: str
    space: str
    rows: chunks.ChunkFile
    live: NDArray[np.bool_]


class DenseWriter:
    """Collects the changes of one update; `finish` writes them."""

    def __init__(self, directory: Path, manifest: files.Manifest) -> None:
        """Begin from the generation that `manifest` describes, whose files are already in `directory`."""
        self._directory = directory
        self._generation = manifest.generation
        self._embedding = manifest.embedding
        self._dimensions = {str(space): space.dimensions for space in manifest.embedding.spaces}
        self._space_of: dict[str, str] = {}
        self._chunks: list[_Chunk] = []
        for record, dead in zip(manifest.chunks, chunks.read_dead(directory, manifest), strict=True):
            self._open(record.file, record.space).live[dead] = False
        self._counted = manifest.counted
        self._statistics = [list(totals) for totals in manifest.statistics]
        self._pending: dict[int, tuple[int, int, str, bytes, bytes]] = {}
        self._names: dict[int, set[str]] = {}

    def delete(self, numbers: Sequence[int]) -> int:
        """Mark passages as dead; return how many were held. Unknown numbers are passed over."""
        distinct_numbers = distinct(np.array(numbers, dtype=np.int64))
        pending = [self._pending.pop(number) for number in distinct_numbers.tolist() if number in self._pending]
        dropped = len(pending)
        for _, code, _, _, terms in pending:
            self._count(code, terms, -1)
        for chunk in self._chunks:
            rows = chunk.rows.find(distinct_numbers)
            rows = rows[rows >= 0]
            rows = rows[chunk.live[rows]]
            dropped += len(rows)
            chunk.live[rows] = False
            for code, terms in zip(chunk.rows.codes[rows].tolist(), chunk.rows.terms(rows), strict=True):
                self._count(code, terms, -1)
        return dropped

    def unsure(self) -> list[tuple[int, int]]:
        """Return (code of the namespace, number) of live passages with a word whose key another word has too."""
        return [passage for chunk in self._chunks for passage in chunk.rows.unsure(chunk.live)]

    def add(
        self, entry: IndexEntry, code: int, language: str, fields: Mapping[str, Sequence[str]], *, is_new: bool
    ) -> None:
        """Add a passage with its terms by field; one that is not new replaces an earlier row, which is already deleted.

        A passage whose vector is made later has zeros, which are never found.
        """
        space = self._space_of.get(entry.kind)
        if space is None:
            space = self._space_of[entry.kind] = str(self._embedding.of(entry.kind))
        dimensions = self._dimensions[space]
        if entry.vector and len(entry.vector) != dimensions:
            raise ValueError(f"passage {entry.number} has {len(entry.vector)} dimensions, expected {dimensions}")
        terms = pack(fields)
        names = self._names.setdefault(code, set())
        names.update(*fields.values())
        for name in (entry.kind, *(() if language == ENGLISH else (language,))):
            # Kind and language follow the terms of a row as labels, terms that count in no field.
            terms += code_of(chunks.label(name)).to_bytes(UNIT.itemsize, "little")
            names.add(chunks.label(name))
        self._pending[entry.number] = (entry.owner_number, code, space, entry.vector or bytes(dimensions), terms)
        self._count(code, terms, 1)
        self._counted += is_new
        if len(self._pending) >= chunks.LARGEST_CHUNK:
            for space, rows in self._flush().items():
                self._append(space, rows)

    def finish(self, *, purge: bool) -> tuple[tuple[files.ChunkRecord, ...], int, tuple[tuple[int, ...], ...]]:
        """Write what is left; return the chunks in order, the number of passages counted, and the statistics.

        The new rows are written together with those of chunks that have many dead ones, or are small beside them.

        Args:
            purge: leave no row of a passage that was deleted.
        """
        parts = {space: [rows] for space, rows in self._flush().items()}
        for chunk in reversed(self._chunks.copy()):
            if np.count_nonzero(~chunk.live) > (0 if purge else _DEAD_SHARE) * len(chunk.live):
                parts.setdefault(chunk.space, []).append(self._remove(chunk))
        for space, gathered in parts.items():
            size = sum(map(len, gathered))
            for chunk in reversed([candidate for candidate in self._chunks if candidate.space == space]):
                live_count = int(np.count_nonzero(chunk.live))
                if not size or live_count > _MERGE_RATIO * size or live_count + size > chunks.LARGEST_CHUNK:
                    break
                gathered.append(self._remove(chunk))
                size += live_count
            rows = chunks.concatenate(gathered)
            for start in range(0, size, chunks.LARGEST_CHUNK):
                self._append(space, rows.take(np.arange(start, min(size, start + chunks.LARGEST_CHUNK))))
        dead = [np.flatnonzero(~chunk.live) for chunk in self._chunks]
        path = self._directory / chunks.DEAD
        path.unlink(missing_ok=True)  # the last generation's may be the same file through a link
        files.write_file(path, np.concatenate(dead).astype("<i4").tobytes() if dead else b"")
        records = [
            files.ChunkRecord(chunk.file, chunk.rows.rows, len(dead_rows), chunk.space)
            for chunk, dead_rows in zip(self._chunks, dead, strict=True)
        ]
        return tuple(records), self._counted, tuple(map(tuple, self._statistics))

    def _count(self, code: int, terms: bytes, sign: int) -> None:
        if sign < 0 and not 0 <= code < len(self._statistics):
            raise IndexFaultError("was damaged: a row is of a namespace that there is not")
        while len(self._statistics) <= code:
            self._statistics.append([0] * (1 + len(NAMES)))
        totals = self._statistics[code]
        for index, number in enumerate((1, *lengths_of(terms))):
            totals[index] += sign * number

    def _flush(self) -> dict[str, chunks.Rows]:
        """Return the new rows of each embedder."""
        by_space: dict[str, list[int]] = {}
        names = {key: name for code, terms in self._names.items() for key, name in chunks.names_of(terms, code).items()}
        for number in sorted(self._pending):
            by_space.setdefault(self._pending[number][2], []).append(number)
        parts = {}
        for space, numbers in by_space.items():
            owners, codes, _, vectors, terms = zip(*(self._pending[number] for number in numbers), strict=True)
            table = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, self._dimensions[space])
            keys = np.array(numbers, np.int64), np.array(owners, np.int64), np.array(codes, np.int32)
            parts[space] = chunks.Rows(
                table.shape[1], (*keys, chunks.norms_of(table), chunks.signs_of(table)), terms, names
            )
        self._pending.clear()
        self._names.clear()
        return parts

    def _remove(self, chunk: _Chunk) -> chunks.Rows:
        """Remove a chunk and return its live rows."""
        rows = chunk.rows.read(chunk.live)
        (self._directory / chunk.file).unlink()
        self._chunks.remove(chunk)
        return rows

    def _append(self, space: str, rows: chunks.Rows) -> None:
        used_names = {path.name for path in (self._directory / "dense").iterdir()}
        names = (f"{self._generation:08d}-{index}.chunk" for index in count())
        file = f"dense/{next(name for name in names if name not in used_names)}"
        chunks.write_chunk(self._directory / file, rows)
        self._open(file, space)

    def _open(self, file: str, space: str) -> _Chunk:
        """Open a chunk, all rows of which count, as the last one."""
        rows = chunks.ChunkFile(self._directory / file, self._dimensions[space])
        self._chunks.append(_Chunk(file, space, rows, np.ones(rows.rows, dtype=np.bool_)))
        return self._chunks[-1]


_PROGRESS_STEP = 500


def update(
    directory: Path,
    base: files.Manifest,
    entries: Iterable[IndexEntry],
    deleted: Iterable[int],
    heads: Mapping[str, Head],
    *,
    purge: bool,
    progress: Callable[[int], None],
    again: Callable[[str, int], Iterable[IndexEntry]],
) -> tuple[int, int]:
    """Build and publish the generation after `base`; return how many passages were added and deleted.

    The caller is the only writer; see `Index.update`. A base without files begins with nothing.
    """
    deleted_numbers, remaining = set(deleted), iter(entries)
    first = next(remaining, None)
    if first is None and not deleted_numbers and base.files and not purge:
        files.replace_file(directory / files.CURRENT, files.encode(replace(base, heads=heads)))
        return 0, 0
    numbers = [_number(path) for path in directory.glob("g*")]
    manifest = replace(base, heads=heads, generation=max([base.generation, *numbers]) + 1)
    draft = files.generation_path(directory, manifest.generation)
    _remove_leftovers(directory)
    try:
        base_directory = files.generation_path(directory, base.generation)
        files.OpenFiles(base_directory, base.files)
        (draft / "dense").mkdir(parents=True)
        for name in base.files:
            try:
                os.link(base_directory / name, draft / name)  # a file never changes
            except OSError:
                # Some file systems have no links. The time must stay the recorded one.
                shutil.copy2(base_directory / name, draft / name)
        dense = DenseWriter(draft, manifest)
        dropped = dense.delete(sorted(deleted_numbers))
        changed = chain(() if first is None else (first,), remaining)
        if purge:
            codes = manifest.namespaces
            unsure = dense.unsure()
            changed = chain(changed, chain.from_iterable(again(codes[code], number) for code, number in unsure))
        with many_words():
            manifest, added, replaced = _add(dense, manifest, changed, deleted_numbers, progress)
            records, counted, statistics = dense.finish(purge=purge)
        documents = manifest.documents + added - replaced - dropped
        counted = documents if purge else counted
        manifest = replace(manifest, documents=documents, counted=counted, statistics=statistics, chunks=records)
        manifest = replace(manifest, files=_record(draft, base))
        files.replace_file(directory / files.CURRENT, files.encode(manifest))
    finally:
        _remove_leftovers(directory)
    return added, dropped


def _add(
    dense: DenseWriter,
    manifest: files.Manifest,
    entries: Iterable[IndexEntry],
    deleted: set[int],
    progress: Callable[[int], None],
) -> tuple[files.Manifest, int, int]:
    """Add the entries that are not deleted; return the manifest, how many, and how many of them were held before."""
    codes = {name: code for code, name in enumerate(manifest.namespaces)}
    last = dict(enumerate(manifest.last_numbers))
    added = replaced = 0
    for entry in entries:
        if entry.number in deleted:
            continue
        code = codes.setdefault(entry.namespace, len(codes))
        is_new = entry.number > last.setdefault(code, -1)
        if not is_new:
            replaced += dense.delete([entry.number])
        language = passage_language(entry)
        dense.add(entry, code, language, fields_of(entry, language), is_new=is_new)
        last[code] = max(last[code], entry.number)
        added += 1
        if added % _PROGRESS_STEP == 0:
            progress(added)
    progress(added)
    return replace(manifest, namespaces=tuple(codes), last_numbers=tuple(last.values())), added, replaced


def _record(draft: Path, base: files.Manifest) -> dict[str, files.FileRecord]:
    """Return the records of a generation's files, after waiting until the disk has their names."""
    records: dict[str, files.FileRecord] = {}
    for path in sorted(draft.glob("*/*")):
        name, stat = path.relative_to(draft).as_posix(), path.stat()
        record = None if name == chunks.DEAD else base.files.get(name)
        if record is None or (record.size, record.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
            record = files.record(path)
        records[name] = record
    # The files themselves are on disk already, because their writer waits for that. Their names may not be.
    for directory in (*draft.iterdir(), draft):
        sync(directory)
    return records


def _remove_leftovers(directory: Path) -> None:
    """Remove every generation but the published one and the one before it, which others may be opening.

    Files that a reader has open stay until it closes them, so that nobody takes them for deleted before they are.
    """
    published = files.published_generation(directory)
    earlier = sorted(number for path in directory.glob("g*") if (number := _number(path)) <= published)
    for path in directory.glob("g*"):
        if _number(path) not in earlier[-2:]:
            remove_unless_open(path)


def remove_older(directory: Path) -> list[str]:
    """Empty and remove every generation but the published one; return the names of those that are being read.

    A reader that is about to open one of them finds it missing and tries again. The caller is the only writer.
    """
    published = files.published_generation(directory)
    return [
        path.name
        for path in sorted(directory.glob("g*"))
        if path.is_dir() and _number(path) != published and not empty_and_remove(path)
    ]


def remove_unless_open(directory: Path) -> bool:
    """Remove the files of a generation unless this process or another has them open; return whether it is gone."""
    if directory.is_symlink():  # what it leads to is not ours
        directory.unlink()
        return True
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return not directory.exists()
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # no locks on this file system
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(descriptor)
    return not directory.exists()


def empty_and_remove(directory: Path) -> bool:
    """Empty the files of a generation and remove them unless a reader uses it now; return whether it is gone.

    Nothing of them is on the disk then, even if an idle process has them open. A file that another generation links to
    is left to that one.
    """
    if directory.is_symlink():  # what it leads to is not ours
        directory.unlink()
        return True
    try:
        with (directory / files.IN_USE).open("rb") as lock_file:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in directory.rglob("*"):
                status = path.lstat()
                if S_ISREG(status.st_mode) and status.st_nlink == 1:
                    os.truncate(path, 0)
            shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError:
        return False
    except OSError:
        return remove_unless_open(directory)
    return not directory.exists()


def _number(path: Path) -> int:
    digits = path.name[1:]
    return int(digits) if digits.isdecimal() else 0
