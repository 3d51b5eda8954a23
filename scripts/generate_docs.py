"""Write the pages of the manual that the code itself can tell: commands, settings, errors, exit codes.

`--check` writes nothing and fails when a page is not what it would write.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import commonplace
from commonplace import errors
from commonplace.cli.failures import EXIT_CODES, exit_code
from commonplace.cli.main import cli
from commonplace.mcp.describing import tool_form
from commonplace.mcp.memory import Host, registry_of
from commonplace.settings import keys
from commonplace.settings.model import section_description

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
WIDTH = 100
SHARED = (
    "Every command takes `--store`, `--namespace`, `--json` and `--verbose`, before or after its name. Results go to"
    " standard output; progress, notices and errors go to standard error, progress on a terminal only.\n"
)
NOTE = "<!-- Written by scripts/generate_docs.py; change the code and run `make docs`. -->\n"


def command_line() -> str:
    """Return the page with the help of every command."""
    parts = [
        "# Command line\n",
        NOTE,
        SHARED,
    ]
    for path, command in commands(cli, ("commonplace",)):
        context = click.Context(command, info_name=" ".join(path), terminal_width=WIDTH, max_content_width=WIDTH)
        parts.append(f"## {' '.join(path)}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join([*parts, exit_codes()])


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with its full name, groups before their members."""
    yield path, command
    if isinstance(command, click.Group):
        for name, member in sorted(command.commands.items()):
            yield from commands(member, (*path, name))


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["## Exit codes\n", "| code | meaning |", "|---|---|", *rows, ""])


def settings() -> str:
    """Return the page with every setting."""
    parts = ["# Settings reference\n", NOTE]
    section = ""
    for key in keys():
        if key.section != section:
            section = key.section
            head = "| key | default | allowed | variable | project file | meaning |\n|---|---|---|---|---|---|"
            parts.append(f"\n## {section}\n\n{section_description(section)}\n\n{head}")
        default = "auto" if key.default is None else key.default
        default = "empty" if default in ("", ()) else default
        may = "yes" if key.rule.project else "no"
        cells = (f"`{key.dotted}`", str(default), key.range, f"`{key.environment}`", may, key.rule.description)
        parts.append("| " + " | ".join(cells) + " |")
    return "\n".join([*parts, ""])


def error_classes() -> str:
    """Return the page with the error tree and what to do about each class."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].strip()
    rows = []
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.CommonplaceError):
            code = exit_code(kind("", path="") if kind is errors.ConfigError else kind(""))
            first = inspect.getdoc(kind) or ""
            rows.append(f"| `{name}` | {' '.join(first.partition(chr(10) * 2)[0].split())} | {code} |")
    head = ["| class | what to do | exit code |", "|---|---|---|"]
    text = "All errors that Commonplace raises on purpose, in `commonplace.errors`. Each carries a `remedy`.\n"
    return "\n".join(["# Errors\n", NOTE, text, f"```text\n{tree}\n```\n", *head, *rows, ""])


def tools() -> str:
    """Return the page with what the server of the Model Context Protocol offers."""
    parts = ["# Tools reference\n", NOTE, "What an agent reads of `commonplace mcp`, word for word.\n"]
    for tool in registry_of(Host(lambda _: commonplace.open())).tools:
        form = tool_form(tool)
        hints = ", ".join(f"{name} {str(value).lower()}" for name, value in form["annotations"].items())
        parts.append(f"## {tool.name}\n\n{tool.description}\n\nHints: {hints or 'none, so it may destroy'}.\n")
        parts += [_fields("takes", form["inputSchema"]), _fields("gives", form["outputSchema"])]
    return "\n".join(parts)


def _fields(title: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        f"| `{name}`{' *' if name in needed else ''} | {_kind(field)} | {field.get('description', '')} |"
        for name, field in schema["properties"].items()
    ]
    return "\n".join([f"| {title} (* always) | form | |", "|---|---|---|", *rows, ""])


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    bounds = [f"{field[key]:,}" for key in ("minimum", "maximum") if key in field]
    kind = str(field["type"]) + (f" {'–'.join(bounds) if len(bounds) == 2 else f'from {bounds[0]}'}" if bounds else "")
    if "properties" in field:
        return f"{kind} ({', '.join(field['properties'])})"
    return f"{kind} of {_kind(field['items'])}" if "items" in field else kind


PAGES: Mapping[str, Callable[[], str]] = {
    "tools.md": tools,
    "command-line.md": command_line,
    "settings.md": settings,
    "errors.md": error_classes,
}


def main(arguments: list[str]) -> int:
    """Write or check all pages."""
    is_check = "--check" in arguments
    stale = []
    for name, page in PAGES.items():
        path, text = REFERENCE / name, page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if is_check and stale:
        print(f"docs/reference is stale: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
