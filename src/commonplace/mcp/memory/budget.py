"""Keep what a tool answers within its budget of tokens. It knows lists and texts, not what they are about."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

MOST_TOKENS: Final = 2_500
"""Of one response, counted with the default embedder's vocabulary."""

CountTokens = Callable[[str], int]


def largest(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number, from 0 to `count`, that fits; whatever fits, fewer do too."""
    return count if fits(count) else bisect_right(range(1, count), False, key=lambda size: not fits(size))


def beginning(text: str, tokens: int, count: CountTokens) -> str:
    """Return a text, or as much of its beginning as has so many tokens, with a mark where it was cut."""
    if len(text) <= tokens or count(text) <= tokens:  # a token has a character at least
        return text
    most = min(len(text), tokens * 16)
    size = bisect_right(range(1, most), tokens - 1, key=lambda end: count(text[:end]))
    return text[:size].rstrip() + "…"


def ending(lines: Sequence[str], tokens: int, count: CountTokens) -> list[str]:
    """Return as many of the last lines as have so many tokens."""
    size = largest(len(lines), lambda size: count("\n".join(lines[len(lines) - size :])) <= tokens)
    return list(lines[len(lines) - size :])
