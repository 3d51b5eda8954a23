"""Run one benchmark of this directory: print what it measured as tables, or as JSON with `--json`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from commonplace.benchmarks.harness import last_line
from commonplace.cli.benchmark import FILE, embedder_option, keep_option, print_figures, seed_option
from commonplace.errors import CommonplaceError

__all__ = ["FILE", "embedder_option", "json_option", "keep_option", "probed", "seed_option", "show"]

TIMEOUT_S: Final = 1_800

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def probed(module: str, arguments: Sequence[str], requests: Iterable[object]) -> dict[str, Any]:
    """Return what a fresh process of a module here says that was asked all this, one JSON line each.

    Raises:
        CommonplaceError: it failed.
    """
    process = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=Path(__file__).parents[1],
        input="\n".join(map(json.dumps, requests)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if process.returncode != 0:
        raise CommonplaceError(f"the measured process ended with {process.returncode}: {last_line(process.stderr)}")
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


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
