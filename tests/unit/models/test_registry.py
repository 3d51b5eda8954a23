"""Embedders are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stubs import tiny_minilm

import commonplace
from commonplace.errors import ModelError, UsageError
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.registry import EMBEDDERS, open_embedder


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


def test_one_that_cannot_be_had_leaves_no_empty_store_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again in another way, and must not find a store then that nobody wanted."""

    def missing() -> MinilmEmbedder:
        raise ModelError("the model is missing", remedy="reinstall Commonplace")

    monkeypatch.setattr(MinilmEmbedder, "load", missing)
    for name, error in (("minilm", ModelError), ("statc", UsageError)):
        with pytest.raises(error):
            commonplace.open(tmp_path / "project" / ".commonplace", embedder=name)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_there_is_opened_by_the_embedder_that_made_it(tmp_path: Path) -> None:
    """An empty one has none yet, and takes the one that is asked for."""
    with commonplace.open(tmp_path) as book:
        assert book.index_status().embedder == "none yet"
    with commonplace.open(tmp_path, embedder="hashing") as book:
        book.remember("short answers are better")
    with commonplace.open(tmp_path) as book:
        assert book.index_status().embedder == str(open_embedder("hashing").stamp)
