"""Make the plain table from the transformer's token vectors, and reduce a table to what ships; knows arrays alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MOST_NEIGHBOURS = 64


def principal_axes(vectors: Floats, dimensions: int) -> Floats:
    """Return float32, shape (d, dimensions): the directions of greatest spread, each with its largest part positive."""
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :dimensions]
    signs = np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    return np.asarray(axes * signs, np.float32)


def unit(rows: Floats) -> Floats:
    """Return the rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), np.float32)


def inverse_document_frequencies(texts: list[NDArray[np.uint16]], vocabulary_size: int) -> Floats:
    """Return log(1 + (n - f + 1/2) / (f + 1/2)) for each token, f of n texts holding it (Robertson & Zaragoza 2009)."""
    frequencies = np.zeros(vocabulary_size)
    for text in texts:
        frequencies[np.unique(text)] += 1
    return np.log1p((len(texts) - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)


@dataclass(frozen=True)
class Neighbours:
    """For each token those with the highest cosine, best first, the token itself at the head.

    Attributes:
        starts: uint32, shape (vocabulary + 1,): where each token's list begins.
        tokens: uint16, shape (total,).
        cosines: uint8, shape (total,): 255 is 1.
    """

    starts: NDArray[np.uint32]
    tokens: NDArray[np.uint16]
    cosines: NDArray[np.uint8]


def neighbours(directions: Floats, cutoff: float) -> Neighbours:
    """Return the lists over the given rows; a row of zeros has an empty one. Ties go to the lower token."""
    rows = unit(directions)
    tokens, cosines, sizes = [], [], [0]
    for start in range(0, len(rows), 512):
        block = rows[start : start + 512] @ rows.T
        for line, similar in enumerate(block):
            token = start + line
            similar[token] = 2.0 if rows[token].any() else 0.0
            found = np.flatnonzero(similar >= cutoff)
            found = found[np.lexsort((found, -similar[found]))][:MOST_NEIGHBOURS]
            tokens.append(found.astype(np.uint16))
            cosines.append(np.round(np.minimum(similar[found], 1) * 255).astype(np.uint8))
            sizes.append(len(found))
    return Neighbours(np.cumsum(sizes).astype(np.uint32), np.concatenate(tokens), np.concatenate(cosines))


def quantised(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 rows, same shape, and float32 scales, shape (rows,): row times scale is the vector."""
    scales = (np.abs(table).max(1) / 127).astype(np.float32)
    divisors = np.where(scales > 0, scales, 1)[:, None]
    return np.round(table / divisors).astype(np.int8), scales
