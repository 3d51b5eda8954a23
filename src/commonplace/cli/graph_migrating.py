"""The commands below `graph` that exchange it with another system: `export`, `import` and `sync`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation

_FORMATS = ("graphiti",)
_FILE = click.Path(path_type=Path, readable=False)
_format = click.option(
    "--format", type=click.Choice(_FORMATS), default=_FORMATS[0], show_default=True, help="Whose form the file has."
)


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@_format
@pass_invocation
def export(invocation: Invocation, /, file: Path, format: str) -> None:  # noqa: A002, ARG001 - there is one so far
    """Write the graph to FILE as another system reads it.

    A FILE of - is standard output. `commonplace export` writes all that a namespace holds, the graph too.
    """
    from commonplace.cli.graph_rendering import print_migration
    from commonplace.cli.screen import console, notify, print_json

    is_stream = str(file) == "-"
    with invocation.open(invocation.settings()) as engine:
        done = engine.graph.export_graphiti(sys.stdout if is_stream else file)
    notify(done.notices, invocation)
    if is_stream:
        return
    if invocation.as_json:
        print_json(done.to_dict())
    else:
        print_migration(done, "Wrote", console())


@click.command("import", cls=Command)
@click.argument("file", type=_FILE)
@_format
@click.option("--dry-run", is_flag=True, help="Check everything, and write nothing.")
@pass_invocation
def import_(invocation: Invocation, /, file: Path, format: str, dry_run: bool) -> None:  # noqa: A002, ARG001 - likewise
    """Take in another system's graph, ids kept.

    What is here already stays as it is; nothing is written if anything is wrong.
    """
    from commonplace.cli.graph_rendering import print_migration
    from commonplace.cli.screen import console, notify, print_json

    with invocation.open(invocation.settings(), create=not dry_run and file.is_file()) as engine:
        done = engine.graph.import_graphiti(file, dry_run=dry_run)
    notify(done.notices, invocation)
    if invocation.as_json:
        print_json(done.to_dict())
    else:
        print_migration(done, "Would take in" if dry_run else "Took in", console())


@click.command(cls=Command)
@pass_invocation
def sync(invocation: Invocation, /) -> None:
    """Tell the outside backend what waits for it.

    Where the graph is local, which is the default, nothing does.
    """
    from commonplace.cli.graph_rendering import print_delivery
    from commonplace.cli.screen import console, notify, print_json

    with invocation.open(invocation.settings()) as engine:
        told = engine.graph.sync()
    notify(told.notices, invocation)
    if invocation.as_json:
        print_json(told.to_dict())
    else:
        print_delivery(told, console())
