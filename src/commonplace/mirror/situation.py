"""What a run of the mirror finds: pages, agreements, memories, and which block is whose. It changes nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.formats.journal import LONG_TERM_PAGE, Page, parse_page
from commonplace.formats.journal_entry import Entry
from commonplace.formats.journal_marks import conflict_line
from commonplace.formats.long_term import SECTIONS
from commonplace.ledger.undone import taken_away
from commonplace.mirror.agreement import Agreement, content_of, decode, text_digest
from commonplace.mirror.folder import NUL, Folder, PageFile, Stamp
from commonplace.mirror.projection import day_page, heading_and_text, kind_of, minute_of, time_of
from commonplace.types import Selection, StoredMemory

if TYPE_CHECKING:
    from commonplace.memories.fading import Fading
    from commonplace.memories.keeping import Keeper
    from commonplace.mirror.report import Tally
    from commonplace.store.contract import Store

RECEIPT: Final = "receipt"
"""The kind of the notes that name what was forgotten."""

QUIET_NS: Final = 200_000_000
"""A page that was saved less than this long ago may still be being written."""

_FEW: Final = 200
"""So many memories are read one by one; more in one go, which looks at every memory there is."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What the mirror of one namespace stands on.

    Attributes:
        keeper: returns who writes memories; asked for when there is something to write.
        count_tokens: of a text.
        now: seconds since the epoch.
        max_bytes: of a memory's content.
    """

    directory: Path
    namespace: str
    store: Store
    keeper: Callable[[], Keeper]
    count_tokens: Callable[[str], int]
    fading: Fading
    now: Callable[[], float]
    max_bytes: int


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
    raw: str


class Situation:
    """One run's view of pages and store; pages and memories are read once, when they are first asked for.

    Attributes:
        known, agreed, due: what the store knows of pages, of blocks, and of memories whose Markdown is due.
        news: the pages whose stamp is another than the store knows; `gone` are no longer there.
        seen: the pages that were read.
        left: pages that cannot be read, or not yet, and are left alone.
        unsure: pages on which something waits for another page that is left alone; they are read again.
        blocks: whose block is where.
        notes: blocks that are no memory's: without an id, with an unknown one, or copies of another block.
    """

    def __init__(self, ground: Ground, folder: Folder, tally: Tally, believed: Collection[str] = ()) -> None:
        self.ground = ground
        self.folder = folder
        self._tally = tally
        self._believed = believed
        store, space = ground.store, ground.namespace
        self.due = store.due(space)
        self.known = {page.page: page for page in store.pages(space)}
        self.stamps: dict[str, Stamp] = folder.stamps()
        self.news = {
            name
            for name, stamp in self.stamps.items()
            if name not in self.known or stamp != (self.known[name].size, self.known[name].mtime_ns)
        }
        self.gone = self.known.keys() - self.stamps.keys()
        self.agreed: dict[str, Agreement] = {}
        self.seen: dict[str, Seen] = {}
        self.left: set[str] = set()
        self.unsure: set[str] = set()
        self.blocks: dict[str, Found] = {}
        self.notes: list[Found] = []
        self._sums: dict[str, str] = {}
        self._memories: dict[str, StoredMemory | None] = {}
        self._links: dict[str, tuple[str, ...]] = {}

    @property
    def is_quiet(self) -> bool:
        """True where there is nothing to do."""
        return not (self.due or self.news or self.gone)

    def look(self, *, thorough: bool, wall_ns: int | None) -> None:
        """Read the pages that have to do with what is new on either side, and find out whose block is where.

        Args:
            thorough: read every page, and take none for unchanged.
            wall_ns: the time; pages that were saved just before it are left for later. None reads them too.
        """
        for block in self.ground.store.blocks(self.ground.namespace):
            agreed = decode(block.page, block.digest)
            if agreed is not None:
                self.agreed[block.id] = agreed
        self.load(self.due)
        pages = set(self.stamps) if thorough else set(self.news)
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
                self._read(name, thorough=thorough)
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
        self._memories.update(read_memories(self.ground, missing))
        self._links.update(dict.fromkeys(missing, ()))
        self._links.update(read_links(self.ground, missing))

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

    def changed_pages(self) -> set[str]:
        """Return the pages that were read and had not the bytes that the store knows of."""
        known = {page.page: page.sha256 for page in self.known.values()}
        return {name for name, read in self._sums.items() if read and read != known.get(name)}

    def heading(self, id_: str) -> str:
        """Return the heading that a memory has on a page, "" for one that is not there."""
        stored = self.memory(id_)
        return "" if stored is None else heading_and_text(stored.record.content)[0]

    def own_sections(self) -> tuple[str, ...]:
        """Return the names of the sections of the long-term page that are not ours."""
        seen = self.seen.get(LONG_TERM_PAGE)
        return tuple(section.name for section in seen.page.sections if section.name not in SECTIONS) if seen else ()

    def likely_page(self, stored: StoredMemory | None, agreed: Agreement | None) -> str:
        """Return the page that a memory belongs on, "" for none; whether the long-term page has room is not asked.

        It stays on the page of a day where it was put, wherever this machine has gone since.
        """
        if stored is None or stored.expired_at is not None:
            return ""
        if stored.record.tier == "long":
            return LONG_TERM_PAGE
        if stored.record.tier != "short":
            return ""
        at = time_of(stored)
        stays = agreed is not None and agreed.page not in ("", LONG_TERM_PAGE) and agreed.minute == minute_of(at)
        return agreed.page if stays and agreed is not None else day_page(at)

    def own(self, name: str) -> set[str]:
        """Return the ids of the live memories that page and store agreed to have on a page, and that belong there."""
        agreed = {id_: each for id_, each in self.agreed.items() if each.page == name}
        self.load(agreed)
        return {id_ for id_, each in agreed.items() if self.likely_page(self._memories[id_], each) == name}

    def forgotten(self) -> set[str]:
        """Return the ids that receipts name: what has them must not come back."""
        store, space = self.ground.store, self.ground.namespace
        ids: set[str] = set()
        for note in store.notes(None, RECEIPT):
            body = json.loads(note.body)
            if body.get("namespace") == space:
                ids.update(body.get("ids", ()))
        return ids

    def taken_away(self, ids: Collection[str]) -> set[str]:
        """Return those of some ids whose memory a merge had made that was undone."""
        return taken_away(self.ground.store.ledger(self.ground.namespace), ids)

    def _read(self, name: str, *, thorough: bool) -> None:
        file, known = self.folder.read(name), self.known.get(name)
        if file.problem:
            self.left.add(name)
            self._tally.notice(f"{self.folder.shown(name)} {file.problem}; it was left as it is")
            return
        is_news = known is not None if file.data is None else known is None or thorough or file.sum != known.sha256
        page = _parsed(file)
        is_ours = known is not None and file.sum == known.sha256
        if not is_ours and (line := self._unmerged(file, page)):
            self.left.add(name)
            self._tally.notice(
                f"{self.folder.shown(name)} has the marks of a merge that nobody has resolved (line {line}); it was "
                f"left as it is: keep one version of each entry there"
            )
            return
        had = sum(agreed.page == name for agreed in self.agreed.values())
        is_blank = file.data is None or (is_news and not file.text.strip("\ufeff \t\r\n"))
        is_lost = (known is not None and had > 0 and is_blank) or (is_news and not page.blocks and had > 1)
        self.seen[name] = Seen(file, page, is_news, is_lost)
        self._sums[name] = file.sum

    def _unmerged(self, file: PageFile, page: Page) -> int:
        """Return the line at which a conflict of a version control begins, 0 where there is none.

        A memory may speak of such marks; then the store has them too, in this version or in an earlier one.
        """
        line = conflict_line(file.text)
        if not line:
            return 0
        mark = file.text.split("\n")[line - 1].strip()
        versions = self.ground.store.versions
        said = (
            version.record.content.split("\n")
            for block in page.blocks
            if block.entry.id
            for version in versions(self.ground.namespace, block.entry.id)
        )
        return 0 if any(mark in lines for lines in said) else line

    def _distrust(self) -> None:
        """Let no page be believed on which so much is missing, or torn, that nobody can have meant it."""
        from commonplace.mirror.overlooked import damages

        found = damages(self, self._believed)
        for name, why in found.items():
            seen = self.seen[name]
            if not self.own(name):
                # There is nothing that could be written again in the place of what stands there.
                del self.seen[name], self._sums[name]
                self.left.add(name)
                self._tally.notice(f"{self.folder.shown(name)} {why}; it was left as it is")
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
                found = Found(name, index, block.entry, block.raw)
                if block.entry.id:
                    everywhere[block.entry.id].append(found)
                elif seen.is_news and block.entry.text.strip():
                    self.notes.append(found)
        self.load(everywhere)
        for id_, places in everywhere.items():
            self._assign(id_, places)
        self.notes.sort(key=lambda found: (found.page, found.index))

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

    def _is_half_moved(self, id_: str, found: Found, agreed: Agreement | None) -> bool:
        """Return whether a run that was killed may have written a block where it goes, and not removed the other."""
        stored = self._memories[id_]
        if stored is None or found.page != self.likely_page(stored, agreed):
            return False
        said = text_digest(content_of(found.entry, None, stored))
        versions = self.ground.store.versions(self.ground.namespace, id_)
        return any(said == text_digest(version.record.content) for version in versions)


def read_memories(ground: Ground, ids: Sequence[str]) -> dict[str, StoredMemory]:
    """Return the latest versions of memories as they are now; those that are not there are absent."""
    store, space = ground.store, ground.namespace
    if len(ids) <= _FEW:
        return {id_: stored for id_ in ids if (stored := store.memory(space, id_)) is not None}
    return {stored.owner.id: stored for stored in store.memories(space, Selection(ids=tuple(ids), order="id"))}


def read_links(ground: Ground, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids that memories are linked to, sorted; memories without links are absent."""
    targets: dict[str, set[str]] = defaultdict(set)
    wanted = set(ids)
    for link in ground.store.links(ground.namespace, ids) if ids else ():
        if link.source in wanted:
            targets[link.source].add(link.target)
    return {source: tuple(sorted(found)) for source, found in targets.items()}


def kind_changed(found: Found, agreed: Agreement | None) -> bool:
    """Return whether a person moved a block between a day's page and the long-term page."""
    return agreed is not None and agreed.page != "" and kind_of(found.page) != kind_of(agreed.page)


def _parsed(file: PageFile) -> Page:
    return parse_page(file.text, kind_of(file.name))
