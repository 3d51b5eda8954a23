"""The facts of a slot are found as if one looked at each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.facts import Fact, Span, overlap
from commonplace.graph.resolver import KeyFacts

times = st.none() | st.integers(0, 6).map(float)
facts = st.lists(
    st.builds(
        Fact,
        id=st.uuids().map(str),
        source=st.just("s"),
        target=st.sampled_from("abc"),
        type=st.just("DECIDED"),
        text=st.just(""),
        created_at=st.integers(0, 3).map(float),
        valid_from=times,
        valid_to=times,
        is_retracted=st.booleans(),
        is_denied=st.booleans(),
        is_added=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda fact: fact.id,
)
changes = st.lists(st.tuples(st.integers(0, 11), times, times, st.booleans(), st.booleans()), max_size=6)


@given(facts, changes)
def test_those_that_hold_together_are_found_however_they_change(
    some: list[Fact], changed: list[tuple[int, float | None, float | None, bool, bool]]
) -> None:
    slot = KeyFacts(some)
    for place, begins, ends, is_retracted, is_denied in changed:
        if place < len(some):
            fact = some[place]
            fact.valid_from, fact.valid_to, fact.is_retracted, fact.is_denied = begins, ends, is_retracted, is_denied
            slot.note(fact)
    for fact in some:
        alone = {each.id for each in some if each.is_retracted or each.is_denied or each.is_added}
        wanted = [
            each
            for each in some
            if each is not fact and not {each.id, fact.id} & alone and overlap(each.span, fact.span)
        ]
        found = slot.list_overlapping(fact)
        together = [each for each in found if overlap(each.span, fact.span)]
        assert sorted(each.id for each in together) == sorted(each.id for each in wanted)
        assert not {each.id for each in found} & alone
        begun = [each.valid_from for each in found if each.valid_from is not None]
        later = [at for at in begun if fact.valid_from is None or at >= fact.valid_from]
        assert begun[len(begun) - len(later) :] == sorted(later)
        assert slot.between(fact.target, "s") == [
            each for each in some if each.target == fact.target and not each.is_retracted
        ]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12))
def test_disputes_are_named_one_by_one_as_they_are_all_at_once(pairs: list[tuple[int, int]]) -> None:
    """Which fact came to dispute which others first does not show."""

    def made() -> list[Fact]:
        return [Fact(f"f{(place * 5) % 9}", "s", f"t{place}", "LIVES_IN", "", float(place % 3)) for place in range(9)]

    one_by_one, at_once = KeyFacts(made()), KeyFacts(made())
    for first, second in pairs:
        if first == second:
            continue
        for slot in (one_by_one, at_once):
            ends = [slot[f"f{each}"] for each in (first, second)]
            for end, other in (ends, ends[::-1]):
                end.rivals.add(other.id)
        one_by_one.name_disputes([one_by_one[f"f{each}"] for each in (first, second)])
    at_once.name_disputes(at_once)
    assert [fact.dispute for fact in one_by_one] == [fact.dispute for fact in at_once]


ENDS = st.none() | st.integers(-4, 4).map(float)
SPANS = st.tuples(ENDS, ENDS)
MOMENTS = [number / 2 for number in range(-12, 13)]


def holds(span: Span, at: float) -> bool:
    start, end = span
    return (start is None or start <= at) and (end is None or at < end)


@given(SPANS, SPANS)
def test_two_stretches_overlap_just_if_a_moment_lies_in_both(first: Span, second: Span) -> None:
    both = [at for at in MOMENTS if holds(first, at) and holds(second, at)]
    assert overlap(first, second) == bool(both)
