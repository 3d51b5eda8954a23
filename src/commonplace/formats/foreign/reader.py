"""Read foreign files with limits on size and depth; report faulty entries as problems instead of raising."""

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
from commonplace.formats.yaml import MAX_DEPTH, TOO_DEEP
from commonplace.text.characters import storable
from commonplace.types import FileProblem, Link, Origin, Status, Tier

MAX_FILE_BYTES: Final = 256 * 2**20
"""Maximum bytes of a file; a larger export has to be split."""
MAX_FILES: Final = 100_000

# Any fixed UUID will do; with another one, every memory without an id would get a new id at the next import.
_ID_NAMESPACE: Final = uuid.UUID("6d0f4f2a-5f43-5d1c-9a3e-0c7b8f1d2e64")
_HASHTAG: Final = re.compile(r"(?<!\S)#([^\W\d][\w/-]*)")
_WIKILINK: Final = re.compile(r"\[\[([^\[\]|#\n]{1,300})(?:[|#][^\[\]\n]{0,300})?\]\]")
_MILLISECONDS: Final = 1e11  # the year 5138 in seconds; values from here on are milliseconds
_ZIP: Final = b"PK\x03\x04"
_MAX_INTEGER_BITS: Final = 1024  # Python refuses to write much larger ones in decimal


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """One memory of another system. Times are seconds since the epoch, None if the file has none.

    Attributes:
        id: the file's id, or a UUIDv5 of location and content, the same at every import.
        session, position: the conversation and the position in it; session "" for none.
        origin: who said it, "document" if unknown.
        tier: "" if the other system has nothing equivalent.
        category: a single word for the kind of statement, or "".
        source: who or what it came from, in the file's words, or "".
        metadata: JSON values only; whatever the file states that fits no other attribute.
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
    """A relation of two entities, by name; types are in the file's words, "" if it has none.

    Attributes:
        location: file and entry that state it.
    """

    location: str
    source: str
    type: str
    target: str
    source_type: str = ""
    target_type: str = ""
    valid_from: float | None = None


@dataclass(frozen=True, slots=True)
class ForeignData:
    """The result of an import, in the order of the files.

    Attributes:
        links: both ends are among `memories`.
        problems: what could not be read or kept, located by file, or file and line (`notes/a.md:12`).
        notices: remarks without loss of data, likewise.
    """

    memories: tuple[ForeignMemory, ...] = ()
    links: tuple[Link, ...] = ()
    facts: tuple[ForeignFact, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    notices: tuple[FileProblem, ...] = ()


@dataclass(slots=True)
class Notes:
    """Collect problems and notices, check values, and make reproducible ids.

    Attributes:
        problems: what could not be read or kept unchanged.
        notices: remarks without loss of data.
    """

    problems: list[FileProblem] = field(default_factory=list)
    notices: list[FileProblem] = field(default_factory=list)
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, location: str, reason: str) -> None:
        """Add a problem: something could not be read or kept."""
        self.problems.append(FileProblem(location, storable(reason)))

    def notice(self, location: str, remark: str) -> None:
        """Add a notice: something was kept elsewhere, or has no content to keep."""
        self.notices.append(FileProblem(location, storable(remark)))

    def make_id(self, location: str, content: str) -> str:
        """Return an id for a memory that has none: a UUIDv5 of location, content and the number of the duplicate."""
        self._made[location, content] += 1
        return str(uuid.uuid5(_ID_NAMESPACE, f"{self._made[location, content]}\n{location}\n{content}"))

    def text(self, value: object, location: str, name: str) -> str:
        """Return a string or number as storable text, "" for None; anything else is a problem."""
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.add(location, f"{name} is not text and was skipped")
            return ""
        string = str(value)
        stored = storable(string)
        if stored != string:
            self.add(location, f"{name} holds characters that no text has, replaced by U+FFFD")
        return stored

    def time(self, value: object, location: str, name: str) -> float | None:
        """Return an ISO 8601 text, a number or a date as seconds since the epoch; without a zone it is UTC."""
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
            self.add(location, f"{name} is {str(value)[:60]!r}, no time between the years 1 and 9999, and was skipped")
            return None
        return moment

    def number(self, value: object, location: str, name: str, default: float) -> float:
        """Return a number from 0 to 2**53, else the default; a wrong value is a problem."""
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2**53:
            self.add(location, f"{name} is {str(value)[:60]!r}, no number from 0, and was taken as {default:g}")
            return default
        return float(value)

    def words(self, value: object, location: str, name: str) -> tuple[str, ...]:
        """Return the distinct texts of a list or of a comma-separated text, without a leading `#`."""
        if value is None:
            return ()
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list | tuple):
            self.add(location, f"{name} is not a list and was skipped")
            return ()
        return distinct(self.text(item, location, name).strip().removeprefix("#") for item in value)

    def result(
        self,
        path: Path,
        kind: str,
        memories: Iterable[ForeignMemory],
        links: Iterable[Link] = (),
        facts: Iterable[ForeignFact] = (),
    ) -> ForeignData:
        """Return the result of the import.

        Raises:
            UsageError: there are problems, and neither memories nor facts.
        """
        foreign = ForeignData(tuple(memories), tuple(links), tuple(facts), tuple(self.problems), tuple(self.notices))
        if foreign.memories or foreign.facts or not foreign.problems:
            return foreign
        first = foreign.problems[0]
        more = f", and {len(foreign.problems) - 1} more problems" if len(foreign.problems) > 1 else ""
        message = f"nothing in {path} could be read as {kind}: {first.path}: {first.reason}{more}"
        raise UsageError(message, remedy="check that this is the right file and complete")


def plain(value: object) -> object:
    """Return a value as JSON can hold it: dates as ISO 8601, other types and keys as text."""
    if isinstance(value, Mapping):
        return {storable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_INTEGER_BITS else hex(value)
    return value.isoformat() if isinstance(value, date) else storable(str(value))


def plain_mapping(values: Mapping[str, object]) -> dict[str, object]:
    """Return values as `plain` converts them, without empty ones."""
    return {storable(str(key)): plain(value) for key, value in values.items() if value not in (None, "", [], {})}


def first_of(values: Mapping[str, object], names: Iterable[str]) -> object:
    """Return the first value among `names` that is not empty, or None."""
    return next((values[name] for name in names if values.get(name)), None)


def distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return each non-empty word once, in order."""
    return tuple(dict.fromkeys(word for word in words if word))


def hashtags(text: str) -> tuple[str, ...]:
    """Return the `#tags` of a text without the `#`."""
    return distinct(_HASHTAG.findall(text))


def wikilinks(text: str) -> tuple[str, ...]:
    """Return the targets of `[[links]]` without alias and heading."""
    return distinct(match.strip() for match in _WIKILINK.findall(text))


def read_text(path: Path, *, follow: bool = True, name: str = "") -> str:
    r"""Return the text of a UTF-8 file with "\n" for every line end, without a byte order mark.

    Args:
        follow: whether the path may be a link; files found in a folder may not.
        name: the name of the file in messages, instead of the whole path.
    """
    shown_name = name or path
    try:
        data = read_file(path, MAX_FILE_BYTES, follow=follow)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {shown_name}", remedy="check the path") from None
    except OSError as error:
        remedy = "name a file that can be read; split a large export"
        raise UsageError(f"{shown_name} cannot be read: {error.strerror}", remedy=remedy) from error
    if data.startswith(_ZIP):
        remedy = "unpack it and name what was in it; a backup is put back by `commonplace restore`"
        raise UsageError(f"{shown_name} is a ZIP archive", remedy=remedy)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown_name} is not UTF-8 at byte {error.start}", remedy="save it as UTF-8") from error
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
    for _ in range(MAX_DEPTH):
        below = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        level = [child for items in below for child in items]
        if not level:
            return value, ""
    return None, TOO_DEEP


def json_lines(file: str, text: str, notes: Notes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield location (`memory.jsonl:3`) and object of each JSON line; other lines become problems."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        location = f"{file}:{number}"
        value, fault = load_json(line)
        if fault or not isinstance(value, Mapping):
            notes.add(location, fault or "is not an object and was skipped")
        else:
            yield location, value


def objects(values: Iterable[object], source: str, notes: Notes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield location (`chats.json:entry 3`) and object of each item of a list; other items become problems."""
    for number, value in enumerate(values, 1):
        location = f"{source} {number}"
        if isinstance(value, Mapping):
            yield location, value
        else:
            notes.add(location, "is not an object and was skipped")


def folder_of(path: Path) -> Path:
    """Return the folder with links resolved: it may be a link itself, but nothing in it may lead out."""
    if not path.exists():
        raise NotFoundError(f"there is no folder {path}", remedy="check the path")
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder", remedy="name the folder that holds the notes")
    return path.resolve()


def markdown_files(folder: Path, notes: Notes, *, below: str = "") -> Iterator[str]:
    """Yield the Markdown files of a folder, or of its subfolder `below`, relative to the folder, without hidden ones.

    Links are reported as problems, not followed: a foreign folder must not make us read others.
    """
    count = 0

    def unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            location = Path(error.filename).relative_to(folder).as_posix()
            notes.add(location, f"cannot be read: {error.strerror}; make it readable")

    for directory, folders, names in os.walk(folder / below, onerror=unreadable, followlinks=False):
        current = Path(directory)
        links = [name for name in sorted(folders) if (current / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        files = [name for name in sorted(names) if name.lower().endswith((".md", ".markdown")) and name[0] != "."]
        for name in [*links, *files]:
            relative = (current / name).relative_to(folder).as_posix()
            if (current / name).is_symlink():
                notes.add(relative, "is a link, and links are not followed")
                continue
            if storable(name) != name:
                notes.add(ascii(name), "has a name that is not UTF-8; rename it")
                continue
            count += 1
            if count > MAX_FILES:
                notes.add(".", f"holds more than {MAX_FILES} notes, the limit; the others were not read")
                return
            yield relative
