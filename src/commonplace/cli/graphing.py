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


def _limit(default: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--limit", type=int, default=default, show_default=True, metavar="N", help="How many at most.")


_as_of = click.option("--as-of", metavar="TIME", callback=time, help="What was known then: a date, or 'last Tuesday'.")
_valid_at = click.option("--valid-at", metavar="TIME", callback=time, help="What was true in the world then.")
_group = click.option("--group", "groups", multiple=True, metavar="NAME", callback=filled, help="Only of this group.")
_centre = click.option("--centre", metavar="ENTITY", callback=filled, help="What is near to it comes first.")


@graph.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@_limit(10)
@click.option("--type", "types", multiple=True, metavar="TYPE", callback=filled, help="Only of this type.")
@_group
@_as_of
@_centre
@pass_invocation
def entities(
    invocation: Invocation,
    /,
    query: tuple[str, ...],
    limit: int,
    types: tuple[str, ...],
    groups: tuple[str, ...],
    as_of: str | None,
    centre: str | None,
) -> None:
    """Find entities by their names and facts, best first."""
    from commonplace.cli.graph_rendering import print_entities
    from commonplace.cli.screen import console, notify, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.search_entities(
            " ".join(query), limit, group_ids=groups, entity_types=types, as_of=as_of, center_node_uuid=centre
        )
    notify(found.notices, invocation)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_entities(found, console())


@graph.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@_limit(10)
@click.option("--type", "types", multiple=True, metavar="TYPE", callback=filled, help="Only of this type.")
@_group
@_as_of
@_valid_at
@click.option("--past", is_flag=True, help="Also what has ended or was retracted.")
@_centre
@pass_invocation
def facts(
    invocation: Invocation,
    /,
    query: tuple[str, ...],
    limit: int,
    types: tuple[str, ...],
    groups: tuple[str, ...],
    past: bool,
    centre: str | None,
    **times: str | None,
) -> None:
    """Find facts, best first: those that hold now, or then."""
    from commonplace.cli.graph_rendering import print_found_facts
    from commonplace.cli.screen import console, notify, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.search_edges(
            " ".join(query),
            limit,
            group_ids=groups,
            relation_types=types,
            include_past=past,
            center_node_uuid=centre,
            **times,
        )
    notify(found.notices, invocation)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_found_facts(found, console())


@graph.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--query", default="", metavar="WORDS", help="What it is for; what answers it comes first.")
@click.option("--max-facts", type=int, default=20, show_default=True, metavar="N", help="How many facts at most.")
@click.option("--max-tokens", type=int, metavar="N", help="How long it may be; 2,500 unless given.")
@_as_of
@_valid_at
@_centre
@pass_invocation
def context(
    invocation: Invocation, /, names: tuple[str, ...], centre: str | None, max_facts: int, **options: Any
) -> None:
    """Print what is known of each NAME, for a model.

    It is fenced and labelled as data, within a budget of tokens.
    """
    from commonplace.cli.screen import notify, print_json, say

    with invocation.open(invocation.settings()) as engine:
        made = engine.graph.build_context(names, max_facts, centre, **options)
    notify((*made.notices, *(f"there is no entity {name!r:.80}" for name in made.missing)), invocation)
    if invocation.as_json:
        print_json(made.to_dict())
    elif made.text:
        say(made.text)
    else:
        notify(("nothing is known of it, or it has no room in so few tokens",), invocation)


@graph.command(cls=Command)
@click.argument("name")
@_as_of
@pass_invocation
def entity(invocation: Invocation, /, name: str, as_of: str | None) -> None:
    """Show the entity NAME: what is known of it.

    NAME is one of its names, or its id.
    """
    from commonplace.cli.graph_rendering import print_entity
    from commonplace.cli.screen import console, notify, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.entity(name, as_of=as_of)
        about = None if invocation.as_json else engine.graph.neighbourhood(found.uuid, 1, as_of=as_of)
    if about is None:
        print_json(found.to_dict())
    else:
        notify(about.notices, invocation)
        own = [each for each in about.relations if found.uuid in (each.source_node_uuid, each.target_node_uuid)]
        print_entity(found, own, console())


@graph.command(cls=Command)
@click.argument("source")
@click.argument("target")
@click.option("--max-depth", type=int, default=6, show_default=True, metavar="N", help="How many facts it may have.")
@_as_of
@_valid_at
@pass_invocation
def path(invocation: Invocation, /, source: str, target: str, **options: Any) -> None:
    """Show the shortest way of facts from SOURCE to TARGET."""
    from commonplace.cli.graph_rendering import print_path
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.path(source, target, **options)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_path(found, console())


@graph.command(cls=Command)
@click.argument("name")
@_limit(1000)
@_as_of
@pass_invocation
def timeline(invocation: Invocation, /, name: str, limit: int, as_of: str | None) -> None:
    """Show what began and ended for NAME, oldest first."""
    from commonplace.cli.graph_rendering import print_timeline
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.timeline(name, limit=limit, as_of=as_of)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_timeline(found, console())


@graph.command(cls=Command)
@click.argument("uuid")
@pass_invocation
def history(invocation: Invocation, /, uuid: str) -> None:
    """Show what happened to a fact or an entity, and why."""
    from commonplace.cli.graph_rendering import print_history
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.history(uuid)
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_history(found, console())


@graph.command(cls=Command)
@_limit(20)
@_group
@_as_of
@pass_invocation
def episodes(invocation: Invocation, /, limit: int, groups: tuple[str, ...], as_of: str | None) -> None:
    """List episodes, the newest first."""
    from commonplace.cli.graph_rendering import print_episodes
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.episodes(limit, groups, as_of=as_of)
    if invocation.as_json:
        print_json([each.to_dict() for each in found])
    else:
        print_episodes(found, console())


@graph.command(cls=Command)
@_limit(20)
@_as_of
@pass_invocation
def communities(invocation: Invocation, /, limit: int, as_of: str | None) -> None:
    """Show which entities hang together most closely."""
    from commonplace.cli.graph_rendering import print_communities
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.communities(limit, as_of=as_of)
    if invocation.as_json:
        print_json([each.to_dict() for each in found])
    else:
        print_communities(found, console())


@graph.command(cls=Command)
@pass_invocation
def disputes(invocation: Invocation, /) -> None:
    """Show the facts that cannot all be true."""
    from commonplace.cli.graph_rendering import print_disputes
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.disputes()
    if invocation.as_json:
        print_json([each.to_dict() for each in found])
    else:
        print_disputes(found, console())


@graph.command(cls=Command)
@pass_invocation
def status(invocation: Invocation, /) -> None:
    """Count what the graph holds, by type."""
    from commonplace.cli.graph_rendering import print_stats
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.stats()
    if invocation.as_json:
        print_json(found.to_dict())
    else:
        print_stats(found, console())
