"""Drawings of a graph: what they show, what they say of what they leave out, and that words stay words."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from commonplace.graph.drawing import DRAWINGS, draw, plain, shorten, verb
from commonplace.graph.views import EntityView, RelationView, Subgraph

MADE = datetime(2026, 1, 1, tzinfo=UTC)
MAY = datetime(2024, 5, 1, tzinfo=UTC)
OLD = datetime(2019, 1, 1, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
PATH = "src/billing/adapters/for/databases/postgres_writer.py"


def entity(name: str, type_: str = "concept", distance: int = 1, summary: str = "") -> EntityView:
    return EntityView(name, name, type_, summary, MADE, distance=distance)


def fact(source: str, target: str, type_: str = "USES", said: str = "", **more: object) -> RelationView:
    return RelationView(f"{source}{target}{said}", source, target, type_, said, MADE, **more)  # type: ignore[arg-type]


MIRA = Subgraph(
    "Mira Okafor",
    (
        entity("Mira Okafor", "person", 0, "Leads billing."),
        entity("Lagos", "place"),
        entity("Berlin", "place"),
        entity(PATH, "file", 2),
    ),
    (
        fact("Mira Okafor", "Lagos", "LIVES_IN", "Mira lived in Lagos", valid_from=OLD, valid_to=MAY),
        fact("Mira Okafor", "Berlin", "LIVES_IN", "Mira moved to Berlin", valid_from=MAY),
        fact(PATH, "Mira Okafor", "RELATED_TO", disputed=True),
    ),
)


def alone(name: str) -> Subgraph:
    return Subgraph(name, (entity(name, distance=0),), ())


def drawn(found: Subgraph, form: str = "svg", **when: datetime) -> str:
    return draw(found, form, **{"seen_at": MADE, **when})


def svg(found: Subgraph, **when: datetime) -> ET.Element:
    return ET.fromstring(drawn(found, **when))


def texts(root: ET.Element, tag: str = "text") -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(SVG + tag)]


def groups(root: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in root.iter(SVG + "g") if name in each.get("class", "").split()]


def boxes(root: ET.Element) -> dict[str, tuple[float, float, float, float]]:
    """Return left, top, right and bottom of the nodes, by name."""
    found = {}
    for node in groups(root, "node"):
        box, (name, _) = node.find(SVG + "rect"), texts(node)
        assert box is not None
        x, y, across, down = (float(box.get(key, "")) for key in ("x", "y", "width", "height"))
        found[name] = (x, y, x + across, y + down)
    return found


def test_names_types_relations_and_times_are_written() -> None:
    written = texts(svg(MIRA, as_of=MADE))
    assert {"Mira Okafor", "person", "Lagos", "lives in", "from 2019-01-01 to 2024-05-01", "since 2024-05-01"} <= set(
        written
    )
    assert {"related to", "disputed", "…abases/postgres_writer.py"} <= set(written)
    assert "as of 2026-01-01 · 4 entities, 3 facts" in written


def test_a_shortened_name_and_every_fact_are_whole_in_their_titles() -> None:
    titles = texts(svg(MIRA), "title")
    assert {
        "Mira moved to Berlin · since 2024-05-01",
        f"{PATH} related to Mira Okafor · disputed",
        "Mira lived in Lagos · from 2019-01-01 to 2024-05-01",
        "Mira Okafor (person): Leads billing.",
        f"{PATH} (file)",
    } <= set(titles)


def test_past_and_disputed_facts_look_different() -> None:
    edges = groups(svg(MIRA), "edge")
    assert sorted(each.get("class", "") for each in edges) == ["edge disputed", "edge now", "edge past"]
    assert ".disputed path{" in drawn(MIRA) and "stroke-dasharray" in drawn(MIRA)


def test_a_fact_is_past_from_the_moment_at_which_it_ended() -> None:
    """Intervals are half-open: at their end they hold no longer."""
    just_before = MAY.replace(year=2024, month=4, day=30)
    assert len(groups(svg(MIRA, seen_at=just_before), "past")) == 0
    assert len(groups(svg(MIRA, seen_at=MAY), "past")) == 1


def test_what_was_never_true_is_not_drawn_nor_what_only_it_led_to() -> None:
    retracted = replace(MIRA, relations=(replace(MIRA.relations[0], retracted=True), *MIRA.relations[1:]))
    assert "Lagos" not in drawn(retracted)
    assert "Lagos" in drawn(MIRA)


@pytest.mark.parametrize("form", DRAWINGS)
def test_an_entity_without_facts_and_nothing_at_all_are_drawings_too(form: str) -> None:
    assert "alone" in drawn(alone("alone"), form)
    assert "0 entities, 0 facts" in drawn(Subgraph("", (), ()), form)


def test_a_drawing_is_legible_on_dark_ground_and_needs_nothing_from_outside() -> None:
    text = drawn(MIRA)
    assert "@media (prefers-color-scheme:dark)" in text
    assert text.count("http") == 1
    assert not any(outside in text for outside in ("href", "url(http", "@import", "<image", "<script"))


def test_of_more_than_a_person_can_read_the_rest_is_told() -> None:
    nodes = (entity("0", distance=0), *(entity(str(number)) for number in range(1, 60)))
    found = Subgraph("0", nodes, tuple(fact("0", str(number)) for number in range(1, 60)))
    root = svg(found)
    assert len(groups(root, "node")) == 40
    assert "40 entities (20 more not drawn), 39 facts (20 more not drawn)" in texts(root)
    assert "60 entities, 59 facts" in drawn(found, "mermaid")
    assert "there is more" in drawn(replace(found, is_capped=True), "mermaid")


def test_everything_drawn_lies_on_the_page() -> None:
    root = svg(MIRA)
    left, top, wide, high = map(float, root.get("viewBox", "").split())
    for x, y, end, bottom in boxes(root).values():
        assert left <= x < end <= left + wide
        assert top <= y < bottom <= top + high
    for edge in groups(root, "edge"):
        numbers = [float(each) for each in re.findall(r"-?[\d.]+", edge.find(SVG + "path").get("d", ""))]  # type: ignore[union-attr]
        assert all(left <= x <= left + wide for x in numbers[::2])
        assert all(top <= y <= top + high for y in numbers[1::2])


@pytest.mark.parametrize("count", [1, 5, 12, 39])
def test_no_box_covers_another(count: int) -> None:
    nodes = tuple(entity(f"n{at}", distance=0 if at == 0 else 1 + at % 3) for at in range(count + 1))
    placed = boxes(svg(Subgraph("n0", nodes, tuple(fact(f"n{at // 3}", f"n{at}") for at in range(1, count + 1)))))
    assert len(placed) == count + 1
    for one, other in combinations(placed.values(), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_what_is_farther_stands_farther_out_beside_its_neighbour() -> None:
    nodes = (entity("c", distance=0), entity("1"), entity("2"), entity("3", distance=2), entity("4", distance=2))
    placed = boxes(svg(Subgraph("c", nodes, (fact("c", "1"), fact("2", "c"), fact("4", "1"), fact("2", "3")))))
    assert placed["c"][0] < placed["1"][0] == placed["2"][0] < placed["3"][0] == placed["4"][0]
    assert placed["1"][1] < placed["2"][1]
    assert placed["4"][1] < placed["3"][1]


def test_several_facts_about_the_same_two_run_apart_and_a_fact_about_itself_is_drawn() -> None:
    found = Subgraph("a", (entity("a", distance=0), entity("b")), (fact("a", "b"), fact("b", "a"), fact("a", "a")))
    edges = groups(svg(found), "edge")
    assert len({each.find(SVG + "path").get("d") for each in edges}) == 3  # type: ignore[union-attr]


def test_graphml_has_every_entity_and_fact_with_their_words() -> None:
    root = ET.fromstring(drawn(MIRA, "graphml"))
    told = {
        kind: [{each.get("key"): each.text for each in one.iter(GRAPHML + "data")} for one in root.iter(GRAPHML + kind)]
        for kind in ("node", "edge")
    }
    assert told["node"][0] == {"name": "Mira Okafor", "type": "person", "summary": "Leads billing."}
    assert told["edge"][0] == {
        "relation": "lives in",
        "fact": "Mira lived in Lagos",
        "valid_from": "2019-01-01",
        "valid_to": "2024-05-01",
        "state": "past",
    }
    ends = [(each.get("source"), each.get("target")) for each in root.iter(GRAPHML + "edge")]
    assert ends == [("n0", "n1"), ("n0", "n2"), ("n3", "n0")]


def test_a_drawing_for_graphviz() -> None:
    assert drawn(MIRA, "dot").splitlines()[:5] == [
        "digraph {",
        '  graph [label="Mira Okafor\\n4 entities, 3 facts", labelloc=t, rankdir=LR]',
        "  node [shape=box, style=rounded]",
        '  n0 [label="Mira Okafor\\nperson", tooltip="Mira Okafor · Leads billing.", penwidth=2.5]',
        '  n1 [label="Lagos\\nplace", tooltip="Lagos"]',
    ]
    assert drawn(MIRA, "dot").splitlines()[7:9] == [
        '  n0 -> n1 [label="lives in\\nfrom 2019-01-01 to 2024-05-01", tooltip="Mira lived in Lagos", color="#9a9aa4"]',
        '  n0 -> n2 [label="lives in\\nsince 2024-05-01", tooltip="Mira moved to Berlin"]',
    ]


def test_a_drawing_for_mermaid() -> None:
    assert drawn(MIRA, "mermaid") == (
        "---\n"
        'title: "Mira Okafor: 4 entities, 3 facts"\n'
        "---\n"
        "flowchart LR\n"
        '  n0(["Mira Okafor"])\n'
        '  n1["Lagos"]\n'
        '  n2["Berlin"]\n'
        '  n3["…abases/postgres_writer.py"]\n'
        '  n0 -->|"lives in, from 2019-01-01 to 2024-05-01"| n1\n'
        '  n0 -->|"lives in, since 2024-05-01"| n2\n'
        '  n3 -.->|"related to, disputed"| n0\n'
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('say "x"', 'say \\"x\\"'),
        ("ends in \\", "ends in \\\\"),
        ("\\N \\G", "\\\\N \\\\G"),
        ("a &lt; b", "a &amp;lt; b"),
        ("one\ntwo", "one two"),
    ],
)
def test_a_name_cannot_end_its_quotes_in_graphviz(name: str, written: str) -> None:
    assert f'label="{written}\\n' in drawn(alone(name), "dot")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('say "x"', "say #34;x#34;"),
        ("#35;", "#35;35#59;"),
        ("%%{init: {}}%%", "#37;#37;#123;init: #123;#125;#125;#37;#37;"),
        ("`a`", "#96;a#96;"),
        ("<b>", "#60;b#62;"),
        ("1. one", "#49;. one"),
        ("- one", "#45; one"),
        ("__init__", "#95;_init#95;_"),
        ("http://x", "http#58;//x"),
        ("src/a_b-c.py", "src/a_b-c.py"),
        ("über 日本", "über 日本"),
        ("one\ntwo", "one two"),
        ("the direction LR of it", "the #100;irection LR of it"),
        ("a direction", "a direction"),
    ],
)
def test_a_name_is_no_more_than_a_name_in_mermaid(name: str, written: str) -> None:
    assert f'n0(["{written}"])' in drawn(alone(name), "mermaid")


def test_a_title_cannot_give_mermaid_directives() -> None:
    title = drawn(alone('x"\n---\n%%{init: 1}%%'), "mermaid").split("\n")[1]
    assert title == 'title: "x\\" --- \\u0025\\u0025{init: 1}\\u0025\\u0025: 1 entity, 0 facts"'


def test_a_full_drawing_is_one_that_mermaid_takes() -> None:
    """By itself it draws no more than 500 edges and no text of more than 50,000 characters."""
    nodes = tuple(entity(f"src/commonplace/formats/module_{number}.py") for number in range(200))
    edges = tuple(fact(nodes[number % 200].name, nodes[1].name, "OCCURRED_AFTER", str(number)) for number in range(900))
    text = drawn(Subgraph(nodes[0].uuid, nodes, edges), "mermaid")
    assert text.count("-->") == 400
    assert len(text) < 50_000


def test_a_relation_is_said_in_small_letters_and_a_users_own_as_it_is_written() -> None:
    assert verb("DEPENDS_ON") == "depends on"
    assert verb("maintainedBy") == "maintainedBy"
    assert verb("is in\nthe  care of") == "is in the care of"


def test_what_cannot_be_seen_is_shown_as_a_replacement_character() -> None:
    assert plain("  a\x00b\tc\r\nd  ") == "a b c d"
    assert plain("gpj\u202eexe \u200bx\ud800\ufffe") == "gpj\ufffdexe \ufffdx\ufffd\ufffd"
    assert plain("👩\u200d👧") == "👩\u200d👧"


def test_a_long_name_keeps_its_start_and_a_path_its_end() -> None:
    assert shorten("short", 14) == "short"
    assert shorten("Use Postgres over MySQL for billing", 14) == "Use Postgres…"
    assert shorten("src/billing/adapters/postgres_writer.py", 22) == "…rs/postgres_writer.py"
    assert shorten("anything", 1) == "…"
