"""Each embedder has the scale and the weight that were fitted for its vectors; without a vector, the default ones."""

from __future__ import annotations

import pytest

from commonplace.errors import MissingExtraError
from commonplace.models.absent import AbsentEmbedder
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.search.candidates import DENSE, LATE, LEXICAL
from commonplace.search.constants import WEIGHTS, weights_of
from commonplace.search.request import prepare
from commonplace.types import Embedding


def test_a_transformers_vectors_count_more_than_words() -> None:
    assert weights_of("minilm") == {**WEIGHTS, DENSE: 2.0}
    assert weights_of("static")[DENSE] == weights_of("static")[LEXICAL] == 1.0
    assert weights_of("minilm")[LATE] == WEIGHTS[LATE]


@pytest.mark.parametrize("name", ["", "hashing", "openai:text-embedding-3-small"])
def test_an_embedder_that_nothing_was_fitted_for_has_the_defaults(name: str) -> None:
    assert weights_of(name) == WEIGHTS


def test_a_query_tells_what_made_its_vector() -> None:
    """By it the scale is chosen; where an embedder failed, none did."""
    tokens = StaticEmbedder.load()
    assert prepare("one thing", tokens.tokenize, HashingEmbedder()).embedder == "hashing"
    absent = AbsentEmbedder(Embedding("minilm", "1", 384), MissingExtraError("it is missing", remedy="install it"))
    prepared = prepare("one thing", tokens.tokenize, absent)
    assert (prepared.embedder, prepared.fault) == ("", "it is missing; install it")
