"""Keep an embedder's vectors in a file, so that measuring the same texts again does not compute them again.

Usage: python -m benchmarks.vectors FILE conversations --format locomo locomo10.json --embedder minilm
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.output import FILE
from commonplace.cli.app import cli
from commonplace.errors import UsageError
from commonplace.models import registry
from commonplace.models.contract import Embedder, TokenizedText
from commonplace.types import Embedding

CACHED: Final = "minilm"
"""The embedder of ours that takes long enough."""
WAIT_S: Final = 60.0
TEXTS_AT_ONCE: Final = 64
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS vectors
    (embedder TEXT NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, text)) WITHOUT ROWID
"""


class CachedEmbedder:
    """An embedder in front of which stands a file of its vectors. Safe for threads; processes may share the file."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        """Open the file, and create it if need be.

        Raises:
            UsageError: it cannot be opened, or is no such file.
        """
        self._embedder = embedder
        self._lock = threading.Lock()
        try:
            self._file = sqlite3.connect(path, timeout=WAIT_S, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA synchronous = OFF")
            self._file.execute(_TABLE)
        except sqlite3.Error as error:
            raise UsageError(f"the vectors cache {path} cannot be used: {error}", remedy="name another file") from error

    @property
    def stamp(self) -> Embedding:
        """That of the embedder behind it."""
        return self._embedder.stamp

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return what the embedder returns, computing only the vectors that the file does not hold."""
        parts = [self._part(texts[start : start + TEXTS_AT_ONCE]) for start in range(0, len(texts), TEXTS_AT_ONCE)]
        return np.concatenate([np.zeros((0, self.stamp.dimensions), np.float32), *parts])

    def _part(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        keys = [_key(text) for text in texts]
        vectors = np.empty((len(texts), self.stamp.dimensions), np.float32)
        missing = []
        for place, key in enumerate(keys):
            with self._lock:
                row = self._file.execute(
                    "SELECT vector FROM vectors WHERE embedder = ? AND text = ?", (str(self.stamp), key)
                ).fetchone()
            if row is None:
                missing.append(place)
            else:
                vectors[place] = np.frombuffer(row[0], "<f4")
        if missing:
            vectors[missing] = self._embedder.embed([texts[place] for place in missing])
            rows = [(str(self.stamp), keys[place], vectors[place].astype("<f4").tobytes()) for place in missing]
            with self._lock:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
                self._file.execute("COMMIT")
        return vectors


@contextmanager
def vectors_cache(path: Path | None) -> Iterator[None]:
    """Let every `minilm` that is opened by its name in this process keep its vectors in a file; None changes nothing.

    Raises:
        UsageError: the file cannot be used.
    """
    if path is None:
        yield
        return
    usual = registry.EMBEDDERS[CACHED]
    cached = CachedEmbedder(usual(), path)
    registry.EMBEDDERS[CACHED] = lambda: cached
    try:
        yield
    finally:
        registry.EMBEDDERS[CACHED] = usual


def _key(text: TokenizedText) -> bytes:
    digest = blake2b(text.token_ids.tobytes(), digest_size=16)
    digest.update(text.text.encode("utf-8", "surrogatepass"))
    return digest.digest()


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=FILE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(*, file: Path, arguments: tuple[str, ...]) -> None:
    """Run `commonplace benchmark ARGUMENTS`, and keep the vectors of `minilm` in FILE."""
    with vectors_cache(file):
        cli(["benchmark", *arguments])


if __name__ == "__main__":
    main()
