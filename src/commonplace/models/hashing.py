"""The hashing embedder: random signs per token, without model data. For tests and tiny machines.

Each token has a fixed vector of +1 and -1, and a text's vector is their sum (random indexing, Kanerva et al. 2000):
texts that share words are similar, others nearly orthogonal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.models.contract import TokenizedText
from commonplace.ranking.arrays import units
from commonplace.types import Embedding

NAME, VERSION = "hashing", "1"
DIMENSIONS = 64


class HashingEmbedder:
    """A stateless embedder: the same token ids give the same bytes on every machine."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.stamp = Embedding(NAME, VERSION, dimensions)

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.stamp.dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            vector[:] = self._signs(text.token_ids).sum(0)
        return units(vectors)

    def _signs(self, token_ids: NDArray[np.uint16]) -> NDArray[np.int8]:
        width = self.stamp.dimensions
        words = -(-width // 64)
        seeds = token_ids.astype(np.uint64)[:, None] * np.uint64(words) + np.arange(words).astype(np.uint64)
        scattered = _mixed(seeds.astype(np.uint64)).astype("<u8").view(np.uint8)
        bits = np.unpackbits(scattered.reshape(len(token_ids), 8 * words), axis=1)
        return (bits[:, :width].astype(np.int8) << 1) - np.int8(1)


def _mixed(seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the seeds scattered over all 64 bits: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    mixed = (seeds + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
