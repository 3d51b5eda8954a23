"""Extraction is compared with marked sentences small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.extraction import ExtractionOptions, main, run
from click.testing import CliRunner

from commonplace.errors import UsageError

LINES = [
    {
        "text": "Mira Okafor , 47 , lives in Troy , Mich .",
        "entities": [["Mira Okafor", "Peop"], ["Troy , Mich", "Loc"], ["47", "Other"]],
        "relations": [["Mira Okafor", "Live_In", "Troy , Mich"]],
    },
    {
        "text": "Dr. Anna Berg works for Acme Corp. on Monday .",
        "entities": [["Dr. Anna Berg", "Peop"], ["Acme Corp.", "Org"], ["Monday", "Other"]],
        "relations": [["Dr. Anna Berg", "Work_For", "Acme Corp."], ["Dr. Anna Berg", "Kill", "Acme Corp."]],
    },
    {
        "text": "Globex Corp. of Berlin met the press .",
        "entities": [["Globex Corp.", "Org"], ["Berlin", "Loc"]],
        "relations": [],
    },
]


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    path = tmp_path / "marked.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)), encoding="utf-8")
    return path


def test_names_count_exactly_and_by_their_parts(marked: Path) -> None:
    """`Troy , Mich` is one place there and two here, and the doctor has her title only there."""
    result = run(ExtractionOptions(marked))
    exact, by_part = (result[way]["entities"] for way in ("exact", "by_part"))
    assert exact["person"] == {"marked": 2, "found": 2, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert by_part["person"] == {"marked": 2, "found": 2, "precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert (exact["place"]["precision"], exact["place"]["recall"]) == (1 / 3, 0.5)
    assert (by_part["place"]["precision"], by_part["place"]["recall"]) == (1.0, 1.0)
    assert exact["organization"]["f1"] == 1.0


def test_relations_count_by_type_and_kill_is_left_out(marked: Path) -> None:
    relations = run(ExtractionOptions(marked))["by_part"]["relations"]
    assert relations["LIVES_IN"] == {"marked": 1, "found": 1, "precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert relations["WORKS_FOR"]["f1"] == 1.0
    assert relations["LOCATED_IN"] == {"marked": 0, "found": 1, "precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert (relations["all"]["marked"], relations["all"]["found"]) == (2, 3)


def test_command_prints_the_tables_and_json(marked: Path) -> None:
    arguments = ["--format", "conll04", str(marked)]
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0
    assert "By part, relations" in shown.output
    printed = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert printed["sentences"] == 3


@pytest.mark.parametrize(
    "line", ["{", '{"text": "x"}', '{"text": "x", "entities": [["a", "Beast"]], "relations": []}', "[]"]
)
def test_line_that_is_no_sentence_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{json.dumps(LINES[0])}\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.jsonl:2 is no conll04 sentence"):
        run(ExtractionOptions(path))


def test_file_that_is_missing_and_format_that_is_unknown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        run(ExtractionOptions(tmp_path / "none.jsonl"))
    with pytest.raises(UsageError, match="format 'ace' is unknown"):
        run(ExtractionOptions(tmp_path / "none.jsonl", "ace"))
