"""Draw a part of a graph as SVG: boxes about their centre, facts with their times along the edges, a legend.

Names and facts are the words of others: they are written as text alone. The picture needs nothing from outside, is
legible on light and on dark ground, and has the whole of each shortened word as the title of its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from commonplace.formats.drawing import Drawing, Edge, Node, trim
from commonplace.formats.drawing_colours import PALETTE, colours_of
from commonplace.formats.drawing_layout import Box, Item, place
from commonplace.formats.drawing_routes import Route, Spot, routes, spots
from commonplace.formats.drawing_words import (
    caption,
    name_of,
    plain,
    sentence,
    shorten,
    two_lines,
    type_of,
    verb,
    when,
    width,
)

_NAME, _CENTRE, _SMALL, _TITLE = 12.0, 14.0, 10.0, 16.0
"""Sizes of the font."""
_MOST_NAME, _MOST_VERB, _MOST_TITLE = 150.0, 110.0, 620.0
"""How wide a word may be before it is shortened."""
_BORDER: Final = 28.0
_LINE: Final = 12.0
_LEAD: Final = 3.0
"""Between the two lines of a long name."""
_LEAST_WIDTH: Final = 460.0
_SPREADS: Final = (1.0, 1.25, 1.6)
_FEW: Final = 100
"""A drawing of so many facts is spread out no farther than their words need; a larger one as far as may be."""
_FONT: Final = "system-ui,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans','Noto Sans',sans-serif"

_INK, _SOFT, _GROUND = "#1b1b1f", "#63636e", "#ffffff"
_STATES: Final = {"now": "#55555f", "past": "#a9a9b2", "disputed": "#c02626"}
_DARK: Final = (
    ".ground{fill:#17171b}.ink{fill:#f1f1f5}.soft{fill:#adadb8}.halo{stroke:#17171b}"
    ".now .line{stroke:#b6b6c2}.now .head{fill:#b6b6c2}.past .line{stroke:#666672}.past .head{fill:#666672}"
    ".disputed .line{stroke:#ff8078}.disputed .head{fill:#ff8078}"
)


def to_svg(drawing: Drawing) -> str:
    """Return a drawing as an SVG document; what is more than a person can read is left out, and that is said.

    Raises:
        UsageError: two nodes have the same id.
    """
    return svg_of(trim(drawing))


def svg_of(drawing: Drawing) -> str:
    """Return a drawing that was trimmed as an SVG document."""
    colours = colours_of(type_of(node) for node in drawing.nodes)
    boxes, ways, places = _laid_out(drawing)
    names = {node.id: name_of(node) for node in drawing.nodes}
    number = {node.id: place for place, node in enumerate(drawing.nodes)}
    edges = [
        _edge(edge, f'data-edge="{at}" data-ends="{number[edge.source]} {number[edge.target]}"', names, way, spot)
        for at, (edge, way, spot) in enumerate(zip(drawing.edges, ways, places, strict=True))
    ]
    nodes = [_node(node, at, boxes[node.id], colours[type_of(node)]) for at, node in enumerate(drawing.nodes)]
    unwritten = sum(spot is None and bool(_written(edge)[0]) for edge, spot in zip(drawing.edges, places, strict=True))
    return _page(
        drawing, colours, [*edges, *nodes], _bounds(list(boxes.values()), ways, drawing.edges, places), unwritten
    )


def _laid_out(drawing: Drawing) -> tuple[dict[str, Box], list[Route], list[Spot | None]]:
    """Return where all is drawn: as close as possible with all words written, or as many as there is room for."""
    items = [Item(node.id, 0 if node.is_centre else max(0, node.distance), *_size(node)) for node in drawing.nodes]
    sizes = [_written(edge) for edge in drawing.edges]
    ends = [(edge.source, edge.target) for edge in drawing.edges]
    links = [(*pair, size[0]) for pair, size in zip(ends, sizes, strict=True)]
    best, most = None, -1
    for spread in _SPREADS if len(ends) <= _FEW else _SPREADS[-1:]:
        boxes = place(items, links, spread)
        ways = routes(ends, boxes)
        places = spots(ways, sizes, list(boxes.values()))
        written = sum(spot is not None for spot in places)
        if written > most:
            best, most = (boxes, ways, places), written
        if written == sum(size[0] > 0 for size in sizes):
            break
    assert best is not None
    return best


def _page(
    drawing: Drawing,
    colours: dict[str, int],
    body: Sequence[str],
    bounds: tuple[float, float, float, float],
    unwritten: int,
) -> str:
    left, top, right, bottom = bounds
    title, below = plain(drawing.title), caption(drawing)
    if unwritten:
        below += f" · {unwritten:,} {'fact' if unwritten == 1 else 'facts'} without room for words"
    across = max(right - left, _LEAST_WIDTH, min(_MOST_TITLE, width(title, _TITLE)), width(below, _NAME))
    left -= (across - (right - left)) / 2
    head = 2 * _BORDER if title else _BORDER
    legend, legend_height = _legend(colours, drawing.edges, across)
    wide, high = across + 2 * _BORDER, bottom - top + head + legend_height + 3 * _BORDER
    dark = "".join(
        f".t{place} .box{{fill:{PALETTE[place].dark_fill};stroke:{PALETTE[place].dark_line}}}"
        for place in sorted(set(colours.values()))
    )
    size = f'width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{_FONT}">',
        f"<title>{_text(title or 'A part of a graph')}</title>",
        f"<desc>{_text(below)}</desc>",
        f"<style>@media (prefers-color-scheme:dark){{{_DARK}{dark}}}</style>",
        f'<rect class="ground" width="100%" height="100%" fill="{_GROUND}"/>',
    ]
    if title:
        short = _text(shorten(title, across, _TITLE))
        lines.append(_words(short, _BORDER, _BORDER + 8, _TITLE, 'class="ink" font-weight="600"', _INK))
    lines += [
        _words(_text(below), _BORDER, head + 2, _NAME, 'class="soft"', _SOFT),
        f'<g transform="translate({_BORDER - left:.1f} {head + _BORDER - top:.1f})">',
        *body,
        "</g>",
        f'<g class="legend" transform="translate({_BORDER:.0f} {high - legend_height - _BORDER / 2:.1f})">',
        *legend,
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _node(node: Node, at: int, box: Box, colour: int) -> str:
    size = _CENTRE if node.is_centre else _NAME
    name = name_of(node)
    title = f"{name} ({type_of(node)})" + (f": {plain(node.summary)}" if node.summary else "")
    x, y = box.x - box.width / 2, box.y - box.height / 2
    how = 'class="ink" text-anchor="middle"' + (' font-weight="600"' if node.is_centre else "")
    lines = two_lines(name, _MOST_NAME, size)
    top = box.y + size * 0.35 - (len(lines) - 1) * (size + _LEAD) / 2
    return (
        f'<g class="node t{colour}" data-node="{at}"><title>{_text(title)}</title>'
        f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7" '
        f'fill="{PALETTE[colour].fill}" stroke="{PALETTE[colour].line}" '
        f'stroke-width="{2.4 if node.is_centre else 1.2}"/>'
        + "".join(
            _words(_text(line), box.x, top + place * (size + _LEAD), size, how, _INK)
            for place, line in enumerate(lines)
        )
        + "</g>"
    )


def _edge(edge: Edge, data: str, names: dict[str, str], way: Route, spot: Spot | None) -> str:
    state = _state(edge)
    colour = _STATES[state]
    points = [f"{x:.1f} {y:.1f}" for x, y in way.points]
    path = f"M{points[0]}{'C' if len(points) == 4 else 'Q'}{' '.join(points[1:])}"
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in way.arrow())
    dashes = ' stroke-dasharray="6 4"' if edge.is_disputed else ""
    title = " · ".join(filter(None, (sentence(edge, names[edge.source], names[edge.target]), when(edge))))
    words = _written_at(spot, edge) if spot else ""
    return (
        f'<g class="edge {state}" {data}><title>{_text(title)}</title>'
        f'<path class="reach" d="{path}" fill="none" stroke="#000" stroke-opacity="0" stroke-width="12"/>'
        f'<path class="line" d="{path}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}/>'
        f'<polygon class="head" points="{head}" fill="{colour}"/>{words}</g>'
    )


def _written_at(spot: Spot, edge: Edge) -> str:
    """Return the words of an edge: what is said above its line, when it holds below."""
    colour = _SOFT if edge.is_past else _INK
    how = (
        f'class="{"soft" if edge.is_past else "ink"} halo" text-anchor="middle" '
        f'stroke="{_GROUND}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
    )
    time = when(edge)
    above = 3.5 if spot.is_beside and not time else -3.5
    said = _words(_text(_verb(edge)), 0, above, _SMALL, how, colour)
    held = _words(_text(time), 0, _LINE - 1.5, _SMALL, how, colour) if time else ""
    return f'<g transform="translate({spot.x:.1f} {spot.y:.1f}) rotate({spot.angle:.1f})">{said}{held}</g>'


def _legend(colours: dict[str, int], edges: Sequence[Edge], most: float) -> tuple[list[str], float]:
    """Return the legend, and how high it is: each type of entity, and the kinds of lines that are no plain ones."""
    entries: list[tuple[str, str]] = []
    for type_, colour in colours.items():
        box = (
            f'<g class="t{colour}"><rect class="box" y="-10" width="14" height="12" rx="3" '
            f'fill="{PALETTE[colour].fill}" stroke="{PALETTE[colour].line}"/></g>'
        )
        entries.append((box, shorten(type_, _MOST_VERB, _NAME)))
    for state, words, dashes in (("disputed", "disputed", ' stroke-dasharray="6 4"'), ("past", "holds no longer", "")):
        if any(_state(edge) == state for edge in edges):
            line = f'<path class="line" d="M0 -4H16" stroke="{_STATES[state]}" stroke-width="1.6"{dashes}/>'
            entries.append((f'<g class="{state}">{line}</g>', words))
    found: list[str] = []
    x, y = 0.0, _LINE
    for mark, words in entries:
        wide = width(words, _NAME) + 40
        if x and x + wide > most:
            x, y = 0.0, y + 20
        text = _words(_text(words), 20, 0, _NAME, 'class="soft"', _SOFT)
        found.append(f'<g transform="translate({x:.1f} {y:.1f})">{mark}{text}</g>')
        x += wide
    return found, y if entries else 0.0


def _size(node: Node) -> tuple[float, float]:
    size = _CENTRE if node.is_centre else _NAME
    lines = two_lines(name_of(node), _MOST_NAME, size)
    return max(40.0, *(width(line, size) + 22 for line in lines)), len(lines) * (size + _LEAD) + 16 - _LEAD


def _written(edge: Edge) -> tuple[float, float]:
    """Return how wide and high the words of an edge are."""
    return max(width(_verb(edge), _SMALL), width(when(edge), _SMALL)), _LINE * (1 + bool(when(edge)))


def _verb(edge: Edge) -> str:
    return shorten(verb(edge), _MOST_VERB, _SMALL)


def _state(edge: Edge) -> str:
    return "past" if edge.is_past else "disputed" if edge.is_disputed else "now"


def _bounds(
    boxes: Sequence[Box], ways: Sequence[Route], edges: Sequence[Edge], places: Sequence[Spot | None]
) -> tuple[float, float, float, float]:
    """Return the left, top, right and bottom of all that is drawn."""
    points = [way.at(share / 8) for way in ways for share in range(9)]
    written = [Box(spot.x, spot.y, *_written(edge)) for edge, spot in zip(edges, places, strict=True) if spot]
    for box in (*boxes, *written):
        points += [
            (box.x + box.width / 2, box.y + box.height / 2),
            (box.x - box.width / 2, box.y - box.height / 2),
        ]
    across, down = [point[0] for point in points] or [0.0], [point[1] for point in points] or [0.0]
    return min(across), min(down), max(across), max(down)


def _words(text: str, x: float, y: float, size: float, how: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.0f}" fill="{colour}" {how}>{text}</text>'


def _text(words: str) -> str:
    return escape(words)
