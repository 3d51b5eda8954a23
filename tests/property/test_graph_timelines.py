"""What two spans share are just the moments that lie in both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.facts import Span, overlap

ENDS = st.none() | st.integers(-4, 4).map(float)
SPANS = st.builds(Span, ENDS, ENDS)
MOMENTS = [number / 2 for number in range(-12, 13)]


@given(SPANS, SPANS)
def test_a_moment_lies_in_what_is_shared_just_if_it_lies_in_both(first: Span, second: Span) -> None:
    shared = overlap(first, second)
    both = [at for at in MOMENTS if first.holds(at) and second.holds(at)]
    assert both == [at for at in MOMENTS if shared is not None and shared.holds(at)]
    assert (shared is None) == (not both)
