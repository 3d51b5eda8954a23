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
        topic=st.sampled_from(("", "db", "api")),
    ),
    max_size=12,
    unique_by=lambda fact: fact.id,
)
changes = st.lists(st.tuples(st.integers(0, 11), times, times, st.booleans(), st.booleans()), max_size=6)


def span(fact: Fact) -> Span:
    return Span(fact.valid_from, fact.valid_to)


@given(facts, changes, st.booleans())
def test_those_that_hold_together_are_found_however_they_change(
    some: list[Fact], changed: list[tuple[int, float | None, float | None, bool, bool]], has_topics: bool
) -> None:
    slot = KeyFacts(some, has_topics=has_topics)
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
            if each is not fact
            and not {each.id, fact.id} & alone
            and overlap(span(each), span(fact)) is not None
            and (not has_topics or (each.topic == fact.topic != ""))
        ]
        found = slot.met(fact)
        together = [each for each in found if overlap(span(each), span(fact)) is not None]
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
    at_once.name_all_disputes()
    assert [fact.dispute for fact in one_by_one] == [fact.dispute for fact in at_once]


# What two spans share are just the moments that lie in both.

ENDS = st.none() | st.integers(-4, 4).map(float)
SPANS = st.builds(Span, ENDS, ENDS)
MOMENTS = [number / 2 for number in range(-12, 13)]


def holds(span: Span, at: float) -> bool:
    return (span.start is None or span.start <= at) and (span.end is None or at < span.end)


@given(SPANS, SPANS)
def test_a_moment_lies_in_what_is_shared_just_if_it_lies_in_both(first: Span, second: Span) -> None:
    shared = overlap(first, second)
    both = [at for at in MOMENTS if holds(first, at) and holds(second, at)]
    assert both == [at for at in MOMENTS if shared is not None and holds(shared, at)]
    assert (shared is None) == (not both)
