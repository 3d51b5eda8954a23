"""Compare two memories: how likely the later supersedes the earlier, and how doubtful that is.

A cross-encoder (Nogueira & Cho 2019) over the shipped transformer, whose weights are unchanged: each weight square gets
a low-rank correction. scripts/minilm/train_cross_encoder.py trains it, docs/model.md describes the data.

The directory holds `cross_encoder.json` (schema, rank, size and sha256) and `cross_encoder.bin`, float16,
little-endian, without gaps: for each square, in the order of `minilm.bin`, width · rank; then for each rank · width;
the segment and the weights of both scores, each of the width; the two biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import ModelError
from commonplace.models.cache import AgingCache, Bounds
from commonplace.models.files import SHIPPED, ModelFiles, shared
from commonplace.models.minilm import Adapter, MinilmEmbedder

SCHEMA: Final = "commonplace-cross-encoder/1"
MANIFEST, WEIGHTS = "cross_encoder.json", "cross_encoder.bin"
MAX_TOKENS: Final = 30
"""Maximum tokens read of either text: more take longer, and a memory's subject is in the first."""
THREADS: Final = 2
"""Maximum pairs read at the same time."""
CACHE: Final = Bounds(max_entries=2_000, max_bytes=1 << 20, ttl_s=60 * 60)
"""Bounds of the cache of scores: a changed memory has its neighbours judged again, with the same words."""


class CrossEncoder:
    """The cross-encoder over its weights' file. Safe for threads."""

    def __init__(self, directory: Path) -> None:
        """Read the weights, 1.8 MB.

        Raises:
            ModelError: a file is missing, or not what the manifest says.
        """
        self._transformer = shared(MinilmEmbedder, directory)
        self._files = _model_files(directory)
        self._files.open()
        network = self._transformer.network
        count, width, rank = network.layers * network.squares, network.width, self._files.manifest
        size, expected = self._files.stated[WEIGHTS][0], 2 * (2 * count * width * rank + 3 * width + 2)
        if size != expected:
            problem = f"model data {directory / MANIFEST} states {size} bytes for rank {rank}, which has {expected}"
            raise ModelError(problem, remedy="reinstall Commonplace")
        data = np.frombuffer(self._files.read(WEIGHTS, size, 0), "<f2")
        into, out, segment, scores, biases = np.split(data, np.cumsum([count * width * rank] * 2 + [width, 2 * width]))
        self._adapter = Adapter(
            into.reshape(count, width, rank), out.reshape(count, rank, width), segment.astype(np.float32)
        )
        self._scores, self._biases = scores.reshape(2, width).astype(np.float32), biases.astype(np.float32)
        self._cache: AgingCache[NDArray[np.float32]] = AgingCache(CACHE)

    @classmethod
    def load(cls) -> CrossEncoder:
        """Return the process-wide cross-encoder over the weights that ship with Commonplace."""
        return shared(cls, SHIPPED)

    def log_odds(self, pairs: Sequence[tuple[NDArray[np.uint16], NDArray[np.uint16]]]) -> NDArray[np.float32]:
        """Return log-odds, float32, shape (n, 2): that the second text of each pair supersedes the first, and of doubt.

        A pair is doubtful if a careful reader would ask which of the two is true: hearsay, or another value of what
        cannot change.

        Args:
            pairs: token ids. One pair takes 10 to 20 milliseconds; two in parallel take a quarter longer.
        """
        if len(pairs) < THREADS:
            return np.array([self._read(pair) for pair in pairs], np.float32).reshape(-1, 2)
        try:
            from concurrent.futures import ThreadPoolExecutor  # many processes never need it

            with ThreadPoolExecutor(THREADS) as pool:
                return np.array(list(pool.map(self._read, pairs)), np.float32)
        except RuntimeError:  # the interpreter is exiting and starts no threads
            return np.array([self._read(pair) for pair in pairs], np.float32)

    def _read(self, pair: tuple[NDArray[np.uint16], NDArray[np.uint16]]) -> NDArray[np.float32]:
        first, second = (text[:MAX_TOKENS] for text in pair)
        key = (first.tobytes(), second.tobytes())
        log_odds = self._cache.get(key)
        if log_odds is None:
            state = self._transformer.read_pair(first.tolist(), second.tolist(), self._adapter)
            log_odds = self._scores @ state + self._biases
            self._cache.put(key, log_odds, 300 + first.nbytes + second.nbytes)
        return log_odds


def _model_files(directory: Path) -> ModelFiles[int]:
    def parse(document: dict[str, Any]) -> int:
        return int(document["rank"])

    return ModelFiles(directory / MANIFEST, SCHEMA, (WEIGHTS,), parse)


def verify(directory: Path = SHIPPED) -> None:
    """Compare the size and checksum of the weights with the manifest."""
    _model_files(directory).verify()
