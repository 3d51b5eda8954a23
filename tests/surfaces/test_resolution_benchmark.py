"""The benchmark of resolution: pairs of names that a graph joins, against lines that say which are one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.resolution import ResolutionOptions, main, run
from click.testing import CliRunner

from commonplace.errors import UsageError

LABELS = Path(__file__).resolve().parents[1] / "data" / "names.jsonl"


def names(path: Path, *things: tuple[str, str, list[str]]) -> Path:
    lines = [json.dumps({"set": among, "type": type_, "names": some}) for among, type_, some in things]
    path.write_text("\n".join(lines) + "\n\n", "utf-8")
    return path


def test_pairs_are_counted_within_a_set(tmp_path: Path) -> None:
    file = names(
        tmp_path / "names.jsonl",
        ("one", "person", ["Mira Okafor", "Mira", "Mimi"]),
        ("one", "tool", ["auth service"]),
        ("one", "tool", ["the Auth Service", "authz"]),
        ("two", "person", ["Mira Chen", "Mira"]),
    )
    result = run(ResolutionOptions(file))
    assert (result["names"], result["things"], result["pairs"]) == (8, 4, 15 + 1)
    assert (result["same_pairs"], result["joined_pairs"]) == (3 + 1 + 1, 3)
    assert (result["precision"], result["recall"]) == pytest.approx((2 / 3, 2 / 5))
    assert result["wrong"] == [{"set": "one", "one": "auth service (tool)", "other": "the Auth Service (tool)"}]
    assert {each["other"] for each in result["missed"]} == {"Mimi (person)", "authz (tool)"}


def test_no_two_lives_are_joined_in_the_labelled_conversations() -> None:
    """A wrong merge joins two lives; a missed one only waits for somebody to say so."""
    result = run(ResolutionOptions(LABELS))
    assert result["wrong"] == []
    assert result["recall"] >= 0.36


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "names.jsonl:1 is not of the form"),
        ('{"set": "a", "type": "person"}', "names.jsonl:1 is not of the form"),
        ('{"set": "a", "type": "person", "names": []}', "names.jsonl:1 is not of the form"),
        ('{"set": "a", "type": "person", "names": [3]}', "names.jsonl:1 is not of the form"),
        ('{"set": "a", "type": "ghost", "names": ["x"]}', "names.jsonl:1 has the type 'ghost'"),
    ],
)
def test_a_line_that_is_no_thing_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "names.jsonl"
    file.write_text(line, "utf-8")
    with pytest.raises(UsageError, match=complaint):
        run(ResolutionOptions(file))
    with pytest.raises(UsageError, match="cannot be read"):
        run(ResolutionOptions(tmp_path / "none.jsonl"))


def test_the_command_prints_what_was_missed(tmp_path: Path) -> None:
    file = names(tmp_path / "names.jsonl", ("one", "person", ["Mira Okafor", "Mimi"]))
    result = CliRunner().invoke(main, [str(file)])
    assert result.exit_code == 0, result.output
    assert "Mimi (person)" in result.output
