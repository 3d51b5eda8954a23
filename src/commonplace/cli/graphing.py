"""The command group `graph`, with the commands that find and look around in it. Others are beside this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from commonplace.cli.graph_changing import add, delete_episode, fact, merge, settle, split
from commonplace.cli.graph_migrating import export, import_, sync
from commonplace.cli.graph_showing import show
from commonplace.cli.invocation import Command, Group, Invocation, pass_invocation
from commonplace.cli.values import filled, time


@click.group(cls=Group)
def graph() -> None:
    """Keep facts with their times, and ask what was true when."""


for _command in (add, fact, delete_episode, merge, split, settle, show, export, import_, sync):
    graph.add_command(_command)


def _limit(name: str, default: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "-n", "--limit", name, type=int, default=default, show_default=True, metavar="N", help="How many at most."
    )


def _types(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--type", name, multiple=True, metavar="TYPE", callback=filled, help="Only of this type.")


# Options are passed on under the names that the library has for them.
_as_of = click.option("--as-of", metavar="TIME", callback=time, help="What was known then: a date, or 'last Tuesday'.")
_valid_at = click.option("--valid-at", metavar="TIME", callback=time, help="What was true in the world then.")
_group = click.option(
    "--group", "group_ids", multiple=True, metavar="NAME", callback=filled, help="Only of this group."
)
_centre = click.option(
    "--centre", "center_node_uuid", metavar="ENTITY", callback=filled, help="What is near to it comes first."
)


@graph.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@_limit("num_results", 10)
@_types("entity_types")
@_group
@_as_of
@_valid_at
@_centre
@pass_invocation
def entities(invocation: Invocation, /, query: tuple[str, ...], **options: Any) -> None:
    """Find entities by their names and facts, best first.

    With --valid-at, by the facts that held then.
    """
    from commonplace.cli.graph_rendering import print_entities, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.search_entities(" ".join(query), **options)
    tell(found, print_entities, invocation)


@graph.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@_limit("num_results", 10)
@_types("relation_types")
@_group
@_as_of
@_valid_at
@click.option("--past", "include_past", is_flag=True, help="Also what has ended or was retracted.")
@_centre
@pass_invocation
def facts(invocation: Invocation, /, query: tuple[str, ...], **options: Any) -> None:
    """Find facts, best first: those that hold now, or then."""
    from commonplace.cli.graph_rendering import print_found_facts, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.search_edges(" ".join(query), **options)
    tell(found, print_found_facts, invocation)


@graph.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--query", default="", metavar="WORDS", help="What it is for; what answers it comes first.")
@click.option("--max-facts", type=int, default=20, show_default=True, metavar="N", help="How many facts at most.")
@click.option("--max-tokens", type=int, metavar="N", help="How long it may be; 2,500 unless given.")
@_as_of
@_valid_at
@_centre
@pass_invocation
def context(invocation: Invocation, /, names: tuple[str, ...], **options: Any) -> None:
    """Print what is known of each NAME, for a model.

    It is fenced and labelled as data, within a budget of tokens.
    """
    from commonplace.cli.screen import notify, print_json, say

    with invocation.open(invocation.settings()) as engine:
        made = engine.graph.build_context(names, **options)
    notify((*made.notices, *(f"there is no entity {name!r:.80}" for name in made.missing)), invocation)
    if invocation.as_json:
        print_json(made.to_dict())
    elif made.text:
        say(made.text)
    elif not made.missing:
        notify(("nothing is known of it, or it has no room in so few tokens",), invocation)


@graph.command(cls=Command)
@click.argument("name")
@_as_of
@pass_invocation
def entity(invocation: Invocation, /, name: str, as_of: str | None) -> None:
    """Show the entity NAME: what is known of it.

    NAME is one of its names, or its id.
    """
    from commonplace.cli.graph_rendering import print_entity, tell
    from commonplace.cli.screen import notify

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.entity(name, as_of=as_of)
        about = engine.graph.neighbourhood(found.uuid, 1, as_of=as_of)
    notify(about.notices, invocation)
    own = [each for each in about.relations if found.uuid in (each.source_node_uuid, each.target_node_uuid)]
    tell(found, lambda entity, target: print_entity(entity, own, target), invocation)


@graph.command(cls=Command)
@click.argument("source")
@click.argument("target")
@click.option("--max-depth", type=int, default=6, show_default=True, metavar="N", help="How many facts it may have.")
@_as_of
@_valid_at
@pass_invocation
def path(invocation: Invocation, /, source: str, target: str, **options: Any) -> None:
    """Show the shortest way of facts from SOURCE to TARGET."""
    from commonplace.cli.graph_rendering import print_path, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.path(source, target, **options)
    tell(found, print_path, invocation)


@graph.command(cls=Command)
@click.argument("name")
@_limit("limit", 1000)
@_as_of
@pass_invocation
def timeline(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Show what began and ended for NAME, oldest first."""
    from commonplace.cli.graph_rendering import print_timeline, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.timeline(name, **options)
    tell(found, print_timeline, invocation)


@graph.command(cls=Command)
@click.argument("uuid")
@pass_invocation
def history(invocation: Invocation, /, uuid: str) -> None:
    """Show what happened to a fact or an entity, and why."""
    from commonplace.cli.graph_rendering import print_history, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.history(uuid)
        about = (engine.graph.relation if found.kind == "relation" else engine.graph.entity)(found.uuid)
    tell(found, lambda history, target: print_history(history, about, target), invocation)


@graph.command(cls=Command)
@_limit("limit", 20)
@_group
@_as_of
@pass_invocation
def episodes(invocation: Invocation, /, **options: Any) -> None:
    """List episodes, the newest first."""
    from commonplace.cli.graph_rendering import print_episodes, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.episodes(**options)
    tell(found, print_episodes, invocation)


@graph.command(cls=Command)
@_limit("limit", 20)
@_as_of
@pass_invocation
def communities(invocation: Invocation, /, **options: Any) -> None:
    """Show which entities hang together most closely."""
    from commonplace.cli.graph_rendering import print_communities, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.communities(**options)
    tell(found, print_communities, invocation)


@graph.command(cls=Command)
@pass_invocation
def disputes(invocation: Invocation, /) -> None:
    """Show the facts that cannot all be true."""
    from commonplace.cli.graph_rendering import print_disputes, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.disputes()
    tell(found, print_disputes, invocation)


@graph.command(cls=Command)
@pass_invocation
def status(invocation: Invocation, /) -> None:
    """Count what the graph holds, by type."""
    from commonplace.cli.graph_rendering import print_stats, tell

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.stats()
    tell(found, print_stats, invocation)
