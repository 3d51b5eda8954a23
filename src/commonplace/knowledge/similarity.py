"""How alike two vectors are: their cosine. It knows numbers, not what they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def cosine_similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors, -1 to 1.

    It is 0 where they have different lengths, where one is all zeros, and where one holds what is no number: nothing
    can be said of those.
    """
    if not 0 < len(one) == len(other):
        return 0.0
    largest = [max(map(abs, vector)) for vector in (one, other)]
    if not all(0 < most < math.inf for most in largest):
        return 0.0
    # Scaled first: the squares of very large and very small numbers are none.
    first, second = ([value / most for value in vector] for vector, most in zip((one, other), largest, strict=True))
    length = math.sqrt(math.fsum(value * value for value in first) * math.fsum(value * value for value in second))
    product = math.fsum(a * b for a, b in zip(first, second, strict=True)) / length
    return max(-1.0, min(1.0, product)) if math.isfinite(product) else 0.0


def cosines(query: NDArray[np.float32], rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the cosine of a vector with each row, float32, shape (n,); 0 for a row of zeros.

    Args:
        query: float32, shape (d,).
        rows: int8, shape (n, d), each with a scale of its own.
    """
    import numpy as np

    values = rows.astype(np.float32)
    lengths = np.linalg.norm(values, axis=1) * np.linalg.norm(query)
    found: NDArray[np.float32] = np.divide(values @ query, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.clip(found, -1, 1)
