"""The commands that make a store and look after it: `init` and `doctor`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.screen import counted
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from commonplace.settings import Settings

_SHOWN, _SHOWN_CHARACTERS = 3, 80
MAX_LISTED = 10_000


@click.command(cls=Command, makes_store=True)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--move-memories", is_flag=True, help="Move the memories of your own store into it, without asking.")
@click.option("--anew", is_flag=True, help="Also where a store has lost its database: begin with an empty one.")
@pass_invocation
def init(invocation: Invocation, directory: Path, move_memories: bool, anew: bool) -> None:
    """Create the store of a project.

    It is `.commonplace` in DIRECTORY, and without one in the working directory; with --store it is created there.
    A store that exists is left as it is.

    What was remembered before there was a project is in your own store, and not found from here: it is moved if you
    agree.

    Where a store has lost its database, but its index or its pages are there, nothing is made: restore a backup. With
    --anew an empty store is made there, and takes in what stands on its Markdown pages.
    """
    from commonplace.cli.screen import notify, print_json, say
    from commonplace.engine.layout import DATABASE
    from commonplace.settings.locations import STORE_NAME, find_store, refuse_links
    from commonplace.store.database_files import left_behind
    from commonplace.store.sqlite import SqliteStore

    outer = None
    if invocation.store is None:
        project = directory.expanduser().absolute()
        invocation.store = str(project / STORE_NAME)
        outer = find_store(project.parent)
    loaded = invocation.settings()
    store = Path(loaded.store.path)
    existed = (store / DATABASE).is_file()
    is_lost = anew and bool(left_behind(store / DATABASE)) and not existed
    if is_lost:
        refuse_links(store)
        SqliteStore.create(store / DATABASE).close()
    with invocation.open(loaded, create=True) as engine:
        taken = engine.sync().added if is_lost else 0
    moved = _move_memories(invocation, loaded, is_agreed=move_memories)
    if outer is not None:
        notify((f"from here downward this store hides the one above, {harmless_line(str(outer))}",), invocation)
    shown = harmless_line(str(store))
    if invocation.as_json:
        print_json(
            {
                "store": str(store),
                "created": not existed,
                "hides": None if outer is None else str(outer),
                "moved": moved,
                "taken_in": taken,
            }
        )
    elif existed:
        say(f"There is already a store at {shown}; it was left as it is.")
    else:
        kept = f"\nTook in {counted(taken, 'memory', 'memories')} from its pages" if taken else ""
        say(f"Created {shown}{kept}\nNext: commonplace index build")
    if moved and not invocation.as_json:
        say(f"Moved {counted(moved, 'memory', 'memories')} here from your own store.")


def hidden_memories(settings: Settings) -> tuple[str, ...]:
    """Return the beginnings of the memories of the user's own store, which a project's store hides; none elsewhere.

    Raises:
        CommonplaceError: that store cannot be opened or read.
    """
    from commonplace.engine.layout import DATABASE
    from commonplace.engine.opening import open_engine
    from commonplace.settings.locations import user_store

    own = user_store()
    if settings.project is None or own == Path(settings.store.path) or not (own / DATABASE).is_file():
        return ()
    with open_engine(own, settings.store.namespace, None, settings=settings) as engine:
        return tuple(memory.content[:_SHOWN_CHARACTERS] for memory in engine.list(statuses=(), limit=MAX_LISTED))


def _move_memories(invocation: Invocation, loaded: Settings, *, is_agreed: bool) -> int:
    """Move the memories of the user's own store here where that is agreed; return how many were moved."""
    from commonplace.cli.screen import notify, progress_bars
    from commonplace.engine.opening import open_engine
    from commonplace.errors import CommonplaceError
    from commonplace.settings.locations import user_store

    try:
        texts = hidden_memories(loaded)
    except CommonplaceError as error:
        if is_agreed:
            raise
        notify((f"your own store, {user_store()}, cannot be looked into: {error.args[0]}",), invocation)
        return 0
    if not texts:
        return 0
    told = f"your own store, {user_store()}, holds {counted(len(texts), 'memory', 'memories')} not found from here"
    if not is_agreed and not invocation.as_json and sys.stdin.isatty():
        for text in texts[:_SHOWN]:
            click.echo(f"  {harmless_line(text)}", err=True)
        is_agreed = click.confirm(f"{told[0].upper()}{told[1:]}. Move them here?", err=True)
    if not is_agreed:
        notify((f"{told}; `commonplace init --move-memories` moves them here",), invocation)
        return 0
    with (
        progress_bars(invocation) as progress,
        open_engine(user_store(), loaded.store.namespace, None, settings=loaded, progress=progress) as own,
        invocation.open(loaded, progress=progress) as here,
    ):
        return own.move_memories(here)


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
