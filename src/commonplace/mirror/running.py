"""One run of the mirror: take in what people changed, write what the store changed, record what both agree on.

A run that is killed at any point, or that finds a page changed under its hands, is simply done again: everything it
records is what a page and the store really say at that moment, and what is due stays due until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commonplace.formats.journal import LONG_TERM_PAGE
from commonplace.mirror.agreement import Agreement, encode
from commonplace.mirror.placing import Placing
from commonplace.mirror.room import with_room
from commonplace.mirror.situation import Ground, Situation, read_links, read_memories
from commonplace.mirror.taking import Taking
from commonplace.store.memory_contract import MirroredBlock, MirroredPage

if TYPE_CHECKING:
    from commonplace.mirror.folder import Folder
    from commonplace.mirror.report import Tally
    from commonplace.types import StoredMemory

_SETTLED_AT_ONCE: Final = 1_000
"""So that other writers wait for milliseconds only."""


def run(
    ground: Ground,
    folder: Folder,
    tally: Tally,
    *,
    thorough: bool,
    wall_ns: int | None,
    believed: Collection[str] = (),
) -> bool:
    """Bring pages and store together once; return False where a page was changed meanwhile and it is to be done again.

    Args:
        thorough: read every page, changed or not.
        wall_ns: the time; pages that were saved just before it are left for later. None reads them too.
        believed: pages of which a person has said that what is missing was meant to go.

    Raises:
        StoreError: the store cannot be written.
        OSError: a directory cannot be read or written; pages that cannot are told by notices instead.
    """
    at = Situation(ground, folder, tally, believed)
    if at.is_quiet and not thorough:
        return True
    folder.drop_drafts()
    at.look(thorough=thorough, wall_ns=wall_ns)
    taking = Taking(at, tally)
    if not taking.take_notes():
        return False
    ids = _concerned(at) | taking.forgotten
    at.load(ids)
    taking.take_edits(ids, with_room(at) if LONG_TERM_PAGE in at.seen else ())
    if tally.changes or taking.overlooked:
        # What was taken in is agreed on, whatever becomes of the pages.
        dropped: dict[str, Agreement | None] = dict.fromkeys(taking.dropped)
        # What else was new on a page is none any more: so it could not be told again who has overlooked what.
        overlooked = {
            id_: replace(at.agreed[id_], page="", standing=replace(at.agreed[id_].standing, is_seen=True))
            for id_ in taking.overlooked
        }
        _record(at, {**taking.agreed, **dropped, **overlooked}, due=taking.overlooked)
    placing = Placing(at, tally, taking)
    placing.place(ids)
    if tally.pages_written:
        folder.settle()
    tally.read |= at.changed_pages()
    recorded = [name for name in at.seen if name not in placing.failed | at.unsure]
    settled = [id_ for id_ in sorted({*at.due, *taking.written}) if id_ in placing.agreed]
    _record(at, placing.agreed, settled=settled[:_SETTLED_AT_ONCE], pages=recorded)
    for begin in range(_SETTLED_AT_ONCE, len(settled), _SETTLED_AT_ONCE):
        _record(at, {}, settled=settled[begin : begin + _SETTLED_AT_ONCE])
    return not placing.is_stale


def _concerned(at: Situation) -> set[str]:
    """Return the ids of the memories that this run is about."""
    fresh = {name for name, seen in at.seen.items() if seen.is_news or seen.is_lost}
    on_pages = {id_ for id_, found in at.blocks.items() if found.page in fresh}
    were_there = {id_ for id_, agreed in at.agreed.items() if agreed.page in fresh}
    return {*at.due, *on_pages, *were_there}


def _record(
    at: Situation,
    agreed: Mapping[str, Agreement | None],
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
    ground, done = at.ground, list(settled)
    space = ground.namespace
    states = [_state(at, name) for name in pages]
    changed = [(name, state) for name, state in states if state != at.known.get(name)]
    fresh = {id_: each for id_, each in agreed.items() if each is None or each != at.agreed.get(id_)}
    if not (done or changed or fresh) or space not in ground.store.namespaces():
        return
    with ground.store.change_memories(space) as change:
        # Nobody else can write now, so this is what holds when the change is committed.
        ids = [*done, *fresh]
        now, links = read_memories(ground, ids), read_links(ground, ids)
        for id_, each in fresh.items():
            if each is None or id_ not in now:
                change.drop_block(id_)
            else:
                change.set_block(MirroredBlock(id_, each.page, encode(each)))
        for id_ in due:
            if id_ in now:
                change.revise(now[id_].number, now[id_].record)
        for name, state in changed:
            if state is None:
                change.drop_page(name)
            else:
                change.set_page(state)
        change.settle_due(
            [
                id_
                for id_ in done
                if _shown(now.get(id_)) == _shown(at.memory(id_)) and links.get(id_, ()) == at.links(id_)
            ]
        )


def _state(at: Situation, name: str) -> tuple[str, MirroredPage | None]:
    file = at.seen[name].file
    return name, None if file.data is None else MirroredPage(name, *file.stamp, file.sum)


def _shown(stored: StoredMemory | None) -> tuple[object, ...]:
    """Return what of a memory a page tells."""
    if stored is None:
        return ()
    record, owner = stored.record, stored.owner
    return (stored.expired_at is None, record.tier, record.content, record.category, owner.tags, owner.at)
