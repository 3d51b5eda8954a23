"""When a fact held and when it was known: spans are half-open, and None is open."""

from __future__ import annotations

import pytest

from commonplace.graph.facts import Span, holds_at, known_at, overlap


def test_a_fact_holds_from_its_first_moment_up_to_but_without_its_last() -> None:
    assert [holds_at(10.0, 20.0, at) for at in (9.9, 10.0, 19.9, 20.0)] == [False, True, True, False]


def test_an_open_end_has_no_limit() -> None:
    assert holds_at(None, 20.0, -1e18)
    assert holds_at(10.0, None, 1e18)
    assert holds_at(None, None, 0.0)
    assert not holds_at(None, 20.0, 20.0)


def test_a_fact_that_ends_as_it_begins_or_before_never_held() -> None:
    assert not any(holds_at(20.0, 20.0, at) or holds_at(20.0, 10.0, at) for at in (9.0, 10.0, 15.0, 20.0, 21.0))
    assert Span(20.0, 20.0).is_empty
    assert Span(20.0, 10.0).is_empty
    assert not Span(10.0, 20.0).is_empty
    assert not Span().is_empty


def test_a_fact_is_known_from_when_it_was_written_until_it_was_withdrawn() -> None:
    assert [known_at(10.0, 20.0, at) for at in (9.0, 10.0, 20.0)] == [False, True, False]
    assert known_at(10.0, None, 1e18)


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
