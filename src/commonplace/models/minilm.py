"""Run all-MiniLM-L6-v2, a small sentence transformer, in NumPy alone with int8 weights.

The network is BERT (Devlin et al. 2019); the vector of a text is the mean of the last layer over its tokens, scaled to
length 1, as in sentence-transformers. The weights stay in their file: a product reads one square of them,
width · width, and widens it to float32, so that a process holds less than 1 MB of the 23 MB.

The directory holds `minilm.json` (schema, stamp, sizes of the network, size and sha256 of the weights, provenance) and
`minilm.bin`, little-endian, without gaps (w is the width):

* words: for each token w int8 and their float32 scale;
* positions: float32, w for each;
* vectors: float32, w each: weight and bias of the first norm, then of each layer the biases of query, key, value,
  attention's output, the inner products and the outer product, weight and bias of its two norms, the squares' scales;
* squares: of each layer query, key, value, attention's output, inner products, outer products; int8, w inputs · w
  outputs. Of input x and scales s the product is (x @ square) * s.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.models.contract import TokenizedText
from commonplace.models.files import SHIPPED, ModelFiles, shared
from commonplace.ranking.arrays import ONE_BLAS_THREAD
from commonplace.types import Embedding

Floats = NDArray[np.float32]
Scratch = tuple[NDArray[np.int8], Floats]
"""Buffers for one square of weights: as read, and widened to float32."""

NAME: Final = "minilm"
SCHEMA: Final = "commonplace-transformer/1"
MANIFEST, WEIGHTS = "minilm.json", "minilm.bin"
START, END = 101, 102
"""The tokens `[CLS]` and `[SEP]`, which enclose a text."""
MAX_WINDOWS: Final = 40
"""Maximum windows read of one text, about three seconds; a question can be longer, a passage cannot."""
ROWS_AT_ONCE: Final = 4
"""Rows are padded to a multiple of this number: a BLAS takes longer for a remainder than for padding."""
SMALL_PRODUCT: Final = 1_000_000
"""Maximum multiplications of a product that OpenBLAS, with AVX-512, computes without first repacking the weights,
which takes as long as the product for a question. The result is the same bit by bit."""
SCORES_AT_ONCE: Final = 1 << 16
"""Maximum attention scores in memory at a time; a text of 256 tokens has as many for each head."""
_EPSILON: Final = np.float32(1e-12)


@dataclass(frozen=True, slots=True)
class Network:
    """The sizes of the network, which determine all offsets in the file.

    Attributes:
        inner: width of the feed-forward network's inner layer, as a multiple of `width`.
        tokens: number of positions; a window of a text has two tokens fewer.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    tokens: int

    @property
    def squares(self) -> int:
        """Number of weight squares per layer."""
        return 4 + 2 * self.inner

    @property
    def vectors(self) -> int:
        """Number of vectors per layer: biases, norms and scales."""
        return 9 + self.inner + self.squares

    @property
    def word_bytes(self) -> int:
        return self.width + 4

    @property
    def positions_at(self) -> int:
        return self.vocabulary * self.word_bytes

    @property
    def vectors_at(self) -> int:
        return self.positions_at + 4 * self.width * self.tokens

    @property
    def squares_at(self) -> int:
        return self.vectors_at + 4 * self.width * (2 + self.layers * self.vectors)

    @property
    def size(self) -> int:
        return self.squares_at + self.layers * self.squares * self.width**2


@dataclass(frozen=True, slots=True)
class Adapter:
    """The weights that adapt the network to read a pair of texts.

    Attributes:
        into: left factor of the product `into @ out` added to each square ("LoRA", Hu et al. 2021); float16, shape
            (squares of all layers, width, rank).
        out: float16, shape (squares of all layers, rank, width).
        segment: added to the embedding of each token of the second text; float32, shape (width,).
    """

    into: NDArray[np.float16]
    out: NDArray[np.float16]
    segment: Floats


class MinilmEmbedder:
    """The transformer over its weights' file. Safe to share between threads: each call has its own buffers."""

    def __init__(self, directory: Path) -> None:
        """Open the weights; they are read only from the first text on.

        Raises:
            ModelError: a file is missing, or not what the manifest says.
        """
        self.directory = directory
        self._files = _model_files(directory)
        self._files.open()
        self.stamp, self.network = self._files.manifest
        self._vectors: Floats | None = None
        self._loading = threading.Lock()

    @classmethod
    def load(cls) -> MinilmEmbedder:
        """Return the process-wide embedder over the weights that ship with Commonplace."""
        return shared(cls, SHIPPED)

    is_slow = True
    """A text takes milliseconds: many texts are stored before they are embedded."""

    def embed(self, texts: Sequence[TokenizedText]) -> Floats:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without words gives zeros.

        A text with more tokens than the model has positions is read in windows of about equal length; its vector is the
        mean over all their tokens. If it has more than `MAX_WINDOWS` windows, that many are read, spread from its
        beginning to its end. Texts are computed one by one: other rows would change the rounding of their products, and
        a batch would hardly be faster.
        """
        vectors = np.zeros((len(texts), self.network.width), np.float32)
        scratch = self._scratch()
        with ONE_BLAS_THREAD:
            for row, text in enumerate(texts):
                for window in _windows(text.token_ids, self.network.tokens - 2):
                    vectors[row] += self._states(window, scratch).sum(0)
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, np.newaxis]
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def read_pair(self, first: Sequence[int], second: Sequence[int], adapter: Adapter) -> Floats:
        """Return the last layer's state of the `[CLS]` token before two texts, float32, shape (width,)."""
        ids = [START, *first, END, *second, END]
        with ONE_BLAS_THREAD:
            states = self._states(ids, self._scratch(), adapter, len(first) + 2)
        return np.asarray(states[0])

    def _scratch(self) -> Scratch:
        square = (self.network.width, self.network.width)
        return np.empty(square, np.int8), np.empty(square, np.float32)

    def _states(self, ids: list[int], scratch: Scratch, adapter: Adapter | None = None, second: int = 0) -> Floats:
        """Return the last layer's states of all tokens, including `[CLS]` and `[SEP]`, float32, shape (n, width)."""
        hidden = self._embedded(ids)
        if adapter is not None:
            hidden[second : len(ids)] += adapter.segment
        vectors = self._all_vectors()
        _normalise(hidden, vectors[0], vectors[1])
        for layer in range(self.network.layers):
            first = 2 + layer * self.network.vectors
            layer_vectors = vectors[first : first + self.network.vectors]
            # For a pair only the state of `[CLS]` is needed.
            is_last = adapter is not None and layer == self.network.layers - 1
            needed = ROWS_AT_ONCE if is_last else len(hidden)
            hidden = self._layer(layer, hidden, len(ids), layer_vectors, scratch, adapter, needed)
        return hidden[: len(ids)]

    def _embedded(self, ids: list[int]) -> Floats:
        width, row = self.network.width, self.network.word_bytes
        words = np.frombuffer(b"".join(self._read(row, token * row) for token in ids), np.int8).reshape(-1, row)
        scales = np.ascontiguousarray(words[:, width:]).view("<f4")
        positions = np.frombuffer(self._read(4 * width * len(ids), self.network.positions_at), "<f4")
        hidden = np.zeros((-(-len(ids) // ROWS_AT_ONCE) * ROWS_AT_ONCE, width), np.float32)
        np.multiply(words[:, :width], scales, out=hidden[: len(ids)])
        hidden[: len(ids)] += positions.reshape(-1, width)
        return hidden

    def _all_vectors(self) -> Floats:
        with self._loading:
            if self._vectors is None:
                network = self.network
                data = self._read(network.squares_at - network.vectors_at, network.vectors_at)
                self._vectors = np.frombuffer(data, "<f4").reshape(-1, network.width)
            return self._vectors

    def _layer(
        self,
        layer: int,
        hidden: Floats,
        count: int,
        vectors: Floats,
        scratch: Scratch,
        adapter: Adapter | None,
        needed: int,
    ) -> Floats:
        """Return the next states of the first `needed` rows, in place; rows from `count` on are padding."""
        inner, width = self.network.inner, self.network.width
        parts = next((parts for parts in (2, 3, 4) if hidden.size * (width // parts) <= SMALL_PRODUCT), 1)
        step = -(-width // parts)
        biases, norms, scales = np.split(vectors, [5 + inner, 9 + inner])
        packed, square = scratch

        def product(rows: Floats, number: int) -> Floats:
            index = layer * self.network.squares + number
            self._files.read_into(WEIGHTS, packed, self.network.squares_at + index * packed.nbytes)
            np.copyto(square, packed)
            result = np.empty_like(rows)
            for first in range(0, width, step):
                np.matmul(rows, square[:, first : first + step], out=result[:, first : first + step])
            result *= scales[number]
            if adapter is not None:
                into, out = adapter.into[index].astype(np.float32), adapter.out[index].astype(np.float32)
                result += (rows @ into) @ out
            return result

        def biased(rows: Floats, number: int) -> Floats:
            result = product(rows, number)
            result += biases[number]
            return result

        out = hidden[:needed]
        query, key, value = biased(out, 0), biased(hidden, 1), biased(hidden, 2)
        _attend(query[:count], key[:count], value[:count], self.network.heads)
        del key, value
        attended = biased(query, 3)
        attended += out
        _normalise(attended, norms[0], norms[1])
        np.add(attended, biases[4 + inner], out=out)
        for part in range(4, 4 + inner):
            wide = biased(attended, part)
            gelu(wide)
            out += product(wide, part + inner)
        _normalise(out, norms[2], norms[3])
        return out

    def _read(self, count: int, offset: int) -> bytes:
        return self._files.read(WEIGHTS, count, offset)


def _windows(token_ids: NDArray[np.uint16], most: int) -> Iterator[list[int]]:
    """Yield a text's tokens in as few windows as possible, of about equal length, each between `[CLS]` and `[SEP]`."""
    count = len(token_ids)
    windows = -(-count // most)
    read = min(windows, MAX_WINDOWS)
    for number in (step * (windows - 1) // max(1, read - 1) for step in range(read)):
        part = token_ids[count * number // windows : count * (number + 1) // windows]
        yield [START, *part.tolist(), END]


def _attend(query: Floats, key: Floats, value: Floats, heads: int) -> None:
    """Replace `query` with the attention output of each token, all heads side by side."""
    width = query.shape[1]
    query *= np.float32((width // heads) ** -0.5)
    queries, keys, values = (rows.reshape(-1, heads, width // heads).transpose(1, 0, 2) for rows in (query, key, value))
    step = max(1, SCORES_AT_ONCE // (len(query) * len(key)))
    for group in (slice(first, first + step) for first in range(0, heads, step)):
        scores = queries[group] @ keys[group].transpose(0, 2, 1)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        queries[group] = scores @ values[group]


def _normalise(rows: Floats, weight: Floats, bias: Floats) -> None:
    rows -= rows.mean(-1, keepdims=True)
    variance = np.einsum("nd,nd->n", rows, rows)[:, np.newaxis] / np.float32(rows.shape[1])
    rows /= np.sqrt(variance + _EPSILON)
    rows *= weight
    rows += bias


def gelu(rows: Floats) -> None:
    """Apply GELU in place, by the tanh form of Hendrycks & Gimpel 2016, off by less than 5e-4."""
    for start in range(0, len(rows), 64):  # fits a processor's cache
        x = rows[start : start + 64]
        inner = x * x
        inner *= np.float32(0.044715)
        inner += 1
        inner *= x
        inner *= np.float32((2 / np.pi) ** 0.5)
        np.tanh(inner, out=inner)
        inner += 1
        x *= inner
        x *= np.float32(0.5)


def _model_files(directory: Path) -> ModelFiles[tuple[Embedding, Network]]:
    def parse(document: dict[str, Any]) -> tuple[Embedding, Network]:
        network = Network(**{name: int(size) for name, size in document["network"].items()})
        if document["size"] != network.size:
            raise ValueError(f"the network has {network.size} bytes, the weights {document['size']}")
        return Embedding(document["name"], document["version"], network.width), network

    return ModelFiles(directory / MANIFEST, SCHEMA, (WEIGHTS,), parse)


def verify(directory: Path = SHIPPED) -> None:
    """Compare the size and checksum of the weights with the manifest."""
    _model_files(directory).verify()
