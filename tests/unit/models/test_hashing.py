"""The hashing embedder gives fixed bytes, worked out from SplitMix64's published constants."""

from __future__ import annotations

import numpy as np

from commonplace.models.contract import TokenizedText
from commonplace.models.hashing import HashingEmbedder

MASK = (1 << 64) - 1


def splitmix64(seed: int) -> int:
    """The generator's output for its first step from `seed`, in plain integers."""
    mixed = (seed + 1) * 0x9E3779B97F4A7C15 & MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
    return mixed ^ mixed >> 31


def text(*token_ids: int) -> TokenizedText:
    return TokenizedText("", np.array(token_ids, np.uint16))


def test_a_token_is_the_signs_of_its_hash() -> None:
    """Stored vectors must mean the same on every machine and in every process, whatever PYTHONHASHSEED says."""
    little_endian = splitmix64(2057).to_bytes(8, "little")
    signs = [1 if byte >> (7 - bit) & 1 else -1 for byte in little_endian for bit in range(8)]
    vector = HashingEmbedder().embed([text(2057)])[0]
    np.testing.assert_array_equal(vector, np.array(signs, np.float32) / np.float32(8))


def test_splitmix64_starts_as_published() -> None:
    """The first output of SplitMix64 from seed 0 is 0xE220A8397B1DCDAF; the reference above must be that generator."""
    assert splitmix64(0) == 0xE220A8397B1DCDAF


def test_a_text_is_the_sum_of_its_tokens() -> None:
    """Word counts must count, and order must not."""
    embedder = HashingEmbedder(96)
    one, two = embedder.embed([text(7), text(9)]) * np.float32(96**0.5)
    expected = 2 * one + two
    np.testing.assert_allclose(embedder.embed([text(7, 9, 7)])[0], expected / np.linalg.norm(expected), atol=1e-6)


def test_dimensions_need_not_fill_a_word() -> None:
    """Tests ask for small vectors."""
    assert HashingEmbedder(5).embed([text(1), text(2)]).shape == (2, 5)
