"""A writer that is killed loses nothing that it acknowledged, and leaves nothing half done."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.contract.graphs import EVER
from tests.faults.dying import COMMON, prepared, steps, take
from tests.processes import run

import commonplace
from commonplace.engine import Engine

POINTS, IN_SHORT = 200, 20
STRIDE = 59
"""How many steps a point comes after the one before; so even the short form has points in steps of every kind."""
CUT_SHORT = "interrupted before it could scan the files"
MARKER = 3
"""The place, among the words of a memory, of the one that no other has."""
EVERY_TORN = 6
"""One in so many is killed inside of a write, the others between two calls."""
KEPT = 4
"""How many steps come from one copy of the store to the next: no writer that is killed takes more before."""
AFTERWARDS = 4
"""How many steps are taken after a kill in the short form; the long one takes all that are left."""


def dying(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a process that lives until it is killed."""
    return run(Path(__file__).with_name("dying.py"), *arguments)


def everything(book: Engine) -> dict[str, Any]:
    """Return all that a store holds but times and what is made anew from it."""
    memories = book.list(statuses=(), limit=10_000)
    return {
        "counts": book.index_status().counts,
        "graph": graph_of(book),
        "links": [(link.source, link.target, link.type, link.strength) for link in book.links()],
        "memories": {
            memory.id: [
                (each.version, each.content, each.status, each.tier, each.tags, each.metadata, each.use_count)
                for each in book.versions(memory.id)
            ]
            for memory in memories
        },
    }


def graph_of(book: Engine) -> dict[str, Any]:
    """Return what a graph says, without the ids that were made and the time when it was written."""
    graph = book._runtime.store.graph("default")
    names = {entity.id: entity.name for entity in graph.list_entities(EVER)}
    return {
        "counts": graph.counts(),
        "names": sorted(names.values()),
        "said": sorted(each.id for each in graph.list_episodes(EVER) if not each.memory),
        "facts": sorted(
            (
                *(names[each.source], each.type, names[each.target], each.fact, bool(each.dispute)),
                *(each.valid_from or 0.0, each.valid_to or 0.0, len(graph.happenings("relation", each.id))),
            )
            for each in graph.list_relations(EVER)
        ),
    }


@dataclass(frozen=True)
class Course:
    """What may be found: `states[n]` is what the store holds after n steps; step n has `moments[n]` moments.

    There is a copy of the store as it was before each step of a number that `KEPT` divides.
    """

    copies: Path
    states: list[dict[str, Any]]
    log_bytes: int
    moments: list[int]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Live the whole course, once in this process to know each state, once in another to count its moments."""
    place = tmp_path_factory.mktemp("course")
    here, there, copies = place / "here", place / "there", place / "copies"
    with commonplace.open(here) as book:
        book.remember_many(prepared())
        book.search(COMMON)
        states = [everything(book)]
    for first in range(0, len(steps()), KEPT):
        shutil.copytree(here, copies / str(first))
        with commonplace.open(here) as book:
            for step in steps()[first : first + KEPT]:
                take(book, step)
                states.append(everything(book))
    shutil.copytree(copies / "0", there)
    counted = dying("count", there)
    assert counted.returncode == 0, counted.stderr
    log_bytes, *moments = map(int, counted.stdout.splitlines()[-1].split())
    return Course(copies, states, log_bytes, moments)


def check_finding(book: Engine) -> None:
    """Look for all memories at once: what is live is found with its present words, what is archived is not."""
    live = {memory.id: memory.content for memory in book.list(limit=10_000)}
    hits = book.search(COMMON, limit=1000, kinds=["memory"], method="bm25", min_score=0.0).hits
    assert {hit.owner_id: hit.text for hit in hits} == live


def check_forgotten(course: Course, taken: int, book: Engine) -> None:
    """Look for the words of what was forgotten so far in every file, and for receipts of it that are finished."""
    there = course.states[taken]["memories"]
    gone = [
        content
        for state in course.states[:taken]
        for id_, versions in state["memories"].items()
        if id_ not in there
        for _, content, *_ in versions
    ]
    markers = {content.split()[MARKER].encode() for content in gone}
    files = [path for path in book.directory.rglob("*") if path.is_file()]
    assert [(path, marker) for path in files for marker in markers if marker in path.read_bytes()] == []
    receipts = book.receipts()
    assert len(receipts) == [name for name, _ in steps()[:taken]].count("forget")
    assert bool(receipts) == bool(markers)
    assert all(receipt.verified or CUT_SHORT in str(receipt.notices) for receipt in receipts)


def step_of(number: int) -> int:
    """Return the step in which a point is: each is hit as often as any other, though some write much more."""
    return number * STRIDE % len(steps())


def kill(course: Course, store: Path, number: int) -> int:
    """Kill a writer at one point; return how many steps are acknowledged."""
    chance = random.Random(f"point {number}")
    if number % EVERY_TORN:
        step = step_of(number)
        first = step - step % KEPT
        shutil.copytree(course.copies / str(first), store)
        killed = dying("moment", store, first, step, chance.randint(1, course.moments[step]))
        assert (killed.returncode, len(killed.stdout.splitlines())) == (-signal.SIGKILL, step - first), killed.stderr
        return step
    shutil.copytree(course.copies / "0", store)
    killed = dying("torn", store, chance.randrange(4096, course.log_bytes * 9 // 10))
    assert killed.returncode == -signal.SIGXFSZ, killed.stderr
    return len(killed.stdout.splitlines())


def test_the_short_form_kills_in_steps_of_every_kind() -> None:
    """Another course, or another number of points, may need another stride."""
    killed = {steps()[step_of(number)][0] for number in range(IN_SHORT) if number % EVERY_TORN}
    assert killed == {name for name, _ in steps()}


@pytest.mark.parametrize(
    ("number", "afterwards"),
    [
        *((number, AFTERWARDS) for number in range(IN_SHORT)),
        # The moments that are seldom hit, and whatever comes afterwards.
        *(pytest.param(number, len(steps()), marks=pytest.mark.soak) for number in range(POINTS)),
    ],
)
def test_a_killed_writer_leaves_every_acknowledged_memory_and_none_half(
    course: Course, tmp_path: Path, number: int, afterwards: int
) -> None:
    """A client may be closed, an agent stopped, a battery empty, at any moment; the next process goes on."""
    store = tmp_path / "store"
    acknowledged = kill(course, store, number)
    with commonplace.open(store) as book:
        left = everything(book)
        assert left in course.states[acknowledged : acknowledged + 2], f"while {steps()[acknowledged]}"
        taken = acknowledged + (left != course.states[acknowledged])
        check_finding(book)
        examined = book.doctor()
        may_be_unfinished = {"index", "forgetting"} if steps()[acknowledged][0] == "forget" else {"index"}
        assert {finding.part for finding in examined.findings} <= may_be_unfinished, examined.findings
        assert examined.is_healthy, examined.findings
        check_forgotten(course, taken, book)
        check_finding(book)
        assert everything(book) == left
        end = min(taken + afterwards, len(steps()))
        for step in steps()[taken:end]:
            take(book, step)
        check_finding(book)
        assert everything(book) == course.states[end]
        check_forgotten(course, end, book)
        assert book.doctor(mend=False).is_healthy
