"""Chunks, the files of an index: rows of passages with the sign bits of their vectors, term counts, and postings.

A file is a header, then sections that begin at multiples of 64 bytes: numbers int64, owners int64, namespace codes
int32, norms float32, sign bits (one uint64 column for every 64 dimensions), lengths of the fields uint16, keys of the
terms uint64 and where the postings of each begin uint32, where the terms of each row begin uint32, terms (see
`commonplace.ranking.bm25`), postings, names. Rows ascend by number. Integers are little-endian. A key is the code of a
namespace above that of a term. Its postings are a row, uint16, and the mark of a row's terms, for each field that holds
the term. Names are the terms themselves, in the order of the keys, compressed. Everything before the terms is kept in
memory, because every search scans it; the rest is read as needed. Nothing is memory-mapped: if a mapped file is cut
short, the process that reads it is killed.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import compress, decompress, error

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.errors import IndexFaultError
from commonplace.index.files import IN_USE, Manifest, unreadable
from commonplace.ranking.arrays import distinct, within
from commonplace.ranking.bm25 import NAMES, UNIT, Matches, code_of, fields_and_counts

LARGEST_CHUNK = 65_536
"""Number of rows of a full chunk: a posting has two bytes for the row."""

_MAGIC = b"CPCHUNK4"
_HEADER = struct.Struct("<8s5I")
_POSTING = np.dtype([("row", "<u2"), ("mark", "u1")])
_CODE = np.uint64(0xFFFFFFFF)
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Rows:
    """Passages for a chunk.

    Attributes:
        dimensions: of the vectors.
        columns: numbers and owners int64, namespace codes int32, norms of the vectors float32, shape (n,), and their
            signs uint64, shape (n, ceil(d / 64)).
        names: all terms by their keys, and perhaps others.
    """

    dimensions: int
    columns: tuple[NDArray[Any], ...]
    terms: Sequence[bytes]
    names: Mapping[int, str]

    def __len__(self) -> int:
        return len(self.terms)

    def take(self, rows: NDArray[np.intp]) -> Rows:
        columns = tuple(column[rows] for column in self.columns)
        return Rows(self.dimensions, columns, [self.terms[row] for row in rows.tolist()], self.names)


def names_of(terms: Iterable[str], space: int = 0) -> dict[int, str]:
    """Return terms of a namespace by their keys; terms that share a key are joined."""
    return _merge_names((space << 32 | code_of(term), term) for term in terms)


def _merge_names(pairs: Iterable[tuple[int, str]]) -> dict[int, str]:
    names: dict[int, str] = {}
    for key, name in pairs:
        if (stored := names.setdefault(key, name)) != name:
            names[key] = _DIVIDER.join(dict.fromkeys([*stored.split(_DIVIDER), *name.split(_DIVIDER)]))
    return names


_SEPARATOR, _DIVIDER, _LABEL = "\n", "\t", " "
"""Separators between names and between names of one key, and the prefix of a label: no term has white space."""


def label(name: str) -> str:
    """Return the label that passages of a kind, or in a language, have among their terms; no text holds it."""
    return f"{_LABEL}{name}"


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, ascending by number."""
    joined = Rows(
        parts[0].dimensions,
        tuple(np.concatenate(columns) for columns in zip(*(part.columns for part in parts), strict=True)),
        list(chain.from_iterable(part.terms for part in parts)),
        _merge_names(chain.from_iterable(part.names.items() for part in parts)),
    )
    return joined.take(np.argsort(joined.columns[0], kind="stable"))


def norms_of(vectors: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the length of each vector: float32, shape (n,)."""
    norms: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32))
    return norms


def signs_of(vectors: NDArray[np.int8] | NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return one bit for each dimension, set where the value is positive: uint64, shape (n, ceil(d / 64))."""
    rows, dimensions = vectors.shape
    words = -(-dimensions // 64)
    bits = np.zeros((rows, words * 8), dtype=np.uint8)
    bits[:, : -(-dimensions // 8)] = np.packbits(np.greater(vectors, 0), axis=1, bitorder="little")
    return bits.view("<u8")


def write_chunk(path: Path, rows: Rows) -> None:
    """Write a new chunk file and wait until the disk has it."""
    numbers, owners, codes, norms, signs = rows.columns
    lengths, keys, begins, postings = _invert(rows.terms, codes)
    try:
        names = _SEPARATOR.join([rows.names[key] for key in keys.tolist()])
    except KeyError as error:
        raise IndexFaultError("was damaged: a row has a term without a name") from error
    terms = b"".join(rows.terms)
    sections = (
        numbers.astype("<i8"),
        owners.astype("<i8"),
        codes.astype("<i4"),
        norms.astype("<f4"),
        np.ascontiguousarray(signs.T),
        lengths,
        keys,
        begins,
        np.cumsum([0, *map(len, rows.terms)]).astype("<u4"),
        np.frombuffer(terms, np.uint8),
        postings,
        np.frombuffer(packed := compress(names.encode(), 1), np.uint8),
    )
    with path.open("wb") as file:
        file.write(_HEADER.pack(_MAGIC, len(rows), rows.dimensions, len(keys), len(terms), len(packed)))
        for section in sections:
            file.write(bytes(-file.tell() % _ALIGNMENT))
            file.write(section.data)
        file.flush()
        os.fsync(file.fileno())


def _invert(
    terms: Sequence[bytes], codes: NDArray[np.int32]
) -> tuple[NDArray[np.uint16], NDArray[np.uint64], NDArray[np.uint32], NDArray[np.void]]:
    """Return the field lengths, the ascending keys, where the postings of each begin and all end, and the postings."""
    sizes = np.fromiter(map(len, terms), np.int64, len(terms)) // UNIT.itemsize
    units = np.frombuffer(b"".join(terms), UNIT)
    heads = (np.cumsum(sizes) - sizes)[:, np.newaxis] + np.arange(len(NAMES))
    lengths = np.minimum(units["value"][heads], 0xFFFF).astype("<u2")
    is_term = np.ones(len(units), np.bool_)
    is_term[heads] = False
    packed = np.repeat(np.arange(len(sizes), dtype=np.uint64) << np.uint64(8), sizes)[is_term]
    packed |= units["mark"][is_term]
    packed |= units["value"][is_term].astype(np.uint64) << np.uint64(24)
    packed.sort()
    namespaces = codes.astype(np.uint64)[packed >> np.uint64(8) & np.uint64(0xFFFF)]
    if len(namespaces) and (namespaces != namespaces[0]).any():
        order = np.argsort(namespaces, kind="stable")
        packed, namespaces = packed[order], namespaces[order]
    keys = namespaces << np.uint64(32) | packed >> np.uint64(24)
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    postings = np.empty(len(packed), _POSTING)
    postings["row"], postings["mark"] = packed >> np.uint64(8) & np.uint64(0xFFFF), packed & np.uint64(0xFF)
    return lengths, keys[starts].astype("<u8"), np.append(starts, len(packed)).astype("<u4"), postings


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
        _, self.rows, self.dimensions, keys, terms, names = _HEADER.unpack(header)
        words, offset, layout = -(-self.dimensions // 64), _HEADER.size, dict[str, tuple[str, int, int]]()
        sizes = (
            ("numbers", "<i8", self.rows),
            ("owners", "<i8", self.rows),
            ("codes", "<i4", self.rows),
            ("norms", "<f4", self.rows),
            ("signs", "<u8", words * self.rows),
            ("lengths", "<u2", len(NAMES) * self.rows),
            ("keys", "<u8", keys),
            ("lists", "<u4", keys + 1),
            ("begins", "<u4", self.rows + 1),
        )
        for name, kind, count in sizes:
            layout[name] = kind, count, _aligned(offset)
            offset = _aligned(offset) + int(kind[-1]) * count
        self._terms_offset = _aligned(offset)
        self._postings_offset = _aligned(self._terms_offset + terms)
        size = os.fstat(self._descriptor).st_size
        if self.dimensions != dimensions or size < self._terms_offset:
            raise IndexFaultError(f"was damaged: {path.name} does not hold {self.rows} rows of {dimensions} dimensions")
        head = b"".join(self._read_blocks([(0, self._terms_offset)]))
        arrays: dict[str, NDArray[Any]] = {name: np.frombuffer(head, *section) for name, section in layout.items()}
        self.numbers, self.owners, self.codes, self.norms = (arrays[name] for name, *_ in sizes[:4])
        self.signs = arrays["signs"].reshape(words, -1)
        self._lengths = arrays["lengths"].reshape(self.rows, -1)
        self._keys, self._lists, self._begins = arrays["keys"], arrays["lists"], arrays["begins"]
        self._names = _aligned(self._postings_offset + _POSTING.itemsize * int(self._lists[-1])), names
        steps = np.diff(self._begins.astype(np.int64))
        if (
            size != sum(self._names)
            or self._lists[0]
            or (self._lists[1:] <= self._lists[:-1]).any()
            or not self.rows
            or (self._begins[0], self._begins[-1]) != (0, terms)
            or (steps < len(NAMES) * UNIT.itemsize).any()
            or np.remainder(steps, UNIT.itemsize).any()
        ):
            raise IndexFaultError(f"was damaged: {path.name} does not hold the terms of {self.rows} rows")

    def find(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the row of each passage, -1 for one that is not here."""
        rows = np.searchsorted(self.numbers, numbers)
        is_found = self.numbers[np.minimum(rows, self.rows - 1)] == numbers
        return np.where(is_found, rows, -1)

    def terms(self, rows: NDArray[np.intp]) -> list[bytes]:
        """Read the terms of rows.

        Raises:
            IndexFaultError: the file was cut short since it was opened.
        """
        begins, ends = (self._begins[rows].astype(np.int64) + self._terms_offset).tolist(), self._begins[rows + 1]
        sizes = (ends - self._begins[rows]).tolist()
        return self._read_blocks(zip(begins, sizes, strict=True))

    def find_terms(self, space: int, terms: Sequence[str]) -> Matches:
        """Return where rows of a namespace hold the given terms, which are distinct, term by term.

        Raises:
            IndexFaultError: the file was cut short since it was opened.
        """
        keys = np.fromiter(map(code_of, terms), np.uint64, len(terms)) | np.uint64(max(space, 0)) << np.uint64(32)
        positions = np.searchsorted(self._keys, keys)
        matched = np.flatnonzero(within(keys, self._keys)) if space >= 0 else np.empty(0, np.intp)
        rows, marks, sizes = self._postings(positions[matched])
        term_indexes = np.repeat(matched, sizes)
        is_label = np.fromiter((term.startswith(_LABEL) for term in terms), np.bool_, len(terms))
        if not (is_meant := (marks == 0) == is_label[term_indexes]).all():  # a word shares its code with a label
            rows, marks, term_indexes = rows[is_meant], marks[is_meant], term_indexes[is_meant]
        return Matches(self._lengths, rows, terms, term_indexes, *fields_and_counts(marks))

    def _postings(
        self, firsts: NDArray[np.intp], lasts: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Read the postings of keys, or of all from `firsts` up to `lasts`: rows, marks, and how many each key has."""
        begins, size = self._lists[firsts].astype(np.int64), _POSTING.itemsize
        sizes = self._lists[firsts + 1 if lasts is None else lasts] - begins
        offsets = (self._postings_offset + begins * size).tolist()
        blocks = self._read_blocks(zip(offsets, (sizes * size).tolist(), strict=True))
        postings = np.frombuffer(b"".join(blocks), _POSTING)
        rows = postings["row"].astype(np.int64)
        if (rows >= self.rows).any():
            raise IndexFaultError("was damaged: a word is listed under a row that a chunk has not")
        return rows, postings["mark"], sizes

    def listed(self, terms: Iterable[str]) -> dict[str, int]:
        """Return by term that occurs how many fields of rows hold it, over all namespaces, dead rows included."""
        names_by_key = names_of(terms)
        codes = self._keys & _CODE
        positions = np.flatnonzero(within(codes, np.array(sorted(names_by_key), np.uint64)))
        counts: Counter[str] = Counter()
        names = self._read_names(0, len(codes)) if len(positions) else []
        for position, count in zip(positions.tolist(), np.diff(self._lists)[positions].tolist(), strict=True):
            aliases = names_by_key[int(codes[position])].split(_DIVIDER)
            counts.update({term: count for term in names[position].split(_DIVIDER) if term in aliases})
        return counts

    def unsure(self, keep: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Return (code of a namespace, number) of passages marked in `keep` that hold a key of several names."""
        positions = [index for index, name in enumerate(self._read_names(0, len(self._keys))) if _DIVIDER in name]
        rows = distinct(self._postings(np.array(positions, np.intp))[0])
        rows = rows[keep[rows]]
        return list(zip(self.codes[rows].tolist(), self.numbers[rows].tolist(), strict=True))

    def alike(self, space: int, term: str, distance: int) -> list[str]:
        """Return the terms of a namespace that may be within this number of edits of the given one.

        An edit changes the length by at most one, and the set of letters by at most two.
        """
        if space < 0:
            return []
        first, last = np.searchsorted(self._keys, np.array([space, space + 1], np.uint64) << np.uint64(32)).tolist()
        names = [term, *self._read_names(first, last)]
        joined = _SEPARATOR.join(names)
        if _DIVIDER in joined:
            names = (joined := joined.replace(_DIVIDER, _SEPARATOR)).split(_SEPARATOR)
        letters = np.frombuffer(f"{_SEPARATOR}{joined}".encode("utf-32-le", "surrogatepass"), "<u4")
        starts = np.flatnonzero(letters == ord(_SEPARATOR))
        lengths = np.diff(starts, append=len(letters))
        marks = np.bitwise_or.reduceat(np.uint64(1) << (letters & np.uint32(63)).astype(np.uint64), starts)
        near = np.abs(lengths - lengths[0]) <= distance
        near &= np.bitwise_count(marks ^ marks[0]) <= 2 * distance
        alike = [names[index] for index in np.flatnonzero(near)[1:].tolist()]
        return [name for name in alike if not name.startswith(_LABEL)]

    def _read_names(self, first: int, last: int) -> list[str]:
        try:
            [packed] = self._read_blocks([self._names])
            names = decompress(packed).decode().split(_SEPARATOR)
        except (error, UnicodeDecodeError) as fault:
            raise IndexFaultError(f"was damaged: the names of terms cannot be read ({fault})") from fault
        if len(names) != max(1, len(self._keys)):
            raise IndexFaultError("was damaged: there are other names than terms")
        return names[first:last]

    def _read_blocks(self, blocks: Iterable[tuple[int, int]]) -> list[bytes]:
        """Read blocks by (offset, size)."""
        descriptor, pread, total = self._descriptor, os.pread, 0
        parts = []
        try:
            for offset, size in blocks:
                parts.append(pread(descriptor, size, offset))
                total += size
        except OSError as error:
            raise unreadable(error.errno, f"a chunk cannot be read ({error.strerror})") from error
        if sum(map(len, parts)) != total:
            raise IndexFaultError("was damaged: a chunk was cut short while it was open")
        return parts

    def read(self, keep: NDArray[np.bool_]) -> Rows:
        """Read the rows marked in `keep`, bool, shape (rows,)."""
        posted, _, _ = self._postings(np.zeros(1, np.intp), np.array([len(self._keys)]))
        is_held = np.logical_or.reduceat(keep[posted], self._lists[:-1].astype(np.intp)) if len(posted) else posted
        names = zip(self._keys.tolist(), self._read_names(0, len(self._keys)), is_held.tolist(), strict=True)
        rows = np.flatnonzero(keep)
        columns = tuple(column[rows] for column in (self.numbers, self.owners, self.codes, self.norms, self.signs.T))
        return Rows(self.dimensions, columns, self.terms(rows), {key: name for key, name, is_live in names if is_live})


def _aligned(offset: int) -> int:
    return offset + -offset % _ALIGNMENT


DEAD = IN_USE
"""File of the rows that no longer count, int32, chunk after chunk."""


def read_dead(directory: Path, manifest: Manifest) -> list[NDArray[np.int32]]:
    """Return the dead rows of each chunk, ascending."""
    dead = np.frombuffer((directory / DEAD).read_bytes() if DEAD in manifest.files else b"", "<i4")
    if len(dead) != sum(chunk.dead for chunk in manifest.chunks):
        raise IndexFaultError(f"was damaged: {DEAD} does not hold what the manifest says")
    parts = np.split(dead, np.cumsum([chunk.dead for chunk in manifest.chunks])[:-1]) if manifest.chunks else []
    for part, chunk in zip(parts, manifest.chunks, strict=False):
        if len(part) and (part[0] < 0 or part[-1] >= chunk.rows or (part[1:] <= part[:-1]).any()):
            raise IndexFaultError(f"was damaged: {DEAD} names rows that there are not")
    return parts
