"""Write the dense part of a new generation: append rows, mark the dead, merge small chunks, count tokens.

It knows the files of the last generation and of the new one, and neither store nor lexical part.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.index.chunks import LARGEST_CHUNK, ChunkFile, Rows, concatenate, write_chunk
from commonplace.index.dense import DEAD, FREQUENCIES, read_dead, read_frequencies
from commonplace.index.manifest import ChunkRecord, Manifest, write_file
from commonplace.ranking.arrays import distinct
from commonplace.types import IndexEntry

_ALL_TOKENS = 65_536
_DEAD_SHARE = 1 / 3  # a chunk with more dead rows is written anew
_MERGE_RATIO = 2  # a chunk is merged with what comes after it unless it is more than this many times as large


class DenseWriter:
    """Collects the changes of one update; `finish` writes them."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        """Begin from the generation that `manifest` describes, whose files are already in `directory`."""
        self._directory = directory
        self._generation = manifest.generation
        self._embedding = manifest.embedding
        self._dimensions = {str(space): space.dimensions for space in manifest.embedding.spaces}
        self._files = [chunk.file for chunk in manifest.chunks]
        self._spaces = [chunk.space for chunk in manifest.chunks]
        self._space_of: dict[str, str] = {}
        self._open = [
            ChunkFile(directory / file, self._dimensions[space])
            for file, space in zip(self._files, self._spaces, strict=True)
        ]
        self._live = [
            _alive(chunk.rows, dead) for chunk, dead in zip(self._open, read_dead(directory, manifest), strict=True)
        ]
        self._frequencies = np.zeros(_ALL_TOKENS, dtype=np.uint32)
        known = read_frequencies(directory, manifest)
        self._frequencies[: len(known)] = known
        self._counted = manifest.counted
        self._pending: dict[int, tuple[int, int, str, bytes]] = {}

    def delete(self, numbers: Sequence[int]) -> int:
        """Mark passages as dead; return how many were held. Unknown numbers are passed over."""
        wanted = distinct(np.array(numbers, dtype=np.int64))
        dropped = sum(self._pending.pop(number, None) is not None for number in wanted.tolist())
        for chunk, live in zip(self._open, self._live, strict=True):
            rows = chunk.find(wanted)
            rows = rows[rows >= 0]
            dropped += int(live[rows].sum())
            live[rows] = False
        return dropped

    def add(self, entry: IndexEntry, code: int, *, is_new: bool) -> None:
        """Add a passage; one that is not new replaces itself, and its tokens were counted before.

        One whose vector is made later has zeros, which are never found.
        """
        space = self._space_of.get(entry.kind)
        if space is None:
            space = self._space_of[entry.kind] = str(self._embedding.of(entry.kind))
        dimensions = self._dimensions[space]
        if entry.vector and len(entry.vector) != dimensions:
            raise ValueError(f"passage {entry.number} has {len(entry.vector)} dimensions, expected {dimensions}")
        self._pending[entry.number] = (entry.owner_number, code, space, entry.vector or bytes(dimensions))
        if is_new:
            # Assignment by index counts a repeated token once, which is what a document frequency asks for.
            self._frequencies[np.frombuffer(entry.token_ids, "<u2")] += 1
            self._counted += 1
        if len(self._pending) >= LARGEST_CHUNK:
            for part in self._flush():
                self._append(*part)

    def finish(self) -> tuple[tuple[ChunkRecord, ...], int]:
        """Write what is left and return the chunks in order and the number of passages that the frequencies count."""
        self._write_pending()
        records = [
            ChunkRecord(file, chunk.rows, int(np.count_nonzero(~live)), space)
            for file, chunk, live, space in zip(self._files, self._open, self._live, self._spaces, strict=True)
        ]
        dead = [np.flatnonzero(~live) for live in self._live]
        self._replace(DEAD, np.concatenate(dead).astype("<i4").tobytes() if dead else b"")
        held = np.flatnonzero(self._frequencies)
        highest = int(held[-1]) + 1 if len(held) else 0
        self._replace(FREQUENCIES, self._frequencies[:highest].astype("<u4").tobytes())
        return tuple(records), self._counted

    def _flush(self) -> list[tuple[str, Rows]]:
        """Return the new rows of each embedder."""
        by_space: dict[str, list[int]] = {}
        for number in sorted(self._pending):
            by_space.setdefault(self._pending[number][2], []).append(number)
        parts = []
        for space, numbers in by_space.items():
            owners, codes, _, vectors = zip(*(self._pending[number] for number in numbers), strict=True)
            table = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, self._dimensions[space])
            rows = Rows(np.array(numbers, np.int64), np.array(owners, np.int64), np.array(codes, np.int32), table)
            parts.append((space, rows))
        self._pending.clear()
        return parts

    def _write_pending(self) -> None:
        """Write the new rows together with those of chunks that are mostly dead or small beside them."""
        parts: dict[str, list[Rows]] = {space: [rows] for space, rows in self._flush()}
        for place in reversed(range(len(self._open))):
            live, space = self._live[place], self._spaces[place]
            if np.count_nonzero(~live) > _DEAD_SHARE * len(live):
                parts.setdefault(space, []).append(self._take_out(place))
        for space, gathered in parts.items():
            self._write(space, gathered)

    def _write(self, space: str, parts: list[Rows]) -> None:
        gathered = sum(len(part.numbers) for part in parts)
        while gathered and space in self._spaces:
            place = len(self._spaces) - 1 - self._spaces[::-1].index(space)
            last = int(np.count_nonzero(self._live[place]))
            if last > _MERGE_RATIO * gathered or last + gathered > LARGEST_CHUNK:
                break
            parts.append(self._take_out(place))
            gathered += last
        if gathered:
            rows = concatenate(parts)
            for start in range(0, gathered, LARGEST_CHUNK):
                self._append(space, rows.take(np.arange(start, min(gathered, start + LARGEST_CHUNK))))

    def _take_out(self, place: int) -> Rows:
        """Remove a chunk and return its live rows."""
        rows = self._open[place].read(self._live[place])
        (self._directory / self._files[place]).unlink()
        del self._files[place], self._open[place], self._live[place], self._spaces[place]
        return rows

    def _append(self, space: str, rows: Rows) -> None:
        taken = {path.name for path in (self._directory / "dense").iterdir()}
        place = 0
        while (name := f"{self._generation:08d}-{place}.chunk") in taken:
            place += 1
        file = f"dense/{name}"
        write_chunk(self._directory / file, rows)
        self._files.append(file)
        self._spaces.append(space)
        self._open.append(ChunkFile(self._directory / file, self._dimensions[space]))
        self._live.append(np.ones(len(rows.numbers), dtype=np.bool_))

    def _replace(self, file: str, data: bytes) -> None:
        """Write a file of this generation without touching the last one's, which may be the same through a link."""
        path = self._directory / file
        path.unlink(missing_ok=True)
        write_file(path, data)


def _alive(rows: int, dead: NDArray[np.int32]) -> NDArray[np.bool_]:
    live = np.ones(rows, dtype=np.bool_)
    live[dead] = False
    return live
