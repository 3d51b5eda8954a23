"""Issues are filed once, claimed once, and lose nothing when they are blocked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.reference_store.store import MemoryStore

from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.beads import split_notes
from commonplace.ledger import rules
from commonplace.ledger.rules import Doer, new_issue
from commonplace.store.ledger import LedgerChange
from commonplace.types.ledger import Issue, IssueEvent, Reversal

ANNA = Doer("anna", 1000.0)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@contextmanager
def changing(store: MemoryStore) -> Iterator[LedgerChange]:
    with store.change_memories("n") as change:
        yield change.ledger


def filed(store: MemoryStore, *memory_ids: str, agent: str = "merge", why: str = "", **fields: Any) -> str:
    with changing(store) as ledger:
        return rules.file(ledger, new_issue(agent, memory_ids or ("a", "b"), "merge", **fields), ANNA, why)


def issue(store: MemoryStore, id_: str) -> Issue:
    return rules.get_issue(store.ledger("n"), id_)


def acts(store: MemoryStore, id_: str) -> list[tuple[str, str]]:
    return [(event.act, event.why) for event in store.ledger("n").events(id_)]


class TestFiling:
    def test_an_issue_says_all_that_beads_wants_to_know(self, store: MemoryStore) -> None:
        """Title, notes, labels, priority and type are the contract's."""
        id_ = filed(store, "b", "a", "b", urgency="high", extra={"score": 0.04}, why="two of a kind")
        found = issue(store, id_)
        assert (found.title, found.agent, found.memory_ids) == ("Merge 2 memories", "merge", ("a", "b"))
        assert json.loads(found.notes) == {
            "memory_ids": ["a", "b"],
            "agent": "merge",
            "action": "merge",
            "score": 0.04,
        }
        assert found.labels == ("consolidation:merge", "urgency:high")
        assert (found.priority, found.issue_type, found.status) == (1, "task", "open")
        assert (found.created_at, found.updated_at) == (1000.0, 1000.0)
        assert store.ledger("n").events() == [IssueEvent(id_, 1000.0, "anna", "created", "two of a kind")]

    @pytest.mark.parametrize(("urgency", "priority"), [("high", 1), ("medium", 2), ("low", 3)])
    def test_the_priority_follows_the_urgency(self, store: MemoryStore, urgency: str, priority: int) -> None:
        """Beads sorts by priority."""
        assert issue(store, filed(store, urgency=urgency)).priority == priority

    @pytest.mark.parametrize(
        ("action", "count", "title"),
        [
            ("gc", 1, "Archive 1 memory"),
            ("consolidate", 3, "Consolidate 3 memories"),
            ("relate", 2, "Relate 2 memories"),
            ("the secret plan", 2, "Look at 2 memories"),
        ],
    )
    def test_a_title_holds_no_words_that_a_memory_could_have(self, action: str, count: int, title: str) -> None:
        """Whoever forgets a memory finds it nowhere."""
        assert rules.title_of(action, count) == title

    def test_an_id_is_eight_hexadecimal_digits_after_the_name(self, store: MemoryStore) -> None:
        """Beads takes any id; ours are known at sight."""
        prefix, _, digits = filed(store, "a").partition("-")
        assert (prefix, len(digits), set(digits) <= set("0123456789abcdef")) == ("commonplace", 8, True)

    def test_the_same_memories_are_filed_once(self, store: MemoryStore) -> None:
        """While it is unfinished, in whatever order they are named; another agent, another set, and later: anew."""
        first = filed(store, "a", "b")
        assert filed(store, "b", "a", "a", urgency="high") == first
        with changing(store) as ledger:
            assert rules.claim(ledger, first, ANNA)
        assert filed(store, "a", "b") == first
        with changing(store) as ledger:
            rules.block(ledger, first, "no", ANNA)
        assert filed(store, "a", "b") == first
        assert len({first, filed(store, "a"), filed(store, "a", "b", agent="relations")}) == 3
        with changing(store) as ledger:
            rules.close(ledger, first, "done", ANNA)
        assert filed(store, "a", "b") != first

    @pytest.mark.parametrize(
        ("given", "extra", "told"),
        [
            (("nobody", ("a",), "merge"), {}, "agent is 'nobody'.*decay, cluster, merge, promote, relations"),
            (("merge", ("a",), "merge", "urgent"), {}, "urgency is 'urgent'.*high, medium, low"),
            (("merge", (), "merge"), {}, "without memory_ids"),
            (("merge", "abc", "merge"), {}, "memory_ids is 'abc'"),
            (("merge", ("a", ""), "merge"), {}, "memory_ids is"),
            (("merge", ("a",), " "), {}, "action is ' '"),
            (("merge", ("a",), "merge"), {"x": {1, 2}}, "cannot be written as JSON"),
            (("merge", ("a",), "merge"), {"x": float("nan")}, "cannot be written as JSON"),
            (("merge", ("a",), "merge"), {"agent": "me"}, "extra_data has 'agent'"),
        ],
    )
    def test_what_is_no_issue_is_refused(self, given: tuple[Any, ...], extra: dict[str, Any], told: str) -> None:
        """The message names what there is to choose from."""
        with pytest.raises(UsageError, match=told):
            new_issue(*given, extra=extra)

    def test_secrets_in_what_is_added_are_replaced(self, store: MemoryStore) -> None:
        """Nobody looks for keys in a list of work."""
        key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
        id_ = filed(store, extra={"seen": [f"with {key}"]})
        with changing(store) as ledger:
            rules.block(ledger, id_, f"refused {key}", ANNA)
        assert key not in issue(store, id_).notes
        assert key not in acts(store, id_)[-1][1]


class TestClaiming:
    def test_one_claims_an_open_issue_and_no_other_can(self, store: MemoryStore) -> None:
        """Two workers never do one thing twice."""
        id_ = filed(store)
        with changing(store) as ledger:
            assert rules.claim(ledger, id_, ANNA)
            assert not rules.claim(ledger, id_, Doer("bert", 1001.0))
        found = issue(store, id_)
        assert (found.status, found.claimed_by, found.claimed_at) == ("in_progress", "anna", 1000.0)
        assert acts(store, id_) == [("created", ""), ("claimed", "")]

    def test_blocked_and_closed_issues_are_not_claimed(self, store: MemoryStore) -> None:
        """A blocked one waits for its retry or for a person."""
        blocked, closed = filed(store, "a"), filed(store, "b")
        with changing(store) as ledger:
            rules.block(ledger, blocked, "no", ANNA)
            rules.close(ledger, closed, "done", ANNA)
            assert not rules.claim(ledger, blocked, ANNA)
            assert not rules.claim(ledger, closed, ANNA)
        assert (issue(store, blocked).status, issue(store, closed).status) == ("blocked", "closed")

    def test_what_is_not_there_cannot_be_worked_on(self, store: MemoryStore) -> None:
        """A typing error is no issue."""
        with changing(store) as ledger:
            for call in (rules.claim, rules.reopen):
                with pytest.raises(NotFoundError, match="no issue 'x'"):
                    call(ledger, "x", ANNA)
            for said in (rules.close, rules.block):
                with pytest.raises(NotFoundError, match="no issue 'x'"):
                    said(ledger, "x", "why", ANNA)


class TestClosing:
    def test_an_issue_is_closed_with_a_reason(self, store: MemoryStore) -> None:
        """The reason is the end of its history."""
        id_ = filed(store)
        with changing(store) as ledger:
            rules.claim(ledger, id_, ANNA)
            rules.close(ledger, id_, "merged\ninto one", Doer("bert", 2000.0))
        found = issue(store, id_)
        assert (found.status, found.close_reason, found.closed_at) == ("closed", "merged into one", 2000.0)
        assert (found.claimed_by, found.claimed_at) == ("", None)
        assert acts(store, id_)[-1] == ("closed", "merged into one")

    def test_a_closed_issue_is_neither_closed_nor_blocked_again(self, store: MemoryStore) -> None:
        """What is done stays told as it was."""
        id_ = filed(store)
        with changing(store) as ledger:
            rules.close(ledger, id_, "first", ANNA)
            with pytest.raises(UsageError, match="closed already: first"):
                rules.close(ledger, id_, "second", ANNA)
            with pytest.raises(UsageError, match="is closed"):
                rules.block(ledger, id_, "no", ANNA)
            for wrong in ("", " "):
                with pytest.raises(UsageError, match="reason is"):
                    rules.close(ledger, id_, wrong, ANNA)


class TestBlocking:
    def test_the_error_stands_behind_the_notes_which_stay_json(self, store: MemoryStore) -> None:
        """Blocking never destroys what the issue is about."""
        id_ = filed(store, extra={"score": 0.5})
        before = issue(store, id_).notes
        with changing(store) as ledger:
            rules.block(ledger, id_, "disk full\nat byte 3", ANNA)
            rules.block(ledger, id_, '{"again": 1}', Doer("bert", 1060.0))
        found = issue(store, id_)
        assert found.notes.startswith(before)
        assert split_notes(found.notes)[0] == json.loads(before)
        assert rules.log(found.notes) == [
            "1970-01-01T00:16:40Z blocked: disk full at byte 3",
            '1970-01-01T00:17:40Z blocked: {"again": 1}',
        ]

    def test_it_is_tried_again_three_times_and_then_no_more(self, store: MemoryStore) -> None:
        """After 1, 5 and 25 minutes."""
        id_ = filed(store)
        for retries, again in ((0, 1060.0), (1, 1300.0), (2, 2500.0), (3, None)):
            with changing(store) as ledger:
                ledger.put_issue(replace(issue_in(ledger, id_), status="open", retries=retries))
                rules.block(ledger, id_, "no", ANNA)
            assert issue(store, id_).retry_at == again

    def test_notes_without_json_are_only_a_log(self) -> None:
        """An imported issue has whatever its people wrote."""
        assert split_notes("by hand\nand more") == ({}, "by hand\nand more")
        assert rules.log("by hand\n\nand more") == ["by hand", "and more"]
        assert split_notes('["a"] x') == ({}, '["a"] x')
        assert split_notes(' {"a": 1} x') == ({"a": 1}, " x")
        assert split_notes("[" * 100_000)[0] == {}


class TestReopening:
    def test_a_blocked_or_closed_issue_opens_with_all_its_retries(self, store: MemoryStore) -> None:
        """A person who mended the cause gives it a fresh start."""
        id_ = filed(store)
        with changing(store) as ledger:
            rules.block(ledger, id_, "no", ANNA)
            rules.reopen(ledger, id_, ANNA, "mended")
            rules.close(ledger, id_, "done", ANNA)
            rules.reopen(ledger, id_, ANNA)
        found = issue(store, id_)
        assert (found.status, found.retries, found.retry_at) == ("open", 0, None)
        assert (found.closed_at, found.close_reason) == (None, "")
        assert [act for act, _ in acts(store, id_)] == ["created", "blocked", "reopened", "closed", "reopened"]

    def test_what_is_being_worked_on_does_not_open(self, store: MemoryStore) -> None:
        """Nor what is open."""
        id_ = filed(store)
        with changing(store) as ledger:
            with pytest.raises(UsageError, match="is open"):
                rules.reopen(ledger, id_, ANNA)
            rules.claim(ledger, id_, ANNA)
            with pytest.raises(UsageError, match="is in_progress"):
                rules.reopen(ledger, id_, ANNA)

    def test_an_issue_whose_change_stands_is_undone_first(self, store: MemoryStore) -> None:
        """Applied once more, it would lose what undoes it."""
        id_ = filed(store)
        undo = Reversal(id_, "run", 1000.0, ("a",), "[]")
        with changing(store) as ledger:
            rules.close(ledger, id_, "done", ANNA)
            ledger.put_reversal(undo)
            with pytest.raises(UsageError, match="is still applied"):
                rules.reopen(ledger, id_, ANNA)
            ledger.put_reversal(replace(undo, undone_at=1001.0))
            rules.reopen(ledger, id_, ANNA)
        assert issue(store, id_).status == "open"

    def test_it_does_not_open_beside_its_double(self, store: MemoryStore) -> None:
        """One piece of work has one issue."""
        first = filed(store)
        with changing(store) as ledger:
            rules.close(ledger, first, "done", ANNA)
        second = filed(store)
        with changing(store) as ledger, pytest.raises(UsageError, match=f"issue {second} is about the same"):
            rules.reopen(ledger, first, ANNA)


def issue_in(ledger: LedgerChange, id_: str) -> Issue:
    found = ledger.issue(id_)
    assert found is not None
    return found
