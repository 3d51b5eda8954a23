"""Recognise names in a sentence: people, places, organisations, tools, files, identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from commonplace.dataclasses import dataclass, replace
from commonplace.extract import words as lists
from commonplace.extract.tokens import Tokens
from commonplace.lazy_regex import lazy_pattern

_PLACES: Final = lists.COUNTRIES | lists.STATES | lists.CITIES | lists.REGIONS
_INITIAL: Final = lazy_pattern(r"[^\W\d_](?:\.[^\W\d_])*\.?")
_SHORT: Final = 5


class Kind(NamedTuple):
    """The type of a name, "" for no name at all; a region is a country or state, which contains other places."""

    type: str
    confidence: float
    is_weak: bool = False
    is_region: bool = False


NOTHING: Final = Kind("", 0.0)
_FIRM: Final = Kind("organization", 0.9)


def kind_of_name(words: Sequence[str], written: str, *, is_start: bool = False, before: str = "") -> Kind:
    """Return the kind of a capitalised name: its words in lower case, its first word as written, the word before it.

    At the start of a sentence its capital letter is no evidence.
    """
    whole = " ".join(words)
    if whole in lists.TOOL_NAMES:
        return Kind("tool", 0.95)
    if len(words) == 1:
        return _kind_of_word(whole, written, is_start=is_start, before=before)
    is_region = whole in lists.COUNTRIES or whole in lists.STATES
    if whole in _PLACES:
        return Kind("place", 0.95, is_region=is_region)
    match = next((kind for holds, kind in _RULES if holds(words)), None)
    if match is None:
        return Kind("concept", 0.4, is_weak=is_start)
    if match.type == "person" and is_start and words[0] in lists.AMBIGUOUS_FIRST_NAMES:
        return Kind("person", 0.7)
    return match


def kind_of_noun(head: str) -> str:
    """Return the entity type of a common noun, `concept` by default."""
    kind = lists.KINDS.get(head) or (lists.KINDS.get(head[:-1]) if head.endswith("s") else None)
    return kind or "concept"


def _kind_of_word(word: str, written: str, *, is_start: bool, before: str) -> Kind:
    if len(word) == 1 or written[:1].isdigit():
        return NOTHING
    is_place = word in _PLACES and (word not in lists.PLAIN_PLACES or written.isupper() or before in lists.INTO_PLACE)
    is_in = before in lists.INTO_PLACE or before == "of"
    if word in lists.FIRST_NAMES and not (is_place and (is_in or before in ("", ","))):
        is_plain = word in lists.AMBIGUOUS_FIRST_NAMES and is_start
        return Kind("person", 0.5 if is_plain else 0.8, is_weak=is_plain)
    if is_place:
        return Kind("place", 0.9, is_region=word in lists.COUNTRIES or word in lists.STATES)
    if word in lists.TOOLS:
        return Kind("tool", 0.9, is_weak=is_start and word in lists.PLAIN_TOOLS)
    listed = next((kind for words, kind in _LISTS if word in words), None)
    if listed is not None:
        return listed
    if written in lists.POSTAL:
        return Kind("place", 0.6, is_weak=True, is_region=True)
    is_acronym = written.isupper() and len(written) <= _SHORT and written.isalpha()
    if is_acronym or word in lists.ORGANIZATION_HEADS:
        return Kind("organization", 0.5, is_weak=not is_acronym)
    return Kind("concept", 0.4, is_weak=is_start)


_LISTS: Final[tuple[tuple[frozenset[str], Kind], ...]] = (
    (lists.CONCEPT_ACRONYMS - lists.ROLES, Kind("concept", 0.6)),
    (lists.ORGANIZATIONS, _FIRM),
    (lists.SURNAMES, Kind("person", 0.7)),
    (lists.DEMONYMS | lists.ROLES | lists.TITLES | lists.SUFFIXES, NOTHING),
)

_NO_SURNAMES: Final = _PLACES.union(
    lists.KINDS, lists.DEMONYMS, lists.CONCEPT_ACRONYMS, lists.TOOLS, lists.TITLED_NOUNS
)
_NOUN_ENDS: Final = tuple("ing tion ment ness ity ism ics ance ence ware work ship ology".split())


def _looks_like_person(words: Sequence[str]) -> bool:
    """Return whether one to three capitalised words are no likely common nouns and in no list of other things."""
    names = [word for word in words if word not in lists.PARTICLES]
    if any(len(word) < 2 or word.endswith(_NOUN_ENDS) or word in _NO_SURNAMES for word in names):
        return False
    return 0 < len(names) <= 3 and all(word.replace("-", "").replace("'", "").isalpha() for word in names)


Rule = tuple[Callable[[Sequence[str]], bool], Kind]
_RULES: Final[tuple[Rule, ...]] = (
    (lambda words: words[-1] in lists.DEMONYMS, NOTHING),
    (
        lambda words: (
            words[-1] in lists.SUFFIXES and len(words) > 2 and (words[0] in lists.FIRST_NAMES or words[-1][0] != "i")
        ),
        Kind("person", 0.9),
    ),
    (lambda words: words[-1] in lists.ORGANIZATION_HEADS, _FIRM),
    (lambda words: ("of" in words or "for" in words) and not lists.ORGANIZATION_OF.isdisjoint(words[:-2]), _FIRM),
    (lambda words: "&" in words, Kind("organization", 0.8)),
    (
        lambda words: words[-1] in lists.PLACE_HEADS and (words[0] not in lists.FIRST_NAMES or words[-1] == "county"),
        Kind("place", 0.85),
    ),
    (lambda words: words[0] in lists.FIRST_NAMES, Kind("person", 0.9)),
    (lambda words: words[-1] in lists.PLACE_HEADS, Kind("place", 0.7)),
    (lambda words: any(_INITIAL.fullmatch(word) for word in words[:-1]), Kind("person", 0.85)),
    (lambda words: words[0] in lists.PLACE_FRONTS, Kind("place", 0.75)),
    (lambda words: words[0] in lists.ORGANIZATIONS or words[-1] in lists.ORGANIZATIONS, Kind("organization", 0.6)),
    (lambda words: words[0] == "project", Kind("project", 0.8)),
    (lambda words: lists.KINDS.get(words[-1]) == "project", Kind("project", 0.6)),
    (lambda words: lists.KINDS.get(words[-1]) == "event", Kind("event", 0.6)),
    (lambda words: words[0] in lists.TOOLS or words[-1] in lists.TOOLS, Kind("tool", 0.6)),
    (lambda words: words[0] in lists.DEMONYMS, Kind("concept", 0.4)),
    (_looks_like_person, Kind("person", 0.6)),
)


_MAX_RUN_LENGTH: Final = 10
_ENDS_OF_NAMES: Final = lists.SUFFIXES | lists.ORGANIZATION_HEADS | lists.PLACE_HEADS


def run_end(tokens: Tokens, first: int) -> int:
    """Return the end of a run of capitalised words, including lower-case words that belong to a name."""
    last = first + 1
    while last < tokens.count and last - first < _MAX_RUN_LENGTH:
        lower, before = tokens.lower[last], tokens.lower[last - 1]
        is_followed = _is_capitalised(tokens, last + 1)
        if tokens.word[last][0].isupper():
            last += 1
        elif is_followed and (
            lower in lists.PARTICLES or lower == "&" or (lower in ("'", "’") and tokens.word[last - 1] == "O")
        ):
            last += 2
        elif lower in ("of", "for", "on") and before in (
            lists.ORGANIZATION_OF if lower == "of" else lists.ORGANIZATION_FOR
        ):
            inner = last + 2 if tokens.at(last + 1) == "the" else last + 1
            if not _is_capitalised(tokens, inner) or tokens.lower[inner] in lists.BREAKERS:
                break
            last = inner + 1
        elif lower == "and" and ("of" in tokens.lower[first:last] or tokens.lower[first] == "national"):
            # `and` may join two words of one name: `Department of Health and Human Services`.
            behind = range(last + 1, min(last + 4, tokens.count))
            head = next((index for index in behind if tokens.lower[index] in lists.ORGANIZATION_HEADS), None)
            if head is None or not all(_is_capitalised(tokens, index) for index in range(last + 1, head + 1)):
                break
            last += 2
        else:
            break
    return last


def _is_capitalised(tokens: Tokens, index: int) -> bool:
    return index < tokens.count and tokens.word[index][0].isupper()


def names_in_run(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the names in a run: first and last word, half-open, and whether a title before it makes it a person.

    The run is cut at words that occur in no name, at dates and numbers, and at titles.
    """
    begin = first
    for index in range(first, last + 1):
        if index < last:
            lower = tokens.lower[index]
            # Document numbers such as `PM1602093194` occur in no name.
            is_number = len(lower) > _SHORT and sum(char.isdigit() for char in lower) * 2 > len(lower)
            is_part = lower not in lists.BREAKERS and lower not in lists.CALENDAR and not is_number
            if is_part or (index > begin and lower in lists.JOINTS):
                continue
        if index > begin:
            for start, end in _parts(tokens, begin, index):
                yield from _by_title(tokens, start, end)
        begin = index + 1


def _parts(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Split a place from the capitals after it, `Tokyo YOMIURI SHIMBUN`, and `U.S.` from the name after it."""
    is_office = tokens.any_of(lists.ORGANIZATION_HEADS, first + 2, last)
    for cut in range(first + 1, last):
        word, before = tokens.word[cut], tokens.word[cut - 1]
        is_country = cut == first + 1 and tokens.lower[first] in ("u.s", "u.k") and not is_office
        is_apart = tokens.lower[cut] in lists.STATIONS or (_is_shouted(word) and not _is_shouted(before))
        if is_country or (is_apart and kind_of_name(tokens.lower[first:cut], tokens.word[first]).type == "place"):
            yield first, cut
            first = cut
    yield first, last


def _by_title(tokens: Tokens, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """Split words at titles: yield the name before the first, and the person after the last."""
    lower = tokens.lower
    ranks = [at for at in range(first, last) if lower[at] in lists.ROLES or lower[at] in lists.TITLES]
    loud = {at for at in ranks if lower[at] not in lists.ROLES and _is_shouted(tokens.word[at])}
    titles = [at for at in ranks if at not in loud and not _ENDS_OF_NAMES.issuperset(lower[at + 1 : last])]
    is_organisation = last - first > 1 and lower[last - 1] in lists.ORGANIZATION_HEADS - lists.TITLES
    if not titles or is_organisation:
        yield first, last, False
        return
    if titles[0] > first:
        yield first, titles[0], False
    if titles[-1] + 1 < last:
        yield titles[-1] + 1, last, True


def _is_shouted(word: str) -> bool:
    return len(word) > 1 and word.isupper() and word[-1] != "."


_MAX_WORD_LENGTH: Final = 200
_IDENTIFIER: Final = lazy_pattern(r"[^\W\d]\w*(?:(?:\.|::|->)\w+)*(?:\(\))?")
_LETTER: Final = lazy_pattern(r"[^\W\d_]")
_HUMP: Final = lazy_pattern(r"[a-z0-9][A-Z]")
_SURNAME: Final = lazy_pattern(r"(?:Mc|Mac|De|Di|Du|Van|La|Le|Fitz|O'|D')[A-Z]")


def kind_by_looks(word: str, *, quoted: bool) -> Kind | None:
    """Return the kind of a word, code if it is quoted, by its spelling: `auth.ts`, `src/auth`, `parse()`, `redis`."""
    lower = word.lower()
    is_plain = word.isalpha() and word.islower() and not quoted and lower not in lists.TOOLS
    if is_plain or len(word) > _MAX_WORD_LENGTH or not _LETTER.search(word):
        return None
    if lower.startswith(("http://", "https://")):
        return Kind("file", 0.9)
    if lower in lists.TOOLS:
        return Kind("tool", 0.95) if quoted or lower not in lists.PLAIN_TOOLS else None
    if " " in word:
        return Kind("concept", 0.5, is_weak=True)
    stem, dot, ending = lower.rpartition(".")
    has_stem = bool(stem or quoted) and not stem.isdigit() and len(stem) + len(ending) > 2
    if has_stem if dot and ending in lists.FILE_ENDINGS else lower in lists.FILE_NAMES:
        return Kind("file", 0.95)
    if "/" in word:
        parts = lower.split("/")
        is_path = parts[0] in lists.FOLDERS or word[0] in "./~" or (quoted and all(parts[:-1]))
        return Kind("tool", 0.8) if word[0] == "@" else Kind("file", 0.9) if is_path else None
    return _identifier(word, quoted=quoted)


def _identifier(word: str, *, quoted: bool) -> Kind | None:
    if word.endswith("()") or "::" in word or "->" in word or "_" in word.strip("_"):
        return Kind("concept", 0.85) if _IDENTIFIER.fullmatch(word) else None
    if _HUMP.search(word) and word.isidentifier() and not _SURNAME.match(word):
        return Kind("concept", 0.7)
    if not quoted:
        return None
    return Kind("concept", 0.7) if _IDENTIFIER.fullmatch(word) or "-" in word else Kind("concept", 0.5, is_weak=True)


_BASED: Final = lazy_pattern(r"([^\W\d_][\w.]*)-(?:based|born|headquartered)", re.IGNORECASE)
_TOOL_OR_VERB: Final = lists.TOOLS & lists.BREAKERS
"""Tools that are also verbs; capitalised inside a sentence, `Go` is the language."""
_NO_ROLES: Final = lists.FIRST_NAMES | lists.PLACE_FRONTS | frozenset({"royal"})
_TOOL_FIRSTS: Final = frozenset(name.split()[0] for name in lists.TOOL_NAMES)
_MAX_WORDS: Final = 4
_LISTED, _TITLED, _CERTAIN, _LIKELY = 0.9, 0.9, 0.8, 0.65
_KINDS_OF_NAMED: Final = {
    noun: kind for noun, kind in lists.KINDS.items() if noun in lists.CLASS_NOUNS and kind in ("project", "tool")
}
"""Type of a name by the noun after it: `the Orion project`. The Orion team is not Orion."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A name in a sentence, or the words before or after a verb.

    Attributes:
        first, last: indexes of its words, without determiner, half-open.
        start, end: its span in the text, in characters.
        is_weak: it may be no name, and counts only if a fact or another mention supports it.
        anaphor: its pronoun in lower case, or "".
        is_definite: it has a determiner: `the company` means one that was named before.
    """

    first: int
    last: int
    start: int
    end: int
    name: str
    type: str
    confidence: float
    is_name: bool = False
    is_weak: bool = False
    anaphor: str = ""
    is_definite: bool = False


def find_names(tokens: Tokens, *, is_prose: bool) -> list[Phrase]:
    """Return the names of a sentence, in order, without overlaps; outside of prose, only paths and addresses."""
    mentions: list[Phrase] = []
    index = 0
    while index < tokens.count:
        word = tokens.word[index]
        if word[0] == "[" or (word[0].islower() and word.isalpha() and word not in lists.TOOLS):
            index += 1
            continue
        mention = _written_as_code(tokens, index, is_prose=is_prose)
        if mention is not None:
            mentions.append(mention)
            index = mention.last
        elif is_prose and word[0].isupper():
            last = run_end(tokens, index)
            for first, end, is_titled in names_in_run(tokens, index, last):
                titled = [_mention(tokens, first, end, Kind("person", _TITLED))] if is_titled else []
                mentions += titled or _untitled(tokens, first, end)
            index = last
        else:
            index += 1
    return mentions


def phrase_of(tokens: Tokens, first: int, last: int, type_: str, confidence: float, **fields: Any) -> Phrase:
    """Return the phrase of the words `first` to `last`, exclusive, with further fields."""
    name = tokens.read(first, last)
    return Phrase(first, last, tokens.start[first], tokens.end[last - 1], name, type_, confidence, **fields)


def _mention(tokens: Tokens, first: int, last: int, kind: Kind) -> Phrase:
    return phrase_of(tokens, first, last, kind.type, kind.confidence, is_name=True, is_weak=kind.is_weak)


def _written_as_code(tokens: Tokens, index: int, *, is_prose: bool) -> Phrase | None:
    """Return an address, path, identifier, text in backticks, `Berlin-based` or listed tool at an index, else None."""
    if tokens.lower[index] in _TOOL_FIRSTS:
        for last in range(min(index + _MAX_WORDS, tokens.count), index + 1, -1):
            if " ".join(tokens.lower[index:last]) in lists.TOOL_NAMES:
                return _mention(tokens, index, last, Kind("tool", 0.95))
    word = tokens.word[index]
    if word[0] == "`" and len(word) > 2:
        inner = word[1:-1].strip()
        kind = kind_by_looks(inner, quoted=True) if inner else None
        if kind is None:
            return None
        start = tokens.start[index] + 1 + word[1:-1].index(inner)
        name = " ".join(inner.split())
        return replace(_mention(tokens, index, index + 1, kind), start=start, end=start + len(inner), name=name)
    based = _BASED.fullmatch(word) if word[0].isupper() and "-" in word else None
    if based is not None:
        confidence = max(kind_of_name([based[1].lower()], based[1]).confidence, _LIKELY)
        mention = _mention(tokens, index, index + 1, Kind("place", confidence))
        return replace(mention, end=mention.start + len(based[1]), name=based[1])
    kind = kind_by_looks(word, quoted=False)
    if kind is None and index > 0 and word[0].isupper() and tokens.lower[index] in _TOOL_OR_VERB:
        kind = Kind("tool", _CERTAIN)
    if kind is None or not (is_prose or kind.type == "file"):
        return None
    return _mention(tokens, index, index + 1, kind)


def _untitled(tokens: Tokens, first: int, last: int) -> list[Phrase]:
    """Return the name that capitalised words without a title form, as a list of at most one."""
    is_start = first == 0
    if is_start and last - first > 1:
        remainder = kind_of_name(tokens.lower[first + 1 : last], tokens.word[first + 1])
        whole = kind_of_name(tokens.lower[first:last], tokens.word[first])
        is_part = tokens.lower[first] in lists.FIRST_NAMES or tokens.lower[first] in lists.PLACE_FRONTS
        if remainder.confidence >= _LISTED > whole.confidence and remainder.type != "person" and not is_part:
            first += 1
            is_start = False
    other_words = tokens.lower[first + 1 : last]
    is_role = last - first > 2 and tokens.lower[first] not in _NO_ROLES
    if is_role and other_words[0] in lists.FIRST_NAMES and kind_of_name(other_words, other_words[0]).type == "person":
        # The word before a first name is a role: `Linguist Phillip Lieberman`.
        first += int(tokens.lower[first + 1] not in lists.AMBIGUOUS_FIRST_NAMES)
    kind = kind_of_name(tokens.lower[first:last], tokens.word[first], is_start=is_start, before=tokens.at(first - 1))
    is_town = tokens.at(last) == "," and _is_region_at(tokens, last + 1)
    is_loud = last - first > 1 and kind.confidence < _LIKELY and all(map(_is_shouted, tokens.word[first:last]))
    # A name in capitals in a sentence that is not: `Tokyo YOMIURI SHIMBUN in Japanese`
    if is_loud and not is_town and any(word[0].isalpha() and not word.isupper() for word in tokens.word):
        return [_mention(tokens, first, last, Kind("organization", 0.6))]
    if kind.type and kind.confidence < _CERTAIN:
        kind = _by_neighbours(tokens, first, last, kind)
    return [_mention(tokens, first, last, kind)] if kind.type else []


def _by_neighbours(tokens: Tokens, first: int, last: int, kind: Kind) -> Kind:
    """Return the kind of a doubtful name by the words around it."""
    before, behind, next_ = tokens.at(first - 1), tokens.at(last), tokens.at(last + 1)
    if behind == "," and next_.isdigit() and len(next_) == 2 and tokens.at(last + 2) == ",":
        return Kind("person", _LISTED)
    if behind == "," and _is_region_at(tokens, last + 1):
        return Kind("place", _CERTAIN)
    # Verbs, kinship and roles that only people have: `… said`, `wife …`, `…, the owner`.
    is_doing = behind in lists.SPEAKING or (behind in ("was", "is") and next_ in lists.DONE_TO_PEOPLE)
    is_kin = (before in lists.ROLES or before in lists.KIN) and tokens.word[first - 1].islower()
    has_role = next_ in ("a", "an", "the", "former") and tokens.any_of(lists.ROLES, last + 2, last + 5)
    is_person = is_doing or is_kin or (behind == "," and (next_ == "who" or has_role))
    if kind.type in ("concept", "person") and before != "the" and is_person:
        return Kind("person", max(kind.confidence, _LIKELY))
    is_named = behind in _KINDS_OF_NAMED or before == "project"
    # In `the API service`, `API` is no project.
    if is_named and not lists.CONCEPT_ACRONYMS.issuperset(tokens.lower[first:last]):
        return Kind(_KINDS_OF_NAMED.get(behind, "project"), _LIKELY)
    is_plain = last - first < 3 and tokens.word[first].isalpha() and not tokens.lower[last - 1].endswith("y")
    if kind.type == "concept" and before == "in" and is_plain:
        return Kind("place", 0.6)
    return kind


def _is_region_at(tokens: Tokens, index: int) -> bool:
    """Return whether a country or state of one or two words is at an index, and no list continues after it."""
    for last in (index + 2, index + 1):
        if last <= tokens.count and all(word[0].isupper() for word in tokens.word[index:last]):
            region = kind_of_name(tokens.lower[index:last], tokens.word[index])
            if region.is_region and tokens.at(last) != "and":
                return True
    return False
