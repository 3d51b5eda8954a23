"""Convert results to JSON values, and parse strict JSON: no NaN or Infinity, no number too large for a float."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from os import PathLike
from typing import Any, Final, NoReturn

from commonplace.dataclasses import fields, is_dataclass


class View:
    """Base of frozen dataclasses whose JSON form is an object of their fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; times are ISO 8601 texts that end in Z."""
        return _fields(self)


def plain(value: Any) -> Any:
    """Return a result as JSON values: by `to_dict` or dataclass fields; paths become text, times ISO 8601."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        from commonplace.dates.time import iso

        return iso(value)
    return str(value) if isinstance(value, PathLike) else value


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def read_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text.

    Args:
        options: passed to `json.loads`.

    Raises:
        ValueError: the text is not strict JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, **options)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.20} is too large")
    return number


DECODER: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def subpath(path: str, relative: str) -> str:
    """Return `path` extended by the path `relative`."""
    return f"{path}{'' if not path or not relative or relative.startswith('[') else '.'}{relative}"


def dotted_path(parts: Iterable[str | int]) -> str:
    """Join keys and indices into a path: `tasks.t.input[2]`."""
    return reduce(subpath, (f"[{part}]" if isinstance(part, int) else str(part) for part in parts), "")
