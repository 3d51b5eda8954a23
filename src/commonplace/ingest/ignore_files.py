"""Read the ignore files that hold for a directory: its own, and those of the directories above it in its repository.

It knows where such files lie, not what their lines mean.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from commonplace.ingest.ignore import IGNORE_FILES, Rules, ignore_rules, overruled

_MOST_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Outset:
    """Where the paths of ignore rules begin, and what holds for a root before its own ignore files are read.

    Attributes:
        prefix: what leads from there to the root, with a slash at its end; "" if the root is where they begin.
        chain: the rules from above, the outermost first.
    """

    prefix: str
    chain: tuple[Rules, ...]


def outset(root: str, project: str | None) -> Outset:
    """Return the rules from above a root: from its repository's top directory, else the project around it, if any.

    The root was named, so rules that ignore it, or a directory around it, do not hold for that; both are real paths.
    """
    top = _top(root, project)
    inside = os.path.relpath(root, top).replace(os.sep, "/")
    prefix = "" if inside == "." else inside + "/"
    exclude = os.path.join(top, ".git", "info", "exclude")  # noqa: PTH118 -- the walk speaks in strings
    chain = [ignore_rules(_lines(exclude))] if os.path.isfile(exclude) else []  # noqa: PTH113
    place = 0
    while place < len(prefix):
        above = prefix[:place]
        chain.extend(rules_of((os.path.join(top, above, name) for name in IGNORE_FILES), above))  # noqa: PTH118
        place = prefix.index("/", place) + 1
    return Outset(prefix, overruled(chain, prefix))


def rules_of(locations: Iterable[str], directory: str) -> list[Rules]:
    """Return the rules of those ignore files of one directory that exist; `directory` as `Outset.prefix`."""
    read = (ignore_rules(_lines(location), skip=len(directory)) for location in locations)
    return [level for level in read if level.rules]


def _top(root: str, project: str | None) -> str:
    directory = Path(root)
    for candidate in (directory, *directory.parents):
        if os.path.lexists(candidate / ".git"):
            return str(candidate)
    return project if project and directory.is_relative_to(project) else root


def _lines(location: str) -> list[str]:
    try:
        # O_NONBLOCK: opening a pipe would wait for its writer.
        with open(os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return []
            data = stream.read(_MOST_BYTES)
    except OSError:
        return []
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
