"""The ledger as the contract has it: five operations, each one transaction, on every store."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reference_store.store import MemoryStore

import commonplace
from commonplace.errors import NotFoundError, StoreError, UsageError
from commonplace.ledger.ledger import Ledger, maintain
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.ledger.rules import ImportedIssues
from commonplace.store.store import Store
from commonplace.types import MemoryRecord, MemoryWrite, Owner
from commonplace.types.ledger import UNFINISHED, Issue, IssueSelection

NOW = 1_767_225_600.0


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryStore | Store:
    made = MemoryStore() if request.param == "memory" else Store.create(tmp_path / "store.db")
    with made.change_memories("n") as change:
        for id_ in "abc":
            change.add(MemoryWrite(Owner(id_, "memory"), (), MemoryRecord(id_)), created_at=1.0)
    request.addfinalizer(made.close)
    return made


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def ledger(store: MemoryStore, time: Time) -> Ledger:
    return Ledger(store, "n", time, "anna")


class TestCreate:
    def test_an_issue_is_a_dict_with_all_that_the_contract_names(self, ledger: Ledger) -> None:
        """Id, title, notes, labels, status; and times as people read them."""
        id_ = ledger.create("merge", ["b", "a"], "merge", "high", {"cohesion": 0.8})
        (found,) = ledger.query()
        assert found["id"] == id_
        assert (found["title"], found["status"], found["urgency"]) == ("Merge 2 memories", "open", "high")
        assert found["notes"] == {"memory_ids": ["a", "b"], "agent": "merge", "action": "merge", "cohesion": 0.8}
        assert (found["labels"], found["log"]) == (["consolidation:merge", "urgency:high"], [])
        assert (found["created_at"], found["closed_at"]) == ("2026-01-01T00:00:00Z", None)
        assert json.loads(json.dumps(found)) == found
        assert ledger.show(id_) == found

    def test_no_second_issue_is_made_for_the_same_memories(self, ledger: Ledger) -> None:
        """The first one's id comes back."""
        first = ledger.create("merge", ["a", "b"], "merge")
        assert ledger.create("merge", ["b", "a"], "merge", "high") == first
        assert len(ledger.query()) == 1

    def test_memories_that_are_not_there_are_refused(self, ledger: Ledger) -> None:
        """An issue about nothing could never be closed but by hand."""
        with pytest.raises(NotFoundError, match="no memory 'x'"):
            ledger.create("merge", ["a", "x"], "merge")
        with pytest.raises(UsageError, match="agent is 'nobody'"):
            ledger.create("nobody", ["a"], "merge")
        assert ledger.query(status=None) == []


def about(ledger: Ledger, *memory_ids: str) -> list[Issue]:
    wanted = IssueSelection(agents=("merge",), statuses=UNFINISHED, memory_ids=memory_ids)
    return ledger.selected(wanted)


class TestAbout:
    def test_unfinished_issues_are_found_by_any_of_their_memories(self, ledger: Ledger) -> None:
        """Of one agent."""
        first, second = ledger.create("merge", ["a", "b"], "merge"), ledger.create("merge", ["b", "c"], "merge")
        ledger.create("decay", ["b"], "gc")
        ledger.close(ledger.create("merge", ["b"], "merge"), "no")
        ledger.block(first, "no")
        assert {issue.id for issue in about(ledger, "b", "x")} == {first, second}
        assert about(ledger, "x") == []


class TestQuery:
    def test_filters_add_up_and_nothing_is_no_error(self, ledger: Ledger, time: Time) -> None:
        """Agent, status and urgency, all of them."""
        one = ledger.create("merge", ["a"], "merge", "high")
        time.now += 1
        two = ledger.create("merge", ["b"], "merge")
        time.now += 1
        three = ledger.create("decay", ["a"], "gc", "high")
        ledger.claim(three)
        assert [each["id"] for each in ledger.query()] == [one, two]
        assert [each["id"] for each in ledger.query("merge", urgency="high")] == [one]
        assert [each["id"] for each in ledger.query(status=None, urgency="high")] == [one, three]
        assert [each["id"] for each in ledger.query("decay", "in_progress")] == [three]
        assert ledger.query("promote") == ledger.query("merge", "blocked") == []
        assert ledger.counts() == {"decay": {"in_progress": 1}, "merge": {"open": 2}}

    @pytest.mark.parametrize("asked", [("x", "open", None), (None, "done", None), (None, "open", "now")])
    def test_an_unknown_word_is_refused(self, ledger: Ledger, asked: tuple[str, str, str]) -> None:
        """It would find nothing, and nobody would know why."""
        with pytest.raises(UsageError, match="give one of"):
            ledger.query(*asked)


class TestUpdate:
    def test_an_issue_is_claimed_once(self, ledger: Ledger, store: MemoryStore, time: Time) -> None:
        """By whomever comes first, until the claim lapses."""
        id_ = ledger.create("merge", ["a"], "merge")
        other = Ledger(store, "n", time, "bert")
        assert ledger.claim(id_)
        assert not other.claim(id_)
        time.now += 901
        assert other.claim(id_)
        assert [event.act for event in ledger.history(id_)] == ["created", "claimed", "released", "claimed"]
        assert ledger.get(id_).claimed_by == "bert"

    def test_the_claim_of_a_process_that_is_gone_is_none(
        self, store: MemoryStore, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker that was killed holds nothing up, not for a minute."""
        dead = Ledger(store, "n", time, "decay@h:1")
        id_ = dead.create("decay", ["a"], "gc")
        assert dead.claim(id_)
        monkeypatch.setattr("commonplace.ledger.ledger.process_is_gone", lambda actor: actor == "decay@h:1")
        assert Ledger(store, "n", time, "decay@h:2").claim(id_)

    def test_blocking_closing_and_reopening_are_told_in_the_history(
        self, ledger: Ledger, store: MemoryStore, time: Time
    ) -> None:
        """Who did what when and why."""
        id_ = ledger.create("merge", ["a"], "merge")
        ledger.block(id_, "disk full")
        time.now += 60
        assert maintain(RateLimiter(store, "n", time, pytest.fail, 0), "anna") == [("reopened", id_)]
        ledger.close(id_, "done")
        ledger.reopen(id_, "not yet")
        told = [(event.act, event.why) for event in ledger.history(id_)]
        assert told[1:] == [
            ("blocked", "disk full"),
            ("reopened", "retry 1 of 3"),
            ("closed", "done"),
            ("reopened", "not yet"),
        ]
        assert {event.actor for event in ledger.history(id_)} == {"anna"}

    def test_what_is_not_there_is_told(self, ledger: Ledger) -> None:
        """By every operation."""
        calls: tuple[Callable[[], object], ...] = (
            lambda: ledger.claim("x"),
            lambda: ledger.close("x", "done"),
            lambda: ledger.block("x", "no"),
            lambda: ledger.reopen("x"),
            lambda: ledger.show("x"),
            lambda: ledger.history("x"),
        )
        for call in calls:
            with pytest.raises(NotFoundError, match="no issue 'x'"):
                call()


class TestFiles:
    def test_issues_come_back_and_twice_is_once(self, ledger: Ledger, tmp_path: Path) -> None:
        """What was changed last stays, wherever that was."""
        id_ = ledger.create("merge", ["a", "b"], "merge")
        assert ledger.export(tmp_path / "issues.jsonl") == 1
        with pytest.raises(StoreError, match="exists already"):
            ledger.export(tmp_path / "issues.jsonl")
        other = Ledger(MemoryStore(), "n", lambda: NOW + 50, "bert")
        assert other.import_(tmp_path / "issues.jsonl") == ImportedIssues(added=(id_,))
        assert other.get(id_) == ledger.get(id_)
        assert other.import_(tmp_path / "issues.jsonl") == ImportedIssues(unchanged=(id_,))
        other.close(id_, "done there")
        assert other.import_(tmp_path / "issues.jsonl") == ImportedIssues(unchanged=(id_,))
        other.export(tmp_path / "newer.jsonl")
        assert ledger.import_(tmp_path / "newer.jsonl") == ImportedIssues(replaced=(id_,))
        assert ledger.get(id_).close_reason == "done there"
        assert [(event.act, event.why) for event in ledger.history(id_)] == [
            ("created", ""),
            ("imported", "from newer.jsonl"),
        ]

    def test_an_issue_that_says_the_same_under_another_id_is_left_out(self, ledger: Ledger, tmp_path: Path) -> None:
        """One piece of work has one issue."""
        here = ledger.create("merge", ["a", "b"], "merge")
        other = Ledger(store_of("a", "b"), "n", lambda: NOW, "bert")
        there = other.create("merge", ["b", "a"], "merge")
        other.export(tmp_path / "issues.jsonl")
        assert ledger.import_(tmp_path / "issues.jsonl") == ImportedIssues(same=(there,))
        assert [each["id"] for each in ledger.query()] == [here]

    @pytest.mark.parametrize(
        ("data", "told"),
        [
            (b'{"id": "ok", "created_at": "2026-01-01"}\n{"id": "x"}', "line 2: created_at is missing"),
            (b'{"id": "ok", "created_at": "2026-01-01"}\n\xff', "is not UTF-8 at byte"),
        ],
    )
    def test_a_broken_file_changes_nothing(self, ledger: Ledger, tmp_path: Path, data: bytes, told: str) -> None:
        """Not even by what stands before the fault."""
        (tmp_path / "issues.jsonl").write_bytes(data)
        with pytest.raises(UsageError, match=told):
            ledger.import_(tmp_path / "issues.jsonl")
        assert ledger.query(status=None) == []
        with pytest.raises(NotFoundError, match="no file"):
            ledger.import_(tmp_path / "none")
        with pytest.raises(UsageError, match="cannot be read"):
            ledger.import_(tmp_path)

    def test_separators_of_lines_inside_a_text_end_no_line(self, ledger: Ledger, tmp_path: Path) -> None:
        """Other programs write them as they are."""
        line = json.dumps({"id": "x", "title": "a\u2028b", "created_at": "2026-01-01"}, ensure_ascii=False)
        (tmp_path / "issues.jsonl").write_text(f"\ufeff{line}\n", encoding="utf-8")
        assert ledger.import_(tmp_path / "issues.jsonl").added == ("x",)
        assert ledger.get("x").title == "a\u2028b"


def store_of(*ids: str) -> MemoryStore:
    store = MemoryStore()
    with store.change_memories("n") as change:
        for id_ in ids:
            change.add(MemoryWrite(Owner(id_, "memory"), (), MemoryRecord(id_)), created_at=1.0)
    return store


def test_two_workers_never_claim_one_issue(tmp_path: Path) -> None:
    """Each has its own connection, as processes have."""
    stores = [Store.create(tmp_path / "store.db") for _ in range(4)]
    with stores[0].change_memories("n") as change:
        for number in range(20):
            change.ledger.put_issue(Issue(f"i{number}", "t", created_at=float(number)))
    claimed: list[str] = []

    def work(store: Store, name: str) -> None:
        mine = Ledger(store, "n", lambda: NOW, name)
        claimed.extend(f"i{number}" for number in range(20) if mine.claim(f"i{number}"))

    workers = [threading.Thread(target=work, args=(store, f"w{n}")) for n, store in enumerate(stores)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(claimed) == sorted(f"i{number}" for number in range(20))
    for store in stores:
        store.close()


def test_workers_that_file_the_same_at_once_file_it_once(tmp_path: Path) -> None:
    """Looking for a double and filing are one transaction."""
    stores = [Store.create(tmp_path / "store.db") for _ in range(4)]
    with stores[0].change_memories("n") as change:
        for id_ in "ab":
            change.add(MemoryWrite(Owner(id_, "memory"), (), MemoryRecord(id_)), created_at=1.0)
    made: set[str] = set()

    def work(store: Store, name: str) -> None:
        mine = Ledger(store, "n", lambda: NOW, name)
        made.update(mine.create("merge", ["a", "b"], "merge") for _ in range(5))

    workers = [threading.Thread(target=work, args=(store, f"w{n}")) for n, store in enumerate(stores)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert made == {issue["id"] for issue in Ledger(stores[0], "n", lambda: NOW, "x").query(status=None)}
    assert len(made) == 1
    for store in stores:
        store.close()


def test_the_engine_opens_the_ledger_of_its_namespace(tmp_path: Path) -> None:
    """As the person that the machine knows."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("the kettle boils", id="a")
        id_ = book.ledger.create("decay", ["a"], "gc")
        (event,) = book.ledger.history(id_)
        assert event.actor
        assert "@" not in event.actor
    with commonplace.open(tmp_path / "store", namespace="other") as book:
        assert book.ledger.query(status=None) == []
