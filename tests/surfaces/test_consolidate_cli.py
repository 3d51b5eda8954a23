"""The contract's command line: `cortexgraph-consolidate`, and `commonplace consolidate`, which is the same program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import commonplace
from commonplace.cli.consolidate import program as contract_program
from commonplace.engine import Engine
from commonplace.engine.consolidation_api import ConsolidationApi
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

LONG_AGO = 1_700_000_000.0
FADED = {"a": "The harbour of Aegina froze over", "b": "Ravens nest in the old lighthouse"}


@pytest.fixture
def faded(bare: Program) -> Iterator[Program]:
    """A store with two memories that nobody has used for years."""
    with commonplace.open(bare.project / ".commonplace", clock=lambda: LONG_AGO) as book:
        for id_, text in FADED.items():
            book.remember(text, id=id_)
    yield bare


def contract(*arguments: str, code: int = 0) -> Any:
    """Run `cortexgraph-consolidate`."""
    done = CliRunner().invoke(contract_program, list(arguments))
    assert done.exit_code == code, (done.output, done.stderr, done.exception)
    return done


def live(book: Engine) -> list[str]:
    return sorted(memory.id for memory in book.list())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dry-run", "--json", "run", "decay"),
        ("run", "--dry-run", "decay", "--json"),
        ("run", "decay", "--json", "--dry-run", "--rate-limit", "7"),
        ("--rate-limit", "7", "--json", "-v", "run", "decay", "--dry-run"),
    ],
)
def test_global_options_stand_before_or_after_the_command(faded: Program, arguments: tuple[str, ...]) -> None:
    told = json.loads(contract(*arguments).stdout)
    assert told["dry_run"] is True
    assert [each["memory_id"] for each in told["results"]["decay"]] == ["a", "b"]
    again = faded.json("consolidate", *arguments)
    assert [each["action"] for each in again["results"]["decay"]] == ["gc", "gc"]
    with commonplace.open() as book:
        assert live(book) == ["a", "b"]


def test_run_prints_what_the_contract_says(faded: Program) -> None:
    told = json.loads(contract("--json", "run", "decay").stdout)
    assert {"dry_run", "results", "errors", "skipped"} <= set(told)
    assert (told["dry_run"], told["errors"], told["skipped"]) == (False, [], 0)
    first = told["results"]["decay"][0]
    assert {name: first[name] for name in ("memory_id", "urgency", "action")} == {
        "memory_id": "a",
        "urgency": "high",
        "action": "gc",
    }
    assert first["beads_issue_id"].startswith("commonplace-")


@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_runs_by_its_name(faded: Program, agent: str) -> None:
    assert list(json.loads(contract("--json", "run", agent, "--dry-run").stdout)["results"]) == [agent]


def test_all_agents_run_in_the_order_of_the_pipeline(faded: Program) -> None:
    told = json.loads(contract("--json", "run", "--all").stdout)
    assert list(told["results"]) == ["decay", "cluster", "merge", "promote", "relations"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run",), "Name agents"),
        (("run", "decay", "--all"), "Name agents"),
        (("run", "tidy"), "'tidy' is not one of"),
        (("run", "--all", "--rate-limit", "many"), "'many' is not a valid integer"),
        (("run", "--all", "--rate-limit", "-1"), "-1 is not in the range"),
        (("status", "tidy"), "'tidy' is not one of"),
        (("process",), "Missing argument 'ISSUE'"),
        (("undo",), "Missing argument"),
        (("undo", "x", "--dry-run"), "There is no preview"),
        (("watch",), "Missing option '--every'"),
        (("watch", "--every", "often"), "'often' is not a duration"),
        (("watch", "--every", "1s"), "'1s' is not a duration from 10s to 366d"),
        (("vanish",), "No such command 'vanish'"),
    ],
)
def test_wrong_use_is_an_error_of_exit_code_2(faded: Program, arguments: tuple[str, ...], said: str) -> None:
    assert said in contract(*arguments, code=2).stderr
    assert said in faded.run("consolidate", *arguments, code=2).stderr


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("run", {"--dry-run", "--rate-limit"}),
        ("watch", {"--dry-run", "--rate-limit"}),
        ("process", {"--dry-run", "--rate-limit"}),
        ("status", {"--rate-limit"}),
        ("runs", set()),
        ("undo", set()),
        ("unmerge", set()),
    ],
)
def test_help_offers_a_command_only_the_shared_options_that_it_heeds(command: str, offered: set[str]) -> None:
    """Who reads of a preview of undoing asks for it, and would be refused."""
    printed = contract(command, "--help").stdout
    assert {option for option in ("--dry-run", "--rate-limit") if option in printed} == offered


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("process", "commonplace-00000000"), "there is no issue"),
        (("undo", "commonplace-00000000"), "there is no issue or run"),
        (("unmerge", "a"), "no merge made memory 'a'"),
    ],
)
def test_what_is_not_there_is_an_error_of_exit_code_1(faded: Program, arguments: tuple[str, ...], said: str) -> None:
    done = contract(*arguments, code=1)
    assert (said in done.stderr, done.stdout) == (True, "")


def test_there_has_to_be_a_store(bare: Program) -> None:
    assert "there is no store" in contract("run", "--all", code=1).stderr
    assert not (bare.project / ".commonplace").exists()


def test_status_is_the_contracts_and_tells_the_truth(faded: Program) -> None:
    with commonplace.open() as book:
        fresh = [book.remember(text).id for text in ("The ferry leaves at nine", "Nobody sails on Sundays")]
        issue = book.ledger.create("merge", fresh, "merge")
    told = json.loads(contract("status", "--json").stdout)
    nothing = {"pending": 0, "in_progress": 0, "blocked": 0}
    assert told == {
        "agents": {
            "decay": nothing,
            "cluster": nothing,
            "merge": {"pending": 1, "in_progress": 0, "blocked": 0},
            "promote": nothing,
            "relations": nothing,
        },
        "total_pending": 1,
        "rate_limit_remaining": 100,
    }
    contract("run", "decay")
    with commonplace.open() as book:
        assert book.ledger.claim(issue)
    told = json.loads(contract("--json", "status", "merge").stdout)
    assert (told["agents"], told["total_pending"]) == ({"merge": {"pending": 0, "in_progress": 1, "blocked": 0}}, 0)
    assert told["rate_limit_remaining"] == 96


def test_an_issue_is_processed_and_undone(faded: Program) -> None:
    with commonplace.open() as book:
        issue = book.ledger.create("decay", ["a"], "gc")
    dry = json.loads(contract("--dry-run", "--json", "process", issue).stdout)
    assert (dry["dry_run"], dry["results"]["decay"][0]["beads_issue_id"]) == (True, None)
    assert json.loads(contract("process", issue, "--json").stdout)["results"]["decay"][0]["memory_id"] == "a"
    with commonplace.open() as book:
        assert live(book) == ["b"]
    assert "is not open" in contract("process", issue, code=1).stderr
    assert "is not open" in contract("--dry-run", "process", issue, code=1).stderr
    assert json.loads(contract("undo", issue, "--json").stdout)["issues"] == [issue]
    with commonplace.open() as book:
        assert live(book) == ["a", "b"]


def test_an_issue_that_cannot_be_processed_is_an_error_of_its_agent(faded: Program) -> None:
    with commonplace.open() as book:
        issue = book.ledger.create("promote", ["a"], "promote")
    failed = contract("--json", "process", issue, code=1)
    told = json.loads(failed.stdout)
    assert (told["dry_run"], told["results"], told["skipped"]) == (False, {}, 0)
    assert [(each["agent"], each["item"]) for each in told["errors"]] == [("promote", issue)]
    assert "meets no criterion" in told["errors"][0]["error"]
    assert "meets no criterion" in failed.stderr
    assert "is not open" in contract("process", issue, code=1).stderr


def test_a_preview_shows_a_person_what_would_go(faded: Program) -> None:
    printed = contract("run", "decay", "--dry-run").stdout
    assert "decay: 2 stale memories (dry run)" in printed
    assert all(text in printed for text in FADED.values())
    assert "archive" in printed


def test_a_run_says_how_to_undo_it(faded: Program) -> None:
    printed = contract("run", "decay").stdout
    (line,) = [line for line in printed.splitlines() if "consolidate undo" in line]
    run = line.split("undo ")[1]
    assert "Undid 2 changes of 2 memories" in faded.run("consolidate", "undo", run).stdout


def test_runs_are_listed_to_find_what_to_undo(faded: Program) -> None:
    assert "no run has changed" in contract("runs").stdout
    run = json.loads(contract("run", "decay", "--json").stdout)["run"]
    (told,) = json.loads(contract("runs", "--json").stdout)["runs"]
    assert (told["run"], told["agents"], told["applied"], told["standing"]) == (run, ["decay"], 2, 2)
    assert "2 changes applied" in contract("runs", "--limit", "1").stdout
    assert "consolidate undo RUN" in contract("runs").stdout
    contract("undo", run)
    shown = contract("runs").stdout
    assert "2 changes applied · undone" in " ".join(shown.split())
    assert "consolidate undo RUN" not in shown


def test_whoever_stops_a_run_learns_how_to_undo_what_it_did(faded: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of the run, which tells it else, never comes."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ConsolidationApi, "_wait", stop)
    said = contract("run", "decay", "--rate-limit", "3", code=130).stderr
    first, second = said.strip().splitlines()
    assert first == "interrupted"
    run = second.removeprefix("undo what was done by then: commonplace consolidate undo ")
    assert "only its changes are known" in contract("runs").stdout
    assert "Undid 1 change of 1 memory" in faded.run("consolidate", "undo", run).stdout
    assert contract("run", "decay", "--rate-limit", "1", code=130).stderr.strip() == "interrupted"


def test_what_waits_says_why_and_what_was_turned_down_is_left(bare: Program) -> None:
    """Whoever is asked to decide has to know what speaks against it, and that a no is heeded."""
    for text in ("The payment gateway in CI is mocked", "The payment gateway in CI is not mocked"):
        bare.run("remember", text)
    assert "of 2 · would wait for you" in contract("run", "cluster", "merge", "--dry-run").stdout
    printed = contract("run", "cluster", "merge").stdout
    assert "waiting for you, issue" in printed
    assert "sentences may contradict each other: 1 by negation" in " ".join(printed.split())
    with commonplace.open() as book:
        for issue in book.ledger.query():
            book.ledger.close(issue["id"], "each holds for a branch of its own")
    left = contract("run", "cluster").stdout
    assert re.search(r"^merge 2 · cohesion 0\.\d\d · confidence 0\.\d\d · left as it is$", left, re.MULTILINE)


def test_a_lost_golden_query_is_told_and_nothing_is_called_done(faded: Program, tmp_path: Path) -> None:
    """What was undone at once was not done."""
    golden = tmp_path / "golden.jsonl"
    golden.write_text(json.dumps({"query": "harbour of Aegina", "relevant": ["a"]}))
    printed = contract("run", "decay", "--golden", str(golden), code=1).stdout
    assert "done, issue" not in printed.replace("undone, issue", "") and printed.count("undone, issue") == 2


def test_a_lost_golden_query_is_an_error_of_exit_code_1_and_nothing_is_changed(faded: Program, tmp_path: Path) -> None:
    golden = tmp_path / "golden.jsonl"
    golden.write_text(json.dumps({"query": "harbour of Aegina", "relevant": ["a"]}))
    told = json.loads(contract("--json", "run", "decay", "--golden", str(golden), code=1).stdout)
    assert told["lost"] == ["harbour of Aegina"]
    with commonplace.open() as book:
        assert live(book) == ["a", "b"]


def test_the_console_script_is_installed_and_watches_until_it_is_told_to_stop(faded: Program) -> None:
    """The run under way ends, and the exit code is 0."""
    command = [str(Path(sys.executable).with_name("cortexgraph-consolidate")), "watch", "--every", "1d", "--json"]
    with subprocess.Popen(command, cwd=faded.project, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        second = subprocess.run(command, cwd=faded.project, capture_output=True, text=True, check=False)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert told["applied"] == 2
    assert (second.returncode, "another process watches this store" in second.stderr) == (1, True)


def test_verbose_tells_on_standard_error_what_each_agent_does(faded: Program) -> None:
    """The contract calls it verbose logging: what was looked at, what was decided, and why."""
    quiet, wordy = (contract(*verbose, "--json", "--dry-run", "run", "decay") for verbose in ((), ("-v",)))
    assert quiet.stderr == ""
    assert set(json.loads(wordy.stdout)) == set(json.loads(quiet.stdout))
    assert "info: decay: 2 items to look at" in wordy.stderr
    assert "debug: decay: gc a: applied: retention 0.00 after 0 uses" in wordy.stderr
