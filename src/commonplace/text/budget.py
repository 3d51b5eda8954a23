"""Token budgets of answers, bounded without a tokenizer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

MAX_TOKENS: Final = 2_500
"""Of one response, counted with the default embedder's vocabulary."""
_MAX_PER_CHARACTER: Final = 3
"""Tokens that one character may become: a Korean syllable is taken apart into its letters."""


def most_tokens(text: str) -> int:
    """Return a number of tokens that a text has at most; counting them takes milliseconds, this does not."""
    # Each character beyond ASCII has at least one byte more.
    return len(text) + (_MAX_PER_CHARACTER - 1) * (len(text.encode()) - len(text))


def has_room(text: str, count_tokens: Callable[[str], int]) -> bool:
    """Return whether a text fits into one response; a short one need not be counted."""
    return most_tokens(text) <= MAX_TOKENS or count_tokens(text) <= MAX_TOKENS


def largest(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number, from 0 to `count`, that fits; whatever fits, fewer do too."""
    return count if fits(count) else bisect_right(range(1, count), False, key=lambda size: not fits(size))
