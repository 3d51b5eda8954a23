"""Detect the language of a text by file name, script, common words or the form of its code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import word_lists

ENGLISH: Final = "english"
_WORDS: Final = word_lists(Path(__file__).with_name("stopwords.txt"))
TASK_WORDS: Final = _WORDS.pop("task")
"""English words that ask for work, whatever its subject."""
FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = _WORDS
"""Function words by language (the name of its Snowball stemmer), with diacritics, in lower case."""
STOP_WORDS: Final = FUNCTION_WORDS[ENGLISH]
"""The English function words."""
Language = Literal["markdown", "restructuredtext", "text", "config", "python", "code"]
PROSE: Final[frozenset[Language]] = frozenset({"markdown", "restructuredtext", "text"})
_FILES: Final = word_lists(Path(__file__).with_name("languages.txt"))


def _named(kind: str) -> dict[str, Any]:
    return {key: name[len(kind) :] for name, keys in _FILES.items() if name.startswith(kind) for key in keys}


_BY_NAME: Final[dict[str, Language]] = _named("name ")
BY_SUFFIX: Final[dict[str, Language]] = _named("suffix ")
"""Language by suffix, lower case, without the dot."""


def language_of(name: str) -> Language | None:
    """Return the language of a file by its name (no directories), or None for a kind that is not indexed by default."""
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
"""Names of a language, a hint that its texts contain, and the pattern of a function in it."""


def programming_language(path: str, text: str) -> str:
    """Return the names of the programming language of a text, by its path, else by its content; "" for none.

    Without a path it is the first language whose hint occurs in the text and whose function pattern matches.
    """
    if path:
        return _PROGRAMMING_BY_SUFFIX.get(path.rpartition(".")[2].lower(), "")
    return next((names for names, hint, function in _CODE if hint in text and function.search(text)), "")


_LOOKED_AT: Final = 600
"""Number of leading characters that decide the language of a text."""
_WORD: Final = lazy_pattern(r"[^\W\d_]+")
_LETTER: Final = lazy_pattern(r"[^\W\d_]")
_FOREIGN: Final = frozenset[str]().union(*FUNCTION_WORDS.values()) - STOP_WORDS
_MIN_SHARE: Final = 0.15
"""Minimum share of function words among a text's distinct words; names and code contain some by chance."""

# Language, its letters, and letters of the same script that it does not have and that show another language.
_SCRIPTS: Final = (
    ("russian", lazy_pattern("[\u0430-\u044f\u0451]"), lazy_pattern("[\u0452-\u045f\u0491\u0493\u049b]")),
    ("greek", lazy_pattern("[\u03ac-\u03ce]"), None),
    ("arabic", lazy_pattern("[\u0621-\u064a]"), lazy_pattern("[\u0679-\u06d3]")),
    ("armenian", lazy_pattern("[\u0561-\u0587]"), None),
    ("hindi", lazy_pattern("[\u0904-\u0939]"), None),
    ("tamil", lazy_pattern("[\u0b85-\u0bb9]"), None),
)

NATURAL_LANGUAGES: Final = tuple(sorted({*FUNCTION_WORDS, *(name for name, _, _ in _SCRIPTS)}))
"""All values of `natural_language`."""


def natural_language(text: str) -> str:
    """Return the language of a text, as the name of its Snowball stemmer; English unless another is recognised.

    A script used by only one language suffices. Among languages in Latin letters, the one with the most function words
    in the text is chosen, if it has two that English lacks and more in total than English.
    """
    text = text[:_LOOKED_AT].casefold()
    if not text.isascii():
        for language, letters, others in _SCRIPTS:
            if letters.search(text):
                # Most letters belong to its script, and none to another language.
                is_other = others is not None and others.search(text)
                is_match = not is_other and 2 * len(letters.findall(text)) > len(_LETTER.findall(text))
                return language if is_match else ENGLISH
    words = set(_WORD.findall(text))
    foreign = words & _FOREIGN
    candidates = [
        (len(words & function_words), language)
        for language, function_words in FUNCTION_WORDS.items()
        if language != ENGLISH and len(foreign & function_words) >= 2
    ]
    count, best = max(candidates, default=(0, ENGLISH))
    return best if count > len(words & STOP_WORDS) and count >= _MIN_SHARE * len(words) else ENGLISH
