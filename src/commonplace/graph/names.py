"""Normalise and compare names: lookup keys, parts of names, places.

A wrong match joins two people; a missed match can be merged later. So an ambiguous name matches no entity.

That somebody lives in Germany does not contradict that she lives in Berlin. An unknown place may lie in any country.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from commonplace.dates.vocabulary import MONTH_NAMES, MONTHS
from commonplace.errors import UsageError
from commonplace.extract.words import COUNTRIES, STATES
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.words import entries
from commonplace.types.graph import Alias, Entity

MAX_NAME_CHARACTERS: Final = 200

KEY: Final = "\x1f"
"""Prefix of lookup keys; no name contains it."""

_ARTICLES: Final = lazy_pattern(r"^(?:the\s+(?=\S)|an?\s+(?=\S\S))")
"""Leading articles; `a` before a single letter is none, as in `A B`."""
_TITLES: Final = lazy_pattern(r"^(?:dr|mr|mrs|ms|miss|prof|professor|sir)\b\.?\s+(?=\S)")
_LEGAL: Final = lazy_pattern(r"(?i)[\s,]+(?:inc|ltd|llc|gmbh|ag|corp|corporation|plc|co|sarl|bv|limited)\.?$")
_KIND_WORDS: Final = lazy_pattern(r"\s+(?:project|library|framework|database|language|tool|platform)$", re.IGNORECASE)
_POSSESSIVE: Final = lazy_pattern(r"(?<=\w)['’]s?$")
_MARKS: Final = lazy_pattern("[\u0300-\u036f]")
_APOSTROPHES: Final = lazy_pattern("['‘’ʼ`´]")
_APART: Final = lazy_pattern(r"[^\w.+#&/]|_")
_DOT_OF_WORDS: Final = lazy_pattern(r"(?<!\w)\.+(?!\w)|\.+(?!\w)|(?<!\w)\.+(?=\s|$)")
_CONTROLS: Final = lazy_pattern("[\x00-\x1f\x7f-\x9f]+")
_HALVES: Final = lazy_pattern("[\ud800-\udfff]")
"""Lone surrogates, which cannot be encoded."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs"})
_VERSIONED: Final = lazy_pattern(r"\d")
_DAY: Final = lazy_pattern(
    r"(?:the )?(?:(?P<d>\d\d?)(?:st|nd|rd|th)?(?: of)? (?P<m>[a-z]+)"
    r"|(?P<month>[a-z]+)\.? (?:the )?(?P<day>\d\d?)(?:st|nd|rd|th)?)(?:,? (?P<year>\d{4}))?",
    re.IGNORECASE,
)
_EXTENSION: Final = lazy_pattern(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")

_SYNONYMS: Final = [line.split() for line in entries(Path(__file__).with_name("synonyms.txt"))]
_SAME: Final = {form: forms[0] for forms in _SYNONYMS for form in forms}
"""Best-known form of well-known names, by form."""
_LOOSE: Final = frozenset({"tool", "project", "organization"})
"""Types that are easily confused: one name means a tool, its project and the company that makes it."""
_NAMES_AT_HAND: Final = 1_024
"""Number of names whose forms are cached; writing a name needs them several times."""


def names_among(aliases: Iterable[Alias]) -> list[Alias]:
    """Return the names among the aliases of an entity, without its lookup keys."""
    return [alias for alias in aliases if not alias.normal.startswith(KEY)]


def shown_names(entity: Entity, aliases: Iterable[Alias]) -> tuple[str, ...]:
    """Return the names of an entity, its main name first, without lookup keys."""
    return tuple(dict.fromkeys((entity.name, *(alias.name for alias in names_among(aliases)))))


def cleaned(name: str) -> str:
    """Return a name as stored: without control characters, with single spaces; "" if nothing in it is visible."""
    clean = " ".join(_HALVES.sub("", _CONTROLS.sub(" ", name)).split())
    # Marks, spaces and format characters are invisible by themselves.
    categories = map(unicodedata.category, clean)
    return clean if any(category not in _UNSEEN and category[0] not in "MZ" for category in categories) else ""


def clipped(name: str) -> str:
    """Return a name as stored, of any length."""
    return cleaned(name)[:MAX_NAME_CHARACTERS]


def checked(field: str, name: object) -> str:
    """Return the stored form of a name from a caller; raise a `UsageError` if it is empty, too long or invisible."""
    clean = cleaned(name) if isinstance(name, str) and not _HALVES.search(name) else ""
    if 0 < len(clean) <= MAX_NAME_CHARACTERS:
        return clean
    length = f", of {len(name):,} characters" if isinstance(name, str) else ""
    remedy = f"give a name of 1 to {MAX_NAME_CHARACTERS} characters, one of which can be seen"
    raise UsageError(f"{field} is {name!r:.80}{length}", remedy=remedy, parameters=(field,))


@lru_cache(maxsize=_NAMES_AT_HAND)
def normal(name: str) -> str:
    """Return the form by which names are compared.

    It ignores case, width, diacritics, quotes, spaces, hyphens, underscores, and an article or a title in front:
    `loginService`, `login_service` and `the login service` are equal. It keeps inner dots, slashes, `+` and `#`:
    `auth.ts` and `auth.py`, `v1.2` and `v12`, `C` and `C++` differ.
    """
    text = unicodedata.normalize("NFKC", cleaned(name)).replace("\\", "/").removeprefix("./")
    folded = _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    plain = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", folded))
    bare = _TITLES.sub("", _ARTICLES.sub("", plain.strip()))
    words = _DOT_OF_WORDS.sub(" ", _APART.sub(" ", bare)).split()
    joined = ""
    for word in words:
        # Separate numbers stay separate: "phase 1 2" is not "phase 12".
        joined += f" {word}" if joined[-1:].isdigit() and word[:1].isdigit() else word
    return joined or " ".join(folded.split()) or text


@lru_cache(maxsize=_NAMES_AT_HAND)
def keys(name: str, type_: str) -> tuple[str, ...]:
    """Return the keys under which a name is looked up besides its normal form, by the type of its entity.

    Names that share a key may mean the same; `choose` decides. No key equals the normal form of a name.
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
    """Return the parts of a person's name in normal form, without a title: given names, surname."""
    bare = _TITLES.sub("", cleaned(name).casefold())
    return tuple(filter(None, map(normal, bare.split())))


def loose(name: str) -> str:
    """Return a looser form of the name of a thing: without a legal form (`Inc`), a word like `project`, or dots.

    Well-known names of one thing have the same loose form, and so have spellings of a day: `June 3`, `3rd of June`.
    """
    text = unicodedata.normalize("NFKC", cleaned(name))
    if (day := _DAY.fullmatch(text)) is not None and (month := MONTHS.get((day["m"] or day["month"]).lower())):
        text = f"{MONTH_NAMES[month - 1]} {int(day['d'] or day['day'])} {day['year'] or ''}"
    return best_known(_POSSESSIVE.sub("", _KIND_WORDS.sub("", _LEGAL.sub("", text))))


def best_known(name: str) -> str:
    """Return the best-known normal form of a name, `postgresql` for `pgsql`; places are compared by it."""
    form = _SAME.get(normal(name), normal(name))
    return form if _VERSIONED.search(form) or "/" in form else _SAME.get(form.replace(".", ""), form.replace(".", ""))


def has_extension(name: str) -> bool:
    return _EXTENSION.search(name) is not None


def stored_keys(name: str, type_: str) -> tuple[str, ...]:
    """Return the keys that are stored beside a name; a key that repeats the normal form is left out."""
    return tuple(key for key in keys(name, type_) if key.partition(":")[2] != normal(name))


def lookups(name: str, type_: str) -> tuple[str, ...]:
    """Return the normal forms and keys under which to look up candidates for a name."""
    types = (type_,) if type_ in ("person", "file") else (type_, *(("file",) if has_extension(name) else ()))
    type_keys = [key for kind in types for key in keys(name, kind)]
    return tuple(dict.fromkeys((normal(name), *type_keys, *(key.partition(":")[2] for key in type_keys))))


def choose(name: str, type_: str, candidates: Sequence[tuple[Entity, Sequence[str]]]) -> Entity | None:
    """Return which of the entities found under the `lookups` of a name it means, None if none or ambiguous.

    Candidates are pairs of an entity and its names.
    """
    form = normal(name)
    compatible = [(entity, names) for entity, names in candidates if are_compatible(type_, entity.type)]
    exact = [entity for entity, _ in compatible if normal(entity.name) == form]
    if exact:
        return min(exact, key=lambda entity: (entity.type != type_, entity.created_at, entity.id))
    named = [entity for entity, names in compatible if form in map(normal, names)]
    similar = []
    for entity, forms in compatible:
        if entity in named or (type_ == "person" and entity.type != type_):
            continue
        kind = entity.type if type_ == "concept" else type_
        # Between two full names, a bare given name among the aliases does not match.
        is_full = kind == "person" and len(parts(name)) > 1 and len(parts(entity.name)) > 1
        if any(_is_form_of(name, other, kind) for other in forms if not is_full or len(parts(other)) > 1):
            similar.append(entity)
    if type_ == "person" and len(parts(name)) == 1:
        # A single name matches everybody who has it, even if one of them was called just that.
        named, similar = [*named, *similar], []
    for matches in (named, similar):
        if matches:
            same_type = [entity for entity in matches if entity.type == type_] if type_ != "concept" else []
            best = same_type or matches
            return best[0] if len(best) == 1 else None
    return None


def are_compatible(first: str, second: str) -> bool:
    if first == second:
        return True
    if "concept" in (first, second):
        return "file" not in (first, second)
    return {first, second} <= _LOOSE


def better_name(known: str, found: str, type_: str) -> str:
    """Return the more complete name: of a person the full one, or with a title, of a file the longer path."""
    if type_ == "person":
        is_longer = (len(parts(found)), len(found.split())) > (len(parts(known)), len(known.split()))
        return found if is_longer and _is_part(parts(known), parts(found)) else known
    if type_ == "file":
        return found if normal(found).endswith(f"/{normal(known)}") else known
    return known


def _is_form_of(name: str, other: str, type_: str) -> bool:
    """Return whether two different names of one type may mean the same entity."""
    if type_ == "person":
        first, second = parts(name), parts(other)
        return _is_part(first, second) or _is_part(second, first)
    if type_ == "file":
        path, other_path = normal(name), normal(other)
        return path.endswith(f"/{other_path}") or other_path.endswith(f"/{path}")
    return loose(name) == loose(other)


def _is_part(fewer: Sequence[str], more: Sequence[str]) -> bool:
    """Return whether a short name of a person fits the full one: `Mira`, `Okafor` and `M. Okafor` fit `Mira Okafor`."""
    if not fewer or len(fewer) > len(more):
        return False
    if len(fewer) == 1:
        return len(fewer[0]) > 1 and fewer[0] in (more[0], more[-1])
    if fewer[-1] != more[-1] or not _is_given(fewer[0], more[0]):
        return False
    middle = iter(more[1:-1])
    return all(any(_is_given(part, other) for other in middle) for part in fewer[1:-1])


def _is_given(part: str, whole: str) -> bool:
    return part == whole or (len(part) == 1 and whole.startswith(part))


_CONTINENTS: Final = frozenset(
    map(best_known, ("africa", "asia", "europe", "north america", "south america", "america", "antarctica", "oceania"))
)
_WIDE: Final = frozenset(map(best_known, COUNTRIES)) | _CONTINENTS


_CITIES: Final = [line.partition(":") for line in entries(Path(__file__).with_name("cities.txt"))]
_COUNTRY_OF: Final = {best_known(city): best_known(line[0]) for line in _CITIES for city in line[2].split(",")}
"""Country of each city, both in `best_known` form."""
_STATES: Final = frozenset(map(best_known, STATES))


def forms_of(names: Iterable[str]) -> frozenset[str]:
    """Return the names of a place in the form for `compare`."""
    return frozenset(map(best_known, names))


def compare(first: frozenset[str], second: frozenset[str]) -> str:
    """Return "within" if one of two places, by their `forms_of`, contains the other, else "apart" or "unknown"."""
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
