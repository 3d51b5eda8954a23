"""The command group `graph`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import time as now
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click

from commonplace.cli.app import Command, Group, pass_invocation
from commonplace.cli.input import beginning, filled, said, time
from commonplace.cli.main import Invocation
from commonplace.cli.output import (
    INDENT,
    LISTED,
    broken,
    console,
    counted,
    joined,
    notify,
    print_beginning,
    print_head,
    print_json,
    print_more,
    print_under,
    say,
    tally,
    told,
    write_whole,
)
from commonplace.graph.text import when
from commonplace.graph.views import (
    Addition,
    Community,
    Deletion,
    Dispute,
    EntityView,
    EpisodeView,
    FoundEntities,
    FoundRelations,
    GraphPath,
    GraphStats,
    History,
    Merging,
    RelationView,
    Settlement,
    Splitting,
    Timeline,
)
from commonplace.text.escaping import harmless_line
from commonplace.types import ORIGINS

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.engine.graph_api import Graph
    from commonplace.formats.drawing import Drawing
    from commonplace.graph.graphiti.delivery import Delivery
    from commonplace.graph.migration import Migration


_WARNING = "yellow"
_DATE = 10
_BETWEEN = " · "
_FACT_FOUND = "--past also looks at what has ended."


class Answer(Protocol):
    """What a call of the graph returns."""

    def to_dict(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=Answer | Sequence[Answer])


def tell(found: T, show: Callable[[T, Console], None], invocation: Invocation) -> None:
    """Print what a call returned, for a person or a program, with what is to be said of it."""
    notify(getattr(found, "notices", ()), invocation)
    if not invocation.as_json:
        show(found, console())
    elif isinstance(found, list):
        print_json([each.to_dict() for each in found])
    else:
        print_json(cast("Answer", found).to_dict())


def print_addition(added: Addition, target: Console) -> None:
    """Print what came into the graph, what ended and what is disputed because of it."""
    found = tally([(len(added.entities), "entity", "entities"), (len(added.relations), "fact", "")]) or "no fact"
    if added.episode is None:
        target.print(f"Kept: {found}", style="bold")
    else:
        done = {"added": "Kept", "replaced": "Replaced", "unchanged": "Known already"}[added.outcome]
        print_head(f"{done} {harmless_line(added.episode.uuid)}", (found,), target)
    if added.entities:
        print_under(", ".join(f"{each.name} ({each.entity_type})" for each in added.entities), target, "dim")
    print_facts(added.relations, target)
    _print_titled("Ended by it:", added.ended, target)
    disputed = [each for each in added.disputed if each.uuid not in {known.uuid for known in added.relations}]
    _print_titled("Disputed since:", disputed, target, _WARNING)


def print_entities(found: FoundEntities, target: Console) -> None:
    """Print the entities that were found, best first."""
    for rank, entity in enumerate(found, 1):
        known = (f"{entity.score:.2f}", entity.entity_type, _away(entity), entity.uuid)
        print_head(harmless_line(entity.name), known, target, before=f"{rank}. ")
        if entity.summary:
            print_under(entity.summary, target)
    if not found:
        target.print("No entity is about this.", style="bold")


def print_found_facts(found: FoundRelations, target: Console) -> None:
    """Print the facts that were found, best first."""
    for rank, fact in enumerate(found, 1):
        _print_fact(fact, target, before=f"{rank}. ")
    if not found:
        target.print("No fact is about this.", style="bold")
        print_under(_FACT_FOUND, target, "dim")


def print_facts(facts: Sequence[RelationView], target: Console) -> None:
    """Print facts one below the other."""
    for fact in facts:
        _print_fact(fact, target, before=INDENT)


def print_entity(entity: EntityView, facts: Sequence[RelationView], target: Console) -> None:
    """Print an entity with all that is known of it."""
    print_head(harmless_line(entity.name), (entity.entity_type, entity.uuid), target)
    lines = [
        ("also", ", ".join(entity.aliases)),
        ("known since", told(entity.created_at)),
        ("in the world", when(entity) if entity.valid_from or entity.valid_to else ""),
        ("merged into", entity.merged_into),
        ("group", entity.group_id),
        ("trust", f"{entity.trust:.2f}"),
    ]
    for name, value in lines:
        if value:
            print_under(f"{name}: {value}", target, "dim")
    print_facts(facts[:LISTED], target)
    if len(facts) > LISTED:
        print_under(f"… {len(facts) - LISTED:,} more; see `commonplace graph timeline NAME`", target, "dim")
    if not facts:
        print_under("No fact is known of it that still holds.", target)


def print_path(found: GraphPath, target: Console) -> None:
    """Print a way, a fact a line."""
    if not found.entities:
        more = "; a hub has more facts than were followed" if found.is_capped else ""
        target.print(f"No way of facts leads from the one to the other{more}.", style="bold")
        return
    print_head(harmless_line(found.entities[0].name), (), target)
    for place, fact in enumerate(found.relations):
        is_along = fact.source_node_uuid == found.entities[place].uuid
        arrow = f"—{fact.relation_type}→" if is_along else f"←{fact.relation_type}—"
        name = found.entities[place + 1].name
        print_head(f"{arrow} {harmless_line(name)}", (*_state(fact), when(fact), fact.fact), target, before=INDENT)


def print_timeline(found: Timeline, target: Console) -> None:
    """Print what began and ended, a line each."""
    print_head(harmless_line(found.entity.name), (found.entity.entity_type, found.entity.uuid), target)
    for entry in found.entries:
        day = _day(entry.at) or "unknown"
        marks = "".join(f" ({each})" for each in _state(entry.relation))
        print_under(
            f"{day:<{_DATE}}  {entry.what}  {entry.relation.fact}{marks}",
            target,
            "" if entry.what == "began" else "dim",
        )
    if not found.entries:
        print_under("Nothing is known of it.", target)


def print_history(found: History, about: EntityView | RelationView, target: Console) -> None:
    """Print what happened in our knowledge of a fact or an entity, oldest first, below what it says."""
    if isinstance(about, EntityView):
        print_head(harmless_line(about.name), (about.entity_type, about.uuid), target)
    else:
        _print_fact(about, target, before="")
    for entry in found.entries:
        reason = f": {entry.reason}" if entry.reason else ""
        print_under(f"{told(entry.at)}  {entry.what}{reason}", target)
        if entry.episode:
            print_under(f"episode {entry.episode}", target, "dim", level=2)
    if not found.entries:
        print_under("Nothing is recorded.", target)


def print_episodes(found: Sequence[EpisodeView], target: Console) -> None:
    """Print episodes: the id, what is known of each, and the first lines of its text."""
    for each in found:
        known = (told(each.reference_time), each.name, each.source, each.source_description, each.group_id)
        print_head(harmless_line(each.uuid), known, target)
        print_beginning(each.content, target)
    if not found:
        target.print("No episodes. Keep one with `commonplace graph add`.")


def print_communities(found: Sequence[Community], target: Console) -> None:
    """Print communities, the largest first."""
    for each in found:
        size = counted(each.size, "entity", "entities")
        print_head(harmless_line(each.name), (size, counted(each.facts, "fact")), target)
        more = ", …" if each.size > len(each.entities) else ""
        print_under(", ".join(entity.name for entity in each.entities) + more, target)
    if not found:
        target.print("No entities hang together yet.")


def print_disputes(found: Sequence[Dispute], target: Console) -> None:
    """Print what is disputed, and how to settle it."""
    for each in found:
        target.print(f"Disputed since {told(each.since)}:", style=_WARNING)
        print_facts(each.relations, target)
    if found:
        target.print("\nSay which one is right:  commonplace graph settle ID --reason WHY", style="dim")
    else:
        target.print("Nothing is disputed.")


def print_deletion(gone: Deletion, target: Console) -> None:
    """Print what went with an episode."""
    also = tally([(len(gone.entities), "entity", "entities"), (len(gone.relations), "fact", "")])
    target.print(f"Deleted{f', with {also} that only it supported' if also else ''}.", style="bold")
    _print_titled("Holds again:", gone.reopened, target)


def print_merging(merged: Merging, target: Console) -> None:
    """Print which entities are one now."""
    facts = counted(len(merged.relations), "fact")
    kept = merged.entity
    target.print(f"{harmless_line(merged.merged.name)} is {harmless_line(kept.name)} now, with {facts}.")
    print_head(harmless_line(kept.name), (kept.entity_type, kept.uuid), target, before=INDENT)


def print_splitting(parted: Splitting, target: Console) -> None:
    """Print which entities are themselves again."""
    for each in (parted.entity, *parted.parted):
        print_head(harmless_line(each.name), (each.entity_type, each.uuid), target)
    target.print(f"{counted(len(parted.relations), 'fact')} went with them.")


def print_settlement(settled: Settlement, target: Console) -> None:
    """Print what is right, and what became of the others."""
    _print_titled("This holds:", [settled.relation], target)
    _print_titled("This has ended:", settled.ended, target)
    _print_titled("This was never true:", settled.retracted, target)


def print_stats(found: GraphStats, target: Console) -> None:
    """Print how much there is."""
    counts = [
        counted(found.episodes, "episode"),
        counted(found.entities, "entity", "entities"),
        counted(found.relations, "fact"),
    ]
    target.print(f"{joined(counts)}, of which {found.current:,} hold", style="bold")
    if found.disputed:
        facts = counted(found.disputed, "fact")
        target.print(f"{facts} disputed; see `commonplace graph disputes`", style=_WARNING)
    for title, types in (("entities", found.entity_types), ("facts", found.relation_types)):
        if types:
            print_under(f"{title}: {_of_types(types)}", target)


def print_drawn(drawing: Drawing, out: Path, target: Console) -> None:
    """Print what was drawn, and where it is."""
    counts = tally([(len(drawing.nodes), "entity", "entities"), (len(drawing.edges), "fact", "")])
    more = "; there is more" if drawing.is_capped else ""
    target.print(f"Drew {counts}{more}: {harmless_line(str(out))}")


def print_migration(done: Migration, verb: str, target: Console) -> None:
    """Print what went into a file, or came out of one."""
    counts = [(done.episodes, "episode", ""), (done.entities, "entity", "entities"), (done.relations, "fact", "")]
    what = tally(counts) or ("nothing new" if done.known else "an empty graph")
    target.print(f"{verb} {what}: {harmless_line(str(done.path))}", style="bold")
    if done.known:
        print_under(f"{done.known:,} were here already, and stay as they are.", target, "dim")


def print_delivery(delivery: Delivery, target: Console) -> None:
    """Print what an outside backend was told, and what waits."""
    if delivery.backend == "local":
        target.print("The graph is local: nothing waits.")
        return
    target.print(f"Told {delivery.backend} {delivery.delivered:,}; {delivery.waiting:,} wait.", style="bold")
    if delivery.unsure:
        print_under(
            f"{delivery.unsure:,} of these may have arrived; they are looked for before they are sent again.", target
        )
    if delivery.refused:
        print_under(f"{delivery.refused:,} of these it refuses.", target, _WARNING)


def _print_fact(fact: RelationView, target: Console, *, before: str) -> None:
    """Print the sentence of a fact, then what is known of it, with its id last."""
    from rich.text import Text

    indent = INDENT * (2 if before == INDENT else 1)
    colour = "dim" if fact.retracted or fact.expired_at is not None else "cyan"
    first, *others = broken(fact.fact, target.width - len(indent)) or [""]
    target.print(Text.assemble(before, (first, colour)))
    for each in others:
        target.print(Text.assemble(INDENT, (each, colour)))
    score = [(f"{fact.score:.2f}", "dim")] if fact.score else []
    marks = [(each, _WARNING) for each in _state(fact)]
    ends = f"{fact.source_name} {fact.relation_type} {fact.target_name}"
    line = Text(indent)
    for part, style in [*score, *marks, *((each, "dim") for each in (when(fact), ends, fact.uuid))]:
        piece = Text(harmless_line(part), style=style)
        if line.cell_len > len(indent) and line.cell_len + len(_BETWEEN) + piece.cell_len > target.width:
            target.print(line)
            line = Text(indent)
        line.append(_BETWEEN if line.cell_len > len(indent) else "", "dim").append_text(piece)
    target.print(line)


def _print_titled(title: str, facts: Sequence[RelationView], target: Console, style: str = "") -> None:
    if facts:
        target.print(title, style=style)
        print_facts(facts[:LISTED], target)
        print_more(len(facts), target)


def _state(fact: RelationView) -> tuple[str, ...]:
    return tuple(name for name, holds in (("disputed", fact.disputed), ("retracted", fact.retracted)) if holds)


def _away(entity: EntityView) -> str:
    return "" if entity.distance is None else f"{counted(entity.distance, 'fact')} away"


def _day(at: datetime | None) -> str:
    return "" if at is None else at.date().isoformat()


def _of_types(types: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {type_}" for type_, number in types.items())


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
    from commonplace.engine.graph_input import refuse_unfit_episode

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
    from commonplace.engine.graph_input import refuse_unfit_fact

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

    with _changed(invocation) as graph:
        settled = graph.settle(uuid, reason=reason)
    tell(settled, print_settlement, invocation)


@contextmanager
def _changed(invocation: Invocation, *, create: bool = False) -> Iterator[Graph]:
    """Open the graph to change it, and say where a store was made for it."""

    loaded = invocation.settings()
    is_new = not Path(loaded.store.path).exists()
    with invocation.open(loaded, create=create) as engine:
        yield engine.graph
    if is_new:
        notify((f"there was no store here; one was made in {loaded.store.path}",), invocation)


_FORMATS = ("graphiti",)
_FILE = click.Path(path_type=Path, readable=False)
_format = click.option(
    "--format", type=click.Choice(_FORMATS), default=_FORMATS[0], show_default=True, help="Whose form the file has."
)


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@_format
@pass_invocation
def export(invocation: Invocation, /, file: Path, format: str) -> None:  # noqa: A002, ARG001 - there is one so far
    """Write the graph to FILE as another system reads it.

    A FILE of - is standard output. `commonplace export` writes all that a namespace holds, the graph too.
    """

    is_stream = str(file) == "-"
    with invocation.open(invocation.settings()) as engine:
        done = engine.graph.export_graphiti(sys.stdout if is_stream else file)
    if is_stream:
        notify(done.notices, invocation)
    else:
        tell(done, lambda migration, target: print_migration(migration, "Wrote", target), invocation)


@click.command("import", cls=Command, makes_store=True)
@click.argument("file", type=_FILE)
@_format
@click.option("--dry-run", is_flag=True, help="Check everything, and write nothing.")
@pass_invocation
def import_(invocation: Invocation, /, file: Path, format: str, dry_run: bool) -> None:  # noqa: A002, ARG001 - likewise
    """Take in another system's graph, ids kept.

    What is here already stays as it is; nothing is written if anything is wrong.
    """
    from commonplace.engine.graph_api import refuse_unfit_graphiti

    settings = invocation.settings()
    if not invocation.has_store(settings):
        refuse_unfit_graphiti(file, now())
    with invocation.open(settings, create=not dry_run) as engine:
        done = engine.graph.import_graphiti(file, dry_run=dry_run)
    verb = "Would take in" if dry_run else "Took in"
    tell(done, lambda migration, target: print_migration(migration, verb, target), invocation)


@click.command(cls=Command)
@pass_invocation
def sync(invocation: Invocation, /) -> None:
    """Tell the outside backend what waits for it.

    Where the graph is local, which is the default, nothing does.
    """

    with invocation.open(invocation.settings()) as engine:
        told = engine.graph.sync()
    tell(told, print_delivery, invocation)


FORMATS = ("svg", "html", "dot", "mermaid", "png")
_ENDINGS = {"htm": "html", "gv": "dot", "mmd": "mermaid"}
_READABLE = 60


@click.command(cls=Command)
@click.argument("entity")
@click.option("--depth", type=int, default=2, show_default=True, metavar="N", help="How many facts away, up to 4.")
@click.option(
    "-n", "--limit", type=int, default=_READABLE, show_default=True, metavar="N", help="How many entities at most."
)
@click.option("--as-of", metavar="TIME", callback=time, help="What was known then.")
@click.option("--valid-at", metavar="TIME", callback=time, help="What was true in the world then.")
@click.option("--past", "include_past", is_flag=True, help="Also what has ended, in grey.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file: .svg, .html, .dot, .mmd, .png.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="In place of what the file's name says.")
@pass_invocation
def show(invocation: Invocation, /, entity: str, out: Path | None, form: str | None, **options: Any) -> None:
    """Draw what lies about ENTITY, with the time on each fact.

    Without --out, the drawing is printed in the language of Mermaid, which most viewers of Markdown show.
    """

    chosen = form or _form_of(out)
    if chosen == "png" and out is None:
        raise click.UsageError("a PNG picture is not text; name a file with --out")
    with invocation.open(invocation.settings()) as engine:
        drawing = engine.graph.show(entity, **options)
    drawn = _drawn(drawing, chosen)
    if out is not None:
        write_whole(out, drawn, store=engine.directory, remedy="name another --out")
    if invocation.as_json:
        told = {
            "entity": drawing.title,
            "format": chosen,
            "out": None if out is None else str(out),
            "entities": len(drawing.nodes),
            "facts": len(drawing.edges),
            "is_capped": drawing.is_capped,
            "drawing": drawn if out is None else None,
        }
        print_json(told)
    elif out is None:
        say(str(drawn).rstrip("\n"))
    else:
        print_drawn(drawing, out, console())


def _form_of(out: Path | None) -> str:
    if out is None:
        return "mermaid"
    ending = out.suffix.lower().removeprefix(".")
    found = _ENDINGS.get(ending, ending)
    if found not in FORMATS:
        endings = ", ".join(f".{each}" for each in (*FORMATS, *_ENDINGS))
        raise click.UsageError(
            f"{out.name!r} does not say what to draw; end it with one of {endings}, or give --format"
        )
    return found


def _drawn(drawing: Drawing, form: str) -> str | bytes:
    from commonplace.formats.drawing import to_dot, to_html, to_mermaid, to_png, to_svg

    if form == "png":
        return to_png(drawing)
    return {"svg": to_svg, "html": to_html, "dot": to_dot, "mermaid": to_mermaid}[form](drawing)


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

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.timeline(name, **options)
    tell(found, print_timeline, invocation)


@graph.command(cls=Command)
@click.argument("uuid")
@pass_invocation
def history(invocation: Invocation, /, uuid: str) -> None:
    """Show what happened to a fact or an entity, and why."""

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

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.episodes(**options)
    tell(found, print_episodes, invocation)


@graph.command(cls=Command)
@_limit("limit", 20)
@_as_of
@pass_invocation
def communities(invocation: Invocation, /, **options: Any) -> None:
    """Show which entities hang together most closely."""

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.communities(**options)
    tell(found, print_communities, invocation)


@graph.command(cls=Command)
@pass_invocation
def disputes(invocation: Invocation, /) -> None:
    """Show the facts that cannot all be true."""

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.disputes()
    tell(found, print_disputes, invocation)


@graph.command(cls=Command)
@pass_invocation
def status(invocation: Invocation, /) -> None:
    """Count what the graph holds, by type."""

    with invocation.open(invocation.settings()) as engine:
        found = engine.graph.stats()
    tell(found, print_stats, invocation)
