"""The file of vectors that benchmarks may keep: the same vectors come out of it, and none is computed twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.vectors import TEXTS_AT_ONCE, CachedEmbedder, vectors_cache

from commonplace.errors import UsageError
from commonplace.models.contract import TokenizedText
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.registry import open_embedder
from commonplace.types import Embedding


class Counting:
    """An embedder that notes what it was asked."""

    def __init__(self, version: str = "1") -> None:
        self.asked: list[str] = []
        self._inside = HashingEmbedder()
        self.stamp = Embedding("counting", version, self._inside.stamp.dimensions)

    def embed(self, texts: Sequence[TokenizedText]) -> np.ndarray:
        self.asked += [text.text for text in texts]
        return self._inside.embed(texts)


def texts(count: int) -> list[TokenizedText]:
    return [TokenizedText(f"text {number}", np.array([number, 7], np.uint16)) for number in range(count)]


def test_what_was_computed_once_comes_from_the_file(tmp_path: Path) -> None:
    count = 2 * TEXTS_AT_ONCE + 3
    first, second = Counting(), Counting()
    expected = first.embed(texts(count))
    made = CachedEmbedder(first, tmp_path / "cache").embed(texts(count))
    held = CachedEmbedder(second, tmp_path / "cache").embed([*texts(count + 1), texts(1)[0]])
    assert made.tobytes() == expected.tobytes()
    assert held[:count].tobytes() == expected.tobytes()
    assert held[-1].tobytes() == expected[0].tobytes()
    assert second.asked == [f"text {count}"]


def test_no_texts_give_no_rows(tmp_path: Path) -> None:
    cached = CachedEmbedder(Counting(), tmp_path / "cache")
    assert cached.embed([]).shape == (0, cached.stamp.dimensions)


def test_vectors_of_another_version_are_not_taken(tmp_path: Path) -> None:
    """They would be compared with what they are not comparable with."""
    CachedEmbedder(Counting(), tmp_path / "cache").embed(texts(1))
    newer = Counting("2")
    CachedEmbedder(newer, tmp_path / "cache").embed(texts(1))
    assert newer.asked == ["text 0"]


def test_the_transformer_is_cached_wherever_it_is_opened_by_name(tmp_path: Path) -> None:
    with vectors_cache(tmp_path / "cache"):
        cached = open_embedder("minilm")
        assert isinstance(cached, CachedEmbedder)
        assert open_embedder("minilm") is cached
        assert cached.stamp.name == "minilm"
    assert isinstance(open_embedder("minilm"), MinilmEmbedder)
    with vectors_cache(None):
        assert isinstance(open_embedder("minilm"), MinilmEmbedder)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_text("These are no vectors. " * 100)
    with pytest.raises(UsageError, match="cannot be used: file is not a database; name another directory"):
        CachedEmbedder(Counting(), tmp_path)
    with pytest.raises(UsageError, match=r"cannot be used: .*File exists"):
        CachedEmbedder(Counting(), tmp_path / "vectors.db")
