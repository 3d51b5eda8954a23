"""Vectors keep their direction when they become bytes."""

from __future__ import annotations

import numpy as np
from tests.unit.blas import two_threads

from commonplace.ranking import arrays
from commonplace.ranking.arrays import ONE_BLAS_THREAD, quantise, restore


def test_the_largest_component_of_each_row_becomes_127() -> None:
    """Each row uses the whole range, so that small vectors lose no more than large ones."""
    rows = quantise(np.array([[0.5, -0.25, 0.0], [-1e-6, 5e-7, 1e-6]], np.float32))
    assert rows.dtype == np.int8
    assert rows.tolist() == [[127, -64, 0], [-127, 64, 127]]


def test_a_zero_row_stays_zero() -> None:
    """A text without words is like nothing, and no division warns of it."""
    rows = quantise(np.zeros((2, 3), np.float32))
    assert rows.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert restore([row.tobytes() for row in rows]).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_no_rows_give_no_rows() -> None:
    """A batch of empty files has no passages."""
    assert quantise(np.zeros((0, 4), np.float32)).shape == (0, 4)


def test_direction_survives_the_round_trip() -> None:
    """Cosine is all that is asked of the bytes; a step of 1/127 turns a vector by less than a degree."""
    vectors = np.random.default_rng(7).normal(size=(50, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    restored = restore([row.tobytes() for row in quantise(vectors)])
    assert float((vectors * restored).sum(axis=1).min()) > 0.9998


def test_linear_algebra_has_one_thread_inside_and_what_it_had_outside() -> None:
    with two_threads() as count:
        before = count()
        with ONE_BLAS_THREAD:
            with ONE_BLAS_THREAD:
                assert count() == 1
            assert count() == 1
        assert count() == before


def test_a_number_of_threads_that_the_application_sets_meanwhile_stays() -> None:
    with two_threads() as count:
        with ONE_BLAS_THREAD:
            blas = arrays._openblas()
            assert blas is not None
            blas[1](3)
        assert count() == 3
