"""What an agent's strategy asks of a search, and what a call says in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commonplace.errors import UsageError
from commonplace.search.request import Request
from commonplace.search.result import SearchResult, Trace, joined
from commonplace.search.strategy import Wishes, about, for_part, wishes_of
from commonplace.settings.agents import STRATEGIES
from commonplace.types import Filter, Hit, Kind, Stage


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
        (
            "there is no strategy for agent 'poet', so 'default' is used; there are: test-engineer, security-auditor, "
            "api-designer, integrator, default"
        ),
    )


@pytest.mark.parametrize("name", ["", " ", 7, ["test-engineer"], "a" * 101])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="agent is"):
        wishes_of(name, STRATEGIES)  # type: ignore[arg-type]


def test_what_a_call_says_wins_and_an_empty_list_lifts_a_filter() -> None:
    wishes = wishes_of("security-auditor", STRATEGIES).under(limit=None, min_score=0.0, types=["test"], tags=[])
    assert (wishes.limit, wishes.min_score, wishes.types, wishes.tags) == (10, 0.0, ["test"], [])


def test_where_nothing_was_found_it_is_said_what_the_strategy_leaves() -> None:
    """Nobody would know why."""
    wishes = wishes_of("security-auditor", STRATEGIES)
    assert about([wishes], ["a hit"]) == ()
    limits = "with one of the tags security, authentication, authorization, scored 0.70 or more"
    assert about([wishes], []) == (
        f"agent security-auditor finds only what is of the types architecture, code, {limits}",
    )
    parts = wishes.under(types=("code",)), wishes.under(types=("architecture",), tags=())
    assert about(parts, []) == (f"agent security-auditor finds only what is of the types code, architecture, {limits}",)
    (told,) = about([wishes.under(types=(), tags=(), phases=["any"], min_score=0.0)], [])
    assert told == "agent security-auditor finds only what is of the phases any or of none"
    assert about([wishes.under(types=(), tags=(), min_score=0)], []) == ()
    assert about([Wishes(tags=("mine",))], []) == ()


DOCUMENTATION_TOO = "no requirement and no architecture is indexed, so agent api-designer finds documentation too"


@pytest.mark.parametrize(
    ("held", "types", "notices"),
    [
        ({"requirement": False, "architecture": True, "documentation": False}, (), ()),
        ({"documentation": False, "code": False}, ("documentation",), (DOCUMENTATION_TOO,)),
        ({"code": False, "test": False}, ("code",), (DOCUMENTATION_TOO.replace("documentation", "code"),)),
        (
            {"requirement": False, "code": False},
            ("code",),
            ("no architecture is indexed, so agent api-designer finds code too",),
        ),
        ({"research": False}, (), ()),
        ({}, (), ()),
    ],
)
def test_what_no_file_is_there_for_is_found_where_a_project_tells_it(
    held: dict[str, bool], types: tuple[str, ...], notices: tuple[str, ...]
) -> None:
    """Few projects keep requirements in files of their own; an agent that wants them would find nothing at all."""
    wishes = wishes_of("api-designer", STRATEGIES)
    (fit,) = wishes.fitted(held)
    assert fit == wishes.under(types=("requirement", "architecture", *types), notices=notices)
    said = wishes.under(types=wishes.types)
    assert said.fitted(held) == (said,)


def test_what_a_strategy_finds_already_stands_in_without_a_word() -> None:
    wishes = wishes_of("integrator", STRATEGIES)
    assert wishes.fitted({"documentation": False}) == (wishes,)


NONE_HAS_A_TAG = "no code has a tag, so agent security-auditor finds what has none"


def test_tags_are_asked_of_the_types_in_which_somebody_gives_them() -> None:
    """Source code has no place for tags: a filter by them would leave out all of it."""
    wishes = wishes_of("security-auditor", STRATEGIES)
    architecture, code = wishes.fitted({"architecture": True, "code": False})
    assert (architecture.types, architecture.tags) == (("architecture",), wishes.tags)
    assert (code.types, code.tags) == (("code",), ())
    assert architecture.notices == (NONE_HAS_A_TAG,)
    assert wishes.fitted({"architecture": True, "code": True}) == (wishes,)
    said = wishes.under(tags=wishes.tags)
    assert said.fitted({"architecture": True, "code": False}) == (said,)
    (fit,) = wishes.fitted({"code": False, "documentation": False})
    assert (fit.types, fit.tags) == (("architecture", "code", "documentation"), ())
    assert fit.notices[1] == NONE_HAS_A_TAG.replace("code", "code and no documentation")
    (fit,) = wishes.under(types=wishes.types).fitted({"code": False})
    assert (fit.types, fit.tags) == (("architecture", "code"), ())
    assert wishes.fitted({"code": True}) == (wishes,)
    assert wishes.fitted({}) == (wishes,)


def test_tags_are_asked_in_the_same_way_where_a_strategy_is_for_all_types() -> None:
    wishes = wishes_of("security-auditor", STRATEGIES).under(types=())
    tagged, untagged = wishes.fitted({"test": False, "": False, "documentation": True, "code": False})
    assert (tagged.types, tagged.tags) == ((), wishes.tags)
    assert (untagged.types, untagged.tags) == (("test", "code"), ())
    assert tagged.notices == (NONE_HAS_A_TAG.replace("code", "test and no code"),)
    assert wishes.fitted({"documentation": True}) == wishes.fitted({}) == (wishes,)
    assert about([tagged, untagged], [])[1].startswith("agent security-auditor finds only what is with one of the tags")


def test_a_part_of_the_wishes_changes_types_and_tags_of_a_request_alone() -> None:
    request = Request("q", "n", 3, "bm25", Filter(phases=("any",), types=("test",), tags=("a",)), 0.5, 9)
    wanted = Filter(phases=("any",), types=("code",))
    assert for_part(request, Wishes(types=["code"], limit=7)) == replace(request, wanted=wanted)


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
        trace=Trace(make=tuple, terms=(), min_score=0.0, numbers={}),
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
    first = replace(first, wanted=Filter(types=("code",)), trace=replace(first.trace, numbers={"a": 1}))
    second = replace(second, wanted=Filter(types=("test",)), trace=replace(second.trace, numbers={"b": 2}))
    both = joined([first, second], 2)
    assert both.trace.numbers == {"a": 1, "b": 2}
    assert both.wanted.types == ("code", "test")
    everything = replace(second, wanted=Filter())
    assert joined([first, everything], 2).wanted.types == ()
