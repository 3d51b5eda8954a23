"""Encode and decode records as lines of an export, by the schema.

A line is one JSON object in ASCII with exact numbers, so that every text and time round-trips. Two values have a
special form: an infinite time is "inf" or "-inf", and a JSON text of a user's (metadata, attributes, details) is an
object. What is derived, and what the line tells in which a record stands, is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar

from commonplace.dataclasses import MISSING, dataclass, fields, is_dataclass
from commonplace.errors import UsageError
from commonplace.memory.validate import json_object, one_of
from commonplace.store.schema import table_of
from commonplace.types import KINDS, ORIGINS, STATUSES, TIERS, FileStamp
from commonplace.types.graph import EPISODE_SOURCES
from commonplace.types.ledger import Issue, Reversal

FORMAT: Final = "commonplace-export"
VERSION: Final = 2

HEADER: Final = ("format", "version", "commonplace", "namespace", "kinds", "counts")
LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "memory": ("created_at", "expired_at", "owner", "record"),
    "link": ("link",),
    "owner": ("owner", "passages"),
    "knowledge": ("id", "created_at", "updated_at", "deleted_at", "record"),
    "context": ("context",),
    "episode": ("episode",),
    "entity": ("entity", "aliases", "mentions", "happenings"),
    "relation": ("relation", "mentions", "happenings"),
    "issue": ("id", "issue", "events", "reversal"),
    "end": ("lines", "sha256"),
}
"""The entries of a line by its `type`."""

_STAMP: Final = "stamp"
"""The field of an owner that has a table of its own, and stands in the line of the owner."""
_INT64 = 2**63

T = TypeVar("T")


def encoded(entries: Mapping[str, Any]) -> bytes:
    """Return one line."""
    return json.dumps(_plain(entries), separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


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


def refuse_other_entries(what: str, found: Mapping[str, Any], known: Sequence[str], required: Sequence[str]) -> None:
    """Refuse an object with unknown entries, or without one of those that it must have.

    Raises:
        UsageError: naming the entry.
    """
    for name in found:
        if name not in known:
            raise UsageError(f"{what} has the unknown entry {name!r:.80}", remedy=f"it may have {', '.join(known)}")
    for name in required:
        if name not in found:
            raise UsageError(f"{what} lacks {name!r}", remedy=f"it must have {', '.join(required)}")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How records of a class stand in a line.

    Attributes:
        types: of the fields that are exported, by name, as the dataclass names them.
        required: the fields without a default.
        objects: the fields whose JSON text stands as an object.
    """

    types: Mapping[str, str]
    required: tuple[str, ...]
    objects: frozenset[str]


@cache
def shape_of(cls: Any) -> _Shape:
    """Return how records of a class stand in a line: their exported columns, and the stamp of an owner."""
    table = table_of(cls)
    names = {column.name for column in table.exported} | {_STAMP}
    known = [field for field in fields(cls) if field.name in names]
    # The ledger's JSON is another program's, and kept to the byte, as a text.
    is_json = () if cls in (Issue, Reversal) else table.exported
    return _Shape(
        {field.name: str(field.type) for field in known},
        tuple(field.name for field in known if field.default is MISSING),
        frozenset(column.name for column in is_json if column.role == "json"),
    )


def built(cls: type[T], given: object, **told: Any) -> T:
    """Return the record that stands in a line; fields with a default may be absent.

    Args:
        told: fields that are told elsewhere, and may not be in the object.

    Raises:
        UsageError: a field is unknown, missing, or of another type.
    """
    what = cls.__name__.lower()
    if not isinstance(given, dict):
        raise UsageError(f"{what} is {given!r:.80}", remedy="give an object")
    shape = shape_of(cls)  # type: ignore[arg-type] # every class is hashable
    refuse_other_entries(what, given, tuple(shape.types), shape.required)
    values = {
        name: json_object(name, value) if name in shape.objects else _READ[shape.types[name]](name, value)
        for name, value in given.items()
    }
    return cls(**told, **values)


def built_list(cls: type[T], name: str, given: object, **told: Any) -> tuple[T, ...]:
    """Return the records that stand in a list of a line."""
    return tuple(built(cls, each, **told) for each in _list(name, given))


def time_of(name: str, given: object) -> float:
    """Return a time in seconds since the epoch, which may be infinite.

    Raises:
        UsageError: it is none.
    """
    if given in ("inf", "-inf"):
        return float(str(given))
    try:
        found = float(given) if isinstance(given, int | float) and not isinstance(given, bool) else math.nan
    except OverflowError:
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"{name} is {given!r:.80}", remedy='give a number, "inf" or "-inf"')
    return found


class NotAnObjectError(ValueError):
    """What a store holds where a JSON object should be is none; its text names the field."""


def _object(name: str, text: str) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(text, parse_constant=_refuse_constant)
        if isinstance(found, dict):
            return found
    raise NotAnObjectError(name)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        shape = shape_of(type(value))  # type: ignore[arg-type]
        found = {name: getattr(value, name) for name in shape.types}
        return {name: _object(name, each) if name in shape.objects else _plain(each) for name, each in found.items()}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _text(name: str, given: object) -> str:
    if not isinstance(given, str):
        raise UsageError(f"{name} is {given!r:.80}", remedy="give a text")
    return given


def _whole(name: str, given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not -_INT64 <= given < _INT64:
        raise UsageError(f"{name} is {given!r:.80}", remedy="give a whole number of at most 64 bits")
    return given


def _truth(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise UsageError(f"{name} is {given!r:.80}", remedy="give true or false")
    return given


def _list(name: str, given: object) -> list[Any]:
    if not isinstance(given, list):
        raise UsageError(f"{name} is {given!r:.80}", remedy="give a list")
    return given


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _optional(read: Callable[[str, object], T]) -> Callable[[str, object], T | None]:
    return lambda name, given: None if given is None else read(name, given)


def _choice(choices: Sequence[str]) -> Callable[[str, object], str]:
    return lambda name, given: one_of(name, given, choices)


def _each(read: Callable[[str, object], T]) -> Callable[[str, object], tuple[T, ...]]:
    return lambda name, given: tuple(read(name, each) for each in _list(name, given))


_READ: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "str": _text,
    "tuple[str, ...]": _each(_text),
    "int": _whole,
    "bool": _truth,
    "float": time_of,
    "float | None": _optional(time_of),
    "tuple[float, ...]": _each(time_of),
    "FileStamp | None": _optional(lambda _, given: built(FileStamp, given)),
    "Kind": _choice(KINDS),
    "Tier": _choice(TIERS),
    "Status": _choice(STATUSES),
    "Origin": _choice(ORIGINS),
    "EpisodeSource": _choice(EPISODE_SOURCES),
}
"""How a field is read, by its type as the dataclass names it."""
