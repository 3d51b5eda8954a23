"""Read the files of other systems: bounded, UTF-8, never through a link, never raising for what one of them holds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.formats.foreign.records import Foreign
from commonplace.formats.foreign.values import Notes
from commonplace.formats.guarded_yaml import DEEPEST
from commonplace.types import FileProblem

LARGEST: Final = 256 * 2**20
"""Bytes of a file that are read; an export of more than that is better split."""
MOST_FILES: Final = 100_000
_TOO_DEEP: Final = f"nested too deeply, more than {DEEPEST} levels"


def read_text(path: Path, *, follow: bool = True, name: str = "") -> str:
    r"""Return the text of a UTF-8 file with "\n" for every line end, without a byte order mark.

    Args:
        follow: whether the path may be a link; what a folder merely holds may not.
        name: what messages call it, where that is not the whole path.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it is no regular file, too large, not readable or not UTF-8.
    """
    named = name or path
    try:
        data = read_file(path, LARGEST, follow=follow)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {named}", remedy="check the path") from None
    except OSError as error:
        remedy = "name a file that can be read; split a large export"
        raise UsageError(f"{named} cannot be read: {error.strerror}", remedy=remedy) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{named} is not UTF-8 at byte {error.start}", remedy="save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_json(text: str) -> tuple[object, str]:
    """Return the value of a JSON text and "", or None and why it cannot be read. Never raises."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        return (None, _TOO_DEEP) if _is_deep(value) else (value, "")
    except json.JSONDecodeError as error:
        return None, f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
    except RecursionError:
        return None, _TOO_DEEP
    except ValueError as error:
        return None, f"not JSON: {error}"


def json_lines(file: str, text: str, notes: Notes) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the objects of JSON Lines with their places (`memory.jsonl:3`); other lines are noted as problems."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        value, fault = load_json(line)
        if fault or not isinstance(value, Mapping):
            notes.add(where, fault or "is no object and was left out")
        else:
            yield where, value


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [item for each in level for item in _items(each)]
        if not level:
            return False
    return True


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def folder_of(path: Path) -> Path:
    """Return the folder with its links resolved: it may itself be one, what lies in it may not lead out.

    Raises:
        NotFoundError: there is no such folder.
        UsageError: it is no folder.
    """
    if not path.exists():
        raise NotFoundError(f"there is no folder {path}", remedy="check the path")
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder", remedy="name the folder that holds the notes")
    return path.resolve()


def markdown_files(folder: Path, problems: list[FileProblem], *, below: str = "") -> Iterator[str]:
    """Yield the Markdown files of a folder, or below a part of it, relative to the folder; not the hidden ones.

    Links are named among the problems and not followed: a folder that somebody sent must not make us read others.
    """
    count = 0

    def unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            where = Path(error.filename).relative_to(folder).as_posix()
            problems.append(FileProblem(where, f"cannot be read: {error.strerror}; make it readable"))

    for place, folders, names in os.walk(folder / below, onerror=unreadable, followlinks=False):
        here = Path(place)
        problems += [_link(here / name, folder) for name in sorted(folders) if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not (here / name).is_symlink())
        for name in sorted(names):
            if name.startswith(".") or not name.lower().endswith((".md", ".markdown")):
                continue
            if (here / name).is_symlink():
                problems.append(_link(here / name, folder))
                continue
            if not _is_text(here / name):
                problems.append(FileProblem(ascii(name), "has a name that is not UTF-8; rename it"))
                continue
            count += 1
            if count > MOST_FILES:
                reason = f"holds more than {MOST_FILES} notes, the limit; the others were not read"
                problems.append(FileProblem(".", reason))
                return
            yield (here / name).relative_to(folder).as_posix()


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _link(path: Path, folder: Path) -> FileProblem:
    return FileProblem(path.relative_to(folder).as_posix(), "is a link, and links are not followed")


def note_text(folder: Path, name: str, problems: list[FileProblem]) -> str | None:
    """Return the text of one of many files, or None with its problem noted."""
    try:
        return read_text(folder / name, follow=False, name=name)
    except (NotFoundError, UsageError) as error:
        problems.append(FileProblem(name, str(error)))
        return None


def unless_empty(foreign: Foreign, path: Path, what: str) -> Foreign:
    """Return what was read.

    Raises:
        UsageError: there were only problems.
    """
    if foreign.memories or foreign.facts or not foreign.problems:
        return foreign
    first = foreign.problems[0]
    more = f", and {len(foreign.problems) - 1} more problems" if len(foreign.problems) > 1 else ""
    message = f"nothing in {path} could be read as {what}: {first.path}: {first.reason}{more}"
    raise UsageError(message, remedy="check that this is the right file and whole")
