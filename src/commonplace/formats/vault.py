"""Write notes of the vault: Markdown with front matter, and the sections Content and Entities.

File names stay distinct on file systems that ignore case or the composition of accents.

Markup that would begin a section, hide the following text or link somewhere is escaped with a backslash, as in
Markdown, so that it shows as text: headings of the first two levels, also in underlined form; unclosed fences; `[[`,
`%%`, `$$` and `<` before a tag. Existing backslashes before it are doubled, so that they show. Text inside closed
fences is unchanged. Invisible characters are written as `&#8238;`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import reduce
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import iso
from commonplace.formats.escaping import HIDDEN, visible
from commonplace.formats.journal import paired_fences, split_lines, topic_of, write_characters
from commonplace.formats.yaml import load_yaml
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.hashes import sha256

EXTENSION: Final = ".md"

MAX_STEM_BYTES: Final = 120
"""Bytes of a note's name without extension: encrypted file systems allow 143, whole paths on Windows 260."""

_UNFIT: Final = lazy_pattern(r'[\\/:*?"<>|#^\[\]%`]')
"""Characters that Windows refuses in a name, or that end or split a link in Obsidian."""
_EDGES: Final = " .-~$"
_RESERVED: Final = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"]
    + [f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³"]
)
_UUID: Final = lazy_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SUFFIXES: Final = (8, 16, 64)
_MAX_TITLE_ENTITIES: Final = 3


def title_of(content: str, entities: Iterable[str], memory_id: str) -> str:
    """Return the title of a memory's note: its first heading or sentence, else its entities, else its id."""
    named = ", ".join([_one_line(name) for name in entities][:_MAX_TITLE_ENTITIES])
    return _one_line(topic_of(content)) or topic_of(named) or f"Memory {_short_id(memory_id, _SUFFIXES[0])}"


def file_stem(title: str) -> str:
    """Return the name of a note without its extension: never empty, the same for the same title."""
    words = " ".join(_UNFIT.sub(" ", _one_line(title)).split()).strip(_EDGES)
    words = _cut(words, MAX_STEM_BYTES) or "Memory"
    return f"_{words}" if words.split(".")[0].strip().upper() in _RESERVED else words


def file_names(title: str, memory_id: str) -> Iterator[str]:
    """Yield candidate names for a memory's note, best first; the last is unique to the memory."""
    stem = file_stem(title)
    yield stem + EXTENSION
    for length in _SUFFIXES:
        suffix = f" ({_short_id(memory_id, length)})"
        yield (_cut(stem, MAX_STEM_BYTES - len(suffix)) or "Memory") + suffix + EXTENSION


def name_key(name: str) -> str:
    """Return a key that is equal for two names that any file system treats as the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def tags_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags in Obsidian's form, without those that differ only in case or hold no letter or digit."""
    by_key: dict[str, str] = {}
    for tag in tags:
        # Characters that fit no tag become a hyphen.
        fitting = "".join(
            char if char.isalnum() or char in "_/" or unicodedata.category(char) in ("Mn", "Mc", "So") else " "
            for char in unicodedata.normalize("NFC", tag)
        )
        clean = "/".join("-".join(part.split()) for part in fitting.split("/") if part.strip())
        if clean.replace("/", "").isdigit():
            clean = f"_{clean}"  # Obsidian accepts no number as a tag
        if clean.strip("_/-"):
            by_key.setdefault(name_key(clean), clean)
    return tuple(by_key.values())


def link_to(name: str) -> str:
    """Return a link to the note of that name that shows the name unchanged; "" without a letter or digit."""
    if not re.search(r"[^\W_]", name):
        return ""
    target = file_stem(name)
    label = visible(" ".join(re.sub(r"[\[\]|]", " ", _one_line(name)).split()))
    return f"[[{target}]]" if label in (target, "") else f"[[{target}|{label}]]"


def _one_line(text: str) -> str:
    """Return a text in composed form without invisible characters, with single blanks."""
    visible_text = "".join(
        " " if unicodedata.category(character)[0] in "CZ" else character
        for character in unicodedata.normalize("NFC", text)
    )
    return " ".join(visible_text.split())


def _short_id(memory_id: str, length: int) -> str:
    is_uuid = length <= _SUFFIXES[0] and _UUID.fullmatch(memory_id) is not None
    return memory_id[:length].lower() if is_uuid else sha256(memory_id.encode("utf-8", "replace")).hexdigest()[:length]


def _cut(text: str, max_bytes: int) -> str:
    """Return the start of a text up to `max_bytes` bytes of UTF-8, without splitting an accent off its letter."""
    end = len(text)
    if len(text.encode()) > max_bytes:
        end = len(text.encode()[:max_bytes].decode(errors="ignore"))
        while end > 0 and unicodedata.combining(text[end]):
            end -= 1
    return text[:end].strip(_EDGES)


_HEADING: Final = r"#{1,2}(?:[ \t\r\n]|\Z)|(?:-+|=+)[ \t]*(?:[\r\n]|\Z)"
_MARKS: Final = (
    lazy_pattern(rf"(?P<lead>\A {{0,3}})(?P<slashes>\\*)(?={_HEADING}|`{{3}}|~{{3}})"),
    lazy_pattern(r"(?P<lead>(?<!\\))(?P<slashes>\\*)(?=<[A-Za-z!/?%])"),
    lazy_pattern(r"(?P<lead>(?P<mark>[\[%$]))(?P<slashes>\\*)(?=(?P=mark))"),
)


def escape_markdown(text: str) -> str:
    """Return a text escaped for a section of a note."""

    def escape(match: re.Match[str]) -> str:
        # Doubled, existing backslashes show; one more, an odd one, escapes the markup after them.
        return match["lead"] + "\\" * (2 * len(match["slashes"]) + 1)

    lines = split_lines(write_characters(text, always=""))
    return "".join(
        line if is_fenced else reduce(lambda words, marks: marks.sub(escape, words), _MARKS, line)
        for line, is_fenced in zip(lines, paired_fences([line.rstrip("\r\n") for line in lines]), strict=True)
    )


_KEYS: Final = {
    "title": "title",
    "memory_id": "memory_id",
    "memory_version": "version",
    "created": "created",
    "modified": "modified",
    "tags": "tags",
    "entities": "entities",
    "promotion_reason": "reason",
    "decay_score": "score",
}
"""Front matter key → attribute of `VaultNote`, in order."""
_INVISIBLE: Final = lazy_pattern(f"[\ufeff\ufffe\uffff]|{HIDDEN}")
_MEMORY_ID: Final = lazy_pattern(r"[\"']?memory_id[\"']?[ \t]*:(.*)")


@dataclass(frozen=True, slots=True)
class VaultNote:
    """The content of a memory's note in the vault.

    Attributes:
        created, modified: aware, in UTC; written to the second.
        tags: in the form of `tags_of`.
        reason: the criteria by which the memory was promoted.
        score: its retention when the note was written, 0–1, to four decimals.
        version: the version of the memory.
    """

    memory_id: str
    title: str
    content: str
    created: datetime
    modified: datetime
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    reason: str = ""
    score: float = 0.0
    version: int = 1


def write_note(note: VaultNote) -> str:
    """Return a note as Markdown."""

    def quoted(text: str) -> str:
        # A JSON string is valid YAML, except for line separators, non-characters and invisible characters.
        return _INVISIBLE.sub(_yaml_escape, json.dumps(text, ensure_ascii=False))

    front = []
    for key, attribute in _KEYS.items():
        value = getattr(note, attribute)
        if isinstance(value, tuple):
            front.append(f"{key}:" + ("".join(f"\n  - {quoted(item)}" for item in value) or " []"))
        elif isinstance(value, datetime):
            front.append(f"{key}: {iso(value.replace(microsecond=0))}")
        else:
            front.append(f"{key}: {quoted(value) if isinstance(value, str) else value}")
    links = dict.fromkeys(link for entity in note.entities if (link := link_to(entity)))
    lines = ["---", *front, "---", "", "## Content", "", escape_markdown(note.content), "", "## Entities"]
    lines += ["", *(f"- {link}" for link in links)] if links else []
    return "\n".join(lines) + "\n"


def _yaml_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def memory_id_of(beginning: str) -> str | None:
    """Return the memory id in the front matter of a note, or None.

    Args:
        beginning: the note or its start; its front matter may be incomplete.
    """
    lines = beginning.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            return None
        if match := _MEMORY_ID.match(line.strip()):
            id_text = match[1].strip()
            value, fault = load_yaml(id_text) if id_text[:1] in ('"', "'") else (id_text, "")
            return value if not fault and isinstance(value, str) else id_text.strip("\"'")
    return None
