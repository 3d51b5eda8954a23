"""Run one benchmark of this directory: print what it measured as tables, or as JSON with `--json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from commonplace.cli.benchmark import FILE, embedder_option, keep_option, print_figures, seed_option
from commonplace.errors import CommonplaceError

__all__ = ["FILE", "embedder_option", "json_option", "keep_option", "seed_option", "show"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def show(measure: Callable[[], dict[str, Any]], *, as_json: bool) -> None:
    """Measure, and print the result."""
    try:
        result = measure()
    except CommonplaceError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return
    print_figures(result)
