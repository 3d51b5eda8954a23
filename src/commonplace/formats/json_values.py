"""Results as values that JSON has; JSON read as the standard has it: no NaN, no number that no float can hold."""

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
    """A frozen dataclass whose JSON form has its fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; times are ISO 8601 texts that end in Z."""
        return _fields(self)


def plain(value: Any) -> Any:
    """Return a result as JSON has it: by `to_dict` or the fields of a dataclass; paths as text, times as ISO 8601."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        from commonplace.dates.time import iso

        return iso(value)
    return str(value) if isinstance(value, PathLike) else value


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def read_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text.

    Args:
        options: as of `json.loads`.

    Raises:
        ValueError: it is not one.
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


def joined(path: str, rest: str) -> str:
    """Return the path of what is at `rest` below `path`."""
    return f"{path}{'' if not path or not rest or rest.startswith('[') else '.'}{rest}"


def dotted(parts: Iterable[str | int]) -> str:
    """Return a path by its parts: `tasks.t.input[2]`."""
    return reduce(joined, (f"[{part}]" if isinstance(part, int) else str(part) for part in parts), "")
