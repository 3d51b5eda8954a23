"""Write notes of the vault: Markdown with front matter.

    ---
    title: "Postgres for billing"
    memory_id: "0b8ff5a4-3f6e-4a55-9d0b-6c1f1c0f5b1e"
    memory_version: 1
    created: 2026-11-21T09:30:00Z
    modified: 2026-11-21T09:30:00Z
    tags:
      - "decision"
    entities:
      - "Postgres"
    promotion_reason: "use_count_threshold"
    decay_score: 0.8312
    ---

    ## Content

    We chose Postgres for billing.

    ## Entities

    - [[Postgres]]

Names differ where a file system that takes no notice of capitals, or of how accents are composed, would mix them up.

What would begin a section, hide what follows, or link somewhere gets a backslash, as in Markdown, and shows what the
text says: headings of the first two levels and lines that make one of the line above; fences that nothing closes;
`[[`, `%%`, `$$` and `<` before a tag. Text inside of fences that are closed is left as it is. Backslashes that are
there already are doubled, so that they show. Invisible characters are written `&#8238;`.
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
"""Of a note's name without its extension: encrypted file systems take 143, and paths of Windows 260 in all."""

_UNFIT: Final = lazy_pattern(r'[\\/:*?"<>|#^\[\]%`]')
"""What Windows refuses in a name, and what ends or splits a link in Obsidian."""
_EDGES: Final = " .-~$"
_RESERVED: Final = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"]
    + [f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³"]
)
_UUID: Final = lazy_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SUFFIXES: Final = (8, 16, 64)
_MAX_NAMED: Final = 3


def title_of(content: str, entities: Iterable[str], memory_id: str) -> str:
    """Return the title of a memory's note: its first heading or sentence, else what it names, else its id."""
    named = ", ".join([_one_line(name) for name in entities][:_MAX_NAMED])
    return _one_line(topic_of(content)) or topic_of(named) or f"Memory {_short(memory_id, _SUFFIXES[0])}"


def file_stem(title: str) -> str:
    """Return the name of a note without its extension; never empty, and the same for the same title."""
    words = " ".join(_UNFIT.sub(" ", _one_line(title)).split()).strip(_EDGES)
    words = _cut(words, MAX_STEM_BYTES) or "Memory"
    return f"_{words}" if words.split(".")[0].strip().upper() in _RESERVED else words


def file_names(title: str, memory_id: str) -> Iterator[str]:
    """Yield the names that a memory's note may have, the best first; the last is of no other memory."""
    stem = file_stem(title)
    yield stem + EXTENSION
    for length in _SUFFIXES:
        suffix = f" ({_short(memory_id, length)})"
        yield (_cut(stem, MAX_STEM_BYTES - len(suffix)) or "Memory") + suffix + EXTENSION


def same_place(name: str) -> str:
    """Return what two names have in common that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def tags_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as Obsidian takes them, each once whatever its capitals; what has no letter or digit goes."""
    kept: dict[str, str] = {}
    for tag in tags:
        # What fits no tag becomes a hyphen between what does.
        fitting = "".join(
            each if each.isalnum() or each in "_/" or unicodedata.category(each) in ("Mn", "Mc", "So") else " "
            for each in unicodedata.normalize("NFC", tag)
        )
        made = "/".join("-".join(part.split()) for part in fitting.split("/") if part.strip())
        if made.replace("/", "").isdigit():
            made = f"_{made}"  # to Obsidian a number is no tag
        if made.strip("_/-"):
            kept.setdefault(same_place(made), made)
    return tuple(kept.values())


def link_to(name: str) -> str:
    """Return a link to a note with that name, which shows the name as it is; "" if no letter or digit is in it."""
    if not re.search(r"[^\W_]", name):
        return ""
    target = file_stem(name)
    shown = visible(" ".join(re.sub(r"[\[\]|]", " ", _one_line(name)).split()))
    return f"[[{target}]]" if shown in (target, "") else f"[[{target}|{shown}]]"


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


_HEADING: Final = r"#{1,2}(?:[ \t\r\n]|\Z)|(?:-+|=+)[ \t]*(?:[\r\n]|\Z)"
_MARKS: Final = (
    lazy_pattern(rf"(?P<lead>\A {{0,3}})(?P<slashes>\\*)(?={_HEADING}|`{{3}}|~{{3}})"),
    lazy_pattern(r"(?P<lead>(?<!\\))(?P<slashes>\\*)(?=<[A-Za-z!/?%])"),
    lazy_pattern(r"(?P<lead>(?P<mark>[\[%$]))(?P<slashes>\\*)(?=(?P=mark))"),
)


def escaped(text: str) -> str:
    """Return a text as it is written into a section."""

    def escape(found: re.Match[str]) -> str:
        # Doubled, the backslashes that are there stay; one more, an odd one, takes the meaning of what follows.
        return found["lead"] + "\\" * (2 * len(found["slashes"]) + 1)

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
"""The keys of the front matter in their order, with the attributes of a note."""
_UNSEEN: Final = lazy_pattern(f"[\ufeff\ufffe\uffff]|{HIDDEN}")
_MEMORY_ID: Final = lazy_pattern(r"[\"']?memory_id[\"']?[ \t]*:(.*)")


@dataclass(frozen=True, slots=True)
class Note:
    """A memory as a note of the vault has it.

    Attributes:
        created, modified: aware, in UTC; to the second.
        tags: as `tags_of` gives them.
        reason: the criteria by which it was promoted.
        score: its retention when the note was written, 0–1, to four decimals.
        version: of the memory.
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


def write_note(note: Note) -> str:
    """Return a note as Markdown."""

    def quoted(text: str) -> str:
        # JSON's texts are YAML's, but for what ends a line there, must not be in a file, or is seen by nobody.
        return _UNSEEN.sub(_yaml_escape, json.dumps(text, ensure_ascii=False))

    front = []
    for key, attribute in _KEYS.items():
        value = getattr(note, attribute)
        if isinstance(value, tuple):
            front.append(f"{key}:" + ("".join(f"\n  - {quoted(each)}" for each in value) or " []"))
        elif isinstance(value, datetime):
            front.append(f"{key}: {iso(value.replace(microsecond=0))}")
        else:
            front.append(f"{key}: {quoted(value) if isinstance(value, str) else value}")
    links = dict.fromkeys(link for entity in note.entities if (link := link_to(entity)))
    lines = ["---", *front, "---", "", "## Content", "", escaped(note.content), "", "## Entities"]
    lines += ["", *(f"- {link}" for link in links)] if links else []
    return "\n".join(lines) + "\n"


def _yaml_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def memory_id_of(beginning: str) -> str | None:
    """Return the memory that a note is of, by a line of its front matter, or None.

    Args:
        beginning: of a note, or the whole; its front matter need not be whole.
    """
    lines = beginning.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            return None
        if found := _MEMORY_ID.match(line.strip()):
            written = found[1].strip()
            value, fault = load_yaml(written) if written[:1] in ('"', "'") else (written, "")
            return value if not fault and isinstance(value, str) else written.strip("\"'")
    return None
