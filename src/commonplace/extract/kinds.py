"""Say what kind of thing a name is, from its words alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from commonplace.extract.words import (
    AMBIGUOUS_FIRST_NAMES,
    CITIES,
    CONCEPT_ACRONYMS,
    COUNTRIES,
    DEMONYMS,
    FIRST_NAMES,
    INTO_PLACE,
    KINDS,
    ORGANIZATION_HEADS,
    ORGANIZATION_OF,
    ORGANIZATIONS,
    PARTICLES,
    PLACE_FRONTS,
    PLACE_HEADS,
    PLAIN_TOOLS,
    POSTAL,
    REGIONS,
    ROLES,
    STATES,
    SUFFIXES,
    SURNAMES,
    TITLED_NOUNS,
    TITLES,
    TOOL_NAMES,
    TOOLS,
)

_PLACES: Final = COUNTRIES | STATES | CITIES | REGIONS
_INITIAL: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])*\.?")
_SHORT: Final = 5


class Kind(NamedTuple):
    """What a name is; type "" is no name at all.

    Attributes:
        is_region: a country or state, in which other places lie.
    """

    type: str
    confidence: float
    is_weak: bool = False
    is_region: bool = False


NOTHING: Final = Kind("", 0.0)


def kind_of_name(words: Sequence[str], written: str, *, is_start: bool = False, before: str = "") -> Kind:
    """Return what a capitalised name is.

    Args:
        words: its words in small letters.
        written: its first word as written.
        is_start: it begins a sentence, where a capital letter says nothing.
        before: the word before it.
    """
    whole = " ".join(words)
    if whole in TOOL_NAMES:
        return Kind("tool", 0.95)
    if len(words) == 1:
        return _kind_of_word(whole, written, is_start=is_start, before=before)
    if whole in _PLACES:
        return Kind("place", 0.95, is_region=whole in COUNTRIES or whole in STATES)
    if whole in ORGANIZATIONS:
        return Kind("organization", 0.95)
    return _kind_of_words(words, is_start=is_start)


def kind_of_noun(head: str) -> str:
    """Return the type of what a common noun names, `concept` where nothing better is known."""
    found = KINDS.get(head) or (KINDS.get(head[:-1]) if head.endswith("s") else None)
    return found or "concept"


def _kind_of_word(word: str, written: str, *, is_start: bool, before: str) -> Kind:
    """Return what one capitalised word is."""
    if len(word) == 1 or written[:1].isdigit():
        return NOTHING
    is_place = word in _PLACES and (word not in _PLAIN_PLACES or written.isupper() or before in INTO_PLACE)
    is_in = before in INTO_PLACE or before == "of"
    if word in FIRST_NAMES and not (is_place and (is_in or before in ("", ","))):
        is_plain = word in AMBIGUOUS_FIRST_NAMES and is_start
        return Kind("person", 0.5 if is_plain else 0.8, is_weak=is_plain)
    if is_place:
        return Kind("place", 0.9, is_region=word in COUNTRIES or word in STATES)
    if word in TOOLS:
        return Kind("tool", 0.9, is_weak=is_start and word in PLAIN_TOOLS)
    return _listed(word) or _unlisted(word, written, is_start=is_start)


def _listed(word: str) -> Kind | None:
    """Return what a word is that stands in one of our lists."""
    return next((kind for words, kind in _LISTS if word in words), None)


def _unlisted(word: str, written: str, *, is_start: bool) -> Kind:
    if written in POSTAL:
        return Kind("place", 0.6, is_weak=True, is_region=True)
    if written.isupper() and len(written) <= _SHORT and written.isalpha():
        return Kind("organization", 0.5)
    if word in ORGANIZATION_HEADS:
        return Kind("organization", 0.5, is_weak=True)
    return Kind("concept", 0.4, is_weak=is_start)


def _kind_of_words(words: Sequence[str], *, is_start: bool) -> Kind:
    """Return what several capitalised words are, by the first rule that holds."""
    found = next((kind for holds, kind in _RULES if holds(words)), None)
    if found is None:
        return Kind("concept", 0.4, is_weak=is_start)
    if found.type == "person" and is_start and words[0] in AMBIGUOUS_FIRST_NAMES:
        return Kind("person", 0.7)
    return found


_PLAIN_PLACES: Final = frozenset("us nice split".split())
_LISTS: Final[tuple[tuple[frozenset[str], Kind], ...]] = (
    (CONCEPT_ACRONYMS - ROLES, Kind("concept", 0.6)),
    (ORGANIZATIONS, Kind("organization", 0.9)),
    (SURNAMES, Kind("person", 0.7)),
    (DEMONYMS | ROLES | TITLES | SUFFIXES, NOTHING),
)

_NOT_BEHIND_NAME: Final = frozenset("court church post marshall guard labs bank".split())
_NOUN_ENDS: Final = (
    "ing",
    "tion",
    "ment",
    "ness",
    "ity",
    "ism",
    "ics",
    "ance",
    "ence",
    "ware",
    "work",
    "ship",
    "ology",
)


def _looks_like_person(words: Sequence[str]) -> bool:
    names = [word for word in words if word not in PARTICLES]
    return 0 < len(names) <= 3 and all(map(_is_surname, names))


def _is_surname(word: str) -> bool:
    """Tell whether a capitalised word may be a person's name: it looks like no common noun."""
    if any(word in words for words in (KINDS, DEMONYMS, CONCEPT_ACRONYMS, TOOLS, _PLACES, TITLED_NOUNS)):
        return False
    return word.replace("-", "").replace("'", "").isalpha() and not word.endswith(_NOUN_ENDS) and len(word) > 1


Rule = tuple[Callable[[Sequence[str]], bool], Kind]
_RULES: Final[tuple[Rule, ...]] = (
    (lambda words: words[-1] in DEMONYMS, NOTHING),
    (
        lambda words: words[-1] in SUFFIXES and len(words) > 2 and (words[0] in FIRST_NAMES or words[-1][0] != "i"),
        Kind("person", 0.9),
    ),
    (
        lambda words: (
            words[-1] in ORGANIZATION_HEADS and not (words[0] in FIRST_NAMES and words[-1] in _NOT_BEHIND_NAME)
        ),
        Kind("organization", 0.9),
    ),
    (
        lambda words: ("of" in words or "for" in words) and not ORGANIZATION_OF.isdisjoint(words[:-2]),
        Kind("organization", 0.9),
    ),
    (lambda words: "&" in words, Kind("organization", 0.8)),
    (
        lambda words: words[-1] in PLACE_HEADS and (words[0] not in FIRST_NAMES or words[-1] == "county"),
        Kind("place", 0.85),
    ),
    (lambda words: words[0] in FIRST_NAMES, Kind("person", 0.9)),
    (lambda words: words[-1] in PLACE_HEADS, Kind("place", 0.7)),
    (lambda words: any(_INITIAL.fullmatch(word) for word in words[:-1]), Kind("person", 0.85)),
    (lambda words: words[0] in PLACE_FRONTS, Kind("place", 0.75)),
    (lambda words: words[0] in ORGANIZATIONS or words[-1] in ORGANIZATIONS, Kind("organization", 0.6)),
    (lambda words: words[0] == "project", Kind("project", 0.8)),
    (lambda words: KINDS.get(words[-1]) == "project", Kind("project", 0.6)),
    (lambda words: KINDS.get(words[-1]) == "event", Kind("event", 0.6)),
    (lambda words: words[0] in TOOLS or words[-1] in TOOLS, Kind("tool", 0.6)),
    (lambda words: words[0] in DEMONYMS, Kind("concept", 0.4)),
    (_looks_like_person, Kind("person", 0.6)),
)
