"""Load word lists from data files."""

from __future__ import annotations

from pathlib import Path


def word_lists(path: Path) -> dict[str, frozenset[str]]:
    """Return the lists of a file by name: one entry a line, `[name]` begins a list, `#` a comment."""
    lists: dict[str, list[str]] = {}
    for line in entries(path):
        if line.startswith("["):
            words = lists[line.strip("[]")] = []
        else:
            words.append(line)
    return {name: frozenset(words) for name, words in lists.items()}


def entries(path: Path) -> list[str]:
    """Return the lines of a file that are not empty and no comment."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
