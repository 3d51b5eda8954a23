"""Claims lapse, blocked issues are tried again, old ones grow urgent: what is due is done, and only that."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from tests.reference_store.store import MemoryStore

from commonplace.ledger import ledger, rules
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.ledger.rules import Doer, new_issue
from commonplace.types.ledger import Issue

DAY = 86400.0


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def filed(store: MemoryStore, memory: str = "a", *, urgency: str = "low", at: float = 0.0) -> str:
    with store.change_memories("n") as change:
        return rules.file(change.ledger, new_issue("decay", (memory,), "gc", urgency), Doer("anna", at))


def maintain(store: MemoryStore, now: float) -> list[tuple[str, str]]:
    return ledger.maintain(RateLimiter(store, "n", lambda: now, pytest.fail, 0), "keeper")


def did(**acts: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return what `maintain` tells of these acts."""
    return [(act, id_) for act, ids in acts.items() for id_ in ids]


def found(store: MemoryStore, id_: str) -> Issue:
    return rules.get_issue(store.ledger("n"), id_)


class TestClaims:
    def test_a_claim_lapses_with_its_process_or_its_lease(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker that was killed holds nothing up."""
        dead, slow, busy = (filed(store, id_, at=at) for at, id_ in enumerate("abc"))
        with store.change_memories("n") as change:
            for id_, actor, at in ((dead, "x@h:1", 99.0), (slow, "x@h:2", 0.0), (busy, "x@h:2", 1.0)):
                assert rules.claim(change.ledger, id_, Doer(actor, at))
        monkeypatch.setattr(ledger, "process_is_gone", lambda actor: actor == "x@h:1")
        assert maintain(store, 901.0) == did(released=(dead, slow))
        assert [found(store, id_).status for id_ in (dead, slow, busy)] == ["open", "open", "in_progress"]
        last = store.ledger("n").events(dead)[-1]
        assert (last.actor, last.act, last.why) == ("keeper", "released", "the process of x@h:1 is gone")
        assert store.ledger("n").events(slow)[-1].why == "x@h:2 held it for more than 15 minutes"

    def test_what_somebody_does_elsewhere_is_left_alone(self, store: MemoryStore) -> None:
        """It was imported in progress, and nobody here knows by whom."""
        with store.change_memories("n") as change:
            change.ledger.put_issue(Issue("x", "t", status="in_progress"))
        assert maintain(store, 1e9) == []

    def test_a_process_is_gone_only_where_that_is_certain(self) -> None:
        """Of this machine, and not running."""
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        host = socket.gethostname()
        assert ledger.process_is_gone(f"decay@{host}:{ended.pid}") is (os.name != "nt")
        for actor in (
            ledger.actor_of("decay"),
            f"decay@other:{ended.pid}",
            "anna",
            "anna@home",
            f"x@{host}:",
            "",
            f"x@{host}:9999999999",
        ):
            assert not ledger.process_is_gone(actor)


class TestRetries:
    def test_a_blocked_issue_is_opened_again_when_its_time_has_come(self, store: MemoryStore) -> None:
        """Three times, later each time, and then a person has to look."""
        id_, now = filed(store), 0.0
        for number, pause in enumerate((60.0, 300.0, 1500.0), 1):
            with store.change_memories("n") as change:
                rules.block(change.ledger, id_, "no", Doer("x", now))
            assert maintain(store, now + pause - 1) == []
            now += pause
            assert maintain(store, now) == did(reopened=(id_,))
            assert store.ledger("n").events(id_)[-1].why == f"retry {number} of 3"
        with store.change_memories("n") as change:
            rules.block(change.ledger, id_, "no", Doer("x", now))
        assert maintain(store, now + DAY) == []
        assert (found(store, id_).status, found(store, id_).retries) == ("blocked", 3)


class TestEscalation:
    def test_an_issue_rises_one_level_in_seven_days(self, store: MemoryStore) -> None:
        """Label and priority both, and no higher than the highest."""
        id_ = filed(store)
        assert maintain(store, 7 * DAY) == []
        assert maintain(store, 7 * DAY + 1) == did(escalated=(id_,))
        risen = found(store, id_)
        assert (risen.labels, risen.priority) == (("consolidation:decay", "urgency:medium"), 2)
        assert store.ledger("n").events(id_)[-1].why == "from low to medium: open for more than 7 days"
        assert maintain(store, 14 * DAY) == []
        assert maintain(store, 15 * DAY) == did(escalated=(id_,))
        assert (found(store, id_).labels[-1], found(store, id_).priority) == ("urgency:high", 1)
        assert maintain(store, 99 * DAY) == []

    def test_only_our_own_open_issues_rise(self, store: MemoryStore) -> None:
        """What is blocked, closed or another tracker's is not ours to raise."""
        blocked, closed = filed(store, "a"), filed(store, "b")
        with store.change_memories("n") as change:
            change.ledger.put_issue(Issue("x", "t", priority=3))
            rules.block(change.ledger, blocked, "no", Doer("x", 0.0))
            rules.close(change.ledger, closed, "done", Doer("x", 0.0))
        assert maintain(store, 30.0) == []
        assert maintain(store, 8 * DAY) == did(reopened=(blocked,), escalated=(blocked,))


class TestParts:
    """Nobody who wants to write waits until thousands of issues have risen."""

    def test_what_is_due_is_done_in_parts_that_each_count_as_one_operation(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ledger, "BATCH_SIZE", 2)
        ids = tuple(filed(store, f"m{at}", at=float(at)) for at in range(5))
        assert maintain(store, 9 * DAY) == did(escalated=ids)
        assert store.ledger("n").operations_since(0.0) == [(9 * DAY, 3)]

    def test_what_was_interrupted_goes_on(self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Here by the wait for the second part: the first is done, and is not done again."""
        monkeypatch.setattr(ledger, "BATCH_SIZE", 2)
        ids = tuple(filed(store, f"m{at}", at=float(at)) for at in range(3))

        def interrupt(seconds: float) -> None:
            assert seconds == 60.0
            raise KeyboardInterrupt

        pace = RateLimiter(store, "n", lambda: 9 * DAY, interrupt, 1)
        with pytest.raises(KeyboardInterrupt):
            ledger.maintain(pace, "keeper")
        assert maintain(store, 9 * DAY) == did(escalated=ids[2:])

    def test_an_issue_that_others_closed_while_it_waited_is_left_alone(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ledger, "BATCH_SIZE", 1)
        first, second = filed(store, "a"), filed(store, "b", at=1.0)
        now = [9 * DAY]

        def wait(seconds: float) -> None:
            now[0] += seconds
            with store.change_memories("n") as change:
                rules.close(change.ledger, second, "done", Doer("x", now[0]))

        pace = RateLimiter(store, "n", lambda: now[0], wait, 1)
        assert ledger.maintain(pace, "keeper") == did(escalated=(first,))

    def test_where_nothing_is_due_nothing_is_written_and_nothing_counted(self, store: MemoryStore) -> None:
        filed(store)
        assert maintain(store, DAY) == []
        assert store.ledger("n").operations_since(0.0) == []
