"""Load word lists and patterns from data files."""

from __future__ import annotations

import re
from pathlib import Path

from commonplace.lazy_regex import lazy_pattern


def word_lists(path: Path) -> dict[str, frozenset[str]]:
    """Return the word lists of a file by name: one entry per line, `[name]` begins a list, `#` a comment."""
    return {name: frozenset(words) for name, words in sections(path).items()}


def patterns(path: Path) -> dict[str, re.Pattern[str]]:
    """Return the case-insensitive patterns of a file by name: `@name` begins one, each line is an alternative."""
    return {name: lazy_pattern("|".join(ways), re.IGNORECASE) for name, ways in sections(path, "@").items()}


def sections(path: Path, mark: str = "[") -> dict[str, list[str]]:
    """Return the lines below each `[name]` of a file, by name."""
    lists: dict[str, list[str]] = {}
    for line in entries(path):
        if line.startswith(mark):
            words = lists[line.strip("@[]")] = []
        else:
            words.append(line)
    return lists


def entries(path: Path) -> list[str]:
    """Return the lines of a file that are neither empty nor comments."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
