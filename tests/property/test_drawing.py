"""Whatever names and facts say, a drawing stays a drawing: its markup is ours, its words are theirs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from commonplace.graph.drawing import draw, plain, shorten
from commonplace.graph.views import EntityView, RelationView, Subgraph

BAD = """< > & " ' ` \\ # % { } [ ] ( ) | ; : - -- --> ]]> <!-- */ \n \r \x00 \x0b \u2028 \u202e \ud800 \ufffe \u200b
<script>alert(1)</script> </title></svg><script> " onload="x javascript:x <![CDATA[ &lt; &#60; #60; \\" \\N end
%%{init:{}}%% ``` :::t0 --- click style 👩‍👧 é ש 語""".split(" ")
TEXTS = st.lists(st.sampled_from(BAD) | st.text(max_size=3), max_size=6).map("".join)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
IDS = st.sampled_from(["a", "b", "c", "d", '"', "<"])
NODES = st.lists(
    st.builds(EntityView, IDS, TEXTS, TEXTS, TEXTS, st.just(NOW), distance=st.none() | st.integers(0, 3)),
    max_size=5,
    unique_by=lambda node: node.uuid,
)
EDGES = st.lists(
    st.builds(RelationView, IDS, IDS, IDS, TEXTS, TEXTS, st.just(NOW), TIMES, TIMES, disputed=st.booleans()), max_size=6
)
GRAPHS = st.builds(Subgraph, IDS, NODES.map(tuple), EDGES.map(tuple), st.booleans())


def sizes(found: Subgraph) -> tuple[int, int]:
    """Return how many entities and facts are drawn: those at the end of a fact and the centre, what is between them."""
    ends = {end for each in found.relations for end in (each.source_node_uuid, each.target_node_uuid)}
    nodes = {each.uuid for each in found.entities if each.uuid in ends | {found.centre}}
    return len(nodes), sum({each.source_node_uuid, each.target_node_uuid} <= nodes for each in found.relations)


SHAPES = {"svg", "title", "style", "defs", "marker", "rect", "g", "path", "text"}
QUOTED = r'"(?:[^"\\]|\\.)*"'
DOT_LINE = re.compile(
    rf"digraph \{{|  (?:graph|node|edge|n\d+|n\d+ -> n\d+) \[(?:[a-z]+=(?:{QUOTED}|[\w.]+)(?:, )?)+\]|\}}"
)
WORDS = r'"(?:[\w .,:/()–…-]|#\d+;)*"'
MERMAID_LINE = re.compile(
    rf"flowchart LR|  n\d+(?:\[{WORDS}\]|\(\[{WORDS}\]\))|  n\d+ (?:-->|-\.->)(?:\|{WORDS}\|)? n\d+"
)


@given(GRAPHS)
def test_an_svg_has_no_markup_but_ours(found: Subgraph) -> None:
    root = ET.fromstring(draw(found, "svg", seen_at=NOW).encode())
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= SHAPES
    assert not any(name.startswith("on") or "href" in name for each in root.iter() for name in each.attrib)
    nodes = [each for each in root.iter() if each.get("class") == "node"]
    edges = [each for each in root.iter() if each.get("class", "").startswith("edge ")]
    assert (len(nodes), len(edges)) == sizes(found)


@given(GRAPHS)
def test_graphml_has_no_markup_but_ours(found: Subgraph) -> None:
    root = ET.fromstring(draw(found, "graphml", seen_at=NOW).encode())
    tags = [each.tag.rpartition("}")[2] for each in root.iter()]
    assert set(tags) <= set("graphml key graph desc node edge data".split())
    assert (tags.count("node"), tags.count("edge")) == sizes(found)


@given(GRAPHS)
def test_every_line_for_graphviz_is_ours_but_for_what_is_quoted(found: Subgraph) -> None:
    lines = draw(found, "dot", seen_at=NOW).split("\n")
    assert lines.pop() == ""
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert len(lines) == 4 + sum(sizes(found))


@given(GRAPHS)
def test_every_line_for_mermaid_is_ours_but_for_letters(found: Subgraph) -> None:
    opening, title, closing, *lines = draw(found, "mermaid", seen_at=NOW).split("\n")
    assert (opening, closing, lines.pop()) == ("---", "---", "")
    assert re.fullmatch(r'title: "(?:[ !#$&-\[\]-~]|\\.)*"', title)
    assert all(MERMAID_LINE.fullmatch(line) for line in lines)


@given(GRAPHS)
def test_a_drawing_can_be_written_to_a_file(found: Subgraph) -> None:
    for form in ("svg", "graphml", "dot", "mermaid"):
        assert "\x00" not in draw(found, form, seen_at=NOW).encode().decode()


@given(TEXTS, st.integers(1, 40))
def test_a_shortened_text_is_shorter_or_the_same(text: str, most: int) -> None:
    short = shorten(plain(text), most)
    assert short == plain(text) or ("…" in short and len(short.strip("…")) <= len(plain(text)))
