"""The words of each language that are too common to find anything by, and by which the language itself is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from commonplace.text.words import word_lists

ENGLISH: Final = "english"
_WORDS: Final = word_lists(Path(__file__).with_name("stopwords.txt"))

TASK_WORDS: Final = _WORDS.pop("task")
"""English words by which people ask for work, whatever it is about; beside them stands what it is about."""

FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(_WORDS)
"""The function words of each language by the name of its Snowball stemmer, as they are written, in small letters."""

STOP_WORDS: Final = FUNCTION_WORDS[ENGLISH]
"""The English ones."""
