"""The command `mcp`: the real process serves, and tells clients how to start it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from commonplace.cli.app import cli
from commonplace.mcp.clients import CLIENTS

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

PROGRAM = Path(sys.executable).with_name("commonplace")


def served(project: Path, *lines: dict[str, Any]) -> list[Any]:
    """Run the real program on some lines, to its end, and return what it answered."""
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    given = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}, *lines]
    done = subprocess.run(
        [PROGRAM, "mcp"],
        cwd=project,
        input="".join(json.dumps(line) + "\n" for line in given),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_what_one_process_stores_another_finds(program: Program) -> None:
    note = "Refunds above a hundred euros need a second pair of eyes, Ada decided."
    stored = served(program.project, call(1, "memory_store", content=note))[-1]["result"]["structuredContent"]
    found = served(program.project, call(1, "memory_search", query="who decided about refunds", minScore=0))
    assert found[-1]["result"]["structuredContent"]["results"][0]["id"] == stored["id"]
    assert program.json("get", stored["id"])["content"] == note


def test_requests_at_the_end_of_input_are_still_answered(program: Program) -> None:
    told = served(program.project, *(call(number, "memory_store", content=f"Note {number}.") for number in range(1, 9)))
    assert sorted(each["id"] for each in told) == list(range(9))
    assert len(program.json("list")) == 8


@pytest.mark.parametrize("name", CLIENTS)
def test_the_snippet_is_what_the_client_reads(bare: Program, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathlib.Path.home", lambda: bare.project / "home")
    told = bare.json("mcp", "--print-config", name)
    assert told["path"] == str(CLIENTS[name].config_path(bare.project, bare.project / "home"))
    assert "commonplace" in told["snippet"]
    shown = bare.run("mcp", "--print-config", name)
    assert shown.stdout == told["snippet"]
    assert told["path"] in shown.stderr.replace("\n", "")


def test_who_has_a_client_that_knows_no_project_is_told_which_store_it_gets(bare: Program) -> None:
    told = bare.run("mcp", "--print-config", "claude-desktop").stderr.replace("\n", " ")
    assert "Without --store it uses your user store, not a project's." in told


def test_installing_writes_once_shows_the_change_and_keeps_the_old_file(bare: Program) -> None:
    place = bare.project / ".mcp.json"
    place.write_text('{"mcpServers": {"other": {"command": "x"}}}\n', "utf-8")
    told = bare.run("mcp", "--install", "claude-code", "--yes", "--namespace", "team")
    assert "+" in told.stdout
    assert f"Written: {place}" in told.stdout
    written = json.loads(place.read_text("utf-8"))
    assert list(written["mcpServers"]) == ["other", "commonplace"]
    assert written["mcpServers"]["commonplace"]["args"] == ["mcp", "--namespace", "team"]
    [backup] = bare.project.glob(".mcp.json.*.bak")
    assert backup.read_text("utf-8") == '{"mcpServers": {"other": {"command": "x"}}}\n'
    again = bare.json("mcp", "--install", "claude-code", "--yes", "--namespace", "team")
    assert again == {"client": "claude-code", "path": str(place), "changed": False, "backup": None}
    assert len(list(bare.project.glob(".mcp.json.*"))) == 1


def test_two_changes_within_a_second_keep_both_old_files(bare: Program) -> None:
    place = bare.project / ".mcp.json"
    place.write_text('{"mcpServers": {}}', "utf-8")
    first, second = (
        bare.json("mcp", "--install", "claude-code", "--yes", "--namespace", name)["backup"] for name in ("one", "two")
    )
    assert first != second
    assert Path(first).read_text("utf-8") == '{"mcpServers": {}}'
    assert json.loads(Path(second).read_text("utf-8"))["mcpServers"]["commonplace"]["args"][-1] == "one"


def test_a_file_that_only_its_owner_may_read_stays_so(bare: Program) -> None:
    """Keys of other servers stand in it."""
    place = bare.project / ".mcp.json"
    place.write_text('{"mcpServers": {}}', "utf-8")
    place.chmod(0o600)
    told = bare.json("mcp", "--install", "claude-code", "--yes")
    assert [stat.S_IMODE(Path(each).stat().st_mode) for each in (place, told["backup"])] == [0o600, 0o600]


def test_a_file_that_nobody_may_write_is_left_as_it_is(bare: Program) -> None:
    place = bare.project / ".mcp.json"
    place.write_text('{"mcpServers": {}}', "utf-8")
    place.chmod(0o444)
    error = bare.error("mcp", "--install", "claude-code", "--yes", code=1)
    assert error["message"] == f"{place} is read-only"
    assert place.read_text("utf-8") == '{"mcpServers": {}}'
    assert list(bare.project.glob(".mcp.json*")) == [place]


def test_a_link_is_followed_and_stays_a_link(bare: Program) -> None:
    real, place = bare.project / "shared.json", bare.project / ".mcp.json"
    real.write_text('{"mcpServers": {}}', "utf-8")
    place.symlink_to(real.name)
    bare.json("mcp", "--install", "claude-code", "--yes")
    assert place.is_symlink()
    assert "commonplace" in json.loads(real.read_text("utf-8"))["mcpServers"]


def test_the_home_that_codex_was_given_is_where_its_file_is(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(bare.project / "elsewhere"))
    assert bare.json("mcp", "--print-config", "codex")["path"] == str(bare.project / "elsewhere" / "config.toml")


def test_what_starts_the_server_can_be_started(bare: Program) -> None:
    server = json.loads(bare.json("mcp", "--print-config", "cursor")["snippet"])["mcpServers"]["commonplace"]
    done = subprocess.run([server["command"], *server["args"]], input=b"", capture_output=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_without_an_answer_nothing_is_written(bare: Program) -> None:
    error = bare.run("mcp", "--install", "cursor", code=2)
    assert "pass --yes to write the file" in error.stderr
    assert not (bare.project / ".cursor").exists()


def test_a_file_with_comments_is_left_as_it_is(bare: Program) -> None:
    place = bare.project / ".vscode" / "mcp.json"
    place.parent.mkdir()
    place.write_text("{ // mine\n}\n", "utf-8")
    error = bare.error("mcp", "--install", "vscode", "--yes", code=2)
    assert "is not JSON that can be changed here" in error["message"]
    assert error["remedy"] == "add by hand what `commonplace mcp --print-config vscode` shows"
    assert place.read_text("utf-8") == "{ // mine\n}\n"
    assert list(place.parent.iterdir()) == [place]


def test_printing_and_installing_exclude_each_other(bare: Program) -> None:
    done = CliRunner().invoke(cli, ["mcp", "--install", "cursor", "--print-config", "cursor"])
    assert done.exit_code == 2
    assert "exclude each other" in done.stderr
