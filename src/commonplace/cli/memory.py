"""The commands for single memories: `remember`, `get`, `list`, `update` and more."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from time import time as clock
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.app import Command, pass_invocation
from commonplace.cli.input import beginning, filled, said, time
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    INDENT,
    broken,
    console,
    counted,
    notify,
    own_store_notice,
    print_beginning,
    print_head,
    print_json,
    say,
    told,
    wrapped,
)
from commonplace.dates.time import iso
from commonplace.text.escaping import harmless, harmless_line
from commonplace.types import ORIGINS, STATUSES, TIERS, Link

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.engine import Engine
    from commonplace.memory.view import Memory


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
    from commonplace.memory.validate import checked

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
        print_json([{**asdict(each), "created_at": iso(each.created_at)} for each in links])
    else:
        print_links(links, console())


def _for_each(invocation: Invocation, ids: tuple[str, ...], act: Callable[[Any, str], Any]) -> None:

    with invocation.open(invocation.settings()) as engine:
        # Each is looked up before any is changed: a wrong id among many leaves all as they were.
        whole = [engine.get(engine.resolve_id(id_), touch=False).id for id_ in ids]
        done = [act(engine, id_) for id_ in whole]
    if invocation.as_json:
        print_json([memory.to_dict() for memory in done])
        return
    for memory in done:
        print_outcome(memory, console())


_DONE = {
    "added": "Remembered",
    "touched": "Remembered before; touched",
    "reviewed": "Reviewed",
    "updated": "Updated",
    "unchanged": "Unchanged",
    "archived": "Archived",
    "restored": "Restored",
    "read": "Memory",
}
_FACT_COLUMNS = 14


def print_outcome(memory: Memory, target: Console) -> None:
    """Print in one line what was done with a memory, and its id."""
    done = "Touched" if memory.outcome == "touched" and not memory.notices else _DONE[memory.outcome]
    target.print(f"{done}: {harmless_line(memory.id)} ({memory.tier})", style="bold")


def print_memory(memory: Memory, target: Console) -> None:
    """Print a whole memory with all that is known of it."""
    from rich.text import Text

    for line in wrapped(Text(harmless(memory.content)), target.width):
        target.print(line)
    target.print()
    for name, value in _facts(memory):
        for number, part in enumerate(broken(value, target.width - _FACT_COLUMNS)):
            target.print(Text.assemble((f"{'' if number else name:>{_FACT_COLUMNS - 2}}  ", "dim"), part))


def print_list(memories: Sequence[Memory], target: Console, *, is_filtered: bool = False) -> None:
    """Print memories one below the other: its id, what is known of it, and the first lines of its text.

    Args:
        is_filtered: only some were asked for.
    """
    if not memories:
        target.print("No such memories." if is_filtered else "No memories. Keep one with `commonplace remember`.")
    for memory in memories:
        print_head(harmless_line(memory.id), _known(memory), target)
        print_beginning(memory.content, target)


def print_versions(versions: Sequence[Memory], target: Console) -> None:
    """Print every version of a memory, oldest first."""
    from rich.text import Text

    for memory in versions:
        until = "now" if memory.expired_at is None else told(memory.expired_at)
        target.print(f"Version {memory.version}, {told(memory.updated_at)} until {until}", style="bold")
        for line in wrapped(Text(harmless(memory.content)), target.width):
            target.print(Text(INDENT) + line)


def print_links(links: Sequence[Link], target: Console) -> None:
    """Print links, one a line."""
    for link in links:
        source, target_id = harmless_line(link.source), harmless_line(link.target)
        target.print(f"{source} → {target_id}  {harmless_line(link.type)} ({link.strength:.2f})")
    if not links:
        target.print("No links.")


def _known(memory: Memory) -> tuple[str, ...]:
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    status = "" if memory.status == "active" else memory.status
    return (memory.tier, status, told(memory.at), f"retention {memory.retention:.2f}", memory.source, tags)


def _facts(memory: Memory) -> list[tuple[str, str]]:
    used = f"{counted(memory.use_count, 'use')}, last {told(memory.last_used)}"
    facts = [
        ("id", memory.id),
        ("tier", f"{memory.tier} ({memory.status})"),
        ("at", told(memory.at)),
        ("stored", f"{told(memory.created_at)}, version {memory.version} since {told(memory.updated_at)}"),
        ("expired", "" if memory.expired_at is None else told(memory.expired_at)),
        ("retention", f"{memory.retention:.3f}; {used}; strength {memory.strength:.1f}"),
        ("category", memory.category),
        ("tags", ", ".join(memory.tags)),
        ("entities", ", ".join(memory.entities)),
        ("source", memory.source),
        ("origin", f"{memory.origin}, trust {memory.trust:.2f}"),
        ("session", f"{memory.session}, turn {memory.position + 1}" if memory.session else ""),
        ("made from", ", ".join(memory.derived_from)),
        ("reviews", str(memory.review_count or "")),
        ("note", memory.vault_path),
        ("forced", "yes" if memory.is_forced else ""),
        ("metadata", json.dumps(dict(memory.metadata), ensure_ascii=False) if memory.metadata else ""),
    ]
    return [(name, value) for name, value in facts if value]
