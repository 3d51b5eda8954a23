"""Token budgets of answers, bounded without a tokenizer."""

from __future__ import annotations

from typing import Final

MAX_TOKENS: Final = 2_500
"""Of one response, counted with the default embedder's vocabulary."""
_MAX_PER_CHARACTER: Final = 3
"""Tokens that one character may become: a Korean syllable is taken apart into its letters."""


def most_tokens(text: str) -> int:
    """Return a number of tokens that a text has at most; counting them takes milliseconds, this does not."""
    # Each character beyond ASCII has at least one byte more.
    return len(text) + (_MAX_PER_CHARACTER - 1) * (len(text.encode()) - len(text))
