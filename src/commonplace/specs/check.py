"""Validate values and schemas with JSON Schema, bounded in steps and time.

Schemas are untrusted: they cannot access network or files, and recursion and steps are bounded.

Python's regular expressions have no timeout and hold the GIL, so schemas with patterns are checked in another process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_STEPS: Final = 500_000
"""Keywords that are applied in one check: some forty references to references could stand for billions."""
MAX_FAULTS: Final = 1_000
"""Faults that are told of one value: each of a million wrong items would have one, at a kilobyte."""
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
    import re

    from jsonschema import FormatChecker
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        # An empty registry: without one, a reference to an address would be fetched.
        validator = _bounded()(schema, registry=Registry(), format_checker=FormatChecker(("regex",)))
        errors = list(islice(validator.iter_errors(value), MAX_FAULTS))
    except Unresolvable as error:
        return [Fault("", f"the schema refers to {error.ref!r}, which is not in it")]
    except (RecursionError, _TooLongError):
        return [Fault("", "the schema, or what it is asked about, has no end")]
    except re.error as error:
        return [Fault("", f"the schema has a pattern that cannot be read: {error}")]
    except (ValueError, ArithmeticError) as error:
        return [Fault("", f"the schema cannot be applied: {_cut(str(error))}")]
    return sorted((_told(error) for error in errors), key=lambda fault: (fault.path, fault.message))


class _TooLongError(Exception):
    """The steps of one check are used up."""


def _bounded() -> Callable[..., Any]:
    """Return the class of validators of draft 7 whose instances and their parts take a bounded number of steps."""
    from jsonschema import Draft7Validator
    from jsonschema.validators import extend

    left = count(MAX_STEPS, -1)

    def counted(apply: Callable[..., Any]) -> Callable[..., Any]:
        def applied(*arguments: Any) -> Any:
            if next(left) <= 0:
                raise _TooLongError
            return apply(*arguments)

        return applied

    made: Callable[..., Any] = extend(  # type: ignore[no-untyped-call]
        Draft7Validator, {name: counted(apply) for name, apply in Draft7Validator.VALIDATORS.items()}
    )
    return made


def schema_faults(schema: object, path: str) -> list[Fault]:
    """Return why something is not JSON schema; `path` is its own place."""
    from jsonschema import Draft7Validator

    return [Fault(joined(path, fault.path), fault.message) for fault in faults_of(schema, Draft7Validator.META_SCHEMA)]


def document_schema() -> dict[str, Any]:
    """Return the JSON schema of a spec document."""
    from importlib.resources import files

    text = files("commonplace.specs").joinpath("oas.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def joined(path: str, rest: str) -> str:
    """Return the path of what is at `rest` below `path`."""
    return f"{path}{'' if not path or not rest or rest.startswith('[') else '.'}{rest}"


def _told(error: ValidationError) -> Fault:
    path = ""
    for part in error.absolute_path:
        path = f"{path}[{part}]" if isinstance(part, int) else joined(path, str(part))
    if error.validator == "required":
        instance: Any = error.instance
        names: Any = error.validator_value
        missing = [str(name) for name in names if name not in instance]
        # jsonschema gives one error for each name that is missing, with the name in its message.
        name = next((name for name in missing if repr(name) in error.message), missing[0])
        return Fault(joined(path, name), "is missing")
    return Fault(path, _cut(error.message))


def _cut(message: str) -> str:
    from commonplace.redaction import redact

    line = " ".join(redact(message).text.split())
    return line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH // 2]} … {line[-_MAX_LENGTH // 2 :]}"


MAX_DURATION_S: Final = 10.0
"""Seconds for a check, the start of its process with it."""
_PATTERNS: Final = frozenset({"pattern", "patternProperties"})
_CODE: Final = "from commonplace.specs.check import main; main()"


def foreign_faults_of(value: object, schema: Mapping[str, object]) -> list[Fault]:
    """Return what makes a value break a schema that somebody else wrote; see `faults_of`."""
    return _faults_apart(value, schema) if _has_patterns(schema) else faults_of(value, schema)


def _has_patterns(schema: object) -> bool:
    if isinstance(schema, Mapping):
        return not _PATTERNS.isdisjoint(schema) or any(map(_has_patterns, schema.values()))
    return isinstance(schema, list) and any(map(_has_patterns, schema))


def _faults_apart(value: object, schema: Mapping[str, object]) -> list[Fault]:
    import subprocess

    # The working directory, where anybody's modules may lie, is no place to import from.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _CODE]
    try:
        done = subprocess.run(
            command,
            input=json.dumps([value, schema]),
            capture_output=True,
            text=True,
            timeout=MAX_DURATION_S,
            check=True,
        )
        # The last line: an environment may greet whoever starts.
        return [Fault(**told) for told in json.loads(done.stdout.splitlines()[-1])]
    except subprocess.TimeoutExpired:
        return [Fault("", f"the schema's patterns take more than {MAX_DURATION_S:.0f} s")]
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError) as error:
        return [Fault("", f"the schema's patterns cannot be checked here: {type(error).__name__}")]


def main() -> None:
    """Answer what standard input asks, on standard output."""
    value, schema = json.load(sys.stdin)
    sys.stdout.write(f"\n{json.dumps([asdict(fault) for fault in faults_of(value, schema)])}\n")
