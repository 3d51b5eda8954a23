"""Draw a graph as SVG, GraphML, Graphviz DOT or Mermaid.

Names and facts are untrusted and escaped in every format.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import dist, isfinite
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import moment_of
from commonplace.errors import UsageError
from commonplace.formats.escaping import HIDDEN
from commonplace.types.graph import ENTITY_TYPES

MAX_NODES: Final = 200
MAX_EDGES: Final = 400
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


PALETTE: Final = tuple("#3b7dc4 #7b7b87 #c2602a #38915c #9a4fb0 #1b8b94 #97790f #c24672 #6b63c9 #6f8c20".split())
"""One for each of `ENTITY_TYPES`, in their order, so that a type has the same colour in every drawing; legible on light
and on dark ground."""
_PALE: Final = "22"
_STATES: Final = {"now": "#77777f", "past": "#a9a9b2", "disputed": "#d23b3b"}
_STATE_WORDS: Final = {"disputed": "disputed", "past": "holds no longer"}
_MAX_NAME, _MAX_VERB, _MAX_TITLE = 26, 20, 70
"""How many characters of a name, a relation and a title are shown; SVG has the whole where one points at it."""
_SIZE, _SMALL, _TITLE = 12, 10, 16
_CHARACTER: Final = 0.62
"""The mean width of a character in parts of the font's size, rather too wide."""
_BOX, _ROW, _GAP, _BORDER, _HEAD, _LINE = 26.0, 42.0, 70.0, 24.0, 80.0, 20
_BEND: Final = 80.0
"""How far the second fact about the same two is bent aside."""
_MIN_WIDTH: Final = 400.0
_STYLE: Final = "".join(
    (
        ".ground{fill:#fff}text{fill:#1b1b1f;font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}",
        ".title{font-size:16px;font-weight:600}.soft,.past text{fill:#63636e}.node text,.edge text{text-anchor:middle}",
        ".small{font-size:10px;stroke:#fff;stroke-width:3;stroke-linejoin:round;paint-order:stroke}",
        ".edge path,.legend path{fill:none;stroke-width:1.4}",
        *(f".{state} path{{stroke:{colour}}}.{state} polygon{{fill:{colour}}}" for state, colour in _STATES.items()),
        ".disputed path{stroke-dasharray:6 4}@media (prefers-color-scheme:dark){.ground{fill:#17171b}",
        "text{fill:#f1f1f5}.soft,.past text{fill:#adadb8}.small{stroke:#17171b}}",
    )
)

_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = re.compile(f"[\u200b\u2060-\u2065\ufdd0-\ufdef\ufeff\ufffe\uffff]|{HIDDEN}")
"""Half characters, marks that change the direction of writing, what nobody sees and what no XML may hold."""
_CAPITALS: Final = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)*")
_UNSAFE_IN_DOT: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
_SAFE_IN_MERMAID: Final = re.compile(r"[^\w .,:/()–…-]|_(?=_)|:(?=//)|^[-\d]|d(?=irection (?:TB|BT|TD|LR|RL))")
"""What does not stand for itself there: brackets, quotes, backticks, `#`, `%`, what begins a list, and the words
`direction LR`, which Mermaid takes for an order even between quotes."""


def trim(drawing: Drawing, max_nodes: int = MAX_NODES, max_edges: int = MAX_EDGES) -> Drawing:
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
    nodes = tuple(nearest[:max_nodes])
    near = {node.id: node.distance for node in nodes}
    inside = [edge for edge in drawing.edges if edge.source in near and edge.target in near]
    inside.sort(key=lambda edge: (edge.is_past, near[edge.source] + near[edge.target]))
    edges = tuple(inside[:max_edges])
    return replace(
        drawing,
        nodes=nodes,
        edges=edges,
        more_nodes=drawing.more_nodes + len(drawing.nodes) - len(nodes),
        more_edges=drawing.more_edges + len(drawing.edges) - len(edges),
    )


def to_graphml(drawing: Drawing) -> str:
    """Return a drawing as GraphML, which yEd, Gephi and NetworkX read; it says of each fact what it says and when."""
    shown = trim(drawing)
    names = {node.id: name_of(node) for node in shown.nodes}
    places = {node.id: place for place, node in enumerate(shown.nodes)}
    node_keys = ("name", "type", "summary")
    edge_keys = ("relation", "fact", "valid_from", "valid_to", "state")
    keys = [("node", name) for name in node_keys] + [("edge", name) for name in edge_keys]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(f'<key id="{name}" for="{of}" attr.name="{name}" attr.type="string"/>' for of, name in keys),
        f'<graph edgedefault="directed"><desc>{escape(caption(shown))}</desc>',
    ]
    for node in shown.nodes:
        values = dict(zip(node_keys, (names[node.id], type_of(node), plain(node.summary)), strict=True))
        lines.append(f'<node id="n{places[node.id]}">{_graphml(values)}</node>')
    for edge in shown.edges:
        told = verb(edge), sentence(edge, names[edge.source], names[edge.target])
        values = dict(
            zip(edge_keys, (*told, moment(edge.valid_from), moment(edge.valid_to), _state(edge)), strict=True)
        )
        ends = f'source="n{places[edge.source]}" target="n{places[edge.target]}"'
        lines.append(f"<edge {ends}>{_graphml(values)}</edge>")
    return "\n".join([*lines, "</graph>", "</graphml>", ""])


def _graphml(values: Mapping[str, str]) -> str:
    return "".join(f'<data key="{name}">{escape(value)}</data>' for name, value in values.items() if value)


def to_dot(drawing: Drawing) -> str:
    """Return a drawing in the language of Graphviz; it says what is left out as more than a person can read."""
    shown = trim(drawing)
    colours = _colours(shown.nodes)
    places = {node.id: place for place, node in enumerate(shown.nodes)}
    names = {node.id: name_of(node) for node in shown.nodes}
    head = "\\n".join(map(_in_dot, filter(None, (plain(shown.title), caption(shown)))))
    lines = [
        "digraph {",
        f'  graph [label="{head}", labelloc=t, rankdir=LR, fontname="sans-serif"]',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=12]',
        '  edge [fontname="sans-serif", fontsize=10, color="#55555f"]',
    ]
    for node in shown.nodes:
        colour = colours[type_of(node)]
        tip = " · ".join(filter(None, (names[node.id], type_of(node), plain(node.summary))))
        lines.append(
            f'  n{places[node.id]} [label="{_in_dot(shorten(names[node.id], _MAX_NAME))}", tooltip="{_in_dot(tip)}", '
            f'fillcolor="{colour}{_PALE}", color="{colour}"{", penwidth=2.5" if node.is_centre else ""}]'
        )
    for edge in shown.edges:
        label = "\\n".join(map(_in_dot, filter(None, (shorten(verb(edge), _MAX_VERB), when(edge)))))
        tip = sentence(edge, names[edge.source], names[edge.target])
        dashed, state = ", style=dashed" if edge.is_disputed else "", _STATES[_state(edge)]
        colour = "" if _state(edge) == "now" else f', color="{state}", fontcolor="{state}"'
        lines.append(
            f"  n{places[edge.source]} -> n{places[edge.target]} "
            f'[label="{label}", tooltip="{_in_dot(tip)}"{dashed}{colour}]'
        )
    return "\n".join([*lines, "}", ""])


def to_mermaid(drawing: Drawing) -> str:
    """Return a drawing in the language of Mermaid; it says what is left out as more than a person can read."""
    shown = trim(drawing)
    colours = _colours(shown.nodes)
    places = {node.id: place for place, node in enumerate(shown.nodes)}
    title = ": ".join(filter(None, (plain(shown.title), caption(shown))))
    # A quoted string of YAML; a percent sign could begin one of Mermaid's own directives.
    lines = ["---", f"title: {json.dumps(title).replace('%', chr(92) + 'u0025')}", "---", "flowchart LR"]
    for node in shown.nodes:
        name = _in_mermaid(shorten(name_of(node), _MAX_NAME))
        shape = f'(["{name}"])' if node.is_centre else f'["{name}"]'
        lines.append(f"  n{places[node.id]}{shape}:::t{PALETTE.index(colours[type_of(node)])}")
    for edge in shown.edges:
        label = _in_mermaid(", ".join(filter(None, (shorten(verb(edge), _MAX_VERB), when(edge)))))
        arrow = "-.->" if edge.is_disputed else "-->"
        text = f'|"{label}"|' if label else ""
        lines.append(f"  n{places[edge.source]} {arrow}{text} n{places[edge.target]}")
    for at, edge in enumerate(shown.edges):
        if edge.is_past or edge.is_disputed:
            colour = _STATES[_state(edge)]
            lines.append(f"  linkStyle {at} stroke:{colour}")
    lines += [
        f"  classDef t{PALETTE.index(colour)} fill:{colour}{_PALE},stroke:{colour}"
        for colour in sorted(set(colours.values()), key=PALETTE.index)
    ]
    return "\n".join([*lines, ""])


def _in_dot(text: str) -> str:
    """Return a text as it stands between quotes, where a backslash and an ampersand begin something else."""
    return text.translate(_UNSAFE_IN_DOT)


def _in_mermaid(text: str) -> str:
    """Return a text as it stands between quotes: what is no letter there as the number of its character."""
    return _SAFE_IN_MERMAID.sub(lambda match: f"#{ord(match.group())};", text)


@dataclass(frozen=True, slots=True)
class _Box:
    """The rectangle of a node about its middle."""

    x: float
    y: float
    width: float

    def border(self, side: int) -> float:
        return self.x + side * self.width / 2


def _layout(drawing: Drawing) -> dict[str, _Box]:
    """Place a column for each distance from the centre, its nodes in the order of their neighbours farther in."""
    step = max(map(_node_width, drawing.nodes), default=0.0) + max(map(_label_width, drawing.edges), default=0.0) + _GAP
    columns: dict[int, list[Node]] = defaultdict(list)
    for node in drawing.nodes:
        columns[0 if node.is_centre else max(0, node.distance)].append(node)
    near: dict[str, list[str]] = defaultdict(list)
    for edge in drawing.edges:
        near[edge.source].append(edge.target)
        near[edge.target].append(edge.source)
    boxes: dict[str, _Box] = {}
    for column, distance in enumerate(sorted(columns)):
        inner = {
            node.id: min((boxes[each].y for each in near[node.id] if each in boxes), default=0.0)
            for node in columns[distance]
        }
        nodes = sorted(columns[distance], key=lambda node: inner[node.id])
        for row, node in enumerate(nodes):
            boxes[node.id] = _Box(column * step, (row - (len(nodes) - 1) / 2) * _ROW, _node_width(node))
    return boxes


def to_svg(drawing: Drawing) -> str:
    """Return a drawing as an SVG document; what is more than a person can read is left out, and that is said."""
    shown = trim(drawing)
    boxes, colours = _layout(shown), _colours(shown.nodes)
    names = {node.id: name_of(node) for node in shown.nodes}
    points = [(box.border(side), box.y + side * _BOX / 2) for box in boxes.values() for side in (-1, 1)]
    drawn: Counter[frozenset[str]] = Counter()
    edges = []
    for edge in shown.edges:
        ends = frozenset((edge.source, edge.target))
        title = sentence(edge, names[edge.source], names[edge.target])
        text, bend = _svg_edge(edge, boxes[edge.source], boxes[edge.target], drawn[ends], title)
        edges.append(text)
        points.append(bend)
        drawn[ends] += 1
    title, below, legend = shorten(plain(shown.title), _MAX_TITLE), caption(shown), _legend(colours, shown.edges)
    (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*(points or [(0.0, 0.0)]), strict=True))
    right = max(right, left + max(_text_width(title, _TITLE), _text_width(below, _SIZE), _MIN_WIDTH))
    border = _BORDER + max(map(_label_width, shown.edges), default=0.0) / 2
    wide, high = right - left + 2 * border, bottom - top + _HEAD + _LINE * len(legend) + 2 * _BORDER
    frame = f"{left - border:.0f} {top - _HEAD:.0f} {wide:.0f} {high:.0f}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}" viewBox="{frame}" role="img">',
        f"<title>{escape(plain(shown.title) or 'A part of a graph')}</title>",
        f"<desc>{escape(below)}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" x="{left - border:.0f}" y="{top - _HEAD:.0f}" width="100%" height="100%"/>',
        _words(title, left, top - _HEAD + 34, "title") if title else "",
        _words(below, left, top - _HEAD + 56, "soft"),
        *edges,
        *(_svg_node(node, boxes[node.id], colours[type_of(node)]) for node in shown.nodes),
        f'<g class="legend" transform="translate({left:.1f} {bottom + _BORDER:.1f})">',
        *legend,
        "</g>",
        "</svg>",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _svg_node(node: Node, box: _Box, colour: str) -> str:
    name = name_of(node)
    title = f"{name} ({type_of(node)})" + (f": {plain(node.summary)}" if node.summary else "")
    place = f'x="{box.border(-1):.1f}" y="{box.y - _BOX / 2:.1f}" width="{box.width:.1f}" height="{_BOX:.1f}" rx="7"'
    paint = f'fill="{colour}{_PALE}" stroke="{colour}" stroke-width="{2.4 if node.is_centre else 1.2}"'
    return (
        f'<g class="node"><title>{escape(title)}</title><rect class="ground" {place}/><rect {place} {paint}/>'
        f"{_words(shorten(name, _MAX_NAME), box.x, box.y + 4)}</g>"
    )


def _svg_edge(edge: Edge, one: _Box, other: _Box, number: int, title: str) -> tuple[str, tuple[float, float]]:
    """Return a fact as a line, bent if it is not the first about the same two, and the point that it bends towards."""
    side = (other.x > one.x) - (other.x < one.x)
    spread = 6 if one is other else 0
    x1, y1, x2, y2 = one.border(side or 1), one.y - spread, other.border(-side or 1), other.y + spread
    if side:
        x, y = (x1 + x2) / 2, (y1 + y2) / 2 + _BEND * ((number + 1) // 2) * (-1) ** number
    else:
        x, y = max(x1, x2) + _BEND * (number + 1), (y1 + y2) / 2
    # Words stand near the outer end, where the lines from one box have drawn apart.
    share = 0.5 + 0.1 * side
    parts = (1 - share) ** 2, 2 * share * (1 - share), share**2
    at, down = parts[0] * x1 + parts[1] * x + parts[2] * x2, parts[0] * y1 + parts[1] * y + parts[2] * y2
    words = ((shorten(verb(edge), _MAX_VERB), down - 3), (when(edge), down + 10))
    long = dist((x, y), (x2, y2))
    back, across = 9 * (x2 - x) / long, 4 * (x2 - x) / long
    rise, aside = 9 * (y2 - y) / long, 4 * (y2 - y) / long
    head = f"{x2:.1f},{y2:.1f} {x2 - back + aside:.1f},{y2 - rise - across:.1f} "
    head += f"{x2 - back - aside:.1f},{y2 - rise + across:.1f}"
    told = " · ".join(filter(None, (title, when(edge))))
    return (
        f'<g class="edge {_state(edge)}"><title>{escape(told)}</title>'
        f'<path d="M{x1:.1f} {y1:.1f}Q{x:.1f} {y:.1f} {x2:.1f} {y2:.1f}"/><polygon points="{head}"/>'
        f"{''.join(_words(text, at, line, 'small') for text, line in words if text)}</g>"
    ), (x, y)


def _legend(colours: Mapping[str, str], edges: Sequence[Edge]) -> list[str]:
    """Return a line for each type of entity, and for each kind of edge that is no plain one."""
    marks = [
        (f'<rect y="-10" width="14" height="12" rx="3" fill="{colour}{_PALE}" stroke="{colour}"/>', type_)
        for type_, colour in colours.items()
    ]
    states = {_state(edge) for edge in edges}
    marks += [
        (f'<g class="{state}"><path d="M0 -4H16"/></g>', words)
        for state, words in _STATE_WORDS.items()
        if state in states
    ]
    return [
        f'<g transform="translate(0 {_LINE * number})">{mark}{_words(shorten(words, _MAX_VERB), 22, 0, "soft")}</g>'
        for number, (mark, words) in enumerate(marks, 1)
    ]


def _words(text: str, x: float, y: float, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _colours(nodes: Iterable[Node]) -> dict[str, str]:
    """Return the colour of each type, sorted: users' own types take what the others leave, then share."""
    present = set(map(type_of, nodes))
    known = {type_: PALETTE[place] for place, type_ in enumerate(ENTITY_TYPES) if type_ in present}
    free = [colour for colour in PALETTE if colour not in known.values()] or PALETTE
    own = {type_: free[at % len(free)] for at, type_ in enumerate(sorted(present - known.keys()))}
    return dict(sorted((known | own).items()))


def _state(edge: Edge) -> str:
    return "past" if edge.is_past else "disputed" if edge.is_disputed else "now"


def _node_width(node: Node) -> float:
    return _text_width(shorten(name_of(node), _MAX_NAME), _SIZE) + 20


def _label_width(edge: Edge) -> float:
    return max(_text_width(shorten(verb(edge), _MAX_VERB), _SMALL), _text_width(when(edge), _SMALL))


def _text_width(text: str, size: int) -> float:
    return _width(text) * size * _CHARACTER


def plain(text: str) -> str:
    """Return a text as one line in which everything can be seen: what cannot is written as a replacement character."""
    return _HIDDEN.sub("\ufffd", _BLANK.sub(" ", text)).strip()


def shorten(text: str, most: int) -> str:
    """Return as much of a text as is about so many characters wide, with `…` for the rest: of a path its end."""
    if _width(text) <= most:
        return text
    is_path = "/" in text and " " not in text
    room, kept = most - 1.0, 0
    for character in reversed(text) if is_path else text:
        room -= _width(character)
        if room < 0:
            break
        kept += 1
    if not is_path:
        return text[:kept].rstrip(" \u200c\u200d") + "…"
    end = text[len(text) - kept :]
    return "…" + (end[end.index("/") :] if "/" in end[:-1] else end)


def _width(text: str) -> float:
    """Return about how many characters wide a text is."""
    return sum(
        0.0
        if unicodedata.category(sign) in ("Mn", "Me", "Cf")
        else 1.7
        if unicodedata.east_asian_width(sign) in "WF"
        else 1.0
        for sign in text
    )


def name_of(node: Node) -> str:
    """Return the whole name of an entity, its id where it has none."""
    return plain(node.name) or plain(node.id) or "no name"


def type_of(node: Node) -> str:
    """Return the type of an entity as it is shown."""
    return plain(node.type) or "no type"


def verb(edge: Edge) -> str:
    """Return a relation's type as it is said: `DEPENDS_ON` as "depends on", others as they are written."""
    type_ = plain(edge.type)
    return type_.replace("_", " ").lower() if _CAPITALS.fullmatch(type_) else type_


def sentence(edge: Edge, source: str, target: str) -> str:
    """Return what a fact says: its own words, or those of its type between the two names."""
    return plain(edge.fact) or f"{plain(source)} {verb(edge)} {plain(target)}"


def when(edge: Edge) -> str:
    """Return when a fact holds, and whether it is disputed: "since 2026-03-14", "until 2025-01-01, disputed"."""
    start, end = moment(edge.valid_from), moment(edge.valid_to)
    span = f"{start} – {end}" if start and end else f"since {start}" if start else f"until {end}" if end else ""
    return ", ".join(filter(None, (span, "disputed" if edge.is_disputed else "")))


def moment(at: float | None) -> str:
    """Return the day of a moment; "" for None and for no number.

    Always the day: the first of January may be a year, or just that day, and nobody knows which any more.
    """
    if at is None or not isfinite(at):
        return ""
    return moment_of(at).date().isoformat()


def caption(drawing: Drawing) -> str:
    """Return what has to be said of a drawing as a whole: of when it is, what is in it and what is not."""
    parts = [f"as of {moment(drawing.as_of)}"] if moment(drawing.as_of) else []
    entity, fact = ("entity", "entities"), ("fact", "facts")
    parts.append(f"{_count(len(drawing.nodes), *entity)}, {_count(len(drawing.edges), *fact)}")
    left_out = ((drawing.more_nodes, entity), (drawing.more_edges, fact))
    more = [_count(number, *(f"more {word}" for word in words)) for number, words in left_out if number]
    if more:
        parts.append(f"and {' and '.join(more)}, not drawn")
    elif drawing.is_capped:
        parts.append("and more, not drawn")
    return " · ".join(parts)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
