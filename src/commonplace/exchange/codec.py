"""Encode and decode records as lines of an export.

A line is one JSON object in ASCII with exact numbers, so that every text and time round-trips. Three values have a
special form: an infinite time is "inf" or "-inf"; a JSON text in the store (metadata, attributes, details) is an
object; and a text with two halves of a surrogate pair as two code points, which JSON would join, is {"parts": [...]},
to be concatenated. Names, mentions and happenings do not repeat the entity or fact of their line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final, TypeVar

from commonplace.errors import UsageError
from commonplace.memory.validate import json_object, one_of
from commonplace.types import KINDS, ORIGINS, STATUSES, TIERS, Chunk, FileStamp, Link, MemoryRecord, Owner
from commonplace.types.graph import EPISODE_SOURCES, Alias, Entity, Episode, Happening, Mention, Relation, Subject
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord
from commonplace.types.ledger import Issue, IssueEvent, Reversal

FORMAT: Final = "commonplace-export"
VERSION: Final = 2
"""Version 1 has no lines of a graph and of agents' knowledge; it is read as well."""

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

_JSON_TEXTS: Final[Mapping[type, str]] = {
    MemoryRecord: "metadata",
    Entity: "attributes",
    Relation: "attributes",
    Happening: "detail",
    KnowledgeRecord: "metadata",
    ContextRecord: "metadata",
}
"""The fields that hold JSON as text."""
_LEFT_OUT: Final[Mapping[type, tuple[str, ...]]] = {
    Alias: ("entity",),
    Mention: ("kind", "subject"),
    Happening: ("kind", "subject"),
    KnowledgeRecord: ("content", "digest", "embedder", "vector"),
    IssueEvent: ("issue",),
    Reversal: ("issue",),
}
"""The fields that are told by the line in which something stands, or made anew."""

_INT64 = 2**63
_split_pair = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")

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


def owner_of(given: object) -> Owner:
    """Return the owner that stands in a line."""
    return _built(Owner, given)


def record_of(given: object) -> MemoryRecord:
    """Return the record that stands in a line."""
    return _built(MemoryRecord, given)


def link_of(given: object) -> Link:
    """Return the link that stands in a line."""
    return _built(Link, given)


def chunks_of(given: object) -> tuple[Chunk, ...]:
    """Return the passages that stand in a line."""
    return tuple(_built(Chunk, each) for each in _list("passages", given))


def episode_of(given: object) -> Episode:
    """Return the episode that stands in a line."""
    return _built(Episode, given)


def entity_of(given: object) -> Entity:
    """Return the entity that stands in a line."""
    return _built(Entity, given)


def relation_of(given: object) -> Relation:
    """Return the fact that stands in a line."""
    return _built(Relation, given)


def aliases_of(given: object, entity: str) -> tuple[Alias, ...]:
    """Return the names that stand in the line of an entity."""
    return tuple(_built(Alias, each, entity=entity) for each in _list("aliases", given))


def mentions_of(given: object, kind: Subject, subject: str) -> tuple[Mention, ...]:
    """Return the mentions that stand in the line of an entity or fact."""
    return tuple(_built(Mention, each, kind=kind, subject=subject) for each in _list("mentions", given))


def happenings_of(given: object, kind: Subject, subject: str) -> tuple[Happening, ...]:
    """Return what happened to an entity or fact by its line."""
    return tuple(_built(Happening, each, kind=kind, subject=subject) for each in _list("happenings", given))


def issue_of(given: object) -> Issue | None:
    """Return the issue that stands in a line, None where another program keeps it."""
    return None if given is None else _built(Issue, given)


def events_of(given: object, issue: str) -> tuple[IssueEvent, ...]:
    """Return what was done on an issue by its line."""
    return tuple(_built(IssueEvent, each, issue=issue) for each in _list("events", given))


def reversal_of(given: object, issue: str) -> Reversal | None:
    """Return what undoes the change of an issue by its line."""
    return None if given is None else _built(Reversal, given, issue=issue)


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


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, str):
        return value if value.isascii() or not _split_pair.search(value) else {"parts": _split_pair.split(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _fields(value: Any) -> dict[str, Any]:
    left_out, as_json = _LEFT_OUT.get(type(value), ()), _JSON_TEXTS.get(type(value))
    found = {each.name: getattr(value, each.name) for each in fields(value) if each.name not in left_out}
    return {name: json.loads(each) if name == as_json else _plain(each) for name, each in found.items()}


def _built(cls: type[T], given: object, **told: str) -> T:
    """Return a dataclass from an object that has its fields; those with a default may be absent.

    Args:
        told: fields that are told elsewhere, and may not be in the object.

    Raises:
        UsageError: a field is unknown, missing, or of another type.
    """
    what = cls.__name__.lower()
    if not isinstance(given, dict):
        raise UsageError(f"{what} is {given!r:.80}", remedy="give an object")
    known = [field for field in fields(cls) if field.name not in told]  # type: ignore[arg-type] # a dataclass
    names = {field.name: field for field in known}
    refuse_other_entries(what, given, tuple(names), [field.name for field in known if field.default is MISSING])
    as_json = _JSON_TEXTS.get(cls)
    return cls(
        **told,
        **{
            name: json_object(name, value) if name == as_json else _READ[str(names[name].type)](name, value)
            for name, value in given.items()
        },
    )


def _text(name: str, given: object) -> str:
    if isinstance(given, dict) and given.keys() == {"parts"}:
        return "".join(_text(name, part) for part in _list(name, given["parts"]))
    if not isinstance(given, str):
        raise UsageError(f"{name} is {given!r:.80}", remedy="give a text")
    return given


def _texts(name: str, given: object) -> tuple[str, ...]:
    return tuple(_text(name, each) for each in _list(name, given))


def _times(name: str, given: object) -> tuple[float, ...]:
    return tuple(time_of(name, each) for each in _list(name, given))


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


_READ: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "str": _text,
    "tuple[str, ...]": _texts,
    "int": _whole,
    "bool": _truth,
    "float": time_of,
    "float | None": _optional(time_of),
    "tuple[float, ...]": _times,
    "FileStamp | None": _optional(lambda _, given: _built(FileStamp, given)),
    "Kind": _choice(KINDS),
    "Tier": _choice(TIERS),
    "Status": _choice(STATUSES),
    "Origin": _choice(ORIGINS),
    "EpisodeSource": _choice(EPISODE_SOURCES),
}
"""How a field is read, by its type as the dataclass names it."""
