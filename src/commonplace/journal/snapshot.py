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

MANY: Final = 5
"""A person removes fewer entries between two looks at a page; so many, if they are `MANY_SHARE` of it, are doubted."""
MANY_SHARE: Final = 1 / 4

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
        """What the page is written on: its text, of a damaged one only what precedes the first block."""
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
        known, due: what the store knows of pages, and the memories whose Markdown is due.
        agreed: the baselines of blocks by id, as this run leaves them; `recorded` are those that the store has.
        news: the pages whose stamp is another than the store knows; `gone` are no longer there.
        seen: the pages that were read; `changed` had other bytes than the store knows.
        left: pages that cannot be read, or not yet, and are left alone.
        unsure: pages on which something waits for another page that is left alone; they are read again.
        blocks: whose block is where.
        notes: blocks that are no memory's: without an id, with an unknown one, or copies of another block.
        again: by id, the notes that are memories already: they were given that id on their page, which is not there.
        missing: ids whose block is missing, though most likely nobody has removed it.
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
        self.recorded: dict[str, Baseline] = {}
        self.seen: dict[str, Seen] = {}
        self.left: set[str] = set()
        self.unsure: set[str] = set()
        self.blocks: dict[str, Found] = {}
        self.notes: list[Found] = []
        self.again: dict[str, Found] = {}
        self.missing: set[str] = set()
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
            if (agreed := decode(block.page, block.digest)) is not None:
                self.recorded[block.id] = agreed
        self.agreed = dict(self.recorded)
        self.load(self.due)
        pages = set(self.stamps if wall_ns is None else self.news)
        pages |= self.gone
        for id_ in self.due:
            stored, baseline = self._memories[id_], self.agreed.get(id_)
            pages |= {baseline.page if baseline else "", self.likely_page(stored, baseline)}
        for name in sorted(pages - {""}):
            if wall_ns is not None and name in self.news and 0 <= wall_ns - self.stamps[name][1] < QUIET_NS:
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

    def reread(self, file: PageFile) -> Page:
        """Take in a page as it was just written, and return it."""
        page = parse_page(file.text, kind_of(file.name))
        before = self.seen[file.name]
        self.seen[file.name] = Seen(file, page, before.is_news, before.is_lost)
        return page

    def load(self, ids: Iterable[str], *, again: bool = False) -> None:
        """Read memories, and their links, that were not read yet, or all of them again."""
        missing = [id_ for id_ in dict.fromkeys(ids) if again or id_ not in self._memories]
        memories, links = read_memories(self.runtime, missing)
        for id_ in missing:
            self._memories[id_] = memories.get(id_)
            self._links[id_] = links.get(id_, ())

    def memory(self, id_: str) -> StoredMemory | None:
        """Return the latest version of a memory, live or archived."""
        self.load([id_])
        return self._memories[id_]

    def links(self, id_: str) -> tuple[str, ...]:
        """Return the ids that a memory is linked to, sorted."""
        self.load([id_])
        return self._links[id_]

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
        if agreed is not None and agreed.page not in ("", LONG_TERM_PAGE) and agreed.minute == minute_of(stored.at):
            return agreed.page
        return day_page(stored.at)

    def forgotten(self) -> set[str]:
        """Return the ids that receipts name: what has them must not come back."""
        ids: set[str] = set()
        for note in self.runtime.store.notes(None, RECEIPT):
            body = json.loads(note.body)
            if body.get("namespace") == self.runtime.namespace:
                ids.update(body.get("ids", ()))
        return ids

    def outdated(self, found: Found, agreed: Baseline) -> Literal["", "words", "heading"]:
        """Return what of a block is from before the store changed it: all its words, its heading alone, or nothing."""
        read = self.read_before.get(found.page, inf)
        if agreed.page != found.page or not (agreed.standing.changed or read < inf):
            return ""
        *older, latest = self._versions(found.entry.id)
        older = [each for each in older if each.record.content != latest.record.content]
        entry, topic = found.entry, found.entry.topic
        for each in older:
            is_said = text_digest(content_of(entry, each)) == text_digest(each.record.content)
            if is_said and set(entry.tags) == set(each.owner.tags):
                return "words"
        shown = {heading_and_text(each.record.content)[0] for each in older} - {self.heading(found.entry.id)}
        return "heading" if topic in shown - {""} or agreed.standing.changed >= read else ""

    def notice(self, page: str, words: str) -> None:
        """Tell people something of a page, words that continue its name."""
        self.tally.notice(f"{self.folder.shown(page)} {words}")

    def _read(self, name: str, *, thorough: bool) -> None:
        file, known = self.folder.read(name), self.known.get(name)
        problem, remedy = file.problem, "make it readable UTF-8 text"
        if line := conflict_line(file.text):
            # Both sides have the same ids: taken in, one would be new notes, and the marks a part of the other.
            problem, remedy = f"has an unresolved merge conflict at line {line}", "resolve it"
        if problem:
            self.left.add(name)
            self.notice(name, f"{problem}; it was left as it is: {remedy}, or delete it to have it written again")
            return
        is_news = known is not None if file.data is None else known is None or thorough or file.sum != known.sha256
        page = parse_page(file.text, kind_of(name))
        had = sum(agreed.page == name for agreed in self.agreed.values())
        is_blank = file.data is None or (is_news and not file.text.strip("\ufeff \t\r\n"))
        is_lost = (known is not None and had > 0 and is_blank) or (is_news and not page.blocks and had > 1)
        self.seen[name] = Seen(file, page, is_news, is_lost)
        if file.data is not None and (known is None or file.sum != known.sha256):
            self.changed.add(name)

    def _find(self) -> None:
        """Find out whose block is where: of several with one id, the one at home is its own, else the first."""
        self.blocks, self.notes = {}, []
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
            agreed = self.agreed.get(id_)
            home = agreed.page if agreed else ""
            own = next((found for found in places if found.page == home), None)
            copies = places
            if own is None and home in self.stamps and home not in self.seen:
                # Its page is as it was, and has it; or nobody can tell what that has, and the others wait.
                if home in self.left:
                    self.unsure.update(found.page for found in places)
                    continue
            else:
                own = self.blocks[id_] = own or places[0]
                others = [found for found in places if found is not own]
                copies = [found for found in others if not self._is_half_moved(id_, found, agreed)]
            self.notes += [found for found in copies if self.seen[found.page].is_news]
        self.notes.sort(key=lambda found: (found.page, found.index))
        self._find_again()

    def _is_half_moved(self, id_: str, found: Found, agreed: Baseline | None) -> bool:
        """Return whether a run that was killed may have written a block where it goes, and not removed the other."""
        stored = self._memories[id_]
        if stored is None or found.page != self.likely_page(stored, agreed):
            return False
        said = text_digest(content_of(found.entry, stored))
        return any(said == text_digest(version.record.content) for version in self._versions(id_))

    def _find_again(self) -> None:
        """Find what an editor that read its page before some notes got their ids, or entries came, has saved.

        It has such a note a second time, without an id, and lacks what came to the page after it was read. Where
        nobody knows when it was read, what no saved page has had yet is missing, if it came later than all that are on
        the page, or than another one where there are none.
        """
        noted = {note.page for note in self.notes}
        gone: dict[tuple[str, str], list[str]] = defaultdict(list)
        for id_, agreed in self.agreed.items():
            if agreed.page in noted and agreed.standing.is_note and id_ not in self.blocks:
                for said in {text_digest(each.record.content) for each in self._versions(id_)}:
                    gone[agreed.page, said].append(id_)
        self.again, self.read_before, self.missing = {}, {}, set()
        for note in self.notes if gone else ():
            same = gone.get((note.page, text_digest(content_of(without_secrets(note.entry)))), ())
            if again := next((id_ for id_ in same if id_ not in self.again), None):
                self.again[again] = note
                since = self.agreed[again].standing.since
                self.read_before[note.page] = min(since, self.read_before.get(note.page, inf))
        for page in self.changed:
            standing = {id_: each.standing for id_, each in self.agreed.items() if each.page == page}
            there = [each.since for id_, each in standing.items() if id_ in self.blocks]
            latest = max(there, default=min((each.since for each in standing.values()), default=0.0))
            read = self.read_before.get(page, inf)
            for id_ in standing.keys() - self.blocks.keys() - self.again.keys():
                each = standing[id_]
                if each.since >= read or (each.since > latest and not each.is_seen):
                    self.missing.add(id_)

    def _distrust(self) -> None:
        """Let no page be believed on which so much is missing, or torn, that nobody can have meant it."""
        found: dict[str, str] = {}
        own: dict[str, set[str]] = {}
        for name in sorted(self.changed):
            seen = self.seen[name]
            # The live memories that page and store agreed to have there, and that belong there.
            agreed = {id_: each for id_, each in self.agreed.items() if each.page == name}
            self.load(agreed)
            own[name] = {id_ for id_, each in agreed.items() if self.likely_page(self._memories[id_], each) == name}
            if NUL in seen.file.text:
                found[name] = "holds NUL characters, as a damaged file does"
            elif name not in self._believed and not seen.is_lost:
                missing = own[name] - self.blocks.keys() - self.again.keys()
                if missing and (why := self._doubt(seen, missing)):
                    found[name] = why
        for name, why in found.items():
            seen = self.seen[name]
            if not own[name]:
                # There is nothing that could be written again in the place of what is there.
                del self.seen[name]
                self.changed.discard(name)
                self.left.add(name)
                self.notice(name, f"{why}; it was left as it is")
                continue
            preamble = "" if NUL in seen.page.preamble else seen.page.preamble
            self.seen[name] = Seen(seen.file, Page(preamble, ()), seen.is_news, is_lost=True, damage=why)
        if found:
            self._find()

    def _doubt(self, seen: Seen, missing: set[str]) -> str:
        """Return why nobody can have removed these entries from a page, "" where somebody may have."""
        name, text, kind = seen.file.name, seen.file.text, kind_of(seen.file.name)
        lines = split_lines(text)
        ends = [number for number, line in enumerate(lines, 1) if id_in(line.rstrip("\r\n"))]
        ends += [block.start_line - 1 for block in seen.page.blocks[-1:] if not ends]
        tail = "".join(line.rstrip("\r\n") + "\n" for line in lines[ends[-1] :]).strip() if ends else ""
        for id_ in missing if tail else ():
            stored = self.memory(id_)
            entry = entry_of(stored, kind, self.links(id_), self.own_sections()) if stored else None
            if entry and render_entry(entry, kind).startswith(tail):
                return "breaks off in the middle of an entry"
        gone = len(missing - self.missing)  # the others may have come while an editor was open
        there = {id_ for id_, found in self.blocks.items() if found.page == name}
        had = gone + sum(each.page == name for id_, each in self.agreed.items() if id_ in there)
        if had == gone == 1 and f"# {title_of(name)}" not in text.partition("\n")[0]:
            return "has nothing left of what stood there, not even its title"
        if gone == had > 1 or (gone >= MANY and gone >= MANY_SHARE * had):
            return f"lacks {gone} of its {had} entries at once"
        return ""

    def _versions(self, id_: str) -> list[StoredMemory]:
        return list(self.runtime.store.versions(self.runtime.namespace, id_))


def read_memories(
    runtime: JournalRuntime, ids: Sequence[str]
) -> tuple[dict[str, StoredMemory], dict[str, tuple[str, ...]]]:
    """Return the latest versions of memories as they are now, and the ids that each is linked to, sorted.

    Memories that are not there, and those without links, are absent.
    """
    store, space = runtime.store, runtime.namespace
    if len(ids) <= _FEW:
        memories = {id_: stored for id_ in ids if (stored := store.memory(space, id_)) is not None}
    else:
        wanted = Selection(ids=tuple(ids), order="id")
        memories = {stored.owner.id: stored for stored in store.memories(space, wanted)}
    targets: dict[str, set[str]] = defaultdict(set)
    known = set(ids)
    for link in store.links(space, ids) if ids else ():
        if link.source in known:
            targets[link.source].add(link.target)
    return memories, {source: tuple(sorted(found)) for source, found in targets.items()}


def without_secrets(entry: Entry) -> Entry:
    """Return an entry as the store would have it."""
    return replace(entry, text=redact(entry.text).text, tags=tuple(redact(tag).text for tag in entry.tags))
