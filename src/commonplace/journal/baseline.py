"""The baseline of a three-way comparison: what page and store held of a memory at the last sync.

Both sides are compared by meaning: an absolute minute instead of a wall time, a category instead of a section. So
neither a change of timezone nor a memory's move to another page counts as an edit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final

from commonplace.dataclasses import astuple, dataclass, replace
from commonplace.formats.journal import Entry, category_of, section_of, topic_of
from commonplace.formats.journal_edit import Verdict, digest, merge
from commonplace.journal.pages import heading_and_text, joined, kind_of, local, minute_of, resolved, said_when
from commonplace.text.hashes import sha256
from commonplace.types import StoredMemory

_FORM: Final = 3
"""Version of the stored form."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a block came to stand on its page, and what of it people have had before their eyes. Seconds since the epoch.

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

    def as_seen(self) -> Standing:
        """Return it as it is once a person has saved the page with all that the store wrote there."""
        return replace(self, changed=0.0, is_seen=True)


UNSEEN: Final = Standing(is_seen=False)
"""Of a block that nobody has seen on any page."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What both sides said of one memory.

    Attributes:
        page: where its block stands; "" where it has none any more, but may come back from an editor left open.
        file, store: digests of what each side meant; they differ where a secret was replaced, or a link is by heading.
        day, minutes, section: as the page said them; None and "" are unsaid.
        heading: a digest of its heading.
        is_headed: the heading is a part of what the memory says.
        minute, category: what the store had for day, minutes and section.
        standing: how it came there.
    """

    page: str
    file: str
    store: str
    day: date | None
    minutes: int | None
    section: str
    heading: str
    is_headed: bool
    minute: int
    category: str
    standing: Standing = Standing()


def encode(agreed: Baseline) -> str:
    """Return an agreement as the store keeps it in the digest of a block."""
    _, file, store, *others = astuple(agreed)
    return json.dumps(
        [_FORM, file, "" if store == file else store, *others], default=date.isoformat, separators=(",", ":")
    )


def decode(page: str, written: str) -> Baseline | None:
    """Return the agreement that `encode` wrote, None where it did not: then nothing is known to be agreed on."""
    try:
        form, file, store, day, *others, standing = json.loads(written)
        values: list[Any] = [store or file, day and date.fromisoformat(day), *others, Standing(*standing)]
        return Baseline(page, file, *values) if form == _FORM else None
    except (ValueError, TypeError):
        return None


def meant_by_store(stored: StoredMemory, links: Sequence[str]) -> Entry:
    """Return what the store means; `links` are the ids that it is linked to."""
    record = stored.record
    minute = minute_of(stored.at)
    return Entry("", minute, "", record.content, stored.owner.tags, tuple(links), record.category)


def meant_by_file(
    entry: Entry,
    page: str,
    agreed: Baseline | None,
    stored: StoredMemory,
    own_sections: Iterable[str] = (),
) -> Entry:
    """Return what a block means.

    What it does not say is as it was agreed on, and so is what it says as it did then. Links are its own words: where
    they lead may change without an edit.

    Args:
        own_sections: a person's own sections of the long-term page.
    """
    return Entry(
        id="",
        at_minutes=_minute(entry, page, agreed, stored),
        topic="",
        text=content_of(entry, agreed, stored),
        tags=entry.tags,
        links=entry.links,
        section=_category(entry, page, agreed, stored, own_sections),
    )


def content_of(entry: Entry, agreed: Baseline | None = None, stored: StoredMemory | None = None) -> str:
    """Return what a block says: its text, and its heading as well where that is not just the beginning of the text."""
    topic, text = entry.topic, entry.text
    if not topic or topic in (text, topic_of(text)):
        return text
    if agreed is not None and agreed.heading == _sum(topic):
        return joined(topic, text) if agreed.is_headed else text
    if agreed is None and stored is not None:
        shown, below = heading_and_text(stored.record.content)
        if shown == topic and below == stored.record.content:
            return text
    return joined(topic, text)


def agree(
    entry: Entry,
    page: str,
    stored: StoredMemory,
    store_links: Sequence[str],
    *,
    said: str | None = None,
    standing: Standing,
) -> Baseline:
    """Return the agreement that a block, as it stands on a page now, and the store, as it is now, say the same.

    Args:
        said: what the block was read as; None where it was written from what the store has.
        standing: how it came there.
    """
    day, minutes = said_when(entry, page)
    agreed = Baseline(
        page=page,
        file="",
        store=digest(meant_by_store(stored, store_links)),
        day=day,
        minutes=minutes,
        section=entry.section,
        heading=_sum(entry.topic),
        is_headed=(content_of(entry, None, stored) if said is None else said) != entry.text,
        minute=minute_of(stored.at),
        category=stored.record.category,
        standing=standing,
    )
    return replace(agreed, file=digest(meant_by_file(entry, page, agreed, stored)))


def text_digest(text: str) -> str:
    """Return the digest of a text alone, as `digest` sees it: without the white space that is no edit."""
    return digest(Entry("", None, "", text))


def judge(agreed: Baseline | None, file: Entry | None, store: Entry | None) -> Verdict:
    """Return whose version holds; both as they are meant. None is a block or a live memory that is not there."""
    if agreed is None:
        return merge("", file, store)
    return merge(agreed.file, file, store, store_base=agreed.store)


def differences(file: Entry, store: Entry) -> dict[str, Any]:
    """Return what an edit changed, by the names of the store."""
    changes: dict[str, Any] = {}
    if text_digest(file.text) != text_digest(store.text):
        changes["content"] = file.text
    if set(file.tags) != set(store.tags):
        changes["tags"] = list(file.tags)
    if file.at_minutes is not None and file.at_minutes != store.at_minutes:
        changes["at"] = file.at_minutes * 60.0
    if file.section != store.section:
        changes["category"] = file.section
    return changes


def _minute(entry: Entry, page: str, agreed: Baseline | None, stored: StoredMemory) -> int:
    day, minutes = said_when(entry, page)
    if agreed is not None and day in (None, agreed.day) and minutes in (None, agreed.minutes):
        return agreed.minute
    shown = local(stored.at)
    shown_minutes = shown.hour * 60 + shown.minute
    if day in (None, shown.date()) and minutes in (None, shown_minutes):
        return minute_of(stored.at)
    return minute_of(resolved(day or shown.date(), shown_minutes if minutes is None else minutes))


def _category(
    entry: Entry, page: str, agreed: Baseline | None, stored: StoredMemory, own_sections: Iterable[str]
) -> str:
    if kind_of(page) == "day" or not entry.section or (agreed is not None and entry.section == agreed.section):
        return stored.record.category if agreed is None else agreed.category
    if section_of(stored.record.category, own_sections) == entry.section:
        return stored.record.category
    return category_of(entry.section)


def _sum(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12] if text else ""
