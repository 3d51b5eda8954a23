"""Pictures of a graph: what they show, what they say of what they leave out, and that words stay words."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from commonplace.errors import UsageError
from commonplace.formats.drawing import Drawing, Edge, Node, to_graphml, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def since(year: int, month: int = 1) -> float:
    return datetime(year, month, 1, tzinfo=UTC).timestamp()


MIRA = Drawing(
    (
        Node("m", "Mira Okafor", "person", is_centre=True, distance=0, summary="Leads billing."),
        Node("l", "Lagos", "place"),
        Node("b", "Berlin", "place"),
        Node("f", "src/billing/adapters/for/databases/postgres_writer.py", "file", distance=2),
    ),
    (
        Edge("m", "l", "LIVES_IN", "Mira lived in Lagos", since(2019), since(2024, 5), is_past=True),
        Edge("m", "b", "LIVES_IN", "Mira moved to Berlin", since(2024, 5)),
        Edge("f", "m", "RELATED_TO", is_disputed=True),
    ),
    "Mira Okafor",
    since(2026, 6),
)


def drawn(drawing: Drawing) -> ET.Element:
    return ET.fromstring(to_svg(drawing))


def texts(root: ET.Element, tag: str = "text") -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(SVG + tag)]


def groups(root: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in root.iter(SVG + "g") if name in each.get("class", "").split()]


def test_names_relations_and_times_are_written() -> None:
    written = texts(drawn(MIRA))
    assert {"Mira Okafor", "Lagos", "Berlin", "lives in", "2019-01-01 – 2024-05-01", "since 2024-05-01"} <= set(written)
    assert {"related to", "disputed"} <= set(written)
    assert "as of 2026-06-01 · 4 entities, 3 facts" in written


def test_a_shortened_name_and_every_fact_are_whole_in_their_titles() -> None:
    root = drawn(MIRA)
    written = texts(root)
    assert "…/postgres_writer.py" in written
    assert texts(root, "title") == [
        "Mira Okafor",
        "Mira moved to Berlin · since 2024-05-01",
        "src/billing/adapters/for/databases/postgres_writer.py related to Mira Okafor · disputed",
        "Mira lived in Lagos · 2019-01-01 – 2024-05-01",
        "Mira Okafor (person): Leads billing.",
        "Lagos (place)",
        "Berlin (place)",
        "src/billing/adapters/for/databases/postgres_writer.py (file)",
    ]


def test_past_and_disputed_facts_look_different_and_the_legend_says_how() -> None:
    root = drawn(MIRA)
    edges = groups(root, "edge")
    assert sorted(each.get("class", "") for each in edges) == ["edge disputed", "edge now", "edge past"]
    (legend,) = groups(root, "legend")
    assert [len(groups(legend, state)) for state in ("past", "disputed")] == [1, 1]
    assert ".disputed path{stroke-dasharray:" in to_svg(MIRA)
    assert texts(legend) == ["file", "person", "place", "disputed", "holds no longer"]


def test_the_legend_names_only_what_is_drawn() -> None:
    (legend,) = groups(drawn(Drawing((Node("a", "a", "tool"),))), "legend")
    assert texts(legend) == ["tool"]


def test_nothing_and_one_alone_are_drawings_too() -> None:
    assert texts(drawn(Drawing(()))) == ["0 entities, 0 facts"]
    assert texts(drawn(Drawing((Node("a", "alone"),), title="T"))) == ["T", "1 entity, 0 facts", "alone", "concept"]


def test_a_drawing_is_legible_on_dark_ground_and_needs_nothing_from_outside() -> None:
    svg = to_svg(MIRA)
    assert "@media (prefers-color-scheme:dark)" in svg
    assert svg.count("http") == 1
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert not any(outside in svg for outside in ("href", "url(", "@import", "<image", "<script"))


def test_of_more_than_a_person_can_read_the_rest_is_told() -> None:
    nodes = tuple(Node(str(number), f"n{number}", is_centre=number == 0) for number in range(238))
    edges = tuple(Edge("0", str(number), "USES") for number in range(1, 238))
    root = drawn(Drawing(nodes, edges))
    assert len(groups(root, "node")) == 200
    assert any("and 38 more entities and 38 more facts, not drawn" in words for words in texts(root))


def test_the_same_drawing_gives_the_same_bytes() -> None:
    assert to_svg(MIRA) == to_svg(MIRA)
    assert to_graphml(MIRA) == to_graphml(MIRA)


def test_everything_drawn_lies_on_the_page() -> None:
    root = drawn(MIRA)
    left, top, wide, high = map(float, root.get("viewBox", "").split())
    for x, y, end, bottom in boxes(root).values():
        assert left <= x < end <= left + wide
        assert top <= y < bottom <= top + high
    for path in root.iter(SVG + "path"):
        numbers = [float(each) for each in re.findall(r"-?[\d.]+", path.get("d", ""))]
        assert all(left <= x <= left + wide for x in numbers[::2])
        assert all(top <= y <= top + high for y in numbers[1::2])


def test_two_nodes_with_one_id_are_refused() -> None:
    for draw in (to_svg, to_graphml):
        with pytest.raises(UsageError, match="2 nodes with the id 'a'"):
            draw(Drawing((Node("a", "one"), Node("a", "two"))))


def boxes(root: ET.Element) -> dict[str, tuple[float, float, float, float]]:
    """Return left, top, right and bottom of the nodes, by name."""
    found = {}
    for node in groups(root, "node"):
        box, (name,) = node.find(SVG + "rect"), texts(node)
        assert box is not None
        x, y, across, down = (float(box.get(key, "")) for key in ("x", "y", "width", "height"))
        found[name] = (x, y, x + across, y + down)
    return found


@pytest.mark.parametrize("count", [1, 5, 12, 40, 199])
def test_no_box_covers_another(count: int) -> None:
    nodes = tuple(Node(str(at), f"n{at}", is_centre=at == 0, distance=1 + at % 3) for at in range(count + 1))
    edges = tuple(Edge(str(at // 3), str(at), "USES") for at in range(1, count + 1))
    placed = boxes(drawn(Drawing(nodes, edges)))
    assert len(placed) == min(200, count + 1)
    for one, other in combinations(placed.values(), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_what_is_farther_stands_farther_out_beside_its_neighbour() -> None:
    nodes = (Node("c", "c", is_centre=True), *(Node(each, each) for each in "12"), Node("3", "3", distance=2))
    nodes += (Node("4", "4", distance=2),)
    edges = (Edge("c", "1", "A"), Edge("2", "c", "B"), Edge("4", "1", "C"), Edge("2", "3", "C"))
    placed = boxes(drawn(Drawing(nodes, edges)))
    assert placed["c"][0] < placed["1"][0] == placed["2"][0] < placed["3"][0] == placed["4"][0]
    assert placed["1"][1] < placed["2"][1]
    assert placed["4"][1] < placed["3"][1]


def test_several_facts_about_the_same_two_run_apart_and_a_fact_about_itself_is_drawn() -> None:
    edges = (Edge("a", "b", "USES"), Edge("b", "a", "KNOWS"), Edge("a", "a", "LIKES"))
    root = drawn(Drawing((Node("a", "a", is_centre=True), Node("b", "b")), edges))
    assert len({path.get("d") for path in root.iter(SVG + "path")}) == 3
    assert {"uses", "knows", "likes"} <= set(texts(root))


def test_graphml_has_every_entity_and_fact_with_their_words() -> None:
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ET.fromstring(to_graphml(MIRA))
    declared = {each.get("id"): each.get("for") for each in root.iter(space + "key")}
    told = {
        kind: [{each.get("key"): each.text for each in one.iter(space + "data")} for one in root.iter(space + kind)]
        for kind in ("node", "edge")
    }
    assert told["node"][0] == {"name": "Mira Okafor", "type": "person", "summary": "Leads billing."}
    assert told["edge"][2] == {
        "relation": "lives in",
        "fact": "Mira lived in Lagos",
        "valid_from": "2019-01-01",
        "valid_to": "2024-05-01",
        "state": "past",
    }
    for kind, rows in told.items():
        assert {declared[key] for row in rows for key in row} == {kind}
    nodes = [each.get("id") for each in root.iter(space + "node")]
    assert [
        (nodes.index(each.get("source")), nodes.index(each.get("target"))) for each in root.iter(space + "edge")
    ] == [
        (0, 2),
        (3, 0),
        (0, 1),
    ]
