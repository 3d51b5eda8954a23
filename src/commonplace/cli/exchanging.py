"""The commands by which a store leaves as a whole and comes back: `backup`, `restore`, `export` and `import`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from commonplace.cli.escaping import harmless_line
from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.types import KINDS

_FILE = click.Path(path_type=Path)


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@pass_invocation
def backup(invocation: Invocation, /, file: Path) -> None:
    """Write a complete copy of the store to FILE.

    Others go on meanwhile. The copy is read back before it gets its name.
    """
    with invocation.open(invocation.settings()) as engine:
        report = engine.backup(file)
    _tell(invocation, f"Backed up to {file}", report)


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="Put it in the place of the store there, which is kept beside it.")
@pass_invocation
def restore(invocation: Invocation, /, file: Path, replace: bool) -> None:
    """Make a store of the backup FILE.

    It is the store that --store names, or the one found from here.

    Everything in it is checked before anything is touched. Close what has the store open.
    """
    import commonplace

    report = commonplace.restore(file, Path(invocation.settings().store.path), replace=replace)
    _tell(invocation, f"Restored {file} to {report.directory}", report)


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only this kind.")
@pass_invocation
def export(invocation: Invocation, /, file: Path, kinds: tuple[str, ...]) -> None:
    """Write the namespace to FILE as JSON lines.

    A FILE of - is standard output.
    """
    import sys

    with invocation.open(invocation.settings()) as engine:
        report = engine.export(sys.stdout if str(file) == "-" else file, kinds=kinds or None)
    if str(file) != "-":
        _tell(invocation, f"Exported to {file}", report)


@click.command("import", cls=Command)
@click.argument("path", type=_FILE)
@click.option("--format", "format_", default="auto", show_default=True, metavar="NAME", help="Whose files they are.")
@click.option(
    "--on-conflict",
    default="refuse",
    show_default=True,
    type=click.Choice(("refuse", "skip", "replace")),
    help="Where something else has the same id.",
)
@click.option("--skip-problems", is_flag=True, help="Leave out what cannot be kept, in place of refusing everything.")
@click.option("--dry-run", is_flag=True, help="Check everything, and write nothing.")
@pass_invocation
def import_(invocation: Invocation, /, path: Path, format_: str, **options: Any) -> None:
    """Take in an export, or another system's memories.

    Nothing is written if anything is refused; importing twice changes nothing.
    """
    from commonplace.cli.screen import progress_bars

    loaded = invocation.settings()
    with progress_bars(invocation) as progress, invocation.open(loaded, create=True, progress=progress) as engine:
        report = engine.import_(path, format=format_, **options)
    _tell(invocation, f"{'Checked' if options['dry_run'] else 'Imported'} {path}", report)


def _tell(invocation: Invocation, done: str, report: Any) -> None:
    from commonplace.cli.screen import console, print_json

    values = {name: _plain(value) for name, value in asdict(report).items()}
    if invocation.as_json:
        print_json(values)
        return
    target = console()
    target.print(harmless_line(done), style="bold")
    for name, value in values.items():
        if value not in (None, "", [], {}):
            target.print(f"   {name.replace('_', ' ')}: {harmless_line(str(value))}")


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value
