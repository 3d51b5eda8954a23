"""Validate values against the subset of JSON Schema 2020-12 that the tools use.

A test checks that the tools' schemas use no other keyword, and that an `enum` holds texts. The semantics are those of
the validation vocabulary of draft 2020-12 (json-schema.org): 1.0 is an integer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_MAX_SHOWN = 60


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": ("an integer", lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer())),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
}


def problems(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Yield one sentence for each violation of a schema in a value."""
    name = path or "the value"
    kinds = _types(schema)
    if kinds and not any(_TYPES[kind][1](value) for kind in kinds):
        yield f"{name} is {show(value)}; give {' or '.join(_TYPES[kind][0] for kind in kinds)}"
        return
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        yield f"{name} is {show(value)}; give one of {', '.join(map(show, allowed))}"

    if _is_number(value):
        if value < schema.get("minimum", value):
            yield f"{name} is {show(value)}; the minimum is {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield f"{name} is {show(value)}; the maximum is {schema['maximum']}"
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{name} is a list of {len(value)}; the maximum is {schema['maxItems']}"
        for position, item in enumerate(value if "items" in schema else ()):
            yield from problems(item, schema["items"], f"{path}[{position}]")
    elif isinstance(value, dict):
        yield from _in_object(value, schema, f"{path}." if path else "")


def integers(value: Any, schema: Schema) -> Any:
    """Convert 5.0 to 5 wherever the schema asks for an integer, because models send both."""
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return {name: integers(member, parts.get(name, {})) for name, member in value.items()}
    if isinstance(value, list):
        return [integers(member, schema.get("items", {})) for member in value]
    return int(value) if isinstance(value, float) and "integer" in _types(schema) and value.is_integer() else value


def show(value: Any) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _in_object(value: Mapping[str, Any], schema: Schema, prefix: str) -> Iterator[str]:
    parts: Mapping[str, Schema] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            hint = parts.get(name, {}).get("description", "")
            yield f"{prefix}{name} is missing" + (f" ({hint})" if hint else "")
    for name, member in value.items():
        if name in parts:
            yield from problems(member, parts[name], f"{prefix}{name}")
        elif not schema.get("additionalProperties", True):
            remedy = f"; there are {', '.join(parts)}" if parts else "; there are none"
            yield f"{prefix}{name} is not known here{remedy}"


def _types(schema: Schema) -> Sequence[str]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)
