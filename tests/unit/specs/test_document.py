"""Specs that somebody else wrote: versions, faults with their places, and what would hold up or lead astray."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.specs.runner import RETRIEVER, ROOT, asked, fields, spec, written

from commonplace.settings import Settings
from commonplace.specs import Fault, check, run, validate
from commonplace.specs.check import MAX_FAULTS, faults_of

HEAD = "agent: {name: a, description: b}\nintelligence: {type: llm, engine: openai, model: m}\n"
BODY = f'open_agent_spec: "1.4.0"\n{HEAD}'


def error(file: Path) -> str:
    done = run(file, None, {}, lambda system, user: "{}", Settings(), environ={})
    assert (done["code"], done["stage"]) == ("SPEC_LOAD_ERROR", "load"), done
    message: str = done["error"]
    return message


def test_the_contracts_spec_is_valid_and_shipped_as_it_is() -> None:
    verdict = validate(RETRIEVER)
    assert (verdict.name, verdict.version, verdict.tasks) == ("memory-retriever", "1.4.0", ("retrieve",))
    assert verdict.is_valid
    assert not verdict.notes


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.oas.yaml")), ids=lambda path: path.name)
def test_every_example_is_valid(example: Path) -> None:
    assert validate(example).faults == ()


@pytest.mark.parametrize("version", ["1.0.4", "1.0.9", "1.2.6", "1.4", "1.4.0", "1.5.1", "1.6.0", "1.6.99", 1.4, 1.6])
def test_versions_from_1_0_4_to_1_6_load_in_both_spellings(version: Any) -> None:
    assert asked({**spec({"t": {}}), "open_agent_spec": version}, "t", {}, "1")["output"] == 1


@pytest.mark.parametrize(
    "version", ["1.0.3", "1.0", 1, "0.9.0", "1.7.0", "1.10.0", "2.0.0", "1.4.0-beta", "", "latest"]
)
def test_other_versions_are_refused_with_those_that_are_read(version: Any) -> None:
    done = asked({**spec({"t": {}}), "open_agent_spec": version}, "t", {}, "1")
    assert done["code"] == "SPEC_LOAD_ERROR"
    assert "from 1.0.4 to 1.6" in done["error"]


HUGE = 16**5_000


@pytest.mark.parametrize(
    "more",
    [
        {"open_agent_spec": HUGE},
        {"x": [HUGE]},
        {HUGE: "x"},
        {"tasks": {"t": {"description": "t", "timeout": HUGE}}},
        {"tasks": {"t": {"description": "t", "input": {"properties": {"n": {"default": HUGE}}}}}},
    ],
)
def test_a_number_that_nobody_could_write_is_a_fault_of_the_document(more: dict[Any, Any], tmp_path: Path) -> None:
    """Python reads it in hexadecimal digits, and has no text for it: not for a message, a prompt or an envelope."""
    document = {**spec({"t": {}}), **more}
    done = asked(document, "t", {}, "1")
    assert (done["code"], done["stage"]) == ("SPEC_LOAD_ERROR", "load")
    assert "a number has more than 4,300 digits" in done["error"]


@pytest.mark.parametrize("version", [f"0x{'f' * 5_000}", "9" * 5_000])
def test_such_a_number_in_a_file_is_one_too(version: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"open_agent_spec: {version}\n", encoding="utf-8")
    (fault,) = validate(file).faults
    assert "a number has more than 4,300 digits" in fault.message
    assert asked(file, None, {})["code"] == "SPEC_LOAD_ERROR"


def test_unknown_keys_and_any_role_are_let_pass() -> None:
    document = spec({"t": {"color": "red"}}, x_ours={"a": 1}, agent={"name": "n", "description": "d", "role": "memory"})
    assert asked(document, "t", {}, "1")["output"] == 1


def test_every_fault_is_told_with_its_path(tmp_path: Path) -> None:
    document = spec(
        {
            "a": {"input": {"properties": {"q": {"type": "text"}}}, "response_format": "xml"},
            "b": {"output": {"type": "object", "properties": {"z": {"type": "string", "pattern": "("}}}},
            "c d": {},
        },
        agent={"name": ""},
    )
    del document["tasks"]["b"]["description"]
    found = {fault.path: fault.message for fault in validate(written(tmp_path, "s.yaml", document)).faults}
    assert sorted(found) == [
        "agent.description",
        "agent.name",
        "tasks",
        "tasks.a.input.properties.q.type",
        "tasks.a.response_format",
        "tasks.b.description",
        "tasks.b.output.properties.z.pattern",
    ]
    assert found["tasks.b.description"] == "is missing"


def test_a_circle_and_a_dependency_that_is_no_task_are_faults_of_a_document(tmp_path: Path) -> None:
    document = spec({"a": {"depends_on": ["b"]}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["x"]}})
    assert validate(written(tmp_path, "s.yaml", document)).faults == (
        Fault("tasks.a.depends_on", "tasks depend on each other: a → b → a"),
        Fault("tasks.b.depends_on", "tasks depend on each other: b → a → b"),
        Fault("tasks.c.depends_on", "'c' depends on 'x', which is no task of the spec"),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{BODY}tasks: &t\n  a: {{description: x}}\nmore: *t\n", "aliases are not allowed"),
        (
            "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n" + BODY,
            "aliases are not allowed",
        ),
        (f"{BODY}tasks: {'[' * 100}{']' * 100}\n", "nested too deeply"),
        (f"{BODY}tasks:\n  a: {{description: x}}\n  a: {{description: y}}\n", "'a' occurs twice, again in line 6"),
        (f"{BODY}tasks: {{a: {{description: x, description: y}}}}\n", "'description' occurs twice, again in line 4"),
        (
            f"{BODY}tasks: {{a: {{description: 2024-05-01}}}}\n",
            "tasks.a.description: datetime.date(2024, 5, 1) is a date",
        ),
        (f"{BODY}tasks: {{1: {{description: x}}}}\n", "tasks: the key 1 is not text"),
        (f"{BODY}tasks: {{a: {{description: x, timeout: .inf}}}}\n", "tasks.a.timeout: inf is not a number of JSON"),
        (f"{BODY}tasks: !!python/object/apply:os.system [id]\n", "could not determine a constructor"),
        ("- a\n- b\n", "must be a mapping, not list"),
        ("", "is empty; it must be a mapping"),
        ("a: [", "is not readable as YAML"),
        ("\t\x00", "is not readable as YAML"),
    ],
    ids=range(13),
)
def test_a_document_that_would_hold_up_or_mislead_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text, encoding="utf-8")
    assert told in error(file)
    assert told in str(validate(file).faults[0])


def test_a_file_that_is_no_small_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    assert error(file) == f"there is no file {file}; check the path"
    file.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8" in error(file)
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    assert "more than 1,048,576 bytes" in error(file)
    assert "is a directory" in error(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in error(pipe)


@pytest.mark.parametrize("spec", [None, 3, ["a"], b"a.yaml", "a\0b", ""])
def test_what_is_neither_a_file_nor_a_document_is_refused(spec: Any) -> None:
    assert asked(spec)["code"] == "SPEC_LOAD_ERROR"


def test_a_schema_that_reaches_out_or_has_no_end_reaches_nothing() -> None:
    """A schema library fetches references of its own accord where it is let."""
    far = {**fields(x="string"), "allOf": [{"$ref": "http://127.0.0.1:9/schema.json"}]}
    done = asked(spec({"t": {"input": far}}), "t", {"x": "y"}, "1")
    assert done["code"] == "CHAIN_INPUT_MISSING"
    assert "http://127.0.0.1:9/schema.json" in done["error"]
    endless = {"type": "object", "allOf": [{"$ref": "#"}]}
    assert "has no end" in asked(spec({"t": {"input": endless}}), "t", {"x": "y"}, "1")["error"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"sandbox": {"tools": {"allow": []}}}, "`sandbox`"),
        ({"tools": ["search"]}, "`tools`"),
        ({"multi_step": True}, "`multi_step`"),
    ],
)
def test_what_would_not_be_kept_is_refused_before_any_call(tmp_path: Path, more: dict[str, Any], told: str) -> None:
    """A promise of safety that nobody keeps is worse than an error."""
    document = spec({"first": {}, "t": {"depends_on": ["first"], **more}})
    done = asked(document, "t", {}, generator=lambda system, user: pytest.fail("asked"))
    assert (done["code"], done["stage"], done["task"]) == ("RUN_ERROR", "run", "t")
    assert told in done["error"]
    verdict = validate(written(tmp_path, "s.yaml", document))
    assert verdict.is_valid
    assert [note.path for note in verdict.notes] == ["tasks.t"]


def test_without_a_name_the_first_task_that_can_run_is_taken() -> None:
    document = spec({"no": {"tools": ["x"]}, "yes": {}})
    assert asked(document, None, {}, "1")["task"] == "yes"


def test_a_secret_in_a_refused_document_is_not_told() -> None:
    key = "sk-proj-4f9KzQ81mXv2Lr7Tn6Wb3Yc5Hd0Js8PaUeRgQw"
    document = {**spec({"t": {}}), "intelligence": {"type": "llm", "engine": key, "model": "m"}}
    done = asked(document, "t")
    assert done["code"] == "SPEC_LOAD_ERROR"
    assert key not in done["error"]


def refused_input(schema: dict[str, Any], values: Any) -> str:
    done = asked(spec({"t": {"input": {"type": "object", **schema}}}), "t", values, "1")
    assert done["code"] == "CHAIN_INPUT_MISSING", done
    message: str = done["error"]
    return message


def test_a_schema_whose_references_stand_for_billions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each doubles the next: forty lines of them would take a year."""
    monkeypatch.setattr(check, "MAX_STEPS", 5_000)
    doubled = {f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"definitions": {**doubled, "d40": {}}, "allOf": [{"$ref": "#/definitions/d0"}]}
    assert "has no end" in refused_input(schema, {})


def test_of_very_many_faults_the_first_are_told() -> None:
    value = [1] * (2 * MAX_FAULTS)
    assert len(faults_of(value, {"items": {"type": "string"}})) == MAX_FAULTS


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"$id": "http://[::x", "allOf": [{"$ref": "a"}]}, "cannot be applied: Invalid IPv6 URL"),
        ({"allOf": [{"properties": {"b": {"multipleOf": 0.5}}}]}, "cannot be applied: int too large"),
    ],
)
def test_a_schema_that_can_only_fail_is_a_fault(schema: dict[str, Any], told: str) -> None:
    assert told in refused_input(schema, {"b": 10**400})


def test_a_pattern_that_nothing_can_read_is_a_fault_of_the_document() -> None:
    endless = {"allOf": [{"properties": {"a": {"pattern": "a{99999999999}"}}}]}
    done = asked(spec({"t": {"input": {"type": "object", **endless}}}), "t")
    assert done["code"] == "SPEC_LOAD_ERROR"
    assert "the repetition number is too large" in done["error"]
