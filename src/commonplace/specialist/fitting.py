"""Keep a response within its budget of tokens. It knows how responses are written, not what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from commonplace.formats.csp_response import Response, format_response

if TYPE_CHECKING:
    from commonplace.specialist.book import Book

MOST_TOKENS: Final = 2500


def fits(book: Book, response: Response) -> bool:
    """Return whether a response has at most 2500 tokens."""
    return book.count_tokens(format_response(response)) <= MOST_TOKENS


def largest(book: Book, make: Callable[[int], Response], count: int) -> int:
    """Return the largest size, up to `count`, whose response fits; 0 where none does.

    Args:
        make: returns the response of a size; a larger one has more tokens.
    """
    if count and fits(book, make(count)):
        return count
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if fits(book, make(middle)):
            low = middle
        else:
            high = middle
    return low
