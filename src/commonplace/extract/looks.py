"""Tell what a word is by how it is written: addresses, paths, files, identifiers, tools known by name."""

from __future__ import annotations

import re
from typing import Final

from commonplace.extract.kinds import Kind
from commonplace.extract.words import FILE_ENDINGS, PLAIN_TOOLS, TOOLS

_LONGEST_WORD: Final = 200
_FOLDERS: Final = frozenset(
    "src lib tests test docs app apps packages scripts cmd internal pkg bin etc usr var home tmp".split()
)
_FILES: Final = frozenset("dockerfile makefile readme .env .gitignore".split())
_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->)\w+)*(?:\(\))?")
_LETTER: Final = re.compile(r"[^\W\d_]")
_HUMP: Final = re.compile(r"[a-z0-9][A-Z]")
_SURNAME: Final = re.compile(r"(?:Mc|Mac|De|Di|Du|Van|La|Le|Fitz|O'|D')[A-Z]")


def kind_by_looks(word: str, *, quoted: bool) -> Kind | None:
    """Return what a word is by its looks alone: `auth.ts`, `src/auth`, `parse()`, `AuthService`, `redis`.

    Args:
        quoted: it stood between backticks, so it is code.
    """
    lower = word.lower()
    if (
        len(word) > _LONGEST_WORD
        or not _LETTER.search(word)
        or (word.isalpha() and word.islower() and not quoted and lower not in TOOLS)
    ):
        return None
    if lower.startswith(("http://", "https://")):
        return Kind("file", 0.9)
    if lower in TOOLS:
        return Kind("tool", 0.95) if quoted or lower not in PLAIN_TOOLS else None
    if " " in word:
        return Kind("concept", 0.5, is_weak=True)
    if _is_file(lower, quoted=quoted):
        return Kind("file", 0.95)
    return _path(word, lower, quoted=quoted) if "/" in word else _identifier(word, quoted=quoted)


def _is_file(lower: str, *, quoted: bool) -> bool:
    stem, dot, ending = lower.rpartition(".")
    if not dot or ending not in FILE_ENDINGS:
        return lower in _FILES
    return bool(stem or quoted) and not stem.isdigit() and len(stem) + len(ending) > 2


def _path(word: str, lower: str, *, quoted: bool) -> Kind | None:
    parts = lower.split("/")
    if word.startswith("@"):
        return Kind("tool", 0.8)
    if parts[0] in _FOLDERS or word[0] in "./~" or (quoted and all(parts[:-1])):
        return Kind("file", 0.9)
    return None


def _identifier(word: str, *, quoted: bool) -> Kind | None:
    if word.endswith("()") or "::" in word or "->" in word or "_" in word.strip("_"):
        return Kind("concept", 0.85) if _IDENTIFIER.fullmatch(word) else None
    if _HUMP.search(word) and word.isidentifier() and not _SURNAME.match(word):
        return Kind("concept", 0.7)
    if not quoted:
        return None
    return Kind("concept", 0.7) if _IDENTIFIER.fullmatch(word) or "-" in word else Kind("concept", 0.5, is_weak=True)
