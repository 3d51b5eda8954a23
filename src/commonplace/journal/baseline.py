"""The baseline of a three-way comparison: what page and store held of a memory at the last sync.

Each side is compared with what it said itself. So neither a change of the time zone nor a memory's move to another page
counts as an edit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final

from commonplace.dataclasses import astuple, dataclass, replace
from commonplace.formats.journal import Entry, category_of, section_of, topic_of
from commonplace.formats.journal_edit import digest
from commonplace.journal.pages import heading_and_text, kind_of, local, minute_of, resolved, said_when
from commonplace.types import StoredMemory

_FORM: Final = 4
"""Version of the stored form."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a block came to its page, and what of it people have seen. Seconds since the epoch.

    Attributes:
        since: when it, or the id under a person's note, was written there; 0 where a person put it there.
        changed: when words of the store's own were last written there; 0 where a person has saved the page with them.
        is_seen: a person has saved the page with it, or was told that it was put back.
        is_note: it is a person's note that was given its id there.
    """

    since: float = 0.0
    changed: float = 0.0
    is_seen: bool = True
    is_note: bool = False


UNSEEN: Final = Standing(is_seen=False)
"""Of a block that nobody has seen on any page."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What both sides said of one memory.

    Attributes:
        page: where its block is; "" where it has none any more, but may come back from an editor left open.
        file, store: digests of what each side said.
        day, minutes, section: as the page said them; None and "" are unsaid.
        minute: what the store had for day and minutes.
        standing: how it came there.
    """

    page: str
    file: str
    store: str
    day: date | None
    minutes: int | None
    section: str
    minute: int
    standing: Standing = Standing()


def encode(agreed: Baseline) -> str:
    """Return an agreement as the store keeps it in the digest of a block."""
    _, *others = astuple(agreed)
    return json.dumps([_FORM, *others], default=date.isoformat, separators=(",", ":"))


def decode(page: str, written: str) -> Baseline | None:
    """Return the agreement that `encode` wrote, None where it did not: then nothing is known to be agreed on."""
    try:
        form, file, store, day, *others, standing = json.loads(written)
        values: list[Any] = [day and date.fromisoformat(day), *others, Standing(*standing)]
        return Baseline(page, file, store, *values) if form == _FORM else None
    except (ValueError, TypeError):
        return None


def meant_by_store(stored: StoredMemory, links: Sequence[str]) -> Entry:
    """Return what the store means; `links` are the ids that it is linked to."""
    record = stored.record
    return Entry("", minute_of(stored.at), "", record.content, stored.owner.tags, tuple(links), record.category)


def said_by_file(entry: Entry, page: str, agreed: Baseline | None) -> Entry:
    """Return what a block says; what it does not say is as it was agreed on.

    Links are its own words: where they lead may change without an edit.
    """
    day, minutes = said_when(entry, page)
    section = entry.section
    if agreed is not None:
        day, minutes = agreed.day if day is None else day, agreed.minutes if minutes is None else minutes
        section = section or agreed.section
    return replace(entry, id="", day=day, at_minutes=minutes, section=section)


def content_of(entry: Entry, stored: StoredMemory | None = None) -> str:
    """Return what a block says: its text, and its heading as well where that is not just the beginning of the text.

    Args:
        stored: its memory; a heading that is the beginning of what this says was not written by a person.
    """
    topic, text = entry.topic, entry.text
    if not topic or topic in (text, topic_of(text)):
        return text
    if stored is not None and heading_and_text(stored.record.content) == (topic, stored.record.content):
        return text
    return f"{topic}\n\n{text}"


def agree(entry: Entry, page: str, stored: StoredMemory, store_links: Sequence[str], standing: Standing) -> Baseline:
    """Return the agreement that a block, as it is on a page now, and the store, as it is now, say the same."""
    day, minutes = said_when(entry, page)
    file, store = digest(said_by_file(entry, page, None)), digest(meant_by_store(stored, store_links))
    return Baseline(page, file, store, day, minutes, entry.section, minute_of(stored.at), standing)


def text_digest(text: str) -> str:
    """Return the digest of a text alone, as `digest` sees it: without the white space that is no edit."""
    return digest(Entry("", None, "", text))


def differences(
    entry: Entry, page: str, agreed: Baseline | None, stored: StoredMemory, own_sections: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what a block says otherwise than the store, by the names of the store; links are left out.

    A time and a section that are still as they were agreed on are no difference, though this machine may have gone to
    another time zone since.
    """
    changes: dict[str, Any] = {}
    content = content_of(entry, stored)
    if text_digest(content) != text_digest(stored.record.content):
        changes["content"] = content
    if set(entry.tags) != set(stored.owner.tags):
        changes["tags"] = list(entry.tags)
    known = (agreed.day, agreed.minutes, agreed.section) if agreed else (None, None, "")
    day, minutes = said_when(entry, page)
    if not (day in (None, known[0]) and minutes in (None, known[1])):
        shown = local(stored.at)
        at = resolved(day or shown.date(), shown.hour * 60 + shown.minute if minutes is None else minutes)
        if minute_of(at) != minute_of(stored.at):
            changes["at"] = minute_of(at) * 60.0
    is_sorted = kind_of(page) == "long" and entry.section not in ("", known[2])
    if is_sorted and section_of(stored.record.category, own_sections) != entry.section:
        changes["category"] = category_of(entry.section)
    return changes
