"""The benchmark of consolidation: what two sentences would come to, and how long groups are looked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.consolidation import ConsolidationOptions, main, read_pairs, run
from click.testing import CliRunner

from commonplace.errors import UsageError


def pairs(path: Path, *some: tuple[str, str, float]) -> Path:
    path.write_text("\n".join(json.dumps({"a": a, "b": b, "score": score}) for a, b, score in some) + "\n\n", "utf-8")
    return path


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    return pairs(
        tmp_path / "pairs.jsonl",
        ("A woman is slicing a big pepper.", "A woman is slicing big pepper.", 5.0),
        ("The database runs on PostgreSQL 15.", "The database runs on PostgreSQL 16.", 3.0),
        ("Three kittens sleep on a blanket.", "Stock markets fell in early trading.", 0.0),
        ("The service was shut down at night.", "Everybody went home as nobody asked for it.", 4.0),
    )


def test_what_is_decided_about_pairs_is_compared_with_what_people_say(judged: Path) -> None:
    figures = run(ConsolidationOptions(judged, memories=0))["similarity"]
    assert (figures["pairs"], figures["same"]) == (4, 2)
    decided = figures["decisions"]
    assert decided["merge"] == {"pairs": 2, "precision": 0.5, "nearly_same": 1.0, "recall": 0.5}
    assert decided["merge_without_contradiction"] == {"pairs": 1, "precision": 1.0, "nearly_same": 1.0, "recall": 0.5}
    assert decided["merge_unasked"] == decided["merge_without_contradiction"]
    assert decided["link"]["pairs"] == 2


def test_nothing_that_is_merged_is_rightly_merged(tmp_path: Path) -> None:
    """Without a pair there is none that is wrong."""
    figures = run(ConsolidationOptions(pairs(tmp_path / "p.jsonl", ("kitten", "tax law", 0)), memories=0))
    decided = figures["similarity"]["decisions"]["merge"]
    assert decided == {"pairs": 0, "precision": 1.0, "nearly_same": 1.0, "recall": 0.0}


def test_memories_are_looked_through() -> None:
    """Merging finds nothing by itself: its items are issues that the agent before it files."""
    figures = run(ConsolidationOptions(memories=200, embedder="hashing"))
    assert "similarity" not in figures
    assert "run" not in figures
    assert figures["scan"]["memories"] == 200
    agents = figures["scan"]["agents"]
    assert list(agents) == ["decay", "cluster", "promote", "relations"]
    assert all(row.keys() == {"items", "scan_s", "again_s", "slowest_item_s"} for row in agents.values())
    assert all(row["items"] > 0 for row in agents.values())


def test_memories_are_consolidated_where_that_is_asked_for() -> None:
    """A quarter is older than the 90 days for which they are kept; two were reviewed thrice, one of these so old."""
    done = run(ConsolidationOptions(memories=101, runs=True, embedder="hashing"))["run"]
    assert done.keys() == {"dry_s", "real_s", "agents"}
    assert list(done["agents"]) == ["decay", "cluster", "merge", "promote", "relations"]
    assert all(row["failed"] == 0 for row in done["agents"].values())
    assert (done["agents"]["decay"]["applied"], done["agents"]["promote"]["applied"]) == (23, 2)


@pytest.mark.parametrize("line", ["{", "[]", '{"a": "x", "b": "y"}', '{"a": 1, "b": "y", "score": 3}'])
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(f"\n{line}", "utf-8")
    with pytest.raises(UsageError, match="line 2 is no pair of sentences"):
        read_pairs(file)


def test_a_file_that_is_not_there_and_a_number_below_0_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_pairs(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="memories is -1"):
        ConsolidationOptions(memories=-1)


def test_the_command_prints_what_is_decided(judged: Path) -> None:
    result = CliRunner().invoke(main, ["--pairs", str(judged), "--memories", "0"])
    assert result.exit_code == 0, result.output
    assert "merge unasked" in result.output
