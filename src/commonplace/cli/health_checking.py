"""The command `health`: examine memories, and say what a person may want to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Invocation, pass_invocation

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.health.report import Health


@click.command(cls=Command)
@click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Queries that must find what they name; one that does not makes the exit code 1.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Also write it as a page for a browser; `-` prints the page alone.",
)
@pass_invocation
def health(invocation: Invocation, /, golden: Path | None, html: Path | None) -> int:
    """Count memories, and find what one should look at.

    It tells of memories that say the same, of facts that cannot all be true, of files that changed since a memory spoke
    of them, of notes that lost their memory, and of what may be worth nothing. It changes nothing.
    """
    from commonplace.cli.health_rendering import print_health
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.health(golden)
        texts = {} if invocation.as_json and html is None else _texts(engine, found)
    if html is not None:
        _write(html, found, texts)
    if invocation.as_json:
        print_json(found.to_dict())
    elif str(html) != "-":
        print_health(found, texts, console())
    return FAILURE if found.failed else SUCCESS


def _texts(engine: Engine, found: Health) -> dict[str, str]:
    from commonplace.errors import NotFoundError

    texts = {}
    for finding in found.findings:
        for id_ in () if finding.kind == "contradiction" else finding.ids:
            try:
                texts[id_] = engine.get(id_, touch=False).content
            except NotFoundError:
                continue
    return texts


def _write(path: Path, found: Health, texts: dict[str, str]) -> None:
    from datetime import datetime

    from commonplace.errors import UsageError
    from commonplace.formats.health_page import page_of

    page = page_of(found.to_dict(), texts, f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}")
    if str(path) == "-":
        sys.stdout.write(page)
        return
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="name a file that can") from error
