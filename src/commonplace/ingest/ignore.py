"""Say which paths a set of .gitignore-style lines names, nearest directory first; it reads no files.

Lines mean what they mean to git: the last line that matches decides, `!` takes a path back, a nested file is stronger
than the one above it, and nothing inside an ignored directory can be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from commonplace.errors import UsageError

IGNORE_FILES: Final = (".gitignore", ".commonplaceignore")


@dataclass(frozen=True, slots=True)
class Rules:
    """Compiled lines that hold for everything below one directory.

    Attributes:
        skip: how many characters of a path (relative to the walk's root) lead to that directory, slash included.
        patterns: (regular expression, whether it ignores), the strongest first.
    """

    skip: int
    patterns: tuple[tuple[re.Pattern[str], bool], ...]

    def verdict(self, path: str) -> bool | None:
        """Return True if the lines name the path, False if they take it back, None if they are silent.

        `path` is relative to the walk's root, posix, and ends in a slash for a directory.
        """
        tail = path[self.skip :]
        for expression, names in self.patterns:
            if expression.match(tail):
                return names
        return None


def rules(lines: Iterable[str], *, skip: int = 0) -> Rules:
    """Compile .gitignore lines; a line that is no valid pattern is passed over, as git does."""
    import pathspec

    patterns: list[tuple[re.Pattern[str], bool]] = []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        try:
            compiled = pathspec.GitIgnoreSpec.from_lines([line]).patterns
        except ValueError:
            continue
        patterns.extend(
            (pattern.regex, pattern.include)
            for pattern in compiled
            if isinstance(pattern, pathspec.RegexPattern) and pattern.regex is not None and pattern.include is not None
        )
    return Rules(skip, tuple(reversed(patterns)))


def globs(lines: Sequence[str]) -> Rules:
    """Compile the globs of a request.

    Raises:
        UsageError: a glob is not valid, or there is none.
    """
    for line in lines:
        if not rules([line]).patterns:
            raise UsageError(
                f"{line!r} is not a glob", remedy="write it as in .gitignore, for example 'docs/**/*.md' or '*.py'"
            )
    if not lines:
        raise UsageError("no glob was given", remedy="name at least one, for example '**/*.md'")
    return rules(lines)


def is_ignored(path: str, chain: Sequence[Rules]) -> bool:
    """Return what the nearest rules that speak of the path say; `chain` goes from the root inwards."""
    for level in reversed(chain):
        verdict = level.verdict(path)
        if verdict is not None:
            return verdict
    return False
