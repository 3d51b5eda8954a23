"""Patterns that somebody else wrote: they are applied as any schema's, and hold nobody up."""

from __future__ import annotations

import sys
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
    done = asked(spec({"t": {"input": with_pattern("^(a|aa)+$")}}), "t", {"name": "a" * 60 + "!"}, "1")
    assert (done["code"], done["stage"]) == ("CHAIN_INPUT_MISSING", "input_validation")
    assert "the schema's patterns take more than 2 s" in done["error"]


def test_a_pattern_that_would_fill_the_memory_is_refused() -> None:
    """Counts are written out before anything is matched."""
    [fault] = check.faults_of({"name": "a"}, with_pattern("((a{1000}){1000}){1000}"))
    assert "more than 10,000 characters or 100,000 repetitions" in fault.message


def test_names_of_properties_are_matched_as_well() -> None:
    schema = {"patternProperties": {"^n": {"type": "string"}}, "additionalProperties": False}
    assert check.faults_of({"name": "a"}, schema) == []
    assert [fault.path for fault in check.faults_of({"name": 1}, schema)] == ["name"]
    [fault] = check.faults_of({"other": 1}, schema)
    assert "'other' was unexpected" in fault.message


def test_a_schema_without_patterns_does_not_load_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    assert check.faults_of({"name": "a"}, fields("name", name="string")) == []
