"""Read the state of a sync: pages, baselines and memories, and match blocks to memories.

An editor that was open for a while has not seen later additions to its page, and its save would drop them. A note
without its id shows that the editor read the page before the id was written; so does a missing entry newer than all
others. A page may also be damaged: by a full disk, a killed editor, or another file in its place.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Final, Literal

from commonplace.dataclasses import dataclass, replace
from commonplace.formats.journal import (
    SECTIONS,
    Entry,
    Page,
    conflict_line,
    id_in,
    parse_page,
    render_entry,
    split_lines,
)
from commonplace.journal.baseline import Baseline, content_of, decode, text_digest
from commonplace.journal.folder import NUL, Folder, PageFile, Stamp
from commonplace.journal.pages import day_page, entry_of, heading_and_text, kind_of, minute_of, title_of
from commonplace.journal.sync import JournalRuntime, Tally
from commonplace.redaction import redact
from commonplace.settings.paths import LONG_TERM_PAGE
from commonplace.types import Selection, StoredMemory

RECEIPT: Final = "receipt"
"""The kind of the notes that name what was forgotten."""

QUIET_NS: Final = 200_000_000
"""A page that was saved less than this long ago may still be being written."""

_FEW: Final = 200
"""So many memories are read one by one; more in one go, which looks at every memory there is."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A page in a run.

    Attributes:
        is_news: somebody else has changed it since it was last read or written.
        is_lost: it is gone, or empty, although it had blocks, or it had several and has none: that is an accident.
        damage: why nothing on it is believed, a clause that continues its name; "" where it is.
    """

    file: PageFile
    page: Page
    is_news: bool
    is_lost: bool
    damage: str = ""

    @property
    def text(self) -> str:
        """What the page is written on: its text, of a damaged one only what stands before the first block."""
        return self.page.preamble if self.damage else self.file.text


@dataclass(frozen=True, slots=True)
class Found:
    """A block on a page; `index` is its place among the page's blocks."""

    page: str
    index: int
    entry: Entry


class Snapshot:
    """One run's view of pages and store; pages and memories are read once, when they are first asked for.

    Attributes:
        known, agreed, due: what the store knows of pages, of blocks, and of memories whose Markdown is due.
        news: the pages whose stamp is another than the store knows; `gone` are no longer there.
        seen: the pages that were read; `changed` had other bytes than the store knows.
        left: pages that cannot be read, or not yet, and are left alone.
        unsure: pages on which something waits for another page that is left alone; they are read again.
        blocks: whose block is where.
        notes: blocks that are no memory's: without an id, with an unknown one, or copies of another block.
        again: by id, the notes that are memories already: they were given that id on their page, which is not there.
        read_before: by page, the earliest time before which whoever saved it must have read it.
        tally: of what is done.
    """

    def __init__(self, runtime: JournalRuntime, folder: Folder, tally: Tally, believed: Collection[str] = ()) -> None:
        self.runtime = runtime
        self.folder = folder
        self.tally = tally
        self._believed = believed
        store, space = runtime.store, runtime.namespace
        self.due = store.due(space)
        self.known = {page.page: page for page in store.pages(space)}
        self.stamps: dict[str, Stamp] = folder.stamps()
        self.news = {
            name
            for name, stamp in self.stamps.items()
            if name not in self.known or stamp != (self.known[name].size, self.known[name].mtime_ns)
        }
        self.gone = self.known.keys() - self.stamps.keys()
        self.agreed: dict[str, Baseline] = {}
        self.seen: dict[str, Seen] = {}
        self.left: set[str] = set()
        self.unsure: set[str] = set()
        self.blocks: dict[str, Found] = {}
        self.notes: list[Found] = []
        self.again: dict[str, Found] = {}
        self.read_before: dict[str, float] = {}
        self.changed: set[str] = set()
        self._memories: dict[str, StoredMemory | None] = {}
        self._links: dict[str, tuple[str, ...]] = {}

    def look(self, wall_ns: int | None) -> None:
        """Read the pages that have to do with what is new on either side, and find out whose block is where.

        Args:
            wall_ns: the time; pages that were saved just before it are left for later. None reads every page, and takes
                none for unchanged.
        """
        for block in self.runtime.store.blocks(self.runtime.namespace):
            agreed = decode(block.page, block.digest)
            if agreed is not None:
                self.agreed[block.id] = agreed
        self.load(self.due)
        pages = set(self.stamps if wall_ns is None else self.news)
        pages |= self.gone
        for id_ in self.due:
            stored, agreed = self._memories[id_], self.agreed.get(id_)
            pages.add(agreed.page if agreed else "")
            pages.add(self.likely_page(stored, agreed))
        for name in sorted(pages - {""}):
            is_fresh = wall_ns is not None and name in self.news and 0 <= wall_ns - self.stamps[name][1] < QUIET_NS
            if is_fresh:
                self.left.add(name)
            else:
                self._read(name, thorough=wall_ns is None)
        self._find()
        self._distrust()

    def page(self, name: str) -> Seen | None:
        """Return a page, None for one that is left alone."""
        if name not in self.seen and name not in self.left:
            self._read(name, thorough=False)
            if name in self.seen and self.seen[name].is_news:
                self.unsure.add(name)  # nobody has looked at what is new on it
        return self.seen.get(name)

    def reread(self, file: PageFile) -> Seen:
        """Take in a page as it was just written; blocks and notes on it are those that stand there now."""
        before = self.seen[file.name]
        seen = self.seen[file.name] = Seen(file, _parsed(file), before.is_news, before.is_lost)
        return seen

    def load(self, ids: Iterable[str]) -> None:
        """Read memories, and their links, that were not read yet."""
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._memories]
        self._memories.update(dict.fromkeys(missing))
        self._memories.update(read_memories(self.runtime, missing))
        self._links.update(dict.fromkeys(missing, ()))
        self._links.update(read_links(self.runtime, missing))

    def reload(self, ids: Iterable[str]) -> None:
        """Read memories and links again."""
        listed = list(ids)
        for id_ in listed:
            self._memories.pop(id_, None)
        self.load(listed)

    def memory(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        self.load([id_])
        return self._memories[id_]

    def links(self, id_: str) -> tuple[str, ...]:
        """Return the ids that a memory is linked to, sorted."""
        self.load([id_])
        return self._links.get(id_, ())

    def heading(self, id_: str) -> str:
        """Return the heading that a memory has on a page, "" for one that is not there."""
        stored = self.memory(id_)
        return "" if stored is None else heading_and_text(stored.record.content)[0]

    def own_sections(self) -> tuple[str, ...]:
        """Return the names of the sections of the long-term page that are not ours."""
        seen = self.seen.get(LONG_TERM_PAGE)
        return tuple(section.name for section in seen.page.sections if section.name not in SECTIONS) if seen else ()

    def likely_page(self, stored: StoredMemory | None, agreed: Baseline | None) -> str:
        """Return the page that a memory belongs on, "" for none; whether the long-term page has room is not asked.

        It stays on the page of a day where it was put, wherever this machine has gone since.
        """
        if stored is None or stored.expired_at is not None:
            return ""
        if stored.record.tier == "long":
            return LONG_TERM_PAGE
        if stored.record.tier != "short":
            return ""
        at = stored.at
        stays = agreed is not None and agreed.page not in ("", LONG_TERM_PAGE) and agreed.minute == minute_of(at)
        return agreed.page if stays and agreed is not None else day_page(at)

    def own(self, name: str) -> set[str]:
        """Return the ids of the live memories that page and store agreed to have on a page, and that belong there."""
        agreed = {id_: each for id_, each in self.agreed.items() if each.page == name}
        self.load(agreed)
        return {id_ for id_, each in agreed.items() if self.likely_page(self._memories[id_], each) == name}

    def forgotten(self) -> set[str]:
        """Return the ids that receipts name: what has them must not come back."""
        store, space = self.runtime.store, self.runtime.namespace
        ids: set[str] = set()
        for note in store.notes(None, RECEIPT):
            body = json.loads(note.body)
            if body.get("namespace") == space:
                ids.update(body.get("ids", ()))
        return ids

    def notice(self, page: str, words: str) -> None:
        """Tell people something of a page, words that continue its name."""
        self.tally.notice(f"{self.folder.shown(page)} {words}")

    def _read(self, name: str, *, thorough: bool) -> None:
        file, known = self.folder.read(name), self.known.get(name)
        problem = file.problem
        if line := conflict_line(file.text):
            # Both sides have the same ids: taken in, one would be new notes, and the marks a part of the other.
            problem = f"has an unresolved merge conflict at line {line}"
        if problem:
            self.left.add(name)
            self.notice(name, f"{problem}; it was left as it is")
            return
        is_news = known is not None if file.data is None else known is None or thorough or file.sum != known.sha256
        page = _parsed(file)
        had = sum(agreed.page == name for agreed in self.agreed.values())
        is_blank = file.data is None or (is_news and not file.text.strip("\ufeff \t\r\n"))
        is_lost = (known is not None and had > 0 and is_blank) or (is_news and not page.blocks and had > 1)
        self.seen[name] = Seen(file, page, is_news, is_lost)
        if file.data is not None and (known is None or file.sum != known.sha256):
            self.changed.add(name)

    def _distrust(self) -> None:
        """Let no page be believed on which so much is missing, or torn, that nobody can have meant it."""

        found = _damages(self, self._believed)
        for name, why in found.items():
            seen = self.seen[name]
            if not self.own(name):
                # There is nothing that could be written again in the place of what stands there.
                del self.seen[name]
                self.changed.discard(name)
                self.left.add(name)
                self.notice(name, f"{why}; it was left as it is")
                continue
            preamble = "" if NUL in seen.page.preamble else seen.page.preamble
            self.seen[name] = Seen(seen.file, Page(preamble, ()), seen.is_news, is_lost=True, damage=why)
        if found:
            self.blocks, self.notes = {}, []
            self._find()

    def _find(self) -> None:
        everywhere: dict[str, list[Found]] = defaultdict(list)
        for name, seen in sorted(self.seen.items()):
            for index, block in enumerate(seen.page.blocks):
                found = Found(name, index, block.entry)
                if block.entry.id:
                    everywhere[block.entry.id].append(found)
                elif seen.is_news and block.entry.text.strip():
                    self.notes.append(found)
        self.load(everywhere)
        for id_, places in everywhere.items():
            self._assign(id_, places)
        self.notes.sort(key=lambda found: (found.page, found.index))
        self.again = _known_again(self)
        self.read_before = {}
        for id_, note in self.again.items():
            read = self.read_before.get(note.page, inf)
            self.read_before[note.page] = min(self.agreed[id_].standing.since, read)

    def _assign(self, id_: str, places: Sequence[Found]) -> None:
        """Tell a memory's own block from copies of it: the one at home, else the first."""
        agreed = self.agreed.get(id_)
        home = agreed.page if agreed else ""
        own = next((found for found in places if found.page == home), None)
        if own is None and home in self.stamps and home not in self.seen:
            # Its page is as it was, and has it; or nobody can tell what it has, and the others wait.
            is_unknown = home in self.left
            self.unsure.update(found.page for found in places if is_unknown)
            copies = [] if is_unknown else list(places)
        else:
            own = own or places[0]
            copies = [found for found in places if found is not own and not self._is_half_moved(id_, found, agreed)]
            self.blocks[id_] = own
        self.notes += [found for found in copies if self.seen[found.page].is_news]

    def _is_half_moved(self, id_: str, found: Found, agreed: Baseline | None) -> bool:
        """Return whether a run that was killed may have written a block where it goes, and not removed the other."""
        stored = self._memories[id_]
        if stored is None or found.page != self.likely_page(stored, agreed):
            return False
        said = text_digest(content_of(found.entry, stored))
        versions = self.runtime.store.versions(self.runtime.namespace, id_)
        return any(said == text_digest(version.record.content) for version in versions)


def read_memories(runtime: JournalRuntime, ids: Sequence[str]) -> dict[str, StoredMemory]:
    """Return the latest versions of memories as they are now; those that are not there are absent."""
    store, space = runtime.store, runtime.namespace
    if len(ids) <= _FEW:
        return {id_: stored for id_ in ids if (stored := store.memory(space, id_)) is not None}
    return {stored.owner.id: stored for stored in store.memories(space, Selection(ids=tuple(ids), order="id"))}


def read_links(runtime: JournalRuntime, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids that memories are linked to, sorted; memories without links are absent."""
    targets: dict[str, set[str]] = defaultdict(set)
    wanted = set(ids)
    for link in runtime.store.links(runtime.namespace, ids) if ids else ():
        if link.source in wanted:
            targets[link.source].add(link.target)
    return {source: tuple(sorted(found)) for source, found in targets.items()}


def _parsed(file: PageFile) -> Page:
    return parse_page(file.text, kind_of(file.name))


MANY: Final = 5
"""A person removes fewer entries between two looks at a page; so many, if they are `MANY_SHARE` of it, are doubted."""
MANY_SHARE: Final = 1 / 4


def _known_again(at: Snapshot) -> dict[str, Found]:
    """Find what an editor that read the page before its notes got their ids has saved a second time."""
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


def missing_memories(at: Snapshot) -> set[str]:
    """Return the ids of missing blocks that whoever saved their page has most likely never seen.

    What came to a page after it was read is among them every time; where nobody knows when it was read, what no saved
    page has had yet, if it came later than all that are on the page, or than another one where there are none.
    """
    missing: set[str] = set()
    for page in at.changed:
        standing = {id_: each.standing for id_, each in at.agreed.items() if each.page == page}
        if not standing:
            continue
        earliest = min(each.since for each in standing.values())
        there = [each.since for id_, each in standing.items() if id_ in at.blocks and id_ not in at.again]
        latest, read = max(there, default=earliest), at.read_before.get(page, inf)
        missing |= {
            id_
            for id_, each in standing.items()
            if id_ not in at.blocks and (each.since >= read or (each.since > latest and not each.is_seen))
        }
    return missing


def _damages(at: Snapshot, believed: Collection[str]) -> dict[str, str]:
    """Return, by page, why what stands there cannot be what a person meant: a clause that continues its name."""
    put_back = missing_memories(at)
    found: dict[str, str] = {}
    for name in sorted(at.changed):
        seen = at.seen[name]
        if NUL in seen.file.text:
            found[name] = "holds NUL characters, as a damaged file does"
        elif name not in believed and not seen.is_lost:
            missing = at.own(name) - at.blocks.keys() - at.again.keys()
            if missing and (why := _doubt(at, seen, missing, missing - put_back)):
                found[name] = why
    return found


def _doubt(at: Snapshot, seen: Seen, missing: Collection[str], gone: Collection[str]) -> str:
    """Return why nobody can have removed these entries from a page, "" where somebody may have.

    Args:
        missing: ids of those that are not there; `gone` without those that may have come while an editor was open.
    """
    name, text = seen.file.name, seen.file.text
    if _is_torn(at, seen, missing):
        return "breaks off in the middle of an entry"
    there = {id_ for id_, found in at.blocks.items() if found.page == name}
    had = len(gone) + sum(each.page == name for id_, each in at.agreed.items() if id_ in there)
    if had == 1 and gone and f"# {title_of(name)}" not in text.partition("\n")[0]:
        return "has nothing left of what stood there, not even its title"
    if len(gone) == had > 1 or (len(gone) >= MANY and len(gone) >= MANY_SHARE * had):
        return f"lacks {len(gone)} of its {had} entries at once"
    return ""


def _is_torn(at: Snapshot, seen: Seen, missing: Iterable[str]) -> bool:
    """Return whether a page ends in the middle of one of these entries."""
    lines = split_lines(seen.file.text)
    ends = [number for number, line in enumerate(lines, 1) if id_in(line.rstrip("\r\n"))]
    ends += [block.start_line - 1 for block in seen.page.blocks[-1:] if not ends]
    tail = "".join(line.rstrip("\r\n") + "\n" for line in lines[ends[-1] :]).strip() if ends else ""
    kind = kind_of(seen.file.name)
    entries = (
        entry_of(stored, kind, at.links(id_), at.own_sections()) for id_ in missing if (stored := at.memory(id_))
    )
    return tail != "" and any(render_entry(entry, kind).startswith(tail) for entry in entries)


def outdated(at: Snapshot, found: Found, agreed: Baseline) -> Literal["", "words", "heading"]:
    """Return what of a block is from before the store changed it: all its words, its heading alone, or nothing."""
    read = at.read_before.get(found.page, inf)
    if agreed.page != found.page or not (agreed.standing.changed or read < inf):
        return ""
    *older, latest = _versions(at, found.entry.id)
    older = [each for each in older if each.record.content != latest.record.content]
    entry, topic = found.entry, found.entry.topic
    for each in older:
        is_said = text_digest(content_of(entry, each)) == text_digest(each.record.content)
        if is_said and set(entry.tags) == set(each.owner.tags):
            return "words"
    shown = {heading_and_text(each.record.content)[0] for each in older} - {at.heading(found.entry.id)}
    return "heading" if topic in shown - {""} or agreed.standing.changed >= read else ""


def without_secrets(entry: Entry) -> Entry:
    """Return an entry as the store would have it."""
    return replace(entry, text=redact(entry.text).text, tags=tuple(redact(tag).text for tag in entry.tags))


def _versions(at: Snapshot, id_: str) -> list[StoredMemory]:
    return list(at.runtime.store.versions(at.runtime.namespace, id_))
