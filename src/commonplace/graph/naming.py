"""By which forms names are compared: the normal form of a name, and looser keys that only may mean the same.

It knows how names are written, no store and no entity.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from commonplace.errors import UsageError
from commonplace.text.analysis import analyse

MAX_NAME_CHARACTERS: Final = 200

KEY: Final = "\x1f"
"""What a key begins with that is no name; no name contains it."""

_ARTICLES: Final = re.compile(r"^(?:the\s+(?=\S)|an?\s+(?=\S\S))")
"""`A B` is no article and a letter, but two letters."""
_TITLES: Final = re.compile(r"^(?:dr|mr|mrs|ms|miss|prof|professor|sir)\b\.?\s+(?=\S)")
_LEGAL: Final = re.compile(r"[\s,]+(?:inc|ltd|llc|gmbh|ag|corp|corporation|plc|co|sarl|bv|limited)\.?$")
_KIND_WORDS: Final = re.compile(r"\s+(?:project|library|framework|database|language|tool|platform)$")
_MARKS: Final = re.compile("[\u0300-\u036f]")
_APOSTROPHES: Final = re.compile("['‘’ʼ`´]")
_KEPT: Final = re.compile(r"(?<=\w)\.(?=\w)|[/+#&]")
_APART: Final = re.compile(r"[^\w.+#&/]|_")
_DOT_OF_WORDS: Final = re.compile(r"(?<!\w)\.+(?!\w)|\.+(?!\w)|(?<!\w)\.+(?=\s|$)")
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f]+")
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of characters, which no text can be written with."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs"})
_VERSIONED: Final = re.compile(r"\d")
_EXTENSION: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")

_ALSO: Final[tuple[tuple[str, ...], ...]] = (
    ("postgresql", "postgres", "pgsql"),
    ("kubernetes", "k8s"),
    ("javascript", "ecmascript"),
    ("node.js", "nodejs"),
    ("mongodb", "mongo"),
    ("golang", "golanguage"),
    ("elasticsearch", "elastic"),
    ("sqlite", "sqlite3"),
    ("rabbitmq", "rabbit"),
    ("newyorkcity", "nyc"),
    ("unitedstates", "usa", "u.s", "u.s.a", "unitedstatesofamerica"),
    ("unitedkingdom", "uk", "u.k", "greatbritain"),
    ("amazonwebservices", "aws"),
    ("googlecloudplatform", "gcp", "googlecloud"),
    ("visualstudiocode", "vscode"),
)
_SAME: Final = {form: forms[0] for forms in _ALSO for form in forms}
"""Well-known names of one thing; few, since a wrong one joins what is not one."""

_SHORT: Final = {
    "db": "database",
    "config": "configuration",
    "repo": "repository",
    "docs": "documentation",
    "app": "application",
    "prod": "production",
}
_FEWEST_WORDS: Final = 2
_NAMES_AT_HAND: Final = 1_024
"""The forms of a name are asked for several times while it is written; those of so many names are kept."""


def cleaned(name: str) -> str:
    """Return a name as it is kept: without control characters, with single spaces; "" where nobody could see it."""
    kept = " ".join(_HALVES.sub("", _CONTROLS.sub(" ", name)).split())
    return kept if any(map(_is_seen, kept)) else ""


def _is_seen(char: str) -> bool:
    """Tell whether a character by itself is to be seen: not one that only joins, marks or turns others, nor a space."""
    category = unicodedata.category(char)
    return category not in _UNSEEN and category[0] not in "MZ"


def checked(field: str, name: object) -> str:
    """Return a name that somebody gave.

    Raises:
        UsageError: it is no text, empty, too long, or has no letter, digit or sign of its own.
    """
    if not isinstance(name, str):
        raise UsageError(f"{field} is {name!r:.80}", remedy="give a name, as text", parameters=(field,))
    if _HALVES.search(name):
        raise UsageError(
            f"{field} is {name!r:.80}, with half of a character",
            remedy="give a name as people write it",
            parameters=(field,),
        )
    kept = cleaned(name)
    if not kept and name.strip():
        raise UsageError(
            f"{field} is {name!r:.80}, of which nothing is to be seen",
            remedy="give a name with a letter, a digit or a sign",
            parameters=(field,),
        )
    if not kept or len(kept) > MAX_NAME_CHARACTERS:
        raise UsageError(
            f"{field} is {name!r:.80}, of {len(name):,} characters",
            remedy=f"give a name of 1 to {MAX_NAME_CHARACTERS} characters",
            parameters=(field,),
        )
    return kept


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
    form = normal(name)
    found: list[str] = []
    if type_ == "person":
        found += [f"{KEY}part:{part}" for part in parts(name)]
    elif type_ == "file":
        found.append(f"{KEY}file:{form.rsplit('/', 1)[-1]}")
    else:
        found.append(f"{KEY}same:{loose(name)}")
        found += [f"{KEY}stem:{form}" for form in (stems(name),) if form]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=_NAMES_AT_HAND)
def parts(name: str) -> tuple[str, ...]:
    """Return the parts of a person's name in normal form: given names, surname; a title is none."""
    bare = _TITLES.sub("", cleaned(name).casefold())
    return tuple(filter(None, map(normal, bare.split())))


def loose(name: str) -> str:
    """Return a looser form of the name of a thing: without a company's form, a word like `project`, or dots.

    Well-known names of the same thing have the same one.
    """
    text = " ".join(unicodedata.normalize("NFKC", cleaned(name)).casefold().split())
    form = normal(_KIND_WORDS.sub("", _LEGAL.sub("", text)))
    form = _SAME.get(form, form)
    return form if _VERSIONED.search(form) or "/" in form else _SAME.get(form.replace(".", ""), form.replace(".", ""))


def stems(name: str) -> str:
    """Return the stems of the words of a name of several words, in order; "" for one word, or where digits tell."""
    words = cleaned(name).casefold().replace("-", " ").replace("_", " ").split()
    if len(words) < _FEWEST_WORDS or _VERSIONED.search(name) or not all(map(str.isalpha, words)):
        return ""
    written = [_SHORT.get(word, word) for word in words if word not in ("the", "a", "an")]
    return " ".join(analyse(" ".join(written)))


def is_path(name: str) -> bool:
    """Tell whether a name has directories."""
    return "/" in name.replace("\\", "/").removeprefix("./")


def basename(name: str) -> str:
    """Return the last part of a path in normal form."""
    return normal(name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def has_extension(name: str) -> bool:
    """Tell whether a name ends like that of a file."""
    return _EXTENSION.search(name) is not None
