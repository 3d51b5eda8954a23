"""Draw the neighbourhood of an entity as SVG, GraphML, Graphviz DOT or Mermaid.

Names and facts are untrusted and escaped in every format.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.formats.escaping import HIDDEN
from commonplace.graph.text import day, when
from commonplace.graph.views import EntityView, Subgraph

MAX_NODES: Final = 40
"""What a person can still read of an SVG; more is left out, the farthest first, and that is said."""
MAX_EDGES: Final = 400
"""Mermaid draws 500."""
_MAX_NAME, _MAX_VERB, _MAX_TITLE = 26, 20, 70
"""How many characters of a name, a relation and a title are shown; SVG has the whole where one points at it."""
_BOX, _ROW, _COLUMN, _BORDER, _HEAD = (200.0, 34.0), 56.0, 380.0, 60.0, 80.0
_BEND: Final = 60.0
"""How far the second fact about the same two is bent aside."""
_GREY: Final = "#9a9aa4"
_STYLE: Final = Path(__file__).with_name("drawing.css").read_text(encoding="utf-8")
_HEAD_OF_ARROWS: Final = (
    '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="9" refY="4" orient="auto">'
    '<path d="M0 0L9 4L0 8z"/></marker></defs>'
)
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = re.compile(f"[\u200b\u2060-\u2065\ufdd0-\ufdef\ufeff\ufffe\uffff]|{HIDDEN}")
"""Half characters, marks that change the direction of writing, what nobody sees and what no XML may hold."""
_CAPITALS: Final = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)*")
_UNSAFE_IN_DOT: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
_SAFE_IN_MERMAID: Final = re.compile(r"[^\w .,:/()–…-]|_(?=_)|:(?=//)|^[-\d]|d(?=irection (?:TB|BT|TD|LR|RL))")
"""Characters with a meaning of their own there: brackets, quotes, backticks, `#`, `%`, what begins a list, and the
words `direction LR`, which Mermaid takes for an order even between quotes."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """A fact as it is drawn: between the places of two entities, in words."""

    source: int
    target: int
    verb: str
    fact: str
    start: str
    end: str
    when: str
    state: str


@dataclass(frozen=True, slots=True)
class _Picture:
    nodes: Sequence[EntityView]
    names: Sequence[str]
    edges: Sequence[_Edge]
    centre: str
    title: str
    caption: str


def draw(found: Subgraph, form: str, *, seen_at: datetime, as_of: datetime | None = None) -> str:
    """Return a drawing. What was retracted is not true and not drawn.

    Args:
        form: one of `DRAWINGS`.
        seen_at: facts that had ended by then are drawn as past.
        as_of: what the drawing says that it is of; None is now.
    """
    facts = [each for each in found.relations if not each.retracted]
    ends = {end for each in facts for end in (each.source_node_uuid, each.target_node_uuid)}
    nodes = [each for each in found.entities if each.uuid == found.centre or each.uuid in ends]
    shown = nodes[:MAX_NODES] if form == "svg" else nodes
    places = {each.uuid: place for place, each in enumerate(shown)}
    names = [plain(each.name) or plain(each.uuid) for each in shown]
    inside = [each for each in facts if {each.source_node_uuid, each.target_node_uuid} <= places.keys()][:MAX_EDGES]
    edges = []
    for each in inside:
        source, target, said = places[each.source_node_uuid], places[each.target_node_uuid], verb(each.relation_type)
        sentence = plain(each.fact) or f"{names[source]} {said} {names[target]}"
        is_past = each.valid_to is not None and each.valid_to <= seen_at
        state = " ".join(name for name, holds in (("past", is_past), ("disputed", each.disputed)) if holds)
        start, end = day(each.valid_from), day(each.valid_to)
        held = ", ".join(filter(None, (when(each) if start or end else "", "disputed" * each.disputed)))
        edges.append(_Edge(source, target, said, sentence, start, end, held, state or "now"))
    counts = [
        _count(len(shown), len(nodes), "entity", "entities"),
        _count(len(edges), len(facts), "fact", "facts"),
        "there is more" if found.is_capped else "",
    ]
    told = [f"as of {day(as_of)}" if as_of is not None else "", ", ".join(filter(None, counts))]
    title = next((name for name, each in zip(names, shown, strict=True) if each.uuid == found.centre), "")
    return DRAWINGS[form](_Picture(shown, names, edges, found.centre, title, " · ".join(filter(None, told))))


def _svg(shown: _Picture) -> str:
    boxes = _layout(shown)
    drawn: Counter[frozenset[int]] = Counter()
    lines: list[str] = []
    for edge in shown.edges:
        ends = frozenset((edge.source, edge.target))
        lines.append(_svg_edge(edge, boxes[edge.source], boxes[edge.target], drawn[ends]))
        drawn[ends] += 1
    for node, name, (x, y) in zip(shown.nodes, shown.names, boxes, strict=True):
        told = f"{name} ({plain(node.entity_type)})" + (f": {plain(node.summary)}" if node.summary else "")
        lines.append(
            f'<g class="node"><title>{escape(told)}</title><rect class="box{" centre" * (node.uuid == shown.centre)}" '
            f'x="{x - _BOX[0] / 2:.1f}" y="{y - _BOX[1] / 2:.1f}" width="{_BOX[0]:.1f}" height="{_BOX[1]:.1f}" rx="7"/>'
            f"{_words(shorten(name, _MAX_NAME), x, y - 1)}"
            f"{_words(shorten(plain(node.entity_type), _MAX_NAME), x, y + 12, 'small')}</g>"
        )
    bend = _BEND * (max(drawn.values(), default=0) + 1)
    left, top = -_BOX[0] / 2 - _BORDER, min((y for _, y in boxes), default=0.0) - bend - _HEAD
    wide = max((x for x, _ in boxes), default=0.0) - 2 * left + bend
    high = max((y for _, y in boxes), default=0.0) + bend + _BORDER - top
    page = f'x="{left:.0f}" y="{top:.0f}" width="100%" height="100%"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {wide:.0f} {high:.0f}" role="img">',
        f"<title>{escape(shown.title)}</title><style>{_STYLE}</style>",
        _HEAD_OF_ARROWS,
        f'<rect class="ground" {page}/>',
        _words(shorten(shown.title, _MAX_TITLE), left + 20, top + 34, "title"),
        _words(shown.caption, left + 20, top + 56),
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


def _layout(shown: _Picture) -> list[tuple[float, float]]:
    """Return the middles of boxes: a column for each distance, in the order of the neighbours farther in."""
    near: dict[int, list[int]] = defaultdict(list)
    for edge in shown.edges:
        near[edge.source].append(edge.target)
        near[edge.target].append(edge.source)
    columns: dict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(shown.nodes):
        columns[node.distance or 0].append(place)
    boxes: dict[int, tuple[float, float]] = {}
    for column, distance in enumerate(sorted(columns)):
        inner = {
            place: min((boxes[each][1] for each in near[place] if each in boxes), default=0.0)
            for place in columns[distance]
        }
        for row, place in enumerate(sorted(inner, key=inner.__getitem__)):
            boxes[place] = (column * _COLUMN, (row - (len(inner) - 1) / 2) * _ROW)
    return [boxes[place] for place in range(len(boxes))]


def _svg_edge(edge: _Edge, one: tuple[float, float], other: tuple[float, float], number: int) -> str:
    """Return a fact as a line, bent if it is not the first about the same two."""
    side = (other[0] > one[0]) - (other[0] < one[0])
    spread = 6.0 if one == other else 0.0
    x1, x2 = one[0] + (side or 1) * _BOX[0] / 2, other[0] - (side or -1) * _BOX[0] / 2
    y1, y2 = one[1] - spread, other[1] + spread
    # In one column lines run beside the boxes.
    aside = 0.0 if side else _BEND * (number + 1)
    x, y = (x1 + x2) / 2 + aside, (y1 + y2) / 2 + bool(side) * _BEND * ((number + 1) // 2) * (-1) ** number
    words = ((shorten(edge.verb, _MAX_VERB), -3), (edge.when, 10))
    return (
        f'<g class="edge {edge.state}"><title>{escape(" · ".join(filter(None, (edge.fact, edge.when))))}</title>'
        f'<path d="M{x1:.1f} {y1:.1f}Q{x:.1f} {y:.1f} {x2:.1f} {y2:.1f}"/>'
        f"{''.join(_words(text, (x1 + 2 * x + x2) / 4, (y1 + 2 * y + y2) / 4 + down, 'small') for text, down in words)}"
        "</g>"
    )


def _words(text: str, x: float, y: float, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' if text else ""


def _graphml(shown: _Picture) -> str:
    node_keys, edge_keys = ("name", "type", "summary"), ("relation", "fact", "valid_from", "valid_to", "state")
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            f'<key id="{name}" for="{of}" attr.name="{name}" attr.type="string"/>'
            for of, names in (("node", node_keys), ("edge", edge_keys))
            for name in names
        ),
        f'<graph edgedefault="directed"><desc>{escape(shown.caption)}</desc>',
    ]
    for place, (node, name) in enumerate(zip(shown.nodes, shown.names, strict=True)):
        told = _data(node_keys, (name, plain(node.entity_type), plain(node.summary)))
        lines.append(f'<node id="n{place}">{told}</node>')
    for edge in shown.edges:
        told = _data(edge_keys, (edge.verb, edge.fact, edge.start, edge.end, edge.state))
        lines.append(f'<edge source="n{edge.source}" target="n{edge.target}">{told}</edge>')
    return "\n".join([*lines, "</graph>", "</graphml>", ""])


def _data(keys: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(keys, values, strict=True)
    return "".join(f'<data key="{name}">{escape(value)}</data>' for name, value in pairs if value)


def _dot(shown: _Picture) -> str:
    head = "\\n".join(map(_in_dot, filter(None, (shown.title, shown.caption))))
    lines = [
        "digraph {",
        f'  graph [label="{head}", labelloc=t, rankdir=LR]',
        "  node [shape=box, style=rounded]",
    ]
    for place, (node, name) in enumerate(zip(shown.nodes, shown.names, strict=True)):
        label = "\\n".join((_in_dot(shorten(name, _MAX_NAME)), _in_dot(plain(node.entity_type))))
        tip = _in_dot(" · ".join(filter(None, (name, plain(node.summary)))))
        lines.append(f'  n{place} [label="{label}", tooltip="{tip}"{", penwidth=2.5" * (node.uuid == shown.centre)}]')
    for edge in shown.edges:
        label = "\\n".join(map(_in_dot, filter(None, (shorten(edge.verb, _MAX_VERB), edge.when))))
        looks = ", style=dashed" * ("disputed" in edge.state) + f', color="{_GREY}"' * ("past" in edge.state)
        lines.append(f'  n{edge.source} -> n{edge.target} [label="{label}", tooltip="{_in_dot(edge.fact)}"{looks}]')
    return "\n".join([*lines, "}", ""])


def _mermaid(shown: _Picture) -> str:
    title = ": ".join(filter(None, (shown.title, shown.caption)))
    # A quoted string of YAML; a percent sign could begin one of Mermaid's own directives.
    lines = ["---", f"title: {json.dumps(title).replace('%', chr(92) + 'u0025')}", "---", "flowchart LR"]
    for place, (node, name) in enumerate(zip(shown.nodes, shown.names, strict=True)):
        label = f'["{_in_mermaid(shorten(name, _MAX_NAME))}"]'
        lines.append(f"  n{place}({label})" if node.uuid == shown.centre else f"  n{place}{label}")
    for edge in shown.edges:
        label = _in_mermaid(", ".join(filter(None, (shorten(edge.verb, _MAX_VERB), edge.when))))
        arrow, text = "-.->" if "disputed" in edge.state else "-->", f'|"{label}"|' if label else ""
        lines.append(f"  n{edge.source} {arrow}{text} n{edge.target}")
    return "\n".join([*lines, ""])


DRAWINGS: Final[Mapping[str, Callable[[_Picture], str]]] = {
    "svg": _svg,
    "graphml": _graphml,
    "dot": _dot,
    "mermaid": _mermaid,
}


def _in_dot(text: str) -> str:
    """Escape a text for quotes, where a backslash and an ampersand have a meaning."""
    return text.translate(_UNSAFE_IN_DOT)


def _in_mermaid(text: str) -> str:
    """Escape a text for quotes: what has a meaning there becomes the number of its character."""
    return _SAFE_IN_MERMAID.sub(lambda match: f"#{ord(match.group())};", text)


def plain(text: str) -> str:
    """Return a text as one line in which everything can be seen: what cannot is written as a replacement character."""
    return _HIDDEN.sub("\ufffd", _BLANK.sub(" ", text)).strip()


def shorten(text: str, most: int) -> str:
    """Return at most so many characters of a text, with `…` for the rest: of a path its end."""
    if len(text) <= most:
        return text
    is_path = "/" in text and " " not in text
    return f"…{text[len(text) - most + 1 :]}" if is_path else f"{text[: most - 1].rstrip()}…"


def verb(relation_type: str) -> str:
    """Return a relation's type as it is said: `DEPENDS_ON` as "depends on", others as they are written."""
    type_ = plain(relation_type)
    return type_.replace("_", " ").lower() if _CAPITALS.fullmatch(type_) else type_


def _count(shown: int, whole: int, one: str, many: str) -> str:
    left_out = f" ({whole - shown:,} more not drawn)" if shown < whole else ""
    return f"{shown:,} {one if shown == 1 else many}{left_out}"
