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
    from commonplace.models.providers import ModelName


def _hashing() -> Embedder:
    from commonplace.models.hashing import HashingEmbedder

    return HashingEmbedder()


def _minilm() -> Embedder:
    return MinilmEmbedder.load()


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"static": StaticEmbedder.load, "minilm": _minilm, "hashing": _hashing}
REMOTE: Final = ("openai", "ollama")
"""Providers of remote embedders, whose names are `provider:model`."""


def embedder_name(name: str) -> str | None:
    """Return an embedder's name as its stamp has it, from any accepted spelling; None if there is no such embedder."""
    if name in EMBEDDERS:
        return name
    remote = _remote(name)
    return None if remote is None else str(remote)


def is_remote(name: str) -> bool:
    """Return whether a name is that of an embedder behind an API, to which texts are sent."""
    return name not in EMBEDDERS and _remote(name) is not None


def open_embedder(
    name: str,
    *,
    stored: Embedding | None = None,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
    budget: Budget | None = None,
) -> Embedder:
    """Return the embedder of a name: a local one, `openai:<model>` or `ollama:<model>`.

    Args:
        stored: the stamp of the store's vectors. With it, a remote embedder opens without checking its address and
            key, and a local one with missing or damaged data fails only when it embeds, so that the store can still
            be read, searched by words and repaired.
        budget: shared by several models; None creates one from the settings.

    Raises:
        UsageError: there is no embedder of this name.
        ModelError: the embedder's data are missing or damaged.
        ProviderError: a remote embedder lacks its key, or did not answer with its dimensions.
    """
    if name in EMBEDDERS:
        try:
            return EMBEDDERS[name]()
        except ModelError as error:
            if stored is None or stored.name != name:
                raise
            return AbsentEmbedder(stored, error)
    remote = _remote(name)
    if remote is None:
        names = [*EMBEDDERS, *(f"{provider}:<model>" for provider in REMOTE)]
        raise UsageError(f"unknown embedder {name!r}", remedy=f"use one of: {', '.join(names)}")
    from commonplace.models.remote import CACHED_QUERIES, RemoteEmbedder

    limits = settings or ModelSettings()

    def connect() -> JsonClient:
        from commonplace.models.providers import access
        from commonplace.models.remote import MAX_BYTES

        server = access(remote.provider, settings=limits, environ=environ)
        return JsonClient(server, limits, budget, max_bytes=MAX_BYTES)

    cache = replace(CACHED_QUERIES, max_entries=limits.embedding_cache, ttl_s=limits.embedding_cache_minutes * 60)
    if stored is not None and stored.name == str(remote):
        return RemoteEmbedder(remote, connect, stored.dimensions, cache, limits.batch_size)
    client = connect()
    return RemoteEmbedder(remote, lambda: client, 0, cache, limits.batch_size)


def _remote(name: str) -> ModelName | None:
    from commonplace.models.providers import parse_model_name

    # A bare name is a misspelt local one, except OpenAI's, which all begin alike.
    if not name.startswith((*(f"{provider}{mark}" for provider in REMOTE for mark in ":/"), "text-embedding-")):
        return None
    return parse_model_name(name)


class MixedEmbedder:
    """Several embedders, one per kind of owner; kinds may share one. Safe for threads.

    Attributes:
        stamp: that of the memories' embedder, with the stamps of kinds that have another.
    """

    def __init__(self, by_kind: Mapping[EmbeddedKind, Embedder]) -> None:
        self._by_kind = dict(by_kind)
        self.stamp = Embedding.by_kind({kind: embedder.stamp for kind, embedder in by_kind.items()})

    def of(self, kind: str) -> Embedder:
        """Return the embedder of a kind of owner."""
        return self._by_kind[EMBEDDED_KIND_OF[kind]]

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Raise TypeError: vectors of texts of unknown kind have no common length; choose with `for_kind`."""
        raise TypeError(f"{len(texts)} texts are to be embedded and their kind is not named")


def of_kinds(by_kind: Mapping[EmbeddedKind, Embedder]) -> Embedder:
    """Return one embedder for several kinds; the embedder itself if all kinds share it."""
    is_one = len({embedder.stamp for embedder in by_kind.values()}) == 1
    return by_kind["memories"] if is_one else MixedEmbedder(by_kind)


def for_kind(embedder: Embedder, kind: str) -> Embedder:
    """Return the embedder of a kind of owner; the embedder itself if it embeds all kinds."""
    return embedder.of(kind) if isinstance(embedder, MixedEmbedder) else embedder


def is_broken(embedder: Embedder) -> bool:
    """Return whether a local embedder cannot be loaded: texts are stored now, and embedded once it is repaired."""
    error = getattr(embedder, "error", None)
    return isinstance(error, ModelError)


def is_slow(embedder: Embedder) -> bool:
    """Return whether the embedder takes milliseconds per text: many texts are then stored before they are embedded."""
    return getattr(embedder, "is_slow", False)


def by_space(embedder: Embedder) -> list[Embedder]:
    """Return the distinct embedders in the order of the stamp's `spaces`."""
    kinds = {embedder.stamp.of(kind): kind for kind in EMBEDDED_KIND_OF}
    return [for_kind(embedder, kinds[space]) for space in embedder.stamp.spaces]


@dataclass(frozen=True, slots=True, eq=False)
class AbsentEmbedder:
    """Stands in for a missing embedder, so that its store can be read, searched by words and repaired.

    Attributes:
        stamp: of the store's vectors.
        error: why no more vectors can be made, and the remedy.
    """

    stamp: Embedding
    error: CommonplaceError

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return no rows for no texts; otherwise raise the error of opening the embedder."""
        if texts:
            raise type(self.error)(self.error.args[0], remedy=self.error.remedy) from self.error
        return np.zeros((0, self.stamp.dimensions), np.float32)
