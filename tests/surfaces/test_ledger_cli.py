"""The ledger on the command line: who sees it can settle it, and every answer exists as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import commonplace
from commonplace.cli.app import cli

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

Run = Callable[..., Result]
BD = Path(__file__).parents[1] / "stubs" / "bd.py"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory = tmp_path / "store"
    with commonplace.open(directory, embedder="hashing") as book:
        for id_ in ("a", "b"):
            book.remember(f"the price of kettle {id_}", id=id_)
    return directory


@pytest.fixture
def run(store: Path) -> Run:
    def invoke(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(cli, ["ledger", *arguments, "--store", str(store)])
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def issue(store: Path) -> str:
    with commonplace.open(store) as book:
        return book.ledger.create("merge", ["a", "b"], "merge", "high", {"cohesion": 0.8})


def told(result: Result) -> Any:
    return json.loads(result.stdout)


def test_nothing_to_export_or_to_import_is_reported(run: Run, tmp_path: Path) -> None:
    """Who sees no line does not know whether it was done: the file is made, and empty."""
    file = tmp_path / "issues.jsonl"
    assert run("export", str(file)).stdout == f"Wrote no issues to {file}: the ledger has none.\n"
    assert file.read_text() == ""
    assert run("import", str(file)).stdout == f"There are no issues in {file}.\n"


def test_an_issue_is_listed_shown_and_settled(run: Run, issue: str) -> None:
    """A person goes through what agents propose."""
    listed = run("list").stdout
    assert issue in listed and "Merge 2 memories" in listed and "high" in listed
    shown = run("show", issue).stdout
    assert "memory a" in shown and "cohesion: 0.8" in shown
    assert f"{issue} claimed" in run("claim", issue).stdout
    assert f"{issue} not claimed (it is in_progress)" in run("claim", issue, code=1).stdout
    run("block", issue, "--error", "disk full")
    assert "blocked: disk full" in run("show", issue).stdout
    run("reopen", issue, "--why", "there is room")
    run("close", issue, "--reason", "merged")
    assert "No issues match." in run("list").stdout
    assert issue in run("list", "--status", "closed").stdout
    history = run("history", issue).stdout
    words = ("created by", "claimed by", "blocked by", "reopened by", "closed by")
    places = [history.index(word) for word in words]
    assert places == sorted(places)
    assert ": there is room" in history and ": merged" in history


def test_every_answer_exists_as_json(run: Run, issue: str, tmp_path: Path) -> None:
    """Scripts read it."""
    (found,) = told(run("list", "--json"))["issues"]
    assert found == told(run("show", issue, "--json"))
    assert found["notes"] == {"memory_ids": ["a", "b"], "agent": "merge", "action": "merge", "cohesion": 0.8}
    assert (found["urgency"], found["log"], found["status"]) == ("high", [], "open")
    assert told(run("claim", issue, "--json")) == {"issue": issue, "claimed": True, "status": "in_progress"}
    assert told(run("claim", issue, "--json", code=1))["claimed"] is False
    assert told(run("block", issue, "--error", "no", "--json")) == {"issue": issue, "status": "blocked"}
    assert told(run("reopen", issue, "--json")) == {"issue": issue, "status": "open"}
    assert told(run("close", issue, "--reason", "x", "--json")) == {"issue": issue, "status": "closed"}
    assert [each["act"] for each in told(run("history", issue, "--json"))["history"]][-1] == "closed"
    file = tmp_path / "issues.jsonl"
    assert told(run("export", str(file), "--json")) == {"path": str(file), "issues": 1}
    assert told(run("import", str(file), "--json")) == {"added": [], "replaced": [], "unchanged": [issue], "same": []}
    assert told(run("list", "--all", "--agent", "decay", "--json")) == {"issues": []}


def test_issues_go_to_a_file_and_come_into_another_store(run: Run, issue: str, tmp_path: Path) -> None:
    """As beads has them, one a line."""
    file, other = tmp_path / "issues.jsonl", tmp_path / "other"
    assert "Wrote 1 issue" in run("export", str(file)).stdout
    assert json.loads(file.read_text())["labels"] == ["consolidation:merge", "urgency:high"]
    assert "exists already" in run("export", str(file), code=1).stderr
    commonplace.open(other).close()
    result = CliRunner().invoke(cli, ["ledger", "import", str(file), "--store", str(other)])
    assert (result.exit_code, "1 added" in result.stdout) == (0, True)
    with commonplace.open(other) as book:
        assert book.ledger.show(issue)["memory_ids"] == ["a", "b"]


def test_a_wrong_word_is_told_with_what_there_is(run: Run, issue: str, tmp_path: Path) -> None:
    """Nothing is half done."""
    assert "no issue 'x'" in run("show", "x", code=1).stderr
    assert "'merge'" in run("list", "--agent", "x", code=2).stderr
    assert "--reason" in run("close", "x", code=2).stderr
    assert "say it in a few words" in run("close", issue, "--reason", " ", code=2).stderr
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": "ok", "created_at": "2026-01-01"}\n{"id": 1}\n')
    assert "line 2: id is not text" in run("import", str(broken), code=2).stderr
    assert [each["id"] for each in told(run("list", "--all", "--json"))["issues"]] == [issue]


def test_a_list_says_what_the_memories_say(run: Run, issue: str) -> None:
    """Nobody can decide about a number and an id."""
    assert issue in run("list").stdout
    assert "   the price of kettle a\n   the price of kettle b\n" in run("list").stdout
    assert "the price of kettle a" in run("show", issue).stdout
    assert "the price" not in run("list", "--json").stdout


def test_what_was_undone_is_shown_as_undone(store: Path, run: Run, issue: str) -> None:
    with commonplace.open(store) as book:
        book.process_issue(issue)
        book.undo_consolidation(issue)
    assert "undone at " in run("show", issue).stdout
    with commonplace.open(store) as book:
        book.ledger.reopen(issue)
        book.process_issue(issue)
    assert "undone at " not in run("show", issue).stdout


def test_times_are_those_of_this_machine(run: Run, issue: str) -> None:
    """As everywhere on the command line; JSON has them in UTC."""
    at = json.loads(run("history", issue, "--json").stdout)["history"][0]["at"]
    local = datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
    assert f"{local}  created by" in run("history", issue).stdout
    assert at not in run("list").stdout and local in run("list").stdout


def test_an_issue_that_beads_keeps_is_shown_without_its_history(
    store: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beads keeps the history of its issues itself."""
    (tmp_path / ".beads").mkdir()
    program = tmp_path / "bd"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -S -E '{BD}' \"$@\"\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMONPLACE_LEDGER_BACKEND", "bd")
    monkeypatch.setenv("COMMONPLACE_LEDGER_BD", str(program))
    with commonplace.open(store) as book:
        issue = book.ledger.create("merge", ["a", "b"], "merge")
    assert issue in run("list").stdout
    assert "the price of kettle b" in run("show", issue).stdout


def test_a_file_that_cannot_be_written_is_named_once(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "issues.jsonl"
    said = " ".join(run("export", str(target), code=1).stderr.split())
    assert said == f"error: {target} cannot be written: No such file or directory; name a file that can be written"


def test_links_of_the_rule_are_listed_with_why_they_were_made_and_how_they_ended(bare: Program) -> None:
    """What a rule decides is accounted for, also where nobody was asked, and without a second record of each."""
    bare.run("init")
    assert bare.run("ledger", "links").stdout == "The rule has made no links.\n"
    for id_, text, at in (
        ("old", "Deployments go out on Thursdays.", "2026-01-10"),
        ("new", "Deployments go out on Fridays now.", "2026-02-10"),
        ("porto", "My sister lives in Porto.", "2026-01-10"),
        ("lisbon", "My sister lives in Lisbon.", "2026-02-10"),
    ):
        bare.run("remember", text, "--id", id_, "--at", at)
    made = bare.json("ledger", "links")["links"]
    assert [(each["source"], each["target"], each["ended_at"]) for each in made] == [
        ("lisbon", "porto", None),
        ("new", "old", None),
    ]
    printed = bare.run("ledger", "links", "-n", "1").stdout
    assert "lisbon conflicts porto" in printed
    assert "in effect" in printed
    assert "they are alike" in printed
    bare.run("memory", "link", "new", "old", "--type", "holds beside")
    bare.run("update", "lisbon", "The garden needs water in the evening.")
    ended = {each["source"]: each for each in bare.json("ledger", "links")["links"]}
    assert {id_: each["ended_by"] for id_, each in ended.items()} == {"new": "answer", "lisbon": "rule"}
    assert all(each["ended_at"] for each in ended.values())
    printed = bare.run("ledger", "links").stdout
    assert "ended by an answer" in printed
    assert "ended by a change" in printed
