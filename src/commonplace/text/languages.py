"""Detect the language of a text: by file name, script, common words or the look of code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import word_lists

ENGLISH: Final = "english"
_WORDS: Final = word_lists(Path(__file__).with_name("stopwords.txt"))
TASK_WORDS: Final = _WORDS.pop("task")
"""English words by which people ask for work, whatever it is about; the other words are the subject."""
FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(_WORDS)
"""The function words of each language by the name of its Snowball stemmer, as they are written, in small letters."""
STOP_WORDS: Final = FUNCTION_WORDS[ENGLISH]
"""The English ones."""
Language = Literal["markdown", "restructuredtext", "text", "config", "python", "code"]
PROSE: Final[frozenset[Language]] = frozenset({"markdown", "restructuredtext", "text"})
_FILES: Final = word_lists(Path(__file__).with_name("languages.txt"))


def _named(kind: str) -> dict[str, Any]:
    return {each: name[len(kind) :] for name, some in _FILES.items() if name.startswith(kind) for each in some}


_BY_NAME: Final[dict[str, Language]] = _named("name ")
BY_SUFFIX: Final[dict[str, Language]] = _named("suffix ")
"""Language by suffix, lower case, without the dot."""


def language_of(name: str) -> Language | None:
    """Return the language of a file by its name (no directories), or None for a kind that is not indexed unasked."""
    lowered = name.lower()
    stem, dot, suffix = lowered.rpartition(".")
    return _BY_NAME.get(lowered) or (BY_SUFFIX.get(suffix) if dot and stem else None)


_PROGRAMMING_BY_SUFFIX: Final[dict[str, str]] = _named("program ")
_CODE: Final[tuple[tuple[str, str, re.Pattern[str]], ...]] = (
    (
        "python",
        "def ",
        lazy_pattern(r"^[ \t]*(?:async )?def \w+\s*\([^\n]*(?:\n[^\n]*){0,12}?\)[^\n:]*:\s*(?:#|$)", re.M),
    ),
    ("php", "function ", lazy_pattern(r"\bfunction \w+\s*\([^)]*\$\w+[^)]*\)\s*\{|\$this->")),
    ("javascript", "function", lazy_pattern(r"\bfunction\b\s*\w*\s*\([^)$]*\)\s*\{")),
    ("java", "public ", lazy_pattern(r"^[ \t]*(?:public|private|protected)\s[\w\s<>\[\],]+\([^)]*\)[\w\s,.]*\{", re.M)),
    ("go golang", "func ", lazy_pattern(r"^func (?:\(\w+ \*?\w+\) )?\w+\(", re.M)),
    ("rust", "fn ", lazy_pattern(r"\bfn \w+(?:<[^>]*>)?\([^)]*\)[^{;]*\{")),
    ("ruby", "def ", lazy_pattern(r"^[ \t]*def [\w.?!=]+[^\n:]*\n(?:[^\n]*\n)*?[ \t]*end\b", re.M)),
)
"""Names of a language, what a text must hold to be looked at, and what a function in it looks like."""


def programming_language(path: str, text: str) -> str:
    """Return the names of the programming language that a text is written in, "" for none: by its path, else by itself.

    A text without a path is in the first language whose hint it contains and whose pattern of a function matches.
    """
    if path:
        return _PROGRAMMING_BY_SUFFIX.get(path.rpartition(".")[2].lower(), "")
    return next((names for names, hint, function in _CODE if hint in text and function.search(text)), "")


_LOOKED_AT: Final = 600
"""Number of first characters by which the language of a text is recognised."""
_WORD: Final = lazy_pattern(r"[^\W\d_]+")
_LETTER: Final = lazy_pattern(r"[^\W\d_]")
_FOREIGN: Final = frozenset[str]().union(*FUNCTION_WORDS.values()) - STOP_WORDS
_MIN_SHARE: Final = 0.15
"""Least share of function words among the different words of a text; names and code hold some by chance."""

# Of Cyrillic, Arabic and Devanagari the letters that Russian, Arabic and Hindi do not have tell that it is another one.
_SCRIPTS: Final = (
    ("russian", lazy_pattern("[\u0430-\u044f\u0451]"), lazy_pattern("[\u0452-\u045f\u0491\u0493\u049b]")),
    ("greek", lazy_pattern("[\u03ac-\u03ce]"), None),
    ("arabic", lazy_pattern("[\u0621-\u064a]"), lazy_pattern("[\u0679-\u06d3]")),
    ("armenian", lazy_pattern("[\u0561-\u0587]"), None),
    ("hindi", lazy_pattern("[\u0904-\u0939]"), None),
    ("tamil", lazy_pattern("[\u0b85-\u0bb9]"), None),
)

NATURAL_LANGUAGES: Final = tuple(sorted({*FUNCTION_WORDS, *(name for name, _, _ in _SCRIPTS)}))
"""What `natural_language` may answer."""


def natural_language(text: str) -> str:
    """Return the language of a text by the name of its Snowball stemmer; English unless another one is recognised.

    A script that only one language uses is enough. Among those written in Latin letters the one with most
    function words in the text is chosen, if it has two that English has not and more of them than English.
    """
    text = text[:_LOOKED_AT].casefold()
    if not text.isascii():
        for language, letters, others in _SCRIPTS:
            if letters.search(text):
                # Most letters are of its script, and none is of another language's.
                is_other = others is not None and others.search(text)
                is_it = not is_other and 2 * len(letters.findall(text)) > len(_LETTER.findall(text))
                return language if is_it else ENGLISH
    words = set(_WORD.findall(text))
    foreign = words & _FOREIGN
    if len(foreign) < 2:
        return ENGLISH
    own = [
        (len(words & known), language)
        for language, known in FUNCTION_WORDS.items()
        if language != ENGLISH and len(foreign & known) >= 2
    ]
    count, best = max(own, default=(0, ENGLISH))
    return best if count > len(words & STOP_WORDS) and count >= _MIN_SHARE * len(words) else ENGLISH
