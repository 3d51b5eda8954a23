"""A text as a stream of words, read ahead and looked back on a little; knows no dates.

Only a few hundred words are kept at a time, so a long text costs no memory.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(r"\w+|[^\w\s]")
GAP = 3
"""More white space than this between two words, or an empty line, parts them."""
BEHIND, BATCH = 8, 256
GLUE = frozenset("_/.-@#$\\")
"""Marks that make a word right behind them a part of something longer."""
LIKE = str.maketrans("’‘–—−", "''---")


class Word(NamedTuple):
    """A word, a number or one punctuation mark.

    Attributes:
        lower: in lower case, with plain apostrophes and dashes; "" where the text begins, ends or is parted.
        glued: nothing stands between it and the word before.
    """

    text: str
    lower: str
    start: int
    end: int
    glued: bool

    @property
    def is_number(self) -> bool:
        """Whether it is one to four plain digits; longer ones are never part of a date."""
        return len(self.text) <= 4 and self.text.isascii() and self.text.isdigit()

    @property
    def is_capitalised(self) -> bool:
        return self.text[:1].isupper()


BREAK = Word("", "", -1, -1, False)


class Words:
    """The words of a text by their number; before the first and after the last stands `BREAK`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._matches = TOKEN.finditer(text)
        self._kept: list[Word] = []
        self._base = 0
        self._read = 0

    def __getitem__(self, index: int) -> Word:
        place = index - self._base
        if place < 0:
            return BREAK
        while place >= len(self._kept):
            if not self._extend():
                return BREAK
        return self._kept[place]

    def has(self, index: int) -> bool:
        """Tell whether the text goes on as far as that."""
        return self[index] is not BREAK or index - self._base < len(self._kept)

    def after(self, offset: int, index: int) -> int:
        """Return the number of the first word, or break, from `index` on that is not before a place in the text."""
        while self[index] is not BREAK and self[index].start < offset:
            index += 1
        return index

    def is_in_name(self, index: int) -> bool:
        """Tell whether a word is a part of something longer, or is called or set: `date.today()`, `today = 1`."""
        word, behind = self[index], self[index + 1]
        if (word.glued and self[index - 1].lower in GLUE) or behind.lower == "=":
            return True
        return behind.glued and (behind.lower in "(_@/\\" or (behind.lower == "." and self[index + 2].glued))

    def forget(self, index: int) -> None:
        """Drop what lies too far before a word to be looked back on."""
        spare = index - self._base - BEHIND
        if spare >= BATCH:
            del self._kept[:spare]
            self._base += spare

    def _extend(self) -> bool:
        match = next(self._matches, None)
        if match is None:
            return False
        start, end = match.span()
        gap = start - self._read
        if gap > GAP or (gap > 1 and self.text.count("\n", self._read, start) > 1):
            self._kept.append(BREAK)
        text = match.group()
        self._kept.append(Word(text, text.lower().translate(LIKE), start, end, gap == 0 and start > 0))
        self._read = end
        return True
