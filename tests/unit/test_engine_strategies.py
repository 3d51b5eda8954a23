"""What an agent's strategy asks of a search, and what a call says in its place."""

from __future__ import annotations

import pytest

from commonplace.engine.strategies import Wishes, wishes_of
from commonplace.errors import UsageError
from commonplace.settings.agents import STRATEGIES


@pytest.mark.parametrize("name", ["test_engineer", "test-engineer", " test-engineer "])
def test_an_agent_wishes_what_its_strategy_says(name: str) -> None:
    assert wishes_of(name, STRATEGIES) == Wishes(
        limit=15,
        min_score=0.65,
        types=("requirement", "architecture", "code"),
        phases=("elaboration", "construction"),
        tags=(),
        agent="test-engineer",
    )


def test_nobody_wishes_nothing() -> None:
    assert wishes_of(None, STRATEGIES) == Wishes()


def test_an_agent_without_a_strategy_has_that_of_default_and_it_is_said() -> None:
    wishes = wishes_of("poet", STRATEGIES)
    assert (wishes.agent, wishes.limit) == ("default", 10)
    assert wishes.notices == (
        ("there is no strategy for agent 'poet', so 'default' is used; there are: test-engineer, security-auditor, "
        "api-designer, integrator, default"),
    )


@pytest.mark.parametrize("name", ["", " ", 7, ["test-engineer"], "a" * 101])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="agent is"):
        wishes_of(name, STRATEGIES)  # type: ignore[arg-type]


def test_what_a_call_says_wins_and_an_empty_list_lifts_a_filter() -> None:
    wishes = wishes_of("security-auditor", STRATEGIES).under(limit=None, min_score=0.0, types=["test"], tags=[])
    assert (wishes.limit, wishes.min_score, wishes.types, wishes.tags) == (10, 0.0, ["test"], [])


def test_tags_are_told_only_where_nothing_was_found() -> None:
    wishes = wishes_of("security-auditor", STRATEGIES)
    assert wishes.about(["a hit"]) == ()
    assert wishes.about([]) == (
        "agent security-auditor finds only what has one of the tags security, authentication, authorization",
    )
    assert wishes.under(tags=()).about([]) == ()
    assert Wishes(tags=("mine",)).about([]) == ()
