"""Draw the neighbourhood of an entity as SVG, GraphML, Graphviz DOT or Mermaid.

Names and facts are untrusted and escaped in every format.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.formats.escaping import HIDDEN
from commonplace.graph.text import day, when
from commonplace.graph.views import EntityView, Subgraph

MAX_NODES: Final = 40
"""Maximum number of entities in an SVG; farther ones are left out, and the caption says how many."""
MAX_EDGES: Final = 400
"""Maximum number of facts drawn; Mermaid draws at most 500."""
_MAX_NAME, _MAX_VERB, _MAX_TITLE = 26, 20, 70
"""Maximum length of a name, a relation and a title, in characters; SVG shows the whole text on hover."""
_BOX, _ROW, _COLUMN, _BORDER, _HEAD = (200.0, 34.0), 56.0, 380.0, 60.0, 80.0
_BEND: Final = 60.0
"""Offset of the curve of the second fact between the same two entities."""
_GREY: Final = "#9a9aa4"
_STYLE: Final = Path(__file__).with_name("drawing.css").read_text(encoding="utf-8")
_HEAD_OF_ARROWS: Final = (
    '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="9" refY="4" orient="auto">'
    '<path d="M0 0L9 4L0 8z"/></marker></defs>'
)
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = re.compile(f"[\u200b\u2060-\u2065\ufdd0-\ufdef\ufeff\ufffe\uffff]|{HIDDEN}")
"""Lone surrogates, bidirectional marks, invisible characters, and characters that XML does not allow."""
_CAPITALS: Final = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)*")
_UNSAFE_IN_DOT: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
_SAFE_IN_MERMAID: Final = re.compile(r"[^\w .,:/()–…-]|_(?=_)|:(?=//)|^[-\d]|d(?=irection (?:TB|BT|TD|LR|RL))")
"""Matches what has a meaning in Mermaid: brackets, quotes, backticks, `#`, `%`, list markers, and `direction LR`, which
is a command even between quotes."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """A fact to be drawn; `source` and `target` are indexes of nodes, the rest is text."""

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


def draw(subgraph: Subgraph, form: str, *, seen_at: datetime, as_of: datetime | None = None) -> str:
    """Return a drawing of a neighbourhood, without retracted facts.

    Args:
        form: one of `DRAWINGS`.
        seen_at: facts that ended by then are drawn as past.
        as_of: the date in the caption; None for no date.
    """
    facts = [fact for fact in subgraph.relations if not fact.retracted]
    ends = {end for fact in facts for end in (fact.source_node_uuid, fact.target_node_uuid)}
    nodes = [node for node in subgraph.entities if node.uuid == subgraph.centre or node.uuid in ends]
    shown = nodes[:MAX_NODES] if form == "svg" else nodes
    index = {node.uuid: number for number, node in enumerate(shown)}
    names = [plain(node.name) or plain(node.uuid) for node in shown]
    inside = [fact for fact in facts if {fact.source_node_uuid, fact.target_node_uuid} <= index.keys()][:MAX_EDGES]
    edges = []
    for fact in inside:
        source, target, label = index[fact.source_node_uuid], index[fact.target_node_uuid], verb(fact.relation_type)
        sentence = plain(fact.fact) or f"{names[source]} {label} {names[target]}"
        is_past = fact.valid_to is not None and fact.valid_to <= seen_at
        state = " ".join(name for name, holds in (("past", is_past), ("disputed", fact.disputed)) if holds)
        start, end = day(fact.valid_from), day(fact.valid_to)
        note = ", ".join(filter(None, (when(fact) if start or end else "", "disputed" * fact.disputed)))
        edges.append(_Edge(source, target, label, sentence, start, end, note, state or "now"))
    counts = [_count(len(shown), len(nodes), "entity", "entities"), _count(len(edges), len(facts), "fact", "facts")]
    counts += ["there is more"] * subgraph.is_capped
    notes = [f"as of {day(as_of)}" if as_of is not None else "", ", ".join(counts)]
    title = next((name for name, node in zip(names, shown, strict=True) if node.uuid == subgraph.centre), "")
    return DRAWINGS[form](_Picture(shown, names, edges, subgraph.centre, title, " · ".join(filter(None, notes))))


def _svg(picture: _Picture) -> str:
    boxes = _layout(picture)
    drawn: Counter[frozenset[int]] = Counter()
    lines: list[str] = []
    for edge in picture.edges:
        ends = frozenset((edge.source, edge.target))
        lines.append(_svg_edge(edge, boxes[edge.source], boxes[edge.target], drawn[ends]))
        drawn[ends] += 1
    for node, name, (x, y) in zip(picture.nodes, picture.names, boxes, strict=True):
        tip = f"{name} ({plain(node.entity_type)})" + (f": {plain(node.summary)}" if node.summary else "")
        lines.append(
            f'<g class="node"><title>{escape(tip)}</title><rect class="box{" centre" * (node.uuid == picture.centre)}" '
            f'x="{x - _BOX[0] / 2:.1f}" y="{y - _BOX[1] / 2:.1f}" width="{_BOX[0]:.1f}" height="{_BOX[1]:.1f}" rx="7"/>'
            f"{_words(shorten(name, _MAX_NAME), x, y - 1)}"
            f"{_words(shorten(plain(node.entity_type), _MAX_NAME), x, y + 12, 'small')}</g>"
        )
    bend = _BEND * (max(drawn.values(), default=0) + 1)
    left, top = -_BOX[0] / 2 - _BORDER, min((y for _, y in boxes), default=0.0) - bend - _HEAD
    width = max((x for x, _ in boxes), default=0.0) - 2 * left + bend
    height = max((y for _, y in boxes), default=0.0) + bend + _BORDER - top
    page = f'x="{left:.0f}" y="{top:.0f}" width="100%" height="100%"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(picture.title)}</title><style>{_STYLE}</style>",
        _HEAD_OF_ARROWS,
        f'<rect class="ground" {page}/>',
        _words(shorten(picture.title, _MAX_TITLE), left + 20, top + 34, "title"),
        _words(picture.caption, left + 20, top + 56),
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


def _layout(picture: _Picture) -> list[tuple[float, float]]:
    """Return the centres of boxes: one column per distance, rows ordered by the neighbours nearer the centre."""
    adjacent: dict[int, list[int]] = defaultdict(list)
    for edge in picture.edges:
        adjacent[edge.source].append(edge.target)
        adjacent[edge.target].append(edge.source)
    columns: dict[int, list[int]] = defaultdict(list)
    for index, node in enumerate(picture.nodes):
        columns[node.distance or 0].append(index)
    boxes: dict[int, tuple[float, float]] = {}
    for column, distance in enumerate(sorted(columns)):
        inner = {
            index: min((boxes[other][1] for other in adjacent[index] if other in boxes), default=0.0)
            for index in columns[distance]
        }
        for row, index in enumerate(sorted(inner, key=inner.__getitem__)):
            boxes[index] = (column * _COLUMN, (row - (len(inner) - 1) / 2) * _ROW)
    return [boxes[index] for index in range(len(boxes))]


def _svg_edge(edge: _Edge, start: tuple[float, float], end: tuple[float, float], number: int) -> str:
    """Return a fact as a line, curved if it is not the first between its two entities."""
    side = (end[0] > start[0]) - (end[0] < start[0])
    spread = 6.0 if start == end else 0.0
    x1, x2 = start[0] + (side or 1) * _BOX[0] / 2, end[0] - (side or -1) * _BOX[0] / 2
    y1, y2 = start[1] - spread, end[1] + spread
    # Lines within one column run beside the boxes.
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


def _graphml(picture: _Picture) -> str:
    node_keys, edge_keys = ("name", "type", "summary"), ("relation", "fact", "valid_from", "valid_to", "state")
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            f'<key id="{name}" for="{element}" attr.name="{name}" attr.type="string"/>'
            for element, names in (("node", node_keys), ("edge", edge_keys))
            for name in names
        ),
        f'<graph edgedefault="directed"><desc>{escape(picture.caption)}</desc>',
    ]
    for index, (node, name) in enumerate(zip(picture.nodes, picture.names, strict=True)):
        data = _data(node_keys, (name, plain(node.entity_type), plain(node.summary)))
        lines.append(f'<node id="n{index}">{data}</node>')
    for edge in picture.edges:
        data = _data(edge_keys, (edge.verb, edge.fact, edge.start, edge.end, edge.state))
        lines.append(f'<edge source="n{edge.source}" target="n{edge.target}">{data}</edge>')
    return "\n".join([*lines, "</graph>", "</graphml>", ""])


def _data(keys: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(keys, values, strict=True)
    return "".join(f'<data key="{name}">{escape(value)}</data>' for name, value in pairs if value)


def _dot(picture: _Picture) -> str:
    head = "\\n".join(map(_in_dot, filter(None, (picture.title, picture.caption))))
    lines = [
        "digraph {",
        f'  graph [label="{head}", labelloc=t, rankdir=LR]',
        "  node [shape=box, style=rounded]",
    ]
    for index, (node, name) in enumerate(zip(picture.nodes, picture.names, strict=True)):
        label = "\\n".join((_in_dot(shorten(name, _MAX_NAME)), _in_dot(plain(node.entity_type))))
        tip = _in_dot(" · ".join(filter(None, (name, plain(node.summary)))))
        lines.append(f'  n{index} [label="{label}", tooltip="{tip}"{", penwidth=2.5" * (node.uuid == picture.centre)}]')
    for edge in picture.edges:
        label = "\\n".join(map(_in_dot, filter(None, (shorten(edge.verb, _MAX_VERB), edge.when))))
        style = ", style=dashed" * ("disputed" in edge.state) + f', color="{_GREY}"' * ("past" in edge.state)
        lines.append(f'  n{edge.source} -> n{edge.target} [label="{label}", tooltip="{_in_dot(edge.fact)}"{style}]')
    return "\n".join([*lines, "}", ""])


def _mermaid(picture: _Picture) -> str:
    title = ": ".join(filter(None, (picture.title, picture.caption)))
    # A quoted YAML string; a percent sign could begin a Mermaid directive.
    lines = ["---", f"title: {json.dumps(title).replace('%', chr(92) + 'u0025')}", "---", "flowchart LR"]
    for index, (node, name) in enumerate(zip(picture.nodes, picture.names, strict=True)):
        label = f'["{_in_mermaid(shorten(name, _MAX_NAME))}"]'
        lines.append(f"  n{index}({label})" if node.uuid == picture.centre else f"  n{index}{label}")
    for edge in picture.edges:
        label = _in_mermaid(", ".join(filter(None, (shorten(edge.verb, _MAX_VERB), edge.when))))
        arrow, text = "-.->" if "disputed" in edge.state else "-->", f'|"{label}"|' if label else ""
        lines.append(f"  n{edge.source} {arrow}{text} n{edge.target}")
    return "\n".join([*lines, ""])


DRAWINGS: Final = {"svg": _svg, "graphml": _graphml, "dot": _dot, "mermaid": _mermaid}


def _in_dot(text: str) -> str:
    return text.translate(_UNSAFE_IN_DOT)


def _in_mermaid(text: str) -> str:
    """Escape a text for a quoted string: characters with a meaning become their code points."""
    return _SAFE_IN_MERMAID.sub(lambda match: f"#{ord(match.group())};", text)


def plain(text: str) -> str:
    """Return a text as one line, with replacement characters for invisible ones."""
    return _HIDDEN.sub("\ufffd", _BLANK.sub(" ", text)).strip()


def shorten(text: str, most: int) -> str:
    """Return a text cut to `most` characters, with `…` for the rest; of a path, keep its end."""
    if len(text) <= most:
        return text
    is_path = "/" in text and " " not in text
    return f"…{text[len(text) - most + 1 :]}" if is_path else f"{text[: most - 1].rstrip()}…"


def verb(relation_type: str) -> str:
    """Return a relation type in words: "depends on" for `DEPENDS_ON`; other spellings are unchanged."""
    type_ = plain(relation_type)
    return type_.replace("_", " ").lower() if _CAPITALS.fullmatch(type_) else type_


def _count(shown: int, total: int, singular: str, plural: str) -> str:
    left_out = f" ({total - shown:,} more not drawn)" if shown < total else ""
    return f"{shown:,} {singular if shown == 1 else plural}{left_out}"
