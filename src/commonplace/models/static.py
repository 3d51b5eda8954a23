"""Embed a text as the mean of its tokens' vectors, and tell how alike two tokens are; knows no store and no search.

The vectors come from a table that ships with the package (docs/model.md); no model runs. A process that answers
queries reads the few rows it needs from the file; one that embeds many texts holds the table, and more of the words
that it met, until `release`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.models.contract import Similarities, TokenizedText
from commonplace.models.modeldata import SHIPPED, ModelData
from commonplace.ranking.arrays import distinct
from commonplace.text.wordpiece import WordPiece
from commonplace.types import Embedding

TEXTS_WORTH_THE_TABLE = 256
"""From this many texts in one call the whole table (8 MB) is read; below it, only the rows needed."""


class StaticEmbedder:
    """The default embedder, with its tokenizer and its token similarities. Safe to share between threads."""

    def __init__(self, data: ModelData) -> None:
        self._data = data
        self._scales = data.scales()
        self._tokenizer = WordPiece(data.vocabulary())
        self._table: NDArray[np.int8] | None = None
        self._loading = threading.Lock()

    @classmethod
    def load(cls, directory: Path = SHIPPED) -> StaticEmbedder:
        """Return the embedder over the model data of a directory, by default what ships with Commonplace.

        While anyone in this process uses it, all others get the same one.

        Raises:
            ModelError: a file is missing or has the wrong size.
        """
        found = _loaded.get(directory)
        return _loaded.setdefault(directory, cls(ModelData(directory))) if found is None else found

    @property
    def stamp(self) -> Embedding:
        """Name, version and dimensions of the shipped table."""
        return self._data.manifest.stamp

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self.stamp.dimensions

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens; ids are smaller."""
        return self._data.manifest.vocabulary_size

    @property
    def cutoff(self) -> float:
        """Cosines under this count as 0 in `similarities`."""
        return self._data.manifest.cutoff

    def tokenize(self, text: str) -> NDArray[np.uint16]:
        """Return the WordPiece ids of any text, uint16, shape (n,)."""
        return np.frombuffer(self._tokenizer.encode(text), "<u2")

    def count_tokens(self, text: str) -> int:
        """Return the number of WordPiece tokens of a text, in which no word counts as one because it is unknown."""
        return self._tokenizer.count(text)

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without known words gives zeros.

        The vector of a text does not depend on what else is in the batch.
        """
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        ids = [text.token_ids for text in texts]
        if len(texts) >= TEXTS_WORTH_THE_TABLE:
            self._tokenizer.expect_many()
            table, places = self._whole_table(), ids
        else:
            known = distinct(np.concatenate(ids)) if ids else np.empty(0, np.uint16)
            table = self._data.rows(known)
            places = [np.searchsorted(known, tokens).astype(np.uint16) for tokens in ids]
        for vector, tokens, rows in zip(vectors, ids, places, strict=True):
            # Not np.dot: on so little work the threads of the linear-algebra library cost more than they give.
            vector[:] = np.einsum("n,nd->d", self._scales[tokens], table.take(rows, axis=0).astype(np.float32))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return vectors

    def similarities(self, token_ids: NDArray[np.integer[Any]]) -> Similarities:
        """Return the cosines between the given tokens, n of them, and all others.

        A token has 1 with itself, at most 64 similar tokens have their cosine to 1/255, all others have 0; marks such
        as `[UNK]` are like nothing, not even themselves.
        """
        found = [self._data.neighbours(token) for token in token_ids.tolist()]
        similar = distinct(np.concatenate([np.empty(0, np.uint16), *(tokens for tokens, _ in found)]))
        columns = np.zeros(self.vocabulary_size, np.uint16)
        columns[similar] = np.arange(1, len(similar) + 1)
        cosines = np.zeros((len(found), len(similar) + 1), np.float32)
        for row, (tokens, shares) in zip(cosines, found, strict=True):
            row[columns[tokens]] = shares / np.float32(255)
        return Similarities(columns, cosines)

    def weights(self, token_ids: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Return the lengths of the tokens' vectors, float32, shape (n,): their share in a mean; marks have 0."""
        rows = self._data.rows(token_ids).astype(np.float32)
        return np.asarray(np.linalg.norm(rows, axis=1) * self._scales[token_ids], np.float32)

    def release(self) -> None:
        """Give back the memory that embedding many texts took; the next large batch takes it again."""
        with self._loading:
            self._table = None
        self._tokenizer.forget()

    def _whole_table(self) -> NDArray[np.int8]:
        with self._loading:
            if self._table is None:
                self._table = self._data.table()
            return self._table


_loaded: weakref.WeakValueDictionary[Path, StaticEmbedder] = weakref.WeakValueDictionary()
