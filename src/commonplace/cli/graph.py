"""The command group `graph`: store facts with their times, query what was true at a time, and draw it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options, rows
from commonplace.cli.app import Group, ask, command, opened
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import notify, say, write_whole
from commonplace.graph.text import overtaken, replaced, when

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.graph import views

DRAWINGS: Final = ("svg", "graphml", "dot", "mermaid")
_FORMS: Final = {**dict(zip(DRAWINGS, DRAWINGS, strict=True)), "gv": "dot", "mmd": "mermaid"}
"""Formats of drawings by file extension."""
_WARNING: Final = "yellow"


def _fact(fact: views.RelationView) -> rows.Rows:
    yield rows.Line(fact.fact, "dim" if fact.retracted or fact.expired_at is not None else "cyan")
    score = f"{fact.score:.2f}" if fact.score else ""
    ends = f"{fact.source_name} {fact.relation_type} {fact.target_name}"
    marks = [(mark, _WARNING) for mark in _state(fact)]
    yield rows.Row(properties=[score, *marks, when(fact), overtaken(fact), replaced(fact), ends, fact.uuid], level=1)


def _state(fact: views.RelationView) -> list[str]:
    is_to_come = fact.valid_from is not None and fact.valid_from > datetime.now(UTC)
    return ["not yet"] * is_to_come + ["disputed"] * fact.disputed + ["retracted"] * fact.retracted


def _titled(facts: Iterable[views.RelationView], title: str, style: str = "") -> rows.Rows:
    return rows.listed(facts, _fact, title, style, level=1, limit=rows.MAX_LISTED)


def _name_of(entity: views.EntityView) -> rows.Row:
    return rows.Row(entity.name, (entity.entity_type, entity.uuid))


def _addition(added: views.Addition) -> rows.Rows:
    summary = rows.holdings(added) or "no fact"
    if added.episode is None:
        yield rows.Line(f"Added: {summary}", "bold")
    else:
        verb = {"added": "Added", "replaced": "Replaced", "unchanged": "Already known"}[added.outcome]
        yield rows.Row(f"{verb} {added.episode.uuid}", (summary,))
    if added.entities:
        yield rows.Line(", ".join(f"{entity.name} ({entity.entity_type})" for entity in added.entities), "dim", 1)
    yield from rows.listed(added.relations, _fact, level=1)
    yield from _titled(added.ended, "Ended by it:")
    disputed = [fact for fact in added.disputed if fact.uuid not in {relation.uuid for relation in added.relations}]
    yield from _titled(disputed, "Disputed since:", _WARNING)


# The options have the parameter names of the library.
_groups = options.text("--group", "group_ids", metavar="NAME", many=True, help="Only of this group.")
_group = click.option("--group", "group_id", default="", metavar="NAME", help="A label within the namespace.")
_centre = options.text("--centre", "center_node_uuid", metavar="ENTITY", help="Rank what is near to it first.")
_times = options.group(options.as_of, options.valid_at)
_entity_types = options.text("--type", "entity_types", metavar="TYPE", many=True, help="Only of this type.")
_relation_types = options.text("--type", "relation_types", metavar="TYPE", many=True, help="Only of this type.")
_past = click.option("--past", "include_past", is_flag=True, help="Also facts that have ended or were retracted.")
_search_options = options.group(options.query, options.limit("num_results", 10))
_file = click.argument("file", type=options.ANY_FILE)
_name, _uuid, _entity_argument = map(click.argument, ("name", "uuid", "entity"))
_ends = options.group(click.argument("source"), click.argument("target"))


@click.group(cls=Group)
def graph() -> None:
    """Keep facts with their times, and ask what was true when.

    Example: commonplace graph facts "where does Ada live" --valid-at 2026-02-01
    """


@command(graph, options.text_file, _group, options.origin)
@click.argument("text", nargs=-1, metavar="[TEXT|-]...")
@options.time("--at", "reference_time", is_start=True, help="When it was said or happened.")
@click.option("--name", default="", metavar="TEXT", help="A name for the episode.")
@click.option("--source", type=click.Choice(["text", "message", "json"]), default="text", help="Kind of text.")
@click.option("--source-description", default="", metavar="TEXT", help="What it comes from.")
@click.option("--speaker", default="", metavar="NAME", help="Who says it: who 'I' is.")
@click.option("--uuid", metavar="ID", callback=options.non_empty, help="Your own id; replaces an episode that has it.")
def add(invocation: Invocation, /, text: tuple[str, ...], file: Path | None, **values: Any) -> None:
    """Add TEXT as an episode, with the facts it states.

    An episode is a text with the time when it was said. A dash, or no text, reads standard input. Entities and facts
    are found without a model. A newer fact ends an older one if that is clear; otherwise both are disputed.

    Example: commonplace graph add "auth.ts depends on token.ts" --at 2026-01-12
    """
    loaded = invocation.settings()
    content = options.read_text(text, file, loaded.memory.max_bytes)  # before the store is opened: somebody may type
    if content is None:
        raise click.UsageError("there is no episode to keep; give a text, a --file, or a pipe")
    fields = {name: value for name, value in values.items() if value is not None}
    with opened(invocation, loaded, create=True) as engine:
        added = engine.graph.add_episode(content, **fields)
    rows.emit(invocation, added, _addition(added))


@ask(graph, _group, options.reason, creates=True)
@click.argument("source")
@click.argument("relation_type", metavar="TYPE")
@click.argument("target")
@click.option("--fact", metavar="SENTENCE", help="The fact in words. [default: made of the names]")
@click.option("--source-type", metavar="TYPE", help="Type of SOURCE if it is new.")
@click.option("--target-type", metavar="TYPE", help="Type of TARGET if it is new.")
@options.time("--valid-from", is_start=True, help="Since when. [default: now]")
@options.time("--valid-to", is_start=True, help="Up to when.")
def fact(engine: Engine, /, source: str, relation_type: str, target: str, **values: Any) -> rows.Answer:
    """Add a fact: SOURCE is related to TARGET by TYPE.

    SOURCE and TARGET are names or ids; an unknown name makes an entity. TYPE is DEPENDS_ON, PART_OF, …

    Example: commonplace graph fact auth.ts DEPENDS_ON token.ts --valid-from 2026-01-12
    """
    added = engine.graph.add_triplet(source, relation_type, target, **values)
    return added, _addition(added)


@ask(graph, _uuid)
def delete_episode(engine: Engine, /, uuid: str) -> rows.Answer:
    """Delete an episode and what only it supports.

    What other episodes say stays; facts that had ended only because of it hold again.

    Example: commonplace graph delete-episode 0197f3c2-6f5e-7c11-9a52-0d4c7f1b2a33
    """
    deletion = engine.graph.delete_episode(engine.graph.resolve_id(uuid))
    contents = rows.holdings(deletion)
    head = rows.Line(f"Deleted{f', with {contents} that only it supported' if contents else ''}.", "bold")
    return deletion, [head, *_titled(deletion.reopened, "True again:")]


@ask(graph, click.argument("keep"), click.argument("other"), options.reason)
def merge(engine: Engine, /, keep: str, other: str, reason: str) -> rows.Answer:
    """Merge entity OTHER into KEEP; `graph split` undoes it.

    Example: commonplace graph merge "Ada Marsh" "A. Marsh" --reason "same person"
    """
    result = engine.graph.merge(keep, other, reason=reason)
    facts = rows.counted(len(result.relations), "fact")
    return result, [
        f"{result.merged.name} is {result.entity.name} now, with {facts}.",
        *rows.listed([result.entity], _name_of, level=1),
    ]


@ask(graph, _entity_argument, options.reason)
@options.text("--name", "names", metavar="NAME", many=True, help="Split off only this name. [default: all]")
def split(engine: Engine, /, entity: str, names: tuple[str, ...], reason: str) -> rows.Answer:
    """Undo a merge: split ENTITY into what it was before.

    Names that never belonged to another entity make a new one.

    Example: commonplace graph split "Ada Marsh" --name "A. Marsh"
    """
    result = engine.graph.split(entity, names=names, reason=reason)
    note = f"{rows.counted(len(result.relations), 'fact')} went with them."
    return result, [*map(_name_of, (result.entity, *result.parted)), note]


@ask(graph, _uuid, options.text("--reason", required=True, help="Why it is right; kept in its history."))
def settle(engine: Engine, /, uuid: str, reason: str) -> rows.Answer:
    """Say which of several disputed facts is right.

    Others that began earlier end; the rest is retracted.

    Example: commonplace graph settle 0197f3c2-6f5e-7c11-9a52-0d4c7f1b2a33 --reason "asked her"
    """
    result = engine.graph.settle(engine.graph.resolve_id(uuid), reason=reason)
    return result, [
        *_titled([result.relation], "This holds:"),
        *_titled(result.ended, "This has ended:"),
        *_titled(result.retracted, "This was never true:"),
    ]


@ask(graph, _search_options, _entity_types, _groups, _times, _centre)
def entities(engine: Engine, /, query: tuple[str, ...], **values: Any) -> rows.Answer:
    """Find entities by their names and facts.

    With --valid-at, by the facts that held then.

    Example: commonplace graph entities token refresh --type Module
    """
    result = engine.graph.search_entities(" ".join(query), **values)

    def row(entity: views.EntityView) -> rows.Rows:
        away = f"{rows.counted(entity.distance, 'fact')} away" if entity.distance else ""
        yield rows.Row(entity.name, (f"{entity.score:.2f}", entity.entity_type, away, entity.uuid))
        yield rows.Line(entity.summary, "", 1)

    return result, rows.listed(result, row, "", "bold", none="No entity is about this.", is_numbered=True)


@ask(graph, _search_options, _relation_types, _groups, _times, _past, _centre)
def facts(engine: Engine, /, query: tuple[str, ...], **values: Any) -> rows.Answer:
    """Find facts that hold now, or at --valid-at, best first.

    Without --valid-at also those that begin later, which are marked "not yet".

    Example: commonplace graph facts "where does Ada live" --valid-at 2026-02-01
    """
    result = engine.graph.search_edges(" ".join(query), **values)
    lines = [*rows.listed(result, _fact, is_numbered=True)]
    if not result:
        lines.append(rows.Line("No fact is about this.", "bold"))
        lines.append(rows.Line("--past also looks at what has ended, --valid-at TIME at what held then.", "dim", 1))
    elif not values["include_past"] and any(overtaken(fact_) for fact_ in result):
        lines.append(rows.Line("--valid-at TIME finds what held then, --past what has ended.", "dim"))
    return result, lines


@command(graph, _times, _centre)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--query", default="", metavar="WORDS", help="A question; facts that answer it come first.")
@options.number("--max-facts", "Maximum number of facts.", 20)
@click.option("--max-tokens", type=int, metavar="N", help="Token budget. [default: 2500]")
def context(invocation: Invocation, /, names: tuple[str, ...], **values: Any) -> None:
    """Print what is known of each NAME, for a model.

    The text is fenced and labelled as data, within a budget of tokens.

    Example: commonplace graph context auth.ts --query "who refreshes tokens"
    """
    with opened(invocation) as engine:
        result = engine.graph.build_context(names, **values)
    notify((f"there is no entity {name!r:.80}" for name in result.missing), invocation)
    fallback = () if result.missing else ("nothing is known about it, or the token budget is too small",)
    rows.emit_text(invocation, result, result.text, *fallback)


@ask(graph, _name, options.as_of)
def entity(engine: Engine, /, name: str, as_of: str | None) -> rows.Answer:
    """Show the entity NAME (or its id) and its facts.

    Example: commonplace graph entity "Ada Marsh"
    """
    view = engine.graph.entity(name, as_of=as_of)
    nearby = engine.graph.neighbourhood(view.uuid, 1, as_of=as_of)
    edges = [edge for edge in nearby.relations if view.uuid in (edge.source_node_uuid, edge.target_node_uuid)]

    def details_rows() -> rows.Rows:
        yield _name_of(view)
        details = {
            "also": ", ".join(view.aliases),
            "known since": rows.local_time(view.created_at),
            "in the world": when(view) if view.valid_from or view.valid_to else "",
            "merged into": view.merged_into,
            "group": view.group_id,
            "trust": f"{view.trust:.2f}",
        }
        yield from (rows.Line(f"{name}: {value}", "dim", 1) for name, value in details.items() if value)
        yield from rows.listed(edges[: rows.MAX_LISTED], _fact, level=1, none="No current fact is known about it.")
        if len(edges) > rows.MAX_LISTED:
            yield rows.Line(f"… {len(edges) - rows.MAX_LISTED:,} more; see `commonplace graph timeline NAME`", "dim", 1)
        yield from map(rows.note, nearby.notices)

    return view, details_rows()


@ask(graph, _ends, options.number("--max-depth", "Maximum number of facts.", 6), _times)
def path(engine: Engine, /, source: str, target: str, **values: Any) -> rows.Answer:
    """Show the shortest path of facts between two entities.

    Example: commonplace graph path auth.ts clock.ts
    """
    result = engine.graph.path(source, target, **values)
    if not result.entities:
        hint = "The search stopped at a hub; raise --max-depth or name a closer entity." if result.is_capped else ""
        return result, [rows.Line("No path between these entities.", "bold"), rows.Line(hint, "dim")]
    steps = [rows.Row(result.entities[0].name)]
    for position, relation in enumerate(result.relations):
        is_along = relation.source_node_uuid == result.entities[position].uuid
        arrow = f"—{relation.relation_type}→" if is_along else f"←{relation.relation_type}—"
        name = result.entities[position + 1].name
        steps.append(rows.Row(f"{arrow} {name}", (*_state(relation), when(relation), relation.fact), level=1))
    return result, steps


@ask(graph, _name, options.limit("limit", 1000), options.as_of)
def timeline(engine: Engine, /, name: str, **values: Any) -> rows.Answer:
    """Show what began and ended for NAME, oldest first.

    Example: commonplace graph timeline "Ada Marsh"
    """
    result = engine.graph.timeline(name, **values)

    def row(entry: views.TimelineEntry) -> rows.Line:
        day = "unknown" if entry.at is None else entry.at.date().isoformat()
        marks = "".join(f" ({mark})" for mark in _state(entry.relation))
        style = "" if entry.what == "began" else "dim"
        return rows.Line(f"{day:<10}  {entry.what}  {entry.relation.fact}{marks}", style, 1)

    return result, [_name_of(result.entity), *rows.listed(result.entries, row, none="   Nothing is known about it.")]


@ask(graph, _uuid)
def history(engine: Engine, /, uuid: str) -> rows.Answer:
    """Show what happened to a fact or entity, and why.

    Example: commonplace graph history 0197f3c2-6f5e-7c11-9a52-0d4c7f1b2a33
    """
    result = engine.graph.history(engine.graph.resolve_id(uuid))
    is_fact = result.kind == "relation"
    subject = _fact(engine.graph.relation(result.uuid)) if is_fact else [_name_of(engine.graph.entity(result.uuid))]

    def row(entry: views.HistoryEntry) -> rows.Rows:
        reason = f": {entry.reason}" if entry.reason else ""
        yield rows.Line(f"{rows.local_time(entry.at)}  {entry.what}{reason}", "", 1)
        yield rows.Line(f"episode {entry.episode}" if entry.episode else "", "dim", 2)

    return result, [*subject, *rows.listed(result.entries, row, none="   Nothing is recorded.")]


@ask(graph, options.limit(), _groups, options.as_of)
def episodes(engine: Engine, /, **values: Any) -> rows.Answer:
    """List episodes, newest first.

    Example: commonplace graph episodes --limit 5
    """
    result = engine.graph.episodes(**values)

    def row(view: views.EpisodeView) -> rows.Row:
        details = (rows.local_time(view.reference_time), view.name, view.source, view.source_description, view.group_id)
        return rows.Row(view.uuid, details, view.content)

    return result, rows.listed(result, row, none="No episodes. Keep one with `commonplace graph add`.")


@ask(graph, options.limit(), options.as_of)
def communities(engine: Engine, /, **values: Any) -> rows.Answer:
    """Show groups of closely related entities.

    Example: commonplace graph communities
    """
    result = engine.graph.communities(**values)

    def row(view: views.Community) -> rows.Rows:
        yield rows.Row(view.name, (rows.counted(view.size, "entity", "entities"), rows.counted(view.facts, "fact")))
        ellipsis = ", …" if view.size > len(view.entities) else ""
        yield rows.Line(", ".join(entity.name for entity in view.entities) + ellipsis, "", 1)

    return result, rows.listed(result, row, none="No related entities yet.")


@command(graph, _entity_argument, _times)
@options.number("--depth", "Maximum distance in facts, up to 4.", 2)
@options.limit("limit", 40)
@click.option("--past", "include_past", is_flag=True, help="Also facts that have ended, in grey.")
@click.option("--out", type=options.FILE, help="The file: .svg, .graphml, .dot, .mmd.")
@click.option("--format", "form", type=click.Choice(DRAWINGS), help="Format, if the file's name does not say it.")
def show(invocation: Invocation, /, entity: str, out: Path | None, form: str | None, **values: Any) -> None:
    """Draw the neighbourhood of ENTITY, with dates.

    Without --out it prints Mermaid.

    Example: commonplace graph show auth.ts --out auth.svg
    """
    format_ = form or _FORMS.get("mermaid" if out is None else out.suffix.lower().removeprefix("."))
    if format_ is None:
        endings = ", ".join(f".{suffix}" for suffix in _FORMS)
        raise click.UsageError(f"{out} does not say what to draw; end it with one of {endings}, or give --format")
    with invocation.open() as engine:
        result = engine.graph.show(entity, form=format_, **values)
        if out is not None:
            write_whole(out, result.drawing, "name another --out", engine.directory)
    if out is None and not invocation.as_json:
        say(result.drawing.rstrip("\n"))
        return
    target = {"out": None, "drawing": result.drawing} if out is None else {"out": str(out), "drawing": None}
    summary = rows.holdings({"entities": result.entities, "relations": result.facts})
    capped = "; there is more" if result.is_capped else ""
    rows.emit(invocation, {**result.to_dict(), **target}, f"Drew {summary}{capped}: {out}")


@command(graph, _file)
def export(invocation: Invocation, /, file: Path) -> None:
    """Write the graph to FILE for another system.

    A FILE of - is standard output. `commonplace export` writes a whole namespace.

    Example: commonplace graph export graph.json
    """
    is_stream = str(file) == "-"
    with opened(invocation) as engine:
        dump = engine.graph.export_graphiti(sys.stdout if is_stream else file)
    if not is_stream:
        rows.emit(invocation, dump, rows.Line(f"Wrote {rows.holdings(dump) or 'an empty graph'}: {dump.path}", "bold"))


@command(graph, _file, options.dry_run, name="import", makes_store=True)
def import_(invocation: Invocation, /, file: Path, dry_run: bool) -> None:
    """Import the graph of another system; ids are kept.

    Existing items stay as they are; if anything is wrong, nothing is written.

    Example: commonplace graph import graph.json --dry-run
    """
    with opened(invocation, create=not dry_run) as engine:
        report = engine.graph.import_graphiti(file, dry_run=dry_run)
    summary = rows.holdings(report) or ("nothing new" if report.known else "an empty graph")
    head = rows.Line(f"{'Would import' if report.is_dry_run else 'Imported'} {summary}: {report.path}", "bold")
    unchanged = rows.Line(f"{report.known:,} were already here and are unchanged." if report.known else "", "dim", 1)
    rows.emit(invocation, report, [head, unchanged])


@ask(graph)
def sync(engine: Engine, /) -> rows.Answer:
    """Send queued episodes to Graphiti.

    With the local backend, which is the default, nothing is queued.

    Example: commonplace graph sync
    """
    report = engine.graph.sync()
    if report.backend == "local":
        return report, "The graph is local: nothing is queued."
    sent = rows.counted(report.delivered, "episode")
    unconfirmed = f"{report.unsure:,} of these may have arrived; they are checked before being resent."
    return report, [
        rows.Line(f"Sent {sent} to {report.backend.capitalize()}; {report.waiting:,} queued.", "bold"),
        rows.Line(unconfirmed if report.unsure else "", "", 1),
        rows.Line(f"{report.refused:,} of these were refused." if report.refused else "", _WARNING, 1),
    ]
