"""Find what a sentence names: people, places, organisations, tools, files, identifiers; by lists and by looks.

Knows one sentence at a time and no grammar; who is the same as who is settled later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from commonplace.extract.kinds import Kind, kind_of_name
from commonplace.extract.looks import kind_by_looks
from commonplace.extract.runs import is_shouted, names_in_run, run_end
from commonplace.extract.tokens import Tokens
from commonplace.extract.words import (
    AMBIGUOUS_FIRST_NAMES,
    BREAKERS,
    CLASS_NOUNS,
    CONCEPT_ACRONYMS,
    FIRST_NAMES,
    KIN,
    KINDS,
    PLACE_FRONTS,
    ROLES,
    TOOL_NAMES,
    TOOLS,
)

_BASED: Final = re.compile(r"([^\W\d_][\w.]*)-(?:based|born|headquartered)", re.IGNORECASE)
_TOOL_OR_VERB: Final = TOOLS & BREAKERS
"""`Go` is a language in the middle of a sentence."""
_NO_ROLES: Final = FIRST_NAMES | PLACE_FRONTS | frozenset({"royal"})
_TOOL_FIRSTS: Final = frozenset(name.split()[0] for name in TOOL_NAMES)
_MOST_WORDS: Final = 4
_LISTED, _TITLED, _CERTAIN, _LIKELY = 0.9, 0.9, 0.8, 0.65
_SPEAKING: Final = frozenset(
    """
said says told added asked replied wrote argued insisted explained recalled testified shot killed pleaded married died
thinks believes resigned apologized smiled laughed lives lived joined prefers likes loves hates
""".split()
)
_DONE_TO_PEOPLE: Final = frozenset(
    "born convicted sentenced assassinated shot arrested elected appointed hired fired murdered serving married".split()
)
_KINDS_OF_NAMED: Final = {
    noun: kind for noun, kind in KINDS.items() if noun in CLASS_NOUNS and kind in ("project", "tool")
}
"""What a name is by the noun behind it: `the Orion project`. The Orion team is not Orion."""


@dataclass(slots=True)
class Mention:
    """A name where it stands in a sentence, by the numbers of its words.

    Attributes:
        is_weak: too little tells that it is a name at all; counts only where a fact or another mention supports it.
    """

    first: int
    last: int
    name: str
    type: str
    confidence: float
    start: int
    end: int
    is_weak: bool = False


def find_names(tokens: Tokens, own: Mapping[str, str], *, is_prose: bool = True) -> list[Mention]:
    """Return the names of a sentence, in order, none overlapping another.

    Args:
        own: the caller's own types by what is called so, in small letters.
        is_prose: whether capital letters and lists mean anything; without, only paths and addresses are found.
    """
    found: list[Mention] = []
    place = 0
    while place < tokens.count:
        word = tokens.word[place]
        if word[0] == "[" or (word[0].islower() and word.isalpha() and word not in TOOLS and not own):
            place += 1
            continue
        named = (_own(tokens, place, own) if own else None) or _written_as_code(tokens, place, is_prose=is_prose)
        if named is not None:
            found.append(named)
            place = named.last
        elif is_prose and word[0].isupper():
            last = run_end(tokens, place)
            for first, end, is_titled in names_in_run(tokens, place, last):
                kind = Kind("person", _TITLED) if is_titled else None
                found += [_mention(tokens, first, end, kind)] if kind else _untitled(tokens, first, end)
            place = last
        else:
            place += 1
    return found


def _mention(tokens: Tokens, first: int, last: int, kind: Kind) -> Mention:
    start, end = tokens.start[first], tokens.end[last - 1]
    return Mention(first, last, tokens.read(first, last), kind.type, kind.confidence, start, end, kind.is_weak)


def _own(tokens: Tokens, place: int, own: Mapping[str, str]) -> Mention | None:
    """Find what the caller's own types list, up to four words long."""
    for last in range(min(place + _MOST_WORDS, tokens.count), place, -1):
        type_ = own.get(" ".join(tokens.lower[place:last]))
        if type_ is not None:
            return _mention(tokens, place, last, Kind(type_, 1.0))
    return None


def _written_as_code(tokens: Tokens, place: int, *, is_prose: bool) -> Mention | None:
    """Find an address, a path, an identifier, something in backticks, `Berlin-based`, a tool known by its name."""
    if tokens.lower[place] in _TOOL_FIRSTS:
        for last in range(min(place + _MOST_WORDS, tokens.count), place + 1, -1):
            if " ".join(tokens.lower[place:last]) in TOOL_NAMES:
                return _mention(tokens, place, last, Kind("tool", 0.95))
    word = tokens.word[place]
    if word[0] == "`" and len(word) > 2:
        inner = word[1:-1].strip()
        kind = kind_by_looks(inner, quoted=True) if inner else None
        if kind is None:
            return None
        start = tokens.start[place] + 1 + word[1:-1].index(inner)
        name = " ".join(inner.split())
        return Mention(place, place + 1, name, kind.type, kind.confidence, start, start + len(inner), kind.is_weak)
    based = _BASED.fullmatch(word) if word[0].isupper() and "-" in word else None
    if based is not None:
        sure = max(kind_of_name([based[1].lower()], based[1]).confidence, _LIKELY)
        start = tokens.start[place]
        return Mention(place, place + 1, based[1], "place", sure, start, start + len(based[1]))
    kind = kind_by_looks(word, quoted=False)
    if kind is None and place > 0 and word[0].isupper() and tokens.lower[place] in _TOOL_OR_VERB:
        kind = Kind("tool", _CERTAIN)
    if kind is None or not (is_prose or kind.type == "file"):
        return None
    return _mention(tokens, place, place + 1, kind)


def _untitled(tokens: Tokens, first: int, last: int) -> list[Mention]:
    """Return the one name that some capitalised words are; [] where they are none."""
    is_start = first == 0
    if is_start and last - first > 1:
        rest = kind_of_name(tokens.lower[first + 1 : last], tokens.word[first + 1])
        whole = kind_of_name(tokens.lower[first:last], tokens.word[first])
        is_part = tokens.lower[first] in FIRST_NAMES or tokens.lower[first] in PLACE_FRONTS
        if rest.confidence >= _LISTED > whole.confidence and rest.type != "person" and not is_part:
            first += 1
            is_start = False
    if last - first > 2 and tokens.lower[first] not in _NO_ROLES and _is_person(tokens.lower[first + 1 : last]):
        # What stands before a first name says who that is: `Linguist Phillip Lieberman`.
        first += int(tokens.lower[first + 1] not in AMBIGUOUS_FIRST_NAMES)
    kind = kind_of_name(tokens.lower[first:last], tokens.word[first], is_start=is_start, before=tokens.at(first - 1))
    is_town = tokens.at(last) == "," and _is_region_at(tokens, last + 1)
    if last - first > 1 and kind.confidence < _LIKELY and is_shouted(tokens, first, last) and not is_town:
        return [_mention(tokens, first, last, Kind("organization", 0.6))]
    if kind.type and kind.confidence < _CERTAIN:
        kind = _by_neighbours(tokens, first, last, kind)
    return [_mention(tokens, first, last, kind)] if kind.type else []


def _is_person(words: Sequence[str]) -> bool:
    """Tell whether words are a full name by a list."""
    return words[0] in FIRST_NAMES and kind_of_name(words, words[0]).type == "person"


def _by_neighbours(tokens: Tokens, first: int, last: int, kind: Kind) -> Kind:
    """Make more of a doubtful name where the words around it tell what it is."""
    before, behind, next_ = tokens.at(first - 1), tokens.at(last), tokens.at(last + 1)
    if behind == "," and next_.isdigit() and len(next_) == 2 and tokens.at(last + 2) == ",":
        return Kind("person", _LISTED)
    if behind == "," and _is_region_at(tokens, last + 1):
        return Kind("place", _CERTAIN)
    if kind.type in ("concept", "person") and before != "the" and _does_as_people_do(tokens, first, last):
        return Kind("person", max(kind.confidence, _LIKELY))
    is_said = behind in _KINDS_OF_NAMED or before == "project"
    if is_said and not CONCEPT_ACRONYMS.issuperset(tokens.lower[first:last]):  # the API service is no project "API"
        return Kind(_KINDS_OF_NAMED.get(behind, "project"), _LIKELY)
    is_plain = last - first < 3 and tokens.word[first].isalpha() and not tokens.lower[last - 1].endswith("y")
    if kind.type == "concept" and before == "in" and is_plain:
        return Kind("place", 0.6)
    return kind


def _is_region_at(tokens: Tokens, place: int) -> bool:
    """Tell whether a country or state of up to two words stands at a place, and no list goes on there."""
    for last in (place + 2, place + 1):
        if last <= tokens.count and all(word[0].isupper() for word in tokens.word[place:last]):
            other = kind_of_name(tokens.lower[place:last], tokens.word[place])
            if other.is_region and tokens.at(last) != "and":
                return True
    return False


def _does_as_people_do(tokens: Tokens, first: int, last: int) -> bool:
    """Tell whether what stands around a name is said of people: `… said`, `… was born`, `wife …`, `…, the owner`."""
    before, behind, next_ = tokens.at(first - 1), tokens.at(last), tokens.at(last + 1)
    if behind in _SPEAKING or behind == "who" or (behind in ("was", "is") and next_ in _DONE_TO_PEOPLE):
        return True
    if (before in ROLES or before in KIN) and tokens.word[first - 1].islower():
        return True
    if behind != ",":
        return False
    return next_ == "who" or (next_ in ("a", "an", "the", "former") and tokens.any_of(ROLES, last + 2, last + 5))
