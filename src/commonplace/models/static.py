"""The static embedder: a text's vector is the mean of its tokens' vectors; also token similarity.

The vectors come from a table that ships with the package (docs/model.md); no model runs. A process that answers
queries reads only the rows it needs from the file; one that embeds many texts keeps the whole table, and more cached
words, in memory until `release`.

The directory holds these files, all little-endian (t is a token id, d the dimensions):

* `model.json`: schema, name, version, dimensions, vocabulary size, cut-off, size and sha256 of each file, provenance;
* `vocabulary.txt`: UTF-8, one piece per line, line t (from 0) is token t;
* `vectors.i8`: int8, row-major; row t, times its scale, is the vector of token t;
* `scales.f32`: float32, one per token;
* `neighbours.bin`: for each token with n similar ones: n uint16 tokens, best first, then n uint8 cosines in 255ths;
* `neighbour_starts.u32`: uint32, the start of each token's list, in neighbours, and finally the end of the last.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.models.contract import Similarities, TokenizedText
from commonplace.models.files import SHIPPED, ModelFiles, shared
from commonplace.ranking.arrays import distinct, units
from commonplace.text.tokens import Vocabulary, WordPiece
from commonplace.types import Embedding

SCHEMA = "commonplace-static-model/1"
MANIFEST = "model.json"
VOCABULARY, VECTORS, SCALES = "vocabulary.txt", "vectors.i8", "scales.f32"
NEIGHBOURS, NEIGHBOUR_STARTS = "neighbours.bin", "neighbour_starts.u32"
FILES = (VOCABULARY, VECTORS, SCALES, NEIGHBOURS, NEIGHBOUR_STARTS)


def _manifest(document: dict[str, Any]) -> tuple[Embedding, int]:
    """Return the stamp and the vocabulary size stated in `model.json`."""
    return Embedding(document["name"], document["version"], document["dimensions"]), document["vocabulary_size"]


class ModelData:
    """The open files of one model directory. Safe for threads.

    Raises:
        ModelError: a file is missing, has another size than the manifest says, or the manifest cannot be read.
    """

    def __init__(self, directory: Path = SHIPPED) -> None:
        self._files = ModelFiles(directory / MANIFEST, SCHEMA, FILES, _manifest)
        self._files.open()
        self.stamp, self.vocabulary_size = self._files.manifest
        self._directory = directory

    def vocabulary(self) -> Vocabulary:
        """Return the pieces by token."""
        return Vocabulary((self._directory / VOCABULARY).read_bytes())

    def scales(self) -> NDArray[np.float32]:
        """Return float32, shape (vocabulary,)."""
        return np.fromfile(self._directory / SCALES, "<f4")

    def rows(self, token_ids: NDArray[np.integer[Any]]) -> NDArray[np.int8]:
        """Return int8, shape (n, d), and read only these rows: a mapped table would become resident as a whole."""
        width = self.stamp.dimensions
        data = b"".join(self._files.read(VECTORS, width, int(token) * width) for token in token_ids)
        return np.frombuffer(data, np.int8).reshape(-1, width)

    def table(self) -> NDArray[np.int8]:
        """Return int8, shape (vocabulary, d): all rows."""
        return np.fromfile(self._directory / VECTORS, np.int8).reshape(-1, self.stamp.dimensions)

    def neighbours(self, token_id: int) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        """Return the similar tokens, best first, and their cosines in 255ths."""
        start, end = np.frombuffer(self._files.read(NEIGHBOUR_STARTS, 8, 4 * token_id), "<u4").tolist()
        count = end - start
        data = self._files.read(NEIGHBOURS, 3 * count, 3 * start)
        return np.frombuffer(data, "<u2", count), np.frombuffer(data, np.uint8, count, 2 * count)


def verify_data(directory: Path = SHIPPED) -> None:
    """Compare the sizes and checksums of the model's files with the manifest."""
    ModelFiles(directory / MANIFEST, SCHEMA, FILES, _manifest).verify()


TEXTS_WORTH_THE_TABLE = 256
"""Minimum texts in one call for which the whole table (8 MB) is read; below, only the rows needed are read."""


class StaticEmbedder:
    """The default embedder, with its tokenizer and its token similarities. Safe to share between threads."""

    def __init__(self, directory: Path = SHIPPED) -> None:
        self._data = data = ModelData(directory)
        self.stamp = data.stamp
        self.vocabulary_size = data.vocabulary_size
        self._scales = data.scales()
        self._vocabulary = data.vocabulary()
        self._tokenizer = WordPiece(self._vocabulary)
        self._table: NDArray[np.int8] | None = None
        self._loading = threading.Lock()

    @classmethod
    def load(cls, directory: Path = SHIPPED) -> StaticEmbedder:
        """Return the process-wide embedder over a directory's data."""
        return shared(cls, directory)

    def tokenize(self, text: str) -> NDArray[np.uint16]:
        """Return the WordPiece ids of any text, uint16, shape (n,)."""
        return np.frombuffer(self._tokenizer.encode(text), "<u2")

    def inside_words(self) -> NDArray[np.bool_]:
        """Return which tokens continue a word, bool, shape (vocabulary,)."""
        return np.array([piece.startswith("##") for piece in self._vocabulary], np.bool_)

    def count_tokens(self, text: str) -> int:
        """Return the number of WordPiece tokens of a text; an unknown word counts by its parts, not as one token."""
        return self._tokenizer.count(text)

    def cut(self, text: str) -> list[tuple[str, int]]:
        """Return the parts of a text with the share of each in `count_tokens`."""
        return list(self._tokenizer.cut(text))

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without known words gives zeros.

        A text's vector does not depend on the rest of the batch.
        """
        vectors = np.zeros((len(texts), self.stamp.dimensions), np.float32)
        ids = [text.token_ids for text in texts]
        if len(texts) >= TEXTS_WORTH_THE_TABLE:
            self._tokenizer.expect_many()
            with self._loading:
                table = self._table = self._data.table() if self._table is None else self._table
            row_numbers = ids
        else:
            used = distinct(np.concatenate(ids)) if ids else np.empty(0, np.uint16)
            table = self._data.rows(used)
            row_numbers = [np.searchsorted(used, tokens).astype(np.uint16) for tokens in ids]
        for vector, tokens, rows in zip(vectors, ids, row_numbers, strict=True):
            # Not np.dot: on arrays this small BLAS threads cost more than they gain.
            vector[:] = np.einsum("n,nd->d", self._scales[tokens], table.take(rows, axis=0).astype(np.float32))
        return units(vectors)

    def similarities(self, token_ids: NDArray[np.integer[Any]]) -> Similarities:
        """Return the cosines between the given tokens, n of them, and all others.

        A token has cosine 1 with itself; at most 64 similar tokens have theirs to 1/255, all others 0. Special tokens
        such as `[UNK]` have 0 with all tokens, even themselves.
        """
        neighbours = [self._data.neighbours(token) for token in token_ids.tolist()]
        similar = distinct(np.concatenate([np.empty(0, np.uint16), *(tokens for tokens, _ in neighbours)]))
        columns = np.zeros(self.vocabulary_size, np.uint16)
        columns[similar] = np.arange(1, len(similar) + 1)
        cosines = np.zeros((len(neighbours), len(similar) + 1), np.float32)
        for row, (tokens, shares) in zip(cosines, neighbours, strict=True):
            row[columns[tokens]] = shares / np.float32(255)
        return Similarities(columns, cosines)

    def weights(self, token_ids: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Return the lengths of the tokens' vectors, float32, shape (n,): their weights in a mean; 0 for marks."""
        rows = self._data.rows(token_ids).astype(np.float32)
        return np.asarray(np.linalg.norm(rows, axis=1) * self._scales[token_ids], np.float32)

    def release(self) -> None:
        """Free the memory used to embed many texts; the next large batch allocates it again."""
        with self._loading:
            self._table = None
        self._tokenizer.forget()
