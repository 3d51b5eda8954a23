"""Write memories to pages and remove deleted ones, leaving other text unchanged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.errors import StoreBusyError
from commonplace.formats.journal import MAX_TOKENS, SECTIONS, Entry, id_in, parse_page, render_entry, split_lines
from commonplace.formats.journal_edit import digest, with_changes
from commonplace.journal.baseline import UNSEEN, Baseline, Standing, agree, encode, meant_by_store
from commonplace.journal.folder import DAMAGED, MAX_PAGE_BYTES, NUL, Folder, PageFile
from commonplace.journal.import_edits import EditImport
from commonplace.journal.pages import entry_of, kind_of, title_of
from commonplace.journal.snapshot import Seen, Snapshot, read_memories
from commonplace.journal.sync import JournalRuntime, Tally
from commonplace.settings.paths import LONG_TERM_PAGE
from commonplace.types import JournalBlock, JournalPage, Selection, StoredMemory

_MIN_TOKENS: Final = 12
"""An entry with its heading and the comment that carries its id has more."""
_SETTLED_AT_ONCE: Final = 1_000
"""So that other writers wait for milliseconds only."""
_ATTEMPTS: Final = 5


def within_budget(at: Snapshot, rewritten: Collection[str] = ()) -> set[str]:
    """Return the ids of the long-term memories that are to be on the long-term page; ties by id.

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
        settled: ids of which it is known what both sides say from now on: the snapshot has it.
        failed: pages that could not be written.
        is_stale: a page was changed by somebody else meanwhile; the run has to be done once more.
    """

    def __init__(self, at: Snapshot, imported: EditImport) -> None:
        self._at = at
        self._tally = at.tally
        self._imported = imported
        self._targets: dict[str, str] = {}
        self._rewritten: set[str] = set()
        self.settled: set[str] = set()
        self.failed: set[str] = set()
        self.is_stale = False

    def place(self, ids: Iterable[str]) -> None:
        """Write the pages on which these memories are, or are to be."""
        at, imported, listed = self._at, self._imported, set(ids)
        outdated = {id_ for id_ in listed if imported.verdicts.get(id_) in ("take store", "conflict")}
        outdated |= imported.reheaded
        room: set[str] = set()
        long = (each for id_ in listed if (each := at.memory(id_)) is not None and each.record.tier == "long")
        if LONG_TERM_PAGE in at.seen or any(each.expired_at is None for each in long):
            room = within_budget(at, outdated)
            listed |= room | {id_ for id_, found in at.blocks.items() if found.page == LONG_TERM_PAGE}
        changes: dict[str, _Changes] = defaultdict(dict)
        for id_ in sorted(listed - imported.refused, key=self._order):
            stored, found, agreed = at.memory(id_), at.blocks.get(id_), at.agreed.get(id_)
            home = agreed.page if agreed else ""
            if stored is None and found is not None and id_ not in imported.forgotten:
                continue  # a note that was not taken in
            if home in at.left or (found is None and home in at.stamps and home not in at.seen):
                continue
            target = at.likely_page(stored, agreed)
            if target == LONG_TERM_PAGE and id_ not in room:
                target = ""
            if target and at.page(target) is None:
                continue
            self._targets[id_] = target
            if found is not None and found.page != target:
                changes[found.page][id_] = None
            stays = found is not None and found.page == target and id_ not in outdated
            if target and stored is not None and not stays:
                written = found.entry.links if found else ()
                links = [*at.links(id_), *(link for link in written if at.memory(link) is None)]
                self._rewritten.add(id_)
                changes[target][id_] = entry_of(stored, kind_of(target), links, at.own_sections())
        for name in sorted(changes):
            self._write(at.seen[name], changes[name])
        for id_ in self._targets:
            self._settle(id_)

    def _write(self, seen: Seen, changes: _Changes) -> None:
        """Write one page, or note that it could not be."""
        at, name, old = self._at, seen.file.name, seen.file
        text = self._changed(seen, changes)
        if text == old.text and (text.strip() or not seen.is_lost):
            return
        copy = f"{name.removesuffix('.md')}{DAMAGED}{old.sum[:8]}.md" if seen.text != old.text else ""
        written: PageFile | None = PageFile(name)
        try:
            if copy:
                at.folder.keep(copy, old.text)
            if text.strip() not in ("", f"# {title_of(name)}"):
                written = at.folder.replace(old, text)
            elif old.data is not None and not at.folder.remove(old):
                written = None
        except OSError as error:
            self.failed.add(name)
            at.notice(name, f"could not be written ({error.strerror}); its memories are in the store")
            return
        if written is None:
            self.failed.add(name)
            self.is_stale = True
            return
        self._tally.counts["pages_written"] += written.data is not None
        at.reread(written)
        shown = at.folder.shown(copy) if copy else ""
        if copy:
            self._tally.conflicts[shown] = None
        if seen.is_lost and written.data is not None:
            kept = f"; what stood there is kept in {shown}" if copy else ""
            if copy and NUL not in old.text:
                kept += f": if you meant it, `commonplace sync --accept {shown}` takes it in after all"
            loss = f"{seen.damage}, and was written again from the store{kept}"
            at.notice(name, loss if seen.damage else "was deleted or emptied; it was written again from the store")

    def _changed(self, seen: Seen, changes: _Changes) -> str:
        """Return the new text of a page; what would make it too large for a page stays in the store alone."""
        old, name = seen.text, seen.file.name
        ids = {*changes, *(block.entry.id for block in seen.page.blocks)}
        ranks = {id_: self._order(id_) for id_ in ids if self._at.memory(id_) is not None}
        text = with_changes(old, changes, title=title_of(name), kind=kind_of(name), ranks=ranks)
        if len(text.encode("utf-8")) <= MAX_PAGE_BYTES:
            return text
        room, kept, left = MAX_PAGE_BYTES - len(old.encode("utf-8")), dict(changes), 0
        for id_, entry in changes.items():
            room -= 2 * len(entry.text.encode("utf-8", "surrogatepass")) + 1024 if entry else 0
            if entry and room < 0:
                kept[id_] = None
                self._targets[id_] = ""
                left += 1
        self._at.notice(name, f"is full; {left} memories are not on it")
        return with_changes(old, kept, title=title_of(name), kind=kind_of(name), ranks=ranks)

    def _settle(self, id_: str) -> None:
        """Note what both sides say of one memory, now that its pages are written."""
        at, target, missing = self._at, self._targets[id_], id_ in self._at.missing
        stored, found, agreed = at.memory(id_), at.blocks.get(id_), at.agreed.get(id_)
        if {target, found.page if found else ""} & self.failed:
            return
        self.settled.add(id_)
        if stored is None or id_ in self._imported.dropped:
            at.agreed.pop(id_, None)
            return
        links = at.links(id_)
        if target and id_ in self._rewritten:
            # From now on the block has words of the store's own, which a person may not have seen.
            entry = next(block.entry for block in at.seen[target].page.blocks if block.entry.id == id_)
            now = at.runtime.now()
            before = agreed.standing if agreed and agreed.page in (target, "") else UNSEEN
            if missing or agreed is None or agreed.page != target:
                standing = replace(before, since=now, changed=now, is_seen=before.is_seen or missing)
            else:
                is_saved = found is not None and found.page == target and target in at.changed
                is_as_agreed = agreed.store == digest(meant_by_store(stored, links))
                changed = before.changed if is_as_agreed else now
                standing = replace(before, changed=changed, is_seen=before.is_seen or is_saved)
            at.agreed[id_] = agree(entry, target, stored, links, standing)
            self._tally.counts["moved"] += bool(agreed and agreed.page and agreed.page != target)
        elif not target:
            if agreed is None and found is not None:
                agreed = agree(found.entry, found.page, stored, links, Standing())
            if agreed is not None:
                meaning = digest(meant_by_store(stored, links))
                at.agreed[id_] = replace(agreed, page="", store=meaning, standing=UNSEEN)

    def _order(self, id_: str) -> tuple[float, str, int, str]:
        stored = self._at.memory(id_)
        return (0.0, "", 0, id_) if stored is None else (stored.at, stored.owner.session, stored.owner.position, id_)


def forget(folder: Folder, ids: Sequence[str]) -> int:
    """Remove every block of these memories, copies of it too, and the files beside the pages; return how many went.

    What else is on a page stays as it is, also what was not taken in yet. Nothing is written to the store. A conflict
    copy goes that names one of them; a damaged page that was kept, also where its page names one: what it has of a
    memory may have lost its mark.
    """
    if not ids or folder.fault():
        return 0
    folder.drop_drafts()
    wanted = set(ids)
    named: dict[str, int] = {}
    for name in sorted(folder.stamps()):
        for _ in range(_ATTEMPTS):
            file = folder.read(name)
            text, named[name] = _without(file.text, name, wanted)
            is_empty = text.strip() in ("", f"# {title_of(name)}")
            if text == file.text or (folder.remove(file) if is_empty else folder.replace(file, text)):
                break
        else:
            raise StoreBusyError(f"{folder.shown(name)} keeps changing", remedy="close it, and try again")
    gone = sum(named.values())
    for name, page in folder.copies().items():
        lines = split_lines(folder.read(name).text)
        is_named = not wanted.isdisjoint(id_in(line.rstrip("\r\n")) for line in lines)
        if is_named or (DAMAGED in name and named.get(page)):
            gone += folder.drop(name)
    if gone:
        folder.settle()
    return gone


def _without(text: str, name: str, wanted: Collection[str]) -> tuple[str, int]:
    """Return a page without some memories and links to them, and how many blocks went.

    Of an id that is there twice, one goes at a time.
    """
    gone = 0
    while True:
        entries = [block.entry for block in parse_page(text, kind_of(name)).blocks if block.entry.id]
        changes: _Changes = {}
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


def drop_all(folder: Folder) -> int:
    """Remove every page and conflict copy, and the directory where nothing else is in it; return how many files."""
    if folder.fault():
        return 0
    folder.drop_drafts()
    gone = sum(folder.drop(name) for name in [*sorted(folder.stamps()), *folder.copies()])
    folder.drop_directory()
    return gone


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
    is_changed = any(tally.counts[name] for name in ("added", "updated", "archived", "restored"))
    if is_changed or at.missing:
        # What was taken in is agreed on, whatever becomes of the pages.
        found: dict[str, Baseline | None] = {id_: at.agreed[id_] for id_ in imported.accepted}
        found |= dict.fromkeys(imported.dropped)
        # What else was new on a page is none any more: so it could not be told again who has missing what.
        for id_ in at.missing:
            baseline = at.agreed[id_]
            found[id_] = replace(baseline, page="", standing=replace(baseline.standing, is_seen=True))
        _record(at, found, due=at.missing)
    writer = PageWriter(at, imported)
    writer.place(ids)
    if tally.counts["pages_written"]:
        folder.settle()
    tally.read |= at.changed
    recorded = [name for name in at.seen if name not in writer.failed | at.unsure]
    settled = [id_ for id_ in sorted({*at.due, *imported.written}) if id_ in writer.settled]
    found = {id_: at.agreed.get(id_) for id_ in writer.settled}
    _record(at, found, settled=settled[:_SETTLED_AT_ONCE], pages=recorded)
    for begin in range(_SETTLED_AT_ONCE, len(settled), _SETTLED_AT_ONCE):
        _record(at, {}, settled=settled[begin : begin + _SETTLED_AT_ONCE])
    return not writer.is_stale


def _record(
    at: Snapshot,
    found: dict[str, Baseline | None],
    *,
    settled: Sequence[str] = (),
    pages: Iterable[str] = (),
    due: Iterable[str] = (),
) -> None:
    """Write to the store what is agreed on.

    Args:
        found: the baselines of some memories, None for one that has none any more.
        settled: ids whose pages are written; what somebody changed since it was read stays due.
        pages: whose state is to be known.
        due: ids whose pages are to be written.
    """
    runtime, space = at.runtime, at.runtime.namespace
    files = [at.seen[name].file for name in pages]
    states = {each.name: None if each.data is None else JournalPage(each.name, *each.stamp, each.sum) for each in files}
    changed = {name: state for name, state in states.items() if state != at.known.get(name)}
    fresh = {id_: each for id_, each in found.items() if each is None or each != at.recorded.get(id_)}
    if not (settled or changed or fresh) or space not in runtime.store.namespaces():
        return
    with runtime.store.change_memories(space) as change:
        # Nobody else can write now, so this is what holds when the change is committed.
        now, links = read_memories(runtime, [*settled, *fresh])
        for id_, each in fresh.items():
            if each is None or id_ not in now:
                change.drop(JournalBlock, id=id_)
                at.recorded.pop(id_, None)
            else:
                change.put(JournalBlock(id_, each.page, encode(each)))
                at.recorded[id_] = each
        for id_ in due:
            if id_ in now:
                change.revise(now[id_].number, now[id_].record)
        for name, state in changed.items():
            if state is None:
                change.drop(JournalPage, page=name)
            else:
                change.put(state)
        as_read = [id_ for id_ in settled if _shown(now.get(id_)) == _shown(at.memory(id_))]
        change.settle_due([id_ for id_ in as_read if links.get(id_, ()) == at.links(id_)])


def _shown(stored: StoredMemory | None) -> tuple[object, ...]:
    """Return what of a memory a page shows."""
    if stored is None:
        return ()
    record, owner = stored.record, stored.owner
    return (stored.expired_at is None, record.tier, record.content, record.category, owner.tags, owner.at)
