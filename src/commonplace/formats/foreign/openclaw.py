"""Read the memory of an OpenClaw workspace: `MEMORY.md`, and `memory/` with a file for each day.

Each list entry and paragraph becomes a memory. Layout as docs.openclaw.ai describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from commonplace.formats.foreign.markdown import items_of, read_note
from commonplace.formats.foreign.reader import (
    Foreign,
    ForeignMemory,
    Notes,
    folder_of,
    hashtags,
    markdown_files,
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
    for place in sorted(entry.name for entry in folder.iterdir() if entry.name in {*LONG_TERM, DAYS}):
        if (folder / place).is_symlink():
            notes.add(place, "is a link, and links are not followed")
            continue
        for name in markdown_files(folder, notes, below=DAYS) if place == DAYS else (place,):
            memories += _memories(folder, name, notes)
    return notes.result(path, "an OpenClaw workspace", memories)


def _memories(folder: Path, name: str, notes: Notes) -> Iterator[ForeignMemory]:
    note = read_note(folder, name, notes)
    if note is None:
        return
    front, lines = note
    day = None
    written = None if name in LONG_TERM else DAY.fullmatch(name.rpartition("/")[2])
    if written:
        try:
            day = datetime.fromisoformat(written[1]).replace(tzinfo=UTC)
        except ValueError:
            notes.tell(name, f"is named after {written[1]}, which is not a date; its entries have none")
    tier: Tier | Literal[""] = "long" if name in LONG_TERM else "short" if day else ""
    for item in items_of(lines):
        where = f"{name}:{item.line}"
        content = notes.text(_without_comments(item.text).strip(), where, "the entry")
        if not content:
            notes.tell(where, "is a comment and was skipped")
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


def _without_comments(text: str) -> str:
    """Return a text without its HTML comments; one that nothing closes is text."""
    parts = text.split("<!--")
    for at in range(1, len(parts)):
        _, closing, rest = parts[at].partition("-->")
        if not closing:
            return "".join(parts[:at]) + "<!--" + "<!--".join(parts[at:])
        parts[at] = rest
    return "".join(parts)
