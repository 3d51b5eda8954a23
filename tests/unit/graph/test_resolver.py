"""What facts become as more is said of them, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.clock import DAY

from commonplace.graph.facts import LATELY, Assertion, Fact, judge
from commonplace.graph.resolver import ResolvedFacts, Rule, chronological, resolve_facts

SINGLE = Rule("LIVES_IN", is_single=True)
MANY = Rule("USES")


def said(target: str, told: float, **values: Any) -> Assertion:
    """Return that somebody says at a time that the source has this target; it is learnt an hour later."""
    given: dict[str, Any] = {"saying": "said", "text": f"is {target}", "episode": f"{target}{told}", **values}
    return Assertion(f"{target}{told}", "mira", target, at=given.pop("at", told + 3600.0), told=told, **given)


def facts(resolved: ResolvedFacts) -> dict[str, tuple[float | None, float | None]]:
    return {each.id: (each.valid_from, each.valid_to) for each in resolved.relations}


def states(resolved: ResolvedFacts) -> dict[str, str]:
    """Return of each fact whether it is retracted, disputed, ended or stands."""
    return {
        each.id: "retracted"
        if each.is_retracted
        else "disputed"
        if each.dispute
        else "stands"
        if each.expired_at is None
        else "ended"
        for each in resolved.relations
    }


def test_a_newer_fact_ends_the_older_one_where_it_begins() -> None:
    done = resolve_facts([], [said("berlin", 1.0), said("munich", 5.0, valid_from=3.0)], SINGLE)
    assert facts(done) == {"berlin1.0": (1.0, 3.0), "munich5.0": (3.0, None)}
    [berlin, munich] = done.relations
    assert (berlin.expired_at, berlin.stated_to, berlin.dispute) == (3605.0, None, "")
    assert (munich.expired_at, munich.created_at) == (None, 3605.0)


def test_an_older_fact_that_comes_later_is_known_to_have_ended() -> None:
    done = resolve_facts([], [said("munich", 5.0), said("berlin", 1.0, at=9000.0)], SINGLE)
    assert facts(done) == {"munich5.0": (5.0, None), "berlin1.0": (1.0, 5.0)}


def test_a_fact_that_comes_between_two_ends_the_one_and_is_ended_by_the_other() -> None:
    done = resolve_facts([], [said("a", 1.0), said("c", 9.0), said("b", 5.0, at=9000.0)], SINGLE)
    assert facts(done) == {"a1.0": (1.0, 5.0), "c9.0": (9.0, None), "b5.0": (5.0, 9.0)}
    assert set(states(done).values()) == {"ended", "stands"}


def test_who_moves_back_has_a_second_fact_of_the_same() -> None:
    done = resolve_facts([], [said("berlin", 1.0), said("munich", 5.0), said("berlin", 9.0)], SINGLE)
    assert facts(done) == {"berlin1.0": (1.0, 5.0), "munich5.0": (5.0, 9.0), "berlin9.0": (9.0, None)}


def test_a_denied_fact_that_is_said_to_have_begun_earlier_ends_where_another_began() -> None:
    """It is compared with others by when it holds now, not by when it held before this was said."""
    told = [
        said("berlin", 9.0, saying="denied"),
        said("oslo", 10.0, valid_from=3.0),
        said("berlin", 11.0, valid_from=1.0),
    ]
    assert facts(resolve_facts([], told, SINGLE)) == {"berlin9.0": (1.0, 3.0), "oslo10.0": (3.0, None)}


def test_the_same_said_again_confirms() -> None:
    done = resolve_facts(
        [], [said("berlin", 4.0, trust=0.5), said("berlin", 2.0, trust=0.8), said("berlin", 6.0)], SINGLE
    )
    [berlin] = done.relations
    assert (berlin.id, berlin.valid_from, berlin.valid_to, berlin.trust) == ("berlin4.0", 2.0, None, 1.0)
    assert [effect.what for effect in done.effects] == ["created", "confirmed", "confirmed"]


def test_two_that_begin_at_once_are_disputed_under_one_id_and_a_third_joins_them() -> None:
    done = resolve_facts([], [said("a", 1.0), said("b", 1.0), said("c", 1.0)], SINGLE)
    assert set(states(done).values()) == {"disputed"}
    assert len({each.dispute for each in done.relations}) == 1
    assert [each.disputed_at for each in done.relations] == [3601.0] * 3


def test_who_is_trusted_less_ends_nothing() -> None:
    done = resolve_facts([], [said("a", 1.0, trust=1.0), said("b", 5.0, trust=0.3)], SINGLE)
    assert states(done) == {"a1.0": "disputed", "b5.0": "disputed"}
    denied = resolve_facts([], [said("a", 1.0, trust=1.0), said("a", 5.0, trust=0.3, saying="denied")], SINGLE)
    assert states(denied) == {"a1.0": "disputed"}
    assert facts(denied) == {"a1.0": (1.0, None)}


def test_what_was_still_said_later_is_not_ended_in_between() -> None:
    for last_said, begun in ((4.0 + LATELY, LATELY + 5.0), (6.0, 5.0)):
        again = [said("a", 1.0), said("a", last_said), said("b", begun, valid_from=4.0)]
        assert set(states(resolve_facts([], again, SINGLE)).values()) == {"disputed"}


def test_a_change_of_late_ends_what_was_still_said_before_it_was_reported() -> None:
    """It holds until the change, or for the day on which it was said if that was later than the change."""
    before = [said("a", 1.0), said("a", 6.0), said("b", 7.0, valid_from=4.0)]
    assert facts(resolve_facts([], before, SINGLE)) == {"a1.0": (1.0, 4.0), "b7.0": (4.0, None)}
    after = [said("a", 5.0), said("b", 10 * DAY, valid_from=4.0)]
    assert facts(resolve_facts([], after, SINGLE)) == {"a5.0": (5.0, 5.0 + DAY), f"b{10 * DAY}": (4.0, None)}


def test_many_targets_stand_beside_each_other() -> None:
    done = resolve_facts([], [said("redis", 1.0), said("kafka", 2.0), said("redis", 3.0, saying="denied")], MANY)
    assert facts(done) == {"redis1.0": (1.0, 3.0), "kafka2.0": (2.0, None)}


def test_an_end_that_comes_first_is_kept_and_disputes_nothing() -> None:
    done = resolve_facts([], [said("munich", 1.0), said("berlin", 5.0, saying="denied")], SINGLE)
    assert facts(done) == {"munich1.0": (1.0, None), "berlin5.0": (None, 5.0)}
    assert states(done) == {"munich1.0": "stands", "berlin5.0": "stands"}


def test_an_end_that_is_said_twice_is_confirmed() -> None:
    denials = [said("a", 5.0, saying="denied"), said("a", 6.0, saying="denied")]
    done = resolve_facts([], [said("a", 1.0), *denials], SINGLE)
    assert facts(done) == {"a1.0": (1.0, 5.0)}
    assert [effect.what for effect in done.effects] == ["created", "ended", "confirmed"]


def test_what_ends_while_it_is_disputed_is_still_in_question_for_the_time_before() -> None:
    """That it is over tells nobody which of the two held until then: a dispute of one fact could not be settled."""
    done = resolve_facts([], [said("a", 1.0), said("b", 1.0), said("a", 5.0, saying="denied")], SINGLE)
    assert facts(done) == {"a1.0": (1.0, 5.0), "b1.0": (1.0, None)}
    assert states(done) == {"a1.0": "disputed", "b1.0": "disputed"}
    assert len({each.dispute for each in done.relations}) == 1
    settled = resolve_facts(done.relations, [said("b", 1.0, at=9000.0, saying="settled")], SINGLE)
    assert states(settled) == {"a1.0": "retracted", "b1.0": "stands"}


def test_settling_ends_what_began_before_and_retracts_the_rest() -> None:
    rivals = [said("a", 1.0, trust=1.0), said("b", 5.0, trust=0.3), said("c", 9.0, trust=0.2)]
    before = resolve_facts([], rivals, SINGLE)
    assert set(states(before).values()) == {"disputed"}
    settled = Assertion("b5.0", "mira", "b", "settled", "", 9999.0, 9999.0)
    done = resolve_facts(before.relations, [settled], SINGLE)
    assert states(done) == {"a1.0": "ended", "b5.0": "stands", "c9.0": "retracted"}
    assert facts(done)["a1.0"] == (1.0, 5.0)


def test_one_at_a_time_gives_what_all_at_once_give() -> None:
    sayings = [said("a", 3.0), said("b", 5.0), said("a", 1.0), said("c", 5.0), said("b", 8.0, saying="denied")]
    known: tuple[Any, ...] = ()
    for each in sayings:
        known = resolve_facts(known, [each], SINGLE).relations
    assert known == resolve_facts([], sayings, SINGLE).relations


def test_hearsay_confirms_and_moves_nothing() -> None:
    done = resolve_facts([], [said("a", 5.0), said("a", 6.0, valid_from=1.0, valid_to=9.0, confidence=0.4)], SINGLE)
    assert facts(done) == {"a5.0": (5.0, None)}
    assert [effect.what for effect in done.effects] == ["created", "confirmed"]


def test_of_two_places_of_which_one_lies_in_the_other_both_stand() -> None:
    inside = Rule("LIVES_IN", is_single=True, compare=lambda _one, _other: "within")
    assert set(states(resolve_facts([], [said("berlin", 1.0), said("germany", 5.0)], inside)).values()) == {"stands"}
    unsure = Rule("LIVES_IN", is_single=True, compare=lambda _one, _other: "unknown")
    assert set(states(resolve_facts([], [said("berlin", 1.0), said("germany", 5.0)], unsure)).values()) == {"disputed"}


def held(valid_from: float | None, valid_to: float | None = None, **more: Any) -> Fact:
    return Fact("id", "mira", "berlin", "LIVES_IN", "text", 0.0, valid_from, valid_to, valid_to, **more)


@pytest.mark.parametrize(
    ("first", "second", "ruling", "at"),
    [
        (held(1.0), held(5.0), "closes", 5.0),
        (held(5.0), held(1.0), "closes", 5.0),
        (held(1.0, 9.0), held(5.0), "closes", 5.0),
        (held(1.0, 9.0), held(5.0, 9.0), "closes", 5.0),
        (held(1.0, 5.0), held(5.0), "apart", None),
        (held(5.0), held(1.0, 3.0), "apart", None),
        (held(5.0), held(5.0), "disputed", None),
        (held(None), held(5.0), "disputed", None),
        (held(None, 3.0), held(5.0), "apart", None),
        (held(1.0), held(5.0, 7.0), "disputed", None),
        (held(1.0, trust=1.0), held(5.0, trust=0.9), "disputed", None),
        (held(1.0, trust=0.9), held(5.0, trust=1.0), "closes", 5.0),
        (held(1.0), held(5.0, confidence=0.4), "disputed", None),
        (held(1.0, still=6.0), held(5.0, is_dated=True), "disputed", None),
        (held(1.0, is_dated=True, told=LATELY + 6), held(LATELY + 5), "disputed", None),
        (held(1.0, is_dated=True, told=6.0), held(5.0), "closes", 6.0),
        (held(5.0), held(1.0, is_dated=True, told=6.0), "closes", 6.0),
        (held(1.0, is_dated=True, told=6.0), held(5.0, still=7.0), "disputed", None),
        (held(1.0, is_dated=True, told=6.0), held(5.0, is_dated=True), "closes", 5.0),
    ],
)
def test_what_two_facts_mean_for_each_other(first: Fact, second: Fact, ruling: str, at: float | None) -> None:
    verdict = judge(first, second)
    told = "apart" if verdict is None else "disputed" if verdict.ends is None else "closes"
    assert (told, verdict and verdict.at) == (ruling, at)
    assert judge(second, first) == verdict


def test_an_older_fact_ends_where_the_next_one_began_though_that_one_has_ended_too() -> None:
    """That the next one was replaced in turn does not make it a stay within the older one, unlike a stated end."""
    done = resolve_facts([], [said("b", 5.0), said("c", 9.0), said("a", 1.0, at=9000.0)], SINGLE)
    assert facts(done) == {"b5.0": (5.0, 9.0), "c9.0": (9.0, None), "a1.0": (1.0, 5.0)}
    assert states(done) == {"b5.0": "ended", "c9.0": "stands", "a1.0": "ended"}
    stay = resolve_facts([], [said("b", 5.0, valid_to=9.0), said("a", 1.0, at=9000.0)], SINGLE)
    assert states(stay) == {"b5.0": "disputed", "a1.0": "disputed"}


def test_assertions_are_taken_as_they_were_made_and_decisions_as_they_arrived() -> None:
    """A person decides about what is known by then; what arrives later is resolved after that."""
    settled = Assertion("b5.0", "mira", "b", "settled", "", 30.0, 30.0, order=3)
    b, a = said("b", 5.0, at=10.0, order=1), said("a", 1.0, at=20.0, order=2)
    d, c = said("d", 4.0, at=40.0, order=4), said("c", 3.0, at=50.0, order=5)
    assert chronological([b, a, settled, d, c]) == [a, b, settled, c, d]
