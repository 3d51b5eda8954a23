"""Tell what is said to be so from what is asked, supposed, wished, rumoured or planned."""

from __future__ import annotations

from typing import Final

from commonplace.extract.tokens import Tokens
from commonplace.extract.words import NEGATIONS

DOUBTS: Final = frozenset(
    """
assumed ensure ensures ensuring wrong mistaken
if unless whether suppose supposing assume assumes assuming imagine hypothetically provided lest wish wishes wished hope
hopes hoped hoping maybe perhaps possibly probably presumably allegedly reportedly apparently supposedly rumor rumors
rumour rumours rumoured rumored hear heard hearsay claim claims claimed alleges alleged think thinks thought believe
believes believed guess guesses doubt doubts doubted wonder wonders wondered might could would should may ought let lets
propose proposes proposed suggest suggests suggested consider considers considered considering evaluate evaluates
evaluating deny denies denied denying pretend pretends want wants wanted expect expects expected dream dreamed dreamt
theoretically potentially hopefully ideally likely unlikely false myth suspect suspects suspected otherwise example e.g
""".split()
)
"""Before a verb in its sentence they take away that it is so."""

BOUNDARIES: Final = frozenset({";", "but", "because", "—", "–", "however"})
"""Behind one of these the sentence speaks anew."""

_TRAILING: Final = frozenset("if unless whether provided assuming".split())
_TIMES: Final = frozenset("when whenever once until".split())
_ASSURANCES: Final = frozenset("true correct sure certain clear given".split())
_INVERTED: Final = frozenset("should would could were had".split())


def is_question(tokens: Tokens) -> bool:
    """Tell whether a sentence asks."""
    place = tokens.count - 1
    while place >= 0 and tokens.word[place] in ('"', "'", ")", "”", "’", "]", "*", "_"):
        place -= 1
    return place >= 0 and tokens.word[place][-1] in "?？"


def doubtful_places(tokens: Tokens) -> list[bool]:
    """Return for each word whether something before it, in its part of the sentence, makes it doubtful."""
    doubtful: list[bool] = []
    # `Should it fail, …` and `Were we to move …` are conditions by their order of words.
    is_doubtful = tokens.at(0) in _INVERTED
    for place, lower in enumerate(tokens.lower):
        if lower in BOUNDARIES:
            is_doubtful = False
        doubtful.append(is_doubtful)
        is_doubtful = is_doubtful or _casts_doubt(tokens, place)
    return doubtful


def _casts_doubt(tokens: Tokens, place: int) -> bool:
    lower = tokens.lower[place]
    if lower in _TIMES:
        return not _is_past_clause(tokens, place)
    if lower == "as":
        return tokens.at(place + 1) in ("if", "though")
    if lower == "sure" and tokens.at(place - 1) in ("make", "making"):
        return True
    if lower in _ASSURANCES:
        return tokens.any_of(NEGATIONS, place - 3, place)
    return lower in DOUBTS and not _is_name(tokens, place)


def _is_name(tokens: Tokens, place: int) -> bool:
    """Tell whether `May` or `Hope` is written as a name inside a sentence, or `may` is a month."""
    return place > 0 and tokens.word[place][0].isupper() and tokens.word[place - 1] not in ('"', ".", ":", "“")


def _is_past_clause(tokens: Tokens, place: int) -> bool:
    """Tell whether `when she joined` speaks of something that has happened."""
    return any(word.endswith("ed") or word in _PASTS for word in tokens.lower[place + 1 : place + 6])


_PASTS: Final = frozenset("was were had did left became went came took began chose built broke ran".split())


def has_condition_behind(tokens: Tokens, first: int, last: int) -> bool:
    """Tell whether an `if` or `unless` follows in the same part of the sentence."""
    for place in range(first, last):
        lower = tokens.lower[place]
        if lower in BOUNDARIES:
            return False
        if lower in _TRAILING:
            return True
    return False
