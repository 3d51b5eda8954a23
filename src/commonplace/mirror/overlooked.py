"""What is missing from a page though nobody meant it to go. It changes nothing.

An editor that was open for a while has not seen what came to its page meanwhile. A save does not tell when its editor
read the page; a note without its id tells that it was before that id was written, an entry that came to the page later
than all that are on it, that it may well have been before. And a page may be damaged: by a full disk, by an editor that
was killed, by another file in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from commonplace.formats.journal import split_lines
from commonplace.formats.journal_entry import Entry, render_entry
from commonplace.formats.journal_marks import id_in
from commonplace.mirror.agreement import Agreement, content_of, text_digest
from commonplace.mirror.folder import NUL
from commonplace.mirror.projection import entry_of, heading_and_text, kind_of, title_of

if TYPE_CHECKING:
    from commonplace.mirror.situation import Found, Seen, Situation
    from commonplace.types import StoredMemory

MANY: Final = 5
"""A person removes fewer entries between two looks at a page; so many, if they are `MANY_SHARE` of it, are doubted."""
MANY_SHARE: Final = 1 / 4

_TELLING: Final = len("### 2026-11-21 abc")
"""Characters of an entry that nobody begins by chance at the same time."""


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


def damages(at: Situation, believed: Collection[str] = ()) -> dict[str, str]:
    """Return, by page, why what stands there cannot be what a person meant: a clause that continues its name.

    Args:
        believed: pages of which a person has said that what is missing was meant to go.
    """
    again = known_again(at)
    put_back = overlooked(at, again, read_before(at, again))
    found: dict[str, str] = {}
    for name in sorted(at.changed_pages()):
        seen = at.seen[name]
        if NUL in seen.file.text:
            found[name] = "holds NUL characters, as a damaged file does"
        elif name not in believed and not seen.is_lost:
            missing = at.own(name) - at.blocks.keys() - again.keys()
            if missing and (why := _doubt(at, seen, missing, missing - put_back)):
                found[name] = why
    return found


def _doubt(at: Situation, seen: Seen, missing: Collection[str], gone: Collection[str]) -> str:
    """Return why nobody can have removed these entries from a page, "" where somebody may have.

    Args:
        missing: ids of those that are not there; `gone` without those that may have come while an editor was open.
    """
    name, text = seen.file.name, seen.file.text
    # One entry that lacks nothing but its comment may have lost that by a person's hand.
    is_cut = len(missing) > 1 or not text.endswith(("\n", "\r"))
    if any(_is_torn(at, seen, id_, was_seen=id_ in gone, may_be_whole=is_cut) for id_ in missing):
        return "breaks off in the middle of an entry"
    there = {id_ for id_, found in at.blocks.items() if found.page == name}
    had = len(gone) + sum(each.page == name for id_, each in at.agreed.items() if id_ in there)
    if had == 1 and gone and f"# {title_of(name)}" not in text.partition("\n")[0]:
        return "has nothing left of what stood there, not even its title"
    if len(gone) == had > 1 or (len(gone) >= MANY and len(gone) >= MANY_SHARE * had):
        return f"lacks {len(gone)} of its {had} entries at once"
    return ""


def _is_torn(at: Situation, seen: Seen, id_: str, *, was_seen: bool, may_be_whole: bool) -> bool:
    """Return whether a page ends in the middle of the entry of a memory.

    Args:
        was_seen: whoever saved the page had that entry before.
        may_be_whole: it may lack nothing but its comment.
    """
    lines = split_lines(seen.file.text)
    ends = [number for number, line in enumerate(lines, 1) if id_in(line.rstrip("\r\n"))]
    ends += [block.start_line - 1 for block in seen.page.blocks[-1:] if not ends]
    tail = "".join(line.rstrip("\r\n") + "\n" for line in lines[ends[-1] :]).strip() if ends else ""
    stored = at.memory(id_)
    if not tail or stored is None:
        return False
    kind = kind_of(seen.file.name)
    entry = entry_of(stored, kind, at.links(id_), at.own_sections())
    whole = render_entry(entry, kind)
    if tail.startswith(render_entry(replace(entry, id=""), kind).strip()) and not may_be_whole:
        return False
    # Of one that nobody has seen there, a heading's time may be the beginning of a person's own note.
    return whole.startswith(tail) and (was_seen or len(tail) > _TELLING)


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
