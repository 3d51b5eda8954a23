"""What every store promises about the ledger."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.stores import UUID, memory

from commonplace.errors import StoreError, UsageError
from commonplace.store.store import Store
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal, RunChanges

FULL = Issue(
    id="commonplace-0123abcd",
    title="Merge 2 memories \ue000",
    agent="merge",
    memory_ids=("a\x01b", UUID),
    description="why",
    notes='{"memory_ids":["a"]}\nfailed: no \uf8ff',
    status="in_progress",
    priority=1,
    issue_type="bug",
    labels=("consolidation:merge", "urgency:high"),
    dependencies='[{"x":1}]',
    comments='["c"]',
    rest='{"owner":"me"}',
    created_at=1.5,
    updated_at=2.5,
    closed_at=3.5,
    close_reason="done",
    retries=2,
    retry_at=4.5,
    claimed_by="merge@host:1",
    claimed_at=5.5,
    escalated_at=6.5,
)
UNDO = Reversal(FULL.id, UUID, 7.5, ("a\x01b", UUID), '[["revive","a"]]')


def put(store: Store, *issues: Issue, name: str = "n") -> None:
    """Write issues in one change."""
    with store.change_memories(name) as change:
        for issue in issues:
            change.ledger.put_issue(issue)


def ids(store: Store, name: str = "n", **wanted: object) -> list[str]:
    """Return the ids of the issues that a selection chooses."""
    return [issue.id for issue in store.ledger(name).issues(IssueSelection(**wanted))]  # type: ignore[arg-type]


class TestIssues:
    def test_an_issue_comes_back_with_every_field(self, store: Store) -> None:
        """It goes to beads and comes from there: nothing may be lost on the way."""
        plain = Issue("x", "t")
        put(store, FULL, plain)
        ledger = store.ledger("n")
        assert ledger.issue(FULL.id) == FULL
        assert ledger.issue("x") == plain
        assert ledger.issue("X") is None
        assert ledger.issues(IssueSelection()) == [plain, FULL]
        told = (FULL.notes, FULL.dependencies, FULL.comments, FULL.rest)
        assert ledger.bodies() == [(FULL.id, told), ("x", ("{}", "[]", "[]", "{}"))]

    def test_an_issue_takes_the_place_of_the_one_with_its_id(self, store: Store) -> None:
        """It is found by the memories that it names now, and no longer by those that it named."""
        put(store, FULL)
        put(store, replace(FULL, memory_ids=("c",), status="closed", agent="decay"))
        assert ids(store) == ids(store, memory_ids=("c",)) == ids(store, statuses=("closed",)) == [FULL.id]
        assert ids(store, memory_ids=(UUID,)) == ids(store, statuses=("in_progress",)) == []
        assert store.ledger("n").counts() == {("decay", "closed"): 1}

    def test_the_memories_that_issues_of_an_agent_name_are_told_by_status(self, store: Store) -> None:
        """Agents leave alone what waits; however many issues there are, these are ids and no more."""
        put(store, FULL, Issue("x", "t", "merge", ("c", UUID), status="open"), Issue("y", "t", "decay", ("d",)))
        ledger = store.ledger("n")
        assert ledger.memories_named("merge", ("open", "in_progress")) == {"a\x01b", "c", UUID}
        assert ledger.memories_named("merge", ("in_progress",)) == {"a\x01b", UUID}
        assert ledger.memories_named("merge", ()) == ledger.memories_named("merge", ("closed",)) == set()
        assert store.ledger("m").memories_named("merge", ("open",)) == set()

    def test_a_selection_combines_its_fields(self, store: Store) -> None:
        """Values of one field are alternatives, fields add up."""
        put(
            store,
            Issue("c", "t", "merge", ("m", "n"), status="open", labels=("x",), created_at=1.0),
            Issue("b", "t", "decay", ("m",), status="open", labels=("x", "y"), created_at=2.0),
            Issue("a", "t", "decay", ("n",), status="blocked", labels=(), created_at=2.0),
            Issue("d", "t", "", (), status="deferred", created_at=0.5),
        )
        assert ids(store) == ["d", "c", "a", "b"]
        assert ids(store, agents=("decay",)) == ["a", "b"]
        assert ids(store, agents=("decay", "merge"), statuses=("open",)) == ["c", "b"]
        assert ids(store, memory_ids=("m",)) == ["c", "b"]
        assert ids(store, memory_ids=("m", "n"), agents=("decay",), ids=("a", "zz", "a")) == ["a"]
        assert ids(store, statuses=("deferred",)) == ["d"]
        assert store.ledger("n").counts() == {
            ("merge", "open"): 1,
            ("decay", "open"): 1,
            ("decay", "blocked"): 1,
            ("", "deferred"): 1,
        }

    def test_an_unfinished_issue_is_found_by_its_whole_set_of_memories(self, store: Store) -> None:
        """A part of the set is another piece of work, and a closed one is done."""
        put(
            store,
            Issue("late", "t", "merge", ("a", "b"), created_at=3.0),
            Issue("b", "t", "merge", ("b", "a"), status="blocked", created_at=2.0),
            Issue("a", "t", "merge", ("a", "b"), status="in_progress", created_at=2.0),
            Issue("closed", "t", "merge", ("a", "b"), status="closed", created_at=1.0),
            Issue("part", "t", "merge", ("a",), created_at=1.0),
            Issue("other", "t", "decay", ("a", "b"), created_at=1.0),
            Issue("none", "t", "decay", (), created_at=1.0),
        )
        found = store.ledger("n").unfinished
        first, none = found("merge", ("b", "a", "b")), found("decay", ())
        assert first is not None and none is not None
        assert (first.id, none.id) == ("a", "none")
        assert found("merge", ("a", "b", "c")) is found("promote", ("a", "b")) is found("merge", ()) is None

    def test_an_issue_goes_with_its_events_and_what_undoes_it(self, store: Store) -> None:
        """Nothing of it is left to be found."""
        put(store, FULL, Issue("x", "t"))
        with store.change_memories("n") as change:
            for issue in (FULL.id, "x"):
                change.ledger.add_event(IssueEvent(issue, 1.0, "me", "created"))
            change.ledger.put_reversal(UNDO)
        with store.change_memories("n") as change:
            assert change.ledger.drop_issue(FULL.id)
            assert not change.ledger.drop_issue(FULL.id)
        assert ids(store) == ["x"]
        assert ids(store, memory_ids=(UUID,)) == []
        assert [event.issue for event in store.ledger("n").events()] == ["x"]
        assert store.ledger("n").reversals() == []
        assert store.check() == []

    def test_what_does_not_fit_is_refused_before_anything_is_written(self, store: Store) -> None:
        """Times are numbers and integers have 64 bits."""
        with store.change_memories("n") as change:
            for issue in (replace(FULL, created_at=math.nan), replace(FULL, retry_at=math.nan)):
                with pytest.raises(UsageError, match="is not a number"):
                    change.ledger.put_issue(issue)
            with pytest.raises(UsageError, match="64 bits"):
                change.ledger.put_issue(replace(FULL, retries=2**63))
            with pytest.raises(UsageError, match="is not a number"):
                change.ledger.add_event(IssueEvent("x", math.nan, "me", "created"))
            with pytest.raises(UsageError, match="is not a number"):
                change.ledger.put_reversal(replace(UNDO, undone_at=math.nan))
            with pytest.raises(UsageError, match="below 0"):
                change.ledger.put_reversal(replace(UNDO, number=-1))
            with pytest.raises(UsageError, match="64 bits"):
                change.ledger.put_reversal(replace(UNDO, number=2**63))
            with pytest.raises(UsageError, match="is not a number"):
                change.ledger.add_operations(math.nan, 1, keep_since=0.0)
            with pytest.raises(UsageError, match="cannot be counted"):
                change.ledger.add_operations(1.0, -1, keep_since=0.0)
        assert store.namespaces() == []


class TestEvents:
    def test_events_are_in_the_order_in_which_they_were_written(self, store: Store) -> None:
        """Clocks may go back; what was done second stays second."""
        events = [IssueEvent("x", at, "me", act, "why \ue000") for at, act in ((5.0, "created"), (1.0, "claimed"))]
        other = IssueEvent(UUID, 2.0, "decay@host:1", "closed")
        put(store, Issue("x", "t"), Issue(UUID, "t"))
        with store.change_memories("n") as change:
            for event in (events[0], other, events[1]):
                change.ledger.add_event(event)
        assert store.ledger("n").events() == [events[0], other, events[1]]
        assert store.ledger("n").events("x") == events
        assert store.ledger("n").events("y") == []
        with store.change_memories("n") as change:
            change.ledger.add_event(later := replace(other, actor="another change"))
        assert store.ledger("n").events() == [events[0], other, events[1], later]

    def test_an_issue_may_be_kept_by_another_program(self, store: Store) -> None:
        """Then only what was done on it stands here, and goes as that of others does."""
        with store.change_memories("n") as change:
            change.ledger.add_event(IssueEvent("x", 1.0, "me", "applied"))
            change.ledger.put_reversal(replace(UNDO, issue="x"))
        assert store.check() == []
        assert [each.issue for each in store.ledger("n").reversals()] == ["x"]
        with store.change_memories("n") as change:
            assert not change.ledger.drop_issue("x")
        assert (store.ledger("n").events(), store.ledger("n").reversals()) == ([], [])


class TestReversals:
    def test_runs_are_told_by_what_they_changed_the_latest_first(self, store: Store) -> None:
        """Whoever wants to undo one has to find it."""
        put(store, *(Issue(id_, "t") for id_ in "abcd"))
        with store.change_memories("n") as change:
            for issue, run, at, undone_at in (
                ("a", UUID, 3.0, None),
                ("b", UUID, 2.0, 9.0),
                ("c", "late", 4.0, 5.0),
                ("d", "also late", 4.0, None),
            ):
                change.ledger.put_reversal(Reversal(issue, run, at, (), "[]", undone_at=undone_at))
        assert store.ledger("n").runs() == [
            RunChanges("also late", 4.0, 1, 0),
            RunChanges("late", 4.0, 1, 1),
            RunChanges(UUID, 2.0, 2, 1),
        ]
        assert store.ledger("m").runs() == []

    def test_a_reversal_gets_the_next_number_or_keeps_its_own(self, store: Store) -> None:
        """They undo in the order of their numbers, which an import keeps."""
        put(store, *(Issue(id_, "t") for id_ in "abc"), FULL)
        with store.change_memories("n") as change:
            change.ledger.put_reversal(UNDO)
            change.ledger.put_reversal(replace(UNDO, issue="a", number=7, memory_ids=("a",), run="r"))
            change.ledger.put_reversal(replace(UNDO, issue="b", memory_ids=(), undone_at=9.0))
        ledger = store.ledger("n")
        assert ledger.reversal(FULL.id) == replace(UNDO, number=1)
        assert [(one.issue, one.number) for one in ledger.reversals()] == [(FULL.id, 1), ("a", 7), ("b", 8)]
        assert [one.issue for one in ledger.reversals(run=UUID)] == [FULL.id, "b"]
        assert [one.issue for one in ledger.reversals(run=UUID, after=1)] == ["b"]
        assert [one.issue for one in ledger.reversals(memory_ids=("a", UUID))] == [FULL.id, "a"]
        assert [one.issue for one in ledger.reversals(memory_ids=("a", UUID), run="r", after=1)] == ["a"]
        assert ledger.reversal("c") is None
        assert store.check() == []

    def test_an_issue_has_one_reversal(self, store: Store) -> None:
        """Another one takes its place, under its number or the next."""
        put(store, FULL, Issue("x", "t"))
        with store.change_memories("n") as change:
            change.ledger.put_reversal(UNDO)
            change.ledger.put_reversal(replace(UNDO, number=1, undone_at=9.0, memory_ids=("z",)))
            assert change.ledger.reversals() == [replace(UNDO, number=1, undone_at=9.0, memory_ids=("z",))]
            change.ledger.put_reversal(UNDO)
            assert change.ledger.reversals(memory_ids=("z",)) == []
            with pytest.raises(UsageError, match=f"is that of issue '{FULL.id}'"):
                change.ledger.put_reversal(replace(UNDO, issue="x", number=2))
            assert change.ledger.drop_reversal(FULL.id)
            assert not change.ledger.drop_reversal(FULL.id)
        assert store.ledger("n").reversals() == []


class TestOperations:
    def test_operations_are_counted_over_the_whole_store(self, store: Store) -> None:
        """A rate limits all that work on it, in whatever namespace."""
        for name, at, count in (("n", 5.0, 2), ("m", 3.0, 1), ("m", 5.0, 4), ("n", 9.0, 0)):
            with store.change_memories(name) as change:
                change.ledger.add_operations(at, count, keep_since=-math.inf)
                assert change.ledger.operations_since(at)[:1] in ([(at, count)], [(5.0, 6)], [])
        assert store.ledger("nowhere").operations_since(0.0) == [(3.0, 1), (5.0, 6)]
        with store.change_memories("n") as change:
            change.ledger.add_operations(6.0, 1, keep_since=5.0)
        assert store.ledger("m").operations_since(-math.inf) == [(5.0, 6), (6.0, 1)]
        assert store.ledger("m").operations_since(5.5) == [(6.0, 1)]

    def test_operations_of_a_change_that_fails_are_not_counted(self, store: Store) -> None:
        """What was not done takes nothing from the rate."""
        with pytest.raises(KeyError), store.change_memories("n") as change:
            change.ledger.add_operations(1.0, 1, keep_since=0.0)
            raise KeyError
        assert store.ledger("n").operations_since(0.0) == []


class TestChanges:
    def test_a_change_reads_what_it_wrote_and_takes_no_number(self, store: Store) -> None:
        """The index does not follow the ledger."""
        with store.change_memories("n") as change:
            ledger = change.ledger
            ledger.put_issue(FULL)
            ledger.add_event(IssueEvent(FULL.id, 1.0, "me", "created"))
            ledger.put_reversal(UNDO)
            ledger.add_operations(1.0, 1, keep_since=0.0)
            assert ledger.issue(FULL.id) == FULL
            assert ledger.unfinished("merge", FULL.memory_ids) == FULL
            assert (len(ledger.events()), len(ledger.reversals())) == (1, 1)
        assert store.change() == 0

    def test_a_change_that_fails_leaves_everything_as_it_was(self, store: Store) -> None:
        """Memories and ledger change together or not at all."""
        put(store, FULL)
        with pytest.raises(KeyError), store.change_memories("n") as change:
            change.ledger.put_issue(replace(FULL, status="closed"))
            change.ledger.add_event(IssueEvent(FULL.id, 1.0, "me", "closed"))
            change.ledger.put_reversal(UNDO)
            change.ledger.drop_issue(FULL.id)
            raise KeyError
        ledger = store.ledger("n")
        assert (ledger.issue(FULL.id), ledger.events(), ledger.reversals()) == (FULL, [], [])

    def test_a_change_is_over_when_its_block_ends(self, store: Store) -> None:
        """It would belong to no transaction."""
        with store.change_memories("n") as change:
            ledger = change.ledger
        for call in (
            lambda: ledger.put_issue(FULL),
            lambda: ledger.add_operations(1.0, 1, keep_since=0.0),
            ledger.events,
        ):
            with pytest.raises(StoreError, match="is over"):
                call()

    def test_namespaces_know_nothing_of_each_other(self, store: Store) -> None:
        """Not by id, not by memory, not by run."""
        put(store, FULL)
        put(store, replace(FULL, title="other"), name="m")
        for name in ("n", "m"):
            with store.change_memories(name) as change:
                change.ledger.add_event(IssueEvent(FULL.id, 1.0, name, "created"))
                change.ledger.put_reversal(UNDO)
        with store.change_memories("m") as change:
            assert change.ledger.drop_issue(FULL.id)
        ledger, other = store.ledger("n"), store.ledger("m")
        assert ledger.issue(FULL.id) == FULL
        assert [event.actor for event in ledger.events()] == ["n"]
        assert ledger.reversals(run=UUID, memory_ids=(UUID,)) == [replace(UNDO, number=1)]
        assert (other.issues(IssueSelection()), other.events(), other.reversals(), other.counts()) == ([], [], [], {})

    def test_a_namespace_goes_with_its_ledger(self, store: Store) -> None:
        """The other one keeps its own."""
        for name in ("n", "m"):
            store.put_owners(name, [memory("x", "text")])
            put(store, FULL, name=name)
            with store.change_memories(name) as change:
                change.ledger.add_event(IssueEvent(FULL.id, 1.0, "me", "created"))
                change.ledger.put_reversal(UNDO)
        assert store.erase_namespace("n") == 1
        put(store, Issue("fresh", "t"))
        assert (ids(store), ids(store, "m")) == (["fresh"], [FULL.id])
        assert (store.ledger("n").events(), store.ledger("n").reversals(memory_ids=(UUID,))) == ([], [])
        assert store.check() == []


def test_a_backup_holds_the_ledger(store: Store, tmp_path: Path) -> None:
    """Issues, events, reversals and the rate."""
    put(store, FULL, Issue("x", "t"))
    with store.change_memories("n") as change:
        for act in ("created", "claimed"):
            change.ledger.add_event(IssueEvent("x", 1.0, "me", act))
        change.ledger.put_reversal(replace(UNDO, number=5))
        change.ledger.add_operations(3.0, 2, keep_since=0.0)
    store.backup(tmp_path / "copy.db")
    copy = Store.open(tmp_path / "copy.db", create=False)
    ours, theirs = store.ledger("n"), copy.ledger("n")
    assert theirs.issues(IssueSelection()) == ours.issues(IssueSelection())
    assert (theirs.events(), theirs.reversals()) == (ours.events(), ours.reversals())
    assert theirs.reversals(memory_ids=(UUID,)) == [replace(UNDO, number=5)]
    assert theirs.operations_since(0.0) == [(3.0, 2)]
    assert copy.check() == []
    copy.close()


def test_a_check_finds_names_that_lead_to_no_issue(tmp_path: Path) -> None:
    """The names of memories stand beside the issues, and could come apart from them."""
    store = Store.create(tmp_path / "store.db")
    put(store, FULL)
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        db.execute("DELETE FROM issues")
        db.commit()
    assert store.check() == ["There are issue_memories whose issue is gone: 2."]
    store.close()
