"""Token budgets of answers, bounded without a tokenizer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

MAX_TOKENS: Final = 2_500
"""Maximum tokens of one response, counted with the default embedder's vocabulary."""
_MAX_PER_CHARACTER: Final = 3
"""Maximum tokens of one character: a Korean syllable is decomposed into its letters."""


def most_tokens(text: str) -> int:
    """Return an upper bound on the tokens of a text; exact counting takes milliseconds."""
    # Each non-ASCII character has at least one extra byte.
    return len(text) + (_MAX_PER_CHARACTER - 1) * (len(text.encode()) - len(text))


def has_room(text: str, count_tokens: Callable[[str], int]) -> bool:
    """Return whether a text fits into one response; a short one need not be counted."""
    return most_tokens(text) <= MAX_TOKENS or count_tokens(text) <= MAX_TOKENS


def largest(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number, 0 to `count`, that fits; `fits` must be monotonic: less than what fits also fits."""
    return count if fits(count) else bisect_right(range(1, count), False, key=lambda size: not fits(size))
