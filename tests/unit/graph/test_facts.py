"""When a fact held: stretches of time are half-open, and None is open."""

from __future__ import annotations

import pytest

from commonplace.graph.facts import Span, overlap


@pytest.mark.parametrize(
    ("first", "second", "is_shared"),
    [
        ((10.0, 30.0), (20.0, 40.0), True),
        ((10.0, 40.0), (20.0, 30.0), True),
        ((10.0, 20.0), (20.0, 30.0), False),
        ((10.0, 20.0), (25.0, 30.0), False),
        ((None, 20.0), (10.0, None), True),
        ((None, 20.0), (None, 30.0), True),
        ((10.0, None), (20.0, None), True),
        ((None, None), (None, None), True),
        ((None, None), (20.0, 10.0), False),
        ((15.0, 15.0), (10.0, 20.0), False),
    ],
)
def test_two_stretches_share_the_moments_that_lie_in_both(first: Span, second: Span, is_shared: bool) -> None:
    assert overlap(first, second) == overlap(second, first) == is_shared
