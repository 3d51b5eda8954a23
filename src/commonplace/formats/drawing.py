"""What a picture of a part of a graph shows: entities as nodes, facts as edges, and how many of them are left out.

How it is drawn is known by `drawing_svg`, `drawing_html`, `drawing_text` and `drawing_png`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from commonplace.errors import UsageError

MOST_NODES: Final = 200
MOST_EDGES: Final = 400
"""What a person can still read; also what Mermaid draws of edges, which is 500."""


@dataclass(frozen=True, slots=True)
class Node:
    """An entity.

    Attributes:
        distance: how many facts lie between it and the nearest centre.
        summary: a sentence about it, or "".
    """

    id: str
    name: str
    type: str = "concept"
    is_centre: bool = False
    distance: int = 1
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact about two entities.

    Attributes:
        source, target: ids of nodes.
        fact: a sentence that says it, or "".
        valid_from, valid_to: seconds since the epoch, half-open; None is unknown or open.
        is_past: it holds no longer, as seen from when the drawing is of.
    """

    source: str
    target: str
    type: str
    fact: str = ""
    valid_from: float | None = None
    valid_to: float | None = None
    is_disputed: bool = False
    is_past: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Entities, and facts that lie between them.

    Attributes:
        as_of: seconds since the epoch, of when it is; None is now.
        more_nodes, more_edges: how many there are beside, which were left out.
        is_capped: there is more, nobody counted how much.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    title: str = ""
    as_of: float | None = None
    more_nodes: int = 0
    more_edges: int = 0
    is_capped: bool = False


def trim(drawing: Drawing, most_nodes: int = MOST_NODES, most_edges: int = MOST_EDGES) -> Drawing:
    """Return a drawing with no more than a person can read, nearest first, and the number of what was left out.

    Facts that still hold are kept before those that do not. Facts between entities that are not drawn are left out.

    Raises:
        UsageError: two nodes have the same id.
    """
    counted = Counter(node.id for node in drawing.nodes).most_common(1)
    if counted and counted[0][1] > 1:
        raise UsageError(
            f"a drawing has {counted[0][1]} nodes with the id {counted[0][0]!r:.60}", remedy="give it once"
        )
    nearest = sorted(drawing.nodes, key=lambda node: (not node.is_centre, node.distance))
    nodes = tuple(nearest[:most_nodes])
    near = {node.id: node.distance for node in nodes}
    inside = [edge for edge in drawing.edges if edge.source in near and edge.target in near]
    inside.sort(key=lambda edge: (edge.is_past, near[edge.source] + near[edge.target]))
    edges = tuple(inside[:most_edges])
    return replace(
        drawing,
        nodes=nodes,
        edges=edges,
        more_nodes=drawing.more_nodes + len(drawing.nodes) - len(nodes),
        more_edges=drawing.more_edges + len(drawing.edges) - len(edges),
    )
