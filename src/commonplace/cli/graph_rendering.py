"""Print what a graph answers for a person. It decides how things look, never what they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from commonplace.cli.memory_rendering import told
from commonplace.cli.screen import console, counted, notify, print_json
from commonplace.cli.sentences import (
    INDENT,
    LISTED,
    broken,
    joined,
    print_beginning,
    print_head,
    print_more,
    print_under,
    tally,
)
from commonplace.graph.describing import when
from commonplace.graph.views import EntityView
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rich.console import Console

    from commonplace.cli.invocation import Invocation
    from commonplace.formats.drawing import Drawing
    from commonplace.graph.graphiti.delivering import Delivery
    from commonplace.graph.migrating import Migration
    from commonplace.graph.views import (
        Addition,
        Community,
        Deletion,
        Dispute,
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
