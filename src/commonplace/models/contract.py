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
    """A text with its WordPiece ids (uint16, shape (n,)), so that it is tokenized only once."""

    text: str
    token_ids: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Similarities:
    """The similarities of q tokens to all others, as a table of only those tokens that are similar to any of the q.

    Attributes:
        columns: the column of each token of the vocabulary; uint16, shape (vocabulary,), 0 for a token similar to none.
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
    """One candidate with its score, 0–1; `index` is its position in the input, from 0."""

    content: str
    score: float
    index: int


class Reranker(Protocol):
    """Orders candidates by their relevance to a query. Safe to call from several threads."""

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> list[RerankResult]:
        """Return at most `top_k` of the candidates, best first, ties in input order.

        Equal texts are told apart by their index.

        Raises:
            ProviderError: a remote model did not answer, or not in the requested form.
        """


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Generated:
    """A language model's answer: its text unchanged, the model's own name, and the token counts it reports."""

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
            schema: a JSON schema for the answer; the caller checks whether the answer fulfils it.
            options: more fields of the request, such as `temperature` and `max_tokens`.
            total_s: maximum seconds for the whole call, retries included; the model's own limits may be lower.

        Raises:
            ProviderError: no answer came, even after retries.
        """
