"""What somebody cannot have seen who saves a page that an editor has had open for a while. It changes nothing.

A save does not tell when its editor read the page. A note without its id tells that it was before that id was written;
an entry that came to the page later than all that are on it, that it may well have been before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from commonplace.formats.journal_entry import Entry
from commonplace.mirror.agreement import Agreement, content_of, text_digest
from commonplace.mirror.projection import heading_and_text

if TYPE_CHECKING:
    from commonplace.mirror.situation import Found, Situation
    from commonplace.types import StoredMemory


def known_again(at: Situation) -> dict[str, Found]:
    """Return, by id, the notes that are memories already: they were given that id on their page, which is not there.

    So it is where an editor that read the page before is saved a second time.
    """
    noted = {note.page for note in at.notes}
    gone: dict[tuple[str, str], list[str]] = defaultdict(list)
    for id_, agreed in at.agreed.items():
        if agreed.page in noted and agreed.standing.is_note and id_ not in at.blocks:
            for said in {text_digest(each.record.content) for each in _versions(at, id_)}:
                gone[agreed.page, said].append(id_)
    found: dict[str, Found] = {}
    for note in at.notes if gone else ():
        same = gone.get((note.page, text_digest(content_of(without_secrets(note.entry)))), ())
        if again := next((id_ for id_ in same if id_ not in found), None):
            found[again] = note
    return found


def read_before(at: Situation, again: Mapping[str, Found]) -> dict[str, float]:
    """Return, by page, the earliest time before which whoever saved it must have read it.

    Args:
        again: what `known_again` returned.
    """
    times: dict[str, float] = {}
    for id_, note in again.items():
        times[note.page] = min(at.agreed[id_].standing.since, times.get(note.page, float("inf")))
    return times


def overlooked(at: Situation, again: Collection[str], before: Mapping[str, float]) -> set[str]:
    """Return the ids of missing blocks that whoever saved their page has most likely never seen.

    What came to a page after it was read is among them every time; where nobody knows when it was read, what no saved
    page has had yet, if it came later than all that are on the page, or than another one where there are none.

    Args:
        again: the ids of notes whose id is written back in this run.
        before: by page, when it had been read at the latest.
    """
    missing: set[str] = set()
    for page in at.changed_pages():
        standing = {id_: each.standing for id_, each in at.agreed.items() if each.page == page}
        if not standing:
            continue
        earliest = min(each.since for each in standing.values())
        there = [each.since for id_, each in standing.items() if id_ in at.blocks and id_ not in again]
        latest, read = max(there, default=earliest), before.get(page, float("inf"))
        missing |= {
            id_
            for id_, each in standing.items()
            if id_ not in at.blocks and (each.since >= read or (each.since > latest and not each.is_seen))
        }
    return missing


def outdated(at: Situation, found: Found, agreed: Agreement, read: float) -> Literal["", "words", "heading"]:
    """Return what of a block is from before the store changed it: all its words, its heading alone, or nothing.

    Args:
        read: when its page had been read at the latest.
    """
    if agreed.page != found.page or not (agreed.standing.changed or read < float("inf")):
        return ""
    *older, latest = _versions(at, found.entry.id)
    older = [each for each in older if each.record.content != latest.record.content]
    if any(_says(found.entry, each) for each in older):
        return "words"
    topic = found.entry.topic
    shown = {heading_and_text(each.record.content)[0] for each in older} - {at.heading(found.entry.id)}
    return "heading" if topic in shown - {""} or agreed.standing.changed >= read else ""


def without_secrets(entry: Entry) -> Entry:
    """Return an entry as the store would have it."""
    from commonplace.redaction import redact

    return replace(entry, text=redact(entry.text).text, tags=tuple(redact(tag).text for tag in entry.tags))


def _says(entry: Entry, version: StoredMemory) -> bool:
    return set(entry.tags) == set(version.owner.tags) and (
        text_digest(content_of(entry, None, version)) == text_digest(version.record.content)
    )


def _versions(at: Situation, id_: str) -> list[StoredMemory]:
    return list(at.ground.store.versions(at.ground.namespace, id_))
