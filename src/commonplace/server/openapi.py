"""The OpenAPI document of the HTTP API, made from the table of operations and the engine's docstrings."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import commonplace
from commonplace.server.operations import OPERATIONS, Operation, Schema
from commonplace.server.problems import MEDIA_TYPE, STATUSES, TYPE_PREFIX
from commonplace.server.responses import ResponseSchemas

_DESCRIPTION: Final = """A memory engine for AI agents. Each operation is a call of the Python interface.

Send `Authorization: Bearer TOKEN`, and `Content-Type: application/json` with every POST and PATCH. `namespace` chooses
one of the token's namespaces. An `Idempotency-Key` makes it safe to send a write again: within a day the first answer
comes back. Errors are problem documents (RFC 9457) whose `type` is `urn:commonplace:problem:NAME`."""
LINES_TYPE: Final = "application/x-ndjson"
_LINES: Final = {LINES_TYPE: {"schema": {"type": "string"}}}
_REFERENCE: Final = {"$ref": "#/components/responses/Problem"}
_ETAG: Final = {"ETag": {"description": "The version of the memory.", "schema": {"type": "string"}}}
_OWN_STATUSES: Final = (401, 403, 408, 409, 413, 415, 421, 422, 429)
_STATUSES: Final = sorted({*_OWN_STATUSES, *(status for status, _ in STATUSES.values() if status != 412)})


@cache
def document() -> dict[str, Any]:
    """Return the document; OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    schemas = ResponseSchemas()
    for operation in OPERATIONS.values():
        paths.setdefault(f"/v1{operation.path}", {})[operation.verb.lower()] = _operation(operation, schemas)
    text = {"type": "string"}
    kind = {"type": "string", "pattern": f"^{TYPE_PREFIX}"}
    details = {"type": kind, "title": text, "status": {"type": "integer"}, "detail": text, "remedy": text}
    problem = {"type": "object", "properties": details, "required": ["type", "title", "status", "detail"]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Commonplace",
            "version": commonplace.__version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(each.tag for each in OPERATIONS.values())],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": {
                    "description": "The request was refused or failed; `remedy` says what to do.",
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
                }
            },
            "schemas": {
                **{name: _described(each) for name, each in schemas.components.items()},
                "ProblemDetails": problem,
            },
        },
    }


def _operation(operation: Operation, schemas: ResponseSchemas) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done.", "content": _LINES}
    if not (operation.has_file and operation.verb == "GET"):
        success["content"] = {"application/json": {"schema": schemas.of(operation)}}
        if operation.has_version:
            success["headers"] = _ETAG
    form: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": _as_json(operation.summary),
        "description": _as_json(f"{operation.description}\n\nScope: `{operation.scope}`.".strip()),
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): success,
            **dict.fromkeys(map(str, (*_STATUSES, *([412] if operation.takes_version else []))), _REFERENCE),
        },
    }
    if operation.has_file and operation.verb == "POST":
        form["requestBody"] = {"required": True, "content": _LINES}
    elif operation.body_schema is not None:
        body = _described(operation.body_schema)
        is_required = bool(body["required"])
        form["requestBody"] = {"required": is_required, "content": {"application/json": {"schema": body}}}
    return form


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found = []
    for each in operation.parameters:
        if each.place != "body":
            is_required = each.place == "path" or each.is_required
            one = {"name": each.name, "in": each.place, "required": is_required, "schema": each.schema}
            described = operation.descriptions.get(each.name)
            found.append(one | ({"description": _as_json(described)} if described else {}))
    text, in_path = {"type": "string"}, "{namespace}" in operation.path
    place = "path" if in_path else "query"
    found.append({"name": "namespace", "in": place, "required": in_path, "schema": text})
    if operation.takes_key:
        key = {"type": "string", "minLength": 1, "maxLength": 200}
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": key})
    if operation.takes_version:
        described = "Change the memory only while its ETag is this one."
        one = {"name": "If-Match", "in": "header", "required": False, "schema": text}
        found.append(one | {"description": described})
    return found


def _described(schema: Schema) -> Schema:
    """Return the schema of an object whose descriptions speak of JSON."""
    properties = {
        name: one | ({"description": _as_json(one["description"])} if "description" in one else {})
        for name, one in schema.get("properties", {}).items()
    }
    return schema | ({"properties": properties} if properties else {})


def _as_json(text: str) -> str:
    """Return a docstring with JSON's words for Python's values."""
    words = {"None": "null", "True": "true", "False": "false"}
    return re.sub(r"\b(None|True|False)\b", lambda match: words[match[1]], text)
