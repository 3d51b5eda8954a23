"""Each embedder has the scale and the weight that were fitted for its vectors; without a vector, the default ones."""

from __future__ import annotations

import numpy as np
import pytest

from commonplace.errors import MissingExtraError
from commonplace.models.absent import AbsentEmbedder
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.calibration import ANCHOR, BY_EMBEDDER, CALIBRATION, calibration_of, log_odds, scale
from commonplace.search.request import prepare
from commonplace.types import Embedding


@pytest.mark.parametrize("name", ["", "hashing", "openai:text-embedding-3-small"])
def test_an_embedder_that_nothing_was_fitted_for_has_the_defaults(name: str) -> None:
    assert calibration_of(name) is CALIBRATION


@pytest.mark.parametrize("name", BY_EMBEDDER)
def test_every_scale_has_its_anchor_where_hits_are_cut(name: str) -> None:
    """0.70 means the same whoever made the vectors; nothing at all is far below any cut, everything far above.

    In stores of a few passages and of a million.
    """
    calibration = calibration_of(name)
    assert scale(calibration, np.array([calibration.anchor], np.float32))[0] == pytest.approx(ANCHOR)
    signals = np.array([0.0, 1.0], np.float32)
    for passages in (3, 1_000_000):
        nothing, everything = scale(calibration, log_odds(calibration, signals, signals, signals, passages))
        assert nothing < 0.25
        assert everything > 0.95


def test_a_query_tells_what_made_its_vector() -> None:
    """By it the scale is chosen; where an embedder failed, none did."""
    tokens = StaticEmbedder.load()
    assert prepare("one thing", tokens.tokenize, HashingEmbedder()).embedder == "hashing"
    absent = AbsentEmbedder(Embedding("minilm", "1", 384), MissingExtraError("it is missing", remedy="install it"))
    prepared = prepare("one thing", tokens.tokenize, absent)
    assert (prepared.embedder, prepared.fault) == ("", "it is missing; install it")
