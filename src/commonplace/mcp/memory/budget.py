"""Keep what a tool answers within its budget of tokens. It knows lists and texts, not what they are about."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from commonplace.text.budget import MOST_TOKENS, most_tokens
from commonplace.text.escaping import visible

CountTokens = Callable[[str], int]


def has_room(count: CountTokens, *texts: str) -> bool:
    """Return whether each form of a response is within its budget; a short one need not be counted."""
    return all(most_tokens(text) <= MOST_TOKENS or count(text) <= MOST_TOKENS for text in texts)


def largest(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number, from 0 to `count`, that fits; whatever fits, fewer do too."""
    return count if fits(count) else bisect_right(range(1, count), False, key=lambda size: not fits(size))


def beginning(text: str, tokens: int, count: CountTokens) -> str:
    """Return a text as it is shown, or as much of its beginning as has so many tokens, with a mark where it was cut."""
    text = visible(text)
    if len(text) <= tokens or count(text) <= tokens:  # a token has a character at least
        return text
    most = min(len(text), tokens * 16)
    size = bisect_right(range(1, most), tokens - 1, key=lambda end: count(text[:end]))
    return text[:size].rstrip() + "…"


def ending(lines: Sequence[str], tokens: int, count: CountTokens) -> list[str]:
    """Return as many of the last lines as have so many tokens."""
    size = largest(len(lines), lambda size: count("\n".join(lines[len(lines) - size :])) <= tokens)
    return list(lines[len(lines) - size :])
