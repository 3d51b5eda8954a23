"""Draw a part of a graph as a page for a browser: the picture, and below it every fact in a table; all in one file.

What is pointed at, in the picture or in the table, stands out in both; a click holds it. The page fetches nothing, and
its policy lets no script run but its own, whatever stands in a name.
"""

from __future__ import annotations

from html import escape
from typing import Final

from commonplace.formats.drawing import Drawing, Edge, trim
from commonplace.formats.drawing_svg import svg_of
from commonplace.formats.drawing_words import caption, moment, name_of, plain, sentence, verb

_STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1b1f;--soft:#63636e;--rule:#dcdce2;--lit:#fff3c9}
@media (prefers-color-scheme:dark){:root{--ground:#17171b;--ink:#f1f1f5;--soft:#adadb8;--rule:#3a3a43;--lit:#4a3f12}}
body{margin:0 auto;padding:1rem;max-width:110rem;background:var(--ground);color:var(--ink);
font:15px/1.45 system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
figure{margin:0;overflow:auto}
svg{display:block;max-width:100%;height:auto;margin:0 auto}
svg [data-node],svg [data-edge],tbody tr{cursor:pointer}
.choosing svg .edge:not(.lit){opacity:.12}
.choosing svg .node:not(.lit){opacity:.3}
svg .edge.lit .line{stroke-width:2.6}
table{border-collapse:collapse;width:100%;margin-top:1rem}
th,td{text-align:start;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--rule);
overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}
td.time{white-space:nowrap}
tr.past td{color:var(--soft)}
tr.lit td{background:var(--lit)}
tbody tr:focus-visible{outline:2px solid var(--soft)}
"""

_SCRIPT: Final = """
"use strict";
const page = document.documentElement;
const edges = [...document.querySelectorAll("[data-edge]")];
const nodes = [...document.querySelectorAll("[data-node]")];
let held = null;
const ends = (edge) => edge.dataset.ends.split(" ");
const show = (item) => {
  const lit = new Set();
  const near = new Set(item && item.dataset.node ? [item.dataset.node] : []);
  for (const edge of item ? edges : []) {
    if (item.dataset.node ? ends(edge).includes(item.dataset.node) : edge.dataset.edge === item.dataset.edge) {
      lit.add(edge.dataset.edge);
      ends(edge).forEach((end) => near.add(end));
    }
  }
  page.classList.toggle("choosing", Boolean(item));
  edges.forEach((edge) => edge.classList.toggle("lit", lit.has(edge.dataset.edge)));
  nodes.forEach((node) => node.classList.toggle("lit", near.has(node.dataset.node)));
};
for (const item of [...edges, ...nodes]) {
  const hold = () => { held = held === item ? null : item; show(held); };
  item.addEventListener("pointerenter", () => show(item));
  item.addEventListener("pointerleave", () => show(held));
  item.addEventListener("focus", () => show(item));
  item.addEventListener("blur", () => show(held));
  item.addEventListener("click", hold);
  item.addEventListener("keydown", (event) => { if (event.key === "Enter") hold(); });
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") { held = null; show(null); } });
"""

_HEADS: Final = ("Fact", "From", "Relation", "To", "Since", "Until", "State")


def to_html(drawing: Drawing) -> str:
    """Return a drawing as an HTML page; what is more than a person can read is left out, and that is said.

    Raises:
        UsageError: two nodes have the same id.
    """
    shown = trim(drawing)
    title = _text(plain(shown.title) or "A part of a graph")
    names = {node.id: name_of(node) for node in shown.nodes}
    number = {node.id: place for place, node in enumerate(shown.nodes)}
    rows = [
        _row(edge, f'data-edge="{at}" data-ends="{number[edge.source]} {number[edge.target]}"', names)
        for at, edge in enumerate(shown.edges)
    ]
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    table = f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n</table>\n" if rows else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<figure aria-label="{_text(caption(shown))}">\n{svg_of(shown)}</figure>\n'
        f"{table}<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _policy() -> str:
    from base64 import b64encode
    from hashlib import sha256

    digest = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _row(edge: Edge, data: str, names: dict[str, str]) -> str:
    source, target = names[edge.source], names[edge.target]
    state = "disputed" if edge.is_disputed else "holds no longer" if edge.is_past else ""
    words = (sentence(edge, source, target), source, verb(edge), target)
    times = (moment(edge.valid_from), moment(edge.valid_to))
    cells = "".join(f'<td dir="auto">{_text(each)}</td>' for each in words)
    cells += "".join(f'<td class="time">{_text(each)}</td>' for each in times)
    past = ' class="past"' if edge.is_past else ""
    return f'<tr{past} tabindex="0" {data}>{cells}<td>{state}</td></tr>\n'


def _text(words: str) -> str:
    return escape(words)
