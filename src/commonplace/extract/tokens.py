"""Tokenize a sentence; dotted names, paths and identifiers are one token each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from commonplace.patterns import late_pattern
from commonplace.text.sentences import ABBREVIATIONS

_TOKEN: Final = late_pattern(
    r"""
    https?://[^\s<>"'`)\]}|]+
    | \[redacted:\ [a-z0-9 ]{1,40}\]             # stands for a secret, and names nothing
    | `[^`\n]{1,120}`
    | ['’](?:s|re|ve|ll|m|d)\b
    | (?:[^\W\d_]\.){2,}                      # U.S.
    | (?:(?:\.{1,2}|~)?/|[@.](?=[^\W\d]))?     # ./src, @scope/package, .env
      \w+(?:(?:::|->|[.'’/@&+~-])\w+)*         # auth.ts, src/auth, well-known, AT&T
      (?:\(\)|\+\+|\#(?!\w)|/(?=\s|$))?       # parse(), C++, C#, src/
    | [^\w\s]
    """,
    re.VERBOSE,
)
_TAILS: Final = frozenset("s re ve ll m d t".split())


class Tokens:
    """The words of one sentence: as written, in small letters with plain apostrophes, and their places.

    `lower[i]` is without the full stop of an abbreviation, but with that of an initial. `at` gives "" beyond the ends.
    """

    __slots__ = ("count", "end", "lower", "start", "text", "word")

    def __init__(self, text: str, begin: int, stop: int) -> None:
        self.text = text
        self.word: list[str] = []
        self.lower: list[str] = []
        self.start: list[int] = []
        self.end: list[int] = []
        for match in _TOKEN.finditer(text, begin, stop):
            word = match.group()
            if word == "." and self._belongs_to_last(match.start()):
                self.word[-1] += "."
                if len(self.lower[-1]) == 1:
                    self.lower[-1] += "."
                self.end[-1] += 1
                continue
            if ("'" in word or "’" in word) and len(word) > 2 and word[0] != "`":
                self._add_contracted(word, match.start())
                continue
            self._add(word, match.start())
        self.count = len(self.word)

    def at(self, place: int) -> str:
        """Return the word at a place in small letters, "" outside the sentence."""
        return self.lower[place] if 0 <= place < self.count else ""

    def read(self, first: int, last: int) -> str:
        """Return what is written from one word up to, not including, another, spaces made single."""
        return " ".join(self.text[self.start[first] : self.end[last - 1]].split())

    def any_of(self, words: frozenset[str], first: int, last: int) -> bool:
        """Return whether one of some words is between two places."""
        lower: Sequence[str] = self.lower
        return any(lower[place] in words for place in range(max(first, 0), min(last, self.count)))

    def _add(self, word: str, start: int) -> None:
        lower = word.lower()
        self.word.append(word)
        self.lower.append(lower[:-1] if lower[-1:] == "." and len(lower) > 1 else lower)
        self.start.append(start)
        self.end.append(start + len(word))

    def _add_contracted(self, word: str, start: int) -> None:
        """Part `Mira's`, `we'll` and `doesn't` into their two words."""
        head, _, tail = word.replace("’", "'").rpartition("'")
        if tail.lower() not in _TAILS or not head:
            self._add(word.replace("’", "'"), start)
            return
        cut = len(head) - 1 if tail == "t" and head[-1:] == "n" and len(head) > 1 else len(head)
        self._add(word[:cut], start)
        self._add(word[cut:].replace("’", "'"), start + cut)

    def _belongs_to_last(self, start: int) -> bool:
        if not self.word or self.end[-1] != start:
            return False
        last = self.word[-1]
        if last.lower() in ABBREVIATIONS:
            return True
        return len(last) == 1 and last.isupper() and last != "I" and self.text[start + 1 : start + 3].strip() != ""
