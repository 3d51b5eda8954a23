"""The results of agents: their JSON schemas are the contract's, and they accept and refuse the same instances."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from commonplace.consolidation.results import (
    ClusterResult,
    DecayResult,
    MergeResult,
    PromotionResult,
    RelationResult,
    Result,
)

MODELS: tuple[type[Result], ...] = (DecayResult, ClusterResult, MergeResult, PromotionResult, RelationResult)
CONTRACT = Path(__file__).parent / "results.schema.json"

GOOD: dict[type[Result], dict[str, Any]] = {
    DecayResult: {"memory_id": "a", "score": 0.5, "urgency": "low", "action": "gc", "beads_issue_id": None},
    ClusterResult: {
        "cluster_id": "c",
        "memory_ids": ["a", "b"],
        "cohesion": 1,
        "action": "merge",
        "confidence": 0.0,
        "beads_issue_id": "commonplace-0123abcd",
    },
    MergeResult: {
        "new_memory_id": "n",
        "source_ids": ["a", "b"],
        "relation_ids": [],
        "content_diff": "",
        "entities_preserved": 0,
        "success": True,
    },
    PromotionResult: {"memory_id": "a", "vault_path": "vault/a.md", "criteria_met": ["x"], "success": False},
    RelationResult: {
        "from_memory_id": "a",
        "to_memory_id": "b",
        "relation_id": "r",
        "strength": 0.3,
        "reasoning": "both name Ann",
        "shared_entities": ["Ann"],
        "confidence": 1.0,
    },
}
ODD = [None, True, False, -1, 0, 1, 2.0, 0.5, 1.5, "", "gc", "low", "merge", [], ["a"], ["a", "b"], [1, 2], {}]


@cache
def contract() -> dict[str, Any]:
    schemas: dict[str, Any] = json.loads(CONTRACT.read_text())
    return schemas


def is_accepted_by_contract(model: type[Result], instance: object) -> bool:
    return bool(jsonschema.Draft202012Validator(contract()[model.__name__]).is_valid(instance))


def is_accepted(model: type[Result], instance: object) -> bool:
    try:
        model.model_validate(instance)
    except ValidationError:
        return False
    return True


def plain_schema(schema: Any) -> Any:
    """Return a schema as the contract has it: without titles, descriptions and defaults."""
    if isinstance(schema, list):
        return [plain_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "enum" in schema:
        return {"enum": schema["enum"]}
    if "anyOf" in schema:
        return {"type": [each["type"] for each in schema["anyOf"]]}
    kept = {name: value for name, value in schema.items() if name not in ("title", "description", "default")}
    if "properties" in kept:
        kept["properties"] = {name: plain_schema(value) for name, value in kept["properties"].items()}
    return {name: value if name == "properties" else plain_schema(value) for name, value in kept.items()}


@pytest.mark.parametrize("model", MODELS)
def test_the_schema_is_the_contracts(model: type[Result]) -> None:
    assert plain_schema(model.model_json_schema()) == contract()[model.__name__]


@pytest.mark.parametrize("model", MODELS)
def test_what_a_result_says_of_itself_fulfils_the_contract(model: type[Result]) -> None:
    made = model(**GOOD[model])
    assert is_accepted_by_contract(model, made.model_dump())
    assert is_accepted_by_contract(model, json.loads(made.model_dump_json()))
    least = {name: GOOD[model][name] for name in contract()[model.__name__]["required"]}
    assert is_accepted_by_contract(model, model(**least).model_dump())


@pytest.mark.parametrize("model", MODELS)
def test_the_same_instances_are_accepted_and_refused(model: type[Result]) -> None:
    """Each value in turn is left out, or replaced by something odd."""
    good = GOOD[model]
    assert is_accepted(model, good) and is_accepted(model, {**good, "unknown": 1})
    for name in contract()[model.__name__]["properties"]:
        without = {key: value for key, value in good.items() if key != name}
        assert is_accepted(model, without) is is_accepted_by_contract(model, without), name
        for odd in ODD:
            instance = {**good, name: odd}
            assert is_accepted(model, instance) is is_accepted_by_contract(model, instance), (name, odd)


plain = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4)
)
values = plain | st.lists(plain, max_size=3)


@settings(suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
@given(st.sampled_from(MODELS), st.dictionaries(st.integers(0, 8), values))
def test_any_instance_is_accepted_where_the_contract_accepts_it(model: type[Result], odd: dict[int, object]) -> None:
    names = list(contract()[model.__name__]["properties"])
    instance = {**GOOD[model], **{names[place % len(names)]: value for place, value in odd.items()}}
    assert is_accepted(model, instance) is is_accepted_by_contract(model, instance)
