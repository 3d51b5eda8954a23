"""The commands that take memories in, show and change them: `remember`, `get`, `list`, `update`, `touch` and more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import time as clock
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.taking import said
from commonplace.cli.values import beginning, filled, time
from commonplace.types import ORIGINS, STATUSES, TIERS

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.memories.memory import Memory

STORED_TIERS = TIERS[1:]
"""The tier ultra ends with its process: a command would forget at once what it was told."""


def _json_object(_: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        found = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no JSON: {error}", param=parameter) from None
    if not isinstance(found, dict):
        raise click.BadParameter(f'{value!r} is no JSON object; write {{"key": "value"}}', param=parameter)
    return found


def what_it_is_about(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `remember` and `update` share."""
    for option in reversed(
        (
            click.option("--file", type=click.Path(path_type=Path), help="Read the text from this file; - is a pipe."),
            click.option("--tier", type=click.Choice(STORED_TIERS), help="How long it is to stay."),
            click.option("--tag", "tags", multiple=True, metavar="TAG", callback=filled, help="A tag; any number."),
            click.option("--entity", "entities", multiple=True, metavar="NAME", callback=filled, help="Its subject."),
            click.option("--source", metavar="TEXT", help="Who or what it came from."),
            click.option("--at", metavar="TIME", callback=beginning, help="When it was: ISO 8601, or 'yesterday'."),
            click.option("--category", metavar="WORD", help="decision, preference, fact, context, …"),
            click.option("--metadata", metavar="JSON", callback=_json_object, help="A JSON object to keep with it."),
        )
    ):
        function = option(function)
    return function


@click.command(cls=Command)
@click.argument("text", nargs=-1)
@what_it_is_about
@click.option("--session", metavar="NAME", help="The conversation that it is a turn of.")
@click.option("--id", metavar="ID", help="An id of yours; a known one makes the next version.")
@click.option("--origin", type=click.Choice(ORIGINS), help="Where it comes from, which says how far it is trusted.")
@click.option("--trust", type=float, metavar="SHARE", help="0 to 1, in place of what follows from the origin.")
@click.option("--force", is_flag=True, help="Take it even if it repeats what is stored, or looks binary.")
@pass_invocation
def remember(invocation: Invocation, /, text: tuple[str, ...], file: Path | None, force: bool, **options: Any) -> None:
    """Keep TEXT, or what comes in a pipe.

    Secrets are replaced. What is remembered already is touched instead of kept twice.
    """
    from commonplace.cli.memory_rendering import print_outcome
    from commonplace.cli.screen import console, notify, own_store_notice, print_json
    from commonplace.memories.intake import checked

    loaded = invocation.settings()
    content = said(text, file, loaded.memory.max_bytes)
    if content is None:
        raise click.UsageError("there is nothing to remember; give a text, a --file, or a pipe")
    given = {name: value for name, value in options.items() if value not in (None, ())}
    # Before a store is made for it.
    checked({"content": content, **given}, max_bytes=loaded.memory.max_bytes, force=force, now=clock())
    store = Path(loaded.store.path)
    made = own_store_notice(loaded)
    if not made and not store.exists():
        made = (f"there was no store here; one was made in {store}",)
    with invocation.open(loaded, create=True) as engine:
        memory = engine.remember(content, force=force, **given)
    notify((*made, *memory.notices), invocation)
    if invocation.as_json:
        print_json(memory.to_dict())
    else:
        print_outcome(memory, console())


@click.command(cls=Command)
@click.argument("id")
@click.argument("text", nargs=-1)
@what_it_is_about
@pass_invocation
def update(invocation: Invocation, /, id: str, text: tuple[str, ...], file: Path | None, **options: Any) -> None:  # noqa: A002
    """Write the next version of memory ID.

    What is not given stays.

    The old version stays readable: `commonplace get ID --as-of TIME`.
    """
    from commonplace.cli.memory_rendering import print_outcome
    from commonplace.cli.screen import console, notify, print_json

    given = {name: value for name, value in options.items() if value not in (None, ())}
    loaded = invocation.settings()
    content = said(text, file, loaded.memory.max_bytes) if text or file is not None else None
    with invocation.open(loaded) as engine:
        memory = engine.update(engine.resolve_id(id), content, **given)
    notify(memory.notices, invocation)
    if invocation.as_json:
        print_json(memory.to_dict())
    else:
        print_outcome(memory, console())


@click.command(cls=Command)
@click.argument("id")
@click.option(
    "--as-of", metavar="TIME", callback=time, help="The version known then: ISO 8601, or words such as 'last Tuesday'."
)
@click.option("--versions", is_flag=True, help="Every version, oldest first.")
@click.option(
    "--touch/--no-touch", default=None, help="Count one more use, or none. [default: a use, at most once an hour]"
)
@pass_invocation
def get(invocation: Invocation, /, id: str, as_of: str | None, versions: bool, touch: bool | None) -> None:  # noqa: A002
    """Show memory ID."""
    from commonplace.cli.memory_rendering import print_memory, print_versions
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        id = engine.resolve_id(id)  # noqa: A001 - the name of the argument
        found = engine.versions(id) if versions else [engine.get(id, as_of=as_of, touch=touch)]
        engine.log_use(id)
    if invocation.as_json:
        print_json([memory.to_dict() for memory in found] if versions else found[0].to_dict())
    elif versions:
        print_versions(found, console())
    else:
        print_memory(found[0], console())


@click.command("list", cls=Command)
@click.option("--tier", "tiers", multiple=True, type=click.Choice(STORED_TIERS), help="Only this tier.")
@click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES), help="Only this; not archived ones.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", callback=filled, help="Only with this tag.")
@click.option("--source", "sources", multiple=True, metavar="TEXT", callback=filled, help="Only from this source.")
@click.option("--session", "sessions", multiple=True, metavar="NAME", callback=filled, help="Only of this talk.")
@click.option("--category", "categories", multiple=True, metavar="WORD", callback=filled, help="Only of this.")
@click.option("--since", metavar="TIME", callback=beginning, help="Only from then on: ISO 8601, or 'yesterday'.")
@click.option("--until", metavar="TIME", callback=beginning, help="Only before then: ISO 8601, or 'yesterday'.")
@click.option("-n", "--limit", type=int, default=20, show_default=True, metavar="N", help="How many at most.")
@click.option("--offset", type=int, default=0, metavar="N", help="Pass over the first so many.")
@pass_invocation
def list_(invocation: Invocation, /, **options: Any) -> None:
    """List memories, the newest first."""
    from commonplace.cli.memory_rendering import print_list
    from commonplace.cli.screen import console, notify, print_json

    is_filtered = any(value for name, value in options.items() if name != "limit")
    options["statuses"] = options["statuses"] or ("active", "promoted")
    with invocation.open(invocation.settings()) as engine:
        found = engine.list(**options)
        passed = options["offset"] + len(found)
        is_more = len(found) == options["limit"] and engine.list(**{**options, "limit": 1, "offset": passed})
    if invocation.as_json:
        print_json([memory.to_dict() for memory in found])
        return
    print_list(found, console(), is_filtered=is_filtered)
    if is_more:
        notify((f"there are more; see them with --offset {passed}",), invocation)


@click.command(cls=Command)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--reinforce", is_flag=True, help="Also raise its strength by 0.1, up to 2.")
@pass_invocation
def touch(invocation: Invocation, /, ids: tuple[str, ...], reinforce: bool) -> None:
    """Count one more use of each memory.

    Three uses in seven days move a memory to the next tier.
    """

    def touch_and_tell(engine: Engine, id_: str) -> Memory:
        touched = engine.touch(id_, reinforce=reinforce)
        engine.log_use(id_)
        return touched

    _for_each(invocation, ids, touch_and_tell)


@click.command(cls=Command)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@pass_invocation
def review(invocation: Invocation, /, ids: tuple[str, ...]) -> None:
    """Say that you looked at memories and found them right.

    It counts as a use too. After three reviews `commonplace consolidate run promote` writes a memory into the vault.
    """
    _for_each(invocation, ids, lambda engine, id_: engine.review(id_))


@click.command(cls=Command)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@pass_invocation
def archive(invocation: Invocation, /, ids: tuple[str, ...]) -> None:
    """Take memories out of finding, without deleting them.

    `commonplace restore-memory` brings one back; `commonplace gc` deletes those of more than 30 days ago.
    """
    _for_each(invocation, ids, lambda engine, id_: engine.archive(id_))


@click.command("restore-memory", cls=Command)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@pass_invocation
def restore_memory(invocation: Invocation, /, ids: tuple[str, ...]) -> None:
    """Let archived memories be found again."""
    _for_each(invocation, ids, lambda engine, id_: engine.restore_memory(id_))


@click.command(cls=Command)
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option("--type", "type_", metavar="WORD", help="How they hang together; related, if nothing is said.")
@click.option("--strength", type=float, default=1.0, show_default=True, metavar="SHARE", help="0 to 1.")
@click.option("--remove", is_flag=True, help="Delete the links from SOURCE to TARGET instead.")
@pass_invocation
def link(
    invocation: Invocation,
    /,
    source: str | None,
    target: str | None,
    type_: str | None,
    strength: float,
    remove: bool,
) -> None:
    """Link memories, or list links.

    With SOURCE and TARGET, link the one to the other; with SOURCE, list its links; with neither, list all.
    """
    from dataclasses import asdict

    from commonplace.cli.memory_rendering import print_links
    from commonplace.cli.screen import console, counted, print_json, say

    if remove and target is None:
        raise click.UsageError("--remove needs SOURCE and TARGET")
    with invocation.open(invocation.settings()) as engine:
        source, target = (None if end is None else engine.resolve_id(end) for end in (source, target))
        if remove:
            gone = engine.unlink(str(source), str(target), type_)
        elif source is not None and target is not None:
            links = [engine.link(source, target, type_ or "related", strength)]
        else:
            links = engine.links(source)
    if remove:
        print_json({"removed": gone}) if invocation.as_json else say(f"Removed {counted(gone, 'link')}")
    elif invocation.as_json:
        print_json([asdict(each) for each in links])
    else:
        print_links(links, console())


def _for_each(invocation: Invocation, ids: tuple[str, ...], act: Callable[[Any, str], Any]) -> None:
    from commonplace.cli.memory_rendering import print_outcome
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        # Each is looked up before any is changed: a wrong id among many leaves all as they were.
        whole = [engine.get(engine.resolve_id(id_), touch=False).id for id_ in ids]
        done = [act(engine, id_) for id_ in whole]
    if invocation.as_json:
        print_json([memory.to_dict() for memory in done])
        return
    for memory in done:
        print_outcome(memory, console())
