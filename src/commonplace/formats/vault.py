"""Read, write and update notes of the vault: Markdown with front matter.

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
`[[`, `%%`, `$$` and `<` before a tag. Text inside of fences that are closed is left as it is. Backslashes that stand
there already are counted, so that reading gives back the text to the byte. What nobody sees is written `&#8238;`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import iso
from commonplace.formats.escaping import HIDDEN, visible
from commonplace.formats.journal import paired_fences, read_characters, split_lines, topic_of, write_characters
from commonplace.formats.yaml import load_yaml
from commonplace.patterns import late_pattern
from commonplace.text.hashes import sha256
from commonplace.text.markdown import front_matter_end

EXTENSION: Final = ".md"

MAX_STEM_BYTES: Final = 120
"""Of a note's name without its extension: encrypted file systems take 143, and paths of Windows 260 in all."""

_UNFIT: Final = late_pattern(r'[\\/:*?"<>|#^\[\]%`]')
"""What Windows refuses in a name, and what ends or splits a link in Obsidian."""
_EDGES: Final = " .-~$"
_RESERVED: Final = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"]
    + [f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³"]
)
_UUID: Final = late_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
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


_HEADING: Final = r"#{1,2}(?:[ \t\r\n]|\Z)|(?:-+|=+)[ \t]*(?:[\r\n]|\Z)"
_MARKS: Final = (
    late_pattern(rf"(?P<lead>\A {{0,3}})(?P<slashes>\\*)(?={_HEADING}|`{{3}}|~{{3}})"),
    late_pattern(r"(?P<lead>(?<!\\))(?P<slashes>\\*)(?=<[A-Za-z!/?%])"),
    late_pattern(r"(?P<lead>(?P<mark>[\[%$]))(?P<slashes>\\*)(?=(?P=mark))"),
)
_SECTION: Final = late_pattern(r" {0,3}(#{1,2})[ \t]+(?P<name>[^\r\n]*?)[ \t]*(?:[ \t]#+[ \t]*)?(?:[\r\n]|\Z)")


def are_fenced(lines: Iterable[str]) -> list[bool]:
    """Return for each line whether it belongs to fenced code, its fences included; code that nothing closes is none."""
    return paired_fences([line.rstrip("\r\n") for line in lines])


def section_name(line: str) -> str | None:
    """Return the name of the section that a line begins, None where it begins none."""
    found = _SECTION.match(line)
    return found["name"] if found else None


def escaped(text: str) -> str:
    """Return a text as it is written into a section."""
    # Doubled, the backslashes that are there stay; one more, an odd one, takes the meaning of what follows.
    return _changed(write_characters(text, always=""), lambda count: 2 * count + 1)


def unescaped(text: str) -> str:
    """Return the text that was written into a section."""
    return read_characters(_changed(text, lambda count: count // 2), always="")


def _changed(text: str, count: Callable[[int], int]) -> str:
    """Return a text with another number of backslashes before each mark outside of code."""

    def change(found: re.Match[str]) -> str:
        return found["lead"] + "\\" * count(len(found["slashes"]))

    lines = split_lines(text)
    return "".join(
        line if is_fenced else reduce(lambda words, marks: marks.sub(change, words), _MARKS, line)
        for line, is_fenced in zip(lines, are_fenced(lines), strict=True)
    )


CONTENT: Final = "Content"
ENTITIES: Final = "Entities"
FRONT: Final = "front matter"

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
_KEY: Final = late_pattern(
    r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s\-#'"&*!|>%@`\[\]{},?:][^:#]*?))[ ]*:(?=[ \n]|\Z)"""
)
_UNSEEN: Final = late_pattern(f"[\ufeff\ufffe\uffff]|{HIDDEN}")
_MEMORY_ID: Final = late_pattern(r"[\"']?memory_id[\"']?[ \t]*:(.*)")


@dataclass(frozen=True, slots=True)
class Note:
    """A memory as the vault tells it.

    Attributes:
        version: of the memory; 0 where a note does not tell.
        created, modified: aware, in UTC; to the second.
        tags: as `vault_names.tags_of` gives them.
        reason: the criteria by which it was promoted.
        score: its retention when the note was written, 0–1, to four decimals.
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


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A note that was written anew.

    Attributes:
        by_hand: what a person did to it and what was therefore kept: `Content`, `Entities`, `front matter`, or the
            names of their own keys and sections.
    """

    text: str
    by_hand: tuple[str, ...] = ()


def write_note(note: Note) -> str:
    """Return a note as it is written where there is none."""
    links = [link for entity in note.entities if (link := link_to(entity))]
    front = "".join(f"{_property(note, key)}\n" for key in _KEYS)
    content = escaped(note.content)
    return f"---\n{front}---\n\n## {CONTENT}\n\n{content}\n\n## {ENTITIES}\n" + _listed(links)


def read_note(text: str) -> Note | None:
    """Return what a note says; None where it is no note of a memory, or its front matter cannot be read."""
    page = _page(text)
    if page is None:
        return None
    values = page.values
    content = page.body(CONTENT)
    score, version = values.get("decay_score"), values.get("memory_version")
    return Note(
        memory_id=_text(values.get("memory_id")),
        title=_text(values.get("title")),
        content="" if content is None else unescaped(_without_edges(content)),
        created=_moment(values.get("created")),
        modified=_moment(values.get("modified")),
        tags=_texts(values.get("tags")),
        entities=_texts(values.get("entities")),
        reason=_text(values.get("promotion_reason")),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else 0.0,
        version=version if isinstance(version, int) and not isinstance(version, bool) else 0,
    )


def rewrite_note(text: str, note: Note, before: Iterable[Note]) -> Rewritten:
    """Return a note as it is to be now, with everything that a person did to it.

    Title, keys and sections of a person's own stay, and so do tags, entities and lines that they added, and what they
    took out stays out. A Content section that says what no version of the memory says was edited and stays as it is;
    one that is gone stays gone. Front matter that cannot be read leaves the whole note as it is.

    Args:
        before: notes of the memory's versions up to the one that the note tells, by which what we wrote is told from
            what a person wrote.
    """
    page = _page(text)
    if page is None:
        return Rewritten(text, (FRONT,))
    versions = list(before)
    known = [*versions, note]
    by_hand = [*page.own_keys(), *page.own_sections()]
    old = read_note(text)
    assert old is not None
    tags = _merged(note.tags, old.tags, [each.tags for each in versions])
    entities = _merged(note.entities, old.entities, [each.entities for each in versions])
    is_ours = (tags, entities) == (note.tags, note.entities)
    is_titled = any(old.title == each.title for each in known) or not old.title
    by_hand += [FRONT] if not is_ours or not is_titled else []
    new = replace(note, title=old.title or note.title, tags=tags, entities=entities)
    written = page.body(CONTENT)
    if written is None or not any(_same(unescaped(_without_edges(written)), each.content) for each in known):
        by_hand.append(CONTENT)
    else:
        page.set_body(CONTENT, f"\n{escaped(note.content)}\n\n")
    listed = page.body(ENTITIES)
    links = {link for each in known for entity in each.entities if (link := link_to(entity))}
    if listed is None:
        by_hand.append(ENTITIES)
    else:
        own = [line for line in split_lines(listed) if line.strip() and line.strip().removeprefix("- ") not in links]
        by_hand += [ENTITIES] if own else []
        page.set_body(ENTITIES, _listed([link for each in entities if (link := link_to(each))], own))
    made = page.text(new)
    read = read_note(made)
    if read is None or (read.tags, read.entities, read.memory_id) != (tags, entities, note.memory_id):
        return Rewritten(text, (FRONT,))  # front matter whose lines were not what they looked like
    return Rewritten(made, tuple(dict.fromkeys(by_hand)))


def memory_id_of(beginning: str) -> str | None:
    """Return the memory that a note is of, by a line of its front matter; None where there is none.

    Args:
        beginning: of a note, or the whole; its front matter need not be whole.
    """
    lines = beginning.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            return None
        found = _MEMORY_ID.match(line.strip())
        if found:
            return _scalar(found[1].strip())
    return None


class _Page:
    """A note in parts: blocks of its front matter by key, and sections by name, each as it stands in the file."""

    def __init__(self, values: dict[str, object], blocks: list[tuple[str, str]], body: str) -> None:
        self.values = values
        self._blocks = blocks
        self._sections = _sections(body)

    def own_keys(self) -> list[str]:
        """Return the keys that are not ours."""
        return [key for key, _ in self._blocks if key and key not in _KEYS]

    def own_sections(self) -> list[str]:
        """Return the names of the sections that are not ours, and of those that stand there a second time."""
        names = [name for name, heading, body in self._sections if (heading + body).strip()]
        for ours in (CONTENT, ENTITIES):
            if ours in names:
                names.remove(ours)
        return [name or "the beginning" for name in names]

    def body(self, name: str) -> str | None:
        """Return what stands below the first heading of that name, None where there is none."""
        return next((body for known, _, body in self._sections if known == name), None)

    def set_body(self, name: str, body: str) -> None:
        """Set what stands below the first heading of that name."""
        place = next(place for place, section in enumerate(self._sections) if section[0] == name)
        is_last = place == len(self._sections) - 1
        heading = self._sections[place][1]
        body += "" if is_last or body.endswith("\n\n") else "\n"
        self._sections[place] = (name, heading if heading.endswith(("\n", "\r")) else f"{heading}\n", body)

    def text(self, note: Note) -> str:
        """Return the whole note, our keys as this note has them, in the places where they stand."""
        missing = [key for key in _KEYS if key not in self.values]
        front = "".join(f"{_property(note, key)}\n" if key in _KEYS else block for key, block in self._blocks)
        front += "".join(f"{_property(note, key)}\n" for key in missing)
        return f"---\n{front}---\n" + "".join(heading + body for _, heading, body in self._sections)


def _page(text: str) -> _Page | None:
    text = text.removeprefix("\ufeff")
    if re.match(r"---[ \t]*\r\n", text):
        text = text.replace("\r\n", "\n")
    lines = split_lines(text)
    end = front_matter_end(lines)
    if not end or not text.startswith("---"):
        return None
    values, fault = load_yaml("".join(lines[1 : end - 1]))
    blocks = _blocks(lines[1 : end - 1])
    if fault or not isinstance(values, dict) or not values.get("memory_id"):
        return None
    if [key for key, _ in blocks if key] != list(values):
        return None  # written in a way in which keys cannot be told apart by lines
    return _Page(values, blocks, "".join(lines[end:]))


def _blocks(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return the lines of each key of front matter with the key; what stands before the first has the key ""."""
    blocks: list[tuple[str, str]] = [("", "")]
    for line in lines:
        found = _KEY.match(line)
        if found or line.startswith("#") or not line.strip():
            key = next((each for each in found.groups() if each is not None), "") if found else ""
            blocks.append((key, line))
        else:
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + line)
    return blocks


def _sections(body: str) -> list[tuple[str, str, str]]:
    """Return (name, heading, body) of the parts of a note; what stands before the first heading has the name ""."""
    found = [("", "", "")]
    lines = split_lines(body)
    for line, is_fenced in zip(lines, are_fenced(lines), strict=True):
        name = None if is_fenced else section_name(line)
        if name is not None:
            found.append((name, line, ""))
        else:
            found[-1] = (*found[-1][:2], found[-1][2] + line)
    return found


def _property(note: Note, key: str) -> str:
    value = getattr(note, _KEYS[key])
    if isinstance(value, tuple):
        return f"{key}:" + ("".join(f"\n  - {_quoted(each)}" for each in value) or " []")
    if isinstance(value, datetime):
        return f"{key}: {iso(value.replace(microsecond=0))}"
    return f"{key}: {_quoted(value) if isinstance(value, str) else value}"


def _quoted(text: str) -> str:
    # JSON's texts are YAML's, but for what ends a line there, must not stand in a file, or is seen by nobody.
    def written(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return _UNSEEN.sub(written, json.dumps(text, ensure_ascii=False))


def _scalar(written: str) -> str:
    value, fault = load_yaml(written) if written[:1] in ('"', "'") else (written, "")
    return value if not fault and isinstance(value, str) else written.strip("\"'")


def _listed(links: Sequence[str], own: Sequence[str] = ()) -> str:
    lines = "".join(f"- {link}\n" for link in dict.fromkeys(links)) + "".join(
        line if line.endswith(("\n", "\r")) else f"{line}\n" for line in own
    )
    return f"\n{lines}" if lines else ""


def _merged(new: tuple[str, ...], written: tuple[str, ...], versions: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return values with what a person added to those that were written, and without what they took out."""
    stand = {same_place(each) for each in written}
    ever = {same_place(each) for version in versions for each in version}
    kept = [each for each in new if same_place(each) in stand or same_place(each) not in ever]
    known = ever | {same_place(each) for each in new}
    return (*kept, *(each for each in written if same_place(each) not in known))


def _without_edges(body: str) -> str:
    """Return a section without the blank line before it and the one behind."""
    return body.removeprefix("\n").removesuffix("\n").removesuffix("\n")


def _same(one: str, other: str) -> bool:
    """Tell whether two texts differ in no more than line ends and blanks at the ends of lines."""
    return [line.rstrip() for line in one.strip().splitlines()] == [
        line.rstrip() for line in other.strip().splitlines()
    ]


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(each for each in re.split(r"[,\s]+", value) if each)
    return tuple(_text(each) for each in value if each is not None) if isinstance(value, list) else ()


def _moment(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, datetime):
        return datetime.fromtimestamp(0, UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
