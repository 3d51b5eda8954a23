"""Read a spec that somebody else wrote: a small regular file of plain values. It does not know what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.formats.documents import parse_document, read_document
from commonplace.formats.guarded_yaml import DEEPEST, LONG_NUMBER, is_long_number
from commonplace.specs.faults import SpecError

MAX_BYTES: Final = 1024 * 1024
_WHAT: Final = "a spec"


def read_spec(file: Path) -> Mapping[str, Any]:
    """Return the document in a file of YAML or JSON.

    Raises:
        SpecError: SPEC_LOAD_ERROR: it is no such file, too large, no UTF-8, or `parse_spec` refuses it.
    """
    try:
        document = read_document(file, MAX_BYTES, _WHAT)
    except UsageError as error:
        raise refused(str(error)) from None
    return plain(document, str(file))


def parse_spec(data: bytes, name: str) -> Mapping[str, Any]:
    """Return the document that some bytes hold.

    Aliases, deep nesting, keys that occur twice, and values that JSON has no word for are refused.

    Args:
        name: where they come from, for messages.

    Raises:
        SpecError: SPEC_LOAD_ERROR.
    """
    try:
        document = parse_document(data, name, MAX_BYTES, _WHAT)
    except UsageError as error:
        raise refused(str(error)) from None
    return plain(document, name)


def plain(document: object, name: str) -> Mapping[str, Any]:
    """Return a document that was parsed already, after checking that it is a mapping of plain values.

    Raises:
        SpecError: SPEC_LOAD_ERROR; the message names the path of the fault.
    """
    if document is None:
        raise refused(f"{name} is empty; it must be a mapping")
    if not isinstance(document, Mapping):
        raise refused(f"{name} must be a mapping, not {type(document).__name__}")
    for path, problem in _strange(document, "", 0):
        raise refused(f"{name}, {path or 'the document'}: {problem}")
    return document


def refused(message: str, stage: str = "load", task: str | None = None) -> SpecError:
    """Return the fault of a spec that cannot be loaded."""
    return SpecError(message, "SPEC_LOAD_ERROR", stage, task)


def _strange(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the path of what JSON could not hold, with the reason."""
    if depth > DEEPEST:
        yield path, f"nested too deeply, more than {DEEPEST} levels"
    elif is_long_number(value):
        yield path, LONG_NUMBER
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                shown = LONG_NUMBER if is_long_number(key) else f"the key {key!r} is no text; put it in quotes"
                yield path, shown
                continue
            yield from _strange(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _strange(item, f"{path}[{place}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no number of JSON"
    elif value is not None and not isinstance(value, str | int | float):
        yield path, f"{value!r} is a {type(value).__name__}, which JSON does not have; put it in quotes"
