"""The command group `settings`."""

from __future__ import annotations

from pathlib import Path

import click

from commonplace.cli.app import Group, command
from commonplace.cli.main import Invocation
from commonplace.cli.output import console, print_json
from commonplace.text.escaping import harmless_line


@click.group(cls=Group)
def settings() -> None:
    """Show the settings and where they come from."""


@command(settings)
def show(invocation: Invocation) -> None:
    """Print every setting with its value and where it came from.

    With --json, also its default, range, environment variable and meaning.

    Example: commonplace settings show
    """

    loaded = invocation.settings()
    if invocation.as_json:
        shown = {
            key.dotted: {
                "value": loaded.value(key),
                "origin": loaded.origin(key),
                "default": key.default,
                "range": key.range,
                "environment": key.environment,
                "project_may_set": key.rule.project,
                "description": key.rule.description,
            }
            for key in loaded.all_keys()
        }
        print_json(shown)
        return
    target = console()
    section = ""
    for key in loaded.all_keys():
        if key.section != section:
            section = key.section
            target.print(f"[{section}]", style="bold")
        is_default = loaded.origin(key) == "default"
        target.print(f"{key.name} = {_as_toml(loaded.value(key))}", end="", style="" if is_default else "cyan")
        target.print(f"  # {harmless_line(loaded.origin(key))}", style="dim")


@command(settings)
def path(invocation: Invocation) -> None:
    """Print the files that settings are read from.

    The weakest comes first; those that do not exist are marked.

    Example: commonplace settings path
    """
    from commonplace.settings.paths import PROJECT_FILE, STORE_FILE, user_settings_file

    loaded = invocation.settings()
    files = {"user": user_settings_file()}
    if loaded.project is not None:
        files["project"] = loaded.project / PROJECT_FILE
    files["store"] = Path(loaded.store.path) / STORE_FILE
    if invocation.as_json:
        print_json({name: {"path": str(file), "exists": file.is_file()} for name, file in files.items()})
        return
    target = console()
    for name, file in files.items():
        target.print(f"{name}: {harmless_line(str(file))}", end="")
        target.print("" if file.is_file() else "  (not there)", style="dim")


def _as_toml(value: object) -> str:
    import json

    if value is None:
        return '"auto"'
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
