"""The baseline of a three-way comparison: what page and store held of a memory at the last sync.

Each side is compared with its own earlier state, so neither a change of the time zone nor a memory's move to another
page counts as an edit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final

from commonplace.dataclasses import astuple, dataclass, replace
from commonplace.formats.journal import Entry, category_of, section_of, topic_of
from commonplace.formats.journal_edit import digest
from commonplace.journal.pages import heading_and_text, kind_of, local_time, minute_of, stated_time, timestamp_of
from commonplace.types import StoredMemory

_FORMAT: Final = 4
"""Version of the stored format."""


@dataclass(frozen=True, slots=True)
class BlockHistory:
    """How a block came to its page, and whether people have seen it. Times are seconds since the epoch.

    Attributes:
        since: when the block, or the id under a person's note, was written there; 0 if a person put the block there.
        changed: when the store's text was last written there; 0 once a person has saved the page with it.
        is_seen: whether a person has saved the page with the block, or was told that it was put back.
        is_note: whether the block is a person's note that was given its id there.
    """

    since: float = 0.0
    changed: float = 0.0
    is_seen: bool = True
    is_note: bool = False


UNSEEN: Final = BlockHistory(is_seen=False)
"""Standing of a block that nobody has seen on any page."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The state of one memory on both sides at the last sync.

    Attributes:
        page: the page of its block; "" if it no longer has one, but an editor left open may bring it back.
        file, store: digests of the page's and the store's version.
        day, minutes, section: as the page stated them; None and "" mean not stated.
        minute: the store's time, in minutes since the epoch.
        history: how the block came to its page.
    """

    page: str
    file: str
    store: str
    day: date | None
    minutes: int | None
    section: str
    minute: int
    history: BlockHistory = BlockHistory()


def encode(baseline: Baseline) -> str:
    """Return a baseline as JSON, as stored in the digest of a block."""
    _, *values = astuple(baseline)
    return json.dumps([_FORMAT, *values], default=date.isoformat, separators=(",", ":"))


def decode(page: str, text: str) -> Baseline | None:
    """Return the baseline that `encode` wrote, None for anything else: then the memory has no baseline."""
    try:
        form, file, store, day, *fields, history = json.loads(text)
        values: list[Any] = [day and date.fromisoformat(day), *fields, BlockHistory(*history)]
        return Baseline(page, file, store, *values) if form == _FORMAT else None
    except (ValueError, TypeError):
        return None


def entry_in_store(stored: StoredMemory, links: Sequence[str]) -> Entry:
    """Return a stored memory as an entry, for comparison; `links` are the ids that it is linked to."""
    record = stored.record
    return Entry("", minute_of(stored.at), "", record.content, stored.owner.tags, tuple(links), record.category)


def entry_in_file(entry: Entry, page: str, baseline: Baseline | None) -> Entry:
    """Return a block as an entry, for comparison; values that it does not state are those of the baseline.

    Links are compared as written, since their targets may change without an edit.
    """
    day, minutes = stated_time(entry, page)
    section = entry.section
    if baseline is not None:
        day, minutes = baseline.day if day is None else day, baseline.minutes if minutes is None else minutes
        section = section or baseline.section
    return replace(entry, id="", day=day, at_minutes=minutes, section=section)


def content_of(entry: Entry, stored: StoredMemory | None = None) -> str:
    """Return the content of a block: its text, preceded by its heading unless that is just the beginning of the text.

    Args:
        stored: its memory; a heading that is the beginning of the memory's content was not written by a person.
    """
    topic, text = entry.topic, entry.text
    if not topic or topic in (text, topic_of(text)):
        return text
    if stored is not None and heading_and_text(stored.record.content) == (topic, stored.record.content):
        return text
    return f"{topic}\n\n{text}"


def agree(entry: Entry, page: str, stored: StoredMemory, store_links: Sequence[str], history: BlockHistory) -> Baseline:
    """Return the baseline that records a block and its memory, as they are now, as equal."""
    day, minutes = stated_time(entry, page)
    file, store = digest(entry_in_file(entry, page, None)), digest(entry_in_store(stored, store_links))
    return Baseline(page, file, store, day, minutes, entry.section, minute_of(stored.at), history)


def text_digest(text: str) -> str:
    """Return the digest of a text alone, which ignores white space that is no edit, as `digest` does."""
    return digest(Entry("", None, "", text))


def differences(
    entry: Entry, page: str, baseline: Baseline | None, stored: StoredMemory, own_sections: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the values in which a block differs from the store, by the store's field names, without links.

    A time and a section that equal the baseline's are no difference, even if this machine's time zone has changed
    since.
    """
    changes: dict[str, Any] = {}
    content = content_of(entry, stored)
    if text_digest(content) != text_digest(stored.record.content):
        changes["content"] = content
    if set(entry.tags) != set(stored.owner.tags):
        changes["tags"] = list(entry.tags)
    stated = (baseline.day, baseline.minutes, baseline.section) if baseline else (None, None, "")
    day, minutes = stated_time(entry, page)
    if not (day in (None, stated[0]) and minutes in (None, stated[1])):
        moment = local_time(stored.at)
        at = timestamp_of(day or moment.date(), moment.hour * 60 + moment.minute if minutes is None else minutes)
        if minute_of(at) != minute_of(stored.at):
            changes["at"] = minute_of(at) * 60.0
    is_sorted = kind_of(page) == "long" and entry.section not in ("", stated[2])
    if is_sorted and section_of(stored.record.category, own_sections) != entry.section:
        changes["category"] = category_of(entry.section)
    return changes
