"""What SQLite does for each question about a graph: it must never read a namespace to find what belongs to an id."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from commonplace.store import graph_queries
from commonplace.store.driver import connect
from commonplace.store.sqlite import SqliteStore

BY_ID = {
    "EPISODE": "id",
    "EPISODES_OF_MEMORY": "memory",
    "ENTITY": "id",
    "NAMED": "normal",
    "ALIASES": "entity",
    "RELATION": "id",
    "RELATIONS_FROM": "source",
    "RELATIONS_TO": "target",
    "MENTIONS": "subject",
    "MENTIONED": "episode",
    "HAPPENINGS": "subject",
    "EDGES": "(source|target)",
    "EDGES_EVER": "(source|target)",
}
TABLES = "(e|x|a|r|episodes|entities|aliases|relations|mentions|happenings)"


@pytest.mark.parametrize(("name", "column"), BY_ID.items())
def test_a_question_by_id_looks_the_id_up(tmp_path: Path, name: str, column: str) -> None:
    """A hundred thousand names take ten milliseconds to read, which every entity that is shown would cost."""
    SqliteStore.create(tmp_path / "store.db").close()
    sql = getattr(graph_queries, name)
    values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
    with closing(connect(tmp_path / "store.db", 5.0)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    found = [line for line in plan if re.match(rf"(SEARCH|SCAN) {TABLES}\b", line)]
    assert found
    for line in found:
        assert re.search(rf"\bnamespace=\? AND (kind=\? AND )?({column}|id)=\?", line), line
