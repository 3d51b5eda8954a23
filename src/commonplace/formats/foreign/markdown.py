"""Read a folder of Markdown notes: plain, of an Obsidian vault, of basic-memory, or of an OpenClaw workspace.

A note is one memory, each link between two notes a link. basic-memory's notes hold observations (`- [kind] text #tag
(context)`), each a memory that is linked to its note, and relations (`- type [[Note]]`), as docs.basicmemory.com
describes them: both are recognised by their form in any place. In other notes such lines are text like any other.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final, Literal
from urllib.parse import unquote

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignMemory,
    Notes,
    distinct,
    folder_of,
    hashtags,
    markdown_files,
    plain_mapping,
    read_text,
    wikilinks,
)
from commonplace.formats.yaml import FrontMatter, parse_front_matter
from commonplace.text.markdown import fenced_blocks, plain_heading
from commonplace.types import Link, Tier

_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_BULLET: Final = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_RULE: Final = re.compile(r" {0,3}(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")


@dataclass(frozen=True, slots=True)
class Item:
    """A list entry, a paragraph or a block of code.

    Attributes:
        text: as written, without the mark and the indentation of its first line.
        line: the number of its first line in the file, from 1.
        headings: those above it, the outermost first.
    """

    text: str
    line: int
    headings: tuple[str, ...] = ()
    is_entry: bool = False
    is_code: bool = False


def read_note(folder: Path, name: str, notes: Notes) -> tuple[FrontMatter, list[str]] | None:
    """Return the front matter of a note, its values as JSON has them, and the lines; None where it cannot be read.

    The lines of the front matter are emptied, so that numbers stay. What is wrong is noted.
    """
    try:
        text = read_text(folder / name, follow=False, name=name)
    except (NotFoundError, UsageError) as error:
        notes.add(name, str(error))
        return None
    front = parse_front_matter(text)
    if front.fault:
        notes.add(name, front.fault)
    front = replace(front, values=plain_mapping(front.values))
    lines = text.split("\n")
    return front, [""] * front.lines + lines[front.lines :]


def items_of(lines: list[str]) -> Iterator[Item]:
    """Yield the items of a note in order; headings, rules and blank lines are no items."""
    headings: list[tuple[int, str]] = []
    code_ends = dict(fenced_blocks(lines))
    at = 0
    while at < len(lines):
        line = lines[at]
        heading = _HEADING.fullmatch(line)
        if heading:
            level = len(heading[1])
            headings = [one for one in headings if one[0] < level]
            headings.append((level, plain_heading(heading[2].rstrip(" \t#"))))
        if heading or not line.strip() or _RULE.fullmatch(line):
            at += 1
            continue
        is_code, bullet = at in code_ends, _BULLET.match(line)
        end = code_ends[at] if is_code else _item_end(lines, at, bullet, code_ends)
        text = "\n".join([line[bullet.end() :] if bullet else line, *lines[at + 1 : end]]).strip()
        yield Item(text, at + 1, tuple(title for _, title in headings if title), bullet is not None, is_code)
        at = end


def _item_end(lines: list[str], at: int, bullet: re.Match[str] | None, code_ends: Mapping[int, int]) -> int:
    """Return where the list entry or the paragraph that begins at a line ends."""
    indent = len(bullet[1]) if bullet else -1
    end = at + 1
    while end < len(lines):
        line = lines[end]
        is_inside = bullet is not None and len(line) - len(line.lstrip()) > indent
        if not line.strip():
            following = lines[end + 1] if bullet and end + 1 < len(lines) else ""
            if not following.strip() or len(following) - len(following.lstrip()) <= indent:
                break
        elif _HEADING.fullmatch(line) or ((_BULLET.match(line) or end in code_ends) and not is_inside):
            break
        end = code_ends.get(end, end + 1)
    return end


MAX_NAMED_LINKS: Final = 10
"""Maximum number of broken links that are named; the others are counted, because a vault has hundreds."""

PART_OF: Final = "part_of"
"""The type of the link from an observation to its note."""

OBSERVATION: Final = re.compile(r"\[(?![ xX-]?\]|\[)([^\[\]\n]{1,100})\][ \t]+(\S.*)", re.DOTALL)
RELATION: Final = re.compile(r"([^\[\]\n]{0,100}?)[ \t]*\[\[([^\[\]\n]{1,300})\]\][ \t]*(\([^\n]*\))?")
_TAG: Final = re.compile(r"#[^\W\d][\w/-]*")
_CODE_SPAN: Final = re.compile(r"`[^`\n]*`")
_BLANK: Final = re.compile(r"\n[ \t]*\n\s*\n")
_EMPTY_SECTION: Final = re.compile(r"^#{1,6} Observations[ \t]*$\n*(?=#|\Z)", re.MULTILINE | re.IGNORECASE)
_MENTION: Final = "links_to"
_NOTE_LINK: Final = re.compile(r"\]\((?![a-z]+:|/)([^()\s#]{1,300}\.(?:md|markdown))(?:#[^()\s]*)?\)", re.IGNORECASE)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_OWN: Final = frozenset("title tags permalink created modified updated date".split())


@dataclass(slots=True)
class _Note:
    name: str
    memory: ForeignMemory
    observations: list[ForeignMemory] = field(default_factory=list)
    relations: list[tuple[str, str, int]] = field(default_factory=list)  # type, target as written, line


def read_basic_memory(path: Path) -> Foreign:
    """Read all notes below a folder, with observations and relations."""
    return _read(path, "basic-memory's notes", has_observations=True)


def read_notes(path: Path) -> Foreign:
    """Read all notes below a folder; a note without a date of its own has that of a name like `2026-05-01`."""
    return _read(path, "Markdown notes", has_observations=False)


def _read(path: Path, what: str, *, has_observations: bool) -> Foreign:
    folder = folder_of(path)
    problems = Notes()
    notes: dict[str, _Note] = {}
    for name in markdown_files(folder, problems):
        if (read := read_note(folder, name, problems)) is None:
            continue
        front, lines = read
        if not front.values and not any(line.strip() for line in lines):
            problems.notice(name, "is empty and was skipped")
            continue
        note = _note(name, front.values, lines, notes, problems, has_observations=has_observations)
        notes[note.memory.id] = note
    memories = [memory for note in notes.values() for memory in (note.memory, *note.observations)]
    return problems.result(path, what, memories, _links(list(notes.values()), problems))


def _note(
    name: str,
    values: Mapping[str, object],
    lines: list[str],
    taken: Mapping[str, object],
    problems: Notes,
    *,
    has_observations: bool,
) -> _Note:
    title = problems.text(values.get("title"), name, "title").strip() or Path(name).stem
    kind = problems.text(values.get("type"), name, "type")
    items = list(items_of(lines))
    observed = [
        (item, found)
        for item in items
        if has_observations and item.is_entry and (found := OBSERVATION.fullmatch(item.text))
    ]
    relations = [relation for item in items for relation in _relations(item, name, has_types=has_observations)]
    # Its observations are memories of their own; the others are the note, under its title.
    kept = list(lines)
    for item, _ in observed:
        count = item.text.count("\n") + 1
        kept[item.line - 1 : item.line - 1 + count] = [""] * count
    body = _EMPTY_SECTION.sub("", _BLANK.sub("\n\n", "\n".join(kept)).strip()).strip()
    if not body.lstrip("# ").startswith(title):
        body = f"{title}\n\n{body}".strip()
    content = problems.text(body, name, "the note")
    id_ = problems.text(values.get("permalink"), name, "permalink")
    if id_ in taken:
        problems.notice(name, f"has the permalink {id_!r} of another note, and was given an id of its own")
        id_ = ""
    tags = [] if has_observations else [tag for item in items if not item.is_code for tag in hashtags(item.text)]
    memory = ForeignMemory(
        id=id_ or problems.made_id(name, content),
        content=content,
        title=title,
        tags=distinct([*problems.words(values.get("tags"), name, "tags"), *tags]),
        entities=distinct([title, *(target for _, target, _ in relations)]),
        created_at=_time(values, ("created", "date"), name, problems) or _day(name, problems),
        updated_at=_time(values, ("modified", "updated"), name, problems),
        category="" if kind == "note" else kind,
        source=name,
        metadata=plain_mapping({key: value for key, value in values.items() if key not in _OWN}),
    )
    return _Note(name, memory, [_observation(memory, *one, problems) for one in observed], relations)


def _relations(item: Item, name: str, *, has_types: bool) -> Iterator[tuple[str, str, int]]:
    """Yield the relations that an item of a note states: type, target as it is written, and line."""
    if item.is_code:
        return
    if has_types:
        relation = RELATION.fullmatch(item.text) if item.is_entry else None
        kind = (relation[1].strip().strip("\"'") or "relates_to") if relation else _MENTION
        targets = wikilinks(item.text)
    else:
        # Notes may also be linked by their paths, relative to this one.
        text, here = _CODE_SPAN.sub("", item.text), PurePosixPath(name).parent
        paths = (posixpath.normpath(here / unquote(each)).rpartition(".")[0] for each in _NOTE_LINK.findall(text))
        kind, targets = _MENTION, distinct([*wikilinks(text), *paths])
    for target in targets:
        yield kind, target, item.line


def _time(values: Mapping[str, object], names: Iterable[str], where: str, problems: Notes) -> float | None:
    stated = next((name for name in names if values.get(name)), None)
    return problems.time(values[stated], where, stated) if stated else None


def _day(name: str, problems: Notes) -> float | None:
    """Return the day that the name of a daily note says; 2026-02-30 is a name like any other."""
    day = _DAY.match(Path(name).stem)
    with suppress(ValueError):
        return problems.time(date.fromisoformat(day[0]), name, "the day in its name") if day else None
    return None


def _observation(note: ForeignMemory, item: Item, match: re.Match[str], problems: Notes) -> ForeignMemory:
    said = text = match[2].strip()
    # The parenthesis at its end says more of it.
    start, context = text.rfind("("), ""
    inner = text[start + 1 : -1]
    if start > 0 and text.endswith(")") and text[start - 1].isspace() and ")" not in inner:
        said, context = text[:start].rstrip(), inner
    words = said.split(" ")
    while words and (not words[-1] or _TAG.fullmatch(words[-1])):
        words.pop()
    return ForeignMemory(
        content=problems.text(" ".join(words) or text, f"{note.source}:{item.line}", "the observation"),
        id=problems.made_id(note.source, item.text),
        title=note.title,
        tags=distinct([*note.tags, *hashtags(text)]),
        entities=distinct([note.title, *wikilinks(text)]),
        created_at=note.created_at,
        updated_at=note.updated_at,
        category=match[1].strip(),
        source=note.source,
        metadata=plain_mapping({"context": context, "line": item.line}),
    )


def _links(notes: Sequence[_Note], problems: Notes) -> Iterator[Link]:
    """Yield the links; a note is named by its title, its permalink, its path or its file's name."""
    names = [(note.memory.title, note.memory.id, note.name.rpartition(".")[0], Path(note.name).stem) for note in notes]
    known: dict[str, str] = {}
    for same_kind in zip(*names, strict=True):
        for note, name in zip(notes, same_kind, strict=True):
            known.setdefault(name.casefold(), note.memory.id)
    seen: set[tuple[str, str, str]] = set()
    loose = 0
    for note in notes:
        for observation in note.observations:
            yield Link(observation.id, note.memory.id, PART_OF)
        for kind, target, line in note.relations:
            found = known.get(target.casefold())
            if found is None:
                loose += 1
                if loose <= MAX_NAMED_LINKS:
                    what = f"links [[{target}]], which is no note here: kept as text and entity alone"
                    problems.notice(f"{note.name}:{line}", what)
            elif (note.memory.id, found, kind) not in seen:
                seen.add((note.memory.id, found, kind))
                yield Link(note.memory.id, found, kind)
    if loose > MAX_NAMED_LINKS:
        problems.notice(".", f"{loose - MAX_NAMED_LINKS:,} more links lead to no note here")


OPENCLAW_LONG_TERM: Final = ("MEMORY.md", "memory.md")
OPENCLAW_DAYS: Final = "memory"
OPENCLAW_DAY: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[-_ ].*)?\.md", re.IGNORECASE)
_COMMENT: Final = re.compile(r"<!--(?:(?!<!--|-->).)*+-->", re.DOTALL)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})\b")
_CATEGORIES: Final = {
    "decisions": "decision",
    "preferences": "preference",
    "facts": "fact",
    "lessons": "lesson",
    "events": "event",
}


def read_openclaw(path: Path) -> Foreign:
    """Read a workspace of OpenClaw (docs.openclaw.ai): `MEMORY.md`, and `memory/` with a file for each day.

    Each list entry and paragraph becomes a memory: of `MEMORY.md` with tier long, of a day's file short with its date,
    of other files with none.
    """
    folder = folder_of(path)
    notes = Notes()
    memories: list[ForeignMemory] = []
    for place in sorted(entry.name for entry in folder.iterdir() if entry.name in {*OPENCLAW_LONG_TERM, OPENCLAW_DAYS}):
        if (folder / place).is_symlink():
            notes.add(place, "is a link, and links are not followed")
            continue
        for name in markdown_files(folder, notes, below=OPENCLAW_DAYS) if place == OPENCLAW_DAYS else (place,):
            memories += _openclaw_memories(folder, name, notes)
    return notes.result(path, "an OpenClaw workspace", memories)


def _openclaw_memories(folder: Path, name: str, notes: Notes) -> Iterator[ForeignMemory]:
    note = read_note(folder, name, notes)
    if note is None:
        return
    front, lines = note
    day = None
    written = None if name in OPENCLAW_LONG_TERM else OPENCLAW_DAY.fullmatch(name.rpartition("/")[2])
    if written:
        try:
            day = datetime.fromisoformat(written[1]).replace(tzinfo=UTC)
        except ValueError:
            notes.notice(name, f"is named after {written[1]}, which is not a date; its entries have none")
    tier: Tier | Literal[""] = "long" if name in OPENCLAW_LONG_TERM else "short" if day else ""
    for item in items_of(lines):
        where = f"{name}:{item.line}"
        content = notes.text(_COMMENT.sub("", item.text).strip(), where, "the entry")
        if not content:
            notes.notice(where, "is a comment and was skipped")
            continue
        # An entry is of its file's day, at the hour with which a heading above it begins (`14:30 Review`).
        inner_first = item.headings[::-1]
        clock = next((match for heading in inner_first if (match := _CLOCK.match(heading))), None)
        at = day
        if day and clock and int(clock[1]) < 24 and int(clock[2]) < 60:
            at = day + timedelta(hours=int(clock[1]), minutes=int(clock[2]))
        categories = (_CATEGORIES.get(heading.lower(), "") for heading in inner_first)
        about = {"line": item.line, "headings": list(item.headings), "front_matter": front.values}
        yield ForeignMemory(
            id=notes.made_id(name, content),
            content=content,
            title=item.headings[-1] if item.headings else "",
            tags=hashtags(content),
            entities=wikilinks(content),
            created_at=at.timestamp() if at else None,
            tier=tier,
            category=next(filter(None, categories), ""),
            source=name,
            metadata=plain_mapping(about),
        )
