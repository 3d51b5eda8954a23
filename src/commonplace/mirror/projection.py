"""How a memory stands on a page: which page, which time of the day, which words are its heading. It reads nothing.

Pages are for people, so days and times are those of this machine's time zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from commonplace.formats.journal import LONG_TERM_PAGE, day_of, page_name
from commonplace.formats.journal_entry import Entry, PageKind, topic_of
from commonplace.formats.long_term import section_of
from commonplace.times import moment_of

if TYPE_CHECKING:
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


def time_of(stored: StoredMemory) -> float:
    """Return when it happened, or else when it was stored."""
    return stored.record.born_at if stored.owner.at is None else stored.owner.at


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


def joined(topic: str, text: str) -> str:
    """Return the content of a memory whose heading is a part of what it says."""
    return f"{topic}{_GAP}{text}"


def entry_of(stored: StoredMemory, kind: PageKind, links: Iterable[str], own_sections: Iterable[str] = ()) -> Entry:
    """Return a memory as it stands on a page.

    Args:
        links: as the page is to write them.
        own_sections: the names of a person's own sections of the long-term page.
    """
    topic, text = heading_and_text(stored.record.content)
    when = local(time_of(stored))
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
