"""Which long-term memories the long-term page has room for: the most retained ones, under its limit of tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from commonplace.formats.journal import LONG_TERM_PAGE, Block
from commonplace.formats.journal_editing import with_changes
from commonplace.formats.journal_entry import render_entry
from commonplace.formats.long_term import MOST_TOKENS, SECTIONS, fit
from commonplace.mirror.projection import entry_of, title_of
from commonplace.types import Selection

if TYPE_CHECKING:
    from commonplace.mirror.situation import Situation
    from commonplace.types import StoredMemory

_FEWEST_TOKENS: Final = 12
"""An entry with its heading and the comment that carries its id has more."""


def with_room(at: Situation, rewritten: Collection[str] = ()) -> set[str]:
    """Return the ids of the long-term memories that are to stand on the long-term page; ties by id.

    Args:
        rewritten: ids whose block on the page will not stay as it is.
    """
    seen, ground = at.page(LONG_TERM_PAGE), at.ground
    if seen is None:
        return set()
    wanted = Selection(tiers=("long",), statuses=("active", "promoted"), order="id")
    memories = [each for each in ground.store.memories(ground.namespace, wanted) if each.expired_at is None]
    now = ground.now()
    memories.sort(key=lambda each: (-ground.fading.raw(each.record, now), each.owner.id))
    blocks = {block.entry.id: block for block in seen.page.blocks if block.entry.id}
    rest = with_changes(seen.text, dict.fromkeys(blocks), title=title_of(LONG_TERM_PAGE), kind="long")
    there = {section.name for section in seen.page.sections}
    # With all that may yet be needed, so that what has room now has it once they are written.
    frame = [f"# {title_of(LONG_TERM_PAGE)}"] if not rest.strip() else []
    frame += [f"## {name}" for name in SECTIONS if name not in there]
    used = ground.count_tokens("\n".join([rest, *frame]))
    kept = {id_: block for id_, block in blocks.items() if id_ not in rewritten}
    at.load([each.owner.id for each in memories if each.owner.id not in kept])
    return set(fit(_counts(at, memories, kept, MOST_TOKENS - used), used=used))


def _counts(
    at: Situation, memories: list[StoredMemory], kept: dict[str, Block], room: int
) -> Iterator[tuple[str, int]]:
    """Yield (id, tokens) for as long as anything can have room."""
    for stored in memories:
        if room <= _FEWEST_TOKENS:
            return
        id_ = stored.owner.id
        if id_ in kept:
            text = kept[id_].raw
        else:
            text = render_entry(entry_of(stored, "long", at.links(id_), at.own_sections()), "long")
        tokens = at.ground.count_tokens(text)
        if tokens < room:
            room -= tokens
        yield id_, tokens
