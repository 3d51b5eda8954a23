"""Validate values and schemas with JSON Schema, bounded in steps and time.

Schemas are untrusted: they cannot access network or files, and recursion, steps and patterns are bounded. The package
`regex` matches patterns, since it has a timeout and releases the GIL; Python's `re` does neither.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from itertools import count, islice
from typing import Any, Final

import regex
from jsonschema import Draft7Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from commonplace.dataclasses import dataclass
from commonplace.formats.json_values import dotted_path, subpath
from commonplace.redaction import redact

MAX_STEPS: Final = 500_000
"""Maximum keywords applied in one check: forty nested references could expand to billions."""
MAX_FAULTS: Final = 1_000
"""Maximum faults reported for one value: a million wrong items would take a kilobyte each."""
MAX_DURATION_S: Final = 2.0
"""Seconds that all patterns of a schema may take in one check."""
MAX_PATTERN: Final = 10_000
"""Maximum length of a pattern in characters."""
MAX_REPETITIONS: Final = 100_000
"""Maximum product of the counts in a pattern, as in `(a{10}){10}`: `regex` expands them, a million take 290 MB."""
_COUNTS: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_MAX_LENGTH: Final = 200
"""Maximum length of a message in characters; jsonschema quotes whole values, which may be large and private."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and its location: a dotted path from the root of the checked value, "" for the root itself."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def faults_of(value: object, schema: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of a value by a JSON Schema of draft 7, which Open Agent Spec uses, sorted by path.

    At most `MAX_FAULTS` are returned, the first ones found.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        # An empty registry: by default, references to addresses would be fetched.
        validator = _validator()(schema, registry=Registry(), format_checker=FormatChecker(("regex",)))
        errors = list(islice(validator.iter_errors(value), MAX_FAULTS))
    except Unresolvable as error:
        return [Fault("", f"the schema refers to {error.ref!r}, which is not in it")]
    except (RecursionError, _TooLongError):
        return [Fault("", "the schema, or what it is asked about, has no end")]
    except TimeoutError:
        return [Fault("", f"the schema's patterns take more than {MAX_DURATION_S:.0f} s")]
    except (ValueError, ArithmeticError) as error:
        return [Fault("", f"the schema cannot be applied: {_cut(str(error))}")]
    return sorted((_fault(error) for error in errors), key=lambda fault: (fault.path, fault.message))


class _TooLongError(Exception):
    """A check exceeds `MAX_STEPS`."""


def _validator() -> Callable[..., Any]:
    """Return a draft 7 validator class whose instances share one budget of steps and time."""
    steps_left = count(MAX_STEPS, -1)
    deadline = time.monotonic() + MAX_DURATION_S
    additional = Draft7Validator.VALIDATORS["additionalProperties"]

    def pattern(validator: Any, regexp: str, value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not _matches(regexp, value, deadline):
            yield ValidationError(f"{value!r} does not match {regexp!r}")

    def pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
        for regexp, schema in patterns.items() if validator.is_type(value, "object") else ():
            for name, item in value.items():
                if _matches(regexp, name, deadline):
                    yield from validator.descend(item, schema, path=name, schema_path=regexp)

    def additional_properties(validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        patterns = schema.get("patternProperties", {})
        if validator.is_type(value, "object") and patterns:
            properties = schema.get("properties", {})
            value = {
                name: item
                for name, item in value.items()
                if name not in properties and not any(_matches(regexp, name, deadline) for regexp in patterns)
            }
            schema = {}
        yield from additional(validator, allowed, value, schema)

    def count_steps(apply: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            if next(steps_left) <= 0:
                raise _TooLongError
            return apply(*arguments)

        return counted

    bounded = {"patternProperties": pattern_properties, "additionalProperties": additional_properties}
    keywords = {**Draft7Validator.VALIDATORS, "pattern": pattern, **bounded}
    validator_class: Callable[..., Any] = extend(  # type: ignore[no-untyped-call]
        Draft7Validator, {name: count_steps(apply) for name, apply in keywords.items()}
    )
    return validator_class


def _matches(pattern: str, text: str, deadline: float) -> bool:
    counts = [max(map(int, filter(None, groups)), default=1) for groups in _COUNTS.findall(pattern)]
    if len(pattern) > MAX_PATTERN or math.prod(map(float, filter(None, counts))) > MAX_REPETITIONS:
        raise ValueError(f"a pattern has more than {MAX_PATTERN:,} characters or {MAX_REPETITIONS:,} repetitions")
    seconds_left = deadline - time.monotonic()
    if seconds_left <= 0:
        raise TimeoutError
    try:
        return regex.search(pattern, text, timeout=seconds_left, concurrent=True) is not None
    except regex.error as error:
        raise ValueError(f"a pattern cannot be read: {error}") from error


def schema_faults(schema: object, path: str) -> list[Fault]:
    """Return the faults of a JSON Schema, with paths below `path`, its own location."""
    return [Fault(subpath(path, fault.path), fault.message) for fault in faults_of(schema, Draft7Validator.META_SCHEMA)]


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec document."""
    text = files("commonplace.specs").joinpath("oas.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _fault(error: ValidationError) -> Fault:
    path = dotted_path(error.absolute_path)
    if error.validator == "required":
        instance: Any = error.instance
        names: Any = error.validator_value
        missing = [str(name) for name in names if name not in instance]
        # jsonschema reports each missing name as an error, with the name in its message.
        name = next((name for name in missing if repr(name) in error.message), missing[0])
        return Fault(subpath(path, name), "is missing")
    return Fault(path, _cut(error.message))


def _cut(message: str) -> str:
    line = " ".join(redact(message).text.split())
    return line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH // 2]} … {line[-_MAX_LENGTH // 2 :]}"
