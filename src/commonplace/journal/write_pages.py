"""Write memories to pages and remove deleted ones, leaving other text unchanged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.errors import StoreBusyError
from commonplace.formats.journal import MAX_TOKENS, SECTIONS, Entry, id_in, parse_page, render_entry, split_lines
from commonplace.formats.journal_edit import digest, with_changes
from commonplace.journal.baseline import UNSEEN, Baseline, Standing, agree, encode, meant_by_store
from commonplace.journal.folder import DAMAGED, MAX_PAGE_BYTES, NUL, Folder, PageFile
from commonplace.journal.import_edits import EditImport
from commonplace.journal.pages import entry_of, kind_of, title_of
from commonplace.journal.snapshot import Seen, Snapshot, read_links, read_memories
from commonplace.journal.sync import JournalRuntime, Tally
from commonplace.settings.paths import LONG_TERM_PAGE
from commonplace.types import JournalBlock, JournalPage, Selection, StoredMemory

_MIN_TOKENS: Final = 12
"""An entry with its heading and the comment that carries its id has more."""


def within_budget(at: Snapshot, rewritten: Collection[str] = ()) -> set[str]:
    """Return the ids of the long-term memories that are to stand on the long-term page; ties by id.

    Args:
        rewritten: ids whose block on the page will not stay as it is.
    """
    seen, runtime = at.page(LONG_TERM_PAGE), at.runtime
    if seen is None:
        return set()
    wanted = Selection(tiers=("long",), statuses=("active", "promoted"), order="id")
    memories = [each for each in runtime.store.memories(runtime.namespace, wanted) if each.expired_at is None]
    now = runtime.now()
    memories.sort(key=lambda each: (-runtime.retention.raw(each.record, now), each.owner.id))
    blocks = {block.entry.id: block for block in seen.page.blocks if block.entry.id}
    rest = with_changes(seen.text, dict.fromkeys(blocks), title=title_of(LONG_TERM_PAGE), kind="long")
    there = {section.name for section in seen.page.sections}
    # With all that may yet be needed, so that what has room now has it once they are written.
    frame = [f"# {title_of(LONG_TERM_PAGE)}"] if not rest.strip() else []
    frame += [f"## {name}" for name in SECTIONS if name not in there]
    used = runtime.count_tokens("\n".join([rest, *frame]))
    kept = {id_: block for id_, block in blocks.items() if id_ not in rewritten}
    at.load([each.owner.id for each in memories if each.owner.id not in kept])
    chosen: set[str] = set()
    room = MAX_TOKENS - used
    for stored in memories:
        if room <= _MIN_TOKENS:
            break
        id_, block = stored.owner.id, kept.get(stored.owner.id)
        text = block.raw if block else render_entry(entry_of(stored, "long", at.links(id_), at.own_sections()), "long")
        tokens = runtime.count_tokens(text)
        # One that is too long is passed over, so that it keeps out no other.
        if tokens < room:
            room -= tokens
            chosen.add(id_)
    return chosen


_Changes = dict[str, Entry | None]


class PageWriter:
    """Brings the pages in line with the store.

    Attributes:
        agreed: by id, what both sides say from now on; None where there is nothing to remember of a block.
        failed: pages that could not be written.
        is_stale: a page was changed by somebody else meanwhile; the run has to be done once more.
    """

    def __init__(self, at: Snapshot, imported: EditImport) -> None:
        self._at = at
        self._tally = at.tally
        self._imported = imported
        self._changes: dict[str, _Changes] = defaultdict(dict)
        self._targets: dict[str, str] = {}
        self._rewritten: set[str] = set()
        self.agreed: dict[str, Baseline | None] = {}
        self.failed: set[str] = set()
        self.is_stale = False

    def place(self, ids: Iterable[str]) -> None:
        """Write the pages on which these memories stand, or are to stand."""
        listed = set(ids)
        outdated = {id_ for id_ in listed if self._imported.verdicts.get(id_) in ("take store", "conflict")}
        outdated |= self._imported.reheaded
        room: set[str] = set()
        long = (each for id_ in listed if (each := self._at.memory(id_)) is not None and each.record.tier == "long")
        if LONG_TERM_PAGE in self._at.seen or any(each.expired_at is None for each in long):
            room = within_budget(self._at, outdated)
            listed |= room | {id_ for id_, found in self._at.blocks.items() if found.page == LONG_TERM_PAGE}
        for id_ in sorted(listed - self._imported.refused, key=self._order):
            self._plan(id_, room, is_outdated=id_ in outdated)
        for name in sorted(self._changes):
            self._write(self._at.seen[name], self._changes[name])
        for id_ in self._targets:
            self._agree(id_)

    def _plan(self, id_: str, room: set[str], *, is_outdated: bool) -> None:
        """Note what becomes of the block of one memory, unless its page is left alone."""
        at = self._at
        stored, found, agreed = at.memory(id_), at.blocks.get(id_), self._agreed_now(id_)
        home = agreed.page if agreed else ""
        if stored is None and found is not None and id_ not in self._imported.forgotten:
            return  # a note that was not taken in
        if home in at.left or (found is None and home in at.stamps and home not in at.seen):
            return
        target = at.likely_page(stored, agreed)
        if target == LONG_TERM_PAGE and id_ not in room:
            target = ""
        if target and at.page(target) is None:
            return
        self._targets[id_] = target
        if found is not None and found.page != target:
            self._changes[found.page][id_] = None
        stays = found is not None and found.page == target and not is_outdated
        if target and stored is not None and not stays:
            written = found.entry.links if found else ()
            links = [*at.links(id_), *(link for link in written if at.memory(link) is None)]
            self._rewritten.add(id_)
            self._changes[target][id_] = entry_of(stored, kind_of(target), links, at.own_sections())

    def _write(self, seen: Seen, changes: _Changes) -> None:
        """Write one page, or note that it could not be."""
        name, old = seen.file.name, seen.file
        text = self._changed(seen, changes)
        if text == old.text and (text.strip() or not seen.is_lost):
            return
        try:
            copy = self._at.folder.keep_damaged(old) if seen.text != old.text else ""
            if text.strip() in ("", f"# {title_of(name)}"):
                is_done = old.data is None or self._at.folder.remove(old)
                written: PageFile | None = PageFile(name) if is_done else None
            else:
                written = self._at.folder.replace(old, text)
        except OSError as error:
            self.failed.add(name)
            self._at.notice(name, f"could not be written ({error.strerror}); its memories are in the store")
            return
        if written is None:
            self.failed.add(name)
            self.is_stale = True
            return
        self._tally.counts["pages_written"] += written.data is not None
        self._at.reread(written)
        if copy:
            self._tally.conflicts[self._at.folder.shown(copy)] = None
        if seen.is_lost and written.data is not None:
            self._at.notice(name, _loss_notice(seen, self._at.folder.shown(copy) if copy else ""))

    def _changed(self, seen: Seen, changes: _Changes) -> str:
        """Return the new text of a page; what would make it too large for a page stays in the store alone."""
        old, name = seen.text, seen.file.name
        ids = {*changes, *(block.entry.id for block in seen.page.blocks)}
        ranks = {id_: self._order(id_) for id_ in ids if self._at.memory(id_) is not None}
        text = with_changes(old, changes, title=title_of(name), kind=kind_of(name), ranks=ranks)
        if len(text.encode("utf-8")) <= MAX_PAGE_BYTES:
            return text
        room, kept = MAX_PAGE_BYTES - len(old.encode("utf-8")), dict(changes)
        for id_, entry in changes.items():
            room -= 2 * len(entry.text.encode("utf-8", "surrogatepass")) + 1024 if entry else 0
            if entry and room < 0:
                kept[id_] = None
                self._targets[id_] = ""
        left = sum(entry is not None for entry in changes.values()) - sum(entry is not None for entry in kept.values())
        self._at.notice(name, f"is full; {left} memories are not on it")
        return with_changes(old, kept, title=title_of(name), kind=kind_of(name), ranks=ranks)

    def _agree(self, id_: str) -> None:
        """Note what both sides say of one memory, now that its pages are written."""
        at, target = self._at, self._targets[id_]
        stored, found, agreed = at.memory(id_), at.blocks.get(id_), self._agreed_now(id_)
        if {target, found.page if found else ""} & self.failed:
            return
        if stored is None or id_ in self._imported.dropped:
            self.agreed[id_] = None
            return
        if target and id_ in self._rewritten:
            entry = next(block.entry for block in at.seen[target].page.blocks if block.entry.id == id_)
            standing = self._standing(id_, target, agreed)
            self.agreed[id_] = agree(entry, target, stored, at.links(id_), standing)
            self._tally.counts["moved"] += bool(agreed and agreed.page and agreed.page != target)
        elif target:
            self.agreed[id_] = agreed
        else:
            if agreed is None and found is not None:
                agreed = agree(found.entry, found.page, stored, at.links(id_), Standing())
            meaning = digest(meant_by_store(stored, at.links(id_)))
            self.agreed[id_] = replace(agreed, page="", store=meaning, standing=UNSEEN) if agreed else None

    def _standing(self, id_: str, target: str, agreed: Baseline | None) -> Standing:
        """Return how a block stands on a page, now that it was written there from what the store says."""
        at, now = self._at, self._at.runtime.now()
        before = agreed.standing if agreed and agreed.page in (target, "") else UNSEEN
        if id_ in self._imported.missing or agreed is None or agreed.page != target:
            return replace(before, since=now, changed=now, is_seen=before.is_seen or id_ in self._imported.missing)
        found = at.blocks.get(id_)
        is_saved = found is not None and found.page == target and target in at.changed
        stored = at.memory(id_)
        is_as_agreed = stored is not None and agreed.store == digest(meant_by_store(stored, at.links(id_)))
        changed = before.changed if is_as_agreed else now
        return replace(before, changed=changed, is_seen=before.is_seen or is_saved)

    def _agreed_now(self, id_: str) -> Baseline | None:
        return self._imported.agreed.get(id_) or self._at.agreed.get(id_)

    def _order(self, id_: str) -> tuple[float, str, int, str]:
        stored = self._at.memory(id_)
        return (0.0, "", 0, id_) if stored is None else (stored.at, stored.owner.session, stored.owner.position, id_)


def _loss_notice(seen: Seen, copy: str) -> str:
    """Return what people are told of a page that was not believed, words that continue its name."""
    if not seen.damage:
        return "was deleted or emptied; it was written again from the store"
    kept = f"; what stood there is kept in {copy}" if copy else ""
    if copy and NUL not in seen.file.text:
        kept += f": if you meant it, `commonplace sync --accept {copy}` takes it in after all"
    return f"{seen.damage}, and was written again from the store{kept}"


_ATTEMPTS: Final = 5


def forget(folder: Folder, ids: Sequence[str]) -> int:
    """Remove every block of these memories, copies of it too, and the files beside the pages; return how many went.

    A conflict copy goes that names one of them; a damaged page that was kept, also where its page names one: what it
    has of a memory may have lost its mark.
    """
    if not ids or folder.fault():
        return 0
    folder.drop_drafts()
    wanted = set(ids)
    named = {name: _forget_on(folder, name, wanted) for name in sorted(folder.stamps())}
    gone = sum(named.values())
    for name, page in folder.copies().items():
        lines = split_lines(folder.read(name).text)
        is_named = not wanted.isdisjoint(id_in(line.rstrip("\r\n")) for line in lines)
        if is_named or (DAMAGED in name and named.get(page)):
            gone += folder.drop(name)
    if gone:
        folder.settle()
    return gone


def drop_all(folder: Folder) -> int:
    """Remove every page and conflict copy, and the directory where nothing else is in it; return how many files."""
    if folder.fault():
        return 0
    folder.drop_drafts()
    gone = sum(folder.drop(name) for name in [*sorted(folder.stamps()), *folder.copies()])
    folder.drop_directory()
    return gone


def _forget_on(folder: Folder, name: str, wanted: set[str]) -> int:
    for _ in range(_ATTEMPTS):
        file = folder.read(name)
        text, gone = _without(file.text, name, wanted)
        if text == file.text:
            return 0
        is_empty = text.strip() in ("", f"# {title_of(name)}")
        if folder.remove(file) if is_empty else folder.replace(file, text):
            return gone
    raise StoreBusyError(f"{folder.shown(name)} keeps changing", remedy="close it, and try again")


def _without(text: str, name: str, wanted: Collection[str]) -> tuple[str, int]:
    """Return a page without some memories and links to them, and how many blocks went.

    Of an id that stands twice, one goes at a time.
    """
    gone = 0
    while True:
        entries = [block.entry for block in parse_page(text, kind_of(name)).blocks if block.entry.id]
        changes: dict[str, Entry | None] = {}
        for entry in entries:
            kept = tuple(link for link in entry.links if link not in wanted)
            if entry.id in wanted:
                gone += entry.id not in changes
                changes[entry.id] = None
            elif kept != entry.links:
                changes[entry.id] = replace(entry, links=kept)
        if not changes:
            return text, gone
        text = with_changes(text, changes, title=title_of(name), kind=kind_of(name))


_SETTLED_AT_ONCE: Final = 1_000
"""So that other writers wait for milliseconds only."""


def run(
    runtime: JournalRuntime,
    folder: Folder,
    tally: Tally,
    wall_ns: int | None,
    believed: Collection[str],
) -> bool:
    """Bring pages and store together once; return False where a page was changed meanwhile and it is to be done again.

    Args:
        wall_ns: see `Snapshot.look`.
        believed: pages of which a person has said that what is missing was meant to go.

    Raises:
        OSError: a directory cannot be read or written; pages that cannot are told by notices instead.
    """
    at = Snapshot(runtime, folder, tally, believed)
    if wall_ns is not None and not (at.due or at.news or at.gone):
        return True
    folder.drop_drafts()
    at.look(wall_ns)
    imported = EditImport(at)
    if not imported.take_notes():
        return False
    fresh = {name for name, seen in at.seen.items() if seen.is_news or seen.is_lost}
    ids = {*at.due, *imported.forgotten, *(id_ for id_, agreed in at.agreed.items() if agreed.page in fresh)}
    ids |= {id_ for id_, found in at.blocks.items() if found.page in fresh}
    at.load(ids)
    imported.take_edits(ids, within_budget(at) if LONG_TERM_PAGE in at.seen else ())
    if tally.changes or imported.missing:
        # What was taken in is agreed on, whatever becomes of the pages.
        dropped: dict[str, Baseline | None] = dict.fromkeys(imported.dropped)
        # What else was new on a page is none any more: so it could not be told again who has missing what.
        missing = {
            id_: replace(at.agreed[id_], page="", standing=replace(at.agreed[id_].standing, is_seen=True))
            for id_ in imported.missing
        }
        _record(at, {**imported.agreed, **dropped, **missing}, due=imported.missing)
    writer = PageWriter(at, imported)
    writer.place(ids)
    if tally.counts["pages_written"]:
        folder.settle()
    tally.read |= at.changed
    recorded = [name for name in at.seen if name not in writer.failed | at.unsure]
    settled = [id_ for id_ in sorted({*at.due, *imported.written}) if id_ in writer.agreed]
    _record(at, writer.agreed, settled=settled[:_SETTLED_AT_ONCE], pages=recorded)
    for begin in range(_SETTLED_AT_ONCE, len(settled), _SETTLED_AT_ONCE):
        _record(at, {}, settled=settled[begin : begin + _SETTLED_AT_ONCE])
    return not writer.is_stale


def _record(
    at: Snapshot,
    agreed: Mapping[str, Baseline | None],
    *,
    settled: Iterable[str] = (),
    pages: Iterable[str] = (),
    due: Iterable[str] = (),
) -> None:
    """Write to the store what is agreed on.

    Args:
        settled: ids whose pages are written; what somebody changed since it was read stays due.
        pages: whose state is to be known.
        due: ids whose pages are to be written.
    """
    runtime, done = at.runtime, list(settled)
    space = runtime.namespace
    files = [at.seen[name].file for name in pages]
    states = {each.name: None if each.data is None else JournalPage(each.name, *each.stamp, each.sum) for each in files}
    changed = {name: state for name, state in states.items() if state != at.known.get(name)}
    fresh = {id_: each for id_, each in agreed.items() if each is None or each != at.agreed.get(id_)}
    if not (done or changed or fresh) or space not in runtime.store.namespaces():
        return
    with runtime.store.change_memories(space) as change:
        # Nobody else can write now, so this is what holds when the change is committed.
        ids = [*done, *fresh]
        now, links = read_memories(runtime, ids), read_links(runtime, ids)
        for id_, each in fresh.items():
            if each is None or id_ not in now:
                change.drop(JournalBlock, id=id_)
            else:
                change.put(JournalBlock(id_, each.page, encode(each)))
        for id_ in due:
            if id_ in now:
                change.revise(now[id_].number, now[id_].record)
        for name, state in changed.items():
            if state is None:
                change.drop(JournalPage, page=name)
            else:
                change.put(state)
        change.settle_due(
            [
                id_
                for id_ in done
                if _shown(now.get(id_)) == _shown(at.memory(id_)) and links.get(id_, ()) == at.links(id_)
            ]
        )


def _shown(stored: StoredMemory | None) -> tuple[object, ...]:
    """Return what of a memory a page tells."""
    if stored is None:
        return ()
    record, owner = stored.record, stored.owner
    return (stored.expired_at is None, record.tier, record.content, record.category, owner.tags, owner.at)
