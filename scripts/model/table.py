"""Make the plain table from the transformer's token vectors, and reduce a table to what ships; knows arrays alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

MAX_NEIGHBOURS = 64
SMOOTHING = 50
TRUSTED_TEXTS = 5


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


def text_frequencies(texts: list[NDArray[np.uint16]], vocabulary_size: int) -> Floats:
    """Return how many of the texts hold each token, float32, shape (vocabulary,)."""
    frequencies = np.zeros(vocabulary_size, np.float32)
    for text in texts:
        frequencies[np.unique(text)] += 1
    return frequencies


def rarity_weights(frequencies: Floats, texts: int) -> Floats:
    """Return log(1 + n / (f + 50)) for each token: inverse document frequency, flat where the texts tell little.

    Without the 50 a name that the texts happen not to hold would outweigh everything else a passage says.
    """
    return np.asarray(np.log1p(texts / (frequencies + SMOOTHING)), np.float32)


def blended(trained: Floats, start: Floats, frequencies: Floats) -> Floats:
    """Return the trained rows, drawn towards where they started the fewer texts taught them.

    A token of f texts keeps f / (f + 5) of what it learned; one that no text holds keeps its plain direction. The
    start is first scaled as training scaled the rows of tokens with 20 to 200 texts. Rows that started at zero, those
    of marks, are zero again.
    """
    lengths, before = np.linalg.norm(trained, axis=1), np.linalg.norm(start, axis=1)
    selected = (frequencies >= 20) & (frequencies <= 200) & (before > 0)
    scale = np.float32(np.median(lengths[selected] / before[selected]))
    share = (frequencies / (frequencies + np.float32(TRUSTED_TEXTS)))[:, None]
    rows = trained * share + start * (scale * (1 - share))
    return np.asarray(np.where(before[:, None] > 0, rows, 0), np.float32)


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
            nearest = np.flatnonzero(similar >= cutoff)
            nearest = nearest[np.lexsort((nearest, -similar[nearest]))][:MAX_NEIGHBOURS]
            tokens.append(nearest.astype(np.uint16))
            cosines.append(np.round(np.minimum(similar[nearest], 1) * 255).astype(np.uint8))
            sizes.append(len(nearest))
    return Neighbours(np.cumsum(sizes).astype(np.uint32), np.concatenate(tokens), np.concatenate(cosines))


def quantised(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 rows, same shape, and float32 scales, shape (rows,): row times scale is the vector."""
    scales = (np.abs(table).max(1) / 127).astype(np.float32)
    divisors = np.where(scales > 0, scales, 1)[:, None]
    return np.round(table / divisors).astype(np.int8), scales
