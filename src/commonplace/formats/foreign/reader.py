"""Read foreign files with limits of size and depth; report faulty entries as notices instead of raising."""

from __future__ import annotations

import json
import math
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Final, Literal

from commonplace.dataclasses import dataclass, field
from commonplace.dates.time import EARLIEST, LATEST, parse
from commonplace.errors import NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.formats.json_values import read_json
from commonplace.formats.yaml import DEEPEST, TOO_DEEP
from commonplace.text.characters import storable
from commonplace.types import FileProblem, Link, Origin, Status, Tier

LARGEST: Final = 256 * 2**20
"""Bytes of a file that are read; an export of more than that is better split."""
MAX_FILES: Final = 100_000

# Any fixed UUID will do; changing it would give every memory without an id another one at the next import.
_NAMES: Final = uuid.UUID("6d0f4f2a-5f43-5d1c-9a3e-0c7b8f1d2e64")
_HASHTAG: Final = re.compile(r"(?<!\S)#([^\W\d][\w/-]*)")
_WIKILINK: Final = re.compile(r"\[\[([^\[\]|#\n]{1,300})(?:[|#][^\[\]\n]{0,300})?\]\]")
_MILLISECONDS: Final = 1e11  # as seconds the year 5138; files that count so large count milliseconds
_ZIP: Final = b"PK\x03\x04"
_MAX_INTEGER_DIGITS: Final = 1024  # bits; Python refuses to write out much larger ones in decimal


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """One memory of another system. Times are seconds since the epoch, None if the file gives none.

    Attributes:
        id: the one given, or a UUIDv5 of its place and what it says: the same at every reading.
        session, position: the conversation it was said in, and where; session "" is none.
        origin: who said it, if known.
        tier: "" if the other system has nothing like it.
        category: a single word for the kind of statement, or "".
        source: who or what it came from, in the file's words, or "".
        metadata: JSON values only; what the file says and no other attribute holds.
    """

    id: str
    content: str
    title: str = ""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    created_at: float | None = None
    updated_at: float | None = None
    last_used: float | None = None
    use_count: int = 0
    strength: float = 1.0
    tier: Tier | Literal[""] = ""
    status: Status = "active"
    category: str = ""
    source: str = ""
    session: str = ""
    position: int = 0
    origin: Origin = "document"
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForeignFact:
    """A relation between two things, by their names; types are the file's words, "" if it has none.

    Attributes:
        place: file and entry.
    """

    place: str
    source: str
    type: str
    target: str
    source_type: str = ""
    target_type: str = ""
    valid_from: float | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """All that was read, in the order of the files.

    Attributes:
        links: both ends are among `memories`.
        problems: what could not be read or kept, with its place: a file, or file and line (`notes/a.md:12`).
        notices: remarks on what lost no data, likewise.
    """

    memories: tuple[ForeignMemory, ...] = ()
    links: tuple[Link, ...] = ()
    facts: tuple[ForeignFact, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    notices: tuple[FileProblem, ...] = ()


@dataclass(slots=True)
class Notes:
    """Collect notices and problems, and make ids: a text that occurs twice in one place gets two, always the same two.

    Attributes:
        problems: what cannot be kept as it is said.
        notices: remarks on what lost no data.
    """

    problems: list[FileProblem] = field(default_factory=list)
    notices: list[FileProblem] = field(default_factory=list)
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, where: str, reason: str) -> None:
        """Note what could not be read or kept."""
        self.problems.append(FileProblem(where, storable(reason)))

    def notice(self, where: str, what: str) -> None:
        """Note what was kept in another place, or holds nothing to be kept."""
        self.notices.append(FileProblem(where, storable(what)))

    def made_id(self, where: str, content: str) -> str:
        """Return the id of a memory that has none: a UUIDv5 of its place, what it says and which of them it is."""
        self._made[where, content] += 1
        return str(uuid.uuid5(_NAMES, f"{self._made[where, content]}\n{where}\n{content}"))

    def text(self, value: object, where: str, name: str) -> str:
        """Return a string as it can be stored, "" for none; what is no string is noted."""
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.add(where, f"{name} is not text and was skipped")
            return ""
        written = str(value)
        kept = storable(written)
        if kept != written:
            self.add(where, f"{name} holds characters that no text has, replaced by U+FFFD")
        return kept

    def time(self, value: object, where: str, name: str) -> float | None:
        """Return seconds since the epoch of an ISO 8601 text, a number or a date; without a zone it is UTC."""
        if value is None or value == "":
            return None
        moment = None
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                moment = value / 1000 if abs(value) >= _MILLISECONDS else float(value)
            elif not isinstance(value, bool):
                moment = parse(str(value).strip())
        except (ValueError, OverflowError):
            pass
        if moment is None or not EARLIEST <= moment <= LATEST:
            self.add(where, f"{name} is {str(value)[:60]!r}, no time between the years 1 and 9999, and was skipped")
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
            self.add(where, f"{name} is not a list and was skipped")
            return ()
        return distinct(self.text(item, where, name).strip().removeprefix("#") for item in value)

    def result(
        self,
        path: Path,
        what: str,
        memories: Iterable[ForeignMemory],
        links: Iterable[Link] = (),
        facts: Iterable[ForeignFact] = (),
    ) -> Foreign:
        """Return all that was read.

        Raises:
            UsageError: there were only problems.
        """
        found = Foreign(tuple(memories), tuple(links), tuple(facts), tuple(self.problems), tuple(self.notices))
        if found.memories or found.facts or not found.problems:
            return found
        first = found.problems[0]
        more = f", and {len(found.problems) - 1} more problems" if len(found.problems) > 1 else ""
        message = f"nothing in {path} could be read as {what}: {first.path}: {first.reason}{more}"
        raise UsageError(message, remedy="check that this is the right file and complete")


def plain(value: object) -> object:
    """Return a value that JSON can hold: dates as ISO 8601, unknown things as text, keys as text."""
    if isinstance(value, Mapping):
        return {storable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_INTEGER_DIGITS else hex(value)
    return value.isoformat() if isinstance(value, date) else storable(str(value))


def plain_mapping(values: Mapping[str, object]) -> dict[str, object]:
    """Return the named values as `plain` has them, without those that say nothing."""
    return {storable(str(key)): plain(value) for key, value in values.items() if value not in (None, "", [], {})}


def first_of(values: Mapping[str, object], names: Iterable[str]) -> object:
    """Return the first of some values that says anything, None if none does."""
    return next((values[name] for name in names if values.get(name)), None)


def distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return each non-empty word once, in order."""
    return tuple(dict.fromkeys(word for word in words if word))


def hashtags(text: str) -> tuple[str, ...]:
    """Return the `#tags` of a text without their mark."""
    return distinct(_HASHTAG.findall(text))


def wikilinks(text: str) -> tuple[str, ...]:
    """Return the targets of `[[links]]` without alias and heading."""
    return distinct(match.strip() for match in _WIKILINK.findall(text))


def read_text(path: Path, *, follow: bool = True, name: str = "") -> str:
    r"""Return the text of a UTF-8 file with "\n" for every line end, without a byte order mark.

    Args:
        follow: whether the path may be a link; what a folder merely holds may not.
        name: what messages call it, if that is not the whole path.
    """
    named = name or path
    try:
        data = read_file(path, LARGEST, follow=follow)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {named}", remedy="check the path") from None
    except OSError as error:
        remedy = "name a file that can be read; split a large export"
        raise UsageError(f"{named} cannot be read: {error.strerror}", remedy=remedy) from error
    if data.startswith(_ZIP):
        remedy = "unpack it and name what was in it; a backup is put back by `commonplace restore`"
        raise UsageError(f"{named} is a ZIP archive", remedy=remedy)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{named} is not UTF-8 at byte {error.start}", remedy="save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_json(text: str) -> tuple[object, str]:
    """Return the value of a JSON text and "", or None and why it cannot be read. Never raises."""
    try:
        value = read_json(text)
    except json.JSONDecodeError as error:
        return None, f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
    except RecursionError:
        return None, TOO_DEEP
    except ValueError as error:
        return None, f"not JSON: {error}"
    level = [value]
    for _ in range(DEEPEST):
        below = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [item for items in below for item in items]
        if not level:
            return value, ""
    return None, TOO_DEEP


def json_lines(file: str, text: str, notes: Notes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the objects of JSON Lines with their places (`memory.jsonl:3`); other lines are noted as problems."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        value, fault = load_json(line)
        if fault or not isinstance(value, Mapping):
            notes.add(where, fault or "is not an object and was skipped")
        else:
            yield where, value


def objects(values: Iterable[object], place: str, notes: Notes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the objects of a list with their places (`chats.json:entry 3`); what is none is noted as a problem."""
    for number, each in enumerate(values, 1):
        where = f"{place} {number}"
        if isinstance(each, Mapping):
            yield where, each
        else:
            notes.add(where, "is not an object and was skipped")


def folder_of(path: Path) -> Path:
    """Return the folder with its links resolved: it may itself be one, but nothing in it may lead out."""
    if not path.exists():
        raise NotFoundError(f"there is no folder {path}", remedy="check the path")
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder", remedy="name the folder that holds the notes")
    return path.resolve()


def markdown_files(folder: Path, notes: Notes, *, below: str = "") -> Iterator[str]:
    """Yield the Markdown files of a folder, or below a part of it, relative to the folder; not the hidden ones.

    Links are named among the problems and not followed: a foreign folder must not make us read others.
    """
    count = 0

    def unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            where = Path(error.filename).relative_to(folder).as_posix()
            notes.add(where, f"cannot be read: {error.strerror}; make it readable")

    for place, folders, names in os.walk(folder / below, onerror=unreadable, followlinks=False):
        here = Path(place)
        links = [name for name in sorted(folders) if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        files = [name for name in sorted(names) if name.lower().endswith((".md", ".markdown")) and name[0] != "."]
        for name in [*links, *files]:
            shown = (here / name).relative_to(folder).as_posix()
            if (here / name).is_symlink():
                notes.add(shown, "is a link, and links are not followed")
                continue
            if storable(name) != name:
                notes.add(ascii(name), "has a name that is not UTF-8; rename it")
                continue
            count += 1
            if count > MAX_FILES:
                notes.add(".", f"holds more than {MAX_FILES} notes, the limit; the others were not read")
                return
            yield shown
