"""The behaviours that the Open Agent Spec's own conformance suite asks of a runner, in our words.

`scripts/oas_adapter.py` lets that suite itself drive our runner.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.specs.runner import asked, fields, spec, written

GREET = {"input": fields("name", name="string"), "output": fields("response", response="string")}
NAME = {"name": "Alice"}
HELLO = {"response": "Hello Alice!"}


def prompts(system: str | None = None, user: str | None = None) -> dict[str, str]:
    return {name: text for name, text in (("system", system), ("user", user)) if text is not None}


def test_a_minimal_document_runs_and_its_envelope_is_complete() -> None:
    task = {**GREET, "prompts": prompts("You greet.", "{{ name }}")}
    done = asked(spec({"greet": task}), "greet", NAME, HELLO)
    assert done == {
        "task": "greet",
        "output": HELLO,
        "input": NAME,
        "prompt": "You greet.\n\nAlice",
        "engine": "openai",
        "model": "gpt-4o",
        "raw_output": '{"response": "Hello Alice!"}',
        "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6},
    }


@pytest.mark.parametrize("missing", ["agent", "intelligence", "tasks", "open_agent_spec"])
def test_a_document_that_lacks_a_part_is_refused(missing: str) -> None:
    document = spec({"greet": GREET})
    del document[missing]
    done = asked(document, "greet", NAME, HELLO)
    assert done == {
        "error": f"the spec is not a valid spec: {missing}: is missing",
        "code": "SPEC_LOAD_ERROR",
        "stage": "load",
    }


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"open_agent_spec": "0.1.0"}, "open_agent_spec"),
        ({"intelligence": {"type": "llm", "engine": "unknown", "model": "m"}}, "intelligence.engine"),
        ({"sandbox": {"http": {"allow_domains": ["https://api.example.com"]}}}, "sandbox.http.allow_domains[0]"),
    ],
)
def test_a_document_with_an_impossible_value_is_refused_by_its_path(changed: dict[str, Any], path: str) -> None:
    done = asked({**spec({"greet": GREET}), **changed}, "greet", NAME, HELLO)
    assert (done["code"], done["stage"]) == ("SPEC_LOAD_ERROR", "load")
    assert f": {path}: " in done["error"]


SHARED = prompts("global system", "global {{ name }}")


@pytest.mark.parametrize(
    ("own", "shared", "overrides", "expected"),
    [
        ({}, SHARED, {}, "global system\n\nglobal Alice"),
        ({}, {**SHARED, "greet": prompts("named", "named {{ name }}")}, {}, "named\n\nnamed Alice"),
        (prompts("own", "own {name}"), {**SHARED, "greet": prompts("named")}, {}, "own\n\nown Alice"),
        (prompts("own"), SHARED, {}, "own\n\nglobal Alice"),
        (prompts("own", "own"), SHARED, prompts("told", "told {{ input.name }}"), "told\n\ntold Alice"),
        (prompts("own", "own"), SHARED, prompts(system="told"), "told\n\nown"),
        ({}, {}, {}, '{"name": "Alice"}'),
    ],
    ids=["shared", "by name", "own", "each alone", "told", "one told", "none"],
)
def test_each_prompt_comes_from_the_nearest_place(
    own: dict[str, str], shared: dict[str, Any], overrides: dict[str, str], expected: str
) -> None:
    document = spec({"greet": {**GREET, "prompts": own}}, prompts=shared)
    assert asked(document, "greet", NAME, HELLO, **overrides)["prompt"] == expected


def test_outputs_of_dependencies_join_the_input_and_the_later_wins() -> None:
    document = spec({"first": {}, "second": {}, "last": {"depends_on": ["first", "second"]}})
    done = asked(document, "last", {"doc": "d"}, {"shared": 1, "a": 1}, {"shared": 2, "b": 2}, {"result": "ok"})
    assert done["input"] == {"doc": "d", "shared": 2, "a": 1, "b": 2}
    assert list(done["chain"]) == ["first", "second"]
    assert done["chain"]["first"]["output"] == {"shared": 1, "a": 1}
    assert done["chain"]["second"]["input"] == {"doc": "d", "shared": 1, "a": 1}


def test_a_task_without_dependencies_has_no_chain() -> None:
    assert "chain" not in asked(spec({"greet": GREET}), "greet", NAME, HELLO)


def test_only_direct_dependencies_run_and_a_shared_one_is_no_circle() -> None:
    tasks = {"base": {}, "left": {"depends_on": ["base"]}, "right": {"depends_on": ["base"]}}
    document = spec({**tasks, "top": {"depends_on": ["left", "right"]}})
    done = asked(document, "top", {}, {"l": "L"}, {"r": "R"}, {"result": "ok"})
    assert (done["input"], done["output"]) == ({"l": "L", "r": "R"}, {"result": "ok"})
    assert list(done["chain"]) == ["left", "right"]
    assert "chain" not in done["chain"]["left"]


def test_a_lattice_of_a_million_million_paths_is_looked_at_once_a_task() -> None:
    """A search by paths would not end."""
    below = {f"{side}{level}": [f"a{level + 1}", f"b{level + 1}"] for level in range(39) for side in "ab"}
    tasks = {name: {"depends_on": names} for name, names in below.items()}
    document = spec({**tasks, "a39": {}, "b39": {}, "top": {"depends_on": ["a0", "b0"]}})
    assert asked(document, "top", {}, {"a": 1}, {"b": 2}, {"done": True})["input"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("edges", "start", "circle"),
    [
        ({"a": ["b"], "b": ["a"]}, "a", "a → b → a"),
        ({"a": ["c"], "b": ["a"], "c": ["b"]}, "c", "c → b → a → c"),
        ({"a": ["a"]}, "a", "a → a"),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, "a", "b → c → b"),
    ],
)
def test_a_circle_is_found_before_any_call(edges: dict[str, list[str]], start: str, circle: str) -> None:
    document = spec({name: {"depends_on": names} for name, names in edges.items()})
    done = asked(document, start, {}, generator=lambda system, user: pytest.fail("asked"))
    assert (done["code"], done["stage"]) == ("CHAIN_CYCLE_ERROR", "routing")
    assert done["error"] == f"tasks depend on each other: {circle}"


def test_an_unknown_dependency_is_no_task() -> None:
    done = asked(spec({"last": {"depends_on": ["nowhere"]}}), "last")
    assert (done["code"], done["stage"], done["task"]) == ("TASK_NOT_FOUND", "routing", "nowhere")


def test_an_unknown_task_is_told_with_those_there_are() -> None:
    assert asked(spec({"greet": GREET, "part": {}}), "leave") == {
        "error": "there is no task 'leave'; the spec has: greet, part",
        "code": "TASK_NOT_FOUND",
        "stage": "routing",
        "task": "leave",
    }


def test_a_missing_input_is_found_before_any_call() -> None:
    assert asked(spec({"greet": GREET}), "greet", {}, generator=lambda system, user: pytest.fail("asked")) == {
        "error": "the input is wrong: name: is missing",
        "code": "CHAIN_INPUT_MISSING",
        "stage": "input_validation",
        "task": "greet",
    }


BLANKS = "```\n" + "\n" * 1_000_000 + "x"


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('[{"item": "x"}]', [{"item": "x"}]),
        ("42", 42),
        (' \n```json\n{"a": "```"}\n\n ``` \n', {"a": "```"}),
        ("just prose", "just prose"),
        pytest.param(BLANKS, BLANKS, id="a fence of blanks"),
    ],
)
def test_a_reply_is_parsed_as_json_and_prose_without_a_promise_is_not_lost(reply: str, output: object) -> None:
    done = asked(spec({"any": {}}), "any", {}, reply)
    assert (done["output"], done["raw_output"]) == (output, reply)


def test_text_is_not_parsed_nor_held_to_a_schema_or_contract() -> None:
    document = spec(
        {"write": {"response_format": "text", "output": fields("x", x="string")}},
        behavioural_contract={"response_contract": {"output_format": {"required_fields": ["x"]}}},
    )
    assert asked(document, "write", {}, '{"y": 1}')["output"] == '{"y": 1}'


def test_an_output_that_breaks_its_schema_is_an_error() -> None:
    document = spec({"greet": {"output": fields("answer", "confidence", answer="string", confidence="number")}})
    assert asked(document, "greet", {}, {"answer": "yes"}) == {
        "error": "the answer breaks the output schema: confidence: is missing",
        "code": "OUTPUT_SCHEMA_ERROR",
        "stage": "output_validation",
        "task": "greet",
    }


def test_contracts_of_spec_and_task_hold_together() -> None:
    def contract(*names: str) -> dict[str, Any]:
        return {"version": "1.0", "response_contract": {"output_format": {"required_fields": list(names)}}}

    document = spec({"t": {"behavioural_contract": contract("summary", "confidence")}})
    document["behavioural_contract"] = contract("confidence", "source")
    done = asked(document, "t", {}, {"source": "s"})
    assert done == {
        "error": "the output lacks 'confidence', 'summary', which the behavioural contract requires",
        "code": "CONTRACT_VIOLATION",
        "stage": "contract",
        "task": "t",
    }
    assert asked(document, "t", {}, {"source": 1, "summary": 2, "confidence": 3})["output"]["summary"] == 2


@pytest.mark.parametrize("target", [{}, {"task": "greet"}])
def test_a_task_is_delegated_by_a_path_beside_it_and_keeps_its_name(tmp_path: Path, target: dict[str, str]) -> None:
    written(tmp_path, "other.yaml", spec({"greet": {**GREET, "prompts": prompts("Other.", "Hi {{ name }}")}}))
    delegating = {"spec": "./other.yaml", **target, "output": fields("ignored", ignored="string")}
    done = asked(written(tmp_path, "main.yaml", spec({"greet": delegating})), "greet", NAME, HELLO)
    assert (done["task"], done["output"], done["prompt"]) == ("greet", HELLO, "Other.\n\nHi Alice")
    assert done["delegated_to"] == f"{tmp_path.resolve()}/other.yaml#greet"


def test_a_delegate_without_that_task_is_not_found(tmp_path: Path) -> None:
    written(tmp_path, "other.yaml", spec({"greet": GREET}))
    main = written(tmp_path, "main.yaml", spec({"leave": {"spec": "other.yaml"}}))
    done = asked(main, "leave")
    assert (done["code"], done["stage"], done["task"]) == ("TASK_NOT_FOUND", "delegation", "leave")


def test_the_callers_input_is_never_changed() -> None:
    given = {"turns": [{"a": 1}]}
    done = asked(spec({"first": {}, "last": {"depends_on": ["first"]}}), "last", given, {"turns": []}, "1")
    assert given == {"turns": [{"a": 1}]}
    assert done["chain"]["first"]["input"] == given
