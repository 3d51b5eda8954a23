"""Each embedder has the scale and the weight that were fitted for its vectors; without a vector, the default ones."""

from __future__ import annotations

import pytest

from commonplace.errors import MissingExtraError
from commonplace.models.absent import AbsentEmbedder
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.search.constants import Meaning, meaning_of
from commonplace.search.request import prepare
from commonplace.types import Embedding


def test_a_transformers_vectors_count_more_than_a_tables() -> None:
    assert meaning_of("minilm").weight > meaning_of("static").weight == 1.0


@pytest.mark.parametrize("name", ["", "hashing", "openai:text-embedding-3-small"])
def test_an_embedder_that_nothing_was_fitted_for_has_the_defaults(name: str) -> None:
    assert meaning_of(name) == Meaning()


def test_a_query_tells_what_made_its_vector() -> None:
    """By it the scale is chosen; where an embedder failed, none did."""
    tokens = StaticEmbedder.load()
    assert prepare("one thing", tokens.tokenize, HashingEmbedder(), [0]).embedder == "hashing"
    absent = AbsentEmbedder(Embedding("minilm", "1", 384), MissingExtraError("it is missing", remedy="install it"))
    prepared = prepare("one thing", tokens.tokenize, absent, [0])
    assert (prepared.embedder, prepared.fault) == ("", "it is missing; install it")
