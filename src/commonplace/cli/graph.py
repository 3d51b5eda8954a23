"""The command group `graph`: keep facts with their times, ask what was true when, and draw it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import time as now
from typing import TYPE_CHECKING, Any, Final, cast

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask, command, opened
from commonplace.cli.input import read_text
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import (
    INDENT,
    MAX_LISTED,
    Line,
    Parts,
    Row,
    Rows,
    counted,
    emit,
    holdings,
    joined,
    local_time,
    more,
    notify,
    print_json,
    say,
    write_whole,
)
from commonplace.graph.text import overtaken, when

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.graph import views
    from commonplace.graph.graphiti.delivery import Delivery
    from commonplace.graph.migration import Migration

DRAWINGS: Final = ("svg", "graphml", "dot", "mermaid")
_ENDINGS: Final = {"gv": "dot", "mmd": "mermaid"}
_WARNING: Final = "yellow"

# Options are passed on under the names that the library has for them.
_groups = options.text("--group", "group_ids", metavar="NAME", many=True, help="Only of this group.")
_group = click.option("--group", "group_id", default="", metavar="NAME", help="A label within the namespace.")
_centre = options.text("--centre", "center_node_uuid", metavar="ENTITY", help="Rank what is near to it first.")
_times = options.group(options.as_of, options.valid_at)
_format = click.option("--format", type=click.Choice(["graphiti"]), expose_value=False, help="Format of FILE.")


def _types(name: str) -> options.Decorator:
    return options.text("--type", name, metavar="TYPE", many=True, help="Only of this type.")


def _addition(added: views.Addition) -> Rows:
    found = _holdings(len(added.entities), len(added.relations)) or "no fact"
    if added.episode is None:
        yield Line(f"Added: {found}", "bold")
    else:
        done = {"added": "Added", "replaced": "Replaced", "unchanged": "Already known"}[added.outcome]
        yield Row(f"{done} {added.episode.uuid}", (found,))
    if added.entities:
        yield Line(", ".join(f"{each.name} ({each.entity_type})" for each in added.entities), "dim", 1)
    yield from _facts(added.relations)
    yield from _titled("Ended by it:", added.ended)
    disputed = [each for each in added.disputed if each.uuid not in {known.uuid for known in added.relations}]
    yield from _titled("Disputed since:", disputed, _WARNING)


def _names(*entities: views.EntityView) -> Rows:
    for each in entities:
        yield Row(each.name, (each.entity_type, each.uuid))


def _holdings(entities: int, facts: int, *, episodes: int = 0) -> str:
    return holdings({"episodes": episodes, "entities": entities, "relations": facts})


def _entities(found: views.FoundEntities) -> Rows:
    for rank, each in enumerate(found, 1):
        away = "" if each.distance is None else f"{counted(each.distance, 'fact')} away"
        yield Row(each.name, (f"{each.score:.2f}", each.entity_type, away, each.uuid), before=f"{rank}. ")
        if each.summary:
            yield Line(each.summary, "", 1)
    if not found:
        yield Line("No entity is about this.", "bold")


def _found_facts(found: views.FoundRelations) -> Rows:
    for rank, each in enumerate(found, 1):
        yield from _fact(each, before=f"{rank}. ")
    if not found:
        yield Line("No fact is about this.", "bold")
        yield Line("--past also looks at what has ended, --valid-at TIME at what held then.", "dim", 1)
    elif any(overtaken(each) for each in found):
        yield Line("--valid-at TIME tells what held then, --past what has ended.", "dim")


def _facts(facts: Sequence[views.RelationView]) -> Rows:
    for each in facts:
        yield from _fact(each, level=1)


def _fact(fact: views.RelationView, *, before: str = "", level: int = 0) -> Rows:
    """Yield the sentence of a fact, then what is known of it, with its id last."""
    colour = "dim" if fact.retracted or fact.expired_at is not None else "cyan"
    yield Line(fact.fact, colour, level, before)
    ends = f"{fact.source_name} {fact.relation_type} {fact.target_name}"
    score = [(f"{fact.score:.2f}", "dim")] if fact.score else []
    marks = [(each, _WARNING) for each in _state(fact)]
    known = [each for each in (when(fact), overtaken(fact), ends, fact.uuid) if each]
    yield Parts([*score, *marks, *((each, "dim") for each in known)], level + 1)


def _titled(title: str, facts: Sequence[views.RelationView], style: str = "") -> Rows:
    if facts:
        yield Line(title, style)
        yield from _facts(facts[:MAX_LISTED])
        yield from more(len(facts))


def _state(fact: views.RelationView) -> tuple[str, ...]:
    return tuple(name for name, holds in (("disputed", fact.disputed), ("retracted", fact.retracted)) if holds)


def _entity(entity: views.EntityView, facts: Sequence[views.RelationView]) -> Rows:
    yield from _names(entity)
    fields = {
        "also": ", ".join(entity.aliases),
        "known since": local_time(entity.created_at),
        "in the world": when(entity) if entity.valid_from or entity.valid_to else "",
        "merged into": entity.merged_into,
        "group": entity.group_id,
        "trust": f"{entity.trust:.2f}",
    }
    yield from (Line(f"{name}: {value}", "dim", 1) for name, value in fields.items() if value)
    yield from _facts(facts[:MAX_LISTED])
    if len(facts) > MAX_LISTED:
        yield Line(f"… {len(facts) - MAX_LISTED:,} more; see `commonplace graph timeline NAME`", "dim", 1)
    if not facts:
        yield Line("No current fact is known about it.", "", 1)


def _path(found: views.GraphPath) -> Rows:
    if not found.entities:
        yield Line("No path between these entities.", "bold")
        if found.is_capped:
            yield Line("The search stopped at a hub; raise --max-depth or name a closer entity.", "dim")
        return
    yield Row(found.entities[0].name)
    for place, each in enumerate(found.relations):
        is_along = each.source_node_uuid == found.entities[place].uuid
        arrow = f"—{each.relation_type}→" if is_along else f"←{each.relation_type}—"
        name = found.entities[place + 1].name
        yield Row(f"{arrow} {name}", (*_state(each), when(each), each.fact), before=INDENT)


def _timeline(found: views.Timeline) -> Rows:
    yield from _names(found.entity)
    for entry in found.entries:
        day = "unknown" if entry.at is None else entry.at.date().isoformat()
        marks = "".join(f" ({each})" for each in _state(entry.relation))
        style = "" if entry.what == "began" else "dim"
        yield Line(f"{day:<10}  {entry.what}  {entry.relation.fact}{marks}", style, 1)
    if not found.entries:
        yield Line("Nothing is known about it.", "", 1)


def _history(found: views.History, about: views.EntityView | views.RelationView) -> Rows:
    if found.kind == "relation":
        yield from _fact(cast("views.RelationView", about))
    else:
        yield from _names(cast("views.EntityView", about))
    for entry in found.entries:
        reason = f": {entry.reason}" if entry.reason else ""
        yield Line(f"{local_time(entry.at)}  {entry.what}{reason}", "", 1)
        if entry.episode:
            yield Line(f"episode {entry.episode}", "dim", 2)
    if not found.entries:
        yield Line("Nothing is recorded.", "", 1)


def _episodes(found: Sequence[views.EpisodeView]) -> Rows:
    for each in found:
        known = (local_time(each.reference_time), each.name, each.source, each.source_description, each.group_id)
        yield Row(each.uuid, known, each.content)
    if not found:
        yield "No episodes. Keep one with `commonplace graph add`."


def _communities(found: Sequence[views.Community]) -> Rows:
    for each in found:
        yield Row(each.name, (counted(each.size, "entity", "entities"), counted(each.facts, "fact")))
        rest = ", …" if each.size > len(each.entities) else ""
        yield Line(", ".join(entity.name for entity in each.entities) + rest, "", 1)
    if not found:
        yield "No related entities yet."


def _disputes(found: Sequence[views.Dispute]) -> Rows:
    for each in found:
        yield Line(f"Disputed since {local_time(each.since)}:", _WARNING)
        yield from _facts(each.relations)
    if found:
        yield Line("\nSay which one is right:  commonplace graph settle ID --reason WHY", "dim")
    else:
        yield "Nothing is disputed."


def _deletion(gone: views.Deletion) -> Rows:
    also = _holdings(len(gone.entities), len(gone.relations))
    yield Line(f"Deleted{f', with {also} that only it supported' if also else ''}.", "bold")
    yield from _titled("True again:", gone.reopened)


def _merging(merged: views.Merging) -> Rows:
    kept = merged.entity
    yield f"{merged.merged.name} is {kept.name} now, with {counted(len(merged.relations), 'fact')}."
    yield Row(kept.name, (kept.entity_type, kept.uuid), before=INDENT)


def _splitting(parted: views.Splitting) -> Rows:
    yield from _names(parted.entity, *parted.parted)
    yield f"{counted(len(parted.relations), 'fact')} went with them."


def _settlement(settled: views.Settlement) -> Rows:
    yield from _titled("This holds:", [settled.relation])
    yield from _titled("This has ended:", settled.ended)
    yield from _titled("This was never true:", settled.retracted)


def _stats(found: views.GraphStats) -> Rows:
    counts = [(found.episodes, "episode", ""), (found.entities, "entity", "entities"), (found.relations, "fact", "")]
    yield Line(f"{joined([counted(*each) for each in counts])}, of which {found.current:,} hold", "bold")
    if found.disputed:
        yield Line(f"{counted(found.disputed, 'fact')} disputed; see `commonplace graph disputes`", _WARNING)
    for title, types in (("entities", found.entity_types), ("facts", found.relation_types)):
        if types:
            yield Line(f"{title}: {', '.join(f'{number:,} {type_}' for type_, number in types.items())}", "", 1)


def _migration(done: Migration, verb: str) -> Rows:
    what = _holdings(done.entities, done.relations, episodes=done.episodes)
    what = what or ("nothing new" if done.known else "an empty graph")
    yield Line(f"{verb} {what}: {done.path}", "bold")
    if done.known:
        yield Line(f"{done.known:,} were already here and are unchanged.", "dim", 1)


def _delivery(delivery: Delivery) -> Rows:
    if delivery.backend == "local":
        yield "The graph is local: nothing is queued."
        return
    sent = counted(delivery.delivered, "episode")
    yield Line(f"Sent {sent} to {delivery.backend.capitalize()}; {delivery.waiting:,} queued.", "bold")
    if delivery.unsure:
        yield Line(f"{delivery.unsure:,} of these may have arrived; they are checked before being resent.", "", 1)
    if delivery.refused:
        yield Line(f"{delivery.refused:,} of these were refused.", _WARNING, 1)


@click.group(cls=Group)
def graph() -> None:
    """Keep facts with their times, and ask what was true when."""


@command(graph)
@click.argument("text", nargs=-1, metavar="[TEXT|-]...")
@options.text_file
@options.time("--at", "reference_time", is_start=True, help="When it was said or happened.")
@click.option("--name", default="", metavar="TEXT", help="A name for the episode.")
@click.option("--source", type=click.Choice(["text", "message", "json"]), default="text", help="Kind of text.")
@click.option("--source-description", default="", metavar="TEXT", help="What it comes from.")
@click.option("--speaker", default="", metavar="NAME", help="Who says it: who 'I' is.")
@_group
@options.origin
@click.option("--uuid", metavar="ID", callback=options.non_empty, help="Your own id; a known one is replaced.")
def add(invocation: Invocation, /, text: tuple[str, ...], file: Path | None, **values: Any) -> None:
    """Add TEXT as an episode, with the facts it states.

    A dash, or no text, reads standard input. Entities and facts are found without a model. A newer fact ends an older
    one if that is clear; otherwise both are disputed.

    Example: commonplace graph add "auth.ts depends on token.ts" --at 2026-01-12
    """
    from commonplace.engine.graph_input import checked_episode

    settings = invocation.settings()
    content = read_text(text, file, settings.memory.max_bytes)
    if content is None:
        raise click.UsageError("there is no episode to keep; give a text, a --file, or a pipe")
    given = {name: value for name, value in values.items() if value is not None}
    checked_episode(content, now(), settings.memory.max_bytes, given)  # before a store is made for it
    with opened(invocation, settings, create=True) as engine:
        added = engine.graph.add_episode(content, **given)
    emit(invocation, added, _addition)


@command(graph)
@click.argument("source")
@click.argument("relation_type", metavar="TYPE")
@click.argument("target")
@click.option("--fact", metavar="SENTENCE", help="The fact in words. [default: made of the names]")
@click.option("--source-type", metavar="TYPE", help="Type of SOURCE if it is new.")
@click.option("--target-type", metavar="TYPE", help="Type of TARGET if it is new.")
@options.time("--valid-from", is_start=True, help="Since when. [default: now]")
@options.time("--valid-to", is_start=True, help="Up to when.")
@_group
@options.reason
def fact(invocation: Invocation, /, source: str, relation_type: str, target: str, **values: Any) -> None:
    """Add a fact: SOURCE is related to TARGET by TYPE.

    SOURCE and TARGET are names or ids; an unknown name makes an entity. TYPE is DEPENDS_ON, PART_OF, …

    Example: commonplace graph fact auth.ts DEPENDS_ON token.ts --valid-from 2026-01-12
    """
    from commonplace.engine.graph_input import checked_fact, kinds_of_settings

    settings = invocation.settings()
    checked_fact(source, relation_type, target, now(), kinds_of_settings(settings), values)
    with opened(invocation, settings, create=True) as engine:
        added = engine.graph.add_triplet(source, relation_type, target, **values)
    emit(invocation, added, _addition)


@ask(graph, _deletion, "delete-episode")
@click.argument("uuid")
def delete_episode(engine: Engine, /, uuid: str) -> views.Deletion:
    """Delete an episode and what only it supports.

    What other episodes say stays; facts that had ended only because of it hold again.

    Example: commonplace graph delete-episode 0197f3c2-6f5e-7c11-9a52-0d4c7f1b2a33
    """
    return engine.graph.delete_episode(uuid)


@ask(graph, _merging)
@click.argument("keep")
@click.argument("other")
@options.reason
def merge(engine: Engine, /, keep: str, other: str, reason: str) -> views.Merging:
    """Merge entity OTHER into KEEP; `graph split` undoes it.

    Example: commonplace graph merge "Ada Marsh" "A. Marsh" --reason "same person"
    """
    return engine.graph.merge(keep, other, reason=reason)


@ask(graph, _splitting)
@click.argument("entity")
@options.text("--name", "names", metavar="NAME", many=True, help="Split off only this name. [default: all]")
@options.reason
def split(engine: Engine, /, entity: str, names: tuple[str, ...], reason: str) -> views.Splitting:
    """Split ENTITY again, as before it was merged.

    Names that never belonged to another entity make a new one.

    Example: commonplace graph split "Ada Marsh" --name "A. Marsh"
    """
    return engine.graph.split(entity, names=names, reason=reason)


@ask(graph, _settlement)
@click.argument("uuid")
@options.text("--reason", required=True, help="Why it is right; kept in its history.")
def settle(engine: Engine, /, uuid: str, reason: str) -> views.Settlement:
    """Say which of several disputed facts is right.

    Others that began earlier end; the rest is retracted.

    Example: commonplace graph settle 0197f3c2-6f5e-7c11-9a52-0d4c7f1b2a33 --reason "asked her"
    """
    return engine.graph.settle(uuid, reason=reason)


@ask(graph, _entities)
@options.query
@options.limit("num_results", 10)
@_types("entity_types")
@_groups
@_times
@_centre
def entities(engine: Engine, /, query: tuple[str, ...], **values: Any) -> views.FoundEntities:
    """Find entities by their names and facts.

    With --valid-at, by the facts that held then.

    Example: commonplace graph entities token refresh --type Module
    """
    return engine.graph.search_entities(" ".join(query), **values)


@ask(graph, _found_facts)
@options.query
@options.limit("num_results", 10)
@_types("relation_types")
@_groups
@_times
@click.option("--past", "include_past", is_flag=True, help="Also facts that have ended or were retracted.")
@_centre
def facts(engine: Engine, /, query: tuple[str, ...], **values: Any) -> views.FoundRelations:
    """Find facts, best first: those that hold now, or then.

    Example: commonplace graph facts "where does Ada live" --valid-at 2026-02-01
    """
    return engine.graph.search_edges(" ".join(query), **values)


@command(graph)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--query", default="", metavar="WORDS", help="What it is for; ranks what answers it first.")
@options.number("--max-facts", "Maximum number of facts.", 20)
@click.option("--max-tokens", type=int, metavar="N", help="Token budget. [default: 2500]")
@_times
@_centre
def context(invocation: Invocation, /, names: tuple[str, ...], **values: Any) -> None:
    """Print what is known of each NAME, for a model.

    The text is fenced and labelled as data, within a budget of tokens.

    Example: commonplace graph context auth.ts --query "who refreshes tokens"
    """
    with opened(invocation) as engine:
        made = engine.graph.build_context(names, **values)
    notify((*made.notices, *(f"there is no entity {name!r:.80}" for name in made.missing)), invocation)
    if invocation.as_json:
        print_json(made.to_dict())
    elif made.text:
        say(made.text)
    elif not made.missing:
        notify(("nothing is known about it, or the token budget is too small",), invocation)


@command(graph)
@click.argument("name")
@options.as_of
def entity(invocation: Invocation, /, name: str, as_of: str | None) -> None:
    """Show the entity NAME (or its id) and its facts.

    Example: commonplace graph entity "Ada Marsh"
    """
    with opened(invocation) as engine:
        found = engine.graph.entity(name, as_of=as_of)
        about = engine.graph.neighbourhood(found.uuid, 1, as_of=as_of)
    notify(about.notices, invocation)
    own = [each for each in about.relations if found.uuid in (each.source_node_uuid, each.target_node_uuid)]
    emit(invocation, found, lambda entity: _entity(entity, own))


@ask(graph, _path)
@click.argument("source")
@click.argument("target")
@options.number("--max-depth", "Maximum number of facts.", 6)
@_times
def path(engine: Engine, /, source: str, target: str, **values: Any) -> views.GraphPath:
    """Show the shortest path of facts between two entities.

    Example: commonplace graph path auth.ts clock.ts
    """
    return engine.graph.path(source, target, **values)


@ask(graph, _timeline)
@click.argument("name")
@options.limit("limit", 1000)
@options.as_of
def timeline(engine: Engine, /, name: str, **values: Any) -> views.Timeline:
    """Show what began and ended for NAME, oldest first.

    Example: commonplace graph timeline "Ada Marsh"
    """
    return engine.graph.timeline(name, **values)


@command(graph)
@click.argument("uuid")
def history(invocation: Invocation, /, uuid: str) -> None:
    """Show what happened to a fact or entity, and why.

    Example: commonplace graph history 0197f3c2-6f5e-7c11-9a52-0d4c7f1b2a33
    """
    with opened(invocation) as engine:
        found = engine.graph.history(uuid)
        about = (engine.graph.relation if found.kind == "relation" else engine.graph.entity)(found.uuid)
    emit(invocation, found, lambda history: _history(history, about))


@ask(graph, _episodes)
@options.limit()
@_groups
@options.as_of
def episodes(engine: Engine, /, **values: Any) -> list[views.EpisodeView]:
    """List episodes, newest first.

    Example: commonplace graph episodes --limit 5
    """
    return engine.graph.episodes(**values)


@ask(graph, _communities)
@options.limit()
@options.as_of
def communities(engine: Engine, /, **values: Any) -> list[views.Community]:
    """Show groups of closely related entities.

    Example: commonplace graph communities
    """
    return engine.graph.communities(**values)


@ask(graph, _disputes)
def disputes(engine: Engine, /) -> list[views.Dispute]:
    """Show facts that contradict each other.

    Example: commonplace graph disputes
    """
    return engine.graph.disputes()


@ask(graph, _stats)
def status(engine: Engine, /) -> views.GraphStats:
    """Count what the graph holds, by type.

    Example: commonplace graph status
    """
    return engine.graph.stats()


@command(graph)
@click.argument("entity")
@options.number("--depth", "How many facts away, up to 4.", 2)
@options.limit("limit", 40)
@_times
@click.option("--past", "include_past", is_flag=True, help="Also facts that have ended, in grey.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file: .svg, .graphml, .dot, .mmd.")
@click.option("--format", "form", type=click.Choice(DRAWINGS), help="Format, if the file's name does not say it.")
def show(invocation: Invocation, /, entity: str, out: Path | None, form: str | None, **values: Any) -> None:
    """Draw the neighbourhood of ENTITY, with dates.

    Without --out it prints Mermaid.

    Example: commonplace graph show auth.ts --out auth.svg
    """
    with invocation.open() as engine:
        drawn = engine.graph.show(entity, form=form or _form_of(out), **values)
        if out is not None:
            write_whole(out, drawn.drawing, store=engine.directory, remedy="name another --out")
    if out is None and not invocation.as_json:
        say(drawn.drawing.rstrip("\n"))
        return
    value = {
        **drawn.to_dict(),
        "out": None if out is None else str(out),
        "drawing": drawn.drawing if out is None else None,
    }
    counts = _holdings(drawn.entities, drawn.facts)
    capped = "; there is more" if drawn.is_capped else ""
    emit(invocation, value, lambda _: [f"Drew {counts}{capped}: {out}"])


def _form_of(out: Path | None) -> str:
    if out is None:
        return "mermaid"
    ending = out.suffix.lower().removeprefix(".")
    found = _ENDINGS.get(ending, ending)
    if found not in DRAWINGS:
        endings = ", ".join(f".{each}" for each in (*DRAWINGS, *_ENDINGS))
        raise click.UsageError(
            f"{out.name!r} does not say what to draw; end it with one of {endings}, or give --format"
        )
    return found


@command(graph)
@click.argument("file", type=options.ANY_FILE)
@_format
def export(invocation: Invocation, /, file: Path) -> None:
    """Write the graph to FILE for another system.

    A FILE of - is standard output. `commonplace export` writes a whole namespace.

    Example: commonplace graph export graph.json
    """
    is_stream = str(file) == "-"
    with opened(invocation) as engine:
        done = engine.graph.export_graphiti(sys.stdout if is_stream else file)
    if is_stream:
        notify(done.notices, invocation)
    else:
        emit(invocation, done, lambda migration: _migration(migration, "Wrote"))


@command(graph, "import", makes_store=True)
@click.argument("file", type=options.ANY_FILE)
@_format
@options.dry_run
def import_(invocation: Invocation, /, file: Path, dry_run: bool) -> None:
    """Import the graph of another system; ids are kept.

    Existing items stay as they are; if anything is wrong, nothing is written.

    Example: commonplace graph import graph.json --dry-run
    """
    from commonplace.engine.graph_api import document_of

    settings = invocation.settings()
    if not invocation.has_store(settings):
        document_of(file, now())  # before a store is made for it
    with invocation.open(settings, create=not dry_run) as engine:
        done = engine.graph.import_graphiti(file, dry_run=dry_run)
    emit(invocation, done, lambda migration: _migration(migration, "Would import" if dry_run else "Imported"))


@ask(graph, _delivery)
def sync(engine: Engine, /) -> Delivery:
    """Send queued episodes to the external backend.

    With the local backend, which is the default, nothing is queued.

    Example: commonplace graph sync
    """
    return engine.graph.sync()
