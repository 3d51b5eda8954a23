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
from commonplace.journal.sync import QUIET_NS, JournalRuntime, Tally
from commonplace.redaction import redact
from commonplace.settings.paths import LONG_TERM_PAGE
from commonplace.types import Selection, StoredMemory

RECEIPT: Final = "receipt"
"""Kind of the notes that list the ids of forgotten memories."""

MANY: Final = 5
"""Number of missing entries, if also `MANY_SHARE` of the page, that a person is unlikely to have removed at once."""
MANY_SHARE: Final = 1 / 4

_MAX_SINGLE_READS: Final = 200
"""Maximum number of memories read one by one; more are read with one query, which scans all memories."""


@dataclass(frozen=True, slots=True)
class PageState:
    """A page in a run.

    Attributes:
        is_dirty: somebody else has changed it since it was last read or written.
        is_lost: by accident it is gone or empty although it had blocks, or has none although it had several.
        damage: why its content is ignored, a clause that continues its name; "" if it is not.
    """

    file: PageFile
    page: Page
    is_dirty: bool
    is_lost: bool
    damage: str = ""

    @property
    def text(self) -> str:
        """The text that changes are applied to: the page's text, or its preamble alone if it is damaged."""
        return self.page.preamble if self.damage else self.file.text


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block on a page; `index` is its position among the page's blocks."""

    page: str
    index: int
    entry: Entry


class Snapshot:
    """One run's view of pages and store; pages and memories are read once, on first use.

    Attributes:
        records, due: the store's record of each page, and the ids of the memories whose Markdown is due.
        baselines: baselines by id, as this run leaves them; `recorded`: those that the store has.
        changed_stamps: pages whose stamp differs from the store's record; `deleted_pages`: pages that no longer exist.
        pages: pages read, by name; `changed`: those whose bytes differ from the store's record.
        skipped: pages left alone because they cannot be read, or not yet.
        unsettled: pages with something that waits for a page that is left alone; they are read again.
        blocks: blocks by memory id, whether or not the store knows that memory.
        notes: blocks that belong to no memory: without an id, or copies of another block.
        returned_notes: by id, notes that are memories already: they got that id on their page, where it is now missing.
        missing: ids of memories whose block is missing, though most likely nobody has removed it.
        read_before: by page, the time before which the person who saved it must have read it.
        tally: counts and notices of the run.
    """

    def __init__(self, runtime: JournalRuntime, folder: Folder, tally: Tally, accepted: Collection[str] = ()) -> None:
        self.runtime = runtime
        self.folder = folder
        self.tally = tally
        self._accepted = accepted
        store, namespace = runtime.store, runtime.namespace
        self.due = store.due(namespace)
        self.records = {page.page: page for page in store.pages(namespace)}
        self.stamps: dict[str, Stamp] = folder.stamps()
        self.changed_stamps = {
            name
            for name, stamp in self.stamps.items()
            if name not in self.records or stamp != (self.records[name].size, self.records[name].mtime_ns)
        }
        self.deleted_pages = self.records.keys() - self.stamps.keys()
        self.baselines: dict[str, Baseline] = {}
        self.recorded: dict[str, Baseline] = {}
        self.pages: dict[str, PageState] = {}
        self.skipped: set[str] = set()
        self.unsettled: set[str] = set()
        self.blocks: dict[str, PageBlock] = {}
        self.notes: list[PageBlock] = []
        self.returned_notes: dict[str, PageBlock] = {}
        self.missing: set[str] = set()
        self.read_before: dict[str, float] = {}
        self.changed: set[str] = set()
        self._memories: dict[str, StoredMemory | None] = {}
        self._links: dict[str, tuple[str, ...]] = {}

    def read(self, wall_ns: int | None) -> None:
        """Read the pages affected by what is new on either side, and match blocks to memories.

        Args:
            wall_ns: the current time; pages saved just before it are left for later. None reads every page and treats
                none as unchanged.
        """
        for block in self.runtime.store.blocks(self.runtime.namespace):
            if (decoded := decode(block.page, block.digest)) is not None:
                self.recorded[block.id] = decoded
        self.baselines = dict(self.recorded)
        self.load(self.due)
        pages = set(self.stamps if wall_ns is None else self.changed_stamps)
        pages |= self.deleted_pages
        for id_ in self.due:
            stored, baseline = self._memories[id_], self.baselines.get(id_)
            pages |= {baseline.page if baseline else "", self.likely_page(stored, baseline)}
        for name in sorted(pages - {""}):
            if wall_ns is not None and name in self.changed_stamps and 0 <= wall_ns - self.stamps[name][1] < QUIET_NS:
                self.skipped.add(name)
            else:
                self._read(name, thorough=wall_ns is None)
        self._find()
        self._mark_damaged()

    def page(self, name: str) -> PageState | None:
        """Return a page, None if it is left alone."""
        if name not in self.pages and name not in self.skipped:
            self._read(name, thorough=False)
            if name in self.pages and self.pages[name].is_dirty:
                self.unsettled.add(name)  # what is new on it has not been imported
        return self.pages.get(name)

    def reread(self, file: PageFile) -> Page:
        """Parse a page that was just written, and return it."""
        page = parse_page(file.text, kind_of(file.name))
        previous = self.pages[file.name]
        self.pages[file.name] = PageState(file, page, previous.is_dirty, previous.is_lost)
        return page

    def load(self, ids: Iterable[str], *, reload: bool = False) -> None:
        """Load memories and their links that are not loaded yet, or all of them if `reload`."""
        missing = [id_ for id_ in dict.fromkeys(ids) if reload or id_ not in self._memories]
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
        """Return the heading of a memory on a page, "" if there is no such memory."""
        stored = self.memory(id_)
        return "" if stored is None else heading_and_text(stored.record.content)[0]

    def own_sections(self) -> tuple[str, ...]:
        """Return the names of the sections that people added to the long-term page."""
        state = self.pages.get(LONG_TERM_PAGE)
        return tuple(section.name for section in state.page.sections if section.name not in SECTIONS) if state else ()

    def likely_page(self, stored: StoredMemory | None, base: Baseline | None) -> str:
        """Return the page that a memory belongs on, "" for none; ignores whether the long-term page has room.

        A memory stays on the day page where it was put, even if this machine's time zone has changed since.
        """
        if stored is None or stored.expired_at is not None:
            return ""
        if stored.record.tier == "long":
            return LONG_TERM_PAGE
        if stored.record.tier != "short":
            return ""
        if base is not None and base.page not in ("", LONG_TERM_PAGE) and base.minute == minute_of(stored.at):
            return base.page
        return day_page(stored.at)

    def forgotten(self) -> set[str]:
        """Return the ids listed in receipts; memories with these ids must not come back."""
        ids: set[str] = set()
        for note in self.runtime.store.notes(None, RECEIPT):
            body = json.loads(note.body)
            if body.get("namespace") == self.runtime.namespace:
                ids.update(body.get("ids", ()))
        return ids

    def outdated(self, block: PageBlock, baseline: Baseline) -> Literal["", "words", "heading"]:
        """Return which part of a block predates the store's change: all its words, its heading alone, or nothing."""
        read_at = self.read_before.get(block.page, inf)
        if baseline.page != block.page or not (baseline.history.changed or read_at < inf):
            return ""
        *older, latest = self._versions(block.entry.id)
        older = [version for version in older if version.record.content != latest.record.content]
        entry, topic = block.entry, block.entry.topic
        for version in older:
            is_said = text_digest(content_of(entry, version)) == text_digest(version.record.content)
            if is_said and set(entry.tags) == set(version.owner.tags):
                return "words"
        headings = {heading_and_text(version.record.content)[0] for version in older} - {self.heading(block.entry.id)}
        return "heading" if topic in headings - {""} or baseline.history.changed >= read_at else ""

    def notice(self, page: str, words: str) -> None:
        """Add a notice about a page; `words` continue its name."""
        self.tally.notice(f"{self.folder.page_path(page)} {words}")

    def _read(self, name: str, *, thorough: bool) -> None:
        file, stored = self.folder.read(name), self.records.get(name)
        problem, remedy = file.problem, "make it readable UTF-8 text"
        if line := conflict_line(file.text):
            # Both sides have the same ids: an import would make notes of one, and add the marks to the other.
            problem, remedy = f"has an unresolved merge conflict at line {line}", "resolve it"
        if problem:
            self.skipped.add(name)
            self.notice(name, f"{problem}; it was left as it is: {remedy}, or delete it to have it written again")
            return
        is_dirty = stored is not None if file.data is None else stored is None or thorough or file.sum != stored.sha256
        page = parse_page(file.text, kind_of(name))
        count = sum(baseline.page == name for baseline in self.baselines.values())
        is_blank = file.data is None or (is_dirty and not file.text.strip("\ufeff \t\r\n"))
        is_lost = (stored is not None and count > 0 and is_blank) or (is_dirty and not page.blocks and count > 1)
        self.pages[name] = PageState(file, page, is_dirty, is_lost)
        if file.data is not None and (stored is None or file.sum != stored.sha256):
            self.changed.add(name)

    def _find(self) -> None:
        """Match blocks to ids; of several with one id, that on its baseline's page is the original, else the first."""
        self.blocks, self.notes = {}, []
        by_id: dict[str, list[PageBlock]] = defaultdict(list)
        for name, state in sorted(self.pages.items()):
            for index, page_block in enumerate(state.page.blocks):
                block = PageBlock(name, index, page_block.entry)
                if page_block.entry.id:
                    by_id[page_block.entry.id].append(block)
                elif state.is_dirty and page_block.entry.text.strip():
                    self.notes.append(block)
        self.load(by_id)
        for id_, candidates in by_id.items():
            baseline = self.baselines.get(id_)
            home = baseline.page if baseline else ""
            original = next((block for block in candidates if block.page == home), None)
            copies = candidates
            if original is None and home in self.stamps and home not in self.pages:
                # Its page was not read: if unchanged, it has the original; if left alone, the copies must wait.
                if home in self.skipped:
                    self.unsettled.update(block.page for block in candidates)
                    continue
            else:
                original = self.blocks[id_] = original or candidates[0]
                duplicates = [block for block in candidates if block is not original]
                copies = [block for block in duplicates if not self._is_half_moved(id_, block, baseline)]
            self.notes += [block for block in copies if self.pages[block.page].is_dirty]
        self.notes.sort(key=lambda block: (block.page, block.index))
        self._find_again()

    def _is_half_moved(self, id_: str, block: PageBlock, baseline: Baseline | None) -> bool:
        """Return whether a killed run may have written a block to its new page without removing the old one."""
        stored = self._memories[id_]
        if stored is None or block.page != self.likely_page(stored, baseline):
            return False
        digest = text_digest(content_of(block.entry, stored))
        return any(digest == text_digest(version.record.content) for version in self._versions(id_))

    def _find_again(self) -> None:
        """Detect pages saved by an editor that had read them before notes got their ids, or entries were added.

        Such a page has a note again, without its id, and lacks entries added after it was read. If the time of reading
        is unknown, an entry is missing if no saved page has had it yet and it was added later than all entries on the
        page, or, if there are none, later than another missing one.
        """
        note_pages = {note.page for note in self.notes}
        lost_notes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for id_, base in self.baselines.items():
            if base.page in note_pages and base.history.is_note and id_ not in self.blocks:
                for digest in {text_digest(version.record.content) for version in self._versions(id_)}:
                    lost_notes[base.page, digest].append(id_)
        self.returned_notes, self.read_before, self.missing = {}, {}, set()
        for note in self.notes if lost_notes else ():
            candidates = lost_notes.get((note.page, text_digest(content_of(without_secrets(note.entry)))), ())
            if again := next((id_ for id_ in candidates if id_ not in self.returned_notes), None):
                self.returned_notes[again] = note
                since = self.baselines[again].history.since
                self.read_before[note.page] = min(since, self.read_before.get(note.page, inf))
        for page in self.changed:
            histories = {id_: baseline.history for id_, baseline in self.baselines.items() if baseline.page == page}
            present = [history.since for id_, history in histories.items() if id_ in self.blocks]
            latest = max(present, default=min((history.since for history in histories.values()), default=0.0))
            read_at = self.read_before.get(page, inf)
            for id_ in histories.keys() - self.blocks.keys() - self.returned_notes.keys():
                history = histories[id_]
                if history.since >= read_at or (history.since > latest and not history.is_seen):
                    self.missing.add(id_)

    def _mark_damaged(self) -> None:
        """Mark pages as damaged on which so much is missing, or torn, that nobody can have meant it."""
        damages: dict[str, str] = {}
        owned: dict[str, set[str]] = {}
        for name in sorted(self.changed):
            state = self.pages[name]
            # The memories with their baseline on the page; `owned` are those that still belong there.
            on_page = {id_: base for id_, base in self.baselines.items() if base.page == name}
            self.load(on_page)
            owned[name] = {id_ for id_, base in on_page.items() if self.likely_page(self._memories[id_], base) == name}
            if NUL in state.file.text:
                damages[name] = "holds NUL characters, as a damaged file does"
            elif name not in self._accepted and not state.is_lost:
                missing = owned[name] - self.blocks.keys() - self.returned_notes.keys()
                if missing and (damage := self._damage_of(state, missing)):
                    damages[name] = damage
        for name, damage in damages.items():
            state = self.pages[name]
            if not owned[name]:
                # The store has nothing to replace the page's content with.
                del self.pages[name]
                self.changed.discard(name)
                self.skipped.add(name)
                self.notice(name, f"{damage}; it was left as it is")
                continue
            preamble = "" if NUL in state.page.preamble else state.page.preamble
            self.pages[name] = PageState(state.file, Page(preamble, ()), state.is_dirty, is_lost=True, damage=damage)
        if damages:
            self._find()

    def _damage_of(self, state: PageState, missing: set[str]) -> str:
        """Return why no person can have removed these entries from a page, "" if somebody may have."""
        name, text, kind = state.file.name, state.file.text, kind_of(state.file.name)
        lines = split_lines(text)
        ends = [number for number, line in enumerate(lines, 1) if id_in(line.rstrip("\r\n"))]
        ends += [block.start_line - 1 for block in state.page.blocks[-1:] if not ends]
        tail = "".join(line.rstrip("\r\n") + "\n" for line in lines[ends[-1] :]).strip() if ends else ""
        for id_ in missing if tail else ():
            stored = self.memory(id_)
            entry = entry_of(stored, kind, self.links(id_), self.own_sections()) if stored else None
            if entry and render_entry(entry, kind).startswith(tail):
                return "breaks off in the middle of an entry"
        removed = len(missing - self.missing)  # the others may have been added while an editor was open
        present = {id_ for id_, match in self.blocks.items() if match.page == name}
        total = removed + sum(baseline.page == name for id_, baseline in self.baselines.items() if id_ in present)
        if total == removed == 1 and f"# {title_of(name)}" not in text.partition("\n")[0]:
            return "has nothing left of what stood there, not even its title"
        if removed == total > 1 or (removed >= MANY and removed >= MANY_SHARE * total):
            return f"lacks {removed} of its {total} entries at once"
        return ""

    def _versions(self, id_: str) -> list[StoredMemory]:
        return list(self.runtime.store.versions(self.runtime.namespace, id_))


def read_memories(
    runtime: JournalRuntime, ids: Sequence[str]
) -> tuple[dict[str, StoredMemory], dict[str, tuple[str, ...]]]:
    """Return the current latest versions of memories, and the sorted ids that each links to, by id.

    Missing memories are absent from the first, memories without links from the second.
    """
    store, namespace = runtime.store, runtime.namespace
    if len(ids) <= _MAX_SINGLE_READS:
        memories = {id_: stored for id_ in ids if (stored := store.memory(namespace, id_)) is not None}
    else:
        selection = Selection(ids=tuple(ids), order="id")
        memories = {stored.owner.id: stored for stored in store.memories(namespace, selection)}
    targets: dict[str, set[str]] = defaultdict(set)
    id_set = set(ids)
    for link in store.links(namespace, ids) if ids else ():
        if link.source in id_set:
            targets[link.source].add(link.target)
    return memories, {source: tuple(sorted(linked)) for source, linked in targets.items()}


def without_secrets(entry: Entry) -> Entry:
    """Return an entry with its secrets redacted, as the store would have it."""
    return replace(entry, text=redact(entry.text).text, tags=tuple(redact(tag).text for tag in entry.tags))
