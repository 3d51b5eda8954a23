"""When a fact held and when it was known: spans are half-open, and None is open."""

from __future__ import annotations

import pytest

from commonplace.graph.facts import Span, overlap


def test_a_fact_that_ends_as_it_begins_or_before_never_held() -> None:
    assert Span(20.0, 20.0).is_empty
    assert Span(20.0, 10.0).is_empty
    assert not Span(10.0, 20.0).is_empty
    assert not Span().is_empty


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (Span(10.0, 30.0), Span(20.0, 40.0), Span(20.0, 30.0)),
        (Span(10.0, 40.0), Span(20.0, 30.0), Span(20.0, 30.0)),
        (Span(10.0, 20.0), Span(20.0, 30.0), None),
        (Span(10.0, 20.0), Span(25.0, 30.0), None),
        (Span(None, 20.0), Span(10.0, None), Span(10.0, 20.0)),
        (Span(None, 20.0), Span(None, 30.0), Span(None, 20.0)),
        (Span(10.0, None), Span(20.0, None), Span(20.0, None)),
        (Span(), Span(), Span()),
        (Span(), Span(20.0, 10.0), None),
        (Span(15.0, 15.0), Span(10.0, 20.0), None),
    ],
)
def test_spans_share_the_moments_that_lie_in_both(first: Span, second: Span, shared: Span | None) -> None:
    assert overlap(first, second) == shared
    assert overlap(second, first) == shared
