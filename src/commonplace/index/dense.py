"""Dense search: cosine over int8 vectors, candidates by sign bits; it reads chunk files and knows no text.

The sign bits of query and passage agree the more, the smaller the angle between them (Charikar, "Similarity
estimation techniques from rounding algorithms", 2002). The best by that count are scored again by their int8 vectors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import IndexFaultError
from commonplace.index.chunks import ChunkFile, sign_columns
from commonplace.index.contract import Scope, Scored
from commonplace.index.manifest import Manifest
from commonplace.ranking.arrays import within

DEAD = "dense/dead"
"""Rows that no longer count, int32, chunk after chunk."""
FREQUENCIES = "dense/frequencies"
"""How many passages hold each token id, uint32."""
ALL_EXACT = 2_000
"""Up to this many passages in scope are all scored exactly."""

_CANDIDATES = 400
_CANDIDATES_PER_HIT = 4
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
        self._counted = manifest.counted
        self._spaces = [chunk.space for chunk in manifest.chunks]
        dimensions = {str(space): space.dimensions for space in manifest.embedding.spaces}
        self._codes = {name: code for code, name in enumerate(manifest.namespaces)}
        self.chunks = [ChunkFile(directory / chunk.file, dimensions[chunk.space]) for chunk in manifest.chunks]
        self.dead = read_dead(directory, manifest)
        self.frequencies = read_frequencies(directory, manifest)
        self._held: dict[int, int] = {}
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

    def token_frequencies(self, token_ids: NDArray[np.uint16]) -> tuple[int, NDArray[np.int64]]:
        """Return the number of passages and how many hold each token, passages deleted since the last rebuild included.

        Their share is bounded, and both counts include them, so that rarities stay comparable.
        """
        counts = np.zeros(len(token_ids), dtype=np.int64)
        known = token_ids < len(self.frequencies)
        counts[known] = self.frequencies[token_ids[known]]
        return self._counted, counts

    def passages(self, scope: Scope) -> int:
        """Return how many passages there are to find; see `DenseIndex.passages`."""
        code = self._codes.get(scope.namespace)
        if code is None:
            return 0
        held = self._held.get(code)
        if held is None:
            parts = zip(self.chunks, self.dead, strict=True)
            held = sum(
                int((chunk.codes == code).sum()) - int((chunk.codes[dead] == code).sum()) for chunk, dead in parts
            )
            self._held[code] = held
        return held if scope.dead is None or not len(scope.dead) else held - self._dying(scope.dead, code)

    def _dying(self, numbers: NDArray[np.int64], code: int) -> int:
        """Return how many of these passages of a namespace count here still."""
        found = 0
        for chunk, dead in zip(self.chunks, self.dead, strict=True):
            rows = chunk.find(numbers)
            rows = rows[rows >= 0]
            found += int((chunk.codes[rows[~np.isin(rows, dead)]] == code).sum())
        return found

    def _candidates(
        self, vector: NDArray[np.float32], scope: Scope, code: int, limit: int, places: list[int]
    ) -> list[NDArray[np.intp]]:
        """Return for each chunk the ascending rows worth scoring exactly: the nearest by sign bits, ties by place."""
        chunks = [self.chunks[place] for place in places]
        masks = [self._in_scope(place, scope, code) for place in places]
        wanted = max(_CANDIDATES, _CANDIDATES_PER_HIT * limit)
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
        return _nearest(rows, distances, wanted)

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


def read_frequencies(directory: Path, manifest: Manifest) -> NDArray[np.uint32]:
    """Return how many passages hold each token id, up to the highest id that occurs."""
    return np.frombuffer((directory / FREQUENCIES).read_bytes() if FREQUENCIES in manifest.files else b"", "<u4")


def _distances(chunk: ChunkFile, query: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return the number of differing sign bits: uint16, shape (rows,)."""
    distances = np.zeros(chunk.rows, dtype=np.uint16)
    for column, word in zip(chunk.signs, query, strict=True):
        distances += np.bitwise_count(column ^ word)
    return distances


def _nearest(rows: list[NDArray[np.intp]], distances: list[NDArray[np.uint16]], wanted: int) -> list[NDArray[np.intp]]:
    """Return of the rows of each chunk those that are among the nearest of all, ties by place."""
    everywhere = np.concatenate(distances)
    cut = np.partition(everywhere, wanted - 1)[wanted - 1]
    nearer = everywhere < cut
    nearer[np.flatnonzero(everywhere == cut)[: wanted - int(nearer.sum())]] = True
    bounds = np.cumsum([len(each) for each in rows])[:-1]
    return [each[keep] for each, keep in zip(rows, np.split(nearer, bounds), strict=True)]


def _cosines(chunk: ChunkFile, rows: NDArray[np.intp], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine between a unit vector and ascending rows, 0 for a zero row: float32, shape (len(rows),)."""
    norms = chunk.norms[rows]
    products = chunk.vectors(rows).astype(np.float32) @ vector
    cosines: NDArray[np.float32] = np.divide(products, norms, out=np.zeros(len(rows), np.float32), where=norms > 0)
    return cosines
