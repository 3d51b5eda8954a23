"""The benchmark of relations: linked memories against pairs that a person judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.consolidation import judge_links, main, read_judged
from click.testing import CliRunner

from commonplace.errors import UsageError

OURS = Path(__file__).parents[2] / "benchmarks" / "relations"
MEMORIES = (
    {"id": "a", "content": "Mira Solberg chose Postgres for the invoices.", "tags": ["billing"]},
    {"id": "b", "content": "Postgres was slow on Monday, says Mira Solberg.", "tags": ["billing"]},
    {"id": "c", "content": "Nobody waters those ferns.", "tags": []},
)


def directory(place: Path, *pairs: tuple[str, str, bool]) -> Path:
    for name, rows in (
        ("memories", MEMORIES),
        ("pairs", [{"a": one, "b": other, "related": related} for one, other, related in pairs]),
    ):
        (place / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return place


def test_linked_pairs_are_compared_with_what_a_person_says(tmp_path: Path) -> None:
    figures = judge_links(read_judged(directory(tmp_path, ("b", "a", True), ("a", "c", True), ("b", "c", False))))
    assert (figures["memories"], figures["judged"], figures["related"]) == (3, 3, 2)
    assert figures["decisions"]["link"] == {"pairs": 1, "judged": 1, "precision": 1.0, "recall": 0.5}
    assert figures["decisions"]["link_unasked"] == {"pairs": 0, "judged": 0}


def test_our_own_pairs_are_linked_with_a_precision_above_four_fifths() -> None:
    """The contract: MUST NOT create spurious relations (precision > 0.8)."""
    judged = read_judged(OURS)
    assert len(judged.related) >= 100
    linked = judge_links(judged)["decisions"]["link"]
    assert linked["judged"] >= 40
    assert linked["precision"] > 0.8


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"a": "a", "b": "nobody", "related": true}', "line 1 is no pair of the memories"),
        ('{"a": "a", "b": "a", "related": true}', "line 1 is no pair of the memories"),
        ('{"a": "a", "b": "b", "related": 1}', "line 1 is no pair of the memories"),
        ("[]", "line 1 is not a JSON object"),
        ("{", "line 1 is not a JSON object"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, line: str, match: str) -> None:
    (directory(tmp_path) / "pairs.jsonl").write_text(line, "utf-8")
    with pytest.raises(UsageError, match=match):
        read_judged(tmp_path)


def test_a_directory_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"memories.jsonl cannot be read"):
        read_judged(tmp_path)


def test_the_command_prints_what_was_linked(tmp_path: Path) -> None:
    given = str(directory(tmp_path, ("a", "b", True)))
    command = ["--relations", given, "--memories", "0"]
    told = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    assert told["relations"]["decisions"]["link"]["precision"] == 1.0
