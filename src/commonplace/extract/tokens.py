"""Tokenize a sentence; dotted names, paths and identifiers are one token each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from commonplace.lazy_regex import lazy_pattern
from commonplace.text.sentences import ABBREVIATIONS

_TOKEN: Final = lazy_pattern(
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
    """The words of one sentence, as written and in lower case with plain apostrophes, with their character offsets.

    `lower[i]` omits the full stop of an abbreviation, but has that of an initial. `at` returns "" beyond the ends.
    """

    __slots__ = ("count", "end", "lower", "start", "text", "word")

    def __init__(self, text: str, begin: int, stop: int) -> None:
        self.text = text
        self.word: list[str] = []
        self.lower: list[str] = []
        self.start: list[int] = []
        self.end: list[int] = []
        for match in _TOKEN.finditer(text, begin, stop):
            word, offset = match.group(), match.start()
            if word == "." and self.word and self.end[-1] == offset:
                last = self.word[-1]
                is_initial = len(last) == 1 and last.isupper() and last != "I"
                # The full stop of an abbreviation or an initial belongs to it.
                if last.lower() in ABBREVIATIONS or (is_initial and text[offset + 1 : offset + 3].strip()):
                    self.word[-1] += "."
                    if len(self.lower[-1]) == 1:
                        self.lower[-1] += "."
                    self.end[-1] += 1
                    continue
            if ("'" not in word and "’" not in word) or len(word) <= 2 or word[0] == "`":
                self._add(word, offset)
                continue
            plain = word.replace("’", "'")
            head, _, tail = plain.rpartition("'")
            if tail.lower() not in _TAILS or not head:
                self._add(plain, offset)
                continue
            # `Mira's`, `we'll` and `doesn't` are two words each.
            cut = len(head) - 1 if tail == "t" and head[-1:] == "n" and len(head) > 1 else len(head)
            self._add(word[:cut], offset)
            self._add(plain[cut:], offset + cut)
        self.count = len(self.word)

    def at(self, index: int) -> str:
        """Return the word at an index in lower case, "" outside the sentence."""
        return self.lower[index] if 0 <= index < self.count else ""

    def read(self, first: int, last: int) -> str:
        """Return the text of the words `first` to `last`, exclusive, with single spaces."""
        return " ".join(self.text[self.start[first] : self.end[last - 1]].split())

    def any_of(self, words: frozenset[str], first: int, last: int) -> bool:
        """Return whether one of `words` is between two indexes, the second exclusive."""
        lower: Sequence[str] = self.lower
        return any(lower[index] in words for index in range(max(first, 0), min(last, self.count)))

    def _add(self, word: str, start: int) -> None:
        lower = word.lower()
        self.word.append(word)
        self.lower.append(lower[:-1] if lower[-1:] == "." and len(lower) > 1 else lower)
        self.start.append(start)
        self.end.append(start + len(word))
