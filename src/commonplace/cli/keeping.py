"""The commands that make a store and look after it: `init` and `doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Invocation, pass_invocation


@click.command(cls=Command)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path())
@pass_invocation
def init(invocation: Invocation, directory: Path) -> None:
    """Create the store of a project, `.commonplace` in DIRECTORY (default: here).

    A store that exists is left as it is. With --store, the store is created there.
    """
    from commonplace.cli.screen import print_json
    from commonplace.engine.layout import DATABASE
    from commonplace.settings.locations import STORE_NAME

    if invocation.store is None:
        invocation.store = str(directory.expanduser().absolute() / STORE_NAME)
    loaded = invocation.settings()
    store = Path(loaded.store.path)
    existed = (store / DATABASE).is_file()
    invocation.open(loaded, create=True).close()
    if not existed:
        # The store is never part of the project's own history.
        (store / ".gitignore").write_text("*\n", encoding="utf-8")
    if invocation.as_json:
        print_json({"store": str(store), "created": not existed})
    elif existed:
        click.echo(f"There is already a store at {store}; it was left as it is.")
    else:
        click.echo(f"Created {store}\nNext: commonplace index build")


@click.command(cls=Command)
@click.option("--no-mend", is_flag=True, help="Only look; change nothing.")
@pass_invocation
def doctor(invocation: Invocation, no_mend: bool) -> int:
    """Check store, index and model data, and rebuild a faulty index from the store."""
    from commonplace.cli.screen import console, print_json, progress_bars

    loaded = invocation.settings()
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        found = engine.doctor(mend=not no_mend)
    code = SUCCESS if found.is_healthy else FAILURE
    if invocation.as_json:
        print_json({"store": loaded.store.path, "healthy": found.is_healthy, **asdict(found)})
        return code
    target = console()
    target.print(f"Store: {loaded.store.path}")
    for part in found.checked:
        findings = [finding for finding in found.findings if finding.part == part]
        if not findings:
            target.print(f"  {part}: well", style="green")
        for finding in findings:
            fate = "mended" if finding.mended else f"not mended: {finding.remedy}"
            target.print(f"  {part}: {finding.problem} ({fate})", style="yellow" if finding.mended else "red")
    return code
