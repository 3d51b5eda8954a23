"""Write memories to pages and remove deleted ones, leaving other text unchanged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.errors import StoreBusyError
from commonplace.formats.journal import MAX_TOKENS, SECTIONS, Entry, id_in, parse_page, render_entry, split_lines
from commonplace.formats.journal_edit import digest, update_page
from commonplace.journal.baseline import UNSEEN, Baseline, BlockHistory, agree, encode, entry_in_store
from commonplace.journal.folder import DAMAGED, MAX_PAGE_BYTES, NUL, Folder, PageFile
from commonplace.journal.import_edits import EditImport
from commonplace.journal.pages import entry_of, kind_of, title_of
from commonplace.journal.snapshot import PageState, Snapshot, read_memories
from commonplace.journal.sync import JournalRuntime, Tally
from commonplace.settings.paths import LONG_TERM_PAGE
from commonplace.types import JournalBlock, JournalPage, Selection, StoredMemory

_MIN_TOKENS: Final = 12
"""Lower bound of an entry's tokens: its heading and the comment with its id alone have more."""
_BATCH_SIZE: Final = 1_000
"""Number of memories settled in one transaction, so that other writers wait for milliseconds only."""
_ATTEMPTS: Final = 5


def within_budget(snapshot: Snapshot, rewritten: Collection[str] = ()) -> set[str]:
    """Return the ids of the long-term memories that fit on the long-term page, by retention, ties by id.

    Args:
        rewritten: ids whose block on the page will be rewritten.
    """
    page, runtime, own_sections = snapshot.page(LONG_TERM_PAGE), snapshot.runtime, snapshot.own_sections()
    if page is None:
        return set()
    selection = Selection(tiers=("long",), statuses=("active", "promoted"), order="id")
    memories = [memory for memory in runtime.store.memories(runtime.namespace, selection) if memory.expired_at is None]
    now = runtime.now()
    memories.sort(key=lambda item: (-runtime.retention.raw(item.record, now), item.owner.id))
    blocks = {block.entry.id: block for block in page.page.blocks if block.entry.id}
    remainder = update_page(page.text, dict.fromkeys(blocks), title=title_of(LONG_TERM_PAGE), kind="long")
    names = {section.name for section in page.page.sections}
    # Count all headings that may be needed, so that what fits now still fits once they are written.
    frame = [f"# {title_of(LONG_TERM_PAGE)}"] if not remainder.strip() else []
    frame += [f"## {name}" for name in SECTIONS if name not in names]
    used = runtime.count_tokens("\n".join([remainder, *frame]))
    unchanged = {id_: block for id_, block in blocks.items() if id_ not in rewritten}
    snapshot.load([item.owner.id for item in memories if item.owner.id not in unchanged])
    chosen: set[str] = set()
    budget = MAX_TOKENS - used
    for stored in memories:
        if budget <= _MIN_TOKENS:
            break
        id_, block = stored.owner.id, unchanged.get(stored.owner.id)
        text = block.raw if block else render_entry(entry_of(stored, "long", snapshot.links(id_), own_sections), "long")
        tokens = runtime.count_tokens(text)
        # An entry that is too long is skipped, so that it does not keep out others.
        if tokens < budget:
            budget -= tokens
            chosen.add(id_)
    return chosen


_Changes = dict[str, Entry | None]


class PageWriter:
    """Updates the pages from the store.

    Attributes:
        settled: ids whose baseline in the snapshot is up to date.
        failed: pages that could not be written.
        is_stale: whether somebody else has changed a page in the meantime, so that the run must be repeated.
    """

    def __init__(self, snapshot: Snapshot, imported: EditImport) -> None:
        self._snapshot = snapshot
        self._tally = snapshot.tally
        self._imported = imported
        self._targets: dict[str, str] = {}
        self._rewritten: set[str] = set()
        self.settled: set[str] = set()
        self.failed: set[str] = set()
        self.is_stale = False

    def write(self, ids: Iterable[str]) -> None:
        """Write the pages that these memories are on, or belong on."""
        snapshot, imported, listed = self._snapshot, self._imported, set(ids)
        outdated = {id_ for id_ in listed if imported.verdicts.get(id_) in ("take store", "conflict")}
        outdated |= imported.outdated
        room: set[str] = set()
        long = (match for id_ in listed if (match := snapshot.memory(id_)) is not None and match.record.tier == "long")
        if LONG_TERM_PAGE in snapshot.pages or any(match.expired_at is None for match in long):
            room = within_budget(snapshot, outdated)
            listed |= room | {id_ for id_, block in snapshot.blocks.items() if block.page == LONG_TERM_PAGE}
        changes: dict[str, _Changes] = defaultdict(dict)
        for id_ in sorted(listed - imported.refused, key=self._order):
            stored, block, baseline = snapshot.memory(id_), snapshot.blocks.get(id_), snapshot.baselines.get(id_)
            home = baseline.page if baseline else ""
            if stored is None and block is not None and id_ not in imported.forgotten:
                continue  # a note that was not imported
            if home in snapshot.skipped or (block is None and home in snapshot.stamps and home not in snapshot.pages):
                continue
            target = snapshot.likely_page(stored, baseline)
            if target == LONG_TERM_PAGE and id_ not in room:
                target = ""
            if target and snapshot.page(target) is None:
                continue
            self._targets[id_] = target
            if block is not None and block.page != target:
                changes[block.page][id_] = None
            stays = block is not None and block.page == target and id_ not in outdated
            if target and stored is not None and not stays:
                old_links = block.entry.links if block else ()
                links = [*snapshot.links(id_), *(link for link in old_links if snapshot.memory(link) is None)]
                self._rewritten.add(id_)
                changes[target][id_] = entry_of(stored, kind_of(target), links, snapshot.own_sections())
        for name in sorted(changes):
            self._write(snapshot.pages[name], changes[name])
        for id_ in self._targets:
            self._settle(id_)

    def _write(self, page: PageState, changes: _Changes) -> None:
        """Write one page; if that fails, add it to `failed`."""
        snap, name, old = self._snapshot, page.file.name, page.file
        text = self._new_text(page, changes)
        if text == old.text and (text.strip() or not page.is_lost):
            return
        copy = f"{name.removesuffix('.md')}{DAMAGED}{old.sum[:8]}.md" if page.text != old.text else ""
        new_file: PageFile | None = PageFile(name)
        try:
            if copy:
                snap.folder.keep(copy, old.text)
            if text.strip() not in ("", f"# {title_of(name)}"):
                new_file = snap.folder.replace(old, text)
            elif old.data is not None and not snap.folder.remove(old):
                new_file = None
        except OSError as error:
            self.failed.add(name)
            snap.notice(name, f"could not be written ({error.strerror}); its memories are in the store")
            return
        if new_file is None:
            self.failed.add(name)
            self.is_stale = True
            return
        self._tally.counts["pages_written"] += new_file.data is not None
        snap.reread(new_file)
        shown = snap.folder.page_path(copy) if copy else ""
        if copy:
            self._tally.conflicts[shown] = None
        if page.is_lost and new_file.data is not None:
            hint = f"; what stood there is kept in {shown}" if copy else ""
            if copy and NUL not in old.text:
                hint += f": if you meant it, `commonplace sync --accept {shown}` takes it in after all"
            loss = f"{page.damage}, and was written again from the store{hint}"
            snap.notice(name, loss if page.damage else "was deleted or emptied; it was written again from the store")

    def _new_text(self, page: PageState, changes: _Changes) -> str:
        """Return the new text of a page; entries that would make it too large stay in the store alone."""
        old, name = page.text, page.file.name
        ids = {*changes, *(block.entry.id for block in page.page.blocks)}
        ranks = {id_: self._order(id_) for id_ in ids if self._snapshot.memory(id_) is not None}
        text = update_page(old, changes, title=title_of(name), kind=kind_of(name), ranks=ranks)
        if len(text.encode("utf-8")) <= MAX_PAGE_BYTES:
            return text
        room, fitting, omitted = MAX_PAGE_BYTES - len(old.encode("utf-8")), dict(changes), 0
        for id_, entry in changes.items():
            room -= 2 * len(entry.text.encode("utf-8", "surrogatepass")) + 1024 if entry else 0
            if entry and room < 0:
                fitting[id_] = None
                self._targets[id_] = ""
                omitted += 1
        self._snapshot.notice(name, f"is full; {omitted} memories are not on it")
        return update_page(old, fitting, title=title_of(name), kind=kind_of(name), ranks=ranks)

    def _settle(self, id_: str) -> None:
        """Update the baseline of one memory, now that its pages are written."""
        snapshot, target, missing = self._snapshot, self._targets[id_], id_ in self._snapshot.missing
        stored, block, baseline = snapshot.memory(id_), snapshot.blocks.get(id_), snapshot.baselines.get(id_)
        if {target, block.page if block else ""} & self.failed:
            return
        self.settled.add(id_)
        if stored is None or id_ in self._imported.dropped:
            snapshot.baselines.pop(id_, None)
            return
        links = snapshot.links(id_)
        if target and id_ in self._rewritten:
            # The block now has the store's words, which a person may not have seen.
            entry = next(item.entry for item in snapshot.pages[target].page.blocks if item.entry.id == id_)
            now = snapshot.runtime.now()
            previous = baseline.history if baseline and baseline.page in (target, "") else UNSEEN
            if missing or baseline is None or baseline.page != target:
                history = replace(previous, since=now, changed=now, is_seen=previous.is_seen or missing)
            else:
                is_saved = block is not None and block.page == target and target in snapshot.changed
                is_unchanged = baseline.store == digest(entry_in_store(stored, links))
                changed = previous.changed if is_unchanged else now
                history = replace(previous, changed=changed, is_seen=previous.is_seen or is_saved)
            snapshot.baselines[id_] = agree(entry, target, stored, links, history)
            self._tally.counts["moved"] += bool(baseline and baseline.page and baseline.page != target)
        elif not target:
            if baseline is None and block is not None:
                baseline = agree(block.entry, block.page, stored, links, BlockHistory())
            if baseline is not None:
                meaning = digest(entry_in_store(stored, links))
                snapshot.baselines[id_] = replace(baseline, page="", store=meaning, history=UNSEEN)

    def _order(self, id_: str) -> tuple[float, str, int, str]:
        memory = self._snapshot.memory(id_)
        return (0.0, "", 0, id_) if memory is None else (memory.at, memory.owner.session, memory.owner.position, id_)


def forget(folder: Folder, ids: Sequence[str]) -> int:
    """Remove all blocks of these memories, including copies, and files beside the pages; return the number removed.

    Everything else on a page stays, even if it was not imported yet. Nothing is written to the store. A conflict copy
    that names one of the memories is removed; the copy of a damaged page also if its page names one, since its text of
    a memory may have lost the id.
    """
    if not ids or folder.fault():
        return 0
    folder.drop_drafts()
    id_set = set(ids)
    removed: dict[str, int] = {}
    for name in sorted(folder.stamps()):
        for _ in range(_ATTEMPTS):
            file = folder.read(name)
            text, removed[name] = _without(file.text, name, id_set)
            is_empty = text.strip() in ("", f"# {title_of(name)}")
            if text == file.text or (folder.remove(file) if is_empty else folder.replace(file, text)):
                break
        else:
            raise StoreBusyError(f"{folder.page_path(name)} keeps changing", remedy="close it, and try again")
    count = sum(removed.values())
    for name, page in folder.copies().items():
        lines = split_lines(folder.read(name).text)
        is_named = not id_set.isdisjoint(id_in(line.rstrip("\r\n")) for line in lines)
        if is_named or (DAMAGED in name and removed.get(page)):
            count += folder.drop(name)
    if count:
        folder.sync_directories()
    return count


def _without(text: str, name: str, ids: Collection[str]) -> tuple[str, int]:
    """Return a page without these memories and links to them, and the number of blocks removed.

    Blocks with the same id are removed one at a time.
    """
    count = 0
    while True:
        entries = [block.entry for block in parse_page(text, kind_of(name)).blocks if block.entry.id]
        changes: _Changes = {}
        for entry in entries:
            links = tuple(link for link in entry.links if link not in ids)
            if entry.id in ids:
                count += entry.id not in changes
                changes[entry.id] = None
            elif links != entry.links:
                changes[entry.id] = replace(entry, links=links)
        if not changes:
            return text, count
        text = update_page(text, changes, title=title_of(name), kind=kind_of(name))


def drop_all(folder: Folder) -> int:
    """Remove all pages and kept copies, and the directory if it is then empty; return the number of files removed."""
    if folder.fault():
        return 0
    folder.drop_drafts()
    count = sum(folder.drop(name) for name in [*sorted(folder.stamps()), *folder.copies()])
    folder.drop_directory()
    return count


def run(
    runtime: JournalRuntime,
    folder: Folder,
    tally: Tally,
    wall_ns: int | None,
    accepted: Collection[str],
) -> bool:
    """Synchronise pages and store once; return False if a page changed in the meantime and the run must be repeated.

    Args:
        wall_ns: see `Snapshot.look`.
        accepted: pages for which a person has confirmed that missing entries were removed on purpose.

    Raises:
        OSError: a directory cannot be read or written; pages that cannot are reported in notices instead.
    """
    snapshot = Snapshot(runtime, folder, tally, accepted)
    if wall_ns is not None and not (snapshot.due or snapshot.changed_stamps or snapshot.deleted_pages):
        return True
    folder.drop_drafts()
    snapshot.read(wall_ns)
    imported = EditImport(snapshot)
    if not imported.import_notes():
        return False
    pages = {name for name, seen in snapshot.pages.items() if seen.is_dirty or seen.is_lost}
    ids = {*snapshot.due, *imported.forgotten, *(id_ for id_, base in snapshot.baselines.items() if base.page in pages)}
    ids |= {id_ for id_, block in snapshot.blocks.items() if block.page in pages}
    snapshot.load(ids)
    imported.import_edits(ids, within_budget(snapshot) if LONG_TERM_PAGE in snapshot.pages else ())
    is_changed = any(tally.counts[name] for name in ("added", "updated", "archived", "restored"))
    if is_changed or snapshot.missing:
        # Record the baselines of imported edits now, whatever happens to the pages.
        baselines: dict[str, Baseline | None] = {id_: snapshot.baselines[id_] for id_ in imported.accepted}
        baselines |= dict.fromkeys(imported.dropped)
        # The rest of what was new on a page is then old, so a later run could not detect missing entries again.
        for id_ in snapshot.missing:
            baseline = snapshot.baselines[id_]
            baselines[id_] = replace(baseline, page="", history=replace(baseline.history, is_seen=True))
        _record(snapshot, baselines, due=snapshot.missing)
    writer = PageWriter(snapshot, imported)
    writer.write(ids)
    if tally.counts["pages_written"]:
        folder.sync_directories()
    tally.read |= snapshot.changed
    recorded = [name for name in snapshot.pages if name not in writer.failed | snapshot.unsettled]
    settled = [id_ for id_ in sorted({*snapshot.due, *imported.changed}) if id_ in writer.settled]
    baselines = {id_: snapshot.baselines.get(id_) for id_ in writer.settled}
    _record(snapshot, baselines, settled=settled[:_BATCH_SIZE], pages=recorded)
    for begin in range(_BATCH_SIZE, len(settled), _BATCH_SIZE):
        _record(snapshot, {}, settled=settled[begin : begin + _BATCH_SIZE])
    return not writer.is_stale


def _record(
    snapshot: Snapshot,
    baselines: dict[str, Baseline | None],
    *,
    settled: Sequence[str] = (),
    pages: Iterable[str] = (),
    due: Iterable[str] = (),
) -> None:
    """Write baselines and page states to the store.

    Args:
        baselines: baselines by id, None for a memory that no longer has one.
        settled: ids whose pages are written; a memory that was changed since it was read stays due.
        pages: names of the pages whose state is recorded.
        due: ids whose pages are still to be written.
    """
    runtime, namespace = snapshot.runtime, snapshot.runtime.namespace
    files = [snapshot.pages[name].file for name in pages]
    states = {file.name: None if file.data is None else JournalPage(file.name, *file.stamp, file.sum) for file in files}
    changed = {name: state for name, state in states.items() if state != snapshot.records.get(name)}
    new_baselines = {id_: base for id_, base in baselines.items() if base is None or base != snapshot.recorded.get(id_)}
    if not (settled or changed or new_baselines) or namespace not in runtime.store.namespaces():
        return
    with runtime.store.change_memories(namespace) as change:
        # No other writer can enter now, so this is the state when the change is committed.
        current, links = read_memories(runtime, [*settled, *new_baselines])
        for id_, base in new_baselines.items():
            if base is None or id_ not in current:
                change.drop(JournalBlock, id=id_)
                snapshot.recorded.pop(id_, None)
            else:
                change.put(JournalBlock(id_, base.page, encode(base)))
                snapshot.recorded[id_] = base
        for id_ in due:
            if id_ in current:
                change.revise(current[id_].number, current[id_].record)
        for name, state in changed.items():
            if state is None:
                change.drop(JournalPage, page=name)
            else:
                change.put(state)
        as_read = [id_ for id_ in settled if _shown(current.get(id_)) == _shown(snapshot.memory(id_))]
        change.settle_due([id_ for id_ in as_read if links.get(id_, ()) == snapshot.links(id_)])


def _shown(stored: StoredMemory | None) -> tuple[object, ...]:
    """Return the values of a memory that a page shows."""
    if stored is None:
        return ()
    record, owner = stored.record, stored.owner
    return (stored.expired_at is None, record.tier, record.content, record.category, owner.tags, owner.at)
