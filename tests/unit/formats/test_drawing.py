"""What a drawing says: names that fit, times as people write them, and how much was skipped."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import inf, nan

import pytest

from commonplace.errors import UsageError
from commonplace.formats.drawing import (
    PALETTE,
    Drawing,
    Edge,
    Node,
    caption,
    moment,
    name_of,
    plain,
    sentence,
    shorten,
    to_dot,
    to_mermaid,
    trim,
    verb,
    when,
)
from commonplace.types.graph import ENTITY_TYPES


def at(year: int, month: int = 1, day: int = 1, hour: int = 0) -> float:
    return datetime(year, month, day, hour, tzinfo=UTC).timestamp()


def fact(start: float | None = None, end: float | None = None, *, is_disputed: bool = False) -> Edge:
    return Edge("a", "b", "USES", valid_from=start, valid_to=end, is_disputed=is_disputed)


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        (fact(), ""),
        (fact(at(2026, 3)), "since 2026-03-01"),
        (fact(at(2024), at(2026)), "2024-01-01 – 2026-01-01"),
        (fact(None, at(2025)), "until 2025-01-01"),
        (fact(at(2026, 3, 14), at(2026, 4)), "2026-03-14 – 2026-04-01"),
        (fact(is_disputed=True), "disputed"),
        (fact(at(2026, 3), is_disputed=True), "since 2026-03-01, disputed"),
    ],
)
def test_a_fact_says_when_it_holds(edge: Edge, words: str) -> None:
    assert when(edge) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (at(2026), "2026-01-01"),
        (at(2026, 3), "2026-03-01"),
        (at(2026, 3, 14), "2026-03-14"),
        (at(2026, 1, 1, 9), "2026-01-01"),
        (0.0, "1970-01-01"),
        (at(476, 9, 4), "0476-09-04"),
        (-1e300, "0001-01-01"),
        (1e300, "9999-12-31"),
        (inf, ""),
        (-inf, ""),
        (nan, ""),
        (None, ""),
    ],
)
def test_a_moment_is_said_as_its_day(seconds: float | None, words: str) -> None:
    assert moment(seconds) == words


def test_a_relation_is_said_in_small_letters_and_a_users_own_as_it_is_written() -> None:
    assert verb(Edge("a", "b", "DEPENDS_ON")) == "depends on"
    assert verb(Edge("a", "b", "maintainedBy")) == "maintainedBy"
    assert verb(Edge("a", "b", "is in\nthe  care of")) == "is in the care of"


def test_a_fact_without_a_sentence_is_said_by_its_relation() -> None:
    assert sentence(Edge("a", "b", "USES", "auth.ts uses\ntoken.ts"), "auth.ts", "token.ts") == "auth.ts uses token.ts"
    assert sentence(Edge("a", "b", "PART_OF"), "auth.ts", "api") == "auth.ts part of api"


def test_what_cannot_be_seen_is_shown_as_a_replacement_character() -> None:
    assert plain("  a\x00b\tc\r\nd  ") == "a b c d"
    assert plain("gpj\u202eexe \u200bx\ud800\ufffe") == "gpj\ufffdexe \ufffdx\ufffd\ufffd"
    assert plain("👩\u200d👧") == "👩\u200d👧"


def test_an_entity_without_a_name_is_called_by_its_id() -> None:
    assert name_of(Node("e1", "Ada")) == "Ada"
    assert name_of(Node("e1", " \n")) == "e1"
    assert name_of(Node("", "")) == "no name"


def test_a_long_name_keeps_its_start_and_a_path_its_end() -> None:
    assert shorten("short", 14) == "short"
    assert shorten("Use Postgres over MySQL for billing", 14) == "Use Postgres…"
    assert shorten("src/billing/adapters/postgres_writer.py", 22) == "…/postgres_writer.py"
    assert shorten("src/" + "x" * 40, 13) == "…" + "x" * 12
    assert shorten("anything", 1) == "…"
    assert shorten("語" * 20, 18) == "語" * 10 + "…"


def test_a_name_is_cut_with_the_marks_of_its_letters() -> None:
    for room in range(2, 20):
        cut = shorten("e\u0301" * 30, room)
        assert cut.count("e") == cut.count("\u0301") == room - 1


NODES = (Node("far", "far", distance=2), Node("near", "near"), Node("c", "c", is_centre=True, distance=0))


def test_what_is_more_than_a_person_can_read_is_left_out_the_farthest_first() -> None:
    edges = (Edge("c", "far", "A"), Edge("c", "near", "B", is_past=True), Edge("near", "c", "C"))
    trimmed = trim(Drawing(NODES, edges), max_nodes=2, max_edges=1)
    assert [node.id for node in trimmed.nodes] == ["c", "near"]
    assert [edge.type for edge in trimmed.edges] == ["C"]
    assert (trimmed.more_nodes, trimmed.more_edges) == (1, 2)


def test_facts_that_end_nowhere_are_left_out_and_counted() -> None:
    trimmed = trim(Drawing(NODES, (Edge("c", "nobody", "A"), Edge("x", "y", "B"), Edge("c", "c", "C"))))
    assert [edge.type for edge in trimmed.edges] == ["C"]
    assert trimmed.more_edges == 2


def test_trimming_twice_is_trimming_once() -> None:
    once = trim(Drawing(NODES, (Edge("c", "far", "A"), Edge("c", "x", "B")), more_nodes=5), max_nodes=2)
    assert once.more_nodes == 6
    assert trim(once, max_nodes=2) == once


def test_two_nodes_with_one_id_are_refused() -> None:
    with pytest.raises(UsageError, match="a drawing has 2 nodes with the id 'c'; give it once"):
        trim(Drawing((*NODES, Node("c", "again"))))


@pytest.mark.parametrize(
    ("drawing", "words"),
    [
        (Drawing(()), "0 entities, 0 facts"),
        (Drawing(NODES[:1], (Edge("far", "far", "A"),)), "1 entity, 1 fact"),
        (Drawing(NODES, as_of=at(2026, 6)), "as of 2026-06-01 · 3 entities, 0 facts"),
        (Drawing(NODES, more_nodes=37), "3 entities, 0 facts · and 37 more entities, not drawn"),
        (
            Drawing(NODES, more_nodes=1, more_edges=1200),
            "3 entities, 0 facts · and 1 more entity and 1,200 more facts, not drawn",
        ),
        (Drawing(NODES, more_edges=1, is_capped=True), "3 entities, 0 facts · and 1 more fact, not drawn"),
        (Drawing(NODES, is_capped=True), "3 entities, 0 facts · and more, not drawn"),
    ],
)
def test_a_caption_says_when_it_is_and_what_is_not_drawn(drawing: Drawing, words: str) -> None:
    assert caption(drawing) == words


def colours(*types: str) -> list[str]:
    drawn = to_dot(Drawing(tuple(Node(str(at), type_, type_) for at, type_ in enumerate(types))))
    return re.findall(r'fillcolor="(#......)22"', drawn)


def test_a_type_has_the_same_colour_in_every_drawing() -> None:
    """So that two drawings can be laid side by side."""
    assert colours(*ENTITY_TYPES) == list(PALETTE)
    assert colours("tool", "file") == [PALETTE[ENTITY_TYPES.index("tool")], PALETTE[ENTITY_TYPES.index("file")]]


def test_a_users_own_type_takes_a_colour_that_is_free() -> None:
    assert colours("recipe", "file", "wine") == [PALETTE[1], PALETTE[0], PALETTE[2]]
    assert colours(*ENTITY_TYPES, "recipe")[-1] == PALETTE[0]


# Drawings in the languages of Graphviz and Mermaid, and words that try to be more than words there.


def since(year: int, month: int = 1) -> float:
    return datetime(year, month, 1, tzinfo=UTC).timestamp()


AUTH = Drawing(
    (
        Node("x", "auth.ts", "file", is_centre=True, distance=0),
        Node("y", "token.ts", "file"),
        Node("z", "Ada", "person"),
    ),
    (
        Edge("x", "y", "DEPENDS_ON", "auth.ts depends on token.ts", since(2026, 3)),
        Edge("z", "x", "DECIDED", valid_from=since(2024), valid_to=since(2026), is_past=True),
        Edge("y", "y", "SIMILAR_TO", is_disputed=True),
    ),
    "auth.ts",
    more_nodes=37,
)


def test_a_drawing_for_graphviz() -> None:
    assert to_dot(AUTH) == (
        "digraph {\n"
        '  graph [label="auth.ts\\n3 entities, 3 facts · and 37 more entities, not drawn", labelloc=t, rankdir=LR,'
        ' fontname="sans-serif"]\n'
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=12]\n'
        '  edge [fontname="sans-serif", fontsize=10, color="#55555f"]\n'
        '  n0 [label="auth.ts", tooltip="auth.ts · file", fillcolor="#3b7dc422", color="#3b7dc4", penwidth=2.5]\n'
        '  n1 [label="token.ts", tooltip="token.ts · file", fillcolor="#3b7dc422", color="#3b7dc4"]\n'
        '  n2 [label="Ada", tooltip="Ada · person", fillcolor="#c2602a22", color="#c2602a"]\n'
        '  n0 -> n1 [label="depends on\\nsince 2026-03-01", tooltip="auth.ts depends on token.ts"]\n'
        '  n1 -> n1 [label="similar to\\ndisputed", tooltip="token.ts similar to token.ts", style=dashed,'
        ' color="#d23b3b", fontcolor="#d23b3b"]\n'
        '  n2 -> n0 [label="decided\\n2024-01-01 – 2026-01-01", tooltip="Ada decided auth.ts", color="#a9a9b2",'
        ' fontcolor="#a9a9b2"]\n'
        "}\n"
    )


def test_a_drawing_for_mermaid() -> None:
    assert to_mermaid(AUTH) == (
        "---\n"
        'title: "auth.ts: 3 entities, 3 facts \\u00b7 and 37 more entities, not drawn"\n'
        "---\n"
        "flowchart LR\n"
        '  n0(["auth.ts"]):::t0\n'
        '  n1["token.ts"]:::t0\n'
        '  n2["Ada"]:::t2\n'
        '  n0 -->|"depends on, since 2026-03-01"| n1\n'
        '  n1 -.->|"similar to, disputed"| n1\n'
        '  n2 -->|"decided, 2024-01-01 – 2026-01-01"| n0\n'
        "  linkStyle 1 stroke:#d23b3b\n"
        "  linkStyle 2 stroke:#a9a9b2\n"
        "  classDef t0 fill:#3b7dc422,stroke:#3b7dc4\n"
        "  classDef t2 fill:#c2602a22,stroke:#c2602a\n"
    )


def test_nothing_is_a_drawing_too() -> None:
    assert to_dot(Drawing(())).endswith("]\n}\n")
    assert to_mermaid(Drawing(())).endswith("---\nflowchart LR\n")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ('say "x"', 'say \\"x\\"'),
        ("ends in \\", "ends in \\\\"),
        ('\\"', '\\\\\\"'),
        ("\\N \\G", "\\\\N \\\\G"),
        ("a &lt; b", "a &amp;lt; b"),
        ("one\ntwo", "one two"),
    ],
)
def test_a_name_cannot_end_its_quotes_in_graphviz(name: str, written: str) -> None:
    assert f'label="{written}", ' in to_dot(Drawing((Node("a", name),)))


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
    assert f'n0["{written}"]' in to_mermaid(Drawing((Node("a", name),)))


def test_a_title_cannot_give_mermaid_directives() -> None:
    text = to_mermaid(Drawing((), title='x"\n---\n%%{init: {"theme": "dark"}}%%'))
    assert text.split("\n")[1] == (
        'title: "x\\" --- \\u0025\\u0025{init: {\\"theme\\": \\"dark\\"}}\\u0025\\u0025: 0 entities, 0 facts"'
    )


def test_a_full_drawing_is_one_that_mermaid_takes() -> None:
    """By itself it draws no more than 500 edges and no text of more than 50,000 characters."""
    nodes = tuple(Node(str(number), f"src/commonplace/formats/module_{number}.py") for number in range(300))
    edges = tuple(Edge(str(number % 200), "1", "OCCURRED_AFTER", "", since(2024, 5)) for number in range(900))
    text = to_mermaid(Drawing(nodes, edges))
    assert text.count("-->") == 400
    assert len(text) < 50_000
