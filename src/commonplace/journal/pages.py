"""Map memories to pages: page, date, time and heading; read pages by name.

Pages are for people, so days and times are those of this machine's time zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import moment_of
from commonplace.errors import StoreError
from commonplace.formats.journal import Entry, PageKind, parse_page, section_of, topic_of
from commonplace.journal.folder import Folder, Stamp
from commonplace.settings.paths import LONG_TERM_PAGE, day_of, page_name
from commonplace.store.store import Store
from commonplace.types import StoredMemory

_GAP = "\n\n"


def kind_of(page: str) -> PageKind:
    """Return what kind of page has this name."""
    return "long" if page == LONG_TERM_PAGE else "day"


def title_of(page: str) -> str:
    """Return the title that a new page of this name gets."""
    return "Memory" if page == LONG_TERM_PAGE else page.removesuffix(".md")


def local(at: float) -> datetime:
    """Return seconds since the epoch as a moment of this machine's time zone."""
    moment = moment_of(at)
    try:
        return moment.astimezone()
    except (OverflowError, ValueError):  # the first and the last day there is, east or west of Greenwich
        return moment


def resolved(day: date, minutes: int) -> float:
    """Return the seconds since the epoch of a wall time of this machine's time zone."""
    wall = datetime(day.year, day.month, day.day, minutes // 60, minutes % 60, tzinfo=UTC)
    try:
        return wall.replace(tzinfo=None).timestamp()
    except (OverflowError, ValueError, OSError):
        return wall.timestamp()


def minute_of(at: float) -> int:
    """Return the minutes since the epoch: what a page says of a time, wherever it is read."""
    return math.floor(local(at).timestamp() / 60)


def day_page(at: float) -> str:
    """Return the name of the page of a time's day."""
    return page_name(local(at).date())


def said_when(entry: Entry, page: str) -> tuple[date | None, int | None]:
    """Return day and minutes as a page says them; None is what it does not say."""
    return (entry.day, None) if kind_of(page) == "long" else (day_of(page), entry.at_minutes)


def heading_and_text(content: str) -> tuple[str, str]:
    """Return the words for the heading, and the text below: a first line that is all of the heading is not repeated."""
    topic = topic_of(content)
    if topic and content.startswith(topic + _GAP):
        rest = content[len(topic) + len(_GAP) :]
        if rest.strip() and topic_of(rest) != topic:
            return topic, rest
    return topic, content


def entry_of(stored: StoredMemory, kind: PageKind, links: Iterable[str], own_sections: Iterable[str] = ()) -> Entry:
    """Return a memory as a page has it, with these links; see `section_of` for a person's own sections."""
    topic, text = heading_and_text(stored.record.content)
    when = local(stored.at)
    is_long = kind == "long"
    return Entry(
        id=stored.owner.id,
        at_minutes=None if is_long else when.hour * 60 + when.minute,
        topic=topic,
        text=text,
        tags=tuple(tag for tag in stored.owner.tags if tag.strip()),
        links=tuple(link for link in links if link.strip()),
        section=section_of(stored.record.category, own_sections) if is_long else "",
        day=when.date() if is_long else None,
    )


_MAX_BYTES: Final = 512 * 1024
"""Of a page in which memories are looked for: reading a larger one takes longer than a search."""
_PAGES_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where a memory is on Markdown pages: a page and its lines, from 1, inclusive."""

    path: str
    first_line: int
    last_line: int


class PageReader:
    """Reads the pages of one namespace. Safe for threads."""

    def __init__(self, directory: Path, namespace: str, store: Store) -> None:
        self._folder = Folder(directory, namespace)
        self._namespace = namespace
        self._store = store
        self._standing = lru_cache(_PAGES_KEPT)(self._read)

    def names(self) -> list[str]:
        """Return the names of the pages relative to the store: the long-term page, then days, the newest first."""
        if self._folder.fault():
            return []
        found = sorted(self._stamps(), key=lambda name: (name == LONG_TERM_PAGE, name), reverse=True)
        return [self._folder.shown(name) for name in found]

    def text(self, path: str) -> str | None:
        """Return the text of a page, None where there is no page of that name.

        Raises:
            StoreError: the page cannot be read.
        """
        if path not in self.names():
            return None
        file = self._folder.read(Path(path).name)
        if file.problem:
            raise StoreError(f"{path} {file.problem}", remedy="make it a file of UTF-8 text again")
        return file.text.removeprefix("\ufeff")

    def places(self, ids: Iterable[str]) -> dict[str, PagePlace]:
        """Return where memories are on pages; those that are on none, or on a very large one, are absent."""
        wanted = set(ids)
        if not wanted or self._folder.fault():
            return {}
        pages = {block.id: block.page for block in self._store.blocks(self._namespace, sorted(wanted))}
        stamps = self._stamps()
        found: dict[str, PagePlace] = {}
        for page in set(pages.values()) & stamps.keys():
            standing = self._standing(page, stamps[page])
            found.update({id_: place for id_, place in standing.items() if id_ in wanted})
        return found

    def memory_at(self, path: str, line: int) -> str | None:
        """Return the id of the memory at a line of a page; None where none is, or there is no page."""
        if path not in self.names():
            return None
        page = Path(path).name
        stamp = self._stamps().get(page)
        standing = self._standing(page, stamp) if stamp is not None else {}
        return next((id_ for id_, place in standing.items() if place.first_line <= line <= place.last_line), None)

    def _stamps(self) -> dict[str, Stamp]:
        """Return what pages there are; what cannot be read is reported by the journal, and holds none here."""
        try:
            return self._folder.stamps()
        except OSError:
            return {}

    def _read(self, page: str, _: Stamp) -> dict[str, PagePlace]:
        """Return where the memories of a page are; its stamp distinguishes one state of it from another."""
        file = self._folder.read(page)
        blocks = parse_page(file.text, kind_of(page)).blocks if len(file.data or b"") <= _MAX_BYTES else ()
        shown = self._folder.shown(page)
        return {block.entry.id: PagePlace(shown, block.start_line, block.end_line) for block in blocks}
