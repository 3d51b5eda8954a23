"""Chunk files: immutable tables of int8 vectors with their sign bits in columns; they know rows, not what is deleted.

A file is a header, then sections that begin at multiples of 64 bytes: numbers int64, owners int64, namespace codes
int32, norms float32, sign bits (one uint64 column for every 64 dimensions), vectors int8. Rows ascend by number.
Integers are little-endian. All but the vectors is kept in memory, for every search goes through it; vectors are read as
they are needed. Nothing is mapped: a mapped file that somebody cuts short ends the process that reads it.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import IndexFaultError

LARGEST_CHUNK = 65_536
"""Rows of a full chunk."""

_MAGIC = b"CPCHUNK1"
_HEADER = struct.Struct("<8sII")
_ALIGNMENT = 64
_NEAR_ROWS = 16  # rows this close together are read in one go: a read costs as much as copying some kilobytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Passages for a chunk: numbers, owners int64, codes int32, shape (n,); vectors int8, shape (n, d)."""

    numbers: NDArray[np.int64]
    owners: NDArray[np.int64]
    codes: NDArray[np.int32]
    vectors: NDArray[np.int8]

    def take(self, rows: NDArray[np.intp]) -> Rows:
        return Rows(self.numbers[rows], self.owners[rows], self.codes[rows], self.vectors[rows])


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, ascending by number."""
    joined = Rows(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.owners for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.vectors for part in parts]),
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
        np.ascontiguousarray(rows.vectors),
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
        if self.dimensions != dimensions or os.fstat(self._descriptor).st_size < layout.end:
            raise IndexFaultError(f"was damaged: {path.name} does not hold {self.rows} rows of {dimensions} dimensions")
        self._vectors_at = layout.vectors
        head = self._read([(0, layout.vectors)])
        self.numbers = np.frombuffer(head, "<i8", self.rows, layout.numbers)
        self.owners = np.frombuffer(head, "<i8", self.rows, layout.owners)
        self.codes = np.frombuffer(head, "<i4", self.rows, layout.codes)
        self.norms = np.frombuffer(head, "<f4", self.rows, layout.norms)
        self.signs = np.frombuffer(head, "<u8", layout.words * self.rows, layout.signs).reshape(layout.words, -1)

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
        return Rows(self.numbers[rows], self.owners[rows], self.codes[rows], vectors)


class _Layout:
    """Offsets of the sections of a chunk file."""

    def __init__(self, rows: int, dimensions: int) -> None:
        self.words = -(-dimensions // 64)
        self.numbers = _aligned(_HEADER.size)
        self.owners = _aligned(self.numbers + 8 * rows)
        self.codes = _aligned(self.owners + 8 * rows)
        self.norms = _aligned(self.codes + 4 * rows)
        self.signs = _aligned(self.norms + 4 * rows)
        self.vectors = _aligned(self.signs + 8 * self.words * rows)
        self.end = self.vectors + rows * dimensions


def _aligned(offset: int) -> int:
    return offset + -offset % _ALIGNMENT
