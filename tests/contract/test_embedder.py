"""What every embedder promises, run on each one that `open_embedder` knows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.stubs import tiny_minilm

from commonplace.models.contract import Embedder, TokenizedText
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.registry import EMBEDDERS, open_embedder
from commonplace.models.static import StaticEmbedder

WORDS = ["we", "chose", "postgres", "for", "billing", "because", "the", "ledger", "needs", "fast", "transactions"]
SENTENCES = [" ".join(WORDS[start : start + 5]) for start in range(len(WORDS) - 5)]


@pytest.fixture(scope="module")
def tokenizer() -> StaticEmbedder:
    return StaticEmbedder.load()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer of chance weights: the real one comes with an extra."""
    return tiny_minilm.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(params=sorted(EMBEDDERS))
def embedder(request: pytest.FixtureRequest, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Embedder:
    monkeypatch.setattr(MinilmEmbedder, "load", lambda: MinilmEmbedder(tiny))
    return open_embedder(request.param)


def tokenized(tokenizer: StaticEmbedder, texts: list[str]) -> list[TokenizedText]:
    return [TokenizedText(text, tokenizer.tokenize(text)) for text in texts]


def test_vectors_have_the_stamped_shape_and_unit_length(embedder: Embedder, tokenizer: StaticEmbedder) -> None:
    """The store keeps them as int8 of unit vectors, of the length that the stamp says."""
    vectors = embedder.embed(tokenized(tokenizer, SENTENCES))
    assert vectors.shape == (len(SENTENCES), embedder.stamp.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_without_words_gives_zeros(embedder: Embedder, tokenizer: StaticEmbedder) -> None:
    """A zero vector finds nothing; NaN would poison every score."""
    vectors = embedder.embed(tokenized(tokenizer, ["", " \n ", "billing"]))
    assert not vectors[:2].any()
    assert vectors[2].any()


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    """An empty batch is a batch: an index run over nothing must not fail."""
    assert embedder.embed([]).shape == (0, embedder.stamp.dimensions)


def test_a_single_text_has_the_vector_it_has_in_a_batch(embedder: Embedder, tokenizer: StaticEmbedder) -> None:
    """Passages are written in batches of any size and must be comparable with one another and with queries."""
    texts = tokenized(tokenizer, SENTENCES * 100)
    together = embedder.embed(texts)
    for number in (0, 3, len(SENTENCES) - 1):
        np.testing.assert_array_equal(embedder.embed([texts[number]])[0], together[number])


def test_the_same_text_gives_the_same_bytes_from_another_instance(
    embedder: Embedder, tokenizer: StaticEmbedder
) -> None:
    """Processes share a store: what one wrote the other compares with."""
    texts = tokenized(tokenizer, SENTENCES)
    assert open_embedder(embedder.stamp.name).embed(texts).tobytes() == embedder.embed(texts).tobytes()


def test_threads_get_what_one_thread_gets(embedder: Embedder, tokenizer: StaticEmbedder) -> None:
    """One embedder serves every request of a server."""
    batches = [tokenized(tokenizer, SENTENCES[:count] * (1 + 60 * (count % 2))) for count in range(1, 9)] * 4
    expected = [embedder.embed(batch).tobytes() for batch in batches]
    with ThreadPoolExecutor(8) as pool:
        assert [vectors.tobytes() for vectors in pool.map(embedder.embed, batches)] == expected


def test_a_text_is_nearer_to_one_that_shares_its_words(embedder: Embedder, tokenizer: StaticEmbedder) -> None:
    """The least that an embedder must do to be of use."""
    texts = ["postgres keeps the billing ledger", "the billing ledger in postgres", "walk a dog near rivers"]
    vectors = embedder.embed(tokenized(tokenizer, texts))
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3
