"""Specs through Python and the command line: the same envelopes, and exit codes that tell whose fault it is."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.stubs.model_server import ModelServer, broken, good

import commonplace
from commonplace.cli.app import cli
from commonplace.specs import CODES, REQUEST_CODES

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ROOT = Path(__file__).resolve().parents[2]
RETRIEVER = str(ROOT / "examples/memory-retriever.oas.yaml")
CHAT = str(ROOT / "examples/chat-with-memory.oas.yaml")
SEOUL = {"role": "user", "content": "I have lived in Seoul since 2019."}
REX = {"role": "user", "content": "My dog is called Rex."}
ASKED = {"query": "where do I live?", "candidates": [REX, SEOUL]}
GOOD = json.dumps({"history": [SEOUL], "memory_count": 1})


@pytest.fixture
def offline(bare: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program on a machine that has no key and no model."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return bare


def arguments(spec: str, task: str, values: Any) -> list[str]:
    return ["spec", "run", "--spec", spec, "--task", task, "--input", json.dumps(values)]


CASES = {
    "answered": ((RETRIEVER, "retrieve", ASKED), 0),
    "empty": ((RETRIEVER, "retrieve", {**ASKED, "candidates": []}), 0),
    "no task": ((RETRIEVER, "nowhere", ASKED), 2),
    "no input": ((RETRIEVER, "retrieve", {"query": "x"}), 2),
    "no spec": (("missing.yaml", "retrieve", ASKED), 1),
    "no key": ((CHAT, "chat", ASKED), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_python_and_the_command_line_give_the_same_envelope(offline: Program, case: str) -> None:
    (spec, task, values), code = CASES[case]
    assert offline.json(*arguments(spec, task, values), code=code) == commonplace.run_spec(spec, task, values)


def test_with_an_address_in_the_environment_the_same_command_uses_the_model(
    offline: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([good(GOOD), good(GOOD), good("In Seoul."), broken()]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("COMMONPLACE_MODELS_RETRIES", "0")
        done = offline.json(*arguments(RETRIEVER, "retrieve", ASKED))
        chat = offline.run(*arguments(CHAT, "chat", ASKED))
        failed = offline.json(*arguments(CHAT, "recall", ASKED), code=1)
        roles = [message["role"] for message in server.asked[2].document["messages"]]
    assert (done["degraded"], done["engine"], done["raw_output"]) == (False, "openai", GOOD)
    assert (chat.stdout, chat.stderr) == ("In Seoul.\n", "")
    assert roles == ["system", "user", "user"]
    assert failed["code"] == "PROVIDER_ERROR"


def test_the_output_goes_to_standard_output_and_notes_beside_it(offline: Program) -> None:
    line = arguments(RETRIEVER, "retrieve", ASKED)
    done = offline.run(*line)
    assert json.loads(done.stdout) == {"history": [SEOUL], "memory_count": 1}
    assert done.stderr.startswith("note: retrieve ran on our own re-ranker, as OPENAI_API_KEY is not set")
    assert offline.run(*line, "-q").stderr == ""
    verbose = offline.run(*line, "-v")
    assert verbose.stdout == done.stdout
    assert "retrieve on commonplace minilm, asked:\nYou are a memory re-ranking assistant." in verbose.stderr


def test_an_error_is_one_line_with_its_code(offline: Program) -> None:
    done = offline.run(*arguments(RETRIEVER, "nowhere", {}), code=2)
    assert done.stdout == ""
    assert done.stderr == (
        "error: there is no task 'nowhere'; the spec has: retrieve (TASK_NOT_FOUND at routing, task nowhere)\n"
    )


def test_the_input_comes_from_a_file_or_from_standard_input(offline: Program) -> None:
    text = json.dumps(ASKED)
    (offline.project / "input.json").write_text(text, encoding="utf-8")
    line = ["spec", "run", "--spec", RETRIEVER, "-q", "--input"]
    expected = offline.run(*line, text).stdout
    assert offline.run(*line, "input.json").stdout == expected
    assert CliRunner().invoke(cli, [*line, "-"], input=text).stdout == expected


@pytest.mark.parametrize("given", ["{", "[1]", "nofile.json", "docs", "a\0b"])
def test_an_input_that_cannot_be_read_is_wrong_use(offline: Program, given: str) -> None:
    assert "--input" in offline.error("spec", "run", "--spec", RETRIEVER, "--input", given, code=2)["message"]


def test_validate_tells_what_a_spec_is(offline: Program) -> None:
    done = offline.run("spec", "validate", RETRIEVER)
    assert done.stdout == "memory-retriever (Open Agent Spec 1.4.0) is valid, with 1 task: retrieve\n"
    assert offline.json("spec", "validate", CHAT) == {
        "valid": True,
        "name": "chat-with-memory",
        "version": "1.6.0",
        "tasks": ["recall", "chat"],
        "faults": [],
        "notes": [],
    }


def test_validate_tells_every_fault_and_fails(offline: Program) -> None:
    file = offline.project / "s.yaml"
    file.write_text("open_agent_spec: '9.9'\nagent: {name: n, description: d}\ntasks: {t: {}}\n", encoding="utf-8")
    done = offline.run("spec", "validate", str(file), code=1)
    assert done.stdout.splitlines() == [
        "intelligence: is missing",
        "tasks.t.description: is missing",
        "open_agent_spec: version 9.9 is not read; those from 1.0.4 to 1.6 are",
    ]
    told = offline.json("spec", "validate", str(file), code=1)
    assert (told["valid"], told["name"], len(told["faults"])) == (False, None, 3)
    offline.run("spec", "validate", "missing.yaml", code=1)


def test_neither_command_makes_a_store(offline: Program) -> None:
    offline.run("spec", "validate", RETRIEVER)
    offline.run(*arguments(RETRIEVER, "retrieve", ASKED))
    assert not (offline.project / ".commonplace").exists()
    assert not (offline.project.parent / "home").exists()


def test_the_example_of_the_manual_runs_offline_from_store_to_answer(offline: Program) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/chat_with_memory.py")], capture_output=True, text=True, check=True
    )
    *lines, reason, told = done.stdout.splitlines()
    assert "OPENAI_API_KEY" in reason
    assert told == "The model was given: system, user, assistant, user"
    assert lines == [
        "4 candidates; the history that matters:",
        "    user: Let us choose a database for billing: I am for Postgres.",
        "    assistant: Postgres it is for billing; the team knows this database.",
        "Answer: You chose Postgres, since the team knows it.",
    ]


def test_commands_of_the_manuals_page_run_as_they_stand(offline: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """They name the examples by their place in the repository."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/specs.md").read_text("utf-8"), re.DOTALL)
    typed = re.findall(r"^commonplace (.*)$", "\n".join(blocks).replace("\\\n", ""), re.MULTILINE)
    assert len(typed) >= 3
    for line in typed:
        offline.run(*shlex.split(line, comments=True))


def test_the_python_of_the_manuals_page_runs_as_it_stands(offline: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/specs.md").read_text("utf-8"), re.DOTALL)
    assert examples
    for code in examples:
        exec(compile(code, "docs/specs.md", "exec"), {})


def test_the_manual_lists_every_code_with_its_exit_code() -> None:
    rows = re.findall(r"^\* `(\w+)`: (.*) \((\d)\)$", (ROOT / "docs/specs.md").read_text("utf-8"), re.MULTILINE)
    assert {code: (meaning, number) for code, meaning, number in rows} == {
        code: (meaning, "2" if code in REQUEST_CODES else "1") for code, meaning in CODES.items()
    }
