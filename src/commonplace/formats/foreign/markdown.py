"""Read a folder of Markdown notes: plain ones, an Obsidian vault, basic-memory's, or an OpenClaw workspace.

A note becomes one memory, a link between two notes a link. basic-memory's notes hold observations (`- [kind] text #tag
(context)`), each a memory that is linked to its note, and relations (`- type [[Note]]`), as docs.basicmemory.com
describes them; both are recognised anywhere by their form. In other notes such lines are plain text.
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
    ForeignData,
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
class NoteItem:
    """A list entry, a paragraph or a block of code.

    Attributes:
        text: as in the file, without the bullet and the indentation of its first line.
        line: number of its first line in the file, from 1.
        headings: the headings above it, the outermost first.
    """

    text: str
    line: int
    headings: tuple[str, ...] = ()
    is_entry: bool = False
    is_code: bool = False


def read_note(folder: Path, name: str, notes: Notes) -> tuple[FrontMatter, list[str]] | None:
    """Return the front matter of a note, with JSON values, and the lines of the file; None if it cannot be read.

    The lines of the front matter are blank, so that line numbers stay valid. Faults become problems.
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


def items_of(lines: list[str]) -> Iterator[NoteItem]:
    """Yield the items of a note in order, without headings, horizontal rules and blank lines."""
    headings: list[tuple[int, str]] = []
    code_ends = dict(fenced_blocks(lines))
    start = 0
    while start < len(lines):
        line = lines[start]
        heading = _HEADING.fullmatch(line)
        if heading:
            level = len(heading[1])
            headings = [above for above in headings if above[0] < level]
            headings.append((level, plain_heading(heading[2].rstrip(" \t#"))))
        if heading or not line.strip() or _RULE.fullmatch(line):
            start += 1
            continue
        is_code, bullet = start in code_ends, _BULLET.match(line)
        end = code_ends[start] if is_code else _item_end(lines, start, bullet, code_ends)
        text = "\n".join([line[bullet.end() :] if bullet else line, *lines[start + 1 : end]]).strip()
        yield NoteItem(text, start + 1, tuple(title for _, title in headings if title), bullet is not None, is_code)
        start = end


def _item_end(lines: list[str], start: int, bullet: re.Match[str] | None, code_ends: Mapping[int, int]) -> int:
    """Return the end (exclusive) of the list entry or paragraph that begins at a line."""
    indent = len(bullet[1]) if bullet else -1
    end = start + 1
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
"""Maximum number of broken links to report one by one; a vault may have hundreds, so further ones are counted."""

PART_OF: Final = "part_of"
"""Type of the link from an observation to its note."""

OBSERVATION: Final = re.compile(r"\[(?![ xX-]?\]|\[)([^\[\]\n]{1,100})\][ \t]+(\S.*)", re.DOTALL)
RELATION: Final = re.compile(r"([^\[\]\n]{0,100}?)[ \t]*\[\[([^\[\]\n]{1,300})\]\][ \t]*(\([^\n]*\))?")
_TAG: Final = re.compile(r"#[^\W\d][\w/-]*")
_CODE_SPAN: Final = re.compile(r"`[^`\n]*`")
_BLANK_LINES: Final = re.compile(r"\n[ \t]*\n\s*\n")
_EMPTY_SECTION: Final = re.compile(r"^#{1,6} Observations[ \t]*$\n*(?=#|\Z)", re.MULTILINE | re.IGNORECASE)
_MENTION_TYPE: Final = "links_to"
_NOTE_LINK: Final = re.compile(r"\]\((?![a-z]+:|/)([^()\s#]{1,300}\.(?:md|markdown))(?:#[^()\s]*)?\)", re.IGNORECASE)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_NOTE_KEYS: Final = frozenset("title tags permalink created modified updated date".split())


@dataclass(slots=True)
class _Note:
    name: str
    memory: ForeignMemory
    observations: list[ForeignMemory] = field(default_factory=list)
    relations: list[tuple[str, str, int]] = field(default_factory=list)  # type, target as written, line


def read_basic_memory(path: Path) -> ForeignData:
    """Read all notes below a folder, with their observations and relations."""
    return _read(path, "basic-memory's notes", has_observations=True)


def read_notes(path: Path) -> ForeignData:
    """Read all notes below a folder; a note without a date gets the one in a file name like `2026-05-01.md`."""
    return _read(path, "Markdown notes", has_observations=False)


def _read(path: Path, what: str, *, has_observations: bool) -> ForeignData:
    folder = folder_of(path)
    problems = Notes()
    notes: dict[str, _Note] = {}
    for name in markdown_files(folder, problems):
        if (parsed := read_note(folder, name, problems)) is None:
            continue
        front, lines = parsed
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
    notes: Mapping[str, object],
    problems: Notes,
    *,
    has_observations: bool,
) -> _Note:
    title = problems.text(values.get("title"), name, "title").strip() or Path(name).stem
    kind = problems.text(values.get("type"), name, "type")
    items = list(items_of(lines))
    observations = [
        (item, match)
        for item in items
        if has_observations and item.is_entry and (match := OBSERVATION.fullmatch(item.text))
    ]
    relations = [relation for item in items for relation in _relations(item, name, has_types=has_observations)]
    # Observations are memories of their own; the other lines are the note's content, under its title.
    text_lines = list(lines)
    for item, _ in observations:
        count = item.text.count("\n") + 1
        text_lines[item.line - 1 : item.line - 1 + count] = [""] * count
    body = _EMPTY_SECTION.sub("", _BLANK_LINES.sub("\n\n", "\n".join(text_lines)).strip()).strip()
    if not body.lstrip("# ").startswith(title):
        body = f"{title}\n\n{body}".strip()
    content = problems.text(body, name, "the note")
    id_ = problems.text(values.get("permalink"), name, "permalink")
    if id_ in notes:
        problems.notice(name, f"has the permalink {id_!r} of another note, and was given an id of its own")
        id_ = ""
    tags = [] if has_observations else [tag for item in items if not item.is_code for tag in hashtags(item.text)]
    memory = ForeignMemory(
        id=id_ or problems.make_id(name, content),
        content=content,
        title=title,
        tags=distinct([*problems.words(values.get("tags"), name, "tags"), *tags]),
        entities=distinct([title, *(target for _, target, _ in relations)]),
        created_at=_time(values, ("created", "date"), name, problems) or _day(name, problems),
        updated_at=_time(values, ("modified", "updated"), name, problems),
        category="" if kind == "note" else kind,
        source=name,
        metadata=plain_mapping({key: value for key, value in values.items() if key not in _NOTE_KEYS}),
    )
    return _Note(name, memory, [_observation(memory, *pair, problems) for pair in observations], relations)


def _relations(item: NoteItem, name: str, *, has_types: bool) -> Iterator[tuple[str, str, int]]:
    """Yield type, target as written and line of each relation in an item of a note."""
    if item.is_code:
        return
    if has_types:
        relation = RELATION.fullmatch(item.text) if item.is_entry else None
        kind = (relation[1].strip().strip("\"'") or "relates_to") if relation else _MENTION_TYPE
        targets = wikilinks(item.text)
    else:
        # Links may also be paths, relative to the note.
        text, folder = _CODE_SPAN.sub("", item.text), PurePosixPath(name).parent
        paths = (posixpath.normpath(folder / unquote(link)).rpartition(".")[0] for link in _NOTE_LINK.findall(text))
        kind, targets = _MENTION_TYPE, distinct([*wikilinks(text), *paths])
    for target in targets:
        yield kind, target, item.line


def _time(values: Mapping[str, object], names: Iterable[str], location: str, problems: Notes) -> float | None:
    key = next((name for name in names if values.get(name)), None)
    return problems.time(values[key], location, key) if key else None


def _day(name: str, problems: Notes) -> float | None:
    """Return the day in the name of a daily note, or None; an invalid date such as 2026-02-30 is ignored."""
    day = _DAY.match(Path(name).stem)
    with suppress(ValueError):
        return problems.time(date.fromisoformat(day[0]), name, "the day in its name") if day else None
    return None


def _observation(note: ForeignMemory, item: NoteItem, match: re.Match[str], problems: Notes) -> ForeignMemory:
    statement = text = match[2].strip()
    # A parenthesis at the end is the context.
    start, context = text.rfind("("), ""
    inner = text[start + 1 : -1]
    if start > 0 and text.endswith(")") and text[start - 1].isspace() and ")" not in inner:
        statement, context = text[:start].rstrip(), inner
    words = statement.split(" ")
    while words and (not words[-1] or _TAG.fullmatch(words[-1])):
        words.pop()
    return ForeignMemory(
        content=problems.text(" ".join(words) or text, f"{note.source}:{item.line}", "the observation"),
        id=problems.make_id(note.source, item.text),
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
    """Yield all links; a target may be a note's title, permalink, path or file name."""
    names = [(note.memory.title, note.memory.id, note.name.rpartition(".")[0], Path(note.name).stem) for note in notes]
    ids: dict[str, str] = {}
    for same_kind in zip(*names, strict=True):
        for note, name in zip(notes, same_kind, strict=True):
            ids.setdefault(name.casefold(), note.memory.id)
    seen: set[tuple[str, str, str]] = set()
    broken = 0
    for note in notes:
        for observation in note.observations:
            yield Link(observation.id, note.memory.id, PART_OF)
        for kind, target, line in note.relations:
            target_id = ids.get(target.casefold())
            if target_id is None:
                broken += 1
                if broken <= MAX_NAMED_LINKS:
                    problem = f"links [[{target}]], which is no note here: kept as text and entity alone"
                    problems.notice(f"{note.name}:{line}", problem)
            elif (note.memory.id, target_id, kind) not in seen:
                seen.add((note.memory.id, target_id, kind))
                yield Link(note.memory.id, target_id, kind)
    if broken > MAX_NAMED_LINKS:
        problems.notice(".", f"{broken - MAX_NAMED_LINKS:,} more links lead to no note here")


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


def read_openclaw(path: Path) -> ForeignData:
    """Read an OpenClaw workspace (docs.openclaw.ai): `MEMORY.md`, and `memory/` with one file per day.

    Each list entry and paragraph becomes a memory: from `MEMORY.md` with tier long, from a day's file with tier short
    and its date, from other files without a tier.
    """
    folder = folder_of(path)
    notes = Notes()
    memories: list[ForeignMemory] = []
    for child in sorted(entry.name for entry in folder.iterdir() if entry.name in {*OPENCLAW_LONG_TERM, OPENCLAW_DAYS}):
        if (folder / child).is_symlink():
            notes.add(child, "is a link, and links are not followed")
            continue
        for name in markdown_files(folder, notes, below=OPENCLAW_DAYS) if child == OPENCLAW_DAYS else (child,):
            memories += _openclaw_memories(folder, name, notes)
    return notes.result(path, "an OpenClaw workspace", memories)


def _openclaw_memories(folder: Path, name: str, notes: Notes) -> Iterator[ForeignMemory]:
    note = read_note(folder, name, notes)
    if note is None:
        return
    front, lines = note
    day = None
    day_match = None if name in OPENCLAW_LONG_TERM else OPENCLAW_DAY.fullmatch(name.rpartition("/")[2])
    if day_match:
        try:
            day = datetime.fromisoformat(day_match[1]).replace(tzinfo=UTC)
        except ValueError:
            notes.notice(name, f"is named after {day_match[1]}, which is not a date; its entries have none")
    tier: Tier | Literal[""] = "long" if name in OPENCLAW_LONG_TERM else "short" if day else ""
    for item in items_of(lines):
        location = f"{name}:{item.line}"
        content = notes.text(_COMMENT.sub("", item.text).strip(), location, "the entry")
        if not content:
            notes.notice(location, "is a comment and was skipped")
            continue
        # An entry has its file's day, and the time at the start of the nearest heading above (`14:30 Review`).
        headings = item.headings[::-1]
        clock = next((match for heading in headings if (match := _CLOCK.match(heading))), None)
        moment = day
        if day and clock and int(clock[1]) < 24 and int(clock[2]) < 60:
            moment = day + timedelta(hours=int(clock[1]), minutes=int(clock[2]))
        categories = (_CATEGORIES.get(heading.lower(), "") for heading in headings)
        metadata = {"line": item.line, "headings": list(item.headings), "front_matter": front.values}
        yield ForeignMemory(
            id=notes.make_id(name, content),
            content=content,
            title=item.headings[-1] if item.headings else "",
            tags=hashtags(content),
            entities=wikilinks(content),
            created_at=moment.timestamp() if moment else None,
            tier=tier,
            category=next(filter(None, categories), ""),
            source=name,
            metadata=plain_mapping(metadata),
        )
