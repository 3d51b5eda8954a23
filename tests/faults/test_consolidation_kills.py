"""Consolidation that is killed leaves nothing half done, and what two processes do at once is done once."""

from __future__ import annotations

import json
import random
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.consolidators import opened, prepare
from tests.processes import Child, start

from commonplace.engine import Engine
from commonplace.types import Selection
from commonplace.types.ledger import IssueSelection

POINTS, IN_SHORT = 50, 6


def process(path: Path, what: int | str) -> Child:
    return start(Path(__file__).with_name("consolidators.py"), path, what)


def dump(book: Engine) -> list[Any]:
    """Return all that the store holds of memories, past versions and links too, without the numbers of rows."""
    store, name = book._runtime.store, book.namespace
    memories = store.memories(name, Selection(order="id"))
    versions = [replace(each, number=0) for memory in memories for each in store.versions(name, memory.owner.id)]
    return [*versions, *store.links(name)]


def outcome(path: Path) -> dict[str, Any]:
    """Return what a store holds once it was consolidated, without the ids of issues and the order of runs."""
    with opened(path) as book:
        issues = book._runtime.store.ledger(book.namespace).issues(IssueSelection())
        assert book.doctor().is_healthy
        return {
            "memories": dump(book),
            "issues": sorted((issue.agent, issue.memory_ids, issue.status, issue.title) for issue in issues),
            "vault": {note.name: note.read_text() for note in sorted((path / "vault").rglob("*"))},
        }


def undone(path: Path) -> tuple[list[Any], dict[str, str]]:
    """Undo each change that stands, the latest first, and return the memories and the notes that are left."""
    with opened(path) as book:
        for reversal in reversed(book._runtime.store.ledger(book.namespace).reversals()):
            book.undo_consolidation(reversal.issue)
    found = outcome(path)
    return found["memories"], found["vault"]


@dataclass(frozen=True)
class Course:
    """A store before the run, what it holds, what it holds after it, and how many moments the run has."""

    before: Path
    memories: list[Any]
    expected: dict[str, Any]
    moments: int


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    place = tmp_path_factory.mktemp("course")
    prepare(place / "before")
    with opened(place / "before") as book:
        memories = dump(book)
    shutil.copytree(place / "before", place / "there")
    run = process(place / "there", 0)
    told, failed = run.communicate()
    assert run.returncode == 0, failed
    return Course(place / "before", memories, outcome(place / "there"), int(told))


def finished(course: Course, path: Path, number: int) -> dict[str, Any]:
    """Kill a run at a moment, and return what the next run makes of it."""
    shutil.copytree(course.before, path)
    killed = process(path, number)
    _, failed = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, (number, failed)
    with opened(path) as book:
        report = book.consolidate(rate_limit=0)
        assert report.errors == ()
    return outcome(path)


def points(course: Course, count: int) -> list[int]:
    """Return moments, seeded, so that they are the same in each run of the tests that has as many moments."""
    return sorted(random.Random(7).sample(range(1, course.moments + 1), min(count, course.moments)))


def test_the_run_that_is_killed_does_something_of_every_kind(course: Course) -> None:
    """So that what the other tests compare with is not empty."""
    done = {(agent, status) for agent, _, status, _ in course.expected["issues"]}
    assert {("decay", "closed"), ("merge", "closed"), ("merge", "open"), ("promote", "closed")} <= done
    assert len(course.expected["vault"]) == 2
    assert course.expected["memories"] != course.memories
    assert course.moments > 10 * POINTS


def test_a_killed_run_is_finished_by_the_next_one_and_can_be_undone(course: Course, tmp_path: Path) -> None:
    for number in points(course, IN_SHORT):
        assert finished(course, tmp_path / str(number), number) == course.expected, number
        assert undone(tmp_path / str(number)) == (course.memories, {}), number


@pytest.mark.soak
def test_a_run_killed_at_many_more_moments_is_finished_by_the_next_one(course: Course, tmp_path: Path) -> None:
    for number in points(course, POINTS):
        assert finished(course, tmp_path / str(number), number) == course.expected, number
        assert undone(tmp_path / str(number)) == (course.memories, {}), number


def test_what_two_runs_do_at_once_is_done_once(course: Course, tmp_path: Path) -> None:
    """Each item in one of them alone: no memory is merged twice, no issue filed twice, no note written twice."""
    path = tmp_path / "store"
    shutil.copytree(course.before, path)
    runs = [process(path, "wait") for _ in range(3)]
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
    told = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], told
    reports = [json.loads(said) for said, _ in told]
    assert [report["errors"] for report in reports] == [[], [], []]
    found = outcome(path)
    assert found["memories"] == course.expected["memories"]
    assert found == course.expected
    assert sum(report["applied"] for report in reports) == sum(
        status == "closed" for _, _, status, _ in course.expected["issues"]
    )
