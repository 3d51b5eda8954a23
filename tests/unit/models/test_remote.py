"""Embedding by a model behind an API: order, lengths, batches, dimensions, and the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.stubs.model_server import DIMENSIONS, ModelServer, Reply, embeddings, good, vector
from tests.stubs.replies import LASTING, PASSING, USELESS

from commonplace.errors import ProviderError, UsageError
from commonplace.models.cache import Bounds
from commonplace.models.contract import TokenizedText
from commonplace.models.registry import embedder_name, is_remote, open_embedder
from commonplace.models.remote import BATCH_TEXTS, MAX_TOKENS, RemoteEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.settings import ModelSettings
from commonplace.types import Embedding

TOKENS = StaticEmbedder.load()
FEW = ModelSettings(retries=0, timeout_s=5.0)


def tokenized(*texts: str) -> list[TokenizedText]:
    return [TokenizedText(text, TOKENS.tokenize(text)) for text in texts]


def opened(server: ModelServer, name: str = "openai:m", settings: ModelSettings = FEW) -> RemoteEmbedder:
    found = open_embedder(name, settings=settings, environ=server.environ)
    assert isinstance(found, RemoteEmbedder)
    return found


def unit(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    found = np.array(vector(text), np.float32)
    return np.asarray(found / np.linalg.norm(found), np.float32)


def test_vectors_come_in_the_order_of_the_texts_at_unit_length() -> None:
    """The stub answers in another order, as the API is free to."""
    texts = ["we chose postgres", "the ledger is slow", "walk a dog"]
    with ModelServer() as server:
        embedder = opened(server)
        found = embedder.embed(tokenized(*texts))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [unit(text) for text in texts], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_the_stamp_names_provider_and_model_and_their_dimensions() -> None:
    """OpenAI's are known; any other model is asked once how long its vectors are."""
    with ModelServer() as server:
        assert opened(server, "text-embedding-3-small").stamp == Embedding("openai:text-embedding-3-small", "1", 1536)
        assert opened(server, "openai/text-embedding-3-large").stamp.dimensions == 3072
        assert server.asked == []
        assert opened(server, "ollama:nomic-embed-text").stamp == Embedding("ollama:nomic-embed-text", "1", DIMENSIONS)
        assert [asked.document["model"] for asked in server.asked] == ["nomic-embed-text"]


def test_texts_without_words_are_not_sent_and_get_zeros() -> None:
    """The API refuses empty texts, and a zero vector finds nothing."""
    with ModelServer() as server:
        embedder = opened(server)
        asked_before = len(server.asked)
        assert embedder.embed([]).shape == (0, DIMENSIONS)
        assert not embedder.embed(tokenized("", " \n ")).any()
        assert len(server.asked) == asked_before
        found = embedder.embed(tokenized("", "a b", " ", "c d"))
        assert server.asked[-1].document["input"] == ["a b", "c d"]
    assert [row.any() for row in found] == [False, True, False, True]


def test_many_texts_go_out_in_batches_by_number_and_by_length() -> None:
    """Servers limit both."""
    short = [f"text {number}" for number in range(2 * BATCH_TEXTS + 3)]
    long = ["word " * 5_000] * 12
    with ModelServer() as server:
        embedder = opened(server)
        del server.asked[:]
        np.testing.assert_allclose(embedder.embed(tokenized(*short)), [unit(text) for text in short], atol=1e-6)
        assert sorted(len(asked.document["input"]) for asked in server.asked) == [3, BATCH_TEXTS, BATCH_TEXTS]
        del server.asked[:]
        embedder.embed(tokenized(*long))
        assert sorted(len(asked.document["input"]) for asked in server.asked) == [2, 10]


def test_a_request_holds_as_many_texts_as_the_setting_says() -> None:
    """A document's batch_size is what runs; the contract's default is ours."""
    assert (ModelSettings().batch_size, BATCH_TEXTS) == (32, 32)
    with ModelServer() as server:
        embedder = opened(server, settings=ModelSettings(retries=0, timeout_s=5.0, batch_size=8))
        del server.asked[:]
        embedder.embed(tokenized(*[f"text {number}" for number in range(20)]))
        assert sorted(len(asked.document["input"]) for asked in server.asked) == [4, 8, 8]


def test_a_very_long_text_is_embedded_by_its_beginning() -> None:
    """It would be refused, and with it the whole batch."""
    with ModelServer() as server:
        embedder = opened(server)
        embedder.embed(tokenized("word " * 20_000))
        (sent,) = server.asked[-1].document["input"]
    assert TOKENS.count_tokens(sent) == pytest.approx(MAX_TOKENS, abs=1)


def test_the_same_query_is_asked_once_while_it_is_fresh() -> None:
    """Contract: 5,000 entries, 30 minutes. What is cached is not text."""
    with ModelServer() as server:
        embedder = opened(server)
        del server.asked[:]
        first = embedder.embed(tokenized("what is billing?"))
        np.testing.assert_array_equal(embedder.embed(tokenized("what is billing?")), first)
        embedder.embed(tokenized("another"))
        assert [asked.document["input"] for asked in server.asked] == [["what is billing?"], ["another"]]
        forgetful = RemoteEmbedder(embedder._name, embedder._connect, DIMENSIONS, Bounds(0, 1 << 20, 1.0))
        for _ in range(2):
            forgetful.embed(tokenized("another"))
        assert len(server.asked) == 4
    assert "billing" not in repr(embedder._cache._entries)


def test_a_vector_is_its_own_and_not_the_caches() -> None:
    """A caller that changes what it was given must not change what others get."""
    with ModelServer() as server:
        embedder = opened(server)
        embedder.embed(tokenized("a"))[0] = 9
        np.testing.assert_allclose(embedder.embed(tokenized("a"))[0], unit("a"), atol=1e-6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no vector for each of 2 texts"),
        ([{"index": 0, "embedding": [1.0] * DIMENSIONS}], "no vector for each of 2 texts"),
        ([{"index": 0, "embedding": [1.0] * DIMENSIONS}] * 2, "no vector for each of 2 texts"),
        ([{"index": [], "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}], "no vector for each of 2 texts"),
        ([{"embedding": "AACAPw=="}, {"embedding": "AACAPw=="}], "no vector for each of 2 texts"),
        ([{"embedding": [True] * DIMENSIONS}, {"embedding": [1.0]}], "no vector for each of 2 texts"),
        ("soon", "no vector for each of 2 texts"),
        ([{"embedding": [1.0] * 3}, {"embedding": [1.0] * 3}], "has 3 dimensions, expected 16; check the model's name"),
        ([{"embedding": [math.inf] * DIMENSIONS}, {"embedding": [1.0] * DIMENSIONS}], "holds what is not a number"),
        ([{"embedding": [10**400] * DIMENSIONS}, {"embedding": [1.0] * DIMENSIONS}], "holds what is not a number"),
        ([{"embedding": [1e39] * DIMENSIONS}, {"embedding": [1.0] * DIMENSIONS}], "holds what is not a number"),
    ],
)
def test_an_answer_of_another_shape_is_an_error(data: Any, message: str) -> None:
    """Vectors that are not of the text, or not of the model, would poison the store."""
    with ModelServer() as server:
        embedder = opened(server)
        server.rule = lambda asked: Reply(document={"data": data})
        with pytest.raises(ProviderError, match=message):
            embedder.embed(tokenized("a", "b"))


@pytest.mark.parametrize(
    "reply", [*LASTING.values(), *(partial(good, text) for text in USELESS.values())], ids=[*LASTING, *USELESS]
)
def test_faults_are_provider_errors(reply: Callable[[], Reply]) -> None:
    """The one error that callers degrade on."""
    with ModelServer() as server:
        embedder = opened(server, settings=ModelSettings(retries=0, timeout_s=0.2, total_timeout_s=0.4))
        server.rule = lambda asked: reply()
        with pytest.raises(ProviderError):
            embedder.embed(tokenized("a", "b"))


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_fault_that_passes_is_not_noticed(fault: Callable[[], Reply]) -> None:
    with ModelServer() as server:
        embedder = opened(server, settings=ModelSettings(retries=1, timeout_s=5.0))
        faults = [fault()]
        server.rule = lambda asked: faults.pop() if faults else embeddings(asked)
        np.testing.assert_allclose(embedder.embed(tokenized("walk a dog", "b"))[0], unit("walk a dog"), atol=1e-6)
        assert faults == []


def test_without_a_key_it_is_refused_with_the_remedy() -> None:
    """Contract: honoured when a key exists, else refused."""
    with pytest.raises(ProviderError, match="OPENAI_API_KEY is not set; set it to your key"):
        open_embedder("openai:text-embedding-3-small", environ={})


def test_anthropic_has_no_embedder() -> None:
    """The message names those that there are."""
    with pytest.raises(UsageError, match=r"unknown embedder 'anthropic:x'; use one of: .*, openai:<model>, "):
        open_embedder("anthropic:x", environ={})


@pytest.mark.parametrize(
    ("written", "name", "remote"),
    [
        ("static", "static", False),
        ("text-embedding-3-small", "openai:text-embedding-3-small", True),
        ("openai/m", "openai:m", True),
        ("mine", None, False),
    ],
)
def test_an_embedder_has_one_name_however_it_is_written(written: str, name: str | None, remote: bool) -> None:
    """The stamp of a store must be found again."""
    assert embedder_name(written) == name
    assert is_remote(written) is remote


def test_tokens_and_calls_of_embedding_count_for_the_budget() -> None:
    """Vectors cost too."""
    with ModelServer(rule=embeddings) as server:
        embedder = opened(server, settings=ModelSettings(max_calls=2))
        embedder.embed(tokenized("a b c"))
        assert embedder._server().budget.tokens == 4
        with pytest.raises(ProviderError, match="this run has spent 2 calls"):
            embedder.embed(tokenized("d"))


def test_a_key_given_later_is_found() -> None:
    """A store that was opened without a key embeds as soon as there is one."""
    stored = Embedding("openai:m", "1", DIMENSIONS)
    with ModelServer() as server:
        environ: dict[str, str] = {}
        embedder = open_embedder("openai:m", stored=stored, environ=environ)
        with pytest.raises(ProviderError, match="OPENAI_API_KEY is not set"):
            embedder.embed(tokenized("a"))
        environ.update(server.environ)
        assert embedder.embed(tokenized("a")).any()
