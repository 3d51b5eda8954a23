"""What every embedder promises. It knows texts and vectors, not where they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commonplace.types import Embedding


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text with its WordPiece ids (uint16, shape (n,)), so that no one tokenizes it twice."""

    text: str
    token_ids: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Similarities:
    """How similar q tokens are to every other: as a table of those alone that are like any of them.

    Attributes:
        columns: the column of each token of the vocabulary; uint16, shape (vocabulary,), 0 for one that is like none.
        cosines: 0–1; float32, shape (q, columns), column 0 all zeros.
    """

    columns: NDArray[np.uint16]
    cosines: NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from several threads; the same text gives the same vector."""

    @property
    def stamp(self) -> Embedding:
        """Name, version and dimensions; a different stamp means vectors that must not be compared."""
        ...

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without words gives zeros."""
        ...
