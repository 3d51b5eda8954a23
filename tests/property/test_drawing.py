"""Whatever names and facts say, a drawing stays a drawing: its markup is ours, its words are theirs."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from commonplace.formats.drawing import (
    Drawing,
    Edge,
    Node,
    name_of,
    plain,
    shorten,
    to_dot,
    to_graphml,
    to_mermaid,
    to_svg,
    trim,
)

BAD = """< > & " ' ` \\ # % { } [ ] ( ) | ; : - -- --> ]]> <!-- */ \n \r \x00 \x0b \u2028 \u202e \ud800 \ufffe \u200b
<script>alert(1)</script> </title></svg><script> " onload="x javascript:x <![CDATA[ &lt; &#60; #60; \\" \\N end
%%{init:{}}%% ``` :::t0 --- click style 👩‍👧 é ש 語""".split(" ")
TEXTS = st.lists(st.sampled_from(BAD) | st.text(max_size=3), max_size=6).map("".join)
TIMES = st.none() | st.floats()
IDS = st.sampled_from(["a", "b", "c", "d", '"', "<"])
NODES = st.lists(
    st.builds(Node, IDS, TEXTS, TEXTS, st.booleans(), st.integers(-1, 3), TEXTS),
    max_size=5,
    unique_by=lambda node: node.id,
)
EDGES = st.lists(st.builds(Edge, IDS, IDS, TEXTS, TEXTS, TIMES, TIMES, st.booleans(), st.booleans()), max_size=6)
DRAWINGS = st.builds(Drawing, NODES.map(tuple), EDGES.map(tuple), TEXTS, TIMES)

SHAPES = {"svg", "title", "desc", "style", "rect", "g", "path", "polygon", "text"}
QUOTED = r'"(?:[^"\\]|\\.)*"'
DOT_LINE = re.compile(
    rf"digraph \{{|  (?:graph|node|edge|n\d+|n\d+ -> n\d+) \[(?:[a-z]+=(?:{QUOTED}|[\w.]+)(?:, )?)+\]|\}}"
)
WORDS = r'"(?:[\w .,:/()–…-]|#\d+;)*"'
MERMAID_LINE = re.compile(
    rf"flowchart LR|  n\d+(?:\[{WORDS}\]|\(\[{WORDS}\]\)):::t\d|  n\d+ (?:-->|-\.->)(?:\|{WORDS}\|)? n\d+"
    r"|  linkStyle \d+ stroke:#[0-9a-f]{6}|  classDef t\d (?:fill|stroke|color|:|#|,|[0-9a-f])+"
)


@given(DRAWINGS)
def test_an_svg_has_no_markup_but_ours(drawing: Drawing) -> None:
    root = ET.fromstring(to_svg(drawing).encode())
    shown = trim(drawing)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= SHAPES
    assert not any(name.startswith("on") or "href" in name for each in root.iter() for name in each.attrib)
    nodes = [each for each in root.iter() if each.get("class") == "node"]
    assert len(nodes) == len(shown.nodes)
    assert len([each for each in root.iter() if each.get("class", "").startswith("edge ")]) == len(shown.edges)
    for node, group in zip(shown.nodes, nodes, strict=True):
        assert (group[0].text or "").startswith(name_of(node))


@given(DRAWINGS)
def test_graphml_has_no_markup_but_ours(drawing: Drawing) -> None:
    root, shown = ET.fromstring(to_graphml(drawing).encode()), trim(drawing)
    tags = [each.tag.rpartition("}")[2] for each in root.iter()]
    assert set(tags) <= set("graphml key graph desc node edge data".split())
    assert (tags.count("node"), tags.count("edge")) == (len(shown.nodes), len(shown.edges))


@given(DRAWINGS)
def test_every_line_for_graphviz_is_ours_but_for_what_is_quoted(drawing: Drawing) -> None:
    lines = to_dot(drawing).split("\n")
    assert lines.pop() == ""
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert len(lines) == 5 + len(trim(drawing).nodes) + len(trim(drawing).edges)


@given(DRAWINGS)
def test_every_line_for_mermaid_is_ours_but_for_letters(drawing: Drawing) -> None:
    opening, title, closing, *lines = to_mermaid(drawing).split("\n")
    assert (opening, closing, lines.pop()) == ("---", "---", "")
    assert re.fullmatch(r'title: "(?:[ !#$&-\[\]-~]|\\.)*"', title)
    assert all(MERMAID_LINE.fullmatch(line) for line in lines)


@given(DRAWINGS)
def test_a_drawing_can_be_written_to_a_file(drawing: Drawing) -> None:
    for draw in (to_svg, to_graphml, to_dot, to_mermaid):
        assert "\x00" not in draw(drawing).encode().decode()


@given(TEXTS, st.integers(1, 40))
def test_a_shortened_text_is_shorter_or_the_same(text: str, most: int) -> None:
    short = shorten(plain(text), most)
    assert short == plain(text) or ("…" in short and len(short.strip("…")) <= len(plain(text)))
