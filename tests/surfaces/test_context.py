"""What is worth knowing before a task, through Python, the command line and a client's hook."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

import commonplace
from commonplace.cli.app import cli
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

EXPIRY = "A login session expires after thirty minutes, the security team insists."
SHORT_ANSWERS = "The user wants short answers with the command to run first."


def hook(event: object, *arguments: str) -> Result:
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    return CliRunner().invoke(cli, ["context", "--stdin-json", *arguments], input=data)


def test_the_same_context_comes_through_python_and_the_command_line(program: Program) -> None:
    program.run("remember", SHORT_ANSWERS, "--tier", "long")
    told = program.json("context", "when does a session expire", "--max-tokens", "300")
    with commonplace.open(program.project / ".commonplace") as book:
        made = book.context("when does a session expire", 300)
    same = json.loads(json.dumps(made.to_dict()))
    assert {**same, "latency_ms": 0} == {**told, "latency_ms": 0}
    assert "A session expires after thirty minutes" in made.text
    assert made.references[0] == "docs/auth.md#sessions"
    assert made.text.endswith(f"References: {', '.join(told['references'])}")
    assert 0 < made.tokens <= 300
    assert program.run("context", "when does a session expire", "--max-tokens", "300").stdout == made.text + "\n"


@pytest.mark.parametrize("agent", [(), ("--agent", "test-engineer")], ids=["nobody", "an agent"])
@pytest.mark.parametrize("where", [("--namespace", "nope"), ()], ids=["empty namespace", "the project's"])
def test_a_context_has_the_notices_of_a_search(
    program: Program, where: tuple[str, ...], agent: tuple[str, ...]
) -> None:
    """Who reads only that nothing is relevant looks for another question, where the namespace is mistyped."""
    told, found = (program.json(*where, name, "zebra crossing", *agent) for name in ("context", "search"))
    assert told["notices"] == found["notices"]
    assert told["notices"] or not (where or agent)
    if where:
        assert "namespace 'nope' holds nothing; the store has: 'default'" in told["notices"]
        assert not any("finds only" in notice for notice in told["notices"])


def test_a_title_that_is_found_alone_comes_with_the_text_under_it(program: Program) -> None:
    """Where the text is long, the title is a passage of its own, which alone says nothing."""
    long = " ".join(f"The teapot {number} is warmed before the leaves go in." for number in range(60))
    (program.project / "docs" / "tea.md").write_text(f"# Brewing oolong\n\n## How\n\n{long}\n")
    (program.project / "docs" / "end.md").write_text("# Serving oolong\n")
    program.run("index", "build")
    told = program.json("context", "brewing oolong", "--kind", "artifact", "--limit", "1", "--max-tokens", "5000")
    assert "# Brewing oolong\n\n## How\n\nThe teapot 0 is warmed" in told["text"]
    told = program.json("context", "serving oolong", "--kind", "artifact", "--max-tokens", "5000")
    assert "# Serving oolong" not in told["text"]


def test_without_a_task_it_holds_what_is_kept_long_and_then_the_newest(bare: Program) -> None:
    bare.run("init")
    bare.run("remember", "The staging cluster is rebuilt on Sunday.", "--at", "2026-03-01")
    bare.run("remember", "Ada went on holiday.", "--at", "2026-04-01")
    bare.run("remember", SHORT_ANSWERS, "--tier", "long", "--at", "2025-01-01")
    told = bare.json("context")
    assert [hit["text"] for hit in told["hits"]] == [
        SHORT_ANSWERS,
        "Ada went on holiday.",
        "The staging cluster is rebuilt on Sunday.",
    ]


def test_what_is_not_relevant_is_not_said(program: Program) -> None:
    told = program.run("context", "the migration of arctic terns")
    assert told.stdout == ""
    assert told.stderr == "note: nothing stored is relevant to this task\n"


@pytest.mark.parametrize("task", [(), ("who wants short answers",)])
def test_what_has_no_room_is_not_called_irrelevant(bare: Program, task: tuple[str, ...]) -> None:
    bare.run("init")
    bare.run("remember", SHORT_ANSWERS, "--tier", "long")
    told = bare.run("context", *task, "--max-tokens", "64")
    assert (told.stdout, told.stderr) == (
        "",
        "note: nothing relevant fits in the token budget; raise --max-tokens\n",
    )
    assert bare.json("context", *task, "--max-tokens", "64")["left_out"] == 1
    assert bare.json("context", *task)["left_out"] == 0


def test_nothing_remembered_is_not_called_irrelevant_to_no_task(bare: Program) -> None:
    bare.run("init")
    for task in ((), ("",), (" ",)):
        told = bare.run("context", *task)
        assert (told.stdout, told.stderr) == (
            "",
            "note: nothing is remembered yet; name a task to find what is indexed\n",
        )


def test_a_task_that_is_longer_than_a_query_is_refused_by_its_name(program: Program) -> None:
    with commonplace.open(program.project / ".commonplace") as book:
        assert book.context("sessions " * 11_111).notices == ()
        with pytest.raises(UsageError, match="task has 100,001 characters, the limit is 100,000"):
            book.context("a" * 100_001)


def test_a_hook_gets_the_memories_that_its_prompt_is_about(program: Program) -> None:
    program.run("remember", EXPIRY)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "when does a session expire", "cwd": str(program.project)}
    told = hook(event)
    assert (told.exit_code, told.stderr) == (0, "")
    assert EXPIRY in told.stdout
    assert "docs/auth.md" not in told.stdout


def test_a_hook_names_artifacts_in_a_line_each_where_they_are_asked_for(program: Program) -> None:
    told = hook({"prompt": "when does a session expire", "cwd": str(program.project)}, "--kind", "artifact")
    lines = told.stdout.splitlines()
    (item,) = (number for number, line in enumerate(lines) if line.startswith('<recalled-item ref="docs/auth.md#'))
    assert lines[item + 2] == "</recalled-item>"


def test_a_session_that_starts_gets_what_is_kept_long(program: Program) -> None:
    program.run("remember", SHORT_ANSWERS, "--tier", "long")
    told = hook({"hook_event_name": "SessionStart", "source": "startup", "cwd": str(program.project)})
    assert SHORT_ANSWERS in told.stdout
    assert "retention 1.00" in told.stdout
    assert "score" not in told.stdout


def test_a_subagent_that_starts_gets_its_context_as_json_since_clients_take_nothing_else(program: Program) -> None:
    program.run("remember", SHORT_ANSWERS, "--tier", "long")
    event = {"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore", "cwd": str(program.project)}
    told = hook(event)
    assert (told.exit_code, told.stderr) == (0, "")
    answer = json.loads(told.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SubagentStart"
    assert SHORT_ANSWERS in answer["additionalContext"]


@pytest.mark.parametrize("agent", ["integrator", "my-plugin:integrator"])
def test_the_agent_of_an_event_finds_by_its_strategy_and_one_without_as_everybody(program: Program, agent: str) -> None:
    event = {"hook_event_name": "SubagentStart", "agent_type": agent, "cwd": str(program.project), "prompt": "login"}
    told = json.loads(hook(event).stdout)["hookSpecificOutput"]["additionalContext"]
    assert "test/test_login.py" in told
    assert "src/login.py" not in told
    program.run("remember", "Login tests are written before the code.")
    for other in ("general-purpose", "default", ""):
        told = json.loads(hook({**event, "agent_type": other}).stdout)["hookSpecificOutput"]["additionalContext"]
        assert "Login tests are written before" in told
        assert "src/login.py" not in told
    told = json.loads(hook({**event, "agent_type": "Explore"}, "--agent", agent.rpartition(":")[2]).stdout)
    assert "src/login.py" not in told["hookSpecificOutput"]["additionalContext"]
    assert program.json("store", "logs")["agents"] == {"integrator": 2}


def test_any_event_is_answered_in_json_where_that_is_asked_for(program: Program) -> None:
    """Some clients take nothing else for a prompt either."""
    program.run("remember", EXPIRY)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "when does a session expire", "cwd": str(program.project)}
    told = json.loads(hook(event, "--json").stdout)["hookSpecificOutput"]
    assert told["hookEventName"] == "UserPromptSubmit"
    assert told["additionalContext"] + "\n" == hook(event).stdout
    told = hook({**event, "prompt": "the migration of arctic terns"}, "--json")
    assert (told.exit_code, told.stdout) == (0, "")


def test_a_hook_is_silent_where_nothing_is_relevant_and_where_there_is_no_store(bare: Program) -> None:
    event = {"prompt": "when does a session expire", "cwd": str(bare.project)}
    told = hook(event)
    assert (told.exit_code, told.stdout, told.stderr) == (0, "", "")
    bare.run("init")
    told = hook(event)
    assert (told.exit_code, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (b"", "standard input is not JSON"),
        (b"\xff\xfe", "standard input is not JSON"),
        (b"[]", "standard input is no hook event"),
        ({"prompt": 7}, "standard input is no hook event"),
        ({"hook_event_name": "Stop", "prompt": "tea"}, "the event 'Stop' takes no context"),
        (b'{"prompt": ' + b"[" * 200_000, "standard input is not JSON"),
        ({"prompt": "tea", "cwd": "\0"}, "cannot be entered: it is no path"),
        ({"prompt": "tea", "cwd": "\ud800"}, "cannot be entered: it is no path"),
        ({"prompt": "tea", "cwd": "/there/is/none"}, "'/there/is/none', cannot be entered: No such file or directory"),
    ],
)
def test_a_hook_that_fails_never_stops_the_client(program: Program, event: object, said: str) -> None:
    """A client takes the exit code 2 of a hook as an order to refuse the prompt."""
    told = hook(event)
    assert told.exit_code == 1
    assert told.stdout == ""
    assert said in told.stderr
    assert "unexpected" not in told.stderr
    assert json.loads(hook(event, "--json").stderr)["exit_code"] == 1


def test_of_a_prompt_that_is_longer_than_a_query_the_beginning_counts(program: Program) -> None:
    """People paste whole logs below a question."""
    program.run("remember", EXPIRY)
    told = hook({"prompt": "when does a session expire" + "\n" * 100_000 + "tea", "cwd": str(program.project)})
    assert (told.exit_code, told.stderr) == (0, "")
    assert EXPIRY in told.stdout


@pytest.mark.parametrize("arguments", [("--limit", "many"), ("--kind", "song"), ("--max-tokens",), ("--none-such",)])
def test_a_hook_with_a_wrong_option_does_not_stop_the_client_either(arguments: tuple[str, ...]) -> None:
    told = hook({"prompt": "tea"}, *arguments)
    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr.startswith("error: ")
    told = CliRunner().invoke(cli, ["context", "tea", *arguments])
    assert told.exit_code == 2


@pytest.mark.parametrize("arguments", [["--stor", "x", "context", "--stdin-json"], ["contxt", "--stdin-json"]])
def test_a_hook_with_a_mistyped_command_does_not_stop_the_client_either(arguments: list[str]) -> None:
    told = CliRunner().invoke(cli, arguments, input=b"{}")
    assert (told.exit_code, told.stdout) == (1, "")


@pytest.mark.parametrize("value", [0, 63, 1_000_001, True, "many"])
def test_a_budget_out_of_range_is_refused(program: Program, value: object) -> None:
    with commonplace.open(program.project / ".commonplace") as book, pytest.raises(UsageError, match="max_tokens is"):
        book.context("sessions", value)  # type: ignore[arg-type]


def test_without_a_task_kinds_tags_and_trust_still_choose(bare: Program) -> None:
    bare.run("init")
    bare.run("remember", "The staging cluster is rebuilt on Sunday.", "--tag", "ops")
    bare.run("remember", SHORT_ANSWERS, "--tier", "long", "--origin", "web")
    assert [hit["tags"] for hit in bare.json("context", "--tag", "ops")["hits"]] == [["ops"]]
    assert bare.json("context", "--kind", "artifact")["hits"] == []
    assert [hit["origin"] for hit in bare.json("context", "--min-trust", "0.5")["hits"]] == ["agent"]
    for option, value in (("--limit", "0"), ("--limit", "1001"), ("--min-trust", "nan"), ("--min-trust", "2")):
        assert bare.error("context", option, value, code=2)["remedy"]


@pytest.mark.parametrize("task", [None, 7, b"sessions"])
def test_a_task_is_a_text(program: Program, task: object) -> None:
    with commonplace.open(program.project / ".commonplace") as book, pytest.raises(UsageError, match="task is"):
        book.context(task)  # type: ignore[arg-type]
