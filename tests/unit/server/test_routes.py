"""The table of operations: what each takes, and the document that is made of it."""

from __future__ import annotations

import inspect
import json

import pytest

from commonplace.mcp.schema import problems
from commonplace.server.openapi import document
from commonplace.server.routes import OPERATIONS, Operation

EACH = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


@EACH
def test_every_argument_has_a_schema_that_is_checked(operation: Operation) -> None:
    required = operation.argument_schema["required"]
    assert len(list(problems({"colour": "red"}, operation.argument_schema))) == len(required) + 1
    assert operation.summary.endswith(".")


@EACH
def test_what_is_fixed_or_in_the_path_is_an_argument_of_the_call(operation: Operation) -> None:
    """A slip of the pen in the table would only be seen by whoever calls that route."""
    taken = set(inspect.signature(operation.function).parameters)
    in_path = {each for each in operation.path.split("/") if each.startswith("{")}
    assert set(operation.fixed) <= taken
    assert {each[1:-1] for each in in_path} - {"namespace"} <= taken


def test_no_two_operations_have_one_route() -> None:
    routes = [(each.verb, each.path) for each in OPERATIONS.values()]
    assert len(set(routes)) == len(routes)


def test_arguments_carry_the_words_of_the_docstring() -> None:
    search = OPERATIONS["search"]
    assert search.argument_schema["properties"]["query"] == {
        "type": "string",
        "description": "words, a question or an identifier, never a query language.",
    }
    assert search.argument_schema["required"] == ["query"]
    assert search.descriptions["tags"] == search.descriptions["phases"]


def test_a_version_is_taken_from_a_header_and_is_no_member_of_the_body() -> None:
    update = OPERATIONS["update_memory"]
    assert update.takes_version
    assert "if_version" not in update.argument_schema["properties"]
    names = [each["name"] for each in document()["paths"]["/v1/memories/{id}"]["patch"]["parameters"]]
    assert names == ["id", "namespace", "Idempotency-Key", "If-Match"]


def test_the_document_speaks_of_json_not_of_python() -> None:
    text = json.dumps(document())
    assert "None" not in text
    assert document()["openapi"] == "3.1.0"
    assert all(operation["summary"] for path in document()["paths"].values() for operation in path.values())
