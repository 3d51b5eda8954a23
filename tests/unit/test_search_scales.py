"""Each embedder has the scale and the weight that were fitted for its vectors; without a vector, the default ones."""

from __future__ import annotations

from commonplace.errors import MissingExtraError
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.registry import AbsentEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.search.request import prepare
from commonplace.types import Embedding


def test_a_query_tells_what_made_its_vector() -> None:
    """By it the scale is chosen; where an embedder failed, none did."""
    tokens = StaticEmbedder.load()
    assert prepare("one thing", tokens.tokenize, HashingEmbedder(), [0]).embedder == "hashing"
    absent = AbsentEmbedder(Embedding("minilm", "1", 384), MissingExtraError("it is missing", remedy="install it"))
    prepared = prepare("one thing", tokens.tokenize, absent, [0])
    assert (prepared.embedder, prepared.fault) == ("", "it is missing; install it")
