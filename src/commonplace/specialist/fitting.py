"""Keep a response within its budget of tokens. It knows how responses are written, not what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from commonplace.formats.csp_response import Response, format_response
from commonplace.text.budget import MOST_TOKENS, most_tokens

if TYPE_CHECKING:
    from commonplace.specialist.book import Book


def fits(book: Book, response: Response) -> bool:
    """Return whether a response has at most 2500 tokens."""
    return _tokens(book, response) <= MOST_TOKENS


def largest(book: Book, make: Callable[[int], Response], count: int) -> int:
    """Return the largest size, up to `count`, whose response fits; 0 where none does.

    Args:
        make: returns the response of a size; a larger one has more tokens.
    """
    low, low_tokens = 0, 0
    high, high_tokens = count, _tokens(book, make(count)) if count else 0
    if high_tokens <= MOST_TOKENS:
        return count
    halves = False
    while high - low > 1:
        # Tokens grow evenly with the size, so a guess in proportion is near; halving in turn bounds what it may cost.
        share = (MOST_TOKENS - low_tokens) / (high_tokens - low_tokens)
        middle = (low + high) // 2 if halves else low + int((high - low) * share)
        middle = min(max(middle, low + 1), high - 1)
        halves = not halves
        tokens = _tokens(book, make(middle))
        if tokens <= MOST_TOKENS:
            low, low_tokens = middle, tokens
        else:
            high, high_tokens = middle, tokens
    return low


def _tokens(book: Book, response: Response) -> int:
    """Return how many tokens a response has, or may have at most where that is few enough."""
    text = format_response(response)
    bound = most_tokens(text)
    return bound if bound <= MOST_TOKENS else book.count_tokens(text)
