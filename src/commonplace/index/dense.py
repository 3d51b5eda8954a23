"""Dense search over the rows in the chunks.

The sign bits of query and passage agree the more, the smaller the angle between them (Charikar, "Similarity
estimation techniques from rounding algorithms", 2002). The best by that count are scored again by their int8 vectors,
which the store has.
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
"""Maximum number of passages in scope that are scored exactly; of more, those with the nearest signs."""
CANDIDATES_PER_HIT = 4


def best(numbers: NDArray[np.int64], scores: NDArray[np.float32], limit: int) -> Scored:
    """Return the best by score, ties by number."""
    if 0 < limit < len(scores):  # to sort all of a large namespace takes longer than to score them
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
        found = [np.empty(0, np.int64)]
        code = self._codes.get(scope.namespace)
        places = [
            place
            for place, held in enumerate(self._spaces)
            if (held == space if space else self.chunks[place].dimensions == len(vector))
        ]
        if code is not None and limit > 0 and places and vector.any():
            rows_of = zip(places, self._candidates(vector, scope, code, limit, places), strict=True)
            found += [self.chunks[place].numbers[rows] for place, rows in rows_of]
        asked = np.concatenate(found).tolist()
        read = vectors(scope.namespace, asked) if asked else {}
        held = {number: each for number, each in read.items() if len(each) == len(vector)}
        table = np.frombuffer(b"".join(held.values()), np.int8).reshape(-1, len(vector))
        norms = norms_of(table)
        cosines = np.divide(table.astype(np.float32) @ vector, norms, out=np.zeros_like(norms), where=norms > 0)
        return best(np.array(list(held), np.int64), cosines, limit)

    def owners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
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
        if sum(int(np.count_nonzero(mask)) for mask in masks) <= wanted:
            return [np.flatnonzero(mask) for mask in masks]
        query = signs_of(vector[np.newaxis])[0]
        rows, distances = [], []
        bound = np.iinfo(np.uint16).max
        for chunk, mask in zip(chunks, masks, strict=True):
            everywhere = np.zeros(chunk.rows, dtype=np.uint16)  # how many sign bits differ
            for column, word in zip(chunk.signs, query, strict=True):
                everywhere += np.bitwise_count(column ^ word)
            found = np.flatnonzero((everywhere <= bound) & mask)
            distance = everywhere[found]
            if len(found) > wanted and len(chunks) > 1:
                # A row with that many nearer ones in its own chunk is not among the nearest of all.
                bound = int(np.partition(distance, wanted - 1)[wanted - 1])
                found, distance = found[distance <= bound], distance[distance <= bound]
            rows.append(found)
            distances.append(distance)
        numbers = [chunk.numbers[found] for chunk, found in zip(chunks, rows, strict=True)]
        return _nearest(rows, distances, numbers, wanted)

    def _in_scope(self, place: int, scope: Scope, code: int) -> NDArray[np.bool_]:
        """Return which rows of a chunk may be found: bool, shape (rows,), not to be written to.

        They are live and of some direction: a zero vector never matches.
        """
        known, masks = self._last_masks  # those of the namespace that was asked last
        if known != code:
            masks = [(chunk.codes == code) & (chunk.norms > 0) for chunk in self.chunks]
            for mask, dead in zip(masks, self.dead, strict=True):
                mask[dead] = False
            self._last_masks = code, masks
        chunk, mask = self.chunks[place], masks[place]
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
