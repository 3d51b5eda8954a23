"""An embedder in the place of one that cannot be opened here. It embeds nothing and knows only what it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commonplace.errors import CommonplaceError
    from commonplace.models.contract import TokenizedText
    from commonplace.types import Embedding


class AbsentEmbedder:
    """Lets a store be read, searched by words and mended where the embedder that made its vectors is missing."""

    def __init__(self, stamp: Embedding, error: CommonplaceError) -> None:
        """Take the stamp of the store's vectors, and why nothing can make more of them."""
        self._stamp = stamp
        self._error = error

    @property
    def error(self) -> CommonplaceError:
        """Why the embedder is absent, and what to do about it."""
        return self._error

    @property
    def stamp(self) -> Embedding:
        """That of the store's vectors."""
        return self._stamp

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return no rows of no texts.

        Raises:
            CommonplaceError: there are texts; it is what opening the embedder raised.
        """
        if texts:
            raise type(self._error)(self._error.args[0], remedy=self._error.remedy) from self._error
        import numpy as np

        return np.zeros((0, self._stamp.dimensions), np.float32)
