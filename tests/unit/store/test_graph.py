"""What SQLite does for each question about a graph: it must never read a namespace to find what belongs to an id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commonplace.store import graph
from commonplace.store.database import connect
from commonplace.store.store import Store

BY_ID = {
    "episodes": (["x"],),
    "reference_times": (["x"],),
    "episodes_of_memory": ("x",),
    "entities": (["x"],),
    "entities_by_name": (["x"],),
    "aliases": (["x"],),
    "relations": (["x"],),
    "facts": ("x", "type"),
    "mentions": ("entity", ["x"]),
    "mentioned": (["x"],),
    "happenings": ("entity", "x"),
}
BY_STAGE = {
    "from": "source=[?] AND {}",
    "to": "target=[?] AND {}",
    "all": "{}",
    "edges": "(source|target)=[?] AND {}",
}
TABLES = "(e|x|a|r|episodes|entities|aliases|relations|mentions|happenings)"


def plan_of(directory: Path, sql: str) -> list[str]:
    """Return how each table is read, one line each."""
    Store.create(directory / "store.db").close()
    values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    with closing(connect(directory / "store.db", 5.0)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [line for line in plan if re.match(rf"(SEARCH|SCAN) {TABLES}\b", line)]


class Asked:
    """Takes the place of a store's connections, and keeps what is asked."""

    def __init__(self) -> None:
        self.sql: list[str] = []

    def rows(self, sql: str, _: Mapping[str, Any]) -> list[Any]:
        self.sql.append(sql)
        return []


def asked(name: str, *values: Any) -> str:
    """Return the statement of a method of the graph."""
    source = Asked()
    getattr(graph.GraphReading(source, "n"), name)(*values)  # type: ignore[arg-type] # it is asked for rows alone
    [sql] = source.sql
    return sql


@pytest.mark.parametrize("name", BY_ID)
def test_a_question_by_id_looks_the_id_up(tmp_path: Path, name: str) -> None:
    """A hundred thousand names take ten milliseconds to read, which every entity that is shown would cost."""
    found = plan_of(tmp_path, asked(name, *BY_ID[name]))
    assert found
    for line in found:
        assert re.search(
            r"\bnamespace=\? AND (kind=\? AND )?(id|memory|normal|entity|source|subject|episode)=\?", line
        ), line


def test_a_fact_between_two_hubs_is_looked_up_by_all_that_is_asked(tmp_path: Path) -> None:
    """Each of them may have a hundred thousand others."""
    [line] = plan_of(tmp_path, asked("facts", "x", "type", "y"))
    assert "relations_by_fact (namespace=? AND source=? AND type=? AND target=?)" in line


@pytest.mark.parametrize(("name", "by"), BY_STAGE.items())
def test_what_stands_is_found_beside_what_has_ended(tmp_path: Path, name: str, by: str) -> None:
    """Whoever has moved a thousand times still lives in one place."""
    question = graph.question(name)
    for line in plan_of(tmp_path, question[0]):
        assert re.search(rf"\(namespace=\? AND {by.format('stage=[?] AND created_at<[?]')}\)", line), line
    (tmp_path / "store.db").unlink()
    for line in plan_of(tmp_path, question[-1]):
        assert re.search(rf"relations_ending\w* \(namespace=\? AND {by.format('<expr>>[?]')}\)", line), line


def test_what_it_takes_to_follow_a_fact_is_read_from_the_index_alone(tmp_path: Path) -> None:
    """To fetch each row costs several times as much, of which a neighbourhood reads thousands."""
    assert all("COVERING INDEX" in line for line in plan_of(tmp_path, graph.question("edges")[0]))
