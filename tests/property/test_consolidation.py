"""Whatever agents do, a dry run tells before, and undoing it leaves the memories and the vault exactly as they were."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import commonplace
from commonplace.consolidation.runner import RunOptions, RunReport, agent_of
from commonplace.consolidation.runtime import ConfidenceConfig
from commonplace.engine import Engine
from commonplace.errors import CommonplaceError
from commonplace.retention import DAY_S
from commonplace.types import Selection
from commonplace.types.ledger import AGENTS

NOW = 1_750_000_000.0
TEXTS = (
    "The office in Lyon opens at eight in the morning.",
    "At eight in the morning the office in Lyon opens.",
    "The office in Lyon opens at nine in the morning.",
    "Mira Okafor works with Lena Brandt at Acme.",
    "Lena Brandt and Mira Okafor wrote the Acme handbook.",
    "Ravens nest in the old lighthouse of Skagen.",
    "In the old lighthouse of Skagen ravens nest.",
    "# Decision\n\n- we chose Postgres\n- it keeps invoices",
    "[[Postgres]] --- title: x",
)

memories = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.integers(0, 90),
        st.integers(0, 6),
        st.sampled_from(["short", "medium", "long"]),
        st.sets(st.sampled_from(["red", "blue", "a b"])),
        st.sampled_from([0.2, 1.0]),
    ),
    min_size=2,
    max_size=7,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.lists(st.sampled_from(AGENTS), min_size=1, max_size=5, unique=True)),
        st.tuples(st.just("process"), st.integers(0, 20)),
        st.tuples(st.just("undo"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
    ),
    min_size=2,
    max_size=8,
)


def fill(book: Engine, clock: list[float], given_: list[Any]) -> None:
    for number, (text, days, uses, tier, tags, trust) in enumerate(sorted(given_, key=lambda each: -each[1])):
        clock[0] = NOW - days * DAY_S
        id_ = str(number)
        book.remember(text, id=id_, tier=tier, tags=sorted(tags), trust=trust, force=True)
        for _ in range(uses):
            book.touch(id_)
    clock[0] = NOW


def state(book: Engine) -> tuple[list[Any], dict[str, bytes]]:
    """Return all that is stored of memories, without the numbers of rows, and the notes of the vault."""
    store, name = book._runtime.store, book.namespace
    found = store.memories(name, Selection(order="id"))
    versions = [replace(each, number=0) for memory in found for each in store.versions(name, memory.owner.id)]
    notes = {path.name: path.read_bytes() for path in (book.directory / "vault").glob("*.md")}
    return [*versions, *store.links(name)], notes


class Course:
    """Takes steps, and remembers what was there before each change that stands."""

    def __init__(self, book: Engine, clock: list[float]) -> None:
        self._book = book
        self._clock = clock
        self._before: list[tuple[str, Any]] = []

    def run(self, agents: list[str]) -> None:
        known = state(self._book)
        rehearsed = self._book.consolidate(agents, dry_run=True)
        assert state(self._book) == known
        report = self._book.consolidate(agents, rate_limit=0)
        assert report.errors == rehearsed.errors == ()
        if report.applied:
            self._before.append((report.run, known))

    def process(self, place: int) -> None:
        waiting, known = self._book.ledger.query(), state(self._book)
        if not waiting:
            return
        try:
            report = self._book.process_issue(waiting[place % len(waiting)]["id"], rate_limit=0)
        except CommonplaceError:
            assert state(self._book) == known
        else:
            self._before.append((report.run, known))

    def undo(self, _: int = 0) -> None:
        if self._before:
            run, known = self._before.pop()
            assert self._book.undo_consolidation(run).notices == ()
            assert state(self._book) == known

    def wait(self, days: int) -> None:
        self._clock[0] += days * DAY_S

    def undo_everything(self) -> None:
        while self._before:
            self.undo()


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(given_=memories, taken=steps)
def test_undoing_leaves_everything_as_it_was(given_: list[Any], taken: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as place:
        clock = [NOW]
        with commonplace.open(Path(place) / "store", clock=lambda: clock[0]) as book:
            fill(book, clock, given_)
            course = Course(book, clock)
            for kind, what in taken:
                getattr(course, kind)(what)
            course.undo_everything()
            assert book.doctor().is_healthy


thresholds = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda pair: ConfidenceConfig(max(pair), min(pair)))
filed = st.lists(
    st.tuples(
        st.sampled_from(AGENTS),
        st.sets(st.integers(0, 6), min_size=1, max_size=3),
        st.sampled_from(["gc", "reinforce", "merge", "link", "promote"]),
        st.sampled_from(["open", "in_progress", "blocked", "closed"]),
    ),
    max_size=4,
)


def prepare(book: Engine, clock: list[float], taken: list[tuple[str, Any]], issues: list[Any]) -> None:
    """Let agents have worked on a store before, and others have filed issues."""
    course = Course(book, clock)
    for kind, what in taken:
        getattr(course, kind)(what)
    for agent, numbers, action, status in issues:
        ids = [memory.id for memory in book.list(limit=100) if memory.id in set(map(str, numbers))]
        if not ids:
            continue
        issue = book.ledger.create(agent, ids, action)
        with suppress(CommonplaceError):
            if status == "in_progress":
                book.ledger.claim(issue)
            elif status == "blocked":
                book.ledger.block(issue, "no")
            elif status == "closed":
                book.ledger.close(issue, "no")


def everything(book: Engine) -> tuple[object, ...]:
    ledger = book._runtime.store.ledger(book.namespace)
    return state(book), book.ledger.selected(), ledger.events(), ledger.reversals(), book._runtime.store.change()


def told_of(report: RunReport) -> tuple[object, ...]:
    """Return all that a report tells but the names of its issues, which are random."""
    results = {
        agent: [each.model_copy(update={"beads_issue_id": None}) for each in found]
        for agent, found in report.results.items()
    }
    return results, report.outcomes, report.errors, report.skipped, report.applied


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    given_=memories,
    taken=steps,
    issues=filed,
    confidence=thresholds,
    agents=st.lists(st.sampled_from(AGENTS), min_size=1, max_size=5, unique=True),
)
def test_a_dry_run_predicts_the_run(
    given_: list[Any],
    taken: list[tuple[str, Any]],
    issues: list[Any],
    confidence: ConfidenceConfig,
    agents: list[str],
) -> None:
    """Whoever looks before agents act decides by what is shown: each result, what becomes of it, and each count."""
    with TemporaryDirectory() as place:
        clock = [NOW]
        with commonplace.open(Path(place) / "store", clock=lambda: clock[0]) as book:
            fill(book, clock, given_)
            prepare(book, clock, taken, issues)
            before = everything(book)
            dry = book.consolidate(agents, dry_run=True, confidence=confidence)
            assert everything(book) == before
            real = book.consolidate(agents, rate_limit=0, confidence=confidence)
            assert told_of(dry) == told_of(real)


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(given_=memories, taken=steps, issues=filed, confidence=thresholds, place_=st.integers(0, 20))
def test_a_dry_run_of_one_item_or_issue_predicts_it(
    given_: list[Any], taken: list[tuple[str, Any]], issues: list[Any], confidence: ConfidenceConfig, place_: int
) -> None:
    """A preview of a single proposal is as true as that of a run, errors included."""
    with TemporaryDirectory() as place:
        clock = [NOW]
        with commonplace.open(Path(place) / "store", clock=lambda: clock[0]) as book:
            fill(book, clock, given_)
            prepare(book, clock, taken, issues)
            for name in AGENTS:
                dry, real = (
                    agent_of(name, book, RunOptions(dry_run=is_dry, rate_limit=0, confidence=confidence))
                    for is_dry in (True, False)
                )
                found = real.scan()
                for item in found[place_ % len(found) :][:1] if found else ():
                    before = everything(book)
                    predicted = outcome_of(dry.process_item, item)
                    assert everything(book) == before
                    assert predicted == outcome_of(real.process_item, item)
            waiting = book.ledger.selected()
            for issue in waiting[place_ % len(waiting) :][:1] if waiting else ():
                before = everything(book)
                predicted = outcome_of(lambda id_: told_of(book.process_issue(id_, dry_run=True)), issue.id)
                assert everything(book) == before
                assert predicted == outcome_of(lambda id_: told_of(book.process_issue(id_, rate_limit=0)), issue.id)


def outcome_of(act: Callable[[str], Any], item: str) -> object:
    """Return what came of something, or the error, without the name of the issue."""
    try:
        result = act(item)
    except CommonplaceError as error:
        return type(error), str(error)
    return result if isinstance(result, tuple) else result.model_copy(update={"beads_issue_id": None})
