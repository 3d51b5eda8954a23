"""Embedders that are given to a knowledge service: the contract's own kind and ours, brought to one form.

It knows texts and vectors, no store. What a foreign object does wrong arrives as a `ProviderError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from commonplace.errors import CommonplaceError, ProviderError, UsageError
from commonplace.redaction import redact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commonplace.models import contract
    from commonplace.types import Embedding

AT_ONCE: Final = 128


class Embedder(Protocol):
    """The contract's embedder. It may have a `name` or a `model` that tells its vectors from others'."""

    def embed(self, *texts: str) -> Sequence[Sequence[float]]:
        """Return one vector for each text."""
        ...


class Vectors:
    """Vectors of one embedder that is not the store's. Safe for threads where the embedder is.

    Attributes:
        name: of the embedder; vectors of different names are never compared.
        dimensions: of the vectors that it returned last, 0 before the first.
    """

    def __init__(self, name: str, embed: Callable[[Sequence[str]], Sequence[Sequence[float]]]) -> None:
        self.name = name
        self.dimensions = 0
        self._embed = embed

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), d).

        Raises:
            ProviderError: the embedder failed, or returned something other than one vector for each text.
        """
        import numpy as np

        found: list[Sequence[float]] = []
        for begin in range(0, len(texts), AT_ONCE):
            part = texts[begin : begin + AT_ONCE]
            found += self._asked(part)
        if len({len(vector) for vector in found}) > 1:
            raise ProviderError(f"the embedder {self.name} returned vectors of different lengths")
        try:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
                vectors = np.array(found, dtype=np.float32) if texts else np.zeros((0, 0), np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise ProviderError(f"the embedder {self.name} returned what is no vector: {error}") from error
        if vectors.ndim != 2:
            raise ProviderError(f"the embedder {self.name} returned what is no vector, but lists of lists")
        if texts and (not vectors.shape[1] or not np.isfinite(vectors).all()):
            raise ProviderError(f"the embedder {self.name} returned a vector that is empty or holds what is no number")
        if texts:
            self.dimensions = vectors.shape[1]
        return vectors

    def _asked(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            found = list(self._embed(texts))
            sizes = [len(vector) for vector in found]
        except CommonplaceError:
            raise
        except Exception as error:  # it is somebody else's, and may raise anything
            told = redact(f"{type(error).__name__}: {error}").text
            raise ProviderError(f"the embedder {self.name} failed: {told}") from error
        if len(sizes) != len(texts):
            raise ProviderError(f"the embedder {self.name} returned {len(sizes)} vectors for {len(texts)} texts")
        return found


class NoVectors:
    """Stands in a store's embedder's place where nothing is to be embedded: every text has the vector zero."""

    def __init__(self, stamp: Embedding) -> None:
        self._stamp = stamp

    @property
    def stamp(self) -> Embedding:
        """That of the store's vectors."""
        return self._stamp

    def embed(self, texts: Sequence[contract.TokenizedText]) -> NDArray[np.float32]:
        """Return zeros, float32, shape (len(texts), dimensions)."""
        import numpy as np

        return np.zeros((len(texts), self._stamp.of("knowledge").dimensions), np.float32)


def vectors_of(embedder: object, tokenize: Callable[[str], NDArray[np.uint16]]) -> Vectors:
    """Return the vectors of an embedder: one of the contract, with `embed(*texts)`, or one of ours, with a stamp.

    Args:
        tokenize: the WordPiece ids of a text, which ours want.

    Raises:
        UsageError: it is neither.
    """
    if not callable(getattr(embedder, "embed", None)):
        raise UsageError(f"the embedder is {embedder!r:.80}", remedy="give an object with `embed(*texts)`")
    stamp = getattr(embedder, "stamp", None)
    if stamp is None:
        foreign = cast("Embedder", embedder)
        return Vectors(_name(embedder), lambda texts: foreign.embed(*texts))
    from commonplace.models.contract import TokenizedText

    ours = cast("contract.Embedder", embedder)

    def embed(texts: Sequence[str]) -> Any:
        return ours.embed([TokenizedText(text, tokenize(text)) for text in texts])

    return Vectors(str(stamp), embed)


def _name(embedder: object) -> str:
    for attribute in ("name", "model"):
        value = getattr(embedder, attribute, None)
        if isinstance(value, str) and value.strip():
            return value.strip()
    kind = type(embedder)
    return f"{kind.__module__}.{kind.__qualname__}"
