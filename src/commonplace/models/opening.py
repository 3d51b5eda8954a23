"""Find an embedder by its name; knows which there are, not how they work."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from commonplace.errors import UsageError
from commonplace.models.contract import Embedder


def _static() -> Embedder:
    from commonplace.models.static import StaticEmbedder

    return StaticEmbedder.load()


def _hashing() -> Embedder:
    from commonplace.models.hashing import HashingEmbedder

    return HashingEmbedder()


EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {"static": _static, "hashing": _hashing}


def open_embedder(name: str) -> Embedder:
    """Return the embedder of that name.

    Raises:
        UsageError: there is none.
        ModelError: its data are missing or damaged.
    """
    try:
        opener = EMBEDDERS[name]
    except KeyError:
        raise UsageError(f"unknown embedder {name!r}", remedy=f"use one of: {', '.join(EMBEDDERS)}") from None
    return opener()
