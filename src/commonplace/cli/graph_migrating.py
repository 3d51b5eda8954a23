"""The commands below `graph` that exchange it with another system: `export`, `import` and `sync`."""

from __future__ import annotations

import sys
from pathlib import Path
from time import time as now

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
    from commonplace.cli.graph_rendering import print_migration, tell
    from commonplace.cli.screen import notify

    is_stream = str(file) == "-"
    with invocation.open(invocation.settings()) as engine:
        done = engine.graph.export_graphiti(sys.stdout if is_stream else file)
    if is_stream:
        notify(done.notices, invocation)
    else:
        tell(done, lambda migration, target: print_migration(migration, "Wrote", target), invocation)


@click.command("import", cls=Command, makes_store=True)
@click.argument("file", type=_FILE)
@_format
@click.option("--dry-run", is_flag=True, help="Check everything, and write nothing.")
@pass_invocation
def import_(invocation: Invocation, /, file: Path, format: str, dry_run: bool) -> None:  # noqa: A002, ARG001 - likewise
    """Take in another system's graph, ids kept.

    What is here already stays as it is; nothing is written if anything is wrong.
    """
    from commonplace.cli.graph_rendering import print_migration, tell
    from commonplace.engine.graph_migrating import refuse_unfit_graphiti

    settings = invocation.settings()
    if not invocation.has_store(settings):
        refuse_unfit_graphiti(file, now())
    with invocation.open(settings, create=not dry_run) as engine:
        done = engine.graph.import_graphiti(file, dry_run=dry_run)
    verb = "Would take in" if dry_run else "Took in"
    tell(done, lambda migration, target: print_migration(migration, verb, target), invocation)


@click.command(cls=Command)
@pass_invocation
def sync(invocation: Invocation, /) -> None:
    """Tell the outside backend what waits for it.

    Where the graph is local, which is the default, nothing does.
    """
    from commonplace.cli.graph_rendering import print_delivery, tell

    with invocation.open(invocation.settings()) as engine:
        told = engine.graph.sync()
    tell(told, print_delivery, invocation)
