"""Take facts and entities that somebody names out of a graph under change; what others say of the rest stays.

The episodes that speak of them stay too: they say more than that. Facts that had ended, or were disputed, only because
of what goes, hold again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.graph.entities import all_merged, roots
from commonplace.graph.slots import Changed, Slots, facts_of
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground, Texts
    from commonplace.store.graph_contract import GraphChange, GraphReading


def families(graph: GraphReading, entities: Sequence[str]) -> list[str]:
    """Return the ids of entities with all that they were merged with: they are one thing."""
    found = graph.entities(list(dict.fromkeys(roots(graph, entities).values())))
    return [each.id for root in found.values() for each in all_merged(graph, root)]


def facts_about(graph: GraphReading, entities: Sequence[str]) -> list[str]:
    """Return the ids of the facts of which one of these entities is an end, past ones too."""
    found = graph.relations_of(entities, GraphFilter(with_past=True))
    return list(dict.fromkeys(each.id for some in found.values() for each in some))


def remove_facts(graph: GraphChange, ground: Ground, texts: Texts, relations: Sequence[str]) -> None:
    """Delete facts with all that is said of them."""
    slots, gone = Slots(graph, ground, texts), set(relations)
    wanted = [slots.slot_of(each.source, each.type, each.target) for each in graph.relations(relations).values()]
    facts = {each.id: each for slot in dict.fromkeys(wanted) for each in facts_of(graph, slot)}
    left = slots.said_of(each for each in facts.values() if each.id not in gone)
    slots.reckon_again(wanted, left, Changed())


def remove_entities(graph: GraphChange, ground: Ground, texts: Texts, entities: Sequence[str]) -> None:
    """Delete entities, those that were merged with them, and every fact about them."""
    gone = families(graph, entities)
    remove_facts(graph, ground, texts, facts_about(graph, gone))
    graph.erase_entities(gone)
