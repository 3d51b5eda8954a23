"""Say what a query has to have in common with a name or fact to be about it: words, or a meaning that is plain.

A graph is small and its texts are short, so the nearest of them is always somewhat near. It knows no entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from commonplace.text.stopwords import STOP_WORDS
from commonplace.types.graph import Subject

LEAST_MEANT: Final[Mapping[Subject, float]] = {"relation": 0.45, "entity": 0.65}
"""The least score of what shares no word with the query; a name has less to be alike by than a sentence. Round numbers,
between what answers (`SQL` finds a fact about Postgres at .55, `mountaineering` climbing at .78) and what does not
(`penguins` finds a fact at .38, and Globex at .56)."""
LEAST_NAMED: Final[Mapping[str, float]] = {"minilm": 0.75}
"""Of a name, where a transformer made the vectors: it finds a place by `Beethoven symphony` at .69, a word that
names nothing by a greeting at .74, and climbing by `mountaineering` above."""
LEAST_BY_LETTERS: Final = 0.7
"""The same where vectors are made of letters and mean nothing."""
_OF_LETTERS: Final = frozenset({"hashing"})
_WORD: Final = re.compile(r"[^\W_]+")
_LEAST_LETTERS: Final = 2.5
"""A word that the vocabulary cuts into pieces of fewer letters on average is none it knows: `zz`, `##zz`."""
NEVER: Final = 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """What scores must reach.

    Attributes:
        least: with a word in common.
        least_meant: without; more than 1 where only words can tell.
    """

    least: float = 0.0
    least_meant: float = 0.0

    def passes(self, score: float, *, has_word: bool) -> bool:
        """Tell whether something is what the query is about."""
        return score >= (self.least if has_word else self.least_meant)


def bar(query: str, kind: Subject, embedder: str, pieces: Callable[[str], int]) -> Bar:
    """Return what scores must reach that a query has for entities or facts.

    Args:
        embedder: the name of that which makes the vectors.
        pieces: returns into how many pieces its vocabulary cuts a word.
    """
    words = [word for word in _WORD.findall(query) if not (word.islower() and word in STOP_WORDS)]
    if not words:
        return Bar(NEVER, NEVER)
    if embedder in _OF_LETTERS:
        return Bar(least_meant=LEAST_BY_LETTERS)
    is_known = any(_is_known(word, pieces) for word in words if word.lower() not in STOP_WORDS)
    least = LEAST_NAMED.get(embedder, LEAST_MEANT[kind]) if kind == "entity" else LEAST_MEANT[kind]
    return Bar(least_meant=least if is_known else NEVER)


def _is_known(word: str, pieces: Callable[[str], int]) -> bool:
    """Tell whether vectors can say what a word means: a number is only itself."""
    return word.isalpha() and len(word) >= _LEAST_LETTERS * max(pieces(word), 1)
