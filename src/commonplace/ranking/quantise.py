"""Turn float vectors into the int8 bytes that stores keep, and back; it knows nothing of what they mean.

Symmetric linear quantisation, a scale for each row: q = round(v / max|v| · 127). The scale is dropped: cosine does not
see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST: Final = 127


def quantise(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return int8 rows, shape (n, d), of float32 rows, shape (n, d); a zero row stays zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scale: NDArray[np.float32] = np.divide(LARGEST, largest, out=np.zeros_like(largest), where=largest > 0)
    rows: NDArray[np.int8] = np.rint(vectors * scale).astype(np.int8)
    return rows


def restore(rows: Sequence[bytes]) -> NDArray[np.float32]:
    """Return float32 rows of unit length, shape (n, d), from the bytes of int8 rows of one length; zero stays zero."""
    vectors = np.frombuffer(b"".join(rows), dtype=np.int8).reshape(len(rows), -1).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units
