"""The remote embedder: batches, length limits and a cache for queries.

Texts are sent unchanged. Opening a store without the embedder's key succeeds; only `embed` fails, and search then
falls back to words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from commonplace.errors import ProviderError
from commonplace.models.cache import AgingCache, Bounds
from commonplace.models.client import JsonClient, batches_of
from commonplace.models.contract import TokenizedText
from commonplace.models.providers import ModelName
from commonplace.ranking.arrays import units
from commonplace.types import Embedding

VERSION: Final = "1"
KNOWN_DIMENSIONS: Final[Mapping[str, int]] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""Dimensions of OpenAI's models; any other model embeds one text to find them out."""

BATCH_TEXTS: Final = 32
BATCH_TOKENS: Final = 50_000
"""Maximum tokens of one request: OpenAI takes 2,048 texts and 300,000 tokens, other servers less; counts are rough."""
MAX_TOKENS: Final = 6_000
"""Maximum tokens of a text; of a longer one the beginning is embedded. OpenAI's models read 8,191 of their tokens."""
ONE_TEXT_S: Final = 15.0
"""Time limit, in seconds, for a single text such as a query: a user waits, and words alone can answer it."""
MAX_BYTES: Final = 64 << 20
CACHED_QUERIES: Final = Bounds(max_entries=5_000, max_bytes=64 << 20, ttl_s=30 * 60)
"""Bounds of the query cache, set by the auto-retrieval contract."""


class RemoteEmbedder:
    """An embedder behind an API. Safe for threads. It caches the vectors of single texts, such as queries."""

    def __init__(
        self,
        name: ModelName,
        connect: Callable[[], JsonClient],
        dimensions: int = 0,
        cache: Bounds = CACHED_QUERIES,
        batch_texts: int = BATCH_TEXTS,
    ) -> None:
        """Create an embedder; `connect` is called when the first text is embedded.

        Args:
            dimensions: of its vectors; 0 looks them up, or asks an unknown model, which may raise ProviderError.
            cache: bounds of the cache of single texts' vectors.
        """
        self._name = name
        self._connect = connect
        self._batch_texts = batch_texts
        self._client: JsonClient | None = None
        self._connecting = threading.Lock()
        self._cache: AgingCache[NDArray[np.float32]] = AgingCache(cache)
        length = dimensions or KNOWN_DIMENSIONS.get(name.model, 0) or len(self._ask(["dimensions"])[0])
        self.stamp = Embedding(str(name), VERSION, length)

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self.stamp})"

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without words gives zeros.

        Raises:
            ProviderError: the model did not answer, or its vectors have another length.
        """
        vectors = np.zeros((len(texts), self.stamp.dimensions), np.float32)
        rows = [row for row, text in enumerate(texts) if len(text.token_ids) and text.text.strip()]
        sizes = [len(texts[row].token_ids) for row in rows]
        ends = [len(texts[row].text) * MAX_TOKENS // max(len(texts[row].token_ids), MAX_TOKENS) for row in rows]
        beginnings = [texts[row].text[:end] for row, end in zip(rows, ends, strict=True)]
        if len(beginnings) == 1:
            # Keyed by digest: a forgotten text must not be readable in the cache.
            key = blake2b(beginnings[0].encode("utf-8", "surrogatepass"), digest_size=16).digest()
            vector = self._cache.get(key)
            if vector is None:
                vector = self._units(self._ask(beginnings))[0]
                self._cache.put(key, vector, vector.nbytes)
            vectors[rows[0]] = vector
            return vectors
        batches = batches_of([min(size, MAX_TOKENS) for size in sizes], self._batch_texts, BATCH_TOKENS)
        if batches:
            with ThreadPoolExecutor(min(self._server().settings.concurrency, len(batches))) as pool:
                answers = pool.map(lambda batch: self._ask(beginnings[batch[0] : batch[1]]), batches)
                for (start, end), answer in zip(batches, answers, strict=True):
                    vectors[rows[start:end]] = self._units(answer)
        return vectors

    def _server(self) -> JsonClient:
        with self._connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _ask(self, texts: list[str]) -> list[list[float]]:
        client = self._server()
        document = {"model": self._name.model, "input": texts, "encoding_format": "float"}
        answer = client.post("/embeddings", document, deadline=client.deadline(ONE_TEXT_S if len(texts) == 1 else None))
        usage = answer.get("usage")
        spent = usage.get("prompt_tokens") if isinstance(usage, dict) else 0
        client.budget.count_tokens(spent if isinstance(spent, int) and spent > 0 else 0)
        vectors = _vectors(answer.get("data"), len(texts))
        if vectors is None:
            raise ProviderError(
                f"{self._name} answered with no vector for each of {len(texts)} texts",
                remedy="check that the model is one for embeddings",
            )
        return vectors

    def _units(self, answer: list[list[float]]) -> NDArray[np.float32]:
        expected = self.stamp.dimensions
        for vector in answer:
            if len(vector) != expected:
                raise ProviderError(
                    f"a vector of {self._name} has {len(vector)} dimensions, expected {expected}",
                    remedy="check the model's name and the address: another model made the others",
                )
        try:
            with np.errstate(over="ignore"):  # too large values become infinite and are rejected below
                vectors = np.array(answer, dtype=np.float32).reshape(len(answer), expected)
        except OverflowError:  # an integer too large for a float
            vectors = np.full((len(answer), expected), np.inf, np.float32)
        if not np.isfinite(vectors).all():
            raise ProviderError(f"a vector of {self._name} holds what is not a number", remedy="choose another model")
        return units(vectors)


def _vectors(data: Any, count: int) -> list[list[float]] | None:
    """Return an answer's vectors in the order of the texts; None unless there is exactly one per text."""
    if not isinstance(data, list) or len(data) != count:
        return None
    by_index: dict[int, list[float]] = {}
    for position, entry in enumerate(data):
        vector = entry.get("embedding") if isinstance(entry, dict) else None
        if not isinstance(vector, list) or not vector or not all(type(value) in (float, int) for value in vector):
            return None
        index = entry.get("index", position)
        by_index[index if isinstance(index, int) else -1] = vector
    return [by_index[position] for position in range(count)] if by_index.keys() == set(range(count)) else None
