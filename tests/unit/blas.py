"""The threads that NumPy's OpenBLAS has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from commonplace.ranking import arrays


@contextmanager
def two_threads() -> Iterator[Callable[[], int]]:
    """Give an application two threads for its own work, and tell how many there are."""
    blas = arrays._openblas()
    if blas is None:
        pytest.skip("NumPy is built with another library, whose threads are left alone")
    count, set_to = blas
    before = count()
    set_to(2)
    try:
        yield count
    finally:
        set_to(before)
