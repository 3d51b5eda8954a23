"""The table of figures, from end to end, at a size that only shows that every part works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks import baselines, figures, made_graph, memories
from benchmarks.figures import Part
from click.testing import CliRunner

import commonplace

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

TEXTS = {"bees": "Honey bees dance to tell where the nectar is.", "tides": "The moon pulls the sea and makes tides."}


def lay_down_a_set(directory: Path) -> None:
    directory.mkdir(parents=True)
    lines = [json.dumps({"_id": id_, "text": text}) for id_, text in TEXTS.items()]
    (directory / "corpus.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (directory / "queries.jsonl").write_text('{"_id": "q", "text": "who dances for nectar"}\n', "utf-8")
    (directory / "qrels.tsv").write_text("q\tbees\t1\n", "utf-8")


def test_quick_figures_are_measured_by_the_other_benchmarks(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row has a figure, but for those whose data are not there: they say what to name."""
    started: list[str] = []

    def measured(part: Part) -> dict[str, Any]:
        """Measure the labelled set in a process of its own, as all are, and the rest here: each starts many."""
        if part.name.startswith("retrieval"):
            started.append(part.name)
            return measure(part)
        if part.name == "graph":
            return made_graph.run(*map(int, part.arguments[2:]))
        if part.arguments[0] != "-m":
            found: dict[str, Any] = bare.json("benchmark", *part.arguments)
            return found
        module = {"benchmarks.baselines": baselines, "benchmarks.memories": memories}[part.arguments[1]]
        told: dict[str, Any] = json.loads(
            CliRunner().invoke(module.main, part.arguments[2:], catch_exceptions=False).stdout
        )
        return told

    measure = figures._measured
    monkeypatch.setattr(figures, "_measured", measured)
    lay_down_a_set(bare.project / "data" / "two-texts")
    rows = {row["what"]: row for row in bare.json("benchmark", "figures", "--size", "quick", "--data", "data")["rows"]}
    unmeasured = [what for what, row in rows.items() if row["value"] is None]
    assert {what.split()[0].strip(",") for what in unmeasured} == {"everyday", "LongMemEval", "LoCoMo", "store"}
    assert rows["search p95, 100 passages"]["value"] > 0.0
    assert rows["search p95, 100 passages"]["contract_reached"] == "smaller size"
    assert rows["recall@10 on two-texts"]["measured"] == "100 %"
    assert rows["precision@10 on two-texts"]["contract_reached"] == "no"
    assert started == ["retrieval two-texts"]


def test_what_a_part_says_when_it_fails_stands_in_its_rows(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set with a slip in it fails alone; the table is printed all the same."""

    def measured(part: Part) -> dict[str, Any]:
        if part.name != "retrieval broken":
            raise ValueError("left out")
        return measure(part)

    measure = figures._measured
    monkeypatch.setattr(figures, "_measured", measured)
    lay_down_a_set(bare.project / "data" / "broken")
    (bare.project / "data" / "broken" / "qrels.tsv").write_text("q\tbees\t1\nq\ttides\tmuch\n", "utf-8")
    lines = bare.run("benchmark", "figures", "--size", "quick", "--data", "data").stdout.splitlines()
    (line,) = (line for line in lines if line.strip().startswith("search p95, 100 passages"))
    assert line.split() == "search p95, 100 passages < 150 ms < 10 ms not measured: left out – –".split()
    (line,) = (line for line in lines if line.strip().startswith("recall@10 on broken"))
    assert "qrels.tsv:2" in line
    assert '"' not in line


def test_a_wide_table_is_printed_whole_where_the_terminal_is_narrow(
    bare: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows whose names are cut cannot be told from each other, and a log has no width that they would have to fit."""
    reason = "not tried " * 10

    def unmeasured(part: Part) -> dict[str, Any]:
        raise ValueError(reason)

    monkeypatch.setattr(figures, "_measured", unmeasured)
    printed = bare.run("benchmark", "figures", "--size", "quick").stdout
    assert "LoCoMo turns, R@10 (categories 1–4)" in printed
    assert f"not measured: {reason.strip()}" in printed
    assert "…" not in printed


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["figures", "--size", "quick"], "this benchmark"),
        (["recall", "--vectors-cache", "vectors", "memories.jsonl", "questions.jsonl"], "--vectors-cache"),
    ],
)
def test_without_the_sources_it_says_where_to_run_it(
    bare: Program, monkeypatch: pytest.MonkeyPatch, arguments: list[str], what: str
) -> None:
    """The table measures ours, by benchmarks that are not installed, and keeps vectors."""
    for name in ("memories.jsonl", "questions.jsonl"):
        (bare.project / name).touch()
    monkeypatch.setattr(commonplace, "__file__", str(bare.project / "lib" / "commonplace" / "__init__.py"))
    error = bare.error("benchmark", *arguments, code=2)
    assert error["message"] == f"{what} comes with the sources"
    assert error["remedy"] == "run it in a clone of the repository"
