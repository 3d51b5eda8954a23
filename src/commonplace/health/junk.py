"""Suspect texts that say nothing worth keeping. It knows words, no memories; a suspicion is for a person to judge."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_SAID: Final = re.compile(r"[\w']+(?:/\w+)*")
_PLEASANTRIES: Final = frozenset(
    "ok okay yes no sure thanks thank you great done hi hello hey bye good morning night job lol test testing todo n/a"
    " na none null undefined asdf got it will do sounds please you're welcome so much very all right alright cool nice"
    " foo bar baz qwerty".split()
)
_MOST_SAID: Final = 6
_LOG_LINE: Final = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d"
    r"|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE)\b|at \S+\(|File \"|\s*\|)"
)
_LOOKED_AT: Final = 20_000
_FEWEST_LINES: Final = 5
_FEWEST_WORDS: Final = 20
_MOST_REPEATED: Final = 0.5
_LEAST_OWN: Final = 0.2
_LEAST_LETTERS: Final = 0.3
_LONG: Final = 40


def suspicion(text: str) -> str:
    """Return why a text may be worth nothing, "" where nothing speaks against it."""
    head = text[:_LOOKED_AT].strip()
    return _of_words(head) or _of_lines([line for line in head.splitlines() if line.strip()])


def _of_words(text: str) -> str:
    said = _SAID.findall(text[:200].lower())
    if len(said) <= _MOST_SAID and said and _PLEASANTRIES.issuperset(said):
        return "it is a pleasantry or a placeholder"
    if text.lower().startswith("lorem ipsum"):
        return "it is a placeholder"
    letters = sum(character.isalpha() for character in text)
    if not letters:
        return "it has no words"
    written = sum(not character.isspace() for character in text)
    if written >= _LONG and letters < _LEAST_LETTERS * written:
        return "most of it is neither letters nor words"
    words = _WORD.findall(text.lower())
    if len(words) >= _FEWEST_WORDS and len(set(words)) < _LEAST_OWN * len(words):
        return "it repeats the same words"
    return ""


def _of_lines(lines: list[str]) -> str:
    if len(lines) < _FEWEST_LINES:
        return ""
    if sum(bool(_LOG_LINE.match(line)) for line in lines) > _MOST_REPEATED * len(lines):
        return "it looks like a log or a traceback"
    return "it repeats the same lines" if len(set(lines)) < _MOST_REPEATED * len(lines) else ""
