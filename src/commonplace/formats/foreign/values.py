"""Make values of ours from values of JSON and YAML that somebody else wrote; what does not fit is noted, not raised."""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from commonplace.times import EARLIEST, LATEST, parse
from commonplace.types import FileProblem

# Any fixed UUID will do; changing it would give every memory without an id another one at the next import.
_NAMES: Final = uuid.UUID("6d0f4f2a-5f43-5d1c-9a3e-0c7b8f1d2e64")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HASHTAG: Final = re.compile(r"(?<!\S)#([^\W\d][\w/-]*)")
_WIKILINK: Final = re.compile(r"\[\[([^\[\]|#\n]{1,300})(?:[|#][^\[\]\n]{0,300})?\]\]")
_MILLISECONDS: Final = 1e11  # as seconds the year 5138; files that count so large count milliseconds
_LONGEST_INTEGER: Final = 1024  # bits; Python refuses to write out much larger ones in decimal


@dataclass(slots=True)
class Notes:
    """Collects what is to be told, and makes ids: a text that stands twice in one place gets two, always the same two.

    Attributes:
        problems: what cannot be kept as it is said.
        notices: what nobody loses anything by.
    """

    problems: list[FileProblem] = field(default_factory=list)
    notices: list[FileProblem] = field(default_factory=list)
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, where: str, reason: str) -> None:
        """Note what could not be read or kept."""
        self.problems.append(FileProblem(where, _storable(reason)))

    def tell(self, where: str, what: str) -> None:
        """Note what was kept in another place, or holds nothing to be kept."""
        self.notices.append(FileProblem(where, _storable(what)))

    def made_id(self, where: str, content: str) -> str:
        """Return the id of a memory that has none: a UUIDv5 of where it stood, what it says and which of them it is."""
        self._made[where, content] += 1
        return str(uuid.uuid5(_NAMES, f"{self._made[where, content]}\n{where}\n{content}"))

    def text(self, value: object, where: str, name: str) -> str:
        """Return a string as it can be stored, "" for none; what is no string is noted."""
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.add(where, f"{name} is not text and was left out")
            return ""
        written = str(value)
        storable = _storable(written)
        if storable != written:
            self.add(where, f"{name} holds characters that no text has, replaced by U+FFFD")
        return storable

    def time(self, value: object, where: str, name: str) -> float | None:
        """Return seconds since the epoch of an ISO 8601 text, a number or a date; without a zone it is UTC."""
        if value is None or value == "":
            return None
        moment = _moment(value)
        if moment is None or not EARLIEST <= moment <= LATEST:
            self.add(where, f"{name} is {str(value)[:60]!r}, no time between the years 1 and 9999, and was left out")
            return None
        return moment

    def number(self, value: object, where: str, name: str, default: float) -> float:
        """Return a finite number of at least 0."""
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2**53:
            self.add(where, f"{name} is {str(value)[:60]!r}, no number from 0, and was taken as {default:g}")
            return default
        return float(value)

    def words(self, value: object, where: str, name: str) -> tuple[str, ...]:
        """Return the distinct texts of a list, or of a text with commas; tags may be written with their `#`."""
        if value is None:
            return ()
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list | tuple):
            self.add(where, f"{name} is no list and was left out")
            return ()
        return distinct(self.text(item, where, name).strip().removeprefix("#") for item in value)


def _storable(text: str) -> str:
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return _LONE_SURROGATE.sub("\ufffd", text).replace("\0", "\ufffd")


def _moment(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, int | float):
            return value / 1000 if abs(value) >= _MILLISECONDS else float(value)
        return parse(str(value).strip())
    except (ValueError, OverflowError):
        return None


def plain(value: object) -> object:
    """Return a value that JSON can hold: dates as ISO 8601, unknown things as text, keys as text."""
    if isinstance(value, Mapping):
        return {_storable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LONGEST_INTEGER else hex(value)
    return value.isoformat() if isinstance(value, date) else _storable(str(value))


def plain_mapping(values: Mapping[str, object]) -> dict[str, object]:
    """Return the named values as `plain` has them, without those that say nothing."""
    return {_storable(str(key)): plain(value) for key, value in values.items() if value not in (None, "", [], {})}


def distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return each non-empty word once, in order."""
    return tuple(dict.fromkeys(word for word in words if word))


def hashtags(text: str) -> tuple[str, ...]:
    """Return the `#tags` of a text without their mark."""
    return distinct(_HASHTAG.findall(text))


def wikilinks(text: str) -> tuple[str, ...]:
    """Return the targets of `[[links]]` without alias and heading."""
    return distinct(match.strip() for match in _WIKILINK.findall(text))
