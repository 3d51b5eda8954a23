"""Word lists and patterns of the extractor; each list of words.txt is a name here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.text.words import patterns, word_lists

if TYPE_CHECKING:

    def __getattr__(name: str) -> frozenset[str]:
        """Return a list of words.txt."""


WORDS: Final = word_lists(Path(__file__).with_name("words.txt"))
PATTERNS: Final = patterns(Path(__file__).with_name("patterns.txt"))
"""The named patterns of patterns.txt."""
globals().update(WORDS)


def _all_of(names: str) -> frozenset[str]:
    return frozenset[str]().union(*map(WORDS.__getitem__, names.split()))


AUXILIARIES: Final = _all_of("BE HAVE DO MODALS FUTURE")
_PLAIN: Final = AUXILIARIES | _all_of("PREPOSITIONS CONJUNCTIONS PRONOUNS ADVERBS VERBS DETERMINERS")
STOPS: Final = _PLAIN | WORDS["STOPS_TOO"]
"""Words that never occur inside a noun phrase."""
BREAKERS: Final = (_PLAIN - WORDS["NO_BREAKERS"]) | WORDS["BREAKERS"]
"""Words that never occur inside a name, whatever their case."""
KINDS: Final = {word: name[5:] for name, words in WORDS.items() if name.startswith("KIND ") for word in words}
"""Entity type by the last word of a common noun phrase."""
