"""Whatever agents do, in whatever order, undoing it leaves the memories and the vault exactly as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import commonplace
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
    store, name = book._store, book.namespace
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


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
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
