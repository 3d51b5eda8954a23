"""Which runs there were, and what of them can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

import commonplace
from commonplace.consolidation import runner
from commonplace.consolidation.decay import DecayAnalyzer
from commonplace.consolidation.runner import ConsolidationRun
from commonplace.consolidation.runtime import ConfidenceConfig
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.retention import DAY_S

from .conftest import NOW, Clock, Shelf


@pytest.fixture
def faded(book: Engine, clock: Clock) -> Engine:
    """Two memories that nobody used for two months, and one that nobody used for two weeks."""
    clock.now -= 61 * DAY_S
    book.remember("The harbour of Aegina froze over", id="harbour")
    book.remember("Ravens nest in the old lighthouse", id="ravens")
    clock.now += 47 * DAY_S
    book.remember("The ferry leaves at nine", id="ferry")
    clock.now += 14 * DAY_S
    return book


def when(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


COUNTERS: Mapping[str, Any] = {"before": {"short": 3, "links": 0}, "after": {"short": 1, "archived": 2, "links": 0}}


def test_a_run_tells_when_it_was_who_ran_and_what_came_of_it(faded: Engine) -> None:
    report = faded.consolidate(["promote", "decay"])
    assert faded.consolidation_runs() == [
        ConsolidationRun(
            report.run, when(NOW), ("decay", "promote"), 2, undone=0, standing=2, proposed=1, errors=0, **COUNTERS
        )
    ]
    assert faded.consolidation_runs()[0].to_dict() == {
        "run": report.run,
        "at": "2025-06-15T15:06:40Z",
        "agents": ["decay", "promote"],
        "applied": 2,
        "undone": 0,
        "standing": 2,
        "proposed": 1,
        "errors": 0,
        **COUNTERS,
    }


def test_the_latest_run_comes_first_and_no_more_than_are_asked_for(faded: Engine, clock: Clock) -> None:
    first = faded.consolidate(["decay"])
    clock.now += 60
    (waiting,) = faded.ledger.query()
    second = faded.process_issue(waiting["id"])
    found = faded.consolidation_runs()
    assert [(each.run, each.applied, each.agents) for each in found] == [
        (second.run, 1, ("decay",)),
        (first.run, 2, ("decay",)),
    ]
    assert faded.consolidation_runs(limit=1) == found[:1]


def test_what_was_undone_is_told_and_what_stands_can_be(faded: Engine) -> None:
    report = faded.consolidate(["decay"])
    one = next(each for each in report.results["decay"] if each.action == "gc").beads_issue_id  # type: ignore[attr-defined]
    faded.undo_consolidation(str(one))
    (found,) = faded.consolidation_runs()
    assert (found.applied, found.undone, found.standing) == (2, 1, 1)
    faded.undo_consolidation(found.run)
    (found,) = faded.consolidation_runs()
    assert (found.applied, found.undone, found.standing) == (2, 2, 0)


def test_what_was_forgotten_cannot_be_undone_and_was_applied_all_the_same(faded: Engine) -> None:
    faded.consolidate(["decay"])
    faded.forget("harbour")
    (found,) = faded.consolidation_runs()
    assert (found.applied, found.undone, found.standing) == (2, 0, 1)


def test_a_run_that_was_stopped_is_told_by_what_it_changed(faded: Engine, shelf: Shelf) -> None:
    """It wrote nothing at its end; what it did can be undone."""
    agent = DecayAnalyzer(book=shelf)
    agent.process_item("harbour")
    assert faded.consolidation_runs() == [ConsolidationRun(agent.run_id, when(NOW), ("decay",), 1, 0, 1)]
    faded.undo_consolidation(agent.run_id)


def test_a_run_that_is_listed_and_changed_nothing_is_not_called_unknown(faded: Engine) -> None:
    faded.consolidate(["decay"], confidence=ConfidenceConfig(auto_threshold=1.0, log_threshold=1.0))
    (found,) = faded.consolidation_runs()
    assert (found.applied, found.proposed) == (0, 3)
    with pytest.raises(NotFoundError, match=f"run '{found.run}' changed nothing"):
        faded.undo_consolidation(found.run)


def test_runs_that_came_to_nothing_and_dry_runs_are_not_among_them(faded: Engine) -> None:
    faded.consolidate(["decay"], dry_run=True)
    faded.consolidate(["merge"])
    assert faded.consolidation_runs() == []


def test_a_run_that_failed_is_among_them(faded: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: DecayAnalyzer) -> list[str]:
        raise ZeroDivisionError

    monkeypatch.setattr(DecayAnalyzer, "scan", fail)
    faded.consolidate(["decay"])
    assert [(each.applied, each.proposed, each.errors) for each in faded.consolidation_runs()] == [(0, 0, 1)]


def test_no_more_runs_are_remembered_than_a_person_looks_through(
    faded: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest goes; what it changed is still told, since it can still be undone."""
    monkeypatch.setattr(runner, "KEPT", 1)
    first = faded.consolidate(["decay"])
    clock.now += 60
    second = faded.consolidate(["decay"], rate_limit=0)
    assert second.applied == 0
    (waiting,) = faded.ledger.query()
    faded.process_issue(waiting["id"])
    assert [each.proposed for each in faded.consolidation_runs(1)] == [0]
    monkeypatch.undo()
    told = faded.consolidation_runs()
    assert [(each.run == first.run, each.proposed) for each in told] == [(False, 0), (True, None)]


def test_each_namespace_has_runs_of_its_own_which_go_with_it(faded: Engine, clock: Clock) -> None:
    faded.consolidate(["decay"])
    with commonplace.open(faded.directory, namespace="other", embedder="hashing", clock=clock) as other:
        assert other.consolidation_runs() == []
    faded.forget_namespace("default", confirm="default")
    assert faded.consolidation_runs() == []


@pytest.mark.parametrize("limit", [0, 1001, True, "5"])
def test_a_limit_that_is_none_is_refused(book: Engine, limit: object) -> None:
    with pytest.raises(UsageError, match="limit is"):
        book.consolidation_runs(limit)  # type: ignore[arg-type]
