"""Words that are spelled almost alike, and which of the words of some texts a misspelt one may be meant for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

SHORTEST: Final = 5
"""A shorter word is one slip away from too many others."""

_LONG: Final = 9
"""From here on a word may have two slips."""

MAX_WORDS: Final = 16
"""A longer query is a text, of which some word is always known."""

WORDS: Final = re.compile(r"[^\W\d_]+")


def slips(word: str) -> int:
    """Return how many edits a word may be away from what is meant."""
    return 0 if len(word) < SHORTEST else 1 if len(word) < _LONG else 2


def edits(one: str, other: str, most: int) -> int:
    """Return how many edits lead from one word to the other, `most` + 1 for more than `most`.

    An edit is a character more, less or other, or two neighbours exchanged (optimal string alignment).
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        earlier, before, row = before, row, [place]
        for at, wanted in enumerate(other, 1):
            cost = min(row[-1] + 1, before[at] + 1, before[at - 1] + (letter != wanted))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == wanted:
                cost = min(cost, earlier[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def respelled(query: str, is_word: Callable[[str], bool], near: Callable[[str], Iterable[str]]) -> str:
    """Return a query with the words that it may have been meant to have; a long one as it is.

    Args:
        is_word: tells whether a word is one, so that it is left as it is.
        near: returns texts that may hold what a word that is none is meant for.
    """

    if len(WORDS.findall(query)) > MAX_WORDS:
        return query

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        return word if not slips(word) or is_word(word) else meant(word, near(word)) or word

    return WORDS.sub(replaced, query)


def meant(word: str, texts: Iterable[str]) -> str:
    """Return the word of the texts that a misspelt one is meant for: the nearest, then the commonest; "" for none.

    Both begin alike, and differ by one character in length at most: few slips are other than that, and most words that
    are ("methane", "methadone") are other words.
    """
    most, written = slips(word), word.casefold()
    counts = Counter(found for text in texts for found in set(WORDS.findall(text)))
    near = [
        (distance, -count, known)
        for known, count in counts.items()
        if known[0].casefold() == written[0]
        and abs(len(known) - len(word)) <= 1
        and (distance := edits(written, known.casefold(), most)) <= most
    ]
    return min(near)[2] if near else ""
