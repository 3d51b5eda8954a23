"""Other forms of the name of one thing: nicknames, acronyms, plurals, possessives, a pub's name without `pub`.

It knows how English forms names, no entity. What it returns may mean the same: whoever looks it up decides.
"""

from __future__ import annotations

import re
from typing import Final

from commonplace.extract.words import CITIES, CONCEPT_ACRONYMS, COUNTRIES, ORGANIZATION_HEADS, REGIONS, STATES, TOOLS
from commonplace.graph.hypocorisms import related
from commonplace.graph.naming import KEY, cleaned, keys, normal, parts

_PLACES: Final = CITIES | COUNTRIES | REGIONS | STATES
_SMALL: Final = frozenset("of the and for in on at to a an de & d".split())
_ACRONYM: Final = re.compile(r"[A-Z][A-Za-z]?(?:[A-Z]|[A-Z][a-z](?=[A-Z]))*[A-Z]|(?:[A-Za-z]\.){2,}[A-Za-z]?")
_LETTERS: Final = re.compile(r"[^A-Za-z]+")
_WORD: Final = re.compile(r"[^\W_]+")
_SHORTEST, _LONGEST = 3, 8
_OF_ORGANIZATIONS: Final = 2
"""So short an acronym tells something only of organizations, whose kind of name it is."""
_POSSESSIVE: Final = re.compile(r"(?<=\w)['’]s?$")
_PLAIN_PLURAL: Final = re.compile(r"[a-z]{4,}s|(?:[A-Z]{2,8})s")
_NO_PLURAL: Final = ("ss", "us", "is", "as", "os", "ics", "ews", "ies", "ous")
_HOUSES: Final = frozenset({"place", "organization"})
_VENUES: Final = frozenset(
    {"pub", "bar", "tavern", "cafe", "café", "restaurant", "diner", "bistro", "bakery", "hotel", "inn"}
)
_TEAMS: Final = frozenset({"organization", "concept"})
_TEAM: Final = re.compile(r"(?:[Tt]he )?[A-Z]\w+s")
_ALIKE: Final = frozenset({"pub", "bar", "tavern"})


def stored_keys(name: str, type_: str) -> tuple[str, ...]:
    """Return the keys under which an entity is to stand for one of its names."""
    found = list(keys(name, type_))
    if type_ not in ("person", "file"):
        found += [f"{KEY}acro:{each}" for each in initials(name)]
    if type_ in _TEAMS and team(name):
        found.append(f"{KEY}team:{team(name)}")
    if type_ in _HOUSES and _venue(name)[1]:
        found.append(f"{KEY}venue:{normal(_venue(name)[0])}")
    return tuple(dict.fromkeys(found))


def more_keys(name: str, type_: str) -> tuple[str, ...]:
    """Return what else to look up for other forms of a name: nicknames, acronyms, plurals."""
    found = list(also_written(name, type_))
    if type_ == "person":
        return (*found, *(f"{KEY}part:{each}" for each in nicknames(name)))
    if type_ != "file":
        found += [f"{KEY}acro:{each}" for each in (acronym(name),) if each]
    if type_ in _HOUSES:
        stem = normal(_venue(name)[0])
        found += [stem, f"{KEY}venue:{stem}"]
    if type_ in _TEAMS:
        found += [f"{KEY}team:{normal(name)}"] if _TEAM.fullmatch(cleaned(name)) else []
        found += [each for each in (team(name),) if each]
    return tuple(found)


def also_written(name: str, type_: str) -> tuple[str, ...]:
    """Return normal forms under which the same thing may stand, its own left out."""
    found: list[str] = []
    base = _POSSESSIVE.sub("", cleaned(name))
    if type_ not in ("person", "file"):
        found += [normal(each) for each in (singular(name), plural(name)) if each]
    if base != cleaned(name):
        found.append(normal(base))
    return tuple(each for each in dict.fromkeys(found) if each and each != normal(name))


def nicknames(name: str) -> tuple[str, ...]:
    """Return in normal form the given names that somebody of this name may also go by."""
    own = parts(name)
    return tuple(sorted(related(own[0]))) if own else ()


def singular(name: str) -> str:
    """Return the singular of one plain word or acronym, `modules`, `MOBAs`; "" for all else, and what may be none."""
    word = cleaned(name)
    if not _PLAIN_PLURAL.fullmatch(word) or word.endswith(_NO_PLURAL) or word.lower() in TOOLS:
        return ""
    return word[:-1]


def plural(name: str) -> str:
    """Return the plural of one plain word or acronym, "" for all else."""
    word = f"{cleaned(name)}s"
    return word if singular(word) else ""


def acronym(name: str) -> str:
    """Return a name that is written as an acronym in small letters, `lotr` of LOTR; "" for all else.

    Those of techniques (API, SQL) are words of their own, and stand for no name that happens to have these initials.
    """
    bare = cleaned(name).removeprefix("the ").removeprefix("The ")
    letters = _LETTERS.sub("", bare)
    is_one = (_ACRONYM.fullmatch(bare) is not None or letters.isupper()) and " " not in bare
    known = letters.lower() in CONCEPT_ACRONYMS
    return letters.lower() if is_one and not known and _OF_ORGANIZATIONS <= len(letters) <= _LONGEST else ""


def initials(name: str) -> tuple[str, ...]:
    """Return the acronyms that the words of a name make, with its small words and without, in small letters."""
    words = [each for each in _WORD.findall(cleaned(name)) if each[0].isalpha()]
    if words and words[0].lower() == "the":
        words = words[1:]
    large = [each for each in words if each.lower() not in _SMALL]
    if len(large) < _OF_ORGANIZATIONS or not all(each[0].isupper() for each in large):
        return ()
    made = ("".join(each[0] for each in some).lower() for some in (words, large))
    return tuple(each for each in dict.fromkeys(made) if _OF_ORGANIZATIONS <= len(each) <= _LONGEST)


def is_acronym_of(short: str, name: str, type_: str) -> bool:
    """Tell whether one name is written as the acronym of another."""
    letters = acronym(short)
    fewest = _OF_ORGANIZATIONS if type_ == "organization" else _SHORTEST
    return len(letters) >= fewest and letters in initials(name)


def team(name: str) -> str:
    """Return the last word of a team's name in normal form, `wolves` of the Minnesota Wolves; "" for all else."""
    words = cleaned(name).removeprefix("The ").removeprefix("the ").split()
    if len(words) < 2 or not words[-1][0].isupper() or not words[-1].endswith("s"):
        return ""
    place, last = " ".join(words[:-1]).lower(), words[-1].lower()
    return normal(last) if place in _PLACES and last not in ORGANIZATION_HEADS else ""


def are_forms(one: str, other: str, type_: str) -> bool:
    """Tell whether two names of things of one type are such forms of each other."""
    first, second = normal(one), normal(other)
    if type_ == "person":
        return False
    if second in also_written(one, type_) or first in also_written(other, type_):
        return True
    if type_ in _TEAMS and (team(one) == second or team(other) == first):
        return True
    return is_acronym_of(one, other, type_) or (type_ in _HOUSES and _is_one_house(one, other))


def _is_one_house(one: str, other: str) -> bool:
    """Tell whether two names of houses differ only in that one of them says what it is: a pub is a bar, no hotel."""
    (first, venue), (second, kind) = _venue(one), _venue(other)
    is_alike = not (venue and kind) or {venue, kind} <= _ALIKE
    return bool(venue or kind) and is_alike and normal(first) == normal(second)


def _venue(name: str) -> tuple[str, str]:
    """Part `pub` from the name of one: `McGee's`, `pub`."""
    stem, _, last = cleaned(name).rpartition(" ")
    return (stem, last.lower()) if stem and last.lower() in _VENUES else (cleaned(name), "")
