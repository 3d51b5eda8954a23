"""Names in a vault: of notes' files, which every file system takes, and of tags and links, which Obsidian takes.

Names differ where a file system that takes no notice of capitals, or of how accents are composed, would mix them up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from commonplace.formats.journal_entry import topic_of
from commonplace.text.digests import sha256
from commonplace.text.escaping import visible

EXTENSION: Final = ".md"

LONGEST_BYTES: Final = 120
"""Of a note's name without its extension: encrypted file systems take 143, and paths of Windows 260 in all."""

_UNFIT: Final = re.compile(r'[\\/:*?"<>|#^\[\]%`]')
"""What Windows refuses in a name, and what ends or splits a link in Obsidian."""
_EDGES: Final = " .-~$"
_RESERVED: Final = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"]
    + [f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³"]
)
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SUFFIXES: Final = (8, 16, 64)
_MOST_NAMED: Final = 3


def title_of(content: str, entities: Iterable[str], memory_id: str) -> str:
    """Return the title of a memory's note: its first heading or sentence, else what it names, else its id."""
    named = ", ".join([_one_line(name) for name in entities][:_MOST_NAMED])
    return _one_line(topic_of(content)) or topic_of(named) or f"Memory {_short(memory_id, _SUFFIXES[0])}"


def file_stem(title: str) -> str:
    """Return the name of a note without its extension; never empty, and the same for the same title."""
    words = " ".join(_UNFIT.sub(" ", _one_line(title)).split()).strip(_EDGES)
    words = _cut(words, LONGEST_BYTES) or "Memory"
    return f"_{words}" if words.split(".")[0].strip().upper() in _RESERVED else words


def file_names(title: str, memory_id: str) -> Iterator[str]:
    """Yield the names that a memory's note may have, the best first; the last is of no other memory."""
    stem = file_stem(title)
    yield stem + EXTENSION
    for length in _SUFFIXES:
        suffix = f" ({_short(memory_id, length)})"
        yield (_cut(stem, LONGEST_BYTES - len(suffix)) or "Memory") + suffix + EXTENSION


def same_place(name: str) -> str:
    """Return what two names have in common that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def tags_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as Obsidian takes them, each once whatever its capitals; what has no letter or digit goes."""
    kept: dict[str, str] = {}
    for tag in tags:
        words = unicodedata.normalize("NFC", tag)
        parts = [_joined(part, lambda character: character.isalnum() or character == "_") for part in words.split("/")]
        made = "/".join(part for part in parts if part)
        if made.replace("/", "").isdigit():
            made = f"_{made}"  # to Obsidian a number is no tag
        if made.strip("_/-"):
            kept.setdefault(same_place(made), made)
    return tuple(kept.values())


def link_to(name: str) -> str:
    """Return a link to a note with that name, which shows the name as it is; "" where no letter or digit is in it."""
    if not re.search(r"[^\W_]", name):
        return ""
    target = file_stem(name)
    shown = visible(" ".join(re.sub(r"[\[\]|]", " ", _one_line(name)).split()))
    return f"[[{target}]]" if shown in (target, "") else f"[[{target}|{shown}]]"


def _joined(words: str, is_part: Callable[[str], bool]) -> str:
    """Return what of a text fits a tag, with a hyphen wherever something else stood."""
    fitting = "".join(
        character if is_part(character) or unicodedata.category(character) in ("Mn", "Mc", "So") else " "
        for character in words
    )
    return "-".join(fitting.split())


def _one_line(text: str) -> str:
    """Return a text without anything that is not seen, in composed form, with single blanks."""
    seen = "".join(
        " " if unicodedata.category(character)[0] in "CZ" else character
        for character in unicodedata.normalize("NFC", text)
    )
    return " ".join(seen.split())


def _short(memory_id: str, length: int) -> str:
    is_uuid = length <= _SUFFIXES[0] and _UUID.fullmatch(memory_id) is not None
    return memory_id[:length].lower() if is_uuid else sha256(memory_id.encode("utf-8", "replace")).hexdigest()[:length]


def _cut(words: str, most: int) -> str:
    """Return as much of a text as its UTF-8 has room for, no accent torn off its letter."""
    end = len(words)
    if len(words.encode()) > most:
        end = len(words.encode()[:most].decode(errors="ignore"))
        while end > 0 and unicodedata.combining(words[end]):
            end -= 1
    return words[:end].strip(_EDGES)
