"""Normalise and compare names: lookup keys, parts of names, places.

A wrong match merges two people; a missed match only waits for a merge.

Where several entities match and nothing decides between them, none is chosen.

A fact that somebody lives in Germany does not contradict one that she lives in Berlin. An unknown place may lie within
any country.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.errors import UsageError
from commonplace.extract.words import COUNTRIES, STATES
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import entries
from commonplace.types.graph import Alias, Entity

MAX_NAME_CHARACTERS: Final = 200

KEY: Final = "\x1f"
"""What a key begins with that is no name; no name contains it."""

_ARTICLES: Final = lazy_pattern(r"^(?:the\s+(?=\S)|an?\s+(?=\S\S))")
"""`A B` is no article and a letter, but two letters."""
_TITLES: Final = lazy_pattern(r"^(?:dr|mr|mrs|ms|miss|prof|professor|sir)\b\.?\s+(?=\S)")
_LEGAL: Final = lazy_pattern(
    r"[\s,]+(?:inc|ltd|llc|gmbh|ag|corp|corporation|plc|co|sarl|bv|limited)\.?$", re.IGNORECASE
)
_KIND_WORDS: Final = lazy_pattern(r"\s+(?:project|library|framework|database|language|tool|platform)$", re.IGNORECASE)
_POSSESSIVE: Final = lazy_pattern(r"(?<=\w)['’]s?$")
_MARKS: Final = lazy_pattern("[\u0300-\u036f]")
_APOSTROPHES: Final = lazy_pattern("['‘’ʼ`´]")
_APART: Final = lazy_pattern(r"[^\w.+#&/]|_")
_DOT_OF_WORDS: Final = lazy_pattern(r"(?<!\w)\.+(?!\w)|\.+(?!\w)|(?<!\w)\.+(?=\s|$)")
_CONTROLS: Final = lazy_pattern("[\x00-\x1f\x7f-\x9f]+")
_HALVES: Final = lazy_pattern("[\ud800-\udfff]")
"""Halves of characters, which no text can be written with."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs"})
_VERSIONED: Final = lazy_pattern(r"\d")
_EXTENSION: Final = lazy_pattern(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")

_SAME: Final = {
    form: line.split()[0] for line in entries(Path(__file__).with_name("synonyms.txt")) for form in line.split()
}
"""The best known form of well-known names."""
_NAMES_AT_HAND: Final = 1_024
"""The forms of a name are asked for several times while it is written; those of so many names are kept."""


def names_among(aliases: Iterable[Alias]) -> list[Alias]:
    """Return the names among the aliases of an entity, without the keys by which it is looked up."""
    return [each for each in aliases if not each.normal.startswith(KEY)]


def shown_names(entity: Entity, aliases: Iterable[Alias]) -> tuple[str, ...]:
    """Return the names of an entity, its own first, without the keys by which it is looked up."""
    return tuple(dict.fromkeys((entity.name, *(alias.name for alias in names_among(aliases)))))


def cleaned(name: str) -> str:
    """Return a name as it is kept: without control characters, with single spaces; "" where nobody could see it."""
    kept = " ".join(_HALVES.sub("", _CONTROLS.sub(" ", name)).split())
    # What only joins, marks or turns others is not to be seen by itself, nor is a space.
    categories = map(unicodedata.category, kept)
    return kept if any(each not in _UNSEEN and each[0] not in "MZ" for each in categories) else ""


def checked(field: str, name: object) -> str:
    """Return a name that somebody gave.

    Raises:
        UsageError: it is no text, empty, too long, or has no letter, digit or sign of its own.
    """
    kept = cleaned(name) if isinstance(name, str) and not _HALVES.search(name) else ""
    if 0 < len(kept) <= MAX_NAME_CHARACTERS:
        return kept
    length = f", of {len(name):,} characters" if isinstance(name, str) else ""
    remedy = f"give a name of 1 to {MAX_NAME_CHARACTERS} characters, one of which can be seen"
    raise UsageError(f"{field} is {name!r:.80}{length}", remedy=remedy, parameters=(field,))


@lru_cache(maxsize=_NAMES_AT_HAND)
def normal(name: str) -> str:
    """Return the form by which names are compared; equal for names that differ in nothing that matters.

    Case, width, diacritics, quotes, spaces, hyphens and underscores do not matter, nor do an article or a title in
    front: `loginService`, `login_service` and `the login service` are one. Dots inside, slashes, `+` and `#` do:
    `auth.ts` and `auth.py`, `v1.2` and `v12`, `C` and `C++` are not.
    """
    text = unicodedata.normalize("NFKC", cleaned(name)).replace("\\", "/").removeprefix("./")
    folded = _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    plain = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", folded))
    bare = _TITLES.sub("", _ARTICLES.sub("", plain.strip()))
    words = _DOT_OF_WORDS.sub(" ", _APART.sub(" ", bare)).split()
    joined = ""
    for word in words:
        # Digits that were apart stay apart: "phase 1 2" is not "phase 12".
        joined += f" {word}" if joined[-1:].isdigit() and word[:1].isdigit() else word
    return joined or " ".join(folded.split()) or text


@lru_cache(maxsize=_NAMES_AT_HAND)
def keys(name: str, type_: str) -> tuple[str, ...]:
    """Return keys under which a name can be looked up besides its normal form, by what type of thing it names.

    Two names that share a key may mean the same: whoever looks one up decides. Keys are no normal forms of names.
    """
    if type_ == "person":
        kind, forms = "part", parts(name)
    elif type_ == "file":
        kind, forms = "file", (normal(name).rsplit("/", 1)[-1],)
    else:
        kind, forms = "same", (loose(name),)
    return tuple(dict.fromkeys(f"{KEY}{kind}:{form}" for form in forms))


@lru_cache(maxsize=_NAMES_AT_HAND)
def parts(name: str) -> tuple[str, ...]:
    """Return the parts of a person's name in normal form: given names, surname; a title is none."""
    bare = _TITLES.sub("", cleaned(name).casefold())
    return tuple(filter(None, map(normal, bare.split())))


def loose(name: str) -> str:
    """Return a looser form of the name of a thing: without a company's form, a word like `project`, or dots.

    Well-known names of the same thing have the same one.
    """
    text = unicodedata.normalize("NFKC", cleaned(name))
    return best_known(_POSSESSIVE.sub("", _KIND_WORDS.sub("", _LEGAL.sub("", text))))


def best_known(name: str) -> str:
    """Return the normal form by which a thing is best known, `postgresql` of `pgsql`; places are compared by it."""
    form = _SAME.get(normal(name), normal(name))
    return form if _VERSIONED.search(form) or "/" in form else _SAME.get(form.replace(".", ""), form.replace(".", ""))


def has_extension(name: str) -> bool:
    return _EXTENSION.search(name) is not None


def stored_keys(name: str, type_: str) -> tuple[str, ...]:
    """Return the keys that are stored beside a name; what is the name itself is found under that."""
    return tuple(key for key in keys(name, type_) if key.partition(":")[2] != normal(name))


_LOOSE: Final = frozenset({"tool", "project", "organization"})
"""Types that are easily taken for one another: software is a tool, a project, and the company that makes it."""
_INITIAL: Final = 1


@dataclass(frozen=True, slots=True)
class Known:
    entity: Entity
    names: tuple[str, ...]


def lookups(name: str, type_: str) -> tuple[str, ...]:
    """Return the normal forms and keys under which to look up the entities that a name may mean."""
    types = (type_,) if type_ in ("person", "file") else (type_, *(("file",) if has_extension(name) else ()))
    found = [key for each in types for key in keys(name, each)]
    return tuple(dict.fromkeys((normal(name), *found, *(key.partition(":")[2] for key in found))))


def choose(name: str, type_: str, candidates: Sequence[Known]) -> Known | None:
    """Return the entity among the candidates that a name means, None for a new one, or if it is ambiguous.

    Args:
        candidates: what the `lookups` of the name find.
    """
    form = normal(name)
    able = [each for each in candidates if are_compatible(type_, each.entity.type)]
    own = [each for each in able if normal(each.entity.name) == form]
    if own:
        return min(own, key=lambda each: (each.entity.type != type_, each.entity.created_at, each.entity.id))
    named = [each for each in able if form in map(normal, each.names)]
    near = []
    for each in able:
        if each in named or (type_ == "person" and each.entity.type != type_):
            continue
        kind, forms = each.entity.type if type_ == "concept" else type_, each.names
        if kind == "person" and len(parts(name)) > 1 and len(parts(each.entity.name)) > 1:
            # Whoever is called Mira is not for that everybody with a surname who is called Mira.
            forms = tuple(one for one in forms if len(parts(one)) > 1)
        if any(_is_form_of(name, one, kind) for one in forms):
            near.append(each)
    if type_ == "person" and len(parts(name)) == 1:
        # A given name is not somebody's alone, even if it was when it was used before.
        named, near = [*named, *near], []
    for some in (named, near):
        if some:
            same = [each for each in some if each.entity.type == type_] if type_ != "concept" else []
            alone = same or some
            return alone[0] if len(alone) == 1 else None
    return None


def are_compatible(first: str, second: str) -> bool:
    if first == second:
        return True
    if "concept" in (first, second):
        return "file" not in (first, second)
    return {first, second} <= _LOOSE


def better_name(known: str, found: str, type_: str) -> str:
    """Return the name that says more: the whole name of a person, the longer path of a file; else the known one."""
    if type_ == "person":
        return found if len(parts(found)) > len(parts(known)) and _is_part(parts(known), parts(found)) else known
    if type_ == "file":
        return found if normal(found).endswith(f"/{normal(known)}") else known
    return known


def _is_form_of(name: str, other: str, type_: str) -> bool:
    """Return whether two different names of things of one type may mean the same."""
    if type_ == "person":
        first, second = parts(name), parts(other)
        return _is_part(first, second) or _is_part(second, first)
    if type_ == "file":
        one, another = normal(name), normal(other)
        return one.endswith(f"/{another}") or another.endswith(f"/{one}")
    return loose(name) == loose(other)


def _is_part(fewer: Sequence[str], more: Sequence[str]) -> bool:
    """Return whether a name of fewer parts is that of somebody with more: `Mira`, `Okafor`, `M. Okafor`."""
    if not fewer or len(fewer) > len(more):
        return False
    if len(fewer) == 1:
        return len(fewer[0]) > _INITIAL and fewer[0] in (more[0], more[-1])
    if fewer[-1] != more[-1] or not _is_given(fewer[0], more[0]):
        return False
    rest = iter(more[1:-1])
    return all(any(_is_given(part, other) for other in rest) for part in fewer[1:-1])


def _is_given(part: str, whole: str) -> bool:
    return part == whole or (len(part) == _INITIAL and whole.startswith(part))


_CONTINENTS: Final = frozenset(
    map(best_known, ("africa", "asia", "europe", "north america", "south america", "america", "antarctica", "oceania"))
)
_WIDE: Final = frozenset(map(best_known, COUNTRIES)) | _CONTINENTS


_COUNTRY_OF: Final = {
    best_known(city): best_known(country)
    for country, _, cities in (line.partition(":") for line in entries(Path(__file__).with_name("cities.txt")))
    for city in cities.split(",")
}
"""The country of each city, in the forms that are compared."""
_STATES: Final = frozenset(map(best_known, STATES))


def forms_of(names: Iterable[str]) -> frozenset[str]:
    """Return the forms of a place's names by which it is compared."""
    return frozenset(map(best_known, names))


def compare(first: frozenset[str], second: frozenset[str]) -> str:
    """Return by the forms of their names whether one of two places contains the other: "within", "apart", "unknown"."""
    for inner, outer in ((first, second), (second, first)):
        countries = {_COUNTRY_OF[name] for name in inner if name in _COUNTRY_OF}
        if countries & outer:
            return "within"
    levels = [bool(names & _WIDE) for names in (first, second)]
    if all(levels) and not (first | second) & _CONTINENTS:
        return "apart"
    if any(levels):
        narrow = second if levels[0] else first
        return "apart" if narrow & _COUNTRY_OF.keys() and not (first | second) & _CONTINENTS else "unknown"
    return "unknown" if bool(first & _STATES) != bool(second & _STATES) else "apart"
