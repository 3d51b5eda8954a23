"""Whether what a server answers is what its OpenAPI document says."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from commonplace.server.openapi import LINES_TYPE, document
from commonplace.server.routes import OPERATIONS, Operation

_ROUTES = [(each, re.compile("/v1" + re.sub(r"{\w+}", "[^/]*", each.path))) for each in OPERATIONS.values()]


def operation_of(request: httpx.Request) -> Operation | None:
    """Return the operation that a request is for; a fixed path goes before one with arguments."""
    path = request.url.raw_path.partition(b"?")[0].decode()
    found = [each for each, route in _ROUTES if each.verb == request.method and route.fullmatch(path)]
    return min(found, key=lambda each: each.path.count("{"), default=None)


def check(response: httpx.Response) -> None:
    """Hold an answer against the document: its status, its content type, its members and no others."""
    operation = operation_of(response.request)
    if operation is None:
        return
    response.read()
    answers, status = _answers(operation), str(response.status_code)
    assert status in answers, (operation.id, status, response.text)
    kind = response.headers.get("content-type", "")
    assert kind in answers[status]["content"], (operation.id, kind)
    if kind != LINES_TYPE:
        found = _validator(operation.id, status).iter_errors(response.json())
        wrong = [f"{each.json_path}: {each.message}" for each in found]
        assert not wrong, (operation.id, wrong[:3], response.text[:2_000])


def _answers(operation: Operation) -> dict[str, Any]:
    answers: dict[str, Any] = document()["paths"][f"/v1{operation.path}"][operation.verb.lower()]["responses"]
    problem = document()["components"]["responses"]["Problem"]
    return {status: problem if "$ref" in each else each for status, each in answers.items()}


@cache
def _validator(operation: str, status: str) -> Draft202012Validator:
    (content,) = _answers(OPERATIONS[operation])[status]["content"].values()
    closed = _closed({**content["schema"], "components": document()["components"]})
    return Draft202012Validator(closed)


def _closed(schema: Any) -> Any:
    """Return a schema whose objects have no members but those that it names."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_object = schema.get("type") == "object" and "properties" in schema
    return {name: _closed(each) for name, each in schema.items()} | (
        {"additionalProperties": False} if is_object else {}
    )
