"""Whatever is done to the ledger in whatever order, the SQLite store answers as the reference store does."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_memory_store import Step, outcome, step
from tests.reference_store.store import MemoryStore

from commonplace.store.ledger import LedgerReading
from commonplace.store.store import Store
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, Issue, IssueEvent, IssueSelection, Reversal

NAMES = ("default", "Ünï\ue000")
ISSUES = ("a", "é\x01", "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab")
MEMORIES = ("m", "", "\uf8ff", "1b8ff5a4-6a4d-4c5e-9d3c-0123456789ab")

ids, agents = st.sampled_from(ISSUES), st.sampled_from(["", *AGENTS[:2]])
statuses = st.sampled_from([*ISSUE_STATUSES, "deferred\ue000"])
memories = st.lists(st.sampled_from(MEMORIES), max_size=3).map(tuple)
labels = st.lists(st.sampled_from(["x", "y\x01"]), max_size=2).map(tuple)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
times = st.sampled_from([float("-inf"), 0.0, 5.0, 10.0, float("inf")]) | st.floats(allow_nan=False)
some_time = st.none() | times
small = st.integers(-1, 4)

issues = st.builds(
    Issue,
    id=ids,
    title=texts,
    agent=agents,
    memory_ids=memories,
    description=texts,
    notes=texts,
    status=statuses,
    priority=small,
    issue_type=texts,
    labels=labels,
    dependencies=texts,
    comments=texts,
    rest=texts,
    created_at=times,
    updated_at=times,
    closed_at=some_time,
    close_reason=texts,
    retries=small,
    retry_at=some_time,
    claimed_by=texts,
    claimed_at=some_time,
    escalated_at=some_time,
)
selections = st.builds(
    IssueSelection,
    ids=st.lists(ids, max_size=2).map(tuple),
    agents=st.lists(agents, max_size=2).map(tuple),
    statuses=st.lists(statuses, max_size=2).map(tuple),
    memory_ids=memories,
)
runs = st.sampled_from(["r", "2b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"])
reversals = st.builds(
    Reversal, ids, runs, times, memories, texts, number=st.integers(-1, 4) | st.just(0), undone_at=some_time
)
asked = [
    step("issues", selections),
    step("unfinished", agents, memories),
    step("reversals", run=st.none() | runs, memory_ids=memories, after=small),
]
steps = st.lists(
    st.one_of(
        *asked,
        step("put_issue", issues),
        step("put_issue", issues),
        step("drop_issue", ids),
        step("add_event", st.builds(IssueEvent, ids, times, texts, texts, texts)),
        step("put_reversal", reversals),
        step("drop_reversal", ids),
        step("add_operations", times, small, keep_since=times),
    ),
    max_size=10,
)


def everything(ledger: LedgerReading) -> list[object]:
    """Return every answer of a ledger."""
    return [
        ledger.issues(IssueSelection()),
        [ledger.issue(id_) for id_ in ISSUES],
        [ledger.issues(IssueSelection(memory_ids=(id_,))) for id_ in MEMORIES],
        ledger.counts(),
        ledger.bodies(),
        ledger.events(),
        [ledger.events(id_) for id_ in ISSUES],
        ledger.reversals(),
        [ledger.reversal(id_) for id_ in ISSUES],
        [ledger.reversals(memory_ids=(id_,)) for id_ in MEMORIES],
        ledger.operations_since(float("-inf")),
    ]


def take(store: Store, name: str, taken: list[Step]) -> list[object]:
    """Take steps in one change, and return what each gave and what could be read at the end of the change."""
    with store.change_memories(name) as change:
        given_back = [outcome(partial(getattr(change.ledger, method), *values, **o)) for method, values, o in taken]
        return [*given_back, everything(change.ledger)]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), steps), max_size=4), st.lists(st.one_of(asked), max_size=4))
def test_both_stores_answer_alike(changes: list[tuple[str, list[Step]]], questions: list[Step]) -> None:
    """The reference looks at all there is; indexes and tables beside must give the same."""
    with tempfile.TemporaryDirectory() as directory:
        reference, sqlite = MemoryStore(), Store.create(Path(directory) / "store.db")
        try:
            for name, taken in changes:
                assert take(sqlite, name, taken) == take(reference, name, taken)
            reference.backup(Path(directory) / "copy.db")
            copy = Store.open(Path(directory) / "copy.db", create=False)
            for name in NAMES:
                expected = everything(reference.ledger(name))
                assert everything(sqlite.ledger(name)) == everything(copy.ledger(name)) == expected
                for method, values, options in questions:
                    answers = [
                        getattr(store.ledger(name), method)(*values, **options) for store in (sqlite, copy, reference)
                    ]
                    assert answers[0] == answers[1] == answers[2]
            copy.close()
            assert sqlite.check() == reference.check()
            assert (sqlite.namespaces(), sqlite.change()) == (reference.namespaces(), 0)
        finally:
            sqlite.close()
