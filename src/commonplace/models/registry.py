"""Open an embedder by name, and choose one for each kind of owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import CommonplaceError, ModelError, UsageError
from commonplace.models.client import Budget, JsonClient
from commonplace.models.contract import Embedder, TokenizedText
from commonplace.models.minilm import MinilmEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.settings.schema import ModelSettings
from commonplace.types import EMBEDDED_KIND_OF, EmbeddedKind, Embedding

if TYPE_CHECKING:
    from commonplace.models.providers import Named


def _hashing() -> Embedder:
    from commonplace.models.hashing import HashingEmbedder

    return HashingEmbedder()


def _minilm() -> Embedder:
    return MinilmEmbedder.load()


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"static": StaticEmbedder.load, "minilm": _minilm, "hashing": _hashing}
REMOTE: Final = ("openai", "ollama")
"""Providers of embedders; a name is the provider, a colon and the model."""


def embedder_name(name: str) -> str | None:
    """Return the name that an embedder's stamp has, of the ways in which it may be written; None if there is none."""
    if name in EMBEDDERS:
        return name
    found = _remote(name)
    return None if found is None else str(found)


def is_remote(name: str) -> bool:
    """Return whether an embedder of that name is behind an API, so that texts leave this machine."""
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
        budget: what several models may spend together; None is one of its own, as the settings say.

    Raises:
        UsageError: there is none.
        ModelError: its data are missing or damaged.
        ProviderError: a remote one needs a key and there is none, or was asked for its dimensions in vain.
    """
    if name in EMBEDDERS:
        try:
            return EMBEDDERS[name]()
        except ModelError as error:
            if stored is None or stored.name != name:
                raise
            return AbsentEmbedder(stored, error)
    found = _remote(name)
    if found is None:
        known = [*EMBEDDERS, *(f"{provider}:<model>" for provider in REMOTE)]
        raise UsageError(f"unknown embedder {name!r}", remedy=f"use one of: {', '.join(known)}")
    from commonplace.models.remote import CACHED_QUERIES, RemoteEmbedder

    chosen = settings or ModelSettings()

    def connect() -> JsonClient:
        from commonplace.models.providers import access
        from commonplace.models.remote import MAX_BYTES

        where = access(found.provider, settings=chosen, environ=environ)
        return JsonClient(where, chosen, budget, max_bytes=MAX_BYTES)

    cache = replace(CACHED_QUERIES, max_entries=chosen.embedding_cache, ttl_s=chosen.embedding_cache_minutes * 60)
    if stored is not None and stored.name == str(found):
        return RemoteEmbedder(found, connect, stored.dimensions, cache, chosen.batch_size)
    client = connect()
    return RemoteEmbedder(found, lambda: client, 0, cache, chosen.batch_size)


def _remote(name: str) -> Named | None:
    from commonplace.models.providers import named

    # A bare name is a misspelt one of ours, but for OpenAI's, which all begin alike.
    if not name.startswith((*(f"{provider}{mark}" for provider in REMOTE for mark in ":/"), "text-embedding-")):
        return None
    return named(name)


class MixedEmbedder:
    """Several embedders, chosen by the kind of what is embedded; several kinds may share one. Safe for threads.

    Attributes:
        stamp: that of the memories' embedder, with those of the kinds that have another.
    """

    def __init__(self, by_kind: Mapping[EmbeddedKind, Embedder]) -> None:
        self._by_kind = dict(by_kind)
        self.stamp = Embedding.by_kind({kind: each.stamp for kind, each in by_kind.items()})

    def of(self, kind: str) -> Embedder:
        """Return the embedder of a kind of owner."""
        return self._by_kind[EMBEDDED_KIND_OF[kind]]

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Refuse texts of an unknown kind, whose vectors would have no common length; choose with `for_kind`."""
        raise TypeError(f"{len(texts)} texts are to be embedded and their kind is not named")


def of_kinds(by_kind: Mapping[EmbeddedKind, Embedder]) -> Embedder:
    """Return one embedder of several kinds of things: the only one, where all have it."""
    is_one = len({each.stamp for each in by_kind.values()}) == 1
    return by_kind["memories"] if is_one else MixedEmbedder(by_kind)


def for_kind(embedder: Embedder, kind: str) -> Embedder:
    """Return what embeds a kind of owner: the embedder itself where it embeds everything."""
    return embedder.of(kind) if isinstance(embedder, MixedEmbedder) else embedder


def is_broken(embedder: Embedder) -> bool:
    """Return whether an embedder of ours cannot be loaded: texts are stored, and embedded when it is mended."""
    error = getattr(embedder, "error", None)
    return isinstance(error, ModelError)


def is_slow(embedder: Embedder) -> bool:
    """Return whether a text takes it milliseconds, so that many texts are stored before they are embedded."""
    return getattr(embedder, "is_slow", False)


def by_space(embedder: Embedder) -> list[Embedder]:
    """Return the different embedders in the order of their stamp's `spaces`."""
    kinds = {embedder.stamp.of(kind): kind for kind in EMBEDDED_KIND_OF}
    return [for_kind(embedder, kinds[space]) for space in embedder.stamp.spaces]


@dataclass(frozen=True, slots=True, eq=False)
class AbsentEmbedder:
    """Lets a store be read, searched by words and mended where the embedder that made its vectors is missing.

    Attributes:
        stamp: of the store's vectors.
        error: why nothing can make more of them, and what to do about it.
    """

    stamp: Embedding
    error: CommonplaceError

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return no rows of no texts; raise what opening the embedder raised where there are texts."""
        if texts:
            raise type(self.error)(self.error.args[0], remedy=self.error.remedy) from self.error
        return np.zeros((0, self.stamp.dimensions), np.float32)
