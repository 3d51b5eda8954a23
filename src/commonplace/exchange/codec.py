"""Encode the content of a namespace as lines of an export, and decode it, by the schema.

A line is one JSON object in ASCII with exact numbers, so that every text and time round-trips. Two values have a
special form: an infinite time is "inf" or "-inf", and a user's JSON text (metadata, attributes, details) is an object.
Derived fields, and fields that follow from the line that holds a record, are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar

from commonplace.dataclasses import MISSING, dataclass, fields, is_dataclass
from commonplace.errors import StoreDamagedError, UsageError
from commonplace.formats.json_values import read_json
from commonplace.memory.validate import one_of
from commonplace.store.schema import SCHEMA
from commonplace.types import KINDS, ORIGINS, STATUSES, TIERS
from commonplace.types.graph import EPISODE_SOURCES
from commonplace.types.ledger import Issue, Reversal

FORMAT: Final = "commonplace-export"
VERSION: Final = 2

UNWRITTEN: Final = frozenset({"place", "secrets", "number", "made"})
"""Fields of items that are never written to a line."""

_CHOICES: Final = {
    "Kind": KINDS,
    "Tier": TIERS,
    "Status": STATUSES,
    "Origin": ORIGINS,
    "EpisodeSource": EPISODE_SOURCES,
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of a record or an item in a line.

    Attributes:
        types: type of each exported field, by field name, as the dataclass spells it.
        required: fields that must be present.
        objects: fields whose JSON text is written as an object.
        inherited: fields whose values follow from the line.
        derived: fields that follow from others but have no default; they are set to "" when a line is decoded.
    """

    types: Mapping[str, str]
    required: frozenset[str]
    objects: frozenset[str] = frozenset()
    inherited: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()


def _shape_of(cls: Any) -> Shape:
    types = {field.name: str(field.type) for field in fields(cls)}
    table = next((table for table in SCHEMA.values() if table.record is cls), None)
    if table is None:
        types = {name: type_ for name, type_ in types.items() if name not in UNWRITTEN}
        return Shape(types, frozenset(types))
    names = {column.name for column in table.exported} | {"stamp"}
    required = {field.name for field in fields(cls) if field.default is MISSING}
    # The ledger's JSON belongs to another program and is kept byte for byte, as text.
    is_json = () if cls in (Issue, Reversal) else table.exported
    return Shape(
        {name: type_ for name, type_ in types.items() if name in names},
        frozenset(required & names),
        frozenset(column.name for column in is_json if column.role == "json"),
        table.told,
        tuple(sorted(required - names - {*table.told})),
    )


shape_of: Final[Callable[[Any], Shape]] = cache(_shape_of)
"""Return the shape of a class: the exported columns of a record and the stamp of an owner, or an item's fields."""


def encode_line(entries: Mapping[str, Any], *, name: str = "the line") -> bytes:
    """Encode entries as a line.

    Args:
        name: how error messages call the line.

    Raises:
        StoreDamagedError: a column that must hold a JSON object holds something else.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if is_dataclass(value):
            shape, line_fields = shape_of(type(value)), dict[str, Any]()
            for field in shape.types:
                item = getattr(value, field)
                line_fields[field] = user_object(field, item) if field in shape.objects else plain(item)
            return line_fields
        if isinstance(value, Mapping):
            return {field: plain(item) for field, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, tuple | list) else value

    def user_object(field: str, text: str) -> dict[str, Any]:
        try:
            document = read_json(text)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise StoreDamagedError(
                f"the {field} of {name:.120} is not a JSON object", remedy="update or forget it, or restore a backup"
            )
        return document

    return json.dumps(plain(entries), separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def decode_line(line: bytes) -> dict[str, Any]:
    """Decode a line, which must be a JSON object; raise UsageError if it is not."""
    try:
        entries = read_json(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{line.decode(errors='replace').strip()!r:.80} is not JSON: {error!s:.80}") from error
    if not isinstance(entries, dict):
        raise UsageError("it is not a JSON object")
    return entries


def build(cls: type[T], item: object, inherited: Mapping[str, str] | None = None, *, name: str = "", **extra: Any) -> T:
    """Build the record or item of a line; fields of a record that have a default may be absent.

    Args:
        inherited: values that the records inherit from the line, by field; the records must not give them themselves.
        name: how error messages call it.

    Raises:
        UsageError: a field is unknown, missing or of the wrong type.
    """
    name, shape, inherited = name or cls.__name__.lower(), shape_of(cls), inherited or {}
    if not isinstance(item, dict):
        raise UsageError(f"{name} is {item!r:.80}", remedy="give an object")
    refuse_other_entries(name, item, tuple(shape.types), shape.required)
    values = dict[str, Any]()
    for key, value in item.items():
        if key in shape.objects:
            if not isinstance(value, dict):
                raise UsageError(f"{key} is {value!r:.80}", remedy="give a JSON object")
            values[key] = json.dumps(value, sort_keys=True)
        else:
            values[key] = _value(key, shape.types[key], value, inherited)
    from_line = {key: inherited[key] for key in shape.inherited}
    return cls(**from_line, **dict.fromkeys(shape.derived, ""), **values, **extra)


def refuse_other_entries(name: str, value: Mapping[str, Any], known: tuple[str, ...], required: frozenset[str]) -> None:
    """Refuse an object with an unknown entry or without a required one."""
    for key in value:
        if key not in known:
            raise UsageError(f"{name} has the unknown entry {key!r:.80}", remedy=f"it may have {', '.join(known)}")
    for key in known:
        if key in required and key not in value:
            raise UsageError(f"{name} lacks {key!r}", remedy="export again")


def _value(name: str, type_: str, value: object, inherited: Mapping[str, str]) -> Any:
    """Convert the JSON value of a field to its type, as the dataclass spells it; refuse one of the wrong type."""
    if type_ == "str":
        expected = "" if isinstance(value, str) else "text"
    elif type_.endswith(" | None"):
        return None if value is None else _value(name, type_.removesuffix(" | None"), value, inherited)
    elif type_.startswith("tuple["):
        if isinstance(value, list):
            item_type = type_.removeprefix("tuple[").removesuffix(", ...]")
            return tuple(_value(name, item_type, item, inherited) for item in value)
        expected = "list"
    elif type_ == "float":
        if value in ("inf", "-inf"):
            return float(str(value))
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
            try:
                return float(value)
            except OverflowError:
                pass
        raise UsageError(f"{name} is {value!r:.80}", remedy='give a number, "inf" or "-inf"')
    elif type_ == "bool":
        expected = "" if isinstance(value, bool) else "truth value: true or false"
    elif type_ == "int":
        expected = "" if isinstance(value, int) and not isinstance(value, bool) else "whole number"
        if not expected and not -(2**63) <= value < 2**63:  # type: ignore[operator] # an int
            expected = "whole number of at most 64 bits"
    elif type_ in _CHOICES:
        return one_of(name, value, choices=_CHOICES[type_])
    else:
        record = next(table.record for table in SCHEMA.values() if table.record and table.record.__name__ == type_)
        return build(record, value, inherited)
    if expected:
        raise UsageError(f"{name} is {value!r:.80}", remedy=f"give a {expected}")
    return value
