"""Drawings in the languages of Graphviz and Mermaid, and words that try to be more than words there."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commonplace.formats.drawing import Drawing, Edge, Node, to_dot, to_mermaid


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
