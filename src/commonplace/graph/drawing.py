"""Convert the neighbourhood of an entity to a drawing."""

from __future__ import annotations

from datetime import datetime

from commonplace.formats.drawing import Drawing, Edge, Node
from commonplace.graph.views import EntityView, RelationView, Subgraph


def picture(found: Subgraph, *, seen_at: float, as_of: float | None = None) -> Drawing:
    """Return a drawing of what lies about an entity. What was retracted is not true and not drawn.

    Args:
        seen_at: seconds since the epoch; facts that had ended by then are drawn as past.
        as_of: what the drawing says that it is of; None is now.
    """
    facts = [each for each in found.relations if not each.retracted]
    ends = {end for each in facts for end in (each.source_node_uuid, each.target_node_uuid)}
    entities = [each for each in found.entities if each.uuid == found.centre or each.uuid in ends]
    centre = next((each.name for each in entities if each.uuid == found.centre), "")
    return Drawing(
        tuple(_node(each, found.centre) for each in entities),
        tuple(_edge(each, seen_at) for each in facts),
        title=centre,
        as_of=as_of,
        is_capped=found.is_capped,
    )


def _node(entity: EntityView, centre: str) -> Node:
    return Node(
        entity.uuid, entity.name, entity.entity_type, entity.uuid == centre, entity.distance or 0, entity.summary
    )


def _edge(fact: RelationView, seen_at: float) -> Edge:
    end = _seconds(fact.valid_to)
    return Edge(
        fact.source_node_uuid,
        fact.target_node_uuid,
        fact.relation_type,
        fact.fact,
        _seconds(fact.valid_from),
        end,
        is_disputed=fact.disputed,
        is_past=end is not None and end <= seen_at,
    )


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
