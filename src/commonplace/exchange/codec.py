"""Encode and decode what a namespace holds as lines of an export, by the schema.

A line is one JSON object in ASCII with exact numbers, so that every text and time round-trips. Two values have a
special form: an infinite time is "inf" or "-inf", and a JSON text of a user's (metadata, attributes, details) is an
object. What is derived, and what the line tells in which a record stands, is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final, TypeVar

from commonplace.dataclasses import MISSING, dataclass, fields, is_dataclass
from commonplace.errors import UsageError
from commonplace.memory.validate import one_of
from commonplace.store.schema import SCHEMA
from commonplace.types import KINDS, ORIGINS, STATUSES, TIERS
from commonplace.types.graph import EPISODE_SOURCES
from commonplace.types.ledger import Issue, Reversal

FORMAT: Final = "commonplace-export"
VERSION: Final = 2

UNWRITTEN: Final = frozenset({"place", "secrets", "number", "made"})
"""Fields of items that are in no line."""
_INT64 = 2**63

T = TypeVar("T")
Told = Mapping[str, str]
"""What a line tells of the records in it, by the name of the field that they leave out."""


def encoded(entries: Mapping[str, Any]) -> bytes:
    return json.dumps(_plain(entries), separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def line_of(kind: str, what: Any) -> bytes:
    """Return the line of an item, or of a version of a memory."""
    return encoded({"type": kind, **{name: getattr(what, name) for name in shape_of(type(what)).types}})


def decoded(line: bytes) -> dict[str, Any]:
    """Return the entries of a line.

    Raises:
        UsageError: it is no JSON object.
    """
    try:
        found = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the line {line!r:.80} is not JSON: {error!s:.80}", remedy="export again") from error
    if not isinstance(found, dict):
        raise UsageError(f"the line {line!r:.80} is not a JSON object", remedy="export again")
    return found


@dataclass(frozen=True, slots=True)
class Shape:
    """How records of a class, or items, stand in a line.

    Attributes:
        types: of the fields that are exported, by name, as the dataclass names them.
        required: the fields that must be there.
        objects: the fields whose JSON text stands as an object.
        told: the fields that the line tells.
        derived: the fields that follow from others, and have to be given a value all the same.
    """

    types: Mapping[str, str]
    required: frozenset[str]
    objects: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()


def shape_of(cls: Any) -> Shape:
    """Return how records of a class stand in a line: their exported columns, and the stamp of an owner."""
    return _shape_of(cls)


@cache
def _shape_of(cls: Any) -> Shape:
    table = next((table for table in SCHEMA.values() if table.record is cls), None)
    types = {field.name: str(field.type) for field in fields(cls) if field.name not in UNWRITTEN}
    if table is None:
        return Shape(types, frozenset(types))
    types = {field.name: str(field.type) for field in fields(cls)}
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


def built(cls: type[T], given: object, told: Told | None = None, *, what: str = "", **unwritten: Any) -> T:
    """Return the record or item that stands in a line; a record's fields with a default may be absent.

    Args:
        told: what the line tells of the records in it; they may not say it themselves.
        what: what messages call it.

    Raises:
        UsageError: a field is unknown, missing, or of another type.
    """
    what, shape, told = what or cls.__name__.lower(), shape_of(cls), told or {}
    if not isinstance(given, dict):
        raise UsageError(f"{what} is {given!r:.80}", remedy="give an object")
    refuse_other_entries(what, given, tuple(shape.types), shape.required)
    values = {
        name: _object_of(name, value) if name in shape.objects else _reader(shape.types[name])(name, value, told)
        for name, value in given.items()
    }
    here = {name: told[name] for name in shape.told}
    return cls(**here, **dict.fromkeys(shape.derived, ""), **values, **unwritten)


def refuse_other_entries(what: str, given: Mapping[str, Any], known: tuple[str, ...], required: frozenset[str]) -> None:
    """Refuse an object with unknown entries, or without one of those that it must have.

    Raises:
        UsageError: naming the entry.
    """
    for name in given:
        if name not in known:
            raise UsageError(f"{what} has the unknown entry {name!r:.80}", remedy=f"it may have {', '.join(known)}")
    for name in known:
        if name in required and name not in given:
            raise UsageError(f"{what} lacks {name!r}", remedy="export again")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        shape = shape_of(type(value))
        found = {name: getattr(value, name) for name in shape.types}
        return {name: _object(name, each) if name in shape.objects else _plain(each) for name, each in found.items()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _object(name: str, text: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(text, parse_constant=_refuse_constant)
        if isinstance(found, dict):
            return found
    raise ValueError(name)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


Reader = Callable[[str, object, Told], Any]


@cache
def _reader(type_: str) -> Reader:
    """Return what reads a field, by its type as the dataclass names it."""
    if type_.endswith(" | None"):
        some = _reader(type_.removesuffix(" | None"))
        return lambda name, given, told: None if given is None else some(name, given, told)
    if type_.startswith("tuple["):
        each = _reader(type_.removeprefix("tuple[").removesuffix(", ...]"))
        return lambda name, given, told: tuple(each(name, one, told) for one in _of_type(list, "list", name, given))
    record = next((table.record for table in SCHEMA.values() if table.record and table.record.__name__ == type_), None)
    if record is not None:
        return lambda _, given, told: built(record, given, told)
    return lambda name, given, _: _SCALARS[type_](name, given)


def _of_type(cls: type[T], called: str, name: str, given: object) -> T:
    if not isinstance(given, cls) or (isinstance(given, bool) and cls is not bool):
        raise UsageError(f"{name} is {given!r:.80}", remedy=f"give a {called}")
    return given


def _object_of(name: str, given: object) -> str:
    return json.dumps(_of_type(dict, "JSON object", name, given), sort_keys=True)


def _whole(name: str, given: object) -> int:
    if not -_INT64 <= _of_type(int, "whole number", name, given) < _INT64:
        raise UsageError(f"{name} is {given!r:.80}", remedy="give a whole number of at most 64 bits")
    return given  # type: ignore[return-value] # an int


def _time(name: str, given: object) -> float:
    if given in ("inf", "-inf"):
        return float(str(given))
    try:
        found = float(given) if isinstance(given, int | float) and not isinstance(given, bool) else math.nan
    except OverflowError:
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{name} is {given!r:.80}", remedy='give a number, "inf" or "-inf"')
    return found


_SCALARS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "str": partial(_of_type, str, "text"),
    "bool": partial(_of_type, bool, "truth value: true or false"),
    "int": _whole,
    "float": _time,
    "Kind": partial(one_of, choices=KINDS),
    "Tier": partial(one_of, choices=TIERS),
    "Status": partial(one_of, choices=STATUSES),
    "Origin": partial(one_of, choices=ORIGINS),
    "EpisodeSource": partial(one_of, choices=EPISODE_SOURCES),
}
