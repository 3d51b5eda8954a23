"""Find an embedder by its name; knows which there are, not how they work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commonplace.errors import ModelError, UsageError
from commonplace.models.contract import Embedder
from commonplace.settings.model import ModelSettings

if TYPE_CHECKING:
    from commonplace.models.client import JsonClient
    from commonplace.models.limits import Budget
    from commonplace.models.providers import Named
    from commonplace.types import Embedding


def _static() -> Embedder:
    from commonplace.models.static import StaticEmbedder

    return StaticEmbedder.load()


def _hashing() -> Embedder:
    from commonplace.models.hashing import HashingEmbedder

    return HashingEmbedder()


def _minilm() -> Embedder:
    from commonplace.models.minilm import MinilmEmbedder

    return MinilmEmbedder.load()


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"static": _static, "minilm": _minilm, "hashing": _hashing}
REMOTE: Final = ("openai", "ollama", "local")
"""Providers of embedders; a name is the provider, a colon and the model."""


def embedder_name(name: str) -> str | None:
    """Return the name that an embedder's stamp has, of the ways in which it may be written; None if there is none."""
    if name in EMBEDDERS:
        return name
    found = _remote(name)
    return None if found is None else str(found)


def is_remote(name: str) -> bool:
    """Tell whether an embedder of that name is behind an API, so that texts leave this machine."""
    return name not in EMBEDDERS and _remote(name) is not None


def open_embedder(
    name: str,
    *,
    stored: Embedding | None = None,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
    budget: Budget | None = None,
) -> Embedder:
    """Return the embedder of that name: one of ours, `openai:<model>` or `ollama:<model>`.

    Args:
        stored: the stamp of the store whose vectors it made. With it a remote embedder is opened without a look at
            address and key, and one whose data are missing or damaged fails only when it embeds, so that a store can
            be read, searched by words and mended without them.
        settings: None is the defaults.
        environ: None is the process's own.
        budget: what several models may spend together; None is one of its own, as the settings say.

    Raises:
        UsageError: there is none.
        ModelError: its data are missing or damaged.
        ProviderError: a remote one needs a key and there is none, or was asked for its dimensions in vain.
    """
    if name in EMBEDDERS:
        return _ours(name, stored)
    found = _remote(name)
    if found is None:
        known = [*EMBEDDERS, *(f"{provider}:<model>" for provider in REMOTE)]
        raise UsageError(f"unknown embedder {name!r}", remedy=f"use one of: {', '.join(known)}")
    from commonplace.models.embedding import CACHED_QUERIES, RemoteEmbedder

    def connect() -> JsonClient:
        return _client(found, settings or ModelSettings(), environ, budget)

    chosen = settings or ModelSettings()
    cache = replace(CACHED_QUERIES, most=chosen.embedding_cache, ttl_s=chosen.embedding_cache_minutes * 60)
    if stored is not None and stored.name == str(found):
        return RemoteEmbedder(found, connect, stored.dimensions, cache, chosen.batch_size)
    client = connect()
    return RemoteEmbedder(found, lambda: client, 0, cache, chosen.batch_size)


def _ours(name: str, stored: Embedding | None) -> Embedder:
    try:
        return EMBEDDERS[name]()
    except ModelError as error:
        if stored is None or stored.name != name:
            raise
        from commonplace.models.absent import AbsentEmbedder

        return AbsentEmbedder(stored, error)


def _remote(name: str) -> Named | None:
    from commonplace.models.providers import named

    # A bare name is a misspelt one of ours, but for OpenAI's, which all begin alike.
    if not name.startswith((*(f"{provider}{mark}" for provider in REMOTE for mark in ":/"), "text-embedding-")):
        return None
    found = named(name)
    return replace(found, provider="ollama") if found.provider == "local" else found


def _client(
    name: Named, settings: ModelSettings, environ: Mapping[str, str] | None, budget: Budget | None
) -> JsonClient:
    from commonplace.models.client import JsonClient
    from commonplace.models.embedding import MAX_BYTES
    from commonplace.models.limits import Budget, limits_of
    from commonplace.models.providers import Place, access

    where = access(name.provider, Place(settings=settings, environ=environ))
    limits = replace(limits_of(settings), max_bytes=MAX_BYTES)
    return JsonClient(where, limits, budget or Budget(settings.max_calls, settings.max_tokens))
