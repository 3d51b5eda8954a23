"""The configuration files of MCP clients, and the server entry to add to each.

Paths and formats follow the clients' manuals.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import UsageError

NAME: Final = "commonplace"

Entry = dict[str, Any]


def _plain(command: Sequence[str]) -> Entry:
    return {"command": command[0], "args": list(command[1:])}


def _stdio(command: Sequence[str]) -> Entry:
    return {"type": "stdio", **_plain(command)}


@dataclass(frozen=True, slots=True)
class McpClient:
    """An MCP client.

    Attributes:
        config_path: returns the client's file, from a project's directory and the user's home directory.
        next_step: what the user has to do next.
        key: the key of the servers in that file.
        entry: returns the entry of a server, from its command line.
        is_toml: whether the file is TOML instead of JSON.
    """

    name: str
    title: str
    config_path: Callable[[Path, Path], Path]
    next_step: str
    key: str = "mcpServers"
    entry: Callable[[Sequence[str]], Entry] = _plain
    is_toml: bool = False


def _desktop(_: Path, home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Claude" / "claude_desktop_config.json"
    return home / ".config" / "Claude" / "claude_desktop_config.json"


CLIENTS: Final[Mapping[str, McpClient]] = {
    client.name: client
    for client in (
        McpClient(
            "claude-code",
            "Claude Code",
            lambda project, _: project / ".mcp.json",
            "Start Claude Code in this directory and allow the server; /mcp shows it.",
            entry=_stdio,
        ),
        McpClient(
            "claude-desktop",
            "Claude Desktop",
            _desktop,
            "Quit Claude Desktop and start it again. Without --store it uses your user store, not a project's.",
        ),
        McpClient(
            "cursor",
            "Cursor",
            lambda project, _: project / ".cursor" / "mcp.json",
            "Turn the server on in Cursor's settings, under MCP.",
        ),
        McpClient(
            "codex",
            "Codex",
            lambda _, home: Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml",
            "Start Codex again; /mcp shows it.",
            "mcp_servers",
            is_toml=True,
        ),
        McpClient(
            "vscode",
            "VS Code",
            lambda project, _: project / ".vscode" / "mcp.json",
            "Open the file in VS Code and press Start above the server.",
            "servers",
            _stdio,
        ),
        McpClient(
            "opencode",
            "opencode",
            lambda project, _: project / "opencode.json",
            "Start opencode in this directory.",
            "mcp",
            lambda command: {"type": "local", "command": list(command), "enabled": True},
        ),
    )
}


def is_configured(client: McpClient, path: Path) -> bool:
    """Return whether a client's file has an entry for our server; False if the file cannot be read."""
    try:
        servers = _parsed(path.read_text("utf-8"), client, str(path)).get(client.key)
    except (OSError, UnicodeDecodeError, UsageError):
        return False
    return isinstance(servers, dict) and servers.get(NAME) is not None


def snippet(client: McpClient, command: Sequence[str]) -> str:
    """Return the configuration that an empty file of the client would get, for copying by hand."""
    return configured("", client, command, name="")


def fallback(client: McpClient) -> str:
    """Return the end of a message: what the user can do if the file cannot be changed automatically."""
    return f"add by hand what `commonplace mcp --print-config {client.name}` shows"


def configured(text: str, client: McpClient, command: Sequence[str], *, name: str) -> str:
    """Return the text of a client's file with our server added, or the same text if it is already configured.

    Args:
        text: the current text of the file, or "" if there is none.
        name: the name of the file in messages.

    Raises:
        UsageError: the file is malformed, or an existing entry cannot be replaced.
    """
    document = _parsed(text, client, name)
    target = deepcopy(document)
    servers = target.setdefault(client.key, {})
    if not isinstance(servers, dict):
        raise UsageError(f"{client.key} is not a table in {name}", remedy=f"correct it, or {fallback(client)}")
    existing = servers.get(NAME)
    # Keep what the user added to the entry, such as an environment.
    servers[NAME] = {**(existing if isinstance(existing, dict) else {}), **client.entry(command)}
    if target == document:
        return text
    if not client.is_toml:
        indent = re.search(r"\n([ \t]+)\S", text)
        return json.dumps(target, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
    replaced = _with_table(text, client, servers[NAME])
    with suppress(UsageError):
        if _parsed(replaced, client, name) == target:
            return replaced
    message = f"the server is configured in {name} in a form that cannot be replaced"
    raise UsageError(message, remedy="remove it there and try again")


def _parsed(text: str, client: McpClient, name: str) -> dict[str, Any]:
    import tomllib  # not needed to name the clients

    try:
        document = tomllib.loads(text) if client.is_toml else json.loads(text) if text.strip() else {}
    except ValueError as error:
        form = "TOML" if client.is_toml else "JSON"
        raise UsageError(f"{name} is not {form} that can be changed here: {error}", remedy=fallback(client)) from error
    if not isinstance(document, dict):
        raise UsageError(f"{name} does not hold an object", remedy=f"correct it, or {fallback(client)}")
    return document


def _with_table(text: str, client: McpClient, entry: Entry) -> str:
    """Return TOML with the server's table replaced, or appended; every other line is unchanged."""
    table = f"{client.key}.{NAME}"
    plain = {key: value for key, value in entry.items() if not isinstance(value, dict)}
    values = (f"{key} = {json.dumps(value, ensure_ascii=False, default=str)}" for key, value in plain.items())
    lines = [f"[{table}]", *values]
    added = "\n".join(lines) + "\n"
    match = re.search(rf"^\[{re.escape(table)}\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*", text, re.MULTILINE)
    if match is None:
        return added if not text.strip() else f"{text.rstrip(chr(10))}\n\n{added}"
    gap = "\n" if match.end() < len(text) else ""
    return f"{text[: match.start()]}{added}{gap}{text[match.end() :]}"
