"""Re-rank a few texts without a language model: late interaction, shared words and vector similarity.

A text's score depends on the query and on that text alone: no candidate can raise or lower another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.models.cache import AgingCache, Bounds
from commonplace.models.contract import Embedder, RerankResult, TokenizedText
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import distinct
from commonplace.ranking.calibration import text_scores
from commonplace.ranking.late_interaction import find_matches, weighted_share
from commonplace.text.tokens import analyse, without_unspaced

_LITERAL = 0.999
"""Similarity from which two tokens count as the same."""
PASSAGES = 100
"""Assumed number of passages that the texts were selected from."""
MEANT = 50
"""Maximum number of texts that a transformer embeds; each takes milliseconds."""
MEANT_TOKENS = 508
"""Maximum tokens of a text that are embedded, two windows of the transformer; all its words are compared."""
MEANINGS_CACHE = Bounds(max_entries=1_000, max_bytes=4 << 20, ttl_s=5 * 60)
"""Bounds of the cache of texts' vectors: several questions about the same texts compute them once."""
UNRELATED = 0.2
"""Cosine below which texts count as unrelated: nine in ten pairs of unrelated STS-B sentences have less than 0.17."""


class StaticReranker:
    """Ranks texts by static token vectors and shared words, and optionally by an embedder. Safe for threads.

    A text with a score of 0.70 or more most likely answers the query. A text with neither the same or a similar word
    nor a similar vector has 0.
    """

    def __init__(self, model: StaticEmbedder | None = None, embedder: Embedder | None = None) -> None:
        """Create a re-ranker over a static model, by default the one that ships with Commonplace.

        Args:
            embedder: replaces the static vectors for the best `MEANT` texts by static score; all other texts get 0.
        """
        self._model = model or StaticEmbedder.load()
        self._embedder = embedder
        self._meanings: AgingCache[NDArray[np.float32]] = AgingCache(MEANINGS_CACHE)

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> list[RerankResult]:
        """Return at most `top_k` of the candidates, best first, ties in input order."""
        if top_k <= 0 or not candidates:
            return []
        scores = self.scores(query, candidates)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [RerankResult(candidates[index], float(scores[index]), index) for index in order.tolist()]

    def scores(self, query: str, candidates: Sequence[str]) -> NDArray[np.float32]:
        """Return the score of each candidate, 0–1, float32, shape (n,)."""
        texts = [TokenizedText(text, self._model.tokenize(text)) for text in candidates]
        words, characters = without_unspaced(query)
        tokens = distinct(self._model.tokenize(words))
        # In scripts without spaces the model sees single characters, which say little: shared terms decide there.
        unspaced = np.float32(characters / max(1, characters + len(tokens)))
        terms = frozenset(analyse(query))
        counts = [len(terms.intersection(analyse(text))) if terms else 0 for text in candidates]
        shared = np.array(counts, dtype=np.float32) / np.float32(max(1, len(terms)))
        # The weighted shares of the query that each text covers, and that it holds literally.
        similar, weights = self._model.similarities(tokens), self._model.weights(tokens)
        columns = similar.columns.take(np.concatenate([np.empty(0, np.uint16), *(text.token_ids for text in texts)]))
        lengths = np.array([len(text.token_ids) for text in texts], dtype=np.int64)
        best = find_matches(similar.cosines, columns, lengths).best()
        coverage = (1 - unspaced) * weighted_share(best, weights) + unspaced * shared
        literal = np.maximum(weighted_share((best >= _LITERAL).astype(np.float32), weights), shared)
        question = TokenizedText(query, self._model.tokenize(query))

        def judged(name: str, vectors: NDArray[np.float32], of: NDArray[np.intp]) -> NDArray[np.float32]:
            dense = (1 - unspaced) * np.einsum("nd,d->n", vectors[1:], vectors[0])
            calibrated = text_scores(name, coverage[of], literal[of], dense, PASSAGES)
            return np.where((coverage[of] > 0) | (shared[of] > 0) | (dense >= UNRELATED), calibrated, np.float32(0))

        scores = judged(self._model.stamp.name, self._model.embed([question, *texts]), np.arange(len(texts)))
        if self._embedder is None:
            return scores
        first = np.argsort(-scores, kind="stable")[:MEANT]
        scores = np.zeros_like(scores)
        vectors = self._meant(self._embedder, [question, *(texts[index] for index in first.tolist())])
        scores[first] = judged(self._embedder.stamp.name, vectors, first)
        return scores

    def _meant(self, embedder: Embedder, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return the vectors of the texts' beginnings, float32, shape (n, dimensions)."""
        beginnings = [TokenizedText(text.text, text.token_ids[:MEANT_TOKENS]) for text in texts]
        keys = [text.token_ids.tobytes() for text in beginnings]
        vectors = {key: self._meanings.get(key) for key in keys}
        missing = {key: text for key, text in zip(keys, beginnings, strict=True) if vectors[key] is None}
        for key, vector in zip(missing, embedder.embed(list(missing.values())), strict=True):
            vectors[key] = vector
            self._meanings.put(key, vector, vector.nbytes + len(key))
        return np.array([vectors[key] for key in keys], dtype=np.float32)
