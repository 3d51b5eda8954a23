"""The benchmark of graphs from end to end, on one small enough to know every answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.graph import FACTS, SQL, GraphOptions, made_sentences, main, nearest, run
from benchmarks.made_graph import DEPTH, write_graph
from click.testing import CliRunner

import commonplace
from commonplace.errors import UsageError

SMALL = GraphOptions(entities=60, relations=90, facts=12, calls=3)


def test_every_call_is_measured_and_the_stores_are_as_large_as_asked(tmp_path: Path) -> None:
    from dataclasses import replace

    result = run(replace(SMALL, keep=tmp_path / "kept"))
    assert set(result["neighbourhood"]) == {
        "first",
        *(f"{where}, {limit}" for where in ("entity", "end of a fact", "hub") for limit in (50, 500)),
    }
    assert set(result["baselines"]) == {"sql", "dict"}
    assert set(result["calls"]) == {"first search", "search_edges", "search_entities", "add_episode", "bare_commit"}
    assert all(row["p50_ms"] > 0 for row in result["calls"].values())
    assert result["facts"]["facts"] >= 12
    json.dumps(result)
    with commonplace.open(tmp_path / "kept") as book:
        counts = book.graph.counts()
        assert (counts.entities, counts.relations) == (60, 90)
    with commonplace.open(tmp_path / "kept", FACTS) as book:
        assert book.graph.counts().relations >= 12
    with pytest.raises(UsageError, match="is not an empty directory"):
        run(replace(SMALL, keep=tmp_path / "kept"))


def test_ours_and_the_simpler_means_reach_the_same(tmp_path: Path) -> None:
    """A comparison with something that answers another question says nothing."""
    import sqlite3

    made = write_graph(tmp_path / "store.db", 60, 90, 1, None)
    db = sqlite3.connect(tmp_path / "store.db")
    with commonplace.open(tmp_path) as book:
        for start in made.hubs(3):
            values = {"start": start, "depth": DEPTH, "limit": 500}
            by_sql = {row[0]: row[1] for row in db.execute(SQL, values)}
            found = book.graph.neighbourhood(start, DEPTH, 500)
            assert not found.is_capped
            assert {each.uuid: each.distance for each in found.entities} == by_sql
            assert set(nearest(made.beside(), start, 500)) == by_sql.keys()
    db.close()


def test_the_same_seed_makes_the_same() -> None:
    one, other = made_sentences(3), made_sentences(3)
    assert [next(one) for _ in range(20)] == [next(other) for _ in range(20)]


def test_numbers_that_make_no_graph_are_refused() -> None:
    with pytest.raises(UsageError, match="entities is 1"):
        GraphOptions(entities=1)
    with pytest.raises(UsageError, match="calls is 0"):
        GraphOptions(calls=0)


def test_the_command_prints_tables() -> None:
    numbers = ["--entities", "40", "--relations", "60", "--facts", "4", "--calls", "2"]
    result = CliRunner().invoke(main, numbers)
    assert result.exit_code == 0, result.output
    assert "Baselines, sql" in result.output
    assert "add episode" in result.output
