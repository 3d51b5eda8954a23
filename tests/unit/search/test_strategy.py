"""What an agent's strategy asks of a search, and what a call says in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commonplace.errors import UsageError
from commonplace.search.request import SearchDefaults, defaults_of
from commonplace.search.result import SearchResult, Trace, joined
from commonplace.settings.agents import STRATEGIES
from commonplace.types import Filter, Hit, Kind, Stage


@pytest.mark.parametrize("name", ["test_engineer", "test-engineer", " test-engineer "])
def test_an_agent_wishes_what_its_strategy_says(name: str) -> None:
    assert defaults_of(name, STRATEGIES) == SearchDefaults(
        limit=15,
        min_score=0.65,
        types=("requirement", "architecture", "code"),
        phases=("elaboration", "construction"),
        tags=(),
        agent="test-engineer",
    )


def test_nobody_wishes_nothing() -> None:
    assert defaults_of(None, STRATEGIES) == SearchDefaults()


def test_an_agent_without_a_strategy_has_that_of_default_and_it_is_said() -> None:
    defaults = defaults_of("poet", STRATEGIES)
    assert (defaults.agent, defaults.limit) == ("default", 10)
    assert defaults.notices == (
        (
            "there is no strategy for agent 'poet', so 'default' is used; there are: test-engineer, security-auditor, "
            "api-designer, integrator, default"
        ),
    )


@pytest.mark.parametrize("name", ["", " ", 7, ["test-engineer"], "a" * 101])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="agent is"):
        defaults_of(name, STRATEGIES)  # type: ignore[arg-type]


def test_what_a_call_says_wins_and_an_empty_list_lifts_a_filter() -> None:
    defaults = defaults_of("security-auditor", STRATEGIES).under(limit=None, min_score=0.0, types=["test"], tags=[])
    assert (defaults.limit, defaults.min_score, defaults.types, defaults.tags) == (10, 0.0, ["test"], [])


def test_the_limits_of_a_strategy_are_named_for_a_notice() -> None:
    defaults = defaults_of("security-auditor", STRATEGIES)
    tags = "with one of the tags security, authentication, authorization"
    assert defaults.limits == f"of the types architecture, code, {tags}, scored 0.70 or more"
    assert defaults.under(types=(), tags=(), phases=["any"], min_score=0.0).limits == "of the phases any or of none"
    assert defaults.under(types=(), tags=(), min_score=0).limits == ""


def hit(name: str, owner: str, score: float, kind: Kind = "artifact") -> Hit:
    return Hit(id=name, owner_id=owner, kind=kind, text=name, score=score, signals={})


def result(*hits: Hit, took: int, stages: tuple[Stage, ...], **told: bool) -> SearchResult:
    notices = ("slow", "odd") if told.get("degraded") else ("slow",)
    return SearchResult(
        query="q",
        namespace="n",
        method="two-stage",
        wanted=Filter(),
        hits=hits,
        stages=stages,
        latency_ms=took,
        degraded=told.get("degraded", False),
        notices=notices,
        trace=Trace(candidates=(), terms=(), min_score=0.0, numbers={}),
    )


def test_results_are_joined_by_score_with_what_all_of_them_took() -> None:
    first = result(hit("b", "B", 0.9), hit("c", "C", 0.5), took=5, stages=(Stage("lexical", 3, 1.0),))
    second = result(hit("a", "A", 0.9), took=7, stages=(Stage("lexical", 4, 2.0), Stage("hits", 1, 0.5)), degraded=True)
    both = joined([first, second], 2)
    assert [each.id for each in both.hits] == ["a", "b"]
    assert both.stages == (Stage("lexical", 7, 3.0), Stage("hits", 1, 0.5))
    assert (both.latency_ms, both.degraded, both.notices) == (12, True, ("slow", "odd"))
    assert joined([first], 1) == replace(first, hits=first.hits[:1])


def test_a_joined_result_explains_the_hits_of_all() -> None:
    """Else `why` fails for what the second search found."""
    first, second = (result(hit(name, name, 0.9), took=1, stages=()) for name in "ab")
    first = replace(first, trace=replace(first.trace, numbers={"a": 1}))
    second = replace(second, trace=replace(second.trace, numbers={"b": 2}))
    assert joined([first, second], 2).trace.numbers == {"a": 1, "b": 2}
