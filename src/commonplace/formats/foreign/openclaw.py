"""Read the memory of an OpenClaw workspace: `MEMORY.md`, and `memory/` with a file for each day.

Each list entry and paragraph becomes a memory. Layout as docs.openclaw.ai describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from commonplace.formats.foreign.markdown import front_and_body, items_of
from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignMemory,
    Notes,
    folder_of,
    hashtags,
    markdown_files,
    note_text,
    plain_mapping,
    wikilinks,
)
from commonplace.types import Tier

LONG_TERM: Final = ("MEMORY.md", "memory.md")
DAYS: Final = "memory"
DAY: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[-_ ].*)?\.md", re.IGNORECASE)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})\b")
_CATEGORIES: Final = {
    "decisions": "decision",
    "preferences": "preference",
    "facts": "fact",
    "lessons": "lesson",
    "events": "event",
}


def read(path: Path) -> Foreign:
    """Read a workspace: long-term memory has tier long, a day's file short and its date, other files none."""
    folder = folder_of(path)
    notes = Notes()
    memories: list[ForeignMemory] = []
    for name in _files(folder, notes):
        text = note_text(folder, name, notes.problems)
        if text is not None:
            memories += _memories(name, text, notes)
    return notes.result(path, "an OpenClaw workspace", memories)


def _files(folder: Path, notes: Notes) -> Iterator[str]:
    for name in sorted(entry.name for entry in folder.iterdir() if entry.name in {*LONG_TERM, DAYS}):
        if (folder / name).is_symlink():
            notes.add(name, "is a link, and links are not followed")
        elif name == DAYS:
            yield from markdown_files(folder, notes.problems, below=DAYS)
        else:
            yield name


def _memories(name: str, text: str, notes: Notes) -> Iterator[ForeignMemory]:
    front, lines = front_and_body(text)
    if front.fault:
        notes.add(name, front.fault)
    day = _day(name, notes)
    tier: Tier | Literal[""] = "long" if name in LONG_TERM else "short" if day else ""
    for item in items_of(lines):
        where = f"{name}:{item.line}"
        content = notes.text(_without_comments(item.text).strip(), where, "the entry")
        if not content:
            notes.tell(where, "is a comment and was skipped")
            continue
        about = {"line": item.line, "headings": list(item.headings), "front_matter": front.values}
        yield ForeignMemory(
            id=notes.made_id(name, content),
            content=content,
            title=item.headings[-1] if item.headings else "",
            tags=hashtags(content),
            entities=wikilinks(content),
            created_at=_moment(day, item.headings),
            tier=tier,
            category=next((_CATEGORIES[h.lower()] for h in reversed(item.headings) if h.lower() in _CATEGORIES), ""),
            source=name,
            metadata=plain_mapping(about),
        )


def _without_comments(text: str) -> str:
    parts = text.split("<!--")
    for at in range(1, len(parts)):
        _, closing, rest = parts[at].partition("-->")
        if not closing:
            return "".join(parts[:at]) + "<!--" + "<!--".join(parts[at:])
        parts[at] = rest
    return "".join(parts)


def _day(name: str, notes: Notes) -> datetime | None:
    """Return the day, in UTC, that a file below `memory/` is named after."""
    written = DAY.fullmatch(name.rpartition("/")[2])
    if name in LONG_TERM or not written:
        return None
    try:
        return datetime.fromisoformat(written[1]).replace(tzinfo=UTC)
    except ValueError:
        notes.tell(name, f"is named after {written[1]}, which is not a date; its entries have none")
        return None


def _moment(day: datetime | None, headings: tuple[str, ...]) -> float | None:
    """Return the time of an entry: its day's, and the hour with which a heading above it begins (`14:30 Review`)."""
    if day is None:
        return None
    clock = next((match for heading in reversed(headings) if (match := _CLOCK.match(heading))), None)
    if clock and int(clock[1]) < 24 and int(clock[2]) < 60:
        day += timedelta(hours=int(clock[1]), minutes=int(clock[2]))
    return day.timestamp()
