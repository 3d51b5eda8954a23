"""Dense search over the rows in the chunks.

The smaller the angle between query and passage, the more of their sign bits agree (Charikar, "Similarity estimation
techniques from rounding algorithms", 2002). The best by that count are scored again by their int8 vectors, which the
store holds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commonplace.index.chunks import ChunkFile, norms_of, read_dead, signs_of
from commonplace.index.contract import Scope, Scored, Vectors
from commonplace.index.files import Manifest
from commonplace.ranking.arrays import within

CANDIDATES = 400
"""Number of passages in scope up to which all are scored exactly; of more, those with the nearest signs."""
CANDIDATES_PER_HIT = 4


def best(numbers: NDArray[np.int64], scores: NDArray[np.float32], limit: int) -> Scored:
    """Return the best `limit` by score, ties by number."""
    if 0 < limit < len(scores):  # sorting all of a large namespace takes longer than scoring it
        least = np.partition(scores, -limit)[-limit]
        near = np.flatnonzero(scores >= least)
        numbers, scores = numbers[near], scores[near]
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

    def search(
        self, vector: NDArray[np.float32], scope: Scope, limit: int, vectors: Vectors, space: str = ""
    ) -> Scored:
        candidates = [np.empty(0, np.int64)]
        code = self._codes.get(scope.namespace)
        indexes = [
            index
            for index, stored_space in enumerate(self._spaces)
            if (stored_space == space if space else self.chunks[index].dimensions == len(vector))
        ]
        if code is not None and limit > 0 and indexes and vector.any():
            rows_of = zip(indexes, self._candidates(vector, scope, code, limit, indexes), strict=True)
            candidates += [self.chunks[index].numbers[rows] for index, rows in rows_of]
        numbers = np.concatenate(candidates).tolist()
        by_number = vectors(scope.namespace, numbers) if numbers else {}
        stored = {number: row for number, row in by_number.items() if len(row) == len(vector)}
        table = np.frombuffer(b"".join(stored.values()), np.int8).reshape(-1, len(vector))
        norms = norms_of(table)
        cosines = np.divide(table.astype(np.float32) @ vector, norms, out=np.zeros_like(norms), where=norms > 0)
        return best(np.array(list(stored), np.int64), cosines, limit)

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        owner_numbers = np.full(len(numbers), -1, dtype=np.int64)
        for chunk in self.chunks:
            rows = chunk.find(numbers)
            owner_numbers[rows >= 0] = chunk.owners[rows[rows >= 0]]
        return owner_numbers

    def terms(self, numbers: NDArray[np.int64], code: int | None) -> list[bytes]:
        """Return the term counts of passages, b"" for one that is not here, or of a namespace with another code."""
        counts = [b""] * len(numbers)
        for chunk, dead in zip(self.chunks, self.dead, strict=True):
            rows = chunk.find(numbers)
            indexes = np.flatnonzero((rows >= 0) & ~within(rows, dead))
            if code is not None:
                indexes = indexes[chunk.codes[rows[indexes]] == code]
            if len(indexes):
                for index, row in zip(indexes.tolist(), chunk.terms(rows[indexes]), strict=True):
                    counts[index] = row
        return counts

    def _candidates(
        self, vector: NDArray[np.float32], scope: Scope, code: int, limit: int, indexes: list[int]
    ) -> list[NDArray[np.intp]]:
        """Return for each chunk the ascending rows worth scoring exactly: the nearest by sign bits, ties by number."""
        chunks = [self.chunks[index] for index in indexes]
        masks = [self._in_scope(index, scope, code) for index in indexes]
        pool_size = max(CANDIDATES, CANDIDATES_PER_HIT * limit)
        if sum(int(np.count_nonzero(mask)) for mask in masks) <= pool_size:
            return [np.flatnonzero(mask) for mask in masks]
        query = signs_of(vector[np.newaxis])[0]
        rows, distances = [], []
        bound = np.iinfo(np.uint16).max
        for chunk, mask in zip(chunks, masks, strict=True):
            differing_bits = np.zeros(chunk.rows, dtype=np.uint16)  # how many sign bits differ
            for column, word in zip(chunk.signs, query, strict=True):
                differing_bits += np.bitwise_count(column ^ word)
            nearest = np.flatnonzero((differing_bits <= bound) & mask)
            distance = differing_bits[nearest]
            if len(nearest) > pool_size and len(chunks) > 1:
                # A row with that many nearer ones in its own chunk is not among the nearest of all.
                bound = int(np.partition(distance, pool_size - 1)[pool_size - 1])
                nearest, distance = nearest[distance <= bound], distance[distance <= bound]
            rows.append(nearest)
            distances.append(distance)
        numbers = [chunk.numbers[nearest] for chunk, nearest in zip(chunks, rows, strict=True)]
        return _nearest(rows, distances, numbers, pool_size)

    def _in_scope(self, index: int, scope: Scope, code: int) -> NDArray[np.bool_]:
        """Return which rows of a chunk may be found: bool, shape (rows,), not to be written to.

        They are live, and their vector is not zero: a zero vector never matches.
        """
        last_code, masks = self._last_masks  # those of the namespace that was asked last
        if last_code != code:
            masks = [(chunk.codes == code) & (chunk.norms > 0) for chunk in self.chunks]
            for mask, dead in zip(masks, self.dead, strict=True):
                mask[dead] = False
            self._last_masks = code, masks
        chunk, mask = self.chunks[index], masks[index]
        if scope.owners is not None:
            mask = mask & within(chunk.owners, scope.owners)
        if scope.passed_over is not None and len(scope.passed_over):
            mask = mask & ~within(chunk.owners, scope.passed_over)
        if scope.dead is not None and len(scope.dead):
            rows = chunk.find(scope.dead)
            mask = mask.copy()
            mask[rows[rows >= 0]] = False
        return mask


def _nearest(
    rows: list[NDArray[np.intp]], distances: list[NDArray[np.uint16]], numbers: list[NDArray[np.int64]], count: int
) -> list[NDArray[np.intp]]:
    """Return the rows of each chunk that are among the nearest of all, ties by number.

    Ties are not broken by place: which chunk a row is in depends on what other namespaces hold.
    """
    all_distances = np.concatenate(distances)
    cut = np.partition(all_distances, count - 1)[count - 1]
    nearer = all_distances < cut
    ties = np.flatnonzero(all_distances == cut)
    nearer[ties[np.argsort(np.concatenate(numbers)[ties])[: count - int(nearer.sum())]]] = True
    bounds = np.cumsum([len(chunk_rows) for chunk_rows in rows])[:-1]
    return [chunk_rows[keep] for chunk_rows, keep in zip(rows, np.split(nearer, bounds), strict=True)]
