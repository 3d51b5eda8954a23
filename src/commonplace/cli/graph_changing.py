"""The commands below `graph` that change it: `add`, `fact`, `delete-episode`, `merge`, `split` and `settle`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from time import time as now
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Command, Invocation, pass_invocation
from commonplace.cli.taking import said
from commonplace.cli.values import beginning, filled
from commonplace.types import ORIGINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commonplace.engine.graphing import Graph

_SOURCES = ("text", "message", "json")
_reason = click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the change.")


@click.command(cls=Command)
@click.argument("text", nargs=-1, metavar="[TEXT|-]...")
@click.option("--file", type=click.Path(path_type=Path), help="Read the text from this file; - is a pipe.")
@click.option("--at", "reference_time", metavar="TIME", callback=beginning, help="When it was said or happened.")
@click.option("--name", default="", metavar="TEXT", help="What to call the episode.")
@click.option("--source", type=click.Choice(_SOURCES), default="text", help="Lines of 'speaker: text', or JSON.")
@click.option("--source-description", default="", metavar="TEXT", help="What it comes from.")
@click.option("--speaker", default="", metavar="NAME", help="Who says it: who 'I' is.")
@click.option("--group", "group_id", default="", metavar="NAME", help="A label within the namespace.")
@click.option("--origin", type=click.Choice(ORIGINS), help="Where it comes from, which says how far it is trusted.")
@click.option("--trust", type=float, metavar="SHARE", help="0 to 1, in place of what follows from the origin.")
@click.option("--uuid", metavar="ID", callback=filled, help="An id of yours; a known one is replaced.")
@pass_invocation
def add(invocation: Invocation, /, text: tuple[str, ...], file: Path | None, **options: Any) -> None:
    """Keep TEXT as an episode, with the facts it states.

    A dash, or no text, takes what comes in a pipe. Entities and facts are found without a model; a newer fact ends an
    older one where that is clear, else both are disputed.
    """
    from commonplace.cli.graph_rendering import print_addition, tell
    from commonplace.engine.graph_giving import refuse_unfit_episode

    settings = invocation.settings()
    content = said(text, file, settings.memory.max_bytes)
    if content is None:
        raise click.UsageError("there is no episode to keep; give a text, a --file, or a pipe")
    given = {name: value for name, value in options.items() if value is not None}
    refuse_unfit_episode(content, settings, now(), **given)  # before a store is made for it
    with _changed(invocation, create=True) as graph:
        added = graph.add_episode(content, **given)
    tell(added, print_addition, invocation)


@click.command(cls=Command)
@click.argument("source")
@click.argument("relation_type", metavar="TYPE")
@click.argument("target")
@click.option("--fact", metavar="SENTENCE", help="The fact in words; made of the names, unless given.")
@click.option("--source-type", metavar="TYPE", help="Of SOURCE, where it is new.")
@click.option("--target-type", metavar="TYPE", help="Of TARGET, where it is new.")
@click.option("--valid-from", metavar="TIME", callback=beginning, help="Since when; now, unless given.")
@click.option("--valid-to", metavar="TIME", callback=beginning, help="Up to when.")
@click.option("--group", "group_id", default="", metavar="NAME", help="A label within the namespace.")
@_reason
@pass_invocation
def fact(invocation: Invocation, /, source: str, relation_type: str, target: str, **options: Any) -> None:
    """Keep a fact: SOURCE is related to TARGET by TYPE.

    SOURCE and TARGET are names or ids; a name that is not known makes an entity. TYPE is DEPENDS_ON, PART_OF, …
    """
    from commonplace.cli.graph_rendering import print_addition, tell
    from commonplace.engine.graph_giving import refuse_unfit_fact

    refuse_unfit_fact(source, relation_type, target, invocation.settings(), now(), **options)  # likewise
    with _changed(invocation, create=True) as graph:
        added = graph.add_triplet(source, relation_type, target, **options)
    tell(added, print_addition, invocation)


@click.command("delete-episode", cls=Command)
@click.argument("uuid")
@pass_invocation
def delete_episode(invocation: Invocation, /, uuid: str) -> None:
    """Delete an episode with what only it supported.

    What other episodes say stays; facts that had ended only because of it hold again.
    """
    from commonplace.cli.graph_rendering import print_deletion, tell

    with _changed(invocation) as graph:
        gone = graph.delete_episode(uuid)
    tell(gone, print_deletion, invocation)


@click.command(cls=Command)
@click.argument("keep")
@click.argument("other")
@_reason
@pass_invocation
def merge(invocation: Invocation, /, keep: str, other: str, reason: str) -> None:
    """Make entity OTHER one with KEEP; `graph split` undoes it."""
    from commonplace.cli.graph_rendering import print_merging, tell

    with _changed(invocation) as graph:
        merged = graph.merge(keep, other, reason=reason)
    tell(merged, print_merging, invocation)


@click.command(cls=Command)
@click.argument("entity")
@click.option(
    "--name", "names", multiple=True, metavar="NAME", callback=filled, help="What is to be itself again; else all."
)
@_reason
@pass_invocation
def split(invocation: Invocation, /, entity: str, names: tuple[str, ...], reason: str) -> None:
    """Make ENTITY several again, as before it was merged.

    Names that were never another's make a new entity.
    """
    from commonplace.cli.graph_rendering import print_splitting, tell

    with _changed(invocation) as graph:
        parted = graph.split(entity, names=names, reason=reason)
    tell(parted, print_splitting, invocation)


@click.command(cls=Command)
@click.argument("uuid")
@click.option("--reason", required=True, metavar="TEXT", callback=filled, help="Why it is right; kept in its history.")
@pass_invocation
def settle(invocation: Invocation, /, uuid: str, reason: str) -> None:
    """Say which of the facts that are disputed is right.

    Of the others those end that began before it, and the rest is retracted.
    """
    from commonplace.cli.graph_rendering import print_settlement, tell

    with _changed(invocation) as graph:
        settled = graph.settle(uuid, reason=reason)
    tell(settled, print_settlement, invocation)


@contextmanager
def _changed(invocation: Invocation, *, create: bool = False) -> Iterator[Graph]:
    """Open the graph to change it, and say where a store was made for it."""
    from commonplace.cli.screen import notify

    loaded = invocation.settings()
    is_new = not Path(loaded.store.path).exists()
    with invocation.open(loaded, create=create) as engine:
        yield engine.graph
    if is_new:
        notify((f"there was no store here; one was made in {loaded.store.path}",), invocation)
