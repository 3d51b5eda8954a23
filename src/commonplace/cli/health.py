"""The command `health`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commonplace.cli.app import FAILURE, SUCCESS, Command, pass_invocation
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    LISTED,
    console,
    counted,
    joined,
    print_beginning,
    print_head,
    print_json,
    print_more,
    print_under,
)
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.health_page import HEADINGS, page_of
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.engine import Engine
    from commonplace.health.report import Finding, Health


_WIDTH: Final = 30


def print_health(found: Health, texts: Mapping[str, str], target: Console) -> None:
    """Print counts, then the first findings of each kind with what the memories say."""
    archived = found.statuses.get("archived", 0)
    apart = f", and {archived:,} archived, counted apart" if archived else ""
    target.print(f"{counted(found.memories, 'memory', 'memories')}{apart}", style="bold")
    for name, counts in (("tiers", found.tiers), ("status", found.statuses), ("issues that wait", found.pending)):
        parts = [f"{count:,} {each}" for each, count in counts.items() if count]
        if parts:
            print_under(f"{name}: {joined(parts)}", target)
    most = max(found.retention.values(), default=0)
    if most:
        print_under("retention of what is active:", target)
    for end, count in found.retention.items() if most else ():
        bar = "█" * round(_WIDTH * count / most)
        target.print(f"      to {end} {count:>7,} {bar}", style="" if count else "dim")
    for kind in HEADINGS:
        _print_findings([each for each in found.findings if each.kind == kind], texts, target)
    if not found.findings:
        target.print("\nNothing to look at.", style="green")
    _print_golden(found, target)


def _print_findings(findings: Sequence[Finding], texts: Mapping[str, str], target: Console) -> None:
    if not findings:
        return
    target.print(f"\n{HEADINGS[findings[0].kind]}: {len(findings):,}", style="bold")
    for each in findings[:LISTED]:
        print_head(", ".join(map(harmless_line, each.ids)), (harmless_line(each.why),), target)
        for id_ in each.ids:
            if id_ in texts:
                print_beginning(texts[id_], target)
    print_more(len(findings), target)


def _print_golden(found: Health, target: Console) -> None:
    for answer in found.failed:
        missing = ", ".join(harmless_line(name) for name in answer.golden.relevant if name not in answer.found)
        query = harmless_line(answer.golden.query)
        print_under(f"golden query {query!r} does not find {missing}", target, "red")
    if found.golden and not found.failed:
        count = counted(len(found.golden), "golden query", "golden queries")
        print_under(f"{count}: each finds all that it must", target, "green")


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

    page = page_of(found.to_dict(), texts, f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}")
    if str(path) == "-":
        sys.stdout.write(page)
        return
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy="name a file that can") from error
