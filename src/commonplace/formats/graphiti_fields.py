"""Read single values of a JSON document that somebody else wrote, and say where one is wrong. It knows no graph."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn, TypeVar

from commonplace.errors import ConfigError
from commonplace.times import parse
from commonplace.types import ORIGINS
from commonplace.types.graph import EPISODE_SOURCES

MOST_CHARACTERS: Final = 1024 * 1024
"""Of one text."""
MOST_ID_CHARACTERS: Final = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fields:
    """The members of one JSON object; `path` is where it stands in its document."""

    values: Mapping[str, Any]
    path: str

    def id(self, name: str) -> str:
        """Return an id.

        Raises:
            ConfigError: it is missing, empty or too long.
        """
        value = self.text(name)
        if not value.strip() or len(value) > MOST_ID_CHARACTERS or "\0" in value:
            self.refuse(name, value, f"give it an id of 1 to {MOST_ID_CHARACTERS} characters")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; null counts as absent.

        Raises:
            ConfigError: it is none, is too long, or is missing and there is no default.
        """
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.refuse(name, value, "give it a text")
        if len(value) > MOST_CHARACTERS:
            self.refuse(name, value, f"the limit is {MOST_CHARACTERS:,} characters")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, each once; none where it is absent."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self.refuse(name, value, "give it a list of texts")
        return tuple(dict.fromkeys(value))

    def time(self, name: str) -> float | None:
        """Return seconds since the epoch of an ISO 8601 text; one without a zone is UTC; None where it is absent."""
        value = self.values.get(name)
        if value is None:
            return None
        found = _seconds(value)
        return self.refuse(name, value, "give it an ISO 8601 time") if found is None else found

    def needed_time(self, name: str) -> float:
        """Return a time that has to be there."""
        found = self.time(name)
        return self.refuse(name, None, "give it an ISO 8601 time") if found is None else found

    def members(self, name: str) -> dict[str, Any]:
        """Return a JSON object; an empty one where it is absent."""
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(name, value, "give it an object")
        return value

    def refuse(self, name: str, value: object, remedy: str) -> NoReturn:
        """Say that a value is wrong.

        Raises:
            ConfigError: always.
        """
        where = f"{self.path}.{name}" if name else self.path
        shown = "missing" if value is None else f"{value!r:.60}"
        raise ConfigError(f"{where} is {shown}", path=where, remedy=remedy)


def fields_of(value: object, path: str) -> Fields:
    """Return the members of a JSON object.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{path} is {value!r:.60}", path=path, remedy="give it an object")
    return Fields(value, path)


def _seconds(value: object) -> float | None:
    try:
        return parse(value.strip() if isinstance(value, str) else "")
    except (ValueError, OverflowError):
        return None


def differences(record: object, plain: object) -> dict[str, Any]:
    """Return the fields of a record that another one of its kind has otherwise."""
    pairs = ((each.name, getattr(record, each.name)) for each in fields(record))  # type: ignore[arg-type]
    return {name: value for name, value in pairs if value != getattr(plain, name)}


def checked(kind: type[T], values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return values as fields of a dataclass.

    Raises:
        ConfigError: one is no field of it, or not of its type.
    """
    types = {each.name: str(each.type) for each in fields(kind)}  # type: ignore[arg-type]
    found = Fields(values, path)
    for name, value in values.items():
        if name not in types or not _IS[types[name]](value):
            found.refuse(name, value, f"it is no {kind.__name__.lower()}'s; export it again")
    return dict(values)


def json_text(value: object) -> str:
    """Return JSON as text, keys sorted."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def from_json_text(text: object, path: str) -> Any:
    """Return what a JSON text holds.

    Raises:
        ConfigError: it is none.
    """
    try:
        return json.loads(text) if isinstance(text, str) else _not_text()
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is {text!r:.60}", path=path, remedy="give it JSON as a text") from None


def _not_text() -> NoReturn:
    raise ValueError


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_one_of(choices: Sequence[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in choices


_IS: Final[Mapping[str, Callable[[object], bool]]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63,
    "bool": lambda value: isinstance(value, bool),
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "Origin": _is_one_of(ORIGINS),
    "EpisodeSource": _is_one_of(EPISODE_SOURCES),
    "Subject": _is_one_of(("entity", "relation")),
    "Saying": _is_one_of(("said", "denied", "once", "settled", "cancelled")),
}
