"""Encode and decode what a namespace holds as lines of an export, by the schema.

A line is one JSON object in ASCII with exact numbers, so that every text and time round-trips. Two values have a
special form: an infinite time is "inf" or "-inf", and a JSON text of a user's (metadata, attributes, details) is an
object. What is derived, and what follows from the line that holds a record, is left out.
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
"""Fields of items that are in no line."""

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
    """The fields of a record, or an item, in a line.

    Attributes:
        types: of the fields that are exported, by name, as the dataclass names them.
        required: the fields that must be there.
        objects: the fields whose JSON text is written as an object.
        told: the fields whose values follow from the line.
        derived: the fields that follow from others, and have to be given a value all the same.
    """

    types: Mapping[str, str]
    required: frozenset[str]
    objects: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()


def _shape_of(cls: Any) -> Shape:
    types = {field.name: str(field.type) for field in fields(cls)}
    table = next((table for table in SCHEMA.values() if table.record is cls), None)
    if table is None:
        types = {name: type_ for name, type_ in types.items() if name not in UNWRITTEN}
        return Shape(types, frozenset(types))
    names = {column.name for column in table.exported} | {"stamp"}
    required = {field.name for field in fields(cls) if field.default is MISSING}
    # The ledger's JSON is another program's, and kept to the byte, as a text.
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


def encoded(entries: Mapping[str, Any], *, name: str = "the line") -> bytes:
    """Return the line of some entries.

    Args:
        name: what messages call it.

    Raises:
        StoreDamagedError: a column that must hold a JSON object does not.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if is_dataclass(value):
            shape, found = shape_of(type(value)), dict[str, Any]()
            for field in shape.types:
                each = getattr(value, field)
                found[field] = user_object(field, each) if field in shape.objects else plain(each)
            return found
        if isinstance(value, Mapping):
            return {field: plain(each) for field, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, tuple | list) else value

    def user_object(field: str, text: str) -> dict[str, Any]:
        try:
            found = read_json(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise StoreDamagedError(
                f"the {field} of {name:.120} is not a JSON object", remedy="update or forget it, or restore a backup"
            )
        return found

    return json.dumps(plain(entries), separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def decoded(line: bytes) -> dict[str, Any]:
    """Return the entries of a line, which is to be a JSON object."""
    try:
        found = read_json(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{line.decode(errors='replace').strip()!r:.80} is not JSON: {error!s:.80}") from error
    if not isinstance(found, dict):
        raise UsageError("it is not a JSON object")
    return found


def built(cls: type[T], given: object, told: Mapping[str, str] | None = None, *, what: str = "", **unwritten: Any) -> T:
    """Return the record or item of a line; a record's fields with a default may be absent.

    Args:
        told: the values that follow from the line for the records in it, by field; they may not give them themselves.
        what: what messages call it.

    Raises:
        UsageError: a field is unknown, missing, or of another type.
    """
    what, shape, told = what or cls.__name__.lower(), shape_of(cls), told or {}
    if not isinstance(given, dict):
        raise UsageError(f"{what} is {given!r:.80}", remedy="give an object")
    refuse_other_entries(what, given, tuple(shape.types), shape.required)
    values = dict[str, Any]()
    for name, value in given.items():
        if name in shape.objects:
            if not isinstance(value, dict):
                raise UsageError(f"{name} is {value!r:.80}", remedy="give a JSON object")
            values[name] = json.dumps(value, sort_keys=True)
        else:
            values[name] = _value(name, shape.types[name], value, told)
    here = {name: told[name] for name in shape.told}
    return cls(**here, **dict.fromkeys(shape.derived, ""), **values, **unwritten)


def refuse_other_entries(what: str, given: Mapping[str, Any], known: tuple[str, ...], required: frozenset[str]) -> None:
    """Refuse an object with unknown entries, or without one of those that it must have."""
    for name in given:
        if name not in known:
            raise UsageError(f"{what} has the unknown entry {name!r:.80}", remedy=f"it may have {', '.join(known)}")
    for name in known:
        if name in required and name not in given:
            raise UsageError(f"{what} lacks {name!r}", remedy="export again")


def _value(name: str, type_: str, given: object, told: Mapping[str, str]) -> Any:
    """Return the value of a field of a type, as the dataclass names it; refuse one of another type."""
    if type_ == "str":
        wanted = "" if isinstance(given, str) else "text"
    elif type_.endswith(" | None"):
        return None if given is None else _value(name, type_.removesuffix(" | None"), given, told)
    elif type_.startswith("tuple["):
        if isinstance(given, list):
            each = type_.removeprefix("tuple[").removesuffix(", ...]")
            return tuple(_value(name, each, one, told) for one in given)
        wanted = "list"
    elif type_ == "float":
        if given in ("inf", "-inf"):
            return float(str(given))
        if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < math.inf:
            try:
                return float(given)
            except OverflowError:
                pass
        raise UsageError(f"{name} is {given!r:.80}", remedy='give a number, "inf" or "-inf"')
    elif type_ == "bool":
        wanted = "" if isinstance(given, bool) else "truth value: true or false"
    elif type_ == "int":
        wanted = "" if isinstance(given, int) and not isinstance(given, bool) else "whole number"
        if not wanted and not -(2**63) <= given < 2**63:  # type: ignore[operator] # an int
            wanted = "whole number of at most 64 bits"
    elif type_ in _CHOICES:
        return one_of(name, given, choices=_CHOICES[type_])
    else:
        record = next(table.record for table in SCHEMA.values() if table.record and table.record.__name__ == type_)
        return built(record, given, told)
    if wanted:
        raise UsageError(f"{name} is {given!r:.80}", remedy=f"give a {wanted}")
    return given
