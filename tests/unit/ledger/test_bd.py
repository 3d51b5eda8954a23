"""The five operations go through `bd` as well, whatever its version, and its failures are told as they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import commonplace
from commonplace.errors import CommonplaceError, NotFoundError, ProviderError, UsageError
from commonplace.ledger.bd import BdLedger, open_bd
from commonplace.settings import load
from commonplace.types.ledger import UNFINISHED, Issue, IssueSelection

STUB = Path(__file__).parents[2] / "stubs" / "bd.py"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the program that stands in for bd is a script")


def about(ledger: BdLedger, *memory_ids: str) -> list[Issue]:
    wanted = IssueSelection(agents=("merge",), statuses=UNFINISHED, memory_ids=memory_ids)
    return ledger.selected(wanted)


@pytest.fixture
def bd(tmp_path: Path) -> BdLedger:
    """Give the ledger of a directory in which somebody has used beads."""
    (tmp_path / ".beads").mkdir()
    program = tmp_path / "bin" / "bd"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -S -E '{STUB}' \"$@\"\n")
    program.chmod(0o755)
    (tmp_path / "below").mkdir()
    return open_bd(str(program), tmp_path / "below")


@pytest.fixture(params=["", "array", "envelope"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BD_FAKE", request.param)
    return str(request.param)


class TestOperations:
    @pytest.mark.usefixtures("version")
    def test_an_issue_goes_there_with_all_that_the_contract_asks(self, bd: BdLedger) -> None:
        """Title, type, priority, labels and notes."""
        id_ = bd.create("merge", ["b", "a"], "merge", "high", {"score": 0.5})
        (found,) = bd.query("merge")
        assert (found["id"], found["title"], found["issue_type"]) == (id_, "Merge 2 memories", "task")
        assert (found["priority"], found["urgency"], found["status"]) == (1, "high", "open")
        assert found["labels"] == ["consolidation:merge", "urgency:high"]
        assert found["notes"] == {"memory_ids": ["a", "b"], "agent": "merge", "action": "merge", "score": 0.5}
        assert found["memory_ids"] == ["a", "b"]

    def test_the_same_memories_are_filed_once(self, bd: BdLedger) -> None:
        """As in the store."""
        first = bd.create("merge", ["a", "b"], "merge")
        assert bd.create("merge", ["b", "a"], "merge") == first
        assert bd.claim(first)
        assert bd.create("merge", ["b", "a"], "merge") == first
        bd.close(first, "done")
        assert bd.create("merge", ["a", "b"], "merge") != first

    def test_filters_add_up(self, bd: BdLedger) -> None:
        """Agent, status and urgency; nothing found is an empty list."""
        one, two = bd.create("merge", ["a"], "merge", "high"), bd.create("decay", ["a"], "gc")
        bd.claim(one)
        assert [issue["id"] for issue in bd.query()] == [two]
        assert [issue["id"] for issue in bd.query(status=None)] == [one, two]
        assert [issue["id"] for issue in bd.query(status=None, urgency="high")] == [one]
        assert bd.query("promote") == bd.query("decay", "blocked") == []
        assert bd.counts() == {"decay": {"open": 1}, "merge": {"in_progress": 1}}

    def test_unfinished_issues_are_found_by_any_of_their_memories(self, bd: BdLedger) -> None:
        """Of one agent."""
        first, second = bd.create("merge", ["a", "b"], "merge"), bd.create("merge", ["b", "c"], "merge")
        bd.create("decay", ["b"], "gc")
        bd.close(bd.create("merge", ["b"], "merge"), "no")
        bd.block(first, "no")
        assert [issue.id for issue in about(bd, "b", "x")] == [first, second]
        assert about(bd, "x") == []

    def test_issues_of_several_agents_are_listed_together(self, bd: BdLedger) -> None:
        """`bd list` takes several labels as one condition."""
        ids = [bd.create("merge", ["a"], "merge"), bd.create("decay", ["a"], "gc")]
        bd.create("promote", ["a"], "promote")
        found = bd.selected(IssueSelection(agents=("merge", "decay"), statuses=("open",)))
        assert [issue.id for issue in found] == ids

    def test_one_claims_and_no_other_can(self, bd: BdLedger) -> None:
        """Blocked and closed ones neither."""
        id_ = bd.create("merge", ["a"], "merge")
        assert bd.claim(id_)
        assert not bd.claim(id_)
        bd.block(id_, "no")
        assert not bd.claim(id_)
        bd.reopen(id_)
        assert bd.claim(id_)
        bd.reopen(id_, "whoever claimed it was killed, and no claim lapses here")
        assert bd.claim(id_)
        bd.close(id_, "done")
        assert not bd.claim(id_)
        assert bd.show(id_)["close_reason"] == "done"

    @pytest.mark.usefixtures("version")
    def test_blocking_appends_and_keeps_the_json(self, bd: BdLedger) -> None:
        """What was noted before stays readable."""
        id_ = bd.create("merge", ["a"], "merge")
        bd.block(id_, "disk\nfull")
        bd.block(id_, "--status=closed")
        found = bd.show(id_)
        assert (found["status"], found["memory_ids"]) == ("blocked", ["a"])
        assert found["log"] == ["blocked: disk full", "blocked: --status=closed"]

    def test_values_that_look_like_flags_are_values(self, bd: BdLedger) -> None:
        """Nobody orders `bd` about by an id or a reason."""
        id_ = bd.create("merge", ["--claim", "-x"], "-l=evil")
        assert bd.show(id_)["title"] == "Look at 2 memories"
        bd.close(id_, "--json")
        assert bd.show(id_)["close_reason"] == "--json"
        bd.reopen(id_, "-r")
        assert bd.show(id_)["status"] == "open"
        for call in (lambda: bd.claim("--claim"), lambda: bd.close("-h", "x"), lambda: bd.show("")):
            with pytest.raises(NotFoundError):
                call()

    def test_what_is_not_there_or_not_possible_is_refused(self, bd: BdLedger) -> None:
        """With the errors of the store's ledger."""
        id_ = bd.create("merge", ["a"], "merge")
        for call in (lambda: bd.claim("bd-9"), lambda: bd.block("bd-9", "x"), lambda: bd.reopen("bd-9")):
            with pytest.raises(NotFoundError, match="no issue 'bd-9'"):
                call()
        with pytest.raises(UsageError, match="is open"):
            bd.reopen(id_)
        bd.close(id_, "done")
        for refused in (lambda: bd.close(id_, "again"), lambda: bd.block(id_, "no"), lambda: bd.close(id_, "")):
            with pytest.raises(UsageError):
                refused()
        with pytest.raises(UsageError, match="bd show"):
            bd.history(id_)
        for wrong in (lambda: bd.query("x"), lambda: bd.query(status="x"), lambda: bd.create("x", ["a"], "y")):
            with pytest.raises(UsageError, match="give one of"):
                wrong()


class TestFailures:
    @pytest.mark.parametrize(
        ("behaviour", "told"),
        [
            ("rubbish", "bd list answered 'Welcome to beads!'"),
            ("fail", r"bd list failed: Error: database is locked by \[redacted: github token\]"),
            ("error", "bd list failed: no such database"),
            ("silent", "bd list failed: it ended with 3"),
        ],
    )
    def test_what_bd_says_is_told(
        self, bd: BdLedger, monkeypatch: pytest.MonkeyPatch, behaviour: str, told: str
    ) -> None:
        """Without secrets, and with what to do."""
        monkeypatch.setenv("BD_FAKE", behaviour)
        with pytest.raises(ProviderError, match=told) as caught:
            bd.query()
        assert caught.value.remedy

    def test_a_bd_that_hangs_is_ended_with_all_that_it_started(
        self, bd: BdLedger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process of its own that holds the output open would keep us waiting for ever."""
        monkeypatch.setenv("BD_FAKE", "hang")
        hasty = open_bd(bd._program, bd._directory, timeout_s=0.5)
        with pytest.raises(ProviderError, match=r"no answer within 0\.5 s"):
            hasty.query()

    def test_a_claim_that_another_won_meanwhile_is_no_failure(
        self, bd: BdLedger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between looking and claiming somebody else claimed it."""
        id_ = bd.create("merge", ["a"], "merge")
        assert bd.claim(id_)
        monkeypatch.setenv("BD_FAKE", "stale")
        assert bd.show(id_)["status"] == "open"
        assert not bd.claim(id_)

    def test_without_program_or_database_the_remedy_is_told(self, bd: BdLedger, tmp_path: Path) -> None:
        """Settings ask for beads, and there is none."""
        with pytest.raises(UsageError, match="no program 'no-such-bd'"):
            open_bd("no-such-bd", tmp_path)
        (tmp_path / ".beads").rmdir()
        with pytest.raises(UsageError, match=r"no \.beads directory"):
            open_bd(bd._program, tmp_path / "below")

    def test_a_program_that_cannot_be_run_is_told(self, tmp_path: Path) -> None:
        """It was there when it was looked for."""
        with pytest.raises(ProviderError, match="cannot be run"):
            BdLedger(str(tmp_path / "gone"), tmp_path).query()


def test_the_engine_asks_bd_where_the_settings_say_so(
    bd: BdLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project's own file cannot: it would name a program that arrives with someone else's clone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMONPLACE_LEDGER_BACKEND", "bd")
    monkeypatch.setenv("COMMONPLACE_LEDGER_BD", bd._program)
    with commonplace.open(tmp_path / "store") as book:
        id_ = book.ledger.create("merge", ["a"], "merge")
        assert [issue["id"] for issue in book.ledger.query()] == [issue["id"] for issue in bd.query()] == [id_]
    monkeypatch.delenv("COMMONPLACE_LEDGER_BACKEND")
    monkeypatch.delenv("COMMONPLACE_LEDGER_BD")
    (tmp_path / "commonplace.toml").write_text('[ledger]\nbackend = "bd"\n')
    with pytest.raises(CommonplaceError, match=r"ledger\.backend"):
        load({})
