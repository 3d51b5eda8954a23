"""The commands that make a store and look after it: `init` and `doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from commonplace.cli.escaping import harmless_line
from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Invocation, pass_invocation


@click.command(cls=Command, makes_store=True)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path())
@pass_invocation
def init(invocation: Invocation, directory: Path) -> None:
    """Create the store of a project.

    It is `.commonplace` in DIRECTORY, and without one in the working directory; with --store it is created there.
    A store that exists is left as it is.
    """
    from commonplace.cli.screen import notify, print_json, say
    from commonplace.engine.layout import DATABASE
    from commonplace.settings.locations import STORE_NAME, find_store

    outer = None
    if invocation.store is None:
        project = directory.expanduser().absolute()
        invocation.store = str(project / STORE_NAME)
        outer = find_store(project.parent)
    loaded = invocation.settings()
    store = Path(loaded.store.path)
    existed = (store / DATABASE).is_file()
    invocation.open(loaded, create=True).close()
    if outer is not None:
        notify((f"from here downward this store hides the one above, {harmless_line(str(outer))}",), invocation)
    shown = harmless_line(str(store))
    if invocation.as_json:
        print_json({"store": str(store), "created": not existed, "hides": None if outer is None else str(outer)})
    elif existed:
        say(f"There is already a store at {shown}; it was left as it is.")
    else:
        say(f"Created {shown}\nNext: commonplace index build")


@click.command(cls=Command)
@click.option("--no-mend", is_flag=True, help="Only look; change nothing.")
@click.option("--secrets", is_flag=True, help="Also replace secrets in what is stored by placeholders.")
@pass_invocation
def doctor(invocation: Invocation, no_mend: bool, secrets: bool) -> int:
    """Check store, index and model data, and mend the index.

    A faulty index is rebuilt from the store, and what a forgetting had to leave is finished. With --secrets memories,
    documents, indexed files, Markdown pages and logs are searched for keys, tokens and passwords; where one is found a
    placeholder is written, and every copy in the store goes. The files that were indexed stay as they are. The exit
    code is 1 when something is wrong and was not mended.
    """
    from commonplace.cli.screen import console, print_json, progress_bars

    loaded = invocation.settings()
    with progress_bars(invocation) as progress, invocation.open(loaded, progress=progress) as engine:
        found = engine.doctor(mend=not no_mend, secrets=secrets)
    code = SUCCESS if found.is_healthy else FAILURE
    if invocation.as_json:
        print_json({"store": loaded.store.path, "healthy": found.is_healthy, **asdict(found)})
        return code
    target = console()
    target.print(f"Store: {harmless_line(loaded.store.path)}")
    for part in found.checked:
        findings = [finding for finding in found.findings if finding.part == part]
        if not findings:
            target.print(f"  {part}: well", style="green")
        for finding in findings:
            fate = "mended" if finding.mended else f"not mended: {finding.remedy}"
            target.print(
                f"  {part}: {harmless_line(finding.problem)} ({fate})", style="yellow" if finding.mended else "red"
            )
        # What is mended in the store may still be open elsewhere.
        for remedy in dict.fromkeys(each.remedy for each in findings if each.mended and part == "secrets"):
            target.print(f"  {part}: now {remedy}", style="yellow")
    return code
