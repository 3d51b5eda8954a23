"""An embedder for each kind of thing that a store holds: memories, knowledge, the graph's texts, artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commonplace.errors import ModelError
from commonplace.types import EMBEDDED_KIND_OF, EmbeddedKind, Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commonplace.models.contract import Embedder, TokenizedText


class MixedEmbedder:
    """Several embedders under one stamp, chosen by the kind of what is embedded. Safe for threads where they are."""

    def __init__(self, by_kind: Mapping[EmbeddedKind, Embedder]) -> None:
        """Take an embedder for each kind; several kinds may share one."""
        self._by_kind = dict(by_kind)
        self._stamp = Embedding.by_kind({kind: each.stamp for kind, each in by_kind.items()})

    @property
    def stamp(self) -> Embedding:
        """That of the memories' embedder, with those of the kinds that have another."""
        return self._stamp

    def of(self, kind: str) -> Embedder:
        """Return the embedder of a kind of owner."""
        return self._by_kind[EMBEDDED_KIND_OF[kind]]

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Refuse texts of an unknown kind: their vectors would have no common length.

        Raises:
            TypeError: always; choose an embedder with `for_kind`.
        """
        raise TypeError(f"{len(texts)} texts are to be embedded and their kind is not named")


def for_kind(embedder: Embedder, kind: str) -> Embedder:
    """Return what embeds a kind of owner: the embedder itself where it embeds everything."""
    return embedder.of(kind) if isinstance(embedder, MixedEmbedder) else embedder


def is_broken(embedder: Embedder) -> bool:
    """Tell whether an embedder of ours cannot be loaded: texts are stored, and embedded when it is mended."""
    error = getattr(embedder, "error", None)
    return isinstance(error, ModelError)


def is_slow(embedder: Embedder) -> bool:
    """Tell whether a text takes it milliseconds, so that many texts are stored before they are embedded."""
    return getattr(embedder, "is_slow", False)


def by_space(embedder: Embedder) -> list[Embedder]:
    """Return the different embedders in the order of their stamp's `spaces`."""
    kinds = {embedder.stamp.of(kind): kind for kind in EMBEDDED_KIND_OF}
    return [for_kind(embedder, kinds[space]) for space in embedder.stamp.spaces]
