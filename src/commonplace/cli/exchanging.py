"""The commands by which a store leaves as a whole and comes back: `backup`, `restore`, `export` and `import`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.types import KINDS

if TYPE_CHECKING:
    from rich.console import Console

_FILE = click.Path(path_type=Path, readable=False)
"""What may be read is for the engine to find out, whose message has a remedy."""


class _Format(click.Option):
    """An option whose help names all formats. They are looked up when somebody asks for help, and not before."""

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002 - the name is click's
        from commonplace.exchange.sources import FORMATS

        return f"[{'|'.join(FORMATS)}]"


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@pass_invocation
def backup(invocation: Invocation, /, file: Path) -> None:
    """Write a complete copy of the store to FILE.

    Others go on meanwhile. The copy is read back before it gets its name.
    """
    from commonplace.cli.exchange_rendering import print_backup
    from commonplace.cli.screen import progress_bars

    with progress_bars(invocation) as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        report = engine.backup(file)
    _tell(invocation, report, partial(print_backup, report))


@click.command(cls=Command, makes_store=True)
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="Put it in the place of the store there, which is kept beside it.")
@pass_invocation
def restore(invocation: Invocation, /, file: Path, replace: bool) -> None:
    """Make a store of the backup FILE.

    It is the store that --store names, or the one found from here.

    Everything in it is checked before anything is touched. Close what has the store open.
    """
    import commonplace
    from commonplace.cli.exchange_rendering import print_restore
    from commonplace.cli.screen import progress_bars

    place = Path(invocation.settings().store.path)
    with progress_bars(invocation) as progress:
        report = commonplace.restore(file, place, replace=replace, progress=progress)
    _tell(invocation, report, partial(print_restore, report, file))


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@click.option("--kind", "kinds", multiple=True, type=click.Choice((*KINDS, "graph", "ledger")), help="Only this kind.")
@pass_invocation
def export(invocation: Invocation, /, file: Path, kinds: tuple[str, ...]) -> None:
    """Write the namespace to FILE as JSON lines.

    A FILE of - is standard output.
    """
    from commonplace.cli.exchange_rendering import print_export
    from commonplace.cli.screen import progress_bars

    is_stream = str(file) == "-"
    # On a terminal, bars would be drawn among the lines.
    bars = nullcontext() if is_stream else progress_bars(invocation)
    with bars as progress, invocation.open(invocation.settings(), progress=progress) as engine:
        report = engine.export(sys.stdout if is_stream else file, kinds=kinds or None)
    if not is_stream:
        _tell(invocation, report, partial(print_export, report))


@click.command("import", cls=Command, makes_store=True)
@click.argument("path", type=_FILE)
@click.option("--format", "format_", default="auto", show_default=True, cls=_Format, help="Whose files they are.")
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
    from commonplace.cli.exchange_rendering import print_import
    from commonplace.cli.screen import progress_bars
    from commonplace.engine.exchanging import refuse_unfit_import
    from commonplace.errors import NotFoundError

    try:
        path.expanduser().stat()
    except OSError as error:
        remedy = "name a file or folder to import"
        raise NotFoundError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
    loaded, is_real = invocation.settings(), not options["dry_run"]
    if is_real and not invocation.has_store(loaded):
        refuse_unfit_import(path, loaded, format_=format_, skip_problems=options["skip_problems"])
    with progress_bars(invocation) as progress, invocation.open(loaded, create=is_real, progress=progress) as engine:
        report = engine.import_(path, format=format_, **options)
    _tell(invocation, report, partial(print_import, report, path))


def _tell(invocation: Invocation, report: Any, show: Callable[[Console], None]) -> None:
    from commonplace.cli.exchange_rendering import plain
    from commonplace.cli.screen import console, print_json

    if invocation.as_json:
        print_json(plain(report))
    else:
        show(console())
