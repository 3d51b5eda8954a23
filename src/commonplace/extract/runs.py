"""Find where a name in capitals begins and ends, and cut what is two names: `FAA Administrator Allan McArtor`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.extract.kinds import kind_of_name
from commonplace.extract.tokens import Tokens
from commonplace.extract.words import (
    ADVERBS,
    BREAKERS,
    CALENDAR,
    FIRST_NAMES,
    OPENERS,
    ORGANIZATION_FOR,
    ORGANIZATION_HEADS,
    ORGANIZATION_OF,
    PARTICLES,
    PLACE_HEADS,
    ROLES,
    SUFFIXES,
    TITLES,
)

_LONGEST_RUN: Final = 10
_SHORT: Final = 5
_STATIONS: Final = frozenset({"radio", "television", "tv"})
_APOSTROPHES: Final = frozenset({"'", "’"})
_SURNAMES_TOO: Final = frozenset("long winter winters summer summers".split())
"""Words of no name that are surnames too; days and months are not, since `Tom Monday` is Tom, on Monday."""
_BODIES: Final = frozenset("university college ministry department institute party".split())
_JOINTS: Final = frozenset("of for on the and de &".split())
_BEFORE_TITLE: Final = frozenset(
    "district circuit assistant deputy vice associate general executive chief senior acting former roman".split()
)


def run_end(tokens: Tokens, first: int) -> int:
    """Return where a run of capitalised words ends, with the small words that belong to a name."""
    last = first + 1
    while last < tokens.count and last - first < _LONGEST_RUN:
        lower = tokens.lower[last]
        if tokens.word[last][0].isupper():
            last += 1
        elif _is_capitalised(tokens, last + 1) and (
            lower in PARTICLES or lower == "&" or (lower in _APOSTROPHES and tokens.word[last - 1] == "O")
        ):
            last += 2
        elif lower in ("of", "for", "on") and tokens.lower[last - 1] in (
            ORGANIZATION_OF if lower == "of" else ORGANIZATION_FOR
        ):
            inner = last + 2 if tokens.at(last + 1) == "the" else last + 1
            if not _is_capitalised(tokens, inner) or tokens.lower[inner] in BREAKERS:
                break
            if inner > last + 1 and tokens.any_of(_BODIES, inner, inner + 3):
                break  # `Queens College of the City University`: two names
            last = inner + 1
        elif lower == "and" and _ends_organisation(tokens, first, last):
            last += 2
        else:
            break
    return last


def _is_capitalised(tokens: Tokens, place: int) -> bool:
    return place < tokens.count and tokens.word[place][0].isupper()


def _ends_organisation(tokens: Tokens, first: int, joint: int) -> bool:
    """Tell whether `and` joins two words of one name: `Department of Health and Human Services`."""
    if "of" not in tokens.lower[first:joint] and tokens.lower[first] != "national":
        return False
    for ahead in range(joint + 1, min(joint + 4, tokens.count)):
        if not tokens.word[ahead][0].isupper():
            return False
        if tokens.lower[ahead] in ORGANIZATION_HEADS:
            return True
    return False


def names_in_run(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the names in a run: first and last word, and whether a title before it makes it a person.

    The run is cut at words that are in no name, at dates and numbers, and at titles.
    """
    begin = first
    for place in range(first, last + 1):
        lower = tokens.lower[place] if place < last else ""
        is_call = place == 0 and lower in OPENERS and tokens.at(1) in FIRST_NAMES
        if place < last and not is_call and (_is_part(lower) or (place > begin and lower in _JOINTS)):
            continue
        if place < last and (_is_surname(tokens, begin, place) or _begins_firm(tokens, place, last)):
            continue
        if place > begin:
            for start, end in _parts(tokens, begin, place):
                yield from _by_title(tokens, start, end)
        begin = place + 1


def _is_surname(tokens: Tokens, begin: int, place: int) -> bool:
    """Tell whether a word that is in few names is one behind a given name: `Dan Rather`, `Ralph K. Winter`."""
    lower = tokens.lower[place]
    given = begin + 1 if place == begin + 2 and tokens.lower[begin + 1][-1] == "." else begin
    is_behind = place == given + 1 and tokens.lower[begin] in FIRST_NAMES
    return is_behind and tokens.word[place].istitle() and (lower in ADVERBS or lower in _SURNAMES_TOO)


def _begins_firm(tokens: Tokens, place: int, last: int) -> bool:
    """Tell whether what may be a day begins the name of a firm: `Sun Hung Kai Properties`."""
    if tokens.lower[place] not in ("sun", "sat", "may", "march", "april") or last - place < 2:
        return False
    return tokens.lower[last - 1] in ORGANIZATION_HEADS and tokens.word[place + 1][0].isalpha()


def _is_part(lower: str) -> bool:
    """Tell whether a word may be in a name: numbers of documents, `PM1602093194`, are not."""
    is_number = len(lower) > _SHORT and sum(char.isdigit() for char in lower) * 2 > len(lower)
    return lower not in BREAKERS and lower not in CALENDAR and not is_number


def _parts(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Part a place from the capitals behind it, `Tokyo YOMIURI SHIMBUN`, and `U.S.` from what is called by it."""
    is_office = last - first > 2 and any(tokens.lower[place] in ORGANIZATION_HEADS for place in range(first + 2, last))
    for cut in range(first + 1, last):
        word, before = tokens.word[cut], tokens.word[cut - 1]
        is_country = cut == first + 1 and tokens.lower[first] in ("u.s", "u.k") and not is_office
        is_apart = tokens.lower[cut] in _STATIONS or (_is_shouted(word) and not _is_shouted(before))
        if is_country or (is_apart and kind_of_name(tokens.lower[first:cut], tokens.word[first]).type == "place"):
            yield first, cut
            first = cut
    yield first, last


def _by_title(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """Yield what stands before a title, and the person behind it."""
    lower = tokens.lower
    titles = [place for place in range(first, last) if _is_title(tokens, place, last)]
    ends_organisation = lower[last - 1] in ORGANIZATION_HEADS and last - first > 1 and lower[last - 1] not in TITLES
    if not titles or ends_organisation:
        yield first, last, False
        return
    begin = titles[0]
    while begin > first and lower[begin - 1] in _BEFORE_TITLE:
        begin -= 1
    if begin > first:
        yield first, begin, False
    if titles[-1] + 1 < last:
        yield titles[-1] + 1, last, True


def _is_title(tokens: Tokens, place: int, last: int) -> bool:
    lower = tokens.lower[place]
    if _is_shouted(tokens.word[place]) and lower not in ROLES:
        return False
    behind = tokens.lower[place + 1 : last]
    if all(word in SUFFIXES or word in ORGANIZATION_HEADS or word in PLACE_HEADS for word in behind):
        return False
    return lower in TITLES or lower in ROLES


def _is_shouted(word: str) -> bool:
    return len(word) > 1 and word.isupper() and word[-1] != "."


def is_shouted(tokens: Tokens, first: int, last: int) -> bool:
    """Tell whether a name is in capitals and its sentence is not: `Tokyo YOMIURI SHIMBUN in Japanese`."""
    if not all(_is_shouted(tokens.word[place]) for place in range(first, last)):
        return False
    return any(word[0].isalpha() and not word.isupper() for word in tokens.word)
