"""Protocols of embedders, re-rankers and generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from commonplace.dataclasses import dataclass
from commonplace.types import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        """Return float32, shape (len(texts), dimensions), rows of unit length; a text without words gives zeros."""


@dataclass(frozen=True, slots=True)
class RerankResult:
    """One candidate with its score, 0–1; `index` is its place among those that were given, from 0."""

    content: str
    score: float
    index: int


class Reranker(Protocol):
    """Puts candidates into the order of their relevance to a query. Safe to call from several threads."""

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> list[RerankResult]:
        """Return at most `top_k` of the candidates, best first, ties in the order in which they were given.

        Equal texts stay distinct by their index.

        Raises:
            ProviderError: a remote model did not answer, or not as asked.
        """


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Generated:
    """What a language model answered: the text as it came, the model's own name, and the tokens that it counted."""

    text: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Generator(Protocol):
    """A language model. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """Provider and model, as `openai:gpt-4o-mini`."""

    def generate(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        total_s: float | None = None,
    ) -> Generated:
        """Return the model's answer to a conversation.

        Args:
            schema: a JSON schema that the answer is asked to fulfil; whether it does is for the caller to check.
            options: further fields of the request, such as `temperature` and `max_tokens`.
            total_s: seconds for the whole call, retries included, if the model's own limits allow more.

        Raises:
            ProviderError: no answer came, after the retries that are worth making.
        """
