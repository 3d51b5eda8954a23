"""Embedders are found by name."""

from __future__ import annotations

import pytest

from commonplace.errors import UsageError
from commonplace.models.opening import EMBEDDERS, open_embedder


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_embedder_is_stamped_with_the_name_it_is_opened_by(name: str) -> None:
    """A store remembers the stamp's name and opens its embedder by it."""
    assert open_embedder(name).stamp.name == name


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    """The remedy must be in the message."""
    with pytest.raises(UsageError, match="unknown embedder 'statc'; use one of: static, hashing"):
        open_embedder("statc")
