"""Set operations on sorted arrays, int8 quantisation, and linear algebra on one thread.

NumPy's own set operations load `numpy.ma`: 15 ms and 1.3 MB.

Symmetric linear quantisation, a scale for each row: q = round(v / max|v| · 127). The scale is dropped: cosine does not
depend on it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.integer[Any])


def distinct(values: NDArray[Number]) -> NDArray[Number]:
    """Return each value once, ascending."""
    ordered = np.sort(values)
    keep = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def within(values: NDArray[Number], members: NDArray[Number]) -> NDArray[np.bool_]:
    """Return for each value whether it is among `members`, which ascend; bool, the shape of `values`."""
    if not len(members):
        return np.zeros(values.shape, dtype=np.bool_)
    positions = np.minimum(np.searchsorted(members, values), len(members) - 1)
    return np.asarray(members[positions] == values, dtype=np.bool_)


def without(values: NDArray[Number], members: NDArray[Number]) -> NDArray[Number]:
    """Return the values that are not among `members`, which ascend, in their order."""
    return values[~within(values, members)]


def union(first: NDArray[Number], second: NDArray[Number]) -> NDArray[Number]:
    """Return the values of both, each once, ascending."""
    return distinct(np.concatenate((first, second)))


_SPARSE: Final = 16
"""If fewer than one in this number of the values in a range occur, sorting is faster than a table of the range."""


def ranked(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each value once, ascending, and the position there of each of those given."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low >= _SPARSE * len(values):
        members = distinct(values)
        return members, np.searchsorted(members, values)
    is_present = np.zeros(high - low + 1, np.bool_)
    is_present[values - low] = True
    return np.flatnonzero(is_present) + low, (np.cumsum(is_present) - 1)[values - low]


LARGEST: Final = 127


def quantise(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return int8 rows, shape (n, d), of float32 rows, shape (n, d); a zero row stays zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scale: NDArray[np.float32] = np.divide(LARGEST, largest, out=np.zeros_like(largest), where=largest > 0)
    rows: NDArray[np.int8] = np.rint(vectors * scale).astype(np.int8)
    return rows


def restore(rows: Sequence[bytes]) -> NDArray[np.float32]:
    """Return float32 rows of unit length, shape (n, d), from the bytes of int8 rows of one length; zero stays zero."""
    return units(np.frombuffer(b"".join(rows), dtype=np.int8).reshape(len(rows), -1).astype(np.float32))


def units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32 rows at unit length, shape (n, d); a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


class _OneBlasThread:
    """Holds NumPy's OpenBLAS to one thread while anything is embedded or searched.

    On products as small as these a second thread costs many times what it gains, most of all when others wait for the
    processor too. Any other library of linear algebra is left as it is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = self._previous = 0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1 and (blas := _openblas()):
                self._previous = blas[0]()
                blas[1](1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and (blas := _openblas()) and blas[0]() == 1:
                blas[1](self._previous)  # unless the application has set another number meanwhile


ONE_BLAS_THREAD: Final = _OneBlasThread()


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that get and set the number of threads of the OpenBLAS in NumPy's own wheels."""
    try:
        library = ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)
        return library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
    except (KeyError, OSError, AttributeError):
        return None
