"""Write a part of a graph in the languages of Graphviz and of Mermaid, which lay it out themselves.

Names and facts are the words of others. Nodes are called after their place, `n0`, and no word of others stands outside
quotes or can end them; what either language would take for more than a letter is written so that it cannot.
"""

from __future__ import annotations

import json
import re
from typing import Final

from commonplace.formats.drawing import Drawing, Edge, trim
from commonplace.formats.drawing_colours import PALETTE, colours_of
from commonplace.formats.drawing_words import caption, name_of, plain, sentence, shorten, type_of, verb, when

_SIZE, _MOST_NAME, _MOST_VERB = 12.0, 220.0, 160.0
_PAST, _DISPUTED, _INK = "#8a8a94", "#c02626", "#1b1b1f"
_UNSAFE_IN_DOT: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
_SAFE_IN_MERMAID: Final = re.compile(r"[^\w .,:/()–…-]|_(?=_)|:(?=//)|^[-\d]|d(?=irection (?:TB|BT|TD|LR|RL))")
"""What does not stand for itself there: brackets, quotes, backticks, `#`, `%`, what begins a list, and the words
`direction LR`, which Mermaid takes for an order even between quotes."""


def to_dot(drawing: Drawing) -> str:
    """Return a drawing in the language of Graphviz; what is more than a person can read is left out, and that is said.

    Raises:
        UsageError: two nodes have the same id.
    """
    shown = trim(drawing)
    colours = colours_of(map(type_of, shown.nodes))
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
        colour = PALETTE[colours[type_of(node)]]
        tip = " · ".join(filter(None, (names[node.id], type_of(node), plain(node.summary))))
        lines.append(
            f'  n{places[node.id]} [label="{_in_dot(_short(names[node.id]))}", tooltip="{_in_dot(tip)}", '
            f'fillcolor="{colour.fill}", color="{colour.line}"{", penwidth=2.5" if node.is_centre else ""}]'
        )
    for edge in shown.edges:
        label = "\\n".join(map(_in_dot, filter(None, (_verb(edge), when(edge)))))
        tip = sentence(edge, names[edge.source], names[edge.target])
        lines.append(
            f"  n{places[edge.source]} -> n{places[edge.target]} "
            f'[label="{label}", tooltip="{_in_dot(tip)}"{_dot_style(edge)}]'
        )
    return "\n".join([*lines, "}", ""])


def to_mermaid(drawing: Drawing) -> str:
    """Return a drawing in the language of Mermaid; what is more than a person can read is left out, and that is said.

    Raises:
        UsageError: two nodes have the same id.
    """
    shown = trim(drawing)
    colours = colours_of(map(type_of, shown.nodes))
    places = {node.id: place for place, node in enumerate(shown.nodes)}
    title = ": ".join(filter(None, (plain(shown.title), caption(shown))))
    # A quoted string of YAML; a percent sign could begin one of Mermaid's own directives.
    lines = ["---", f"title: {json.dumps(title).replace('%', chr(92) + 'u0025')}", "---", "flowchart LR"]
    for node in shown.nodes:
        name = _in_mermaid(_short(name_of(node)))
        shape = f'(["{name}"])' if node.is_centre else f'["{name}"]'
        lines.append(f"  n{places[node.id]}{shape}:::t{colours[type_of(node)]}")
    for edge in shown.edges:
        label = _in_mermaid(", ".join(filter(None, (_verb(edge), when(edge)))))
        arrow = "-.->" if edge.is_disputed else "-->"
        text = f'|"{label}"|' if label else ""
        lines.append(f"  n{places[edge.source]} {arrow}{text} n{places[edge.target]}")
    for at, edge in enumerate(shown.edges):
        if edge.is_past or edge.is_disputed:
            colour = _PAST if edge.is_past else _DISPUTED
            lines.append(f"  linkStyle {at} stroke:{colour}")
    lines += [
        f"  classDef t{place} fill:{PALETTE[place].fill},stroke:{PALETTE[place].line},color:{_INK}"
        for place in sorted(set(colours.values()))
    ]
    return "\n".join([*lines, ""])


def _short(name: str) -> str:
    return shorten(name, _MOST_NAME, _SIZE)


def _verb(edge: Edge) -> str:
    return shorten(verb(edge), _MOST_VERB, _SIZE)


def _dot_style(edge: Edge) -> str:
    dashed = ", style=dashed" if edge.is_disputed else ""
    colour = _PAST if edge.is_past else _DISPUTED if edge.is_disputed else ""
    return dashed + (f', color="{colour}", fontcolor="{colour}"' if colour else "")


def _in_dot(text: str) -> str:
    """Return a text as it stands between quotes, where a backslash and an ampersand begin something else."""
    return text.translate(_UNSAFE_IN_DOT)


def _in_mermaid(text: str) -> str:
    """Return a text as it stands between quotes: what is no letter there as the number of its character."""
    return _SAFE_IN_MERMAID.sub(lambda match: f"#{ord(match.group())};", text)
