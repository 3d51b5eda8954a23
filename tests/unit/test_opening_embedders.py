"""Embedders are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stubs import tiny_minilm

from commonplace.errors import UsageError
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.opening import EMBEDDERS, open_embedder


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_embedder_is_stamped_with_the_name_it_is_opened_by(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store remembers the stamp's name and opens its embedder by it."""
    monkeypatch.setattr(MinilmEmbedder, "load", lambda: MinilmEmbedder(tiny_minilm.write(tmp_path)))
    assert open_embedder(name).stamp.name == name


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    """The remedy must be in the message."""
    with pytest.raises(UsageError, match="unknown embedder 'statc'; use one of: static, minilm, hashing"):
        open_embedder("statc")
