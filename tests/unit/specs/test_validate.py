"""Patterns that somebody else wrote: they are applied as any schema's, and hold nobody up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.specs.runner import asked, fields, spec

from commonplace.specs import check


def with_pattern(pattern: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"name": {"type": "string", "pattern": pattern}}}


def test_inputs_and_outputs_are_held_to_patterns() -> None:
    document = spec({"t": {"input": with_pattern("^[a-z]+$"), "output": with_pattern("^[A-Z]+$")}})
    assert asked(document, "t", {"name": "ada"}, {"name": "ADA"})["output"] == {"name": "ADA"}
    assert "name: 'Ada' does not match" in asked(document, "t", {"name": "Ada"}, {"name": "ADA"})["error"]
    broken = asked(document, "t", {"name": "ada"}, {"name": "é"})
    assert (broken["code"], "name: 'é' does not match" in broken["error"]) == ("OUTPUT_SCHEMA_ERROR", True)


def test_a_pattern_that_would_take_years_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further letter doubles the time, and no other thread would run meanwhile."""
    monkeypatch.setattr(check, "MAX_DURATION_S", 2.0)
    done = asked(spec({"t": {"input": with_pattern("^(a+)+$")}}), "t", {"name": "a" * 60 + "!"}, "1")
    assert (done["code"], done["stage"]) == ("CHAIN_INPUT_MISSING", "input_validation")
    assert "the schema's patterns take more than 2 s" in done["error"]


def test_what_is_printed_at_a_start_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('Welcome!', end='')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert check.foreign_faults_of({"name": "a"}, with_pattern("a")) == []


def test_modules_of_the_working_directory_are_not_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody else's spec may lie beside somebody else's `json.py`."""
    (tmp_path / "json.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert check.foreign_faults_of({"name": "a"}, with_pattern("a")) == []


def test_where_no_process_can_be_started_nothing_passes_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    [fault] = check.foreign_faults_of({"name": "a"}, with_pattern("a"))
    assert fault.message == "the schema's patterns cannot be checked here: FileNotFoundError"


def test_a_schema_without_patterns_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would cost a quarter of a second for each check."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert check.foreign_faults_of({"name": "a"}, fields("name", name="string")) == []
