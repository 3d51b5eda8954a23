"""What `index status` tells of the graph, in Python, as text and as JSON."""

from __future__ import annotations

from pathlib import Path

from tests.surfaces.conftest import Program

import commonplace
from commonplace.types.graph import GraphCounts


def lines(program: Program) -> list[str]:
    return program.run("index", "status").stdout.splitlines()


def test_a_graph_is_counted_where_there_is_one(bare: Program) -> None:
    bare.run("init")
    bare.run("remember", "short answers are better")
    assert not [line for line in lines(bare) if "graph  " in line]
    assert bare.json("index", "status")["graph"] == {"episodes": 0, "entities": 0, "relations": 0, "disputed": 0}
    bare.run("remember", "Ada Marsh lives in Lisbon.", "--at", "2026-01-10")
    assert "       graph  1 episode, 2 entities and 1 fact" in lines(bare)
    for city in ("Porto", "Faro"):
        bare.run("graph", "add", f"Tom Chen lives in {city}.", "--at", "2026-01-10")
    assert "       graph  3 episodes, 5 entities and 3 facts, 2 of them disputed" in lines(bare)
    assert bare.json("index", "status")["graph"] == {"episodes": 3, "entities": 5, "relations": 3, "disputed": 2}
    assert "graph  " not in bare.run("index", "status", "--namespace", "other").stdout


def test_python_tells_the_counts_of_its_namespace(tmp_path: Path) -> None:
    with commonplace.open(tmp_path, embedder="hashing") as book:
        book.remember("Ada Marsh lives in Lisbon.")
        assert book.index_status().graph == GraphCounts(1, 2, 1, 0) == book.graph.counts()
    with commonplace.open(tmp_path, namespace="other", embedder="hashing") as other:
        assert other.index_status().graph == GraphCounts()


def test_what_the_last_run_left_out_is_told_until_something_is_forgotten(program: Program) -> None:
    for name, text in (("secret.pem", "x"), ("note.md", "---\ntype: poem\n---\nRavens\n")):
        (program.project / name).write_text(text)
    program.run("index", "build", "--yes")
    [told] = program.json("index", "status")["left_out"]
    assert told["root"] == str(program.project)
    assert told["skipped"]["secret"] == 1
    [problem] = told["problems"]
    assert problem["path"] == "note.md"
    assert "'poem' is not one of" in problem["reason"]
    shown = " ".join(" ".join(lines(program)).split())
    assert f"skipped of {program.project}: 1 secret" in shown
    program.run("forget", "--path", "note.md", "--yes")
    assert program.json("index", "status")["left_out"] == []
    program.run("index", "build", "--yes", "--force")
    assert len(program.json("index", "status")["left_out"]) == 1
    for name in ("secret.pem", "note.md"):
        (program.project / name).unlink()
    program.run("index", "build", "--yes")
    assert program.json("index", "status")["left_out"] == []


def test_a_secret_in_the_name_of_a_file_is_not_kept_with_what_was_left_out(program: Program) -> None:
    key = "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc"
    (program.project / f"{key}.md").write_text("---\ntype: poem\n---\nRavens\n")
    program.run("index", "build", "--yes")
    [told] = program.json("index", "status")["left_out"]
    [problem] = told["problems"]
    assert problem["path"] == "[redacted: stripe key].md"
    assert key not in str(told)
