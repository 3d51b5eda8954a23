"""Validate values and schemas with JSON Schema, bounded in steps and time.

Schemas are untrusted: they cannot access network or files, and recursion, steps and patterns are bounded. Patterns are
matched by the package regex, which has a timeout and lets other threads run; Python's own expressions have neither.
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
from commonplace.formats.json_values import dotted, joined
from commonplace.redaction import redact

MAX_STEPS: Final = 500_000
"""Keywords applied in one check: forty nested references could expand to billions."""
MAX_FAULTS: Final = 1_000
"""Faults reported for one value: a million wrong items would take a kilobyte each."""
MAX_DURATION_S: Final = 2.0
"""Seconds that the patterns of a schema may take in one check."""
MAX_PATTERN: Final = 10_000
"""Characters of a pattern."""
MAX_REPETITIONS: Final = 100_000
"""The product of the counts in a pattern, as in `(a{10}){10}`: the package writes them out, a million take 290 MB."""
_COUNTS: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_MAX_LENGTH: Final = 200
"""Characters of a message; jsonschema quotes whole values, which may be large and private."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where: a dotted path from the root of what was checked, "" for the root itself."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def faults_of(value: object, schema: Mapping[str, Any]) -> list[Fault]:
    """Return what makes a value break a schema, in the order of the paths; draft 7, as the Open Agent Spec has it.

    Of very many faults the first that are found are returned.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        # An empty registry: without one, a reference to an address would be fetched.
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
    return sorted((_told(error) for error in errors), key=lambda fault: (fault.path, fault.message))


class _TooLongError(Exception):
    """The steps of one check are used up."""


def _validator() -> Callable[..., Any]:
    """Return the class of validators of draft 7 that take bounded steps and time, with all their parts together."""
    left = count(MAX_STEPS, -1)
    deadline = time.monotonic() + MAX_DURATION_S
    among_others = Draft7Validator.VALIDATORS["additionalProperties"]

    def pattern(validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not _matches(wanted, value, deadline):
            yield ValidationError(f"{value!r} does not match {wanted!r}")

    def pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
        for wanted, schema in patterns.items() if validator.is_type(value, "object") else ():
            for name, each in value.items():
                if _matches(wanted, name, deadline):
                    yield from validator.descend(each, schema, path=name, schema_path=wanted)

    def additional_properties(validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        patterns = schema.get("patternProperties", {})
        if validator.is_type(value, "object") and patterns:
            known = schema.get("properties", {})
            value = {
                name: each
                for name, each in value.items()
                if name not in known and not any(_matches(wanted, name, deadline) for wanted in patterns)
            }
            schema = {}
        yield from among_others(validator, allowed, value, schema)

    def counted(apply: Callable[..., Any]) -> Callable[..., Any]:
        def applied(*arguments: Any) -> Any:
            if next(left) <= 0:
                raise _TooLongError
            return apply(*arguments)

        return applied

    bounded = {"patternProperties": pattern_properties, "additionalProperties": additional_properties}
    keywords = {**Draft7Validator.VALIDATORS, "pattern": pattern, **bounded}
    made: Callable[..., Any] = extend(  # type: ignore[no-untyped-call]
        Draft7Validator, {name: counted(apply) for name, apply in keywords.items()}
    )
    return made


def _matches(pattern: str, text: str, deadline: float) -> bool:
    counts = [max(map(int, filter(None, found)), default=1) for found in _COUNTS.findall(pattern)]
    if len(pattern) > MAX_PATTERN or math.prod(map(float, filter(None, counts))) > MAX_REPETITIONS:
        raise ValueError(f"a pattern has more than {MAX_PATTERN:,} characters or {MAX_REPETITIONS:,} repetitions")
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    try:
        return regex.search(pattern, text, timeout=left, concurrent=True) is not None
    except regex.error as error:
        raise ValueError(f"a pattern cannot be read: {error}") from error


def schema_faults(schema: object, path: str) -> list[Fault]:
    """Return why something is not JSON schema; `path` is its own place."""
    return [Fault(joined(path, fault.path), fault.message) for fault in faults_of(schema, Draft7Validator.META_SCHEMA)]


def document_schema() -> dict[str, Any]:
    """Return the JSON schema of a spec document."""
    text = files("commonplace.specs").joinpath("oas.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _told(error: ValidationError) -> Fault:
    path = dotted(error.absolute_path)
    if error.validator == "required":
        instance: Any = error.instance
        names: Any = error.validator_value
        missing = [str(name) for name in names if name not in instance]
        # jsonschema gives one error for each name that is missing, with the name in its message.
        name = next((name for name in missing if repr(name) in error.message), missing[0])
        return Fault(joined(path, name), "is missing")
    return Fault(path, _cut(error.message))


def _cut(message: str) -> str:
    line = " ".join(redact(message).text.split())
    return line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH // 2]} … {line[-_MAX_LENGTH // 2 :]}"
