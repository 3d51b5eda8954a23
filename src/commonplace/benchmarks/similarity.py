"""Compare similarities of sentences with what people say of them. It knows pairs and numbers, no store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commonplace.models.contract import Embedder

LARGEST_SCORE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences, and how much they say the same, 0–1."""

    first: str
    second: str
    score: float


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a file of JSON lines {a, b, score}, a score from 0 to 5.

    Raises:
        UsageError: the file cannot be read, or a line is not of the form.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="name a readable file in UTF-8") from error
    return [_pair(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _pair(path: Path, number: int, line: str) -> Pair:
    try:
        value = json.loads(line)
        first, second, score = value["a"], value["b"], value["score"]
        if isinstance(first, str) and isinstance(second, str) and 0 <= score <= LARGEST_SCORE:
            return Pair(first, second, score / LARGEST_SCORE)
    except (ValueError, KeyError, TypeError):
        pass
    raise UsageError(
        f"{path}, line {number} is no pair of sentences",
        remedy='give JSON lines {"a": text, "b": text, "score": number from 0 to 5}',
    )


def cosines_of(embedder: Embedder, pairs: Sequence[Pair]) -> NDArray[np.float32]:
    """Return the cosines of the vectors of each pair as a store keeps them: shape (len(pairs),)."""
    import numpy as np

    from commonplace.models.contract import TokenizedText
    from commonplace.models.static import StaticEmbedder
    from commonplace.ranking.quantise import quantise, restore

    tokenize = StaticEmbedder.load().tokenize
    texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
    rows = quantise(embedder.embed([TokenizedText(text, tokenize(text)) for text in texts]))
    vectors = restore([row.tobytes() for row in rows])
    places = {text: place for place, text in enumerate(texts)}
    first = vectors[[places[pair.first] for pair in pairs]]
    second = vectors[[places[pair.second] for pair in pairs]]
    cosines: NDArray[np.float32] = np.einsum("nd,nd->n", first, second)
    return cosines
