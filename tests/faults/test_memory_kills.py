"""A writer that is killed loses nothing that it acknowledged, and leaves nothing half done."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.dying import COMMON, prepared, steps, take

import commonplace
from commonplace.engine import Engine

ROOT = Path(__file__).parents[2]
POINTS, IN_SHORT = 200, 25
EVERY_TORN = 5
"""One in so many is killed inside of a write, the others between two calls."""


def dying(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a process that lives until it is killed."""
    script = str(Path(__file__).with_name("dying.py"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, script, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )


def everything(book: Engine) -> dict[str, Any]:
    """Return all that a store holds but times and what is made anew from it."""
    memories = book.list(statuses=(), limit=10_000)
    return {
        "counts": book.index_status().counts,
        "links": [(link.source, link.target, link.type, link.strength) for link in book.links()],
        "memories": {
            memory.id: [
                (each.version, each.content, each.status, each.tier, each.tags, each.metadata, each.use_count)
                for each in book.versions(memory.id)
            ]
            for memory in memories
        },
    }


@dataclass(frozen=True)
class Course:
    """What may be found: `states[n]` is what the store holds after n steps."""

    before: Path
    states: list[dict[str, Any]]
    moments: int
    log_bytes: int


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Live the whole course, once in this process to know each state, once in another to count its moments."""
    place = tmp_path_factory.mktemp("course")
    before, here, there = place / "before", place / "here", place / "there"
    with commonplace.open(before) as book:
        book.remember_many(prepared())
        book.search(COMMON)
    shutil.copytree(before, here)
    shutil.copytree(before, there)
    with commonplace.open(here) as book:
        states = [everything(book)]
        for step in steps():
            take(book, step)
            states.append(everything(book))
    counted = dying("count", there)
    assert counted.returncode == 0, counted.stderr
    moments, log_bytes = map(int, counted.stdout.split()[-2:])
    return Course(before, states, moments, log_bytes)


def check_finding(book: Engine) -> None:
    """Look for all memories at once: what is live is found with its present words, what is archived is not."""
    live = {memory.id: memory.content for memory in book.list(limit=10_000)}
    hits = book.search(COMMON, limit=1000, kinds=["memory"], method="bm25", min_score=0.0).hits
    assert {hit.owner_id: hit.text for hit in hits} == live


def survive(course: Course, store: Path, number: int) -> None:
    """Kill a writer at one point, and look at what is left as the next process does."""
    shutil.copytree(course.before, store)
    chance = random.Random(f"point {number}")
    if number % EVERY_TORN:
        killed = dying("moment", store, chance.randrange(1, course.moments * 19 // 20))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    else:
        killed = dying("torn", store, chance.randrange(4096, course.log_bytes * 9 // 10))
        assert killed.returncode == -signal.SIGXFSZ, killed.stderr
    done = len(killed.stdout.splitlines())
    with commonplace.open(store) as book:
        left = everything(book)
        assert left in (course.states[done], course.states[done + 1]), f"after {done} of {steps()[done]}"
        check_finding(book)
        examined = book.doctor()
        assert [finding for finding in examined.findings if finding.part != "index"] == []
        assert examined.is_healthy, examined.findings
        check_finding(book)
        assert everything(book) == left
        for step in steps()[done + (left != course.states[done]) :]:
            take(book, step)
        check_finding(book)
        assert everything(book) == course.states[-1], "the next process goes on where the killed one ended"
        assert book.doctor(mend=False).is_healthy


@pytest.mark.parametrize("number", range(IN_SHORT))
def test_a_killed_writer_leaves_every_acknowledged_memory_and_none_half(
    course: Course, tmp_path: Path, number: int
) -> None:
    """A client may be closed, an agent stopped, a battery empty, at any moment."""
    survive(course, tmp_path / "store", number)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(IN_SHORT, POINTS))
def test_the_same_holds_at_200_points(course: Course, tmp_path: Path, number: int) -> None:
    """The moments that are seldom hit."""
    survive(course, tmp_path / "store", number)
