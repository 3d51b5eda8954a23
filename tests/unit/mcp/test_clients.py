"""What is written to the clients' files: our server, once, and nothing else changes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import UsageError
from commonplace.mcp.clients import CLIENTS, configured, snippet

COMMAND = ["/opt/bin/commonplace", "mcp", "--namespace", 'Team "A"']
PLAIN = {"command": COMMAND[0], "args": COMMAND[1:]}
LOCAL = {"type": "local", "command": COMMAND, "enabled": True}
OTHER = ["/elsewhere/commonplace", "mcp"]
JSON_CLIENTS = [client for client in CLIENTS.values() if not client.is_toml]
CODEX = CLIENTS["codex"]

TOML = """model = "o4"  # mine

[mcp_servers.github]
command = "gh"
args = ["mcp"]

[mcp_servers.commonplace]
command = "/old/commonplace"
args = ["mcp"]

[tui]
theme = "dark"
"""


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("claude-code", "p/.mcp.json", {"mcpServers": {"commonplace": {"type": "stdio", **PLAIN}}}),
        ("cursor", "p/.cursor/mcp.json", {"mcpServers": {"commonplace": PLAIN}}),
        ("vscode", "p/.vscode/mcp.json", {"servers": {"commonplace": {"type": "stdio", **PLAIN}}}),
        ("opencode", "p/opencode.json", {"mcp": {"commonplace": LOCAL}}),
    ],
)
def test_each_client_gets_its_own_form_in_its_own_place(name: str, path: str, expected: object) -> None:
    client = CLIENTS[name]
    assert client.config_path(Path("p"), Path("h")) == Path(path)
    assert json.loads(snippet(client, COMMAND)) == expected


def test_codex_gets_toml() -> None:
    assert CODEX.config_path(Path("p"), Path("h")) == Path("h/.codex/config.toml")
    assert tomllib.loads(snippet(CODEX, COMMAND)) == {
        "mcp_servers": {"commonplace": {"command": COMMAND[0], "args": COMMAND[1:]}}
    }


@pytest.mark.parametrize(
    ("platform", "path"),
    [
        ("darwin", "h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", "h/.config/Claude/claude_desktop_config.json"),
    ],
)
def test_the_desktop_keeps_its_file_where_the_system_does(
    platform: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert CLIENTS["claude-desktop"].config_path(Path("p"), Path("h")) == Path(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)
)


@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
@given(rest=st.dictionaries(st.text().filter(lambda key: key not in ("mcpServers", "servers", "mcp")), VALUES))
def test_all_else_in_a_json_file_stays_and_writing_twice_changes_nothing(
    client: object, rest: dict[str, object]
) -> None:
    key = client.key  # type: ignore[attr-defined]
    old = json.dumps({key: {"other": {"command": "x"}}, **rest}, indent="\t")
    new = configured(old, client, COMMAND, name="f")
    document = json.loads(new)
    assert document[key].pop("commonplace")
    assert document == json.loads(old)
    assert list(document) == list(json.loads(old))
    assert "\n\t" in new
    assert configured(new, client, COMMAND, name="f") == new


def test_a_toml_file_keeps_every_other_line() -> None:
    new = configured(TOML, CODEX, COMMAND, name="f")
    assert new == TOML.replace(
        '"/old/commonplace"\nargs = ["mcp"]', f'"{COMMAND[0]}"\nargs = {json.dumps(COMMAND[1:])}'
    )
    assert configured(new, CODEX, COMMAND, name="f") == new
    without = configured('model = "o4"  # mine\n', CODEX, COMMAND, name="f")
    assert without.startswith('model = "o4"  # mine\n\n[mcp_servers.commonplace]\n')


def test_a_toml_file_that_says_it_otherwise_is_refused() -> None:
    inline = 'mcp_servers = { commonplace = { command = "x", args = [] } }\n'
    with pytest.raises(UsageError, match="cannot be replaced"):
        configured(inline, CODEX, COMMAND, name="config.toml")
    dated = "[mcp_servers.commonplace]\ncommand = 'x'\nsince = 2026-01-01\n"
    with pytest.raises(UsageError, match="cannot be replaced"):
        configured(dated, CODEX, COMMAND, name="config.toml")


def test_what_the_user_added_to_our_server_stays() -> None:
    toml = '[mcp_servers.commonplace]\ncommand = "x"\ntimeout = 20\n\n[mcp_servers.commonplace.env]\nA = "b"\n'
    server = tomllib.loads(configured(toml, CODEX, COMMAND, name="f"))["mcp_servers"]["commonplace"]
    assert server == {"command": COMMAND[0], "args": COMMAND[1:], "timeout": 20, "env": {"A": "b"}}
    given = '{"mcpServers": {"commonplace": {"command": "x", "env": {"A": "b"}}}}'
    server = json.loads(configured(given, CLIENTS["cursor"], COMMAND, name="f"))["mcpServers"]["commonplace"]
    assert server == {"command": COMMAND[0], "args": COMMAND[1:], "env": {"A": "b"}}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("vscode", "{ // mine\n}", "f is not JSON that can be changed here"),
        ("cursor", "[]", "f does not hold an object"),
        ("cursor", '{"mcpServers": []}', "mcpServers is not a table in f"),
        ("codex", "= 1", "f is not TOML that can be changed here"),
        ("codex", "mcp_servers = 1", "mcp_servers is not a table in f"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_to_its_owner(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        configured(text, CLIENTS[name], COMMAND, name="f")


def test_another_command_takes_the_place_of_the_old_one() -> None:
    for client in CLIENTS.values():
        first = configured("", client, OTHER, name="f")
        assert configured(first, client, COMMAND, name="f") == snippet(client, COMMAND)
