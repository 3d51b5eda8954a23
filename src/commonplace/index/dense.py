"""Rows of passages: vectors for dense search, with candidates preselected by sign bits, and term counts.

The sign bits of query and passage agree the more, the smaller the angle between them (Charikar, "Similarity
estimation techniques from rounding algorithms", 2002). The best by that count are scored again by their int8 vectors.

A file is a header, then sections that begin at multiples of 64 bytes: numbers int64, owners int64, namespace codes
int32, norms float32, sign bits (one uint64 column for every 64 dimensions), where the terms of each row begin uint32,
vectors int8, terms (see `commonplace.ranking.bm25`). Rows ascend by number. Integers are little-endian. All but vectors
and terms is kept in memory, for every search goes through it; these are read as they are needed. Nothing is mapped: a
mapped file that somebody cuts short ends the process that reads it.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.errors import IndexFaultError
from commonplace.index.contract import Scope, Scored
from commonplace.index.files import Manifest
from commonplace.ranking.arrays import within

LARGEST_CHUNK = 65_536
"""Rows of a full chunk."""

_MAGIC = b"CPCHUNK2"
_HEADER = struct.Struct("<8sII")
_ALIGNMENT = 64
_NEAR_ROWS = 16  # rows this close together are read in one go: a read costs as much as copying some kilobytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Passages for a chunk: numbers, owners int64, codes int32, shape (n,); vectors int8, shape (n, d); terms."""

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    codes: NDArray[np.int32]
    vectors: NDArray[np.int8]
    terms: Sequence[bytes]

    def take(self, rows: NDArray[np.intp]) -> Rows:
        terms = [self.terms[row] for row in rows.tolist()]
        return Rows(self.numbers[rows], self.owners[rows], self.codes[rows], self.vectors[rows], terms)


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, ascending by number."""
    joined = Rows(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.owners for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.vectors for part in parts]),
        list(chain.from_iterable(part.terms for part in parts)),
    )
    return joined.take(np.argsort(joined.numbers, kind="stable"))


def sign_columns(vectors: NDArray[np.int8] | NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return one bit for each dimension, set where the value is positive: uint64, shape (ceil(d / 64), n)."""
    rows, dimensions = vectors.shape
    words = -(-dimensions // 64)
    bits = np.zeros((rows, words * 8), dtype=np.uint8)
    bits[:, : -(-dimensions // 8)] = np.packbits(np.greater(vectors, 0), axis=1, bitorder="little")
    return np.ascontiguousarray(bits.view("<u8").T)


def write_chunk(path: Path, rows: Rows) -> None:
    """Write a new chunk file and wait until the disk has it."""
    count, dimensions = rows.vectors.shape
    norms = np.sqrt(np.einsum("ij,ij->i", rows.vectors, rows.vectors, dtype=np.float32))
    sections = (
        rows.numbers.astype("<i8"),
        rows.owners.astype("<i8"),
        rows.codes.astype("<i4"),
        norms.astype("<f4"),
        sign_columns(rows.vectors),
        np.cumsum([0, *map(len, rows.terms)]).astype("<u4"),
        np.ascontiguousarray(rows.vectors),
        np.frombuffer(b"".join(rows.terms), np.uint8),
    )
    with path.open("wb") as file:
        file.write(_HEADER.pack(_MAGIC, count, dimensions))
        for section in sections:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            file.write(section.data)
        file.flush()
        os.fsync(file.fileno())


class ChunkFile:
    """An open chunk. Safe for threads; it stays readable after its file was deleted."""

    def __init__(self, path: Path, dimensions: int) -> None:
        """Open a chunk.

        Raises:
            FileNotFoundError: it was deleted.
            IndexFaultError: it is no chunk, or of other dimensions.
        """
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        header = os.pread(self._descriptor, _HEADER.size, 0)
        if len(header) < _HEADER.size or _HEADER.unpack(header)[0] != _MAGIC:
            raise IndexFaultError(f"was damaged: {path.name} is not a chunk")
        self.rows: int
        self.dimensions: int
        _, self.rows, self.dimensions = _HEADER.unpack(header)
        layout = _Layout(self.rows, self.dimensions)
        size = os.fstat(self._descriptor).st_size
        if self.dimensions != dimensions or size < layout.terms:
            raise IndexFaultError(f"was damaged: {path.name} does not hold {self.rows} rows of {dimensions} dimensions")
        self._vectors_at, self._terms_at = layout.vectors, layout.terms
        head = self._read([(0, layout.vectors)])
        self.numbers = np.frombuffer(head, "<i8", self.rows, layout.numbers)
        self.owners = np.frombuffer(head, "<i8", self.rows, layout.owners)
        self.codes = np.frombuffer(head, "<i4", self.rows, layout.codes)
        self.norms = np.frombuffer(head, "<f4", self.rows, layout.norms)
        self.signs = np.frombuffer(head, "<u8", layout.words * self.rows, layout.signs).reshape(layout.words, -1)
        self._begins = np.frombuffer(head, "<u4", self.rows + 1, layout.begins)
        if size < layout.terms + int(self._begins[-1]):
            raise IndexFaultError(f"was damaged: {path.name} does not hold the terms of {self.rows} rows")

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the row of each passage, -1 for one that is not here."""
        places = np.searchsorted(self.numbers, numbers)
        held = self.numbers[np.minimum(places, self.rows - 1)] == numbers
        return np.where(held, places, -1)

    def vectors(self, rows: NDArray[np.intp]) -> NDArray[np.int8]:
        """Read the vectors of ascending rows, at least one: int8, shape (len(rows), d).

        Raises:
            IndexFaultError: the file was cut short since it was opened.
        """
        starts_block = np.concatenate((np.ones(1, np.bool_), np.diff(rows) > _NEAR_ROWS))
        firsts = rows[starts_block]
        lengths = rows[np.append(starts_block[1:], True)] - firsts + 1
        offsets = (self._vectors_at + firsts * self.dimensions).tolist()
        data = self._read(zip(offsets, (lengths * self.dimensions).tolist(), strict=True))
        table = np.frombuffer(data, np.int8).reshape(-1, self.dimensions)
        gaps = firsts - (np.cumsum(lengths) - lengths)  # rows of the file that were passed over before each block
        return table[rows - gaps[np.cumsum(starts_block) - 1]] if len(table) > len(rows) else table

    def terms(self, rows: NDArray[np.intp]) -> list[bytes]:
        """Read the terms of rows.

        Raises:
            IndexFaultError: the file was cut short since it was opened.
        """
        begins, ends = (self._begins[rows].astype(np.int64) + self._terms_at).tolist(), self._begins[rows + 1]
        sizes = (ends - self._begins[rows]).tolist()
        found = [os.pread(self._descriptor, size, begin) for begin, size in zip(begins, sizes, strict=True)]
        if sum(map(len, found)) != sum(sizes):
            raise IndexFaultError("was damaged: a chunk was cut short while it was open")
        return found

    def _read(self, blocks: Iterable[tuple[int, int]]) -> bytes:
        """Read blocks by (offset, size), one after the other."""
        descriptor, pread, wanted = self._descriptor, os.pread, 0
        found = []
        for offset, size in blocks:
            found.append(pread(descriptor, size, offset))
            wanted += size
        data = found[0] if len(found) == 1 else b"".join(found)
        if len(data) != wanted:
            raise IndexFaultError("was damaged: a chunk was cut short while it was open")
        return data

    def read(self, keep: NDArray[np.bool_]) -> Rows:
        """Read the rows marked in `keep`, bool, shape (rows,)."""
        rows = np.flatnonzero(keep)
        vectors = self.vectors(np.arange(self.rows))[rows] if len(rows) else np.empty((0, self.dimensions), np.int8)
        return Rows(self.numbers[rows], self.owners[rows], self.codes[rows], vectors, self.terms(rows))


class _Layout:
    """Offsets of the sections of a chunk file."""

    def __init__(self, rows: int, dimensions: int) -> None:
        self.words = -(-dimensions // 64)
        self.numbers = _aligned(_HEADER.size)
        self.owners = _aligned(self.numbers + 8 * rows)
        self.codes = _aligned(self.owners + 8 * rows)
        self.norms = _aligned(self.codes + 4 * rows)
        self.signs = _aligned(self.norms + 4 * rows)
        self.begins = _aligned(self.signs + 8 * self.words * rows)
        self.vectors = _aligned(self.begins + 4 * (rows + 1))
        self.terms = _aligned(self.vectors + rows * dimensions)


def _aligned(offset: int) -> int:
    return offset + -offset % _ALIGNMENT


DEAD = "dense/dead"
"""Rows that no longer count, int32, chunk after chunk."""
ALL_EXACT = 2_000
"""Up to this many passages in scope are all scored exactly."""

CANDIDATES = 400
CANDIDATES_PER_HIT = 4
_FARTHEST = np.iinfo(np.uint16).max


def best(numbers: NDArray[np.int64], scores: NDArray[np.float32], limit: int) -> Scored:
    """Return the best by score, ties by number."""
    order = np.lexsort((numbers, -scores))[:limit]
    return Scored(numbers[order], scores[order])


class ChunkedDenseIndex:
    """The dense part of one generation: a `DenseIndex`. Safe for threads."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        """Open the files of a generation.

        Raises:
            FileNotFoundError: the generation was deleted meanwhile.
            IndexFaultError: a file does not hold what the manifest says.
        """
        self._spaces = [chunk.space for chunk in manifest.chunks]
        dimensions = {str(space): space.dimensions for space in manifest.embedding.spaces}
        self._codes = {name: code for code, name in enumerate(manifest.namespaces)}
        self.chunks = [ChunkFile(directory / chunk.file, dimensions[chunk.space]) for chunk in manifest.chunks]
        self.dead = read_dead(directory, manifest)
        self._last_masks: tuple[int, list[NDArray[np.bool_]]] = (-1, [])

    def search(self, vector: NDArray[np.float32], scope: Scope, limit: int, space: str = "") -> Scored:
        """Return the passages with the highest cosine; see `DenseIndex.search`."""
        found = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        code = self._codes.get(scope.namespace)
        places = [
            place
            for place, held in enumerate(self._spaces)
            if (held == space if space else self.chunks[place].dimensions == len(vector))
        ]
        if code is not None and limit > 0 and places and vector.any():
            for place, rows in zip(places, self._candidates(vector, scope, code, limit, places), strict=True):
                if len(rows):
                    chunk = self.chunks[place]
                    found[0].append(chunk.numbers[rows])
                    found[1].append(_cosines(chunk, rows, vector))
        return best(np.concatenate(found[0]), np.concatenate(found[1]), limit)

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the owner of each passage; see `DenseIndex.owners`."""
        found = np.full(len(numbers), -1, dtype=np.int64)
        for chunk in self.chunks:
            rows = chunk.find(numbers)
            found[rows >= 0] = chunk.owners[rows[rows >= 0]]
        return found

    def terms(self, numbers: NDArray[np.int64], code: int | None) -> list[bytes]:
        """Return the term counts of passages, b"" for one that is not here, or of a namespace with another code."""
        found = [b""] * len(numbers)
        for chunk, dead in zip(self.chunks, self.dead, strict=True):
            rows = chunk.find(numbers)
            places = np.flatnonzero((rows >= 0) & ~within(rows, dead))
            if code is not None:
                places = places[chunk.codes[rows[places]] == code]
            if len(places):
                for place, row in zip(places.tolist(), chunk.terms(rows[places]), strict=True):
                    found[place] = row
        return found

    def _candidates(
        self, vector: NDArray[np.float32], scope: Scope, code: int, limit: int, places: list[int]
    ) -> list[NDArray[np.intp]]:
        """Return for each chunk the ascending rows worth scoring exactly: the nearest by sign bits, ties by number."""
        chunks = [self.chunks[place] for place in places]
        masks = [self._in_scope(place, scope, code) for place in places]
        wanted = max(CANDIDATES, CANDIDATES_PER_HIT * limit)
        if sum(int(np.count_nonzero(mask)) for mask in masks) <= max(ALL_EXACT, wanted):
            return [np.flatnonzero(mask) for mask in masks]
        query = sign_columns(vector[np.newaxis])[:, 0]
        rows, distances = [], []
        bound = int(_FARTHEST)
        for chunk, mask in zip(chunks, masks, strict=True):
            everywhere = _distances(chunk, query)
            found = np.flatnonzero((everywhere <= bound) & mask)
            distance = everywhere[found]
            if len(found) > wanted and len(chunks) > 1:
                # Whatever is farther than so many of one chunk is not among the nearest of all.
                bound = int(np.partition(distance, wanted - 1)[wanted - 1])
                found, distance = found[distance <= bound], distance[distance <= bound]
            rows.append(found)
            distances.append(distance)
        numbers = [chunk.numbers[found] for chunk, found in zip(chunks, rows, strict=True)]
        return _nearest(rows, distances, numbers, wanted)

    def _in_scope(self, place: int, scope: Scope, code: int) -> NDArray[np.bool_]:
        """Return which rows of a chunk may be found: bool, shape (rows,), not to be written to."""
        chunk, mask = self.chunks[place], self._of_namespace(code)[place]
        if scope.owners is not None:
            mask = mask & within(chunk.owners, scope.owners)
        if scope.passed_over is not None and len(scope.passed_over):
            mask = mask & ~within(chunk.owners, scope.passed_over)
        if scope.dead is not None and len(scope.dead):
            rows = chunk.find(scope.dead)
            mask = mask.copy()
            mask[rows[rows >= 0]] = False
        return mask

    def _of_namespace(self, code: int) -> list[NDArray[np.bool_]]:
        """Return which rows of each chunk are a namespace's, live and of some direction: a zero vector never matches.

        Those of the namespace that was asked last are kept.
        """
        known, masks = self._last_masks
        if known != code:
            masks = [(chunk.codes == code) & (chunk.norms > 0) for chunk in self.chunks]
            for mask, dead in zip(masks, self.dead, strict=True):
                mask[dead] = False
            self._last_masks = code, masks
        return masks


def read_dead(directory: Path, manifest: Manifest) -> list[NDArray[np.int32]]:
    """Return the dead rows of each chunk, ascending.

    Raises:
        IndexFaultError: there are others than the manifest says.
    """
    dead = np.frombuffer((directory / DEAD).read_bytes() if DEAD in manifest.files else b"", "<i4")
    if len(dead) != sum(chunk.dead for chunk in manifest.chunks):
        raise IndexFaultError(f"was damaged: {DEAD} does not hold what the manifest says")
    return np.split(dead, np.cumsum([chunk.dead for chunk in manifest.chunks])[:-1]) if manifest.chunks else []


def _distances(chunk: ChunkFile, query: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return the number of differing sign bits: uint16, shape (rows,)."""
    distances = np.zeros(chunk.rows, dtype=np.uint16)
    for column, word in zip(chunk.signs, query, strict=True):
        distances += np.bitwise_count(column ^ word)
    return distances


def _nearest(
    rows: list[NDArray[np.intp]], distances: list[NDArray[np.uint16]], numbers: list[NDArray[np.int64]], wanted: int
) -> list[NDArray[np.intp]]:
    """Return of the rows of each chunk those that are among the nearest of all, ties by number.

    Not by place: which chunk a row is in depends on what other namespaces hold.
    """
    everywhere = np.concatenate(distances)
    cut = np.partition(everywhere, wanted - 1)[wanted - 1]
    nearer = everywhere < cut
    ties = np.flatnonzero(everywhere == cut)
    nearer[ties[np.argsort(np.concatenate(numbers)[ties])[: wanted - int(nearer.sum())]]] = True
    bounds = np.cumsum([len(each) for each in rows])[:-1]
    return [each[keep] for each, keep in zip(rows, np.split(nearer, bounds), strict=True)]


def _cosines(chunk: ChunkFile, rows: NDArray[np.intp], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine between a unit vector and ascending rows, 0 for a zero row: float32, shape (len(rows),)."""
    norms = chunk.norms[rows]
    products = chunk.vectors(rows).astype(np.float32) @ vector
    cosines: NDArray[np.float32] = np.divide(products, norms, out=np.zeros(len(rows), np.float32), where=norms > 0)
    return cosines
