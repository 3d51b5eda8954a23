"""Map memories to pages (page, date, time and heading), and read pages by name.

Pages are for people, so days and times are in this machine's time zone.
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

_BLANK_LINE = "\n\n"


def kind_of(page: str) -> PageKind:
    """Return the kind of the page with this name."""
    return "long" if page == LONG_TERM_PAGE else "day"


def title_of(page: str) -> str:
    """Return the title of a new page with this name."""
    return "Memory" if page == LONG_TERM_PAGE else page.removesuffix(".md")


def local_time(at: float) -> datetime:
    """Return seconds since the epoch as a time in this machine's time zone."""
    moment = moment_of(at)
    try:
        return moment.astimezone()
    except (OverflowError, ValueError):  # out of range: the first or the last representable day, shifted by the zone
        return moment


def timestamp_of(day: date, minutes: int) -> float:
    """Return the seconds since the epoch of a wall time in this machine's time zone."""
    wall_time = datetime(day.year, day.month, day.day, minutes // 60, minutes % 60, tzinfo=UTC)
    try:
        return wall_time.replace(tzinfo=None).timestamp()
    except (OverflowError, ValueError, OSError):
        return wall_time.timestamp()


def minute_of(at: float) -> int:
    """Return the minutes since the epoch: the precision that a page has, independent of the time zone."""
    return math.floor(local_time(at).timestamp() / 60)


def day_page(at: float) -> str:
    """Return the name of the page for the day of a time."""
    return page_name(local_time(at).date())


def stated_time(entry: Entry, page: str) -> tuple[date | None, int | None]:
    """Return an entry's day and minutes as its page states them; None if the page does not."""
    return (entry.day, None) if kind_of(page) == "long" else (day_of(page), entry.at_minutes)


def heading_and_text(content: str) -> tuple[str, str]:
    """Return the heading and the text below it; a first paragraph that equals the heading is not repeated."""
    topic = topic_of(content)
    if topic and content.startswith(topic + _BLANK_LINE):
        remainder = content[len(topic) + len(_BLANK_LINE) :]
        if remainder.strip() and topic_of(remainder) != topic:
            return topic, remainder
    return topic, content


def entry_of(stored: StoredMemory, kind: PageKind, links: Iterable[str], own_sections: Iterable[str] = ()) -> Entry:
    """Return a memory as a page entry with these links; see `section_of` for a person's own sections."""
    topic, text = heading_and_text(stored.record.content)
    moment = local_time(stored.at)
    is_long = kind == "long"
    return Entry(
        id=stored.owner.id,
        at_minutes=None if is_long else moment.hour * 60 + moment.minute,
        topic=topic,
        text=text,
        tags=tuple(tag for tag in stored.owner.tags if tag.strip()),
        links=tuple(link for link in links if link.strip()),
        section=section_of(stored.record.category, own_sections) if is_long else "",
        day=moment.date() if is_long else None,
    )


_MAX_BYTES: Final = 512 * 1024
"""Largest page in which memories are located: reading a larger one takes longer than a search."""
_MAX_CACHED_PAGES: Final = 64


@dataclass(frozen=True, slots=True)
class PagePlace:
    """The location of a memory: a Markdown page and its lines, from 1, inclusive."""

    path: str
    first_line: int
    last_line: int


class PageReader:
    """Reads the pages of one namespace. Thread-safe."""

    def __init__(self, directory: Path, namespace: str, store: Store) -> None:
        self._folder = Folder(directory, namespace)
        self._namespace = namespace
        self._store = store
        self._cached_places = lru_cache(_MAX_CACHED_PAGES)(self._read)

    def names(self) -> list[str]:
        """Return the page names relative to the store: the long-term page, then the days, newest first."""
        if self._folder.fault():
            return []
        pages = sorted(self._stamps(), key=lambda name: (name == LONG_TERM_PAGE, name), reverse=True)
        return [self._folder.page_path(name) for name in pages]

    def text(self, path: str) -> str | None:
        """Return the text of a page, None if there is no page of that name.

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
        """Return the locations of memories by id; memories that are on no page, or on a very large one, are absent."""
        id_set = set(ids)
        if not id_set or self._folder.fault():
            return {}
        pages = {block.id: block.page for block in self._store.blocks(self._namespace, sorted(id_set))}
        stamps = self._stamps()
        result: dict[str, PagePlace] = {}
        for page in set(pages.values()) & stamps.keys():
            on_page = self._cached_places(page, stamps[page])
            result.update({id_: place for id_, place in on_page.items() if id_ in id_set})
        return result

    def memory_at(self, path: str, line: int) -> str | None:
        """Return the id of the memory at a line of a page; None if there is no memory there, or no such page."""
        if path not in self.names():
            return None
        page = Path(path).name
        stamp = self._stamps().get(page)
        on_page = self._cached_places(page, stamp) if stamp is not None else {}
        return next((id_ for id_, place in on_page.items() if place.first_line <= line <= place.last_line), None)

    def _stamps(self) -> dict[str, Stamp]:
        """Return the pages with their stamps; empty if the folder cannot be read, which the journal reports."""
        try:
            return self._folder.stamps()
        except OSError:
            return {}

    def _read(self, page: str, _: Stamp) -> dict[str, PagePlace]:
        """Return the locations of a page's memories; the stamp is only a key of the cache."""
        file = self._folder.read(page)
        blocks = parse_page(file.text, kind_of(page)).blocks if len(file.data or b"") <= _MAX_BYTES else ()
        shown = self._folder.page_path(page)
        return {block.entry.id: PagePlace(shown, block.start_line, block.end_line) for block in blocks}
