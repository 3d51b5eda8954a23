"""Import people's notes and edits on pages into the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.journal import Entry, category_of
from commonplace.formats.journal_edit import MergeResult, assign_ids, conflict_copy, merge
from commonplace.journal.baseline import (
    Baseline,
    BlockHistory,
    agree,
    content_of,
    differences,
    entry_in_file,
    entry_in_store,
    text_digest,
)
from commonplace.journal.pages import entry_of, kind_of, local_time, stated_time, timestamp_of
from commonplace.journal.snapshot import PageBlock, Snapshot, without_secrets
from commonplace.ledger.rules import undone_creations
from commonplace.memory.validate import reject_invalid_id, validate_memory
from commonplace.types import StoredMemory

_NOON: Final = 12 * 60
_LINK_TYPE: Final = "related"


class EditImport:
    """Imports what is new on the pages.

    Attributes:
        verdicts: verdicts by id, for the memories whose block was compared.
        accepted: ids whose block and memory are equal, or were made equal by this run.
        refused: ids whose edit the store refused; their block stays as it is.
        dropped: ids whose block a person removed.
        outdated: ids whose block must be rewritten, for its heading or its kind of page has changed.
        forgotten: ids on pages that were forgotten, or erased by an undo; their blocks are removed.
        changed: ids of the memories that the import has changed in the store.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tally = snapshot.tally
        self.verdicts: dict[str, MergeResult] = {}
        self.accepted: set[str] = set()
        self.refused: set[str] = set()
        self.dropped: set[str] = set()
        self.outdated: set[str] = set()
        self.forgotten: set[str] = set()
        self.changed: set[str] = set()

    def import_notes(self) -> bool:
        """Store the notes as memories; return False if a page changed in the meantime and the run must start again.

        The ids are written to the page before the memories to the store: a run that is killed in between leaves blocks
        with unknown ids, which are then imported under these ids.
        """
        snapshot = self._snapshot
        items: dict[str, dict[str, Any]] = {}
        ids_by_page: dict[str, dict[int, str]] = defaultdict(dict)
        for id_, note in snapshot.returned_notes.items():
            ids_by_page[note.page][note.index] = id_
            snapshot.blocks[id_] = replace(note, entry=replace(note.entry, id=id_))
        notes = [note for note in snapshot.notes if note not in snapshot.returned_notes.values()]
        for block, has_id in [*((block, True) for block in self._unknown()), *((note, False) for note in notes)]:
            if (item := self._item(block)) is None:
                continue
            item["id"] = block.entry.id
            if has_id and _is_valid_id(block.entry.id):
                self._tally.notice(
                    f"{item['source']} has a memory {block.entry.id!r:.80} that the store did not know; it was imported"
                )
            else:
                item["id"] = ids_by_page[block.page][block.index] = str(uuid4())
            items[item["id"]] = item
        for name, ids in ids_by_page.items():
            file = snapshot.pages[name].file
            try:
                new_file = snapshot.folder.replace(file, assign_ids(file.text, ids, kind_of(name)))
            except OSError as error:
                self._postpone(name, f"its new notes could not get their ids ({error.strerror})")
                for id_ in ids.values():
                    items.pop(id_, None)
                continue
            if new_file is None:
                return False
            self._tally.counts["pages_written"] += 1
            page = snapshot.reread(new_file)
            snapshot.blocks |= {id_: PageBlock(name, index, page.blocks[index].entry) for index, id_ in ids.items()}
        # Forced: what a person wrote down becomes a memory even if it repeats another one.
        for memory in snapshot.runtime.service().remember(list(items.values()), force=True) if items else ():
            self._tally.counts["added"] += 1
            self._report(memory.notices, snapshot.blocks[memory.id].page)
        self._reload(items)
        for id_ in items:
            block = snapshot.blocks[id_]
            self._link(id_, self._link_targets(block.entry) - {id_}, set())
            self._set_baseline(id_, block, BlockHistory(since=snapshot.runtime.now(), is_note=True))
        return True

    def import_edits(self, ids: Collection[str], within_budget: Collection[str]) -> None:
        """Compare blocks with the store's memories, and update the store where the page's version holds."""
        memories = [(id_, stored) for id_ in sorted(set(ids) - self.accepted) if (stored := self._snapshot.memory(id_))]
        for id_, stored in memories:
            if id_ in self._snapshot.blocks:
                self._take_block(id_, self._snapshot.blocks[id_], self._snapshot.baselines.get(id_), stored)
        for id_, _ in memories:
            baseline = self._snapshot.baselines.get(id_)
            if id_ not in self._snapshot.blocks and baseline is not None and baseline.page in self._snapshot.pages:
                self._take_removal(id_, baseline, within_budget)

    def _unknown(self) -> list[PageBlock]:
        """Return the blocks of memories that the store does not know, except those that were deleted there."""
        unknown = {id_: block for id_, block in self._snapshot.blocks.items() if self._snapshot.memory(id_) is None}
        if unknown:
            self.forgotten = unknown.keys() & self._snapshot.forgotten()
            ledger = self._snapshot.runtime.store.ledger(self._snapshot.runtime.namespace)
            for id_ in undone_creations(ledger, unknown.keys() - self.forgotten):
                # No notice: nobody asked for this memory or changed it, else its making could not have been undone.
                self.forgotten.add(id_)
                del unknown[id_]
        for id_ in unknown.keys() & self.forgotten:
            self._snapshot.notice(
                unknown.pop(id_).page,
                f"had memory {id_!r:.80}, which was forgotten, and its entry was removed; to store it again, "
                f"write it without that comment",
            )
        return [block for block in unknown.values() if block.entry.text.strip()]

    def _item(self, block: PageBlock) -> dict[str, Any] | None:
        """Return a note as the fields of a new memory, None if it is not valid as one."""
        entry, shown, now = block.entry, self._snapshot.folder.page_path(block.page), self._snapshot.runtime.now()
        is_long = kind_of(block.page) == "long"
        today = local_time(now).date()
        day, minutes = stated_time(entry, block.page)
        # A note of today without a time gets the current one.
        is_now = minutes is None and day in (None, today)
        item = {
            "content": content_of(entry),
            "tier": "long" if is_long else "short",
            "tags": list(entry.tags),
            "at": now if is_now else timestamp_of(day or today, _NOON if minutes is None else minutes),
            "category": category_of(entry.section) if is_long else "",
            "origin": "user",
            "source": shown,
        }
        try:
            validate_memory(item, max_bytes=self._snapshot.runtime.max_bytes, force=True)
        except UsageError as error:
            self._tally.notice(f"a note in {shown} was not imported and stays there: {error.args[0]}")
            return None
        return item

    def _take_block(self, id_: str, block: PageBlock, baseline: Baseline | None, stored: StoredMemory) -> None:
        is_live = stored.expired_at is None
        verdict = self.verdicts[id_] = self._verdict(block, baseline, stored)
        if not block.entry.text.strip() and verdict == "take file":
            self._archive(id_)
            return
        if verdict == "conflict":
            self._keep_copy(block, stored)
            return
        # A person moved the block between a day page and the long-term page.
        kind = kind_of(block.page)
        is_moved = baseline is not None and baseline.page != "" and kind != kind_of(baseline.page)
        if verdict == "take file" and not self._edit(id_, block, baseline, stored):
            return
        if verdict == "take file":
            # The heading may not be a person's words, but the beginning of the text before the edit.
            now, content, topic = self._snapshot.memory(id_), content_of(block.entry, stored), block.entry.topic
            is_as_said = now is not None and now.record.content == content == block.entry.text
            if is_as_said and topic != "" and self._snapshot.heading(id_) != topic:
                self.outdated.add(id_)
        if is_moved:
            self.outdated.add(id_)
        if is_moved or (verdict == "take file" and not is_live):
            tier, now = "long" if kind == "long" else "short", self._snapshot.memory(id_)
            if now is not None and now.expired_at is None and now.record.tier != tier:
                with suppress(NotFoundError):  # deleted in the meantime: the next run sees that
                    self._snapshot.runtime.service().set_tier(id_, tier)
                self._reload([id_])
        if baseline is not None and baseline.page not in ("", block.page):
            self._tally.counts["moved"] += 1
        if verdict == "take file" or is_moved or (verdict == "same" and is_live):
            history = BlockHistory()
            if baseline and baseline.page == block.page:
                history = baseline.history
                if block.page in self._snapshot.changed:  # a person has saved all of it
                    history = replace(history, changed=0.0, is_seen=True)
            self._set_baseline(id_, block, history)

    def _verdict(self, block: PageBlock, baseline: Baseline | None, stored: StoredMemory) -> MergeResult:
        snapshot, entry, is_live = self._snapshot, block.entry, stored.expired_at is None
        links = snapshot.links(stored.owner.id)
        store = entry_in_store(stored, links) if is_live else None
        verdict = _judge(baseline, entry_in_file(entry, block.page, baseline), store)
        if verdict == "conflict" and is_live:
            # A killed run may already have imported the block.
            changes = differences(without_secrets(entry), block.page, baseline, stored, snapshot.own_sections())
            if text_digest(without_secrets(entry).text) == text_digest(stored.record.content):
                changes.pop("content", None)  # only the heading is the old one
            if not changes and set(entry.links) == set(links):
                return "same"
        if not is_live or baseline is None or verdict not in ("take file", "conflict"):
            return verdict
        outdated_part = snapshot.outdated(block, baseline)
        if outdated_part == "words":
            # The words were saved by an editor that has not seen the store's version.
            snapshot.notice(
                block.page,
                f"was saved with older words of memory {entry.id!r:.80}, which was changed in the store "
                f"meanwhile; the store's were written there again: `commonplace update` brings the older ones back",
            )
            return "take store"
        return "conflict" if outdated_part else verdict

    def _take_removal(self, id_: str, baseline: Baseline, within_budget: Collection[str]) -> None:
        """Archive a memory whose block was removed, unless the store removed it or the whole page was lost."""
        seen, stored = self._snapshot.pages[baseline.page], self._snapshot.memory(id_)
        if stored is None or seen.is_lost or not seen.is_dirty or stored.expired_at is not None:
            return
        if id_ in self._snapshot.missing:
            is_sure = baseline.page in self._snapshot.read_before
            advice = "reload the page before you remove it" if is_sure else "remove it once more to archive it"
            event = "was saved without a memory that had come to it meanwhile; that was put back"
            self._snapshot.notice(baseline.page, f"{event}: {advice}")
            return
        belongs = self._snapshot.likely_page(stored, baseline) == baseline.page
        has_room = stored.record.tier != "long" or id_ in within_budget
        verdict = _judge(baseline, None, entry_in_store(stored, self._snapshot.links(id_)))
        if belongs and has_room and verdict == "take file":
            self.verdicts[id_] = verdict
            self._archive(id_)
            self._tally.notice(
                f"memory {id_!r:.80} was archived, since its entry was removed from "
                f"{self._snapshot.folder.page_path(baseline.page)}"
            )

    def _edit(self, id_: str, block: PageBlock, baseline: Baseline | None, stored: StoredMemory) -> bool:
        """Update a memory from its block; return False if the memory is gone or the store refuses the edit."""
        service, shown = self._snapshot.runtime.service(), self._snapshot.folder.page_path(block.page)
        changes = differences(block.entry, block.page, baseline, stored, self._snapshot.own_sections())
        version = stored.record.version
        try:
            if stored.expired_at is not None:
                restored = {"content": stored.record.content, **changes}
                validate_memory(restored, max_bytes=self._snapshot.runtime.max_bytes, force=True)
                version = service.restore(id_).version
                self._tally.counts["restored"] += 1
            if changes:
                updated = service.update(id_, changes)
                self._tally.counts["updated"] += 1
                self._report(updated.notices, block.page)
                if updated.version > version + 1:
                    self._tally.notice(
                        f"memory {id_!r:.80} was changed in the store while its edit in "
                        f"{shown} was imported; that version is kept among its versions"
                    )
        except NotFoundError:
            return False
        except UsageError as error:
            self.refused.add(id_)
            self._tally.notice(f"an edit in {shown} was not imported and stays there: {error.args[0]}")
            return False
        old_links = set(self._snapshot.links(id_))
        new_links = self._link_targets(block.entry) - old_links - {id_}
        if self._link(id_, new_links, old_links.difference(block.entry.links)) and not changes:
            self._tally.counts["updated"] += 1
        self._reload([id_])
        return True

    def _archive(self, id_: str) -> None:
        with suppress(NotFoundError):
            self._snapshot.runtime.service().archive(id_)
            self._tally.counts["archived"] += 1
        self._reload([id_])
        self.dropped.add(id_)

    def _link(self, id_: str, added: set[str], removed: set[str]) -> bool:
        service = self._snapshot.runtime.service
        for target in sorted(added):
            with suppress(NotFoundError):
                service().link(id_, target, _LINK_TYPE, 1.0)
        for target in sorted(removed):
            service().unlink(id_, target, None)
        if added or removed:
            self._reload([id_])
        return bool(added or removed)

    def _set_baseline(self, id_: str, block: PageBlock, history: BlockHistory) -> None:
        """Set the baseline of a memory to its block as it was read and the store's current version."""
        if (stored := self._snapshot.memory(id_)) is not None:
            self._snapshot.baselines[id_] = agree(block.entry, block.page, stored, self._snapshot.links(id_), history)
            self.accepted.add(id_)

    def _keep_copy(self, block: PageBlock, stored: StoredMemory) -> None:
        """Save a block in a file beside its page, as both page and store have changed the memory."""
        snapshot, kind, page = self._snapshot, kind_of(block.page), self._snapshot.folder.page_path(block.page)
        store_entry = None
        if stored.expired_at is None:
            store_entry = entry_of(stored, kind, snapshot.links(block.entry.id), snapshot.own_sections())
        name, text = conflict_copy(block.page, block.entry, store_entry, local_time(snapshot.runtime.now()), kind=kind)
        try:
            snapshot.folder.keep(name, text)
        except OSError as error:
            self.refused.add(block.entry.id)
            self._postpone(block.page, f"what was changed there and in the store could not be saved ({error.strerror})")
            return
        shown = snapshot.folder.page_path(name)
        self._tally.conflicts[shown] = None
        self._tally.notice(
            f"a memory was changed in {page} and in the store; the store's version stays, "
            f"the other one is kept in {shown}"
        )

    def _link_targets(self, entry: Entry) -> set[str]:
        return {link for link in entry.links if _is_valid_id(link) and self._snapshot.memory(link) is not None}

    def _reload(self, ids: Iterable[str]) -> None:
        listed = list(ids)
        self.changed.update(listed)
        self._snapshot.load(listed, reload=True)

    def _postpone(self, page: str, reason: str) -> None:
        """Leave what is new on a page for the next run, with a notice."""
        self._snapshot.unsettled.add(page)
        self._tally.notice(f"{self._snapshot.folder.page_path(page)}: {reason}; that waits there")

    def _report(self, notices: tuple[str, ...], page: str) -> None:
        for notice in notices:
            self._tally.notice(f"{self._snapshot.folder.page_path(page)}: {notice}; the page was left as it is")


def _judge(baseline: Baseline | None, file: Entry | None, store: Entry | None) -> MergeResult:
    """Return which version holds; `file` comes from `entry_in_file`. None stands for a missing block or live memory."""
    return merge(baseline.file, file, store, store_base=baseline.store) if baseline else merge("", file, store)


def _is_valid_id(id_: str) -> bool:
    try:
        reject_invalid_id(id_)
    except UsageError:
        return False
    return True
