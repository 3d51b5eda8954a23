"""The OpenAPI document of the HTTP API, generated from the table of operations and the engine's docstrings.

The JSON Schema of an operation's response follows from the annotations of the engine's call and of its result.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from os import PathLike
from typing import Any, Final, Literal

import commonplace
from commonplace.dataclasses import fields, is_dataclass
from commonplace.server.problems import MEDIA_TYPE, STATUSES, TYPE_PREFIX
from commonplace.server.routes import MAX_KEY_CHARACTERS, OPERATIONS, Operation, Parameter, Schema, section

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
    """Return the OpenAPI 3.1 document."""
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
        "tags": [{"name": tag} for tag in dict.fromkeys(op.tag for op in OPERATIONS.values())],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": {
                    "description": "The request was refused or failed; `remedy` says what to do.",
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
                }
            },
            "schemas": {**schemas.components, "ProblemDetails": problem},
        },
    }


def _operation(operation: Operation, schemas: ResponseSchemas) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done.", "content": _LINES}
    if not (operation.file and operation.verb == "GET"):
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
    if operation.file and operation.verb == "POST":
        form["requestBody"] = {"required": True, "content": _LINES}
    elif operation.body_schema is not None:
        body = operation.body_schema
        properties = {name: _described(prop, prop.get("description", "")) for name, prop in body["properties"].items()}
        content = {"application/json": {"schema": body | {"properties": properties}}}
        form["requestBody"] = {"required": bool(body["required"]), "content": content}
    return form


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    text, in_path = {"type": "string"}, "{namespace}" in operation.path
    parameters = [parameter for parameter in operation.parameters if parameter.kind != "body"]
    parameters.append(Parameter("namespace", "path" if in_path else "query", text, in_path))
    if operation.takes_key:
        key = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARACTERS}
        parameters.append(Parameter("Idempotency-Key", "header", key, is_required=False))
    if operation.takes_version:
        about = "Change the memory only while its ETag is this one."
        parameters.append(Parameter("If-Match", "header", text, is_required=False, description=about))
    return [
        _described(
            {"name": item.name, "in": item.kind, "required": item.is_required, "schema": item.schema}, item.description
        )
        for item in parameters
    ]


def _described(form: dict[str, Any], text: str) -> dict[str, Any]:
    return form | ({"description": _as_json(text)} if text else {})


def _as_json(text: str) -> str:
    """Return a docstring with JSON's words for Python's values."""
    words = {"None": "null", "True": "true", "False": "false"}
    return re.sub(r"\b(None|True|False)\b", lambda match: words[match[1]], text)


_MODULES: Final = (
    "engine.memory_api engine.review memory.injections search.result search.context search.retrieval_log "
    "consolidation.runner consolidation.undo erasure.receipt exchange.import_ health.examine health.golden"
).split()
"""The modules of which result types are imported only for type checkers."""
_UNIONS: Final = (typing.Union, types.UnionType)
_REST: Final = "..."


_FORMS: Final[Mapping[str, Mapping[str, str]]] = {
    name: {member.lstrip("-"): text for member, _, text in (entry.partition(": ") for entry in members.split("; "))}
    for name, members in {
        "SearchResult": (
            "query: str; also: list[str]; corrected_query: str | None; agent_type: str | None; phase: str | None; "
            "artifacts: list[ArtifactHit]; references: list[str]; confidence: HitScores; latency_ms: int; "
            "hits: list[Hit]; held_back: int; best_held_back: float | None; calibrated: bool; degraded: bool; "
            "method: Method; reranked_by: str | None; namespace: str; stages: list[Stage]; notices: list[str]"
        ),
        "ForgetReceipt": "...; at: datetime",
        "Hit": "...; reference: str; at: datetime | None",
        "HitScores": "overall: float; per_artifact: list[float]",
        "ArtifactHit": "path: str; type: str; score: float; content: str; metadata: ArtifactMetadata",
        "ArtifactMetadata": (
            "title: str; heading: str; lines: tuple[int, int] | None; tags: list[str]; phase: str | None; "
            "references: list[str]; summary: str; last_modified: datetime | None"
        ),
        "Context": (
            "task: str; agent_type: str | None; text: str; references: list[str]; tokens: int; left_out: int; "
            "hits: list[Hit]; degraded: bool; notices: list[str]; latency_ms: int"
        ),
        "MemoryPlace": "path: str; first_line: int; last_line: int; text: str",
        "Issue": (
            "...; -rest; -dependencies; -comments; created_at: datetime; updated_at: datetime; "
            "closed_at: datetime | None; retry_at: datetime | None; claimed_at: datetime | None; "
            "escalated_at: datetime | None; urgency: str; notes: dict[str, Any]; log: list[str]"
        ),
        "KnowledgeReport": "...; items: int",
        "Retrieval": "...; knowledge: list[str]; reranked_by: str | None",
        "RunReport": "...; results: dict[str, list[Result]]; lost?: list[str]",
        "MemoryPage": "memories: list[Memory]; next_cursor: str | None; counts: MemoryCounts",
        "Answered": "id: str; kind: str; answer: str; reason: str",
        "VectorStorePage": (
            "object: Literal['vector_store.search_results.page']; search_query: list[str]; "
            "data: list[VectorStoreHit]; has_more: bool; next_page: str | None"
        ),
        "VectorStoreHit": (
            "file_id: str; filename: str; score: float; attributes: dict[str, str | None]; "
            "content: list[VectorStoreText]"
        ),
        "VectorStoreText": "type: Literal['text']; text: str",
    }.items()
}
"""Members of JSON objects that differ from the fields of a class: `...` adds the fields, a minus removes one of them,
and a member with a question mark is optional."""

_RETURNED: Final[Mapping[str, str]] = {
    "list_memories": "MemoryPage",
    "forget": "ForgetReceipt",
    "why": "Receipt",
    "memory_place": "MemoryPlace",
    "index": "IndexReport",
    "list_issues": "list[Issue]",
    "get_issue": "Issue",
    "answer_question": "Answered",
    "search_vector_store": "VectorStorePage",
}
"""Result types of operations whose functions are annotated as returning dictionaries."""

_SIMPLE: Final[Mapping[Any, Schema]] = {
    Any: {},
    None: {"type": "null"},
    type(None): {"type": "null"},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
}


class ResponseSchemas:
    """Builds the schemas of responses, and collects in `components` the schemas to which they refer."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def of(self, operation: Operation) -> Schema:
        """Return the schema of the JSON object that an operation returns."""
        function = inspect.unwrap(operation.function)
        text = _RETURNED.get(operation.id) or str(inspect.signature(function).return_annotation)
        kind = _evaluate(text, function.__module__)
        if operation.member:
            return _holding(operation.member, self._schema(kind))
        responses = []
        for option in typing.get_args(kind) if typing.get_origin(kind) in _UNIONS else (kind,):
            schema = self._schema(option)
            if "$ref" not in schema:
                schema = _holding("items" if schema.get("type") == "array" else "result", schema)
            responses.append(schema)
        return responses[0] if len(responses) == 1 else {"anyOf": responses}

    def _schema(self, kind: Any) -> Schema:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind in _SIMPLE:
            schema = dict(_SIMPLE[kind])
        elif origin is None:
            schema = {"type": "string"} if issubclass(kind, PathLike) else self._reference(kind)
        elif origin is Literal:
            schema = {"enum": list(arguments)}
        elif origin in _UNIONS:
            schema = {"anyOf": [self._schema(option) for option in arguments]}
        elif issubclass(origin, Mapping):
            schema = {"type": "object", "additionalProperties": self._schema(arguments[1])}
        elif origin is tuple and ... not in arguments:
            items = [self._schema(argument) for argument in arguments]
            schema = {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        else:
            schema = {"type": "array", "items": self._schema(arguments[0])}
        return schema

    def _reference(self, kind: type) -> Schema:
        name = kind.__name__
        if name not in self.components:
            self.components[name] = {}  # it may refer to itself
            subclasses: list[type] = sorted(kind.__subclasses__(), key=lambda subclass: subclass.__name__)
            if hasattr(kind, "model_fields") and subclasses:
                self.components[name] = {"anyOf": [self._reference(subclass) for subclass in subclasses]}
            else:
                members = dict(_members(kind))
                descriptions = section(kind, "Attributes") if is_dataclass(kind) else {}
                properties = {
                    member.rstrip("?"): _described(self._schema(annotation), descriptions.get(member, ""))
                    for member, annotation in members.items()
                }
                required = [member for member in members if not member.endswith("?")]
                self.components[name] = {"type": "object", "properties": properties, "required": required}
        return {"$ref": f"#/components/schemas/{name}"}


def _members(kind: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(kind, "model_fields"):
        hints = typing.get_type_hints(kind)
        yield from ((name, hints[name]) for name in kind.model_fields)
        return
    form = _FORMS.get(kind.__name__, {_REST: ""})
    if _REST in form:
        for field in fields(kind):
            if field.name not in form and f"{field.name}?" not in form:
                owner = next(base for base in kind.__mro__ if field.name in inspect.get_annotations(base))
                yield field.name, _evaluate(field.type, owner.__module__)
    yield from ((name, _evaluate(text, kind.__module__)) for name, text in form.items() if text)


def _holding(member: str, schema: Schema) -> Schema:
    return {"type": "object", "properties": {member: schema}, "required": [member]}


def _evaluate(text: Any, module: str) -> Any:
    if not isinstance(text, str):
        return text
    return eval(text, {**_namespace(), **vars(sys.modules[module])})  # noqa: S307 - annotations of ours


@cache
def _namespace() -> dict[str, Any]:
    """Return the names that an annotation may use besides those of its own module."""
    modules = [importlib.import_module(f"commonplace.{name}") for name in _MODULES]
    names = {name: value for module in modules for name, value in vars(module).items()}
    return {**{name: type(name, (), {}) for name in _FORMS}, **names, "views": sys.modules["commonplace.graph.views"]}
