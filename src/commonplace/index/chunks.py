"""Chunks, the files of an index: rows of passages with the sign bits of their vectors, term counts, and postings.

A file is a header, then sections that begin at multiples of 64 bytes: numbers int64, owners int64, namespace codes
int32, norms float32, sign bits (one uint64 column for every 64 dimensions), lengths of the fields uint16, keys of the
terms uint64 and where the postings of each begin uint32, where the terms of each row begin uint32, terms (see
`commonplace.ranking.bm25`), postings, names. Rows ascend by number. Integers are little-endian. A key is the code of a
namespace above that of a term, its postings are a row, uint16, and the mark that a row's terms have, for each field
that holds it; its name is the term itself, in the same order, compressed. All up to the terms is kept in memory, for
every search goes through it; the others are read as they are needed. Nothing is mapped: a mapped file that somebody
cuts short ends the process that reads it.
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
"""Rows of a full chunk: a posting has two bytes for one."""

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
        names: by its key each of the terms, and perhaps others.
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


def named(terms: Iterable[str], space: int = 0) -> dict[int, str]:
    """Return terms of a namespace by their keys; of several with the same one, all."""
    return _together((space << 32 | code_of(term), term) for term in terms)


def _together(named: Iterable[tuple[int, str]]) -> dict[int, str]:
    names: dict[int, str] = {}
    for key, name in named:
        if (known := names.setdefault(key, name)) != name:
            names[key] = _AMONG.join(dict.fromkeys([*known.split(_AMONG), *name.split(_AMONG)]))
    return names


_BETWEEN, _AMONG, _LABEL = "\n", "\t", " "
"""Stand between names, between those of one code, and before a label: no term has white space."""


def label(name: str) -> str:
    """Return what a passage of a kind, or in a language, has among its terms, and no text has."""
    return f"{_LABEL}{name}"


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, ascending by number."""
    joined = Rows(
        parts[0].dimensions,
        tuple(np.concatenate(columns) for columns in zip(*(part.columns for part in parts), strict=True)),
        list(chain.from_iterable(part.terms for part in parts)),
        _together(chain.from_iterable(part.names.items() for part in parts)),
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
        names = _BETWEEN.join([rows.names[key] for key in keys.tolist()])
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
    """Return the lengths of the fields, the keys ascending, where the postings of each begin and all end, and these."""
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
    spaces = codes.astype(np.uint64)[packed >> np.uint64(8) & np.uint64(0xFFFF)]
    if len(spaces) and (spaces != spaces[0]).any():
        order = np.argsort(spaces, kind="stable")
        packed, spaces = packed[order], spaces[order]
    keys = spaces << np.uint64(32) | packed >> np.uint64(24)
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
        words, offset, places = -(-self.dimensions // 64), _HEADER.size, dict[str, tuple[str, int, int]]()
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
            places[name] = kind, count, _aligned(offset)
            offset = _aligned(offset) + int(kind[-1]) * count
        self._terms_at = _aligned(offset)
        self._postings_at = _aligned(self._terms_at + terms)
        size = os.fstat(self._descriptor).st_size
        if self.dimensions != dimensions or size < self._terms_at:
            raise IndexFaultError(f"was damaged: {path.name} does not hold {self.rows} rows of {dimensions} dimensions")
        head = b"".join(self._blocks([(0, self._terms_at)]))
        held: dict[str, NDArray[Any]] = {name: np.frombuffer(head, *place) for name, place in places.items()}
        self.numbers, self.owners, self.codes, self.norms = (held[name] for name, *_ in sizes[:4])
        self.signs = held["signs"].reshape(words, -1)
        self._lengths = held["lengths"].reshape(self.rows, -1)
        self._keys, self._lists, self._begins = held["keys"], held["lists"], held["begins"]
        self._names = _aligned(self._postings_at + _POSTING.itemsize * int(self._lists[-1])), names
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
        places = np.searchsorted(self.numbers, numbers)
        held = self.numbers[np.minimum(places, self.rows - 1)] == numbers
        return np.where(held, places, -1)

    def terms(self, rows: NDArray[np.intp]) -> list[bytes]:
        """Read the terms of rows.

        Raises:
            IndexFaultError: the file was cut short since it was opened.
        """
        begins, ends = (self._begins[rows].astype(np.int64) + self._terms_at).tolist(), self._begins[rows + 1]
        sizes = (ends - self._begins[rows]).tolist()
        return self._blocks(zip(begins, sizes, strict=True))

    def find_terms(self, space: int, terms: Sequence[str]) -> Matches:
        """Return where rows of a namespace hold the given terms, each of them once, term by term.

        Raises:
            IndexFaultError: the file was cut short since it was opened.
        """
        wanted = np.fromiter(map(code_of, terms), np.uint64, len(terms)) | np.uint64(max(space, 0)) << np.uint64(32)
        places = np.searchsorted(self._keys, wanted)
        held = np.flatnonzero(within(wanted, self._keys)) if space >= 0 else np.empty(0, np.intp)
        rows, marks, sizes = self._postings(places[held])
        which = np.repeat(held, sizes)
        is_label = np.fromiter((term.startswith(_LABEL) for term in terms), np.bool_, len(terms))
        if not (is_meant := (marks == 0) == is_label[which]).all():  # a word has the code of a label
            rows, marks, which = rows[is_meant], marks[is_meant], which[is_meant]
        return Matches(self._lengths, rows, terms, which, *fields_and_counts(marks))

    def _postings(
        self, firsts: NDArray[np.intp], lasts: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Read the postings of keys, or of all from some up to others: the rows, the marks, and how many each has."""
        begins, size = self._lists[firsts].astype(np.int64), _POSTING.itemsize
        sizes = self._lists[firsts + 1 if lasts is None else lasts] - begins
        offsets = (self._postings_at + begins * size).tolist()
        blocks = self._blocks(zip(offsets, (sizes * size).tolist(), strict=True))
        postings = np.frombuffer(b"".join(blocks), _POSTING)
        rows = postings["row"].astype(np.int64)
        if (rows >= self.rows).any():
            raise IndexFaultError("was damaged: a word is listed under a row that a chunk has not")
        return rows, postings["mark"], sizes

    def listed(self, terms: Iterable[str]) -> dict[str, int]:
        """Return of those of the terms that rows of any namespace hold in how many fields, dead rows included."""
        asked = named(terms)
        codes = self._keys & _CODE
        found = np.flatnonzero(within(codes, np.array(sorted(asked), np.uint64)))
        counts: Counter[str] = Counter()
        names = self._texts(0, len(codes)) if len(found) else []
        for place, count in zip(found.tolist(), np.diff(self._lists)[found].tolist(), strict=True):
            wanted = asked[int(codes[place])].split(_AMONG)
            counts.update({term: count for term in names[place].split(_AMONG) if term in wanted})
        return counts

    def unsure(self, keep: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Return (code of a namespace, number) of passages, of rows marked in `keep`, with a key of several names."""
        places = [place for place, name in enumerate(self._texts(0, len(self._keys))) if _AMONG in name]
        rows = distinct(self._postings(np.array(places, np.intp))[0])
        rows = rows[keep[rows]]
        return list(zip(self.codes[rows].tolist(), self.numbers[rows].tolist(), strict=True))

    def alike(self, space: int, term: str, distance: int) -> list[str]:
        """Return the terms of a namespace that may be within this number of edits of the given one.

        An edit changes a length by one at most, and which letters there are by two.
        """
        if space < 0:
            return []
        first, last = np.searchsorted(self._keys, np.array([space, space + 1], np.uint64) << np.uint64(32)).tolist()
        names = [term, *self._texts(first, last)]
        joined = _BETWEEN.join(names)
        if _AMONG in joined:
            names = (joined := joined.replace(_AMONG, _BETWEEN)).split(_BETWEEN)
        letters = np.frombuffer(f"{_BETWEEN}{joined}".encode("utf-32-le", "surrogatepass"), "<u4")
        starts = np.flatnonzero(letters == ord(_BETWEEN))
        lengths = np.diff(starts, append=len(letters))
        marks = np.bitwise_or.reduceat(np.uint64(1) << (letters & np.uint32(63)).astype(np.uint64), starts)
        near = np.abs(lengths - lengths[0]) <= distance
        near &= np.bitwise_count(marks ^ marks[0]) <= 2 * distance
        alike = [names[place] for place in np.flatnonzero(near)[1:].tolist()]
        return [name for name in alike if not name.startswith(_LABEL)]

    def _texts(self, first: int, last: int) -> list[str]:
        try:
            [packed] = self._blocks([self._names])
            names = decompress(packed).decode().split(_BETWEEN)
        except (error, UnicodeDecodeError) as fault:
            raise IndexFaultError(f"was damaged: the names of terms cannot be read ({fault})") from fault
        if len(names) != max(1, len(self._keys)):
            raise IndexFaultError("was damaged: there are other names than terms")
        return names[first:last]

    def _blocks(self, blocks: Iterable[tuple[int, int]]) -> list[bytes]:
        """Read blocks by (offset, size)."""
        descriptor, pread, wanted = self._descriptor, os.pread, 0
        found = []
        try:
            for offset, size in blocks:
                found.append(pread(descriptor, size, offset))
                wanted += size
        except OSError as error:
            raise unreadable(error.errno, f"a chunk cannot be read ({error.strerror})") from error
        if sum(map(len, found)) != wanted:
            raise IndexFaultError("was damaged: a chunk was cut short while it was open")
        return found

    def read(self, keep: NDArray[np.bool_]) -> Rows:
        """Read the rows marked in `keep`, bool, shape (rows,)."""
        listed, _, _ = self._postings(np.zeros(1, np.intp), np.array([len(self._keys)]))
        is_held = np.logical_or.reduceat(keep[listed], self._lists[:-1].astype(np.intp)) if len(listed) else listed
        names = zip(self._keys.tolist(), self._texts(0, len(self._keys)), is_held.tolist(), strict=True)
        rows = np.flatnonzero(keep)
        columns = tuple(column[rows] for column in (self.numbers, self.owners, self.codes, self.norms, self.signs.T))
        return Rows(self.dimensions, columns, self.terms(rows), {key: name for key, name, held in names if held})


def _aligned(offset: int) -> int:
    return offset + -offset % _ALIGNMENT


DEAD = IN_USE
"""Rows that no longer count, int32, chunk after chunk."""


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
