"""The command group `settings`."""

from __future__ import annotations

import json

import click

from commonplace.cli.app import Group, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.rows import Line, Rows, emit, styled
from commonplace.formats.escaping import harmless_line
from commonplace.formats.json_values import plain


@click.group(cls=Group)
def settings() -> None:
    """Show the settings and where they come from."""


@command(settings)
def show(invocation: Invocation, /) -> None:
    """Print every setting with its value and where it came from.

    With --json, also its default, range, environment variable and meaning.

    Example: commonplace settings show
    """
    loaded = invocation.settings()
    invocation.refuse_mistyped(loaded)
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

    def rows() -> Rows:
        section = ""
        for key in loaded.all_keys():
            if key.section != section:
                section = key.section
                yield Line(f"[{section}]", "bold")
            origin, value = loaded.origin(key), loaded.value(key)
            # A JSON string is valid TOML too.
            text = '"auto"' if value is None else json.dumps(plain(value), ensure_ascii=False)
            style = "" if origin == "default" else "cyan"
            yield styled((f"{key.name} = {text}", style), (f"  # {harmless_line(origin)}", "dim"))

    emit(invocation, loaded, rows(), value=shown)
