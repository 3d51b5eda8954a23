"""Keep the vectors of the transformer in a file, so that a benchmark that is run again computes none twice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import UsageError
from commonplace.models import registry
from commonplace.models.contract import Embedder, TokenizedText

CACHED: Final = "minilm"
"""The embedder of ours that takes long enough."""
TEXTS_AT_ONCE: Final = 64
_WAIT_S: Final = 60.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS vectors
    (embedder TEXT NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, text)) WITHOUT ROWID
"""


class CachedEmbedder:
    """An embedder in front of which stands a file of its vectors. Safe for threads; processes may share the file."""

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        """Open the file `vectors.db` in the directory, and create both if need be."""
        self._embedder = embedder
        self.stamp = embedder.stamp
        self._lock = threading.Lock()
        path = directory / "vectors.db"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=_WAIT_S, check_same_thread=False, isolation_level=None)
            self.close = self._file.close
            self._file.execute("PRAGMA synchronous = OFF")
            self._file.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            remedy = "name another directory"
            raise UsageError(f"the vectors cache {path} cannot be used: {error}", remedy=remedy) from error

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return what the embedder returns, computing only the vectors that the file does not hold."""
        parts = [self._part(texts[start : start + TEXTS_AT_ONCE]) for start in range(0, len(texts), TEXTS_AT_ONCE)]
        return np.concatenate([np.zeros((0, self.stamp.dimensions), np.float32), *parts])

    def _part(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        name, keys = str(self.stamp), []
        for text in texts:
            digest = blake2b(text.token_ids.tobytes(), digest_size=16)
            digest.update(text.text.encode("utf-8", "surrogatepass"))
            keys.append(digest.digest())
        vectors = np.empty((len(texts), self.stamp.dimensions), np.float32)
        missing = []
        for index, key in enumerate(keys):
            with self._lock:
                cursor = self._file.execute("SELECT vector FROM vectors WHERE embedder = ? AND text = ?", (name, key))
                row = cursor.fetchone()
            if row is None:
                missing.append(index)
            else:
                vectors[index] = np.frombuffer(row[0], "<f4")
        if missing:
            vectors[missing] = self._embedder.embed([texts[index] for index in missing])
            rows = [(name, keys[index], vectors[index].astype("<f4").tobytes()) for index in missing]
            with self._lock:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
                self._file.execute("COMMIT")
        return vectors


@contextmanager
def vectors_cache(directory: Path | None) -> Iterator[None]:
    """Let every `minilm` opened by its name in this process keep its vectors in a file; None changes nothing."""
    if directory is None:
        yield
        return
    usual = registry.EMBEDDERS[CACHED]
    with closing(CachedEmbedder(usual(), directory)) as cached:
        registry.EMBEDDERS[CACHED] = lambda: cached
        try:
            yield
        finally:
            registry.EMBEDDERS[CACHED] = usual
