"""Import what people wrote and edited on pages into the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.journal import Entry, category_of
from commonplace.formats.journal_edit import Verdict, assign_ids, conflict_copy, merge
from commonplace.journal.baseline import (
    Baseline,
    Standing,
    agree,
    content_of,
    differences,
    meant_by_store,
    said_by_file,
    text_digest,
)
from commonplace.journal.pages import entry_of, kind_of, local, resolved, said_when
from commonplace.journal.snapshot import Found, Snapshot, without_secrets
from commonplace.ledger.rules import taken_away
from commonplace.memory.validate import reject_invalid_id, validate_memory
from commonplace.types import StoredMemory

_NOON: Final = 12 * 60
_LINK_TYPE: Final = "related"


class EditImport:
    """Takes in what is new on the pages.

    Attributes:
        verdicts: by id, of the memories whose block was looked at.
        accepted: ids of which this run has found, or brought about, that block and store say the same.
        refused: ids whose edit the store refused: their block stays as it is.
        dropped: ids whose block a person removed.
        reheaded: ids whose heading was the beginning of a text that is another one now.
        forgotten: ids on pages that were forgotten, or that undoing took away: their blocks go.
        written: ids of the memories that this has changed in the store.
    """

    def __init__(self, at: Snapshot) -> None:
        self._at = at
        self._tally = at.tally
        self.verdicts: dict[str, Verdict] = {}
        self.accepted: set[str] = set()
        self.refused: set[str] = set()
        self.dropped: set[str] = set()
        self.reheaded: set[str] = set()
        self.forgotten: set[str] = set()
        self.written: set[str] = set()

    def take_notes(self) -> bool:
        """Make memories of the notes; return False where a page changed meanwhile, and the run has to begin again.

        The ids are on the page before the memories are in the store: a run that is killed in between leaves blocks with
        unknown ids, which are taken in under these.
        """
        at = self._at
        items: dict[str, dict[str, Any]] = {}
        fresh: dict[str, dict[int, str]] = defaultdict(dict)
        for id_, note in at.again.items():
            fresh[note.page][note.index] = id_
            at.blocks[id_] = replace(note, entry=replace(note.entry, id=id_))
        notes = [note for note in at.notes if note not in at.again.values()]
        for found, has_id in [*((found, True) for found in self._unknown()), *((note, False) for note in notes)]:
            if (item := self._item(found)) is None:
                continue
            item["id"] = found.entry.id
            if has_id and _is_fit(found.entry.id):
                self._tally.notice(
                    f"{item['source']} has a memory {found.entry.id!r:.80} that the store did not know; it was imported"
                )
            else:
                item["id"] = fresh[found.page][found.index] = str(uuid4())
            items[item["id"]] = item
        for name, ids in fresh.items():
            file = at.seen[name].file
            try:
                written = at.folder.replace(file, assign_ids(file.text, ids, kind_of(name)))
            except OSError as error:
                self._leave(name, f"its new notes could not get their ids ({error.strerror})")
                for id_ in ids.values():
                    items.pop(id_, None)
                continue
            if written is None:
                return False
            self._tally.counts["pages_written"] += 1
            page = at.reread(written)
            at.blocks.update({id_: Found(name, index, page.blocks[index].entry) for index, id_ in ids.items()})
        # Forced: what a person wrote down is a memory, also where it repeats another one.
        for memory in at.runtime.service().remember(list(items.values()), force=True) if items else ():
            self._tally.counts["added"] += 1
            self._tell(memory.notices, at.blocks[memory.id].page)
        self._reload(items)
        for id_ in items:
            found = at.blocks[id_]
            self._link(id_, self._leads_to(found.entry) - {id_}, set())
            self._accept(id_, found, Standing(since=at.runtime.now(), is_note=True))
        return True

    def take_edits(self, ids: Collection[str], within_budget: Collection[str]) -> None:
        """Decide who is right about memories of the store, and let the store follow where it is the page."""
        known = [(id_, stored) for id_ in sorted(set(ids) - self.accepted) if (stored := self._at.memory(id_))]
        for id_, stored in known:
            if id_ in self._at.blocks:
                self._take_block(id_, self._at.blocks[id_], self._at.agreed.get(id_), stored)
        for id_, _ in known:
            agreed = self._at.agreed.get(id_)
            if id_ not in self._at.blocks and agreed is not None and agreed.page in self._at.seen:
                self._take_removal(id_, agreed, within_budget)

    def _unknown(self) -> list[Found]:
        """Return the blocks of memories that the store does not know, but for those that were deleted there."""
        unknown = {id_: found for id_, found in self._at.blocks.items() if self._at.memory(id_) is None}
        if unknown:
            self.forgotten = unknown.keys() & self._at.forgotten()
            ledger = self._at.runtime.store.ledger(self._at.runtime.namespace)
            for id_ in taken_away(ledger, unknown.keys() - self.forgotten):
                # Nobody asked for it, and nobody changed it: else it could not have been undone.
                self.forgotten.add(id_)
                del unknown[id_]
        for id_ in unknown.keys() & self.forgotten:
            self._at.notice(
                unknown.pop(id_).page,
                f"had memory {id_!r:.80}, which was forgotten, and its entry was removed; to store it again, "
                f"write it without that comment",
            )
        return [found for found in unknown.values() if found.entry.text.strip()]

    def _item(self, found: Found) -> dict[str, Any] | None:
        """Return a note as a memory to be kept, None where it cannot be one."""
        entry, shown, now = found.entry, self._at.folder.shown(found.page), self._at.runtime.now()
        is_long = kind_of(found.page) == "long"
        today = local(now).date()
        day, minutes = said_when(entry, found.page)
        # A note of today that says no time is from now.
        is_now = minutes is None and day in (None, today)
        item = {
            "content": content_of(entry),
            "tier": "long" if is_long else "short",
            "tags": list(entry.tags),
            "at": now if is_now else resolved(day or today, _NOON if minutes is None else minutes),
            "category": category_of(entry.section) if is_long else "",
            "origin": "user",
            "source": shown,
        }
        try:
            validate_memory(item, max_bytes=self._at.runtime.max_bytes, force=True)
        except UsageError as error:
            self._tally.notice(f"a note in {shown} was not imported and stays there: {error.args[0]}")
            return None
        return item

    def _take_block(self, id_: str, found: Found, agreed: Baseline | None, stored: StoredMemory) -> None:
        is_live = stored.expired_at is None
        verdict = self.verdicts[id_] = self._verdict(found, agreed, stored)
        if not found.entry.text.strip() and verdict == "take file":
            self._archive(id_)
            return
        if verdict == "conflict":
            self._keep_copy(found, stored)
            return
        # A person moved it between a day's page and the long-term page.
        kind = kind_of(found.page)
        is_moved = agreed is not None and agreed.page != "" and kind != kind_of(agreed.page)
        if verdict == "take file" and not self._edit(id_, found, agreed, stored):
            return
        if verdict == "take file":
            # Its heading may be no person's words, but those with which the text began before it was edited.
            now, said, topic = self._at.memory(id_), content_of(found.entry, stored), found.entry.topic
            is_as_said = now is not None and now.record.content == said == found.entry.text
            if is_as_said and topic != "" and self._at.heading(id_) != topic:
                self.reheaded.add(id_)
        if is_moved:
            self.reheaded.add(id_)
        if is_moved or (verdict == "take file" and not is_live):
            tier, now = "long" if kind == "long" else "short", self._at.memory(id_)
            if now is not None and now.expired_at is None and now.record.tier != tier:
                with suppress(NotFoundError):  # gone meanwhile: the next run sees that
                    self._at.runtime.service().set_tier(id_, tier)
                self._reload([id_])
        if agreed is not None and agreed.page not in ("", found.page):
            self._tally.counts["moved"] += 1
        if verdict == "take file" or is_moved or (verdict == "same" and is_live):
            standing = Standing()
            if agreed and agreed.page == found.page:
                standing = agreed.standing
                if found.page in self._at.changed:  # a person has saved all that the store wrote there
                    standing = replace(standing, changed=0.0, is_seen=True)
            self._accept(id_, found, standing)

    def _verdict(self, found: Found, agreed: Baseline | None, stored: StoredMemory) -> Verdict:
        """Return whose version of a memory holds."""
        at, entry, is_live = self._at, found.entry, stored.expired_at is None
        links = at.links(stored.owner.id)
        store = meant_by_store(stored, links) if is_live else None
        verdict = _judge(agreed, said_by_file(entry, found.page, agreed), store)
        if verdict == "conflict" and is_live:
            # A run that was killed may have taken in what the block says.
            changes = differences(without_secrets(entry), found.page, agreed, stored, at.own_sections())
            if text_digest(without_secrets(entry).text) == text_digest(stored.record.content):
                changes.pop("content", None)  # its heading is that of before
            if not changes and set(entry.links) == set(links):
                return "same"
        if not is_live or agreed is None or verdict not in ("take file", "conflict"):
            return verdict
        what = at.outdated(found, agreed)
        if what == "words":
            # They are those of an editor that has not seen the store's.
            at.notice(
                found.page,
                f"was saved with older words of memory {entry.id!r:.80}, which was changed in the store "
                f"meanwhile; the store's were written there again: `commonplace update` brings the older ones back",
            )
            return "take store"
        return "conflict" if what else verdict

    def _take_removal(self, id_: str, agreed: Baseline, within_budget: Collection[str]) -> None:
        """Archive a memory whose block is gone, unless the store had it go, or the whole page was lost."""
        seen, stored = self._at.seen[agreed.page], self._at.memory(id_)
        if stored is None or seen.is_lost or not seen.is_news or stored.expired_at is not None:
            return
        if id_ in self._at.missing:
            is_sure = agreed.page in self._at.read_before
            advice = "reload the page before you remove it" if is_sure else "remove it once more to archive it"
            what = "was saved without a memory that had come to it meanwhile; that was put back"
            self._at.notice(agreed.page, f"{what}: {advice}")
            return
        belongs = self._at.likely_page(stored, agreed) == agreed.page
        has_room = stored.record.tier != "long" or id_ in within_budget
        verdict = _judge(agreed, None, meant_by_store(stored, self._at.links(id_)))
        if belongs and has_room and verdict == "take file":
            self.verdicts[id_] = verdict
            self._archive(id_)
            self._tally.notice(
                f"memory {id_!r:.80} was archived, since its entry was removed from "
                f"{self._at.folder.shown(agreed.page)}"
            )

    def _edit(self, id_: str, found: Found, agreed: Baseline | None, stored: StoredMemory) -> bool:
        """Write what a block says of a memory; return False where that was not to be."""
        service, where = self._at.runtime.service(), self._at.folder.shown(found.page)
        changes = differences(found.entry, found.page, agreed, stored, self._at.own_sections())
        version = stored.record.version
        try:
            if stored.expired_at is not None:
                wanted = {"content": stored.record.content, **changes}
                validate_memory(wanted, max_bytes=self._at.runtime.max_bytes, force=True)
                version = service.restore(id_).version
                self._tally.counts["restored"] += 1
            if changes:
                updated = service.update(id_, changes)
                self._tally.counts["updated"] += 1
                self._tell(updated.notices, found.page)
                if updated.version > version + 1:
                    self._tally.notice(
                        f"memory {id_!r:.80} was changed in the store while its edit in "
                        f"{where} was imported; that version is kept among its versions"
                    )
        except NotFoundError:
            return False
        except UsageError as error:
            self.refused.add(id_)
            self._tally.notice(f"an edit in {where} was not imported and stays there: {error.args[0]}")
            return False
        before = set(self._at.links(id_))
        new = self._leads_to(found.entry) - before - {id_}
        if self._link(id_, new, before.difference(found.entry.links)) and not changes:
            self._tally.counts["updated"] += 1
        self._reload([id_])
        return True

    def _archive(self, id_: str) -> None:
        with suppress(NotFoundError):
            self._at.runtime.service().archive(id_)
            self._tally.counts["archived"] += 1
        self._reload([id_])
        self.dropped.add(id_)

    def _link(self, id_: str, new: set[str], gone: set[str]) -> bool:
        service = self._at.runtime.service
        for target in sorted(new):
            with suppress(NotFoundError):
                service().link(id_, target, _LINK_TYPE, 1.0)
        for target in sorted(gone):
            service().unlink(id_, target, None)
        if new or gone:
            self._reload([id_])
        return bool(new or gone)

    def _accept(self, id_: str, found: Found, standing: Standing) -> None:
        """Take it that a block, as it is there and was read, and the store say the same now."""
        if (stored := self._at.memory(id_)) is not None:
            self._at.agreed[id_] = agree(found.entry, found.page, stored, self._at.links(id_), standing)
            self.accepted.add(id_)

    def _keep_copy(self, found: Found, stored: StoredMemory) -> None:
        """Keep what a page says in a file beside it, where page and store were changed."""
        at, kind, page = self._at, kind_of(found.page), self._at.folder.shown(found.page)
        kept = None
        if stored.expired_at is None:
            kept = entry_of(stored, kind, at.links(found.entry.id), at.own_sections())
        name, text = conflict_copy(found.page, found.entry, kept, local(at.runtime.now()), kind=kind)
        try:
            at.folder.keep(name, text)
        except OSError as error:
            self.refused.add(found.entry.id)
            self._leave(found.page, f"what was changed there and in the store could not be saved ({error.strerror})")
            return
        shown = at.folder.shown(name)
        self._tally.conflicts[shown] = None
        self._tally.notice(
            f"a memory was changed in {page} and in the store; the store's version stays, "
            f"the other one is kept in {shown}"
        )

    def _leads_to(self, entry: Entry) -> set[str]:
        """Return the memories that the links of a block name."""
        return {link for link in entry.links if _is_fit(link) and self._at.memory(link) is not None}

    def _reload(self, ids: Iterable[str]) -> None:
        listed = list(ids)
        self.written.update(listed)
        self._at.load(listed, again=True)

    def _leave(self, page: str, why: str) -> None:
        """Let what is new on a page wait for the next run."""
        self._at.unsure.add(page)
        self._tally.notice(f"{self._at.folder.shown(page)}: {why}; that waits there")

    def _tell(self, notices: tuple[str, ...], page: str) -> None:
        for notice in notices:
            self._tally.notice(f"{self._at.folder.shown(page)}: {notice}; the page was left as it is")


def _judge(agreed: Baseline | None, file: Entry | None, store: Entry | None) -> Verdict:
    """Return whose version holds; `file` is of `said_by_file`. None is a block or a live memory that is not there."""
    return merge(agreed.file, file, store, store_base=agreed.store) if agreed else merge("", file, store)


def _is_fit(id_: str) -> bool:
    try:
        reject_invalid_id(id_)
    except UsageError:
        return False
    return True
