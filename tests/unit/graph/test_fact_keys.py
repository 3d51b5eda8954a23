"""What a saying costs in a slot of many facts, and how facts that cannot all be true are related."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.graph import resolver
from commonplace.graph.facts import Assertion, fact_of
from commonplace.graph.resolver import MAX_DISPUTED, FactResolver, Rule, resolve_facts

SINGLE = Rule("LIVES_IN", is_single=True)


def said(number: int, told: float, **values: Any) -> Assertion:
    """Return that somebody says that she lives in a place of a number."""
    given: dict[str, Any] = {"saying": "said", "text": "lives there", "episode": f"e{number}", **values}
    return Assertion(f"f{number:04}", "mira", f"place{number}", at=told, told=told, order=number, **given)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Give a list that grows by one whenever two facts are compared."""
    found: list[None] = []
    judge = resolver.judge

    def count(*given: Any) -> Any:
        found.append(None)
        return judge(*given)

    monkeypatch.setattr(resolver, "judge", count)
    return found


def test_who_has_moved_a_thousand_times_moves_at_the_cost_of_one_move(judged: list[None]) -> None:
    """The fact that comes is compared with the one that it ends, and these two are written."""
    run = FactResolver(SINGLE, ())
    for number in range(1_000):
        run.take(said(number, float(number)))
    run.changed()
    judged.clear()
    effects = run.take(said(1_000, 1_000.0))
    assert [(each.relation, each.what) for each in effects] == [("f1000", "created"), ("f0999", "ended")]
    assert len(judged) == 1
    assert {each.id for each in run.changed()} == {"f0999", "f1000"}


def test_a_stay_between_two_of_a_thousand_is_compared_with_what_held_then(judged: list[None]) -> None:
    """Neither with what ended before nor with what began after it."""
    facts = resolve_facts((), [said(number, float(number)) for number in range(0, 4_000, 2)], SINGLE).relations
    run = FactResolver(SINGLE, map(fact_of, facts))
    judged.clear()
    run.take(replace(said(501, 9_000.0), valid_from=501.0, valid_to=502.0))
    changed = {each.id: (each.valid_from, each.valid_to) for each in run.changed()}
    assert changed == {"f0500": (500.0, 501.0), "f0501": (501.0, 502.0)}
    assert len(judged) == 1


def test_what_holds_now_ends_what_began_long_before_however_much_lies_between() -> None:
    """A fact meets the nearest in time, and the one that holds now is far; those between are disputed as few are."""
    stays = [said(number, float(number), valid_to=number + 2.0) for number in range(0, 3_998, 2)]
    facts = resolve_facts((), [*stays, said(3_998, 3_998.0)], SINGLE).relations
    run = FactResolver(SINGLE, map(fact_of, facts))
    run.take(replace(said(501, 501.0), at=9_000.0))
    fact = run.facts["f0501"]
    assert (fact.valid_from, fact.valid_to) == (501.0, 3_998.0)
    assert sorted(fact.rivals) == [f"f{502 + 2 * number:04}" for number in range(MAX_DISPUTED)]
    assert run.facts["f0500"].valid_to == 501.0


def test_of_many_that_cannot_all_be_true_each_is_disputed_by_few_and_all_share_one_dispute() -> None:
    """Two hundred places in which somebody is to live were ten thousand disputes, and each wrote all of them again."""
    run = FactResolver(SINGLE, ())
    told = [len(run.take(said(number, 1.0))) for number in range(200)]
    assert max(told) == told[-1] == 1 + 2 * MAX_DISPUTED
    run.changed()
    facts = [replace(fact) for fact in run.facts]
    assert max(len(fact.rivals) for fact in facts) <= 2 * MAX_DISPUTED
    assert len({fact.dispute for fact in facts}) == 1
    assert all(fact.disputed_at == 1.0 for fact in facts)
    run.take(said(200, 1.0))
    assert len(run.changed()) == 1 + MAX_DISPUTED


def test_saying_again_what_is_disputed_disputes_no_more() -> None:
    """Each time it is said it would meet others that it had not met."""
    run = FactResolver(SINGLE, ())
    for number in range(100):
        run.take(said(number, 1.0))
    assert [each.what for each in run.take(said(50, 1.0))] == ["confirmed"]


@pytest.mark.parametrize("number", [0, 100, 199])
def test_who_settles_a_dispute_of_many_settles_all_of_it(number: int) -> None:
    """Not only against those that each remembers."""
    facts = resolve_facts((), [said(each, 1.0) for each in range(200)], SINGLE).relations
    settled = replace(said(number, 9.0, saying="settled"), order=900)
    done = resolve_facts(facts, [settled], SINGLE).relations
    assert [each.id for each in done if not each.is_retracted] == [f"f{number:04}"]
    assert {each.dispute for each in done} == {""}


def test_a_fact_that_is_older_than_all_others_gives_their_dispute_its_name() -> None:
    """The name follows from what is disputed alone, so that resolving it again gives the same."""
    first = [said(number, 1.0) for number in range(1, 40)]
    run = FactResolver(SINGLE, ())
    for each in first:
        run.take(each)
    run.changed()
    before = {fact.dispute for fact in run.facts}
    run.take(said(0, 1.0))  # of the same moment, and its id comes first
    changed = run.changed()
    after = {fact.dispute for fact in run.facts}
    assert (len(before), len(after)) == (1, 1)
    assert before != after
    assert len(changed) == 40
